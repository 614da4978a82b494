"""Runs a page from top to bottom in one shell, as a reader would: files are saved, commands typed, background jobs left running.

Only pages that say ``<!-- runs in order -->`` are run so. A Python block behind ``<!-- file: NAME -->`` is saved under that name; a line of
a console block is typed into one bash for the whole page. Where lines are shown below a command, they must occur in what it prints;
because a group needs a moment, such a command is typed again until they do. Commands that would install something are left out. A block
behind ``<!-- needs: root, PROGRAM -->`` is run where the tests are run by root and the program answers to ``--help``; elsewhere it is left
out, the rest of the page is run, and the test says what was left out (H137).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from uuid import uuid4

from tests.docs.blocks import Block, blocks, occurs

IN_ORDER = re.compile(r"^<!-- runs in order -->$", re.MULTILINE)  # on a line of its own: a page may also speak of it
FILE = re.compile(r"<!-- file: (?P<name>[\w.-]+) -->\s*$")
NEEDS = re.compile(r"<!-- needs: *(?P<needs>\S.*?) *-->\s*$")
NOT_TYPED = ("pip ", "make ")
MARK = "SESSION_OF_A_PAGE"
DEADLINE = 90.0  # seconds until a command shows what the page shows: a cron daemon takes a minute, only a broken program reaches it
PAUSE = 0.1  # seconds before a command is typed again


class Line(NamedTuple):
    """A command and what is shown below it."""

    command: str
    shown: list[str]


class Played(NamedTuple):
    """What became of a page."""

    commands: int  # that were typed
    left_out: list[str]  # blocks that need what is not here


def before(text: str, block: Block) -> str:
    """The page above the fence of a block."""
    return "\n".join(text.splitlines()[: block.line - 2])


def saved_as(text: str, block: Block) -> str | None:
    """The file name that the page gives to a Python block."""
    found = FILE.search(before(text, block))
    return found["name"] if found else None


def missing_for(text: str, block: Block) -> list[str]:
    """What the block needs and this machine does not have."""
    found = NEEDS.search(before(text, block))
    return [need for need in found["needs"].split(", ") if not _is_there(need)] if found else []


def _is_there(need: str) -> bool:
    if need == "root":
        return os.geteuid() == 0
    with suppress(OSError):
        return subprocess.run([*need.split(), "--help"], capture_output=True, check=False).returncode == 0
    return False


def typed(body: str) -> list[Line]:
    """Every command of a console block."""
    found: list[Line] = []
    for line in body.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            found.append(Line(line[2:], []))
        elif found and line.strip():
            found[-1].shown.append(line.strip())
    return [line for line in found if not line.command.startswith(NOT_TYPED)]


class Shell:
    """One bash with job control, in a folder of its own. Whatever it started ends with it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._mark = folder, uuid4().hex
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-m"],
            cwd=folder,
            env={**environment, "PATH": path, MARK: self._mark, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "160"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        while pids := {*self.running(), *([self._bash.pid] if self._bash.poll() is None else [])}:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        self._bash.wait()
        for pipe in (self._bash.stdin, self._bash.stdout):
            assert pipe is not None
            pipe.close()

    def type(self, command: str) -> tuple[int, str]:
        """The exit code and what was printed."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        end = f"end-{uuid4().hex}"
        self._bash.stdin.write(f"{command}\ncode=$?\necho\necho {end} $code\n")
        printed: list[str] = []
        for line in self._bash.stdout:
            if line.startswith(end):
                return int(line.split()[1]), "".join(printed)
            printed.append(line)
        raise AssertionError(f"the shell ended at {command!r}:\n{''.join(printed)}")

    def running(self) -> list[int]:
        """Processes that were started in this shell, wherever they went."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"{MARK}={self._mark}".encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return found


def run_in_order(text: str, shell: Shell, folder: Path) -> Played:
    """Every block of the page, but for those that are skipped or need what is not here."""
    count, left_out = 0, []
    for block in blocks(text):
        if block.skipped:
            continue
        if missing := missing_for(text, block):
            left_out.append(f"line {block.line} needs {' and '.join(missing)}")
        elif block.language == "python":
            name = saved_as(text, block)
            assert name is not None, f"line {block.line}: a page that runs in order saves its Python; put <!-- file: NAME --> before it"
            (folder / name).write_text(block.body)
        elif block.language == "console":
            for line in typed(block.body):
                run_line(line, shell)
                count += 1
    return Played(count, left_out)


def run_line(line: Line, shell: Shell, deadline: float = DEADLINE) -> None:
    end_at = time.monotonic() + deadline
    while True:
        code, printed = shell.type(line.command)
        missing = [shown for shown in line.shown if not occurs(shown, printed)]
        if code == 0 and not missing:
            return
        may_come = bool(line.shown) and time.monotonic() < end_at
        assert may_come, f"$ {line.command}\nended with {code} and printed:\n{printed}\nmissing: {missing}"
        time.sleep(PAUSE)
