"""The attempts of one ``holdfast run``: until its command has ended, and with ``--restart`` whatever happens to its agent.  docs/run.md.

Each attempt has a connection of its own: what was granted on one is never revived on another (F14). An attempt ends with the command's exit
code, or because there is no agent, or none any more, or because it lost the hold. Without ``--restart`` that is the end. With it, only an
end that was asked for is one: the command's own, a signal, a time limit that was given, or input that no agent will ever accept.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from holdfast.cli.agent_call import AgentCall
from holdfast.cli.exits import HOLD_LOST, one_line
from holdfast.cli.run.guardian import FORWARDED, UNLIMITED
from holdfast.cli.run.hold_flags import Wanted
from holdfast.cli.run.holds import GrantHold, Hold, MemberHold
from holdfast.cli.run.supervisor import SIGNALLED, Interrupted, Supervisor, say
from holdfast.cli.run.wanted import parsed_hold
from holdfast.errors import AcquireTimeout, AddressUnusable, ConfigError, HoldfastError, Unavailable
from holdfast.net import clock

AGAIN_INTERVAL = 1.0  # seconds between two attempts: an agent that starts takes about as long, and asking costs it nothing
CALM = 60.0  # seconds that an attempt waited without trouble: what ends it then is news, also if it was told before
REASONS_MAX = 16  # that are told of one trouble: more of them are no more help
PROGRAM_CHARS_MAX = 100
VARYING = re.compile(r"[0-9]+(\.[0-9]+)?")  # numbers in a reason: the same reason with another reading is no other reason


class Told:
    """What was said on stderr while it waits: each reason once, until something went well."""

    def __init__(self) -> None:
        self._reasons: set[str] = set()

    def tell(self, text: str) -> None:
        reason = VARYING.sub("", text)
        if reason not in self._reasons and len(self._reasons) < REASONS_MAX:
            self._reasons.add(reason)
            say(text)

    def forget(self) -> None:
        self._reasons.clear()


class Attempts:
    """``run`` returns the exit code."""

    def __init__(self, words: tuple[str, ...], wanted: Wanted, path: str, *, timeout: float | None, restart: bool) -> None:
        self._words, self._wanted, self._path, self._restart = words, wanted, path, restart
        self._timeout = UNLIMITED if timeout is None else timeout
        self._until = UNLIMITED  # the end of this wait, over all attempts that it takes
        self._told = Told()

    def run(self) -> int:
        try:
            with _interruptible():
                return self._run()
        except Interrupted as ended:
            return SIGNALLED + ended.number

    def _run(self) -> int:
        self._wait_anew()
        while True:
            began_at = clock.now()
            try:
                code, again = self._once()
                if not again:
                    return code
                self._wait_anew()
            except (HoldfastError, OSError) as error:
                self._check(error, began_at)
            time.sleep(max(0.0, min(AGAIN_INTERVAL, self._until - clock.now())))

    def _once(self) -> tuple[int, bool]:
        """The exit code, and whether the hold is to be asked for again."""
        with self._connected() as call:
            wanted = self._wanted
            hold: Hold = GrantHold(call, *parsed_hold(wanted.hold), wanted.options) if wanted.hold else MemberHold(call)
            supervisor = Supervisor(
                hold, self._words, grace=wanted.grace, lengthened=wanted.lengthened, until=self._until, tell=self._told.tell
            )
            code = supervisor.run()
        return code, self._restart and code == HOLD_LOST and not supervisor.interrupted

    def _connected(self) -> AgentCall:
        try:
            return AgentCall(self._path, program=f"holdfast run {self._words[0]}"[:PROGRAM_CHARS_MAX])
        except AddressUnusable:
            raise
        except ConfigError as refusal:  # Another version, another clock: of the agent that is there now.
            raise Unavailable(str(refusal)) from None

    def _check(self, error: HoldfastError | OSError, began_at: float) -> None:
        """Raises what ends it; else it was said why it waits."""
        if isinstance(error, AcquireTimeout):
            self._give_up(error)
        if isinstance(error, ConfigError) or not self._restart:
            raise error
        if clock.now() - began_at >= CALM:
            self._told.forget()
        self._told.tell(f"it goes on trying: {one_line(error)}")
        if clock.now() >= self._until:
            self._give_up(error)

    def _give_up(self, error: Exception) -> NoReturn:
        place = error.position if isinstance(error, AcquireTimeout) else 0
        why = "" if not str(error) else f"; {one_line(error)}"
        raise AcquireTimeout(f"run: not held within {self._timeout:g} s{why}", place) from None

    def _wait_anew(self) -> None:
        self._told.forget()
        self._until = clock.now() + self._timeout


@contextmanager
def _interruptible() -> Iterator[None]:
    """A signal ends this, as it does while a hold is waited for: there the supervisor catches it. One that was ignored when we started
    (nohup) stays ignored."""

    def interrupt(number: int, frame: object) -> NoReturn:
        raise Interrupted(number)

    caught = [number for number in FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    former = {number: signal.signal(number, interrupt) for number in caught}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
