"""A client that waits for something exclusive is told when it is the seats that it waits for.  Spec: F13; H155.

A client that waits behind another holder waits in silence, as it should. While the seats grant nothing at all, because they have just
started or too few of them answer, each waiting client is told so once, the log and watching programs as well.
"""

from __future__ import annotations

from math import inf

from holdfast.agent.grants.granted import Turns
from holdfast.agent.grants.grants import Grants
from holdfast.events import GrantsDelayed
from holdfast.host import Timer
from holdfast.kit.delay import Delay
from holdfast.kit.seats import Seats

FIRST_LOOK = 0.3  # seconds after a client asked: what is free is granted by then
LOOK_PERIOD = 1.0  # seconds between two looks while a client waits that was told nothing
SURE_AFTER = 3.0  # seconds that too few seats were heard before it is said: a seat may be starting, a datagram lost
GREETINGS = 4  # of the seats, one per look, after a client asked
QUIET = 60.0  # seconds between two events of one reason


class Delays:
    """Looks at the seats while a client waits. Runs in the host's turns."""

    def __init__(self, host: Turns, seats: Seats, grants: Grants) -> None:
        self._host, self._seats, self._grants = host, seats, grants
        self._timer: Timer | None = None
        self._since: float | None = None  # since when too few were heard
        self._greetings = 0  # that are left
        self._said, self._quiet_until = "", -inf  # the last event, and until when it need not be said again
        grants.on_asked = self._on_asked

    def _on_asked(self) -> None:
        self._greetings = GREETINGS
        if self._timer is None and self._grants.undelayed:
            self._timer = self._host.at(self._host.now + FIRST_LOOK, self._on_look)

    def _on_look(self) -> None:
        self._timer = None
        waiting = self._grants.undelayed
        if not waiting:
            self._since = None
            return
        now, delay = self._host.now, self._seats.delay()
        if delay is None:
            self._since, self._said = None, ""
        elif delay.seconds is not None:
            self._tell(delay, now + delay.seconds)
        else:
            self._since = now if self._since is None else self._since
            if now >= self._since + SURE_AFTER:
                self._tell(delay, None)
        if self._greetings > 0:  # What was last heard may be old, or nothing was heard yet.
            self._greetings -= 1
            self._seats.greet()
        self._timer = self._host.at(now + LOOK_PERIOD, self._on_look)

    def _tell(self, delay: Delay, until: float | None) -> None:
        if delay.why != self._said or self._host.now >= self._quiet_until:
            self._said, self._quiet_until = delay.why, self._host.now + QUIET if until is None else until
            self._host.emit(GrantsDelayed(*delay))
        for grant in self._grants.undelayed:
            self._grants.tell_delay(grant, delay.why, until)
