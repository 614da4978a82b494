"""The command of ``holdfast run``, and a guardian that outlives everything but itself.  Spec: foundation F14; docs/run.md draws it.

    holdfast run -- guardian -- command (a process group of its own) -- whatever it starts

The guardian is the command's parent and the reaper of all its descendants, so it knows when the last one is gone, also one that left
the process group. It ends them all when ``holdfast run`` dies, is told so, or does not move the deadline in time: then also
a ``holdfast run`` that was killed or stopped cannot leave a process at work. If the guardian dies, the kernel kills the command, and
``holdfast run``, to which the orphans go, the rest. A guardian that is stopped is not waited for: ``holdfast run`` finds everything
below it in /proc, ends it, and the guardian last.

Both processes have one thread, so forking is harmless, and both speak through pipes that no command inherits.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from binascii import hexlify
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from struct import Struct
from typing import NamedTuple, NoReturn

from holdfast.cli.exits import OK, OWN_ERROR, CannotServe
from holdfast.host import SLEEP_MAX
from holdfast.local.family import MARK_NAME, Family, Own, children_of, marked
from holdfast.local.process import MARK_CHARS, Process, stat_of
from holdfast.net import clock

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
KILL_INTERVAL = 0.01  # seconds between two rounds of SIGKILL: a round finds whom the last one orphaned
FOLLOW_TIMEOUT = 0.25  # seconds: a guardian that has nothing left to guard and does not end in this time is ended
REPORT_TIMEOUT = 2.0  # seconds: a guardian that does not say how the command ended is ended, and asked no more
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
OF_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by Python, not by other programs
UNLIMITED = float("inf")
GO = b"g"

_deadline = Struct("<d")
_report = Struct("<cq")  # what, and a pid, a wait status or an errno
PID, STATUS, ERRNO = b"p", b"s", b"e"


class Pipes(NamedTuple):
    """Between the three processes; each end is closed by the process that does not need it."""

    leash: tuple[int, int]  # run -> guardian: deadlines; its end means "end everything"
    go: tuple[int, int]  # run -> command: it may start
    reports: tuple[int, int]  # guardian and command -> run

    @classmethod
    def made(cls) -> Pipes:
        return cls(os.pipe(), os.pipe(), os.pipe())

    def keep(self, *ends: int) -> None:
        for end in {*self.leash, *self.go, *self.reports} - set(ends):
            os.close(end)


class Command:
    """A command that was started and waits for ``go``; all of it, seen from ``holdfast run``."""

    def __init__(self, words: tuple[str, ...], environ: Mapping[str, str], until: float = UNLIMITED) -> None:
        """It has to be there before ``until``; else it is ``over``, and has no pid."""
        libc = ctypes.CDLL(None, use_errno=True)  # loaded before the fork: a child does as little as possible
        if not hasattr(libc, "prctl"):
            raise CannotServe("run: this system cannot end a command together with its parent; Holdfast runs commands on Linux")
        adopt_orphans(libc)
        pipes = Pipes.made()
        self.mark = hexlify(os.urandom(MARK_CHARS // 2)).decode()
        environ = {**environ, MARK_NAME: marked(environ.get(MARK_NAME, ""), self.mark)}
        self._born_at = clock.now()  # Children that are older are not the command's.
        self.guardian = os.fork()
        if self.guardian == 0:
            _in_child(lambda: Guardian(libc, pipes, words, environ).run())
        self._leash, self._go, self._reports = pipes.leash[1], pipes.go[1], pipes.reports[0]
        pipes.keep(self._leash, self._go, self._reports)
        os.set_blocking(self._leash, False)
        self._family = Family([Own(os.getpid()), Own(self.guardian)], since=self._born_at)
        self._allowed = UNLIMITED
        self._killed_at, self._ended_at = UNLIMITED, UNLIMITED
        self._own: Process | None = None
        self._told_beyond = False
        self.status: int | None = None  # of the command's own process, as waitpid says it
        self.errno = 0  # why it could not be executed
        self.over = False  # nothing of it is left
        self.unguarded = False  # because the guardian was killed
        self.pid = 0
        self._await_pid(until)

    def fileno(self) -> int:
        """Readable when there is a report."""
        return self._reports

    def go(self) -> None:
        """Each process that has to know its pid knows it."""
        with suppress(BrokenPipeError):
            os.write(self._go, GO)
        os.close(self._go)
        self._go = -1

    def allow(self, until: float) -> None:
        """The guardian ends it at that instant unless told otherwise before. One that is stopped does not hear it, and must not stop us."""
        if until != self._allowed:
            self._allowed = until
            with suppress(OSError):
                os.write(self._leash, _deadline.pack(until))

    def signal(self, number: int) -> None:
        """To its process group."""
        if not self.over and self.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def kill(self) -> None:
        """End all of it now, whether the guardian follows or not. To be called until it is over, every KILL_INTERVAL."""
        self.signal(signal.SIGKILL)
        for name in ("_leash", "_go"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)
        if self.over:
            return
        now = clock.now()
        self._killed_at = min(self._killed_at, now)
        if not self._round() and now >= self._killed_at + FOLLOW_TIMEOUT:
            os.kill(self.guardian, signal.SIGKILL)  # It has nothing left to do, and its end tells us that all is over.

    def check(self) -> None:
        """A command that ended while its guardian says nothing: the guardian is stopped, and what is left is ended without it."""
        if self.status is None and self._own is not None and self._own.dead:
            self._ended_at = min(self._ended_at, clock.now())
            if clock.now() >= self._ended_at + REPORT_TIMEOUT:
                self.kill()

    def read(self) -> None:
        """One report, if there is one; waits for the first."""
        data = os.read(self._reports, _report.size)
        if len(data) < _report.size:
            self._on_guardian_gone()
            return
        what, number = _report.unpack(data)
        if what == PID:
            self.pid = number
            with suppress(OSError, AttributeError):
                self._own = Process(number)
        elif what == STATUS:
            self.status = number
        else:
            self.errno = number

    def _await_pid(self, until: float) -> None:
        poll = select.poll()
        poll.register(self._reports, select.POLLIN)
        late = False
        while not self.pid and not self.over:
            if poll.poll(max(0.0, min(until - clock.now(), SLEEP_MAX)) * 1000):
                self.read()
            elif clock.now() >= until and not late:
                late = True
                until = UNLIMITED
                os.kill(self.guardian, signal.SIGKILL)  # It was stopped, or starved. Nothing has begun.
        if self.over and not late:
            raise CannotServe("run: no process could be started; is the limit of processes reached?")

    def _on_guardian_gone(self) -> None:
        """Usually because nothing is left to guard. A guardian that was killed left its orphans to us."""
        in_order = os.waitstatus_to_exitcode(os.waitpid(self.guardian, 0)[1]) == 0
        self._family.above = [Own(os.getpid())]  # The guardian's pid may be that of another process from here on.
        if self.pid and not in_order:
            self.unguarded = True
            self._end_orphans()
        self.over = True  # From here on its pid may be that of another process.
        self.kill()
        os.close(self._reports)
        self._family.close()
        if self._own is not None:
            self._own.close()

    def _end_orphans(self) -> None:
        while True:
            _kill_children(self.pid, self._born_at)
            left = self._round()
            self._reap()
            if not left and not _children(self._born_at):
                return
            select.select([], [], [], KILL_INTERVAL)

    def _round(self) -> bool:
        """False: nothing is left. The caller that waits for what cannot be ended is told so, once."""
        left = self._family.round()
        if self._family.beyond and not self._told_beyond:
            self._told_beyond = True
            pids = " ".join(str(each.pid) for each in self._family.beyond)
            print(f"holdfast: run: these processes of the command belong to another user and cannot be ended: {pids}", file=sys.stderr)
        return left

    def _reap(self) -> None:
        """Also the command itself, which the guardian did not live to wait for."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.pid:
                    self.status = ended[1]


