"""What must hold of messages that the overlay carries.  Spec: views 1 (G5, G7), 7 (CB8, CB9)."""

from __future__ import annotations

from math import inf

from holdfast.events import Changing, Event, Paused, ViewChanged, ViewLost, ViewTripped
from holdfast.features.views.lab.users import Answered, Heard, Said, ViewUser
from holdfast.features.views.protocol.config import TRIP_PAUSE, TRIP_PAUSE_MAX, ViewsConfig
from holdfast.features.views.protocol.facts import HopFailed, Received
from holdfast.host import Carried, NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

GRACE = 12  # heartbeats: the 3 s of G5 at ``lan`` numbers
DRIFT = 0.01  # of the clocks that G6 allows
REFUSED = frozenset({Carried.NOT_IN_VIEW, Carried.BUSY, Carried.TOO_LARGE})  # nothing was sent, and the sender knows


class Sent:
    """One message that was given to ``carry``."""

    __slots__ = ("answered", "at", "due", "excused", "hop_failed", "host", "number", "to", "told")

    def __init__(self, host: LabHost, to: NodeId, number: int, at: float, due: float) -> None:
        self.host, self.to, self.number = host, to, number
        self.at = at  # true time
        self.due = due  # until then G5 must hold; later if the sender was stopped
        self.told = False  # G5: delivered, or the sender was told that something is wrong
        self.answered = False
        self.hop_failed = False  # one of the sender, or one to the receiver: that changes the view
        self.excused = False  # H233, H237: it failed in the pause after a trip, and no such hop did


class Trip(Checker):
    """CB8, G5: a message is delivered, or its sender gets a newer view, ``Changing`` or ``ViewLost`` in time; and it is answered once.

    In the pause after a trip the answer is enough, unless a hop failed (H237). How long the pause is, is counted here from the trips.
    """

    name = "CB8 trip"

    def __init__(self, config: ViewsConfig) -> None:
        self._config = config
        self._open: dict[NodeId, dict[int, Sent]] = {}  # by sender and number, until they are due
        self._next = inf  # no message is due before
        self._trips: dict[NodeId, tuple[float, float]] = {}  # the last one on the clock of the client, and the pause after it
        self.counts = {"said": 0, **{outcome.name.lower(): 0 for outcome in Carried}}

    @property
    def patience(self) -> float:
        """True seconds on the slowest clock."""
        return (self._config.ov_deadline + self._config.lease + GRACE * self._config.heartbeat) * (1 + DRIFT)

    def after(self, world: World, host: LabHost | None) -> None:
        if world.now >= self._next:
            self._look(world)

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Said):
            self.counts["said"] += 1
            sent = Sent(host, event.to, event.number, world.now, world.now + self.patience)
            self._open.setdefault(host.me, {})[event.number] = sent
            self._next = min(self._next, sent.due)
        elif isinstance(event, Answered):
            self._on_answered(host, event)
        elif isinstance(event, Heard):
            self._on_heard(event)
        elif isinstance(event, HopFailed):
            self._on_hop_failed(host, event)
        elif isinstance(event, ViewTripped):
            at, pause = self._trips.get(host.me, (-inf, TRIP_PAUSE))
            self._trips[host.me] = host.now, min(2 * pause, TRIP_PAUSE_MAX) if host.now < at + 2 * pause else TRIP_PAUSE
        elif isinstance(event, (ViewChanged, Changing, ViewLost, Paused)):
            for sent in self._open.get(host.me, {}).values():
                if isinstance(event, Paused):
                    sent.due = world.now + self.patience
                else:
                    sent.told = True

    def _on_heard(self, event: Heard) -> None:
        sent = self._open.get(event.sender, {}).get(event.number)
        if sent is not None:
            sent.told = True

    def _on_hop_failed(self, host: LabHost, event: HopFailed) -> None:
        for sender, open_now in self._open.items():
            for sent in open_now.values():
                sent.hop_failed |= not sent.answered and (sender == host.me or sent.to == event.to)

    def _on_answered(self, host: LabHost, event: Answered) -> None:
        sent = self._open.get(host.me, {}).get(event.number)
        if sent is None or sent.answered:
            self.fail(f"{host.me} is told that message {event.number} is {event.outcome.name}, and was told before or is told too late")
        else:
            self.counts[event.outcome.name.lower()] += 1
            sent.answered = True
            at, pause = self._trips.get(host.me, (-inf, 0.0))
            sent.excused = event.outcome is Carried.TRIPPED and host.now < at + pause and not sent.hop_failed
            sent.told |= event.outcome in REFUSED or not host.node.use(ViewUser).here  # A user that leaves the view gives it up itself.

    def _look(self, world: World) -> None:
        for sender, open_now in list(self._open.items()):
            for number, sent in list(open_now.items()):
                if sent.due > world.now:
                    continue
                if sent.host.running:
                    self._judge(sent)
                elif not sent.host.dead:
                    sent.due = world.now + self.patience
                    continue
                del open_now[number]
            if not open_now:
                del self._open[sender]
        self._next = min((sent.due for open_now in self._open.values() for sent in open_now.values()), default=inf)

    def _judge(self, sent: Sent) -> None:
        what = f"message {sent.number} of {sent.host.me} to {sent.to}, said at {sent.at:.3f} s,"
        if not (sent.told or sent.excused):
            self.fail(f"{what} is not delivered, and its sender was told of no change")
        if not sent.answered:
            self.fail(f"{what} was never answered")


class Once(Checker):
    """CB9, G7: no message is delivered twice to one life, and what is said to be delivered was delivered."""

    name = "CB9 once"

    def __init__(self) -> None:
        self._received: set[tuple[NodeId, NodeId, int]] = set()
        self._heard: set[tuple[NodeId, NodeId, int]] = set()

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Received):
            self._add(self._received, (host.me, event.sender, event.mid))
        elif isinstance(event, Heard):
            self._add(self._heard, (host.me, event.sender, event.number))
        elif isinstance(event, Answered) and event.outcome is Carried.DELIVERED and (event.to, host.me, event.number) not in self._heard:
            self.fail(f"{host.me} was told that message {event.number} is delivered to {event.to}, and it is not")

    def _add(self, known: set[tuple[NodeId, NodeId, int]], one: tuple[NodeId, NodeId, int]) -> None:
        if one in known:
            self.fail(f"{one[0]} was handed message {one[2]} of {one[1]} twice")
        known.add(one)
