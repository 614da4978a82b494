"""Many agents that begin at the same moment: ``python -m tests.features.gossip.process.many``.

Each of sixty-four processes that begins as usual imports for a second of CPU, and on few cores the first is a member for a minute before
the last has begun. Here one process has imported what all need, and each agent is a fork of it, which goes the way of
``python -m holdfast.agent`` from there on. Settings come as one line of JSON, a list; each agent that is ready is a line. They are killed
when the standard input ends.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.support.agents import clean_environ

ROOT = Path(__file__).parents[4]
NEEDED = (
    "holdfast.agent.life.agent", "holdfast.agent.socket.connection", "holdfast.wire.seal", "holdfast.net.host",
    "holdfast.features.gossip.side", "holdfast.features.gossip.agent", "holdfast.features.mail.agent", "holdfast.features.names.agent",
    "holdfast.features.keys.agent", "holdfast.features.probe.agent", "holdfast.features.farewell.agent",
    "cryptography.hazmat.primitives.ciphers.aead",
)  # fmt: skip


class Begun(NamedTuple):
    """One agent that is ready."""

    life: str
    socket: str
    at: float  # wall clock


class Many:
    """Agents of one test; leaving the block ends them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.features.gossip.process.many"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.read()
        self._process.wait()
        self._process.stdout.close()

    def start(self, settings: Sequence[dict[str, Any]]) -> list[Begun]:
        """All of them; returns when all are ready."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for each in settings:
            (self._folder / f"home-{each['name']}").mkdir(mode=0o700)
        self._process.stdin.write(json.dumps([str(self._folder), settings]).encode() + b"\n")
        self._process.stdin.flush()
        found = []
        for _ in settings:
            at, ready = json.loads(self._process.stdout.readline())
            assert "socket" in ready, ready
            found.append(Begun(f"{ready['name']}#{ready['boot']}", ready["socket"], at))
        return found


def main() -> None:
    for name in NEEDED:
        import_module(name)
    folder, settings = json.loads(sys.stdin.buffer.readline())
    children, waiting = [], selectors.DefaultSelector()
    for each in settings:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            agent(Path(folder) / f"home-{each['name']}", each, write)
        os.close(write)
        children.append(child)
        waiting.register(read, selectors.EVENT_READ)
    for _ in settings:
        ((key, _), *_) = waiting.select()
        waiting.unregister(key.fd)
        with os.fdopen(key.fd) as file:
            print(json.dumps([time.time(), json.loads(file.read() or "{}")]), flush=True)  # noqa: T201 - read by ``Many``
    sys.stdin.buffer.read()
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def agent(home: Path, settings: dict[str, Any], ready: int) -> None:
    """What ``holdfast.agent.__main__`` does."""
    from holdfast.agent.life.main import main as run

    environ = clean_environ(home, {})
    os.environ.clear()
    os.environ.update(environ)
    null, log = os.open(os.devnull, os.O_RDWR), os.open(home / "log", os.O_WRONLY | os.O_CREAT, 0o600)
    for fd, to in ((null, 0), (null, 1), (log, 2)):
        os.dup2(fd, to)
    told = os.memfd_create("settings")
    os.write(told, json.dumps(settings).encode())
    os._exit(run(["--settings-fd", str(told), "--ready-fd", str(ready)], environ))


if __name__ == "__main__":
    main()
