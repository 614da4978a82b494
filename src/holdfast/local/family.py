"""All processes of one command: how they are found, and how they are ended.  Spec: foundation F14; docs/run.md says what can escape.

To a family belong its roots, all that descends from them, from their guardian or from a process *above* it (which is not ended itself),
and, when no process above lives any more, every process that was started with the mark of the command in its environment: orphans of dead
parents are found by it.

Whatever is found is stopped first: a process that has stopped starts no other one, so its list of children is complete. When nothing
new is found, all of them are killed, and the guardian when nothing else is left: until then orphans go to it, where they are found. A
guardian is never stopped: the process at work here may die in the middle of it, and the guardian then does the rest.
Every signal goes through a pidfd that was opened before the process was looked at, so a pid that was given away hits no other process.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from holdfast.local.process import EVER, TICK, Process, is_mark, read_proc, stat_of

MARK_NAME = "HOLDFAST_RUN"  # of the variable; a command inside a command bears the marks of both, with a colon between
MARKS_MAX = 16  # of commands inside commands; the outermost are forgotten first
HELD_MAX = 256  # processes that are stopped together, a descriptor each; more are ended batch by batch
REST_TIMEOUT = 0.02  # seconds for the last one to stop; a process in the middle of a system call takes its time, and is killed then
REST_INTERVAL = 0.0005  # seconds between two looks
ENVIRON_BYTES_MAX = 1 << 21  # what Linux lets an environment be, with the usual stack
AT_REST = b"TtZX"  # stopped, traced, dead


class Above(Protocol):
    """A process, by something that does not pass to another one with its pid."""

    @property
    def pid(self) -> int: ...
    @property
    def dead(self) -> bool: ...


class Own:
    """A process that cannot lose its pid meanwhile: this one, or a child that it has not waited for."""

    dead = False

    def __init__(self, pid: int) -> None:
        self.pid = pid


class Family:
    """All processes of one command. ``round`` is called until it finds nothing."""

    def __init__(self, above: Sequence[Above], *, mark: str = "", since: float = 0.0, user: int | None = None) -> None:
        """``since``: nothing older belongs to it. ``user``: only what that user could end; None: what this process can."""
        assert not mark or is_mark(mark)
        self.above = list(above)
        self.guardian: Process | None = None
        self.roots: list[Process] = []
        self.until = EVER  # a child of a process above that is younger, and bears no mark, is none of it
        self.beyond: list[Process] = []  # belong to it, and to another user
        self.ended: set[int] = set()  # pids that were sent SIGKILL
        self._mark, self._since, self._user = mark, since, user

    def round(self) -> bool:
        """Stop what is there, and kill it. False: nothing is left."""
        held: dict[int, Process] = {}
        try:
            self._gather(held)
            if not held and self._mark and all(each.dead for each in self.above):
                self._hold(held, (self._taken(pid, 0) for pid in _bearers(self._mark)))
                self._gather(held)
            found = [*held.values(), *(each for each in self.roots if not each.dead)]
            for each in found or self._guardians():
                self._kill(each)
            return bool(found or self._guardians() or self._living_beyond())
        finally:
            for pid, each in held.items():
                if pid not in {beyond.pid for beyond in self.beyond}:
                    each.close()

    def close(self) -> None:
        for each in (*self.roots, *self.beyond, *([self.guardian] if self.guardian else [])):
            each.close()

    def _guardians(self) -> list[Process]:
        """One that lives, or none."""
        return [] if self.guardian is None or self.guardian.dead else [self.guardian]

    def _kill(self, process: Process) -> None:
        if process.send(signal.SIGKILL):
            self.ended.add(process.pid)
        elif process not in self.beyond:
            self.beyond.append(process)

    def _living_beyond(self) -> list[Process]:
        for each in [each for each in self.beyond if each.dead]:
            self.beyond.remove(each)
            each.close()
        return self.beyond

    def _gather(self, held: dict[int, Process]) -> None:
        """Stop all descendants, until there are no more and none of them can start one."""
        end_at = time.monotonic() + REST_TIMEOUT
        while len(held) < HELD_MAX:
            for root in self.roots:
                root.send(signal.SIGSTOP)
            if not self._hold(held, self._descendants(held)):
                if all(each.dead or _rests(each.pid) for each in (*held.values(), *self.roots)) or time.monotonic() >= end_at:
                    return
                time.sleep(REST_INTERVAL)

    def _hold(self, held: dict[int, Process], found: Iterable[Process | None]) -> bool:
        """Stop them. False if there are none."""
        before = len(held)
        for each in found:
            if each is None:
                continue
            if len(held) >= HELD_MAX:
                each.close()
            elif self._may(each.pid) and each.send(signal.SIGSTOP):
                held[each.pid] = each
            else:
                self.beyond.append(each)
        return len(held) > before

    def _descendants(self, held: dict[int, Process]) -> Iterator[Process | None]:
        """Those that are not known yet."""
        list_of = _children_of if LISTS_CHILDREN else _Table().children_of
        fixed = (*self.above, *self._guardians(), *self.roots, *self.beyond)
        for parent in (*fixed, *held.values()):
            known = {os.getpid(), *held, *(each.pid for each in fixed)}
            for pid in list_of(parent.pid):
                if pid not in known:
                    process = self._taken(pid, parent.pid, parent in self.above)
                    if process is not None and parent.dead:  # So its pid, and its children, may be another's.
                        process.close()
                        process = None
                    yield process

    def _taken(self, pid: int, parent: int, from_above: bool = False) -> Process | None:
        """If it is alive and still what it was found to be: a child of that parent, or (0) a bearer of the mark."""
        if pid == os.getpid() or any(pid == each.pid for each in (*self._guardians(), *self.roots, *self.beyond)):
            return None
        try:
            process = Process(pid)
        except (OSError, AttributeError):
            return None
        seen = stat_of(pid)
        its = seen.parent == parent if parent else self._marked(pid)
        younger = from_above and seen.started_at - TICK > self.until
        if its and self._since < seen.started_at and not (younger and not self._marked(pid)) and not process.dead:
            return process
        process.close()
        return None

    def _marked(self, pid: int) -> bool:
        return bool(self._mark) and _bears(pid, self._mark)

    def _may(self, pid: int) -> bool:
        """The kernel's rule for signals, for the user in whose name it is done."""
        return self._user is None or may_end(self._user, pid)


