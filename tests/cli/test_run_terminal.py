"""``holdfast run`` on a terminal: the command reads it, Ctrl-C is for the command, Ctrl-Z puts nobody aside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.local import calls
from tests.cli.fake_agent import FakeAgent
from tests.support.agents import until

# Makes the terminal at stdin its own, as a login does, and becomes the command.
LOGIN = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"


class Terminal:
    """A command on a terminal of its own, in the foreground of it."""

    def __init__(self, agent: FakeAgent, *command: str) -> None:
        self._ours, theirs = os.openpty()
        words = ["-m", "holdfast", "run", "--agent", agent.path, "--hold", "fake:x", "--", *command]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOGIN, *words], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        command_pid = agent.wait_for(calls.Body, 2)[1].pid
        until(lambda: os.tcgetpgrp(self._ours) == command_pid, "the command has the terminal")

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def ended(self) -> tuple[int, bytes]:
        """The exit code, and all that was shown."""
        shown = b""
        with suppress(OSError):  # EIO: nobody has the terminal any more
            while data := os.read(self._ours, 4096):
                shown += data
        return self.process.wait(60), shown

    def close(self) -> None:
        os.close(self._ours)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[FakeAgent]:
    with FakeAgent(tmp_path / "agent.sock") as agent:
        agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=50.0)
        yield agent


@pytest.mark.parametrize(
    "command,keys,code,shown",
    [
        (("cat",), b"hello\n\x04", 0, b"hello\r\nhello\r\n"),
        (("sleep", "50"), b"\x03", 130, b"^C"),
        (("sleep", "1"), b"\x1a", 0, b"^Z"),
    ],
    ids=["read", "ctrl-c", "ctrl-z"],
)
def test_on_a_terminal(agent: FakeAgent, command: tuple[str, ...], keys: bytes, code: int, shown: bytes) -> None:
    """A process group of its own has the terminal while it runs, and what is typed goes to it."""
    terminal = Terminal(agent, *command)
    try:
        terminal.type(keys)
        assert terminal.ended() == (code, shown)
    finally:
        terminal.close()