def adopt_orphans(libc: ctypes.CDLL) -> None:
    """A process below this one that loses its parent becomes its child: if a guardian is killed, none is lost."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Guardian:
    """Runs in a process of its own, until nothing is left to guard."""

    def __init__(self, libc: ctypes.CDLL, pipes: Pipes, words: tuple[str, ...], environ: Mapping[str, str]) -> None:
        self._libc, self._pipes, self._words, self._environ = libc, pipes, words, environ
        self._command = 0
        self._kill_at = UNLIMITED
        self._ending = False
        self._family = Family([])

    def run(self) -> int:
        os.setpgid(0, 0)  # Ctrl-C on the terminal is for the command.
        ignored = [number for number in FORWARDED if signal.getsignal(number) is signal.SIG_IGN]
        for number in FORWARDED:
            signal.signal(number, signal.SIG_IGN)
        adopt_orphans(self._libc)
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wake)
        me, self._command = os.getpid(), os.fork()
        if self._command == 0:
            signal.set_wakeup_fd(-1)
            _in_child(lambda: self._become(me, ignored))
        self._pipes.keep(self._pipes.leash[0], self._pipes.reports[1])
        self._family.above = [Own(me)]
        self._guard(woken)
        return OK

    def _guard(self, woken: int) -> None:
        leash = self._pipes.leash[0]
        poll = select.poll()
        poll.register(leash, select.POLLIN)
        poll.register(woken, select.POLLIN)
        while self._reap():
            if self._ending or clock.now() >= self._kill_at:
                _kill_children(self._command)
                self._family.round()
                select.select([], [], [], KILL_INTERVAL)
                continue
            left = max(0.0, min(self._kill_at - clock.now(), SLEEP_MAX))  # poll does not count suspended time
            for ready, _ in poll.poll(left * 1000):
                self._hear(leash) if ready == leash else os.read(woken, 4096)

    def _hear(self, leash: int) -> None:
        data = os.read(leash, 4096 * _deadline.size)
        if data:
            self._kill_at = _deadline.unpack(data[-_deadline.size :])[0]
        else:
            self._ending = True

    def _reap(self) -> bool:
        """False when no child is left."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG | os.WUNTRACED))[0]:
                pid, status = ended
                if os.WIFSTOPPED(status):
                    # A command under a hold cannot be put aside from the keyboard: a stopped process could not take the grant up in time.
                    if os.WSTOPSIG(status) == signal.SIGTSTP:
                        os.kill(pid, signal.SIGCONT)
                elif pid == self._command:
                    self._report(STATUS, status)
            return True
        return False

    def _report(self, what: bytes, number: int) -> None:
        with suppress(BrokenPipeError):
            os.write(self._pipes.reports[1], _report.pack(what, number))

    def _become(self, guardian: int, ignored: Sequence[signal.Signals]) -> int:
        """In the child: wait until it may start, and become the command."""
        os.setpgid(0, 0)
        self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != guardian:
            return OWN_ERROR  # It died before we asked to be told.
        for number in (*FORWARDED, *OF_PYTHON, signal.SIGCHLD, signal.SIGTTOU):
            if number not in ignored:
                signal.signal(number, signal.SIG_DFL)
        self._pipes.keep(self._pipes.go[0], self._pipes.reports[1])
        self._report(PID, os.getpid())  # From here on it has a group of its own, and signals mean to it what they mean to others.
        if os.read(self._pipes.go[0], 1) != GO:
            return OWN_ERROR
        try:
            os.execvpe(self._words[0], self._words, self._environ)
        except OSError as error:
            self._report(ERRNO, error.errno or 0)
        return OWN_ERROR


def _in_child(work: Callable[[], int]) -> NoReturn:
    """Never back into the code of the parent."""
    code = OWN_ERROR
    try:
        code = work()
    finally:
        os._exit(code)


def _kill_children(group: int, since: float = 0.0) -> None:
    """Own children keep their pids until they are waited for, so this needs no pidfds."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    for pid in _children(since):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _children(since: float = 0.0) -> list[int]:
    """Own children, dead ones too, that are not older."""
    return [pid for pid in children_of(os.getpid()) if stat_of(pid).started_at > since]
