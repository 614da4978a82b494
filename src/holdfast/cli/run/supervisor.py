"""Runs one command under one hold, and ends it before the hold expires.  Spec: foundation F9, F14; docs/run.md.

    granted            SIGTERM            SIGKILL   deadline
       |-------------------|------ grace -----|- margin -|
       |-------------------|------ grace, of a term -----|

A term is asked for with the grace on top of its length, so there the margin is a part of the grace; elsewhere it comes on top. The
deadline moves with every extension, and the two instants before it move with it. When the hold is not extended any more, or the agent
says stop, the command gets SIGTERM, and SIGKILL at the latest a margin before the deadline: from this process and from the guardian,
and half a margin later from the agent, for what is left then. All times are read from one clock, the one
that counts suspended time, and compared, never waited for: after a pause whatever is due is done at once.

A hold that ends before the command began is given back and asked for again: nothing was lost but time.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from holdfast.cli.exits import HOLD_LOST, NOT_EXECUTABLE, NOT_FOUND
from holdfast.cli.run.guardian import FORWARDED, KILL_INTERVAL, UNLIMITED, Command
from holdfast.cli.run.holds import Hold
from holdfast.errors import AcquireTimeout, ConfigError, HoldLost
from holdfast.host import SLEEP_MAX
from holdfast.net import clock

MARGIN_SHARE = 0.05  # of the hold's length: what timers and signals of a busy machine take grows with what people dare to set
MARGIN_MIN = 0.05  # seconds; a poll wakes within a few milliseconds, and SIGKILL acts when its receiver is scheduled next
AGENT_SHARE = 0.5  # of the margin: when the agent ends what neither this process nor the guardian has ended
AGENT_BEFORE_MAX = 10.0  # seconds; a longer margin leaves that much more to those two
GRACE_SHARE = 0.25  # of the hold's length, unless given: a hold is extended at least every quarter of it
GRACE_SHARE_MAX = 0.5  # more would stop commands whose hold is extended in time
GRACE_OF_MEMBERS = 5.0  # seconds, where there is no deadline
SIGNALLED = 128  # plus the number: how a shell says that a signal ended it
ENOENT_CODES = {2: NOT_FOUND}
ENDS = (signal.SIGINT, signal.SIGTERM)  # a user who sends one of these wants no restart; SIGHUP is the command's own affair: a reload


def say(text: str) -> None:
    """To the people who read stderr."""
    with suppress(OSError, ValueError):  # The reader is gone; that is no reason to stop.
        print(f"holdfast: run: {text}", file=sys.stderr, flush=True)


class Interrupted(Exception):  # no error: a signal asks for the end
    """A signal came while nothing was running yet."""

    def __init__(self, number: int) -> None:
        self.number = number


class Supervisor:
    """One hold and one command. ``run`` returns the exit code."""

    def __init__(
        self,
        hold: Hold,
        words: tuple[str, ...],
        *,
        grace: float | None = None,
        lengthened: bool = False,
        until: float = UNLIMITED,
        tell: Callable[[str], None] = say,
    ) -> None:
        """``lengthened``: the hold is longer by the grace than it has to be. ``until``: when it is not waited for any more. ``tell``: what
        it waits for, and why for longer than it should."""
        self._hold, self._words = hold, words
        self._grace_asked, self._lengthened = grace, lengthened
        self._until, self._tell = until, tell
        self._grace, self._margin = 0.0, 0.0
        self._notice = 0.0  # seconds before the deadline at which SIGTERM is due
        self._signals = Signals()
        self._command: Command | None = None
        self._told = False  # SIGTERM was sent because the hold ends
        self._lost = False  # the hold ended before the command did
        self._kill_at = UNLIMITED
        self.interrupted = False  # a signal asked for the end

    def run(self) -> int:
        with self._signals.caught():
            code: int | None = None
            while code is None:
                try:
                    self._acquire()
                except Interrupted as ended:
                    self._hold.stopped()
                    return SIGNALLED + ended.number
                try:
                    code = self._run()
                finally:
                    self._end()
            return code

    def _acquire(self) -> None:
        self._hold.read()
        while not self._may_start():
            if clock.now() >= self._until:
                self._hold.stopped()
                place = self._hold.position
                raise AcquireTimeout(f"it waited at position {place}" if place else self._hold.delay, place)
            if self._hold.over:
                self._ask_again()
            self._wait(min(self._until, self._hold.deadline) if self._hold.held else self._until)
            for number in self._signals.taken():
                self.interrupted = True
                raise Interrupted(number)
            self._hold.read()

    def _ask_again(self) -> None:
        """The command has not begun, so nothing has to be stopped: this process waits on, as before."""
        why = self._hold.why
        self._hold.again()
        self._tell(f"its hold ended before {self._words[0]} began, and is asked for again: {why}")

    def _may_start(self) -> bool:
        """Held, and for long enough. To whom reads late that it holds something, the extension comes next."""
        if not self._hold.held:
            return False
        self._measure()
        return clock.now() < self._term_at

    def _measure(self) -> None:
        """Grace and margin follow from how long the hold is."""
        length = self._hold.length
        if length == UNLIMITED:
            self._grace = GRACE_OF_MEMBERS if self._grace_asked is None else self._grace_asked
            return
        self._margin = max(MARGIN_MIN, length * MARGIN_SHARE)
        if self._lengthened:
            self._grace = self._grace_asked or 0.0
            self._notice = max(self._grace, self._margin)
            return
        self._grace = length * GRACE_SHARE if self._grace_asked is None else self._grace_asked
        if self._grace > (most := max(0.0, length * GRACE_SHARE_MAX - self._margin)) and self._grace_asked is not None:
            self._hold.stopped()
            raise ConfigError(f"--grace {self._grace:g}: the hold lasts {length:.2f} s at a time; accepted are 0 to {most:.2f} s")
        self._notice = self._grace + self._margin

    def _run(self) -> int | None:
        """The exit code; None if the hold ended before the command began."""
        command = self._command = Command(self._words, {**os.environ, **self._hold.environ}, self._hold.deadline)
        try:
            for pid in (command.guardian, command.pid):
                if not command.over:
                    self._hold.register(pid, before=min(AGENT_BEFORE_MAX, AGENT_SHARE * self._margin), mark=command.mark)
        except HoldLost as error:
            self._hold.ended = self._hold.ended or str(error)
        self._move()
        if self._hold.ended or command.over or clock.now() >= self._term_at:
            self._hold.ended = self._hold.ended or "the command could not be made ready in time"
            return None
        with _terminal(command.pid):
            command.go()
            self._supervise(command)
        self._hold.read()
        return self._code(command)

    def _supervise(self, command: Command) -> None:
        leaving_at = UNLIMITED  # when whatever the command left behind is killed
        pause = 0.0  # between two rounds of SIGKILL
        while not command.over:
            self._wait(max(min(self._kill_at, self._term_at, leaving_at), clock.now() + pause), command)
            for number in self._signals.taken():
                self.interrupted = self.interrupted or number in ENDS
                command.signal(number)
            self._hold.read()
            self._move()
            self._check(command)
            if command.status is not None and leaving_at == UNLIMITED:
                command.signal(signal.SIGTERM)
                leaving_at = clock.now() + self._grace
            if clock.now() >= leaving_at:
                command.kill()
            command.check()
            pause = KILL_INTERVAL if clock.now() >= min(self._kill_at, leaving_at) else 0.0

    def _move(self) -> None:
        """The deadline may have moved; so do the instants before it."""
        if self._hold.deadline < UNLIMITED:
            self._kill_at = self._hold.deadline - self._margin
            assert self._command is not None
            self._command.allow(self._kill_at)

    @property
    def _term_at(self) -> float:
        return UNLIMITED if self._told else self._hold.deadline - self._notice

    def _check(self, command: Command) -> None:
        """What is due by the clock, or by the agent's word (F9: compared, never flagged)."""
        now = clock.now()
        if not self._told and (self._hold.ended or now >= self._term_at):
            self._told = True
            self._lost = self._lost or _was_cut_short(command)
            command.signal(signal.SIGTERM)
            if self._hold.deadline == UNLIMITED:
                self._kill_at = now + self._grace
        if now >= self._kill_at:
            self._lost = self._lost or _was_cut_short(command)
            command.kill()

    def _wait(self, until: float, command: Command | None = None) -> None:
        poll = select.poll()
        for each in (self._signals, self._hold, command):
            if each is not None and each.fileno() >= 0:
                poll.register(each.fileno(), select.POLLIN)
        left = max(0.0, min(until - clock.now(), SLEEP_MAX))  # poll does not count suspended time
        ready = {number for number, _ in poll.poll(left * 1000)}
        if command is not None and command.fileno() in ready:
            command.read()

    def _code(self, command: Command) -> int:
        word = self._words[0]
        if command.errno:
            say(f"{word}: {os.strerror(command.errno)}")
            return ENOENT_CODES.get(command.errno, NOT_EXECUTABLE)
        unguarded = command.unguarded and not self._lost and _was_cut_short(command)
        if self._lost or unguarded or command.status is None:
            how = "killed" if _was_cut_short(command) else "stopped"
            say(f"{word} was {how}, because " + ("its guardian was killed" if unguarded else f"its hold ended: {self._hold.why}"))
            return HOLD_LOST
        ended = os.waitstatus_to_exitcode(command.status)
        if ended >= 0:
            return ended
        if -ended not in FORWARDED:  # The user who sent one of those, here or at the terminal, knows.
            say(f"{word} was ended by {_name(-ended)}, which did not come from Holdfast: its hold was good")
        return SIGNALLED - ended

    def _end(self) -> None:
        """Whatever happened: first nothing runs any more, then it is said."""
        command = self._command
        if command is not None:
            command.kill()
            while not command.over:
                self._wait(clock.now() + KILL_INTERVAL, command)
                command.kill()
        self._command = None
        self._hold.stopped()