def may_end(user: int, pid: int) -> bool:
    """Whether that user could signal it by itself."""
    return user == 0 or user in _users(pid)


def marked(environ: str, mark: str) -> str:
    """The variable of a command that is started with this one in its own environment."""
    outer = [each for each in environ.split(":") if is_mark(each)]
    return ":".join((*outer[1 - MARKS_MAX :], mark))


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names are all that is needed, and this is the quick way
    except OSError:
        return []


def children_of(pid: int) -> list[int]:
    """Dead ones too, as long as they were not waited for."""
    return _children_of(pid) if LISTS_CHILDREN else _Table().children_of(pid)


def _children_of(pid: int) -> list[int]:
    """As the kernel lists them, for each thread of the parent."""
    found: list[int] = []
    for task in _tasks(pid):
        with suppress(OSError):
            found.extend(map(int, read_proc(f"/proc/{pid}/task/{task}/children", 1 << 20).split()))
    return found


class _Table:
    """The same where the kernel lists no children: every process is asked for its parent, once."""

    def __init__(self) -> None:
        self._children: dict[int, list[int]] = {}
        for pid in _every_pid():
            self._children.setdefault(stat_of(pid).parent, []).append(pid)

    def children_of(self, pid: int) -> list[int]:
        return self._children.get(pid, [])


def _every_pid() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - as above
    except OSError:
        return []


def _bearers(mark: str) -> Iterator[int]:
    return (pid for pid in _every_pid() if _bears(pid, mark))


def _bears(pid: int, mark: str) -> bool:
    """Of another user, or of one that hides it, it is unknown."""
    name, word = f"{MARK_NAME}=".encode(), mark.encode()
    try:
        environ = read_proc(f"/proc/{pid}/environ", ENVIRON_BYTES_MAX)
    except OSError:
        return False
    return word in environ and any(each.startswith(name) and word in each for each in environ.split(b"\0"))


def _rests(pid: int) -> bool:
    """Every thread of it has stopped, or it is dead."""
    for task in _tasks(pid):
        with suppress(OSError, IndexError):
            if read_proc(f"/proc/{pid}/task/{task}/stat").rpartition(b")")[2].split()[0] not in AT_REST:
                return False
    return True


def _users(pid: int) -> set[int]:
    """The real and the saved one."""
    with suppress(OSError, ValueError, IndexError):
        for line in read_proc(f"/proc/{pid}/status").splitlines():
            if line.startswith(b"Uid:"):
                words = line.split()
                return {int(words[1]), int(words[3])}
    return set()


LISTS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()  # CONFIG_PROC_CHILDREN
