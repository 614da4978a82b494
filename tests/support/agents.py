"""Real agents as processes: started as the client starts them, watched through their log, ended one by one.

    with Fleet(tmp_path) as fleet:
        a = fleet.start(name="a")                      # waits for its ready line
        b = fleet.start(name="b", seeds=[a.address])
        fleet.until(lambda: a.said("Joined", member=b.id), "b is in a's list")

Every agent has a runtime directory of its own below the fleet's folder unless ``runtime=`` says otherwise, and writes its log there.
All of them share one key, so the first may begin a group without seeds; ``key=""`` gives one that is alone on its machine (F12).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from holdfast.wire.keys import generate

DEADLINE = 60.0  # seconds; only a broken program or a broken machine reaches it
POLL_INTERVAL = 0.02
DEFAULTS: dict[str, Any] = {"preset": "local", "bind": "127.0.0.1:0", "group": "test"}


def until(holds: Callable[[], object], what: str, deadline: float = DEADLINE) -> None:
    """Wait until it holds; fails with its name after the deadline."""
    end_at = time.monotonic() + deadline
    while not holds():
        assert time.monotonic() < end_at, f"never happened: {what}"
        time.sleep(POLL_INTERVAL)


class AgentProcess:
    """One agent, started. ``ready`` is what it said when it was, or ``{}`` when it ended before."""

    def __init__(self, process: subprocess.Popen[bytes], ready: dict[str, Any], log: Path) -> None:
        self.process, self.ready, self._log = process, ready, log

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def name(self) -> str:
        return str(self.ready["name"])

    @property
    def id(self) -> str:
        """As logs write it."""
        return f"{self.ready['name']}#{self.ready['boot']}"

    @property
    def address(self) -> str:
        return str(self.ready["address"])

    @property
    def socket(self) -> str:
        return str(self.ready["socket"])

    @property
    def rss_mib(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    @property
    def stderr(self) -> str:
        return self._log.read_text()

    def log(self) -> list[dict[str, Any]]:
        """Its lines so far; what is no JSON is a line of its own under "text"."""
        return [_line(text) for text in self.stderr.splitlines()]

    def said(self, event: str, **fields: Any) -> dict[str, Any] | None:
        """The first line of this event with these fields."""
        for line in self.log():
            if line.get("event") == event and all(line.get(name) == value for name, value in fields.items()):
                return line
        return None

    def until_said(self, event: str, **fields: Any) -> dict[str, Any]:
        until(lambda: self.said(event, **fields) or self._ended(), f"{event} {fields} in the log")
        found = self.said(event, **fields)
        assert found is not None, f"it ended without {event} {fields}:\n{self.stderr}"
        return found

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        self.process.terminate()
        return self.wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def wait(self) -> int:
        try:
            return self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end:\n{self.stderr}") from None

    def _ended(self) -> bool:
        return self.process.poll() is not None


class Fleet:
    """Agents of one test or of one module. Leaving the block ends what is left of them."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.settings = {**DEFAULTS, "key": generate(), **settings}
        self.agents: list[AgentProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        living = [agent for agent in self.agents if agent.process.poll() is None]
        for agent in living:
            agent.process.send_signal(signal.SIGCONT)
            agent.process.kill()
        for agent in living:
            agent.process.wait()

    def start(
        self,
        *,
        runtime: Path | None = None,
        environ: dict[str, str] | None = None,
        words: Sequence[str] = (),
        before: Sequence[str] = (),
        module: str = "holdfast.agent",
        expect_ready: bool = True,
        **settings: Any,
    ) -> AgentProcess:
        """An agent with these settings over the fleet's; None takes one away. With ``expect_ready`` it must come up.
        ``before`` are words before the command (a network namespace), ``module`` is another program than the agent as it is."""
        folder = runtime or self.folder / f"agent{len(self.agents)}"
        folder.mkdir(mode=0o700, exist_ok=True)
        effective = {name: value for name, value in {**self.settings, **settings}.items() if value is not None}
        agent = _started(
            effective, folder, folder / f"log{len(self.agents)}", environ or {}, (*before, sys.executable, "-m", module), words
        )
        self.agents.append(agent)
        assert not expect_ready or "socket" in agent.ready, f"it did not start: {agent.ready}\n{agent.stderr}"
        return agent

    def group(self, count: int, **settings: Any) -> list[AgentProcess]:
        """So many agents in one group, all of them members in everybody's eyes."""
        first = self.start(name="a0", **settings)
        rest = [self.start(name=f"a{number}", seeds=[first.address], **settings) for number in range(1, count)]
        agents = [first, *rest]
        until(lambda: all(each.said("Joined", member=other.id) for each in agents for other in agents), f"{count} agents are a group")
        return agents

    def until(self, holds: Callable[[], object], what: str) -> None:
        until(holds, what)


def clean_environ(folder: Path, extra: dict[str, str]) -> dict[str, str]:
    """This process's environment without any setting of Holdfast."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_") and name != "NOTIFY_SOCKET"}
    return {**kept, "HOLDFAST_RUNTIME_DIR": str(folder), "XDG_STATE_HOME": str(folder), **extra}


def _started(
    settings: dict[str, Any], folder: Path, log: Path, environ: dict[str, str], program: Sequence[str], words: Sequence[str]
) -> AgentProcess:
    settings_read, settings_write = os.pipe()
    ready_read, ready_write = os.pipe()
    command = [*program, "--settings-fd", str(settings_read), "--ready-fd", str(ready_write), *words]
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=clean_environ(folder, environ),
            pass_fds=(settings_read, ready_write),
        )
    os.close(settings_read)
    os.close(ready_write)
    with os.fdopen(settings_write, "wb") as file:
        file.write(json.dumps(settings).encode())
    with os.fdopen(ready_read, "rb") as file:
        told = file.read()
    return AgentProcess(process, json.loads(told) if told else {}, log)


def _line(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"text": text}
