"""``holdfast agent``: the command becomes the agent process, with the settings of its flags."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import Run
from tests.docs.blocks import HOLDFAST
from tests.support.agents import clean_environ, until

POISON = "raise SystemExit('imported from the folder where somebody stands')"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where somebody stands: with files that are called like modules."""
    for name in ("asyncio.py", "msgspec.py", "holdfast.py"):
        (tmp_path / name).write_text(POISON)
    return tmp_path


@pytest.fixture
def agent(folder: Path) -> Iterator[subprocess.Popen[str]]:
    (folder / "h.toml").write_text('group = "flags"\ntags = { zone = "eu" }\npreset = "wan"\n')
    words = [
        str(HOLDFAST),
        "agent",
        "--config",
        "h.toml",
        "--name",
        "x",
        "--bind",
        "127.0.0.1:0",
        "--preset",
        "local",
        "--socket",
        "a.sock",
    ]
    environ = clean_environ(folder, {"HOLDFAST_LOG_LEVEL": "warning"})
    process = subprocess.Popen(words, cwd=folder, env=environ, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def test_it_becomes_the_agent(holdfast: Run, folder: Path, agent: subprocess.Popen[str]) -> None:
    """One process: the agent has the pid of the command, its settings and nothing of the command line; SIGTERM ends it with 0."""
    socket_path = folder / "a.sock"
    until(lambda: agent.poll() is not None or holdfast("members", "--agent", socket_path).code == 0, "it answers")
    assert agent.poll() is None, agent.communicate()
    found = holdfast("info", "--agent", socket_path, "--json").json
    assert (found["pid"], found["name"], found["group"]) == (agent.pid, "x", "flags")
    assert (found["settings"]["preset"], found["settings"]["tags"], found["settings"]["log_level"]) == ("local", {"zone": "eu"}, "warning")
    assert b"holdfast.agent\0--settings-fd" in Path(f"/proc/{agent.pid}/cmdline").read_bytes()
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(60) == 0


def ended(folder: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [HOLDFAST, "agent", *words], cwd=folder, env=clean_environ(folder, {}), capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_bad_settings(folder: Path) -> None:
    """Exit code 2 and one line, from the flags and from the file, with and without --check."""
    (folder / "bad.toml").write_text("colour = 1\n")
    for more in ((), ("--check",)):
        code, err = ended(folder, "--lease", "soon", *more)
        assert (code, err) == (2, "holdfast: lease: 'soon'; accepted is a number (from flags)\n")
        code, err = ended(folder, "--config", "bad.toml", *more)
        assert (code, err.count("\n"), "colour: no such setting" in err) == (2, 1, True)


def test_a_port_in_use(folder: Path) -> None:
    """Exit code 3: the settings are fine, the machine is not."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        code, err = ended(folder, "--bind", f"127.0.0.1:{taken.getsockname()[1]}", "--log-level", "error")
    assert (code, "the port is in use" in err) == (3, True)
