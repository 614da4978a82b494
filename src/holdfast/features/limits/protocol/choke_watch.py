"""Which direct links of a view are cut, put together at one member: is it about to fall in two?  Spec: limits 5.9, H271; paper 003, 6.3.

Advice only. Every member with a black list tells the smallest member of the view, by places in the list of members, which all of them have
alike; that member looks for a small cut now and then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from holdfast.events import ChokePoint, Event
from holdfast.features.limits.protocol import choke
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.features.limits.protocol.links import Links
from holdfast.features.limits.protocol.messages import Cuts
from holdfast.features.limits.protocol.standing import Standing
from holdfast.host import Carried, Host, NodeId, Views

REPORT_INTERVAL = choke.LOOK_INTERVAL / 3  # so that each look has word of every member, if one of two is lost


class ChokeWatch:
    """Both sides of it at one member."""

    def __init__(
        self,
        host: Host,
        views: Views,
        config: LimitsConfig,
        standing: Standing,
        links: Links,
        told: Callable[[Event], None],
        counts: Counter[str],
    ) -> None:
        self._host, self._views, self._config, self._standing, self._links = host, views, config, standing, links
        self._told, self._counts = told, counts
        self._reports: dict[NodeId, tuple[float, tuple[NodeId, ...]]] = {}
        self._reported_at = self._looked_at = host.now
        self.found: choke.Choke | None = None

    def begin(self) -> None:
        """A new instance, in which every link is good until it is silent."""
        self._reports.clear()
        self.found = None

    def on_epoch(self) -> None:
        standing, now = self._standing, self._host.now
        if not standing.counts or standing.size > choke.MEMBERS_MAX:
            return
        black = sorted(self._links.black)
        smallest = standing.members[0]
        if smallest == self._host.me:
            self._reports[smallest] = (now, tuple(black))
            if now >= self._looked_at + choke.LOOK_INTERVAL:
                self._looked_at = now
                self._look()
        elif black and now >= self._reported_at + REPORT_INTERVAL:
            self._reported_at = now
            self._report(smallest, black)

    def on_cuts(self, source: NodeId, message: Cuts) -> None:
        """The instance is the present one, the source a member of it."""
        members = self._standing.members
        if not members or members[0] != self._host.me or any(place >= len(members) for place in message.places):
            self._counts["not_collector"] += 1
            return
        self._reports[source] = (self._host.now, tuple(members[place] for place in message.places))

    def _report(self, smallest: NodeId, black: list[NodeId]) -> None:
        assert self._standing.inst is not None
        place = {member: at for at, member in enumerate(self._standing.members)}
        message = Cuts(self._standing.inst, tuple(place[peer] for peer in black if peer in place))
        if smallest in self._links.black:
            self._views.carry(smallest, message, _whatever)
        else:
            self._host.send(smallest, message)

    def _look(self) -> None:
        oldest = self._host.now - choke.LOOK_INTERVAL
        self._reports = {peer: report for peer, report in self._reports.items() if report[0] >= oldest}
        pairs = [(peer, other) for peer, (_, others) in self._reports.items() for other in others]
        limit = choke.threshold(self._config.fanout(self._standing.size))
        found = choke.find_choke(self._standing.members, pairs, limit)
        if found is not None and found != self.found:
            self._told(ChokePoint(found.cut, found.smaller_side))
        self.found = found


def _whatever(became: Carried) -> None:
    """Ignore what became of a report of cuts: it is advice, and another one follows."""
    del became
