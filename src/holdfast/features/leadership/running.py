"""Leadership in an agent with seats: the machine, clients that ask to lead, the table of leaders."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

from holdfast.agent.feature import Parts, Running
from holdfast.agent.grants.ways import Taken
from holdfast.agent.observe.findings import WORRY, error, warning
from holdfast.errors import shown
from holdfast.events import Event, LeaderChanged, LeaderSuspected
from holdfast.features.leadership.kind import LeadKind
from holdfast.features.leadership.leaders import Board
from holdfast.features.leadership.protocol.leadership import Leadership
from holdfast.kit.promise import KEYS_MAX
from holdfast.local.leaders import SEATS

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart, Web
    from holdfast.kit.promise import Promises
    from holdfast.kit.seats import Seats
    from holdfast.local.calls import Finding, GroupView


class LeadershipAgent(Running):
    """One ``Leadership``."""

    on_seats = True
    by = SEATS
    hears = (LeaderChanged,)
    warning = (LeaderSuspected,)

    def __init__(self, parts: Parts, seats: Seats) -> None:
        host = parts.host
        self.config, self.me, self._wall, self._life = parts.config, host.me, host.wall, parts.life
        self.leadership = Leadership(host, parts.membership, seats, parts.exchange, parts.config.leadership_config())
        ways = parts.grants.ways
        self.kind = self.grant_kind = LeadKind.of(self.leadership, lambda: host.now, parts.config, lambda name: ways.enter(name, self))
        ways.add(self)
        self.leaders = self.view_lines = Board()
        self.machines = (self.leadership,)

    def on_event(self, event: Event) -> None:
        assert isinstance(event, LeaderChanged)
        self.leaders.note(event, self._wall())

    # A way to lead a name.

    def taken(self, name: str) -> Taken | None:
        led, waits = self.leadership.leader(name), self.leadership.candidates(name)
        if led is not None:
            return Taken(led.leader, "leads")
        return Taken(waits[0], "waits") if waits else None

    def highest(self, name: str) -> int:
        return self.leadership.highest(name)

    def view(self) -> GroupView:
        return self._life.view()

    @property
    def running_until(self) -> float:
        promises = self._promises
        return -inf if promises is None else promises.running_until

    def counts(self) -> dict[str, float]:
        counted = self.leadership.counts + self.leadership.office.counts + self.leadership.watches.links.counts
        return {f"lead_{name}": float(count) for name, count in sorted(counted.items())}

    def findings(self) -> Iterator[Finding]:
        return full_of_names(self.me.name, 0 if self._promises is None else len(self._promises))

    def unusable(self) -> Iterator[str]:
        promises = self._promises
        return iter(()) if promises is None else (f"the leadership {shown(key.removeprefix('lead:'))}" for key in promises.unusable)

    def http(self, web: Web) -> HttpPart:
        from holdfast.features.leadership.http import LeadershipHttp

        return LeadershipHttp(web, self)

    @property
    def _promises(self) -> Promises | None:
        """None: this agent is no seat."""
        return self.leadership.seat.promises


def full_of_names(about: str, names: int) -> Iterator[Finding]:
    """F16: a seat forgets no number, so a name per job fills it, and then a further name is never led."""
    if names >= WORRY * KEYS_MAX:
        say = error if names >= KEYS_MAX else warning
        yield say(
            "names_full", about, f"This seat remembers {names} names that were led once, of {KEYS_MAX} at most.",
            "Lead few names again and again instead of a new one per job; a name beyond them is never led.",
        )  # fmt: skip
