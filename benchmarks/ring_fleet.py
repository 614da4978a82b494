"""Real processes with members of a ring, seen from outside: started, stopped, killed, and everything they printed.

Each process is one ``holdfast lab ring``. Its lines are stamped with CLOCK_BOOTTIME, the clock the members count with and this file
reads too, so that "killed at" and "suspected at" can be subtracted.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.net import clock

Line = dict[str, Any]
Popen = Callable[[list[str]], "subprocess.Popen[Any]"]

PATIENCE = 60.0  # seconds in which anything that must happen has happened, on any machine
POLL_INTERVAL = 0.01
PIPE_BYTES = 1 << 20  # a member that waits for its reader would be late: so much may wait instead
READ_BYTES = 1 << 16
LOOPBACK = "127.0.0.1"

now = clock.now


class NeverHappened(AssertionError):
    """Something that must happen did not, for as long as a run can wait."""


class Settings(NamedTuple):
    """What all members of a ring have in common."""

    lease: float = 0.6
    k: int = 3
    seeds: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    key_file: Path | None = None  # None: plaintext


class Process:
    """One process with one or more members, and what they printed so far."""

    def __init__(self, members: Mapping[str, str], settings: Settings, *more: str, popen: Popen | None = None) -> None:
        self.names = tuple(members)
        self.lines: list[Line] = []
        self.may_end = False  # it was asked to
        self._rest = b""
        command = [sys.executable, "-m", "holdfast", "lab", "ring", "--members", ",".join(f"{n}={a}" for n, a in members.items())]
        command += ["--lease", str(settings.lease), "--k", str(settings.k), "--seeds", ",".join(settings.seeds)]
        command += ["--keys", ",".join(settings.keys), *more]
        command += ["--insecure"] if settings.key_file is None else ["--key-file", str(settings.key_file)]
        self.child = (popen or _popen)(command)
        assert self.child.stdout is not None
        self._out = self.child.stdout.fileno()
        os.set_blocking(self._out, False)
        fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    @property
    def ready(self) -> bool:
        """It has begun, or waits for orders."""
        return bool(self.lines)

    def order(self, *words: str) -> None:
        assert self.child.stdin is not None
        try:
            self.child.stdin.write((" ".join(words) + "\n").encode())
            self.child.stdin.flush()
        except BrokenPipeError:
            raise NeverHappened(f"the process of {self.names[0]} ended; {' '.join(words)!r} was not heard") from None

    def signal(self, number: signal.Signals) -> float:
        """Send it; returns when that was."""
        self.may_end |= number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
        at = now()
        self.child.send_signal(number)
        return at

    def kill(self) -> float:
        """SIGKILL, waited for; returns the instant before it."""
        at = self.signal(signal.SIGKILL)
        self.child.wait(PATIENCE)
        return at

    def poll(self) -> list[Line]:
        """Read what has come; returns what is new."""
        data = self._rest
        while chunk := self._read():
            data += chunk
        *whole, self._rest = data.split(b"\n")
        new = [msgspec.json.decode(line) for line in whole]
        self.lines += new
        return new

    def end(self) -> int:
        """Leave no process behind; returns its exit code."""
        self.may_end = True
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGCONT)
            self.child.kill()
        code = self.child.wait(PATIENCE)
        if self._out >= 0:
            self.poll()
        for stream in (self.child.stdin, self.child.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # an order that it did not hear
                    stream.close()
        self._out = -1
        return code

    def _read(self) -> bytes:
        try:
            return os.read(self._out, READ_BYTES) if self._out >= 0 else b""
        except BlockingIOError:
            return b""


class Fleet:
    """All processes of one ring, former ones included, and what their lines add up to."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.processes: list[Process] = []
        self.home: dict[str, Process] = {}  # name -> the process where it lives, or lived last
        self.view: dict[str, Line] = {}  # name -> its latest View
        self.bound: dict[str, str] = {}  # name -> where it listens
        self.lines: list[Line] = []  # of all, in the order they were read

    def start(self, members: Mapping[str, str], *more: str, settings: Settings | None = None, popen: Popen | None = None) -> Process:
        process = Process(members, self.settings if settings is None else settings, *more, popen=popen)
        self.processes.append(process)
        for name in members:
            self.home[name] = process
            self.view.pop(name, None)
        return process

    def poll(self) -> list[Line]:
        new = [line for process in self.processes for line in process.poll()]
        for line in new:
            name = name_of(line)
            if line["event"] == "View":
                self.view[name] = line
            elif line["event"] in ("Crashed", "Stopped"):
                self.view.pop(name, None)
            elif line["event"] == "Started":
                self.bound[name] = line["bound"]
        self.lines += new
        return new

    def agreed(self, names: Iterable[str]) -> bool:
        """These, and no others, are members of one ring, and each of them knows it."""
        wanted = list(names)
        views = [self.view.get(name) for name in wanted]
        seen = {(v["ring"], v["digest"], v["size"]) for v in views if v is not None and v["status"] == "MEMBER"}
        return all(v is not None and v["status"] == "MEMBER" for v in views) and len(seen) == 1 and next(iter(seen))[2] == len(wanted)

    def members(self) -> list[str]:
        return sorted(name for name, view in self.view.items() if view["status"] == "MEMBER")

    def until(self, holds: Callable[[], object], what: str, *, within: float = PATIENCE) -> None:
        """Wait until it holds, reading meanwhile."""
        end_at = time.monotonic() + within
        while not holds():
            if time.monotonic() >= end_at:
                raise NeverHappened(f"never happened: {what}; {self.story()}")
            self._check_processes(what)
            time.sleep(POLL_INTERVAL)
            self.poll()

    def _check_processes(self, what: str) -> None:
        for process in self.processes:
            if not process.may_end and process.child.poll() is not None:
                raise NeverHappened(f"the process of {process.names[0]} ended ({process.child.returncode}); it will not happen: {what}")

    def until_agreed(self, names: Sequence[str], what: str, *, within: float = PATIENCE) -> None:
        self.until(lambda: self.agreed(names), what, within=within)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, reading meanwhile."""
        end_at = now() + seconds
        while now() < end_at:
            time.sleep(min(POLL_INTERVAL, max(0.0, end_at - now())))
            self.poll()

    def found(self, event: str, *, since: float = 0.0, **fields: Any) -> list[Line]:
        """Lines of one kind, in order of time."""
        wanted = fields.items()
        lines = [line for line in self.lines if line["event"] == event and line["at"] >= since]
        return sorted((line for line in lines if all(line.get(k) == v for k, v in wanted)), key=lambda line: float(line["at"]))

    def mark(self) -> dict[str, Line]:
        """Ask each member how late its timers ran since it was last asked, and how much it has sent."""
        asked = [process for process in self.processes if process.child.poll() is None]
        marked_at = now()
        for process in asked:
            process.order("mark")
        names = {name for process in asked for name in process.names if name in self.view}
        told: dict[str, Line] = {}

        def answered() -> bool:
            told.update((name_of(line), line) for line in self.lines if line["event"] == "Marked" and line["at"] >= marked_at)
            return names <= told.keys()

        self.until(answered, "all say how late they were")
        return told

    def lateness(self) -> dict[str, float]:
        """Seconds, of each member, since it was last asked."""
        return {name: line["worst"] for name, line in self.mark().items()}

    def story(self) -> str:
        """For a failure: where each member is."""
        views = {name: (view["status"], view["size"], view["digest"][:4]) for name, view in sorted(self.view.items())}
        ended = {process.names[0]: process.child.returncode for process in self.processes if process.child.poll() is not None}
        return f"views {views}, ended {ended}"

    def end(self) -> None:
        for process in self.processes:
            process.end()


@contextmanager
def fleet(settings: Settings) -> Iterator[Fleet]:
    """A fleet that ends with the block."""
    it = Fleet(settings)
    try:
        yield it
    finally:
        it.end()


def name_of(line: Line) -> str:
    return str(line["node"]).partition("#")[0]


def free_addresses(count: int) -> list[str]:
    """Loopback addresses without a listener now."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [f"{LOOPBACK}:{each.getsockname()[1]}" for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _popen(command: list[str]) -> subprocess.Popen[Any]:
    return subprocess.Popen([*command, "--orders"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
