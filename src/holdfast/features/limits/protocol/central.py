"""Centralized aggregation: one member adds up what all want.  Spec: limits 5.8; paper 003, 7.2.1.

For limits with ``aggregate="central"``, and what gossip is compared with. The collector is the smallest member of the view; a view change
may make another one that, and until its first sum the former one stands. Where the direct way to it is cut, demands and sums take the
overlay in every epoch, until a direct one is answered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from holdfast.features.limits.protocol.config import UNIT, LimitsConfig
from holdfast.features.limits.protocol.messages import Demand, Sum
from holdfast.features.limits.protocol.standing import Standing
from holdfast.host import Carried, Host, Message, NodeId, Views

OF_LIFE_MAX = (1 << 63) - 1  # a sum that is larger is cut: no honest group gets near it


class Central:
    """Both sides of it at one member."""

    def __init__(self, host: Host, views: Views, config: LimitsConfig, standing: Standing, counts: Counter[str]) -> None:
        self._host, self._views, self._config, self._standing, self._counts = host, views, config, standing, counts
        self.sums: dict[int, int] = {}  # the last sum, of this instance or of a former one
        self._size = 1  # members that it was of
        self._heard: dict[NodeId, tuple[int, Mapping[int, int]]] = {}  # at the collector: newest demand of each member
        self._mine: Mapping[int, int] = {}
        self._seq = self._answered = 0
        self._unanswered = 0  # demands in a row
        self._tried_at = 0.0  # when the direct way was tried last, while it is cut
        self.is_round = False  # the direct way is cut

    def begin(self) -> None:
        """A new instance: other members, and perhaps another collector."""
        self._heard.clear()
        self._unanswered = 0
        self.is_round = False

    def forget(self) -> None:
        """Panic: what was known of the others is worth nothing."""
        self.sums = {}
        self._heard.clear()

    def estimate(self, key: int) -> float:
        """What all members want together, cost per second; until there is a sum, as if each wanted as much as this one."""
        mine = self._mine.get(key, 0)
        return max(mine, self.sums.get(key, mine * self._standing.size)) / UNIT

    @property
    def collector(self) -> NodeId | None:
        """The smallest member id; not known while the view is."""
        return self._standing.members[0] if self._standing.members else None

    def on_epoch(self, demands: Mapping[int, int]) -> None:
        self._mine = demands
        collector = self.collector
        if collector is None or not demands:
            return
        if collector == self._host.me:
            self._seq += 1
            self._heard[collector] = (self._seq, demands)
            self._set(self._total())
            return
        self._ask(collector, demands)

    def on_demand(self, source: NodeId, message: Demand) -> None:
        """The instance is the present one, the source a member of it."""
        if self.collector != self._host.me:
            self._counts["not_collector"] += 1
            return
        known = self._heard.get(source)
        if known is None or message.seq > known[0]:
            self._heard[source] = (message.seq, message.d)
        answer = Sum(message.inst, message.seq, self._total(), len(self._heard), message.is_round)
        self._send(source, answer, is_round=message.is_round)

    def on_sum(self, source: NodeId, message: Sum) -> None:
        if source != self.collector or message.seq > self._seq:
            self._counts["not_collector"] += 1
            return
        if not message.is_round:
            self.is_round = False
        if message.seq >= self._answered:
            self._answered, self._unanswered = message.seq, 0
            self._set(message.a)

    # Inside.

    def _ask(self, collector: NodeId, demands: Mapping[int, int]) -> None:
        inst, now = self._standing.inst, self._host.now
        assert inst is not None
        self._seq += 1
        self._unanswered += 1
        if self._unanswered > self._config.loss and not self.is_round:
            self.is_round, self._tried_at = True, now
        if self.is_round:
            self._send(collector, Demand(inst, self._seq, dict(demands), True), is_round=True)
            if now < self._tried_at + self._config.probe:
                return
            self._tried_at = now
        self._send(collector, Demand(inst, self._seq, dict(demands), False), is_round=False)

    def _send(self, to: NodeId, message: Message, *, is_round: bool) -> None:
        if is_round:
            self._views.carry(to, message, _whatever)
        else:
            self._host.send(to, message)

    def _total(self) -> dict[int, int]:
        """Newest demands; a member that was not heard in this instance counts as its share of the last sum."""
        total: dict[int, int] = {}
        missing = max(0, self._standing.size - len(self._heard))
        for key, value in self.sums.items():
            share = value * missing // max(1, self._size)
            if share:
                total[key] = share
        for _, demands in self._heard.values():
            for key, value in demands.items():
                total[key] = total.get(key, 0) + value
        return {key: min(value, OF_LIFE_MAX) for key, value in total.items()}

    def _set(self, sums: Mapping[int, int]) -> None:
        self.sums, self._size = dict(sums), self._standing.size


def _whatever(became: Carried) -> None:
    """The next epoch says it again; where the overlay fails the views trip, and a new instance begins."""
    del became