def _was_cut_short(command: Command) -> bool:
    """It did not end by itself: it runs, or the guardian was quicker than we."""
    status = command.status
    return status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)


def _name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


class Signals:
    """Signals as something to poll. One that was ignored when we started (nohup) stays ignored."""

    def __init__(self) -> None:
        self._woken, self._wake = -1, -1

    def fileno(self) -> int:
        return self._woken

    def taken(self) -> list[int]:
        """Those that came since the last time, to be passed on."""
        with suppress(BlockingIOError):
            return [number for number in os.read(self._woken, 4096) if number in FORWARDED]
        return []

    @contextmanager
    def caught(self) -> Iterator[None]:
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        caught = [number for number in FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
        former = {number: signal.signal(number, lambda number, frame: None) for number in caught}
        former_wake = signal.set_wakeup_fd(self._wake)
        try:
            yield
        finally:
            signal.set_wakeup_fd(former_wake)
            for number, handler in former.items():
                signal.signal(number, handler)
            os.close(self._woken)
            os.close(self._wake)


@contextmanager
def _terminal(group: int) -> Iterator[None]:
    """A command with a group of its own may read the terminal only if it is given to that group; it comes back afterwards."""
    try:
        before = os.tcgetpgrp(0)
    except OSError:
        before = 0
    if before != os.getpgrp():
        yield
        return
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.tcsetpgrp(0, group)
        yield
    finally:
        with suppress(OSError):
            os.tcsetpgrp(0, before)
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
