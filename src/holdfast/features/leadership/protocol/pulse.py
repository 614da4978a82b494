"""The watched's side: one heartbeat for all names that this agent leads or asks for.

Spec: fast-detection 5 (tick, heartbeat, renew), D13, D17b.

A heartbeat is also what asks the seats for promises. It leaves at every tick, when something began or ended, when a promise that was in
the way ends, and again to those seats that have not granted it. Between two ticks what is led is renewed once more, with the seats alone
(docs/decisions.md H132).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf

from holdfast.features.leadership.detector.messages import Granted, Lead, MonitorOk
from holdfast.features.leadership.detector.watched import STAMPS_MAX, Watched
from holdfast.features.leadership.protocol.config import LeadershipConfig
from holdfast.features.leadership.protocol.roads import Roads
from holdfast.features.leadership.protocol.seat import ALL, LeadSeat
from holdfast.host import Address, Host, NodeId, Timer
from holdfast.kit.seats import Seats

LEAD_BYTES = (
    24  # of one entry without its name: array 1, name 2 and its bytes, view 1, round 9, leading 1, length 9; granted as a whole page
)

Asked = tuple[tuple[tuple[str, int], ...], ...]  # per page: names, and under which number they were asked for


class Pulse:
    """The heartbeats of one agent. Its owner knows the names."""

    def __init__(
        self,
        host: Host,
        config: LeadershipConfig,
        roads: Roads,
        seats: Seats,
        seat: LeadSeat,
        leads: Callable[[], Sequence[Lead]],
        granted: Callable[[int, Granted, float], None],
        short: Callable[[float], Sequence[str]],
        missed: Callable[[float], None],
    ) -> None:
        """``leads``: all that is led or asked for now. ``granted``: a slot's answer, with the time of the asking. ``short``: names
        that no quorum granted since then. ``missed``: a heartbeat and all its repeats are over; it left then."""
        self.watched = Watched(host, config, entry_bytes=LEAD_BYTES)
        self._host, self._config, self._roads, self._seats, self._seat = host, config, roads, seats, seat
        self._leads, self._granted, self._short, self._missed = leads, granted, short, missed
        self._asked: dict[int, Asked] = {}  # by stamp
        self._tick: Timer | None = None
        self._renew: Timer | None = None
        self._between: Timer | None = None
        self._soon: Timer | None = None
        self._soon_names: dict[str, bool] = {}  # names that are asked for in a moment -> all monitors shall hear
        self._tries = 0
        self._asked_at = -inf  # when the latest heartbeat left that is no repeat

    def soon(self, name: str, *, wide: bool) -> None:
        """A heartbeat for this name, in a turn of its own: thirty names that begin together share it. ``wide``: to all monitors."""
        self._soon_names[name] = wide or self._soon_names.get(name, False)
        if self._soon is None:
            self._soon = self._host.after(0.0, self._on_soon)

    def on_monitor_ok(self, source: NodeId, message: MonitorOk) -> None:
        self.watched.on_monitor_ok(source, message)
        sent_at, asked, slot = self.watched.sent_at(message.stamp), self._asked.get(message.stamp), self._seats.slot_of(source)
        if sent_at is None or asked is None or slot is None or slot == self._seats.own:
            return
        for answer in message.answers:
            for one in _spelled(answer, asked):
                self._granted(slot, one, sent_at)

    def stop(self) -> None:
        for timer in (self._tick, self._between, self._renew, self._soon):
            if timer is not None:
                timer.cancel()
        self._tick = self._between = self._renew = self._soon = None

    def _on_soon(self) -> None:
        self._soon = None
        names, self._soon_names = self._soon_names, {}
        leads = [lead for lead in self._leads() if lead.name in names]
        if not leads:
            return
        if self._tick is None:
            self.watched.begin(tuple(self._roads.monitors()))
            self._asked.clear()
            self._arm_tick()
        wide = any(names[lead.name] for lead in leads)
        self._beat(leads, self._roads.monitors().values() if wide else self._roads.seats().values())
        self._tries = 0
        self._arm_renew()

    def _on_tick(self) -> None:
        self._tick = None
        leads = self._leads()
        if not leads:
            return  # The last name was given up: the next one begins anew.
        self._arm_tick()
        monitors = self._roads.monitors()
        self.watched.follow(tuple(monitors))
        self._ask(leads, monitors.values())

    def _on_between(self) -> None:
        """H132: a term of one heartbeat and a half, renewed at every half, forgives a whole one in which this machine stands still."""
        self._between = None
        leads = [lead for lead in self._leads() if lead.leading]
        if leads:
            self._ask(leads, self._roads.seats().values())

    def _ask(self, leads: Sequence[Lead], to: Iterable[NodeId | Address]) -> None:
        self._asked_at, self._tries = self._host.now, 0
        self._beat(leads, to)
        self._arm_renew()

    def _on_renew(self) -> None:
        """A repeat to the seats, for what the latest heartbeats did not get."""
        self._renew = None
        if self._tries >= self._config.renew_tries:
            self._missed(self._asked_at)
            return
        short = dict.fromkeys(self._short(self._asked_at))
        leads = [lead for lead in self._leads() if lead.name in short]
        if leads:
            self._tries += 1
            self._beat(leads, self._roads.seats().values())
            self._arm_renew()

    def _beat(self, leads: Sequence[Lead], to: Iterable[NodeId | Address]) -> None:
        """The send time is noted first (F8): whatever is granted counts from before it left."""
        pages = self.watched.heartbeat(leads)
        stamp, sent_at = self.watched.stamp, self._host.now
        self._asked[stamp] = tuple(tuple((lead.name, lead.round) for lead in page.leads) for page in pages)
        if len(self._asked) > STAMPS_MAX:
            del self._asked[next(iter(self._asked))]
        for target in to:
            for page in pages:
                self._host.send(target, page)
        own = self._seats.own
        if own is not None:
            for lead in leads:
                self._seat.ask(self._host.me, lead, lambda answer: self._granted(own, answer, sent_at))

    def _arm_tick(self) -> None:
        next_at = self.watched.next_at
        self._tick = self._host.at(next_at, self._on_tick)
        if self._between is not None:
            self._between.cancel()
        between_at = next_at - self._config.t_itv / 2
        self._between = self._host.at(between_at, self._on_between) if between_at > self._host.now else None

    def _arm_renew(self) -> None:
        if self._renew is not None:
            self._renew.cancel()
        self._renew = self._host.after(self._config.nag, self._on_renew)


def _spelled(answer: Granted, asked: Asked) -> Iterable[Granted]:
    """What one entry says: of one name, or of all names of a page."""
    if answer.name != ALL:
        return (answer,)
    if not answer.grant or not 0 <= answer.round < len(asked):
        return ()
    return tuple(Granted(name, 0, number, grant=True, era=answer.era) for name, number in asked[answer.round])
