"""The monitor's side: one fast detector per life that leads or asks for anything.  Spec: fast-detection 5, D15, D17b; foundation F11, F17.

Every agent that hears a heartbeat may ask and vote; a report is acted upon if a quorum of the seats is among those who missed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from holdfast.features.leadership.detector.config import Term
from holdfast.features.leadership.detector.facts import Report
from holdfast.features.leadership.detector.ffd import FastDetector
from holdfast.features.leadership.detector.links import Links
from holdfast.features.leadership.detector.messages import DidYouMissToo, MonitorOk, Vote, WatchedOk
from holdfast.features.leadership.detector.plan import Plan
from holdfast.features.leadership.protocol.config import LeadershipConfig
from holdfast.features.leadership.protocol.roads import Roads
from holdfast.host import Address, Host, Message, NodeId

WATCHES_MAX = 1024  # lives that lead something at the same time; a seat hears all of them
# In t_itv: a life that was found dead is watched on for so long, because others may still ask about it, and because every report begins
# anew for those of its names for which START was lost.
LINGER_INTERVALS = 4.0


class Watch:
    """One life, as one of its monitors sees it. Its term never changes: it is the life."""

    def __init__(self, watches: Watches, life: NodeId) -> None:
        self._watches, self.life = watches, life
        self.stamp = 0  # the highest that was read
        self.dead_at: float | None = None  # when it was found dead, if it was not heard since
        self._suspected = False  # as told
        self.detector = FastDetector(watches.host, watches.config, self, watches.links)
        among = tuple(watches.roads.monitors(life.name))
        self.detector.watch(life.name, Term(0, life.boot), among, boot=life.boot)

    def monitors(self) -> Mapping[str, NodeId | Address]:
        return self._watches.roads.monitors(self.life.name)

    def enough(self, names: Collection[str]) -> bool:
        """D17b, I5: a quorum of the seats. If the watched is a seat itself, its vote is missing."""
        roads = self._watches.roads
        return roads.seats_among(names) >= roads.quorum

    def say(self, to: NodeId | Address, message: Message) -> None:
        self._watches.say(to, message)

    def on_missed(self, seq: int) -> None:
        self.say(self.life, MonitorOk(seq, -1, (), self.detector.missed_bits(seq)))

    def tell(self) -> None:
        """Foundation 5: one word when a suspicion begins and one when it was wrong, however many ballots it takes."""
        if self.detector.suspected != self._suspected:
            self._suspected = self.detector.suspected
            self._watches.suspected(self.life, self._suspected)

    def on_report(self, report: Report) -> None:
        self.tell()
        if report.acted:
            self.dead_at = self._watches.host.now if self.dead_at is None else self.dead_at
            self._watches.found_dead(self.life)


class Watches:
    """All lives that are watched here."""

    def __init__(
        self,
        host: Host,
        config: LeadershipConfig,
        roads: Roads,
        suspected: Callable[[NodeId, bool], None],
        found_dead: Callable[[NodeId], None],
    ) -> None:
        """``suspected``: a suspicion of this life began, or was wrong."""
        self.host, self.config, self.roads, self.suspected, self.found_dead = host, config, roads, suspected, found_dead
        self.links = Links(host, config)
        self._watches: dict[NodeId, Watch] = {}
        self._dropped: dict[NodeId, int] = {}  # the highest stamp of lives that are not watched any more
        self.counts: Counter[str] = Counter()  # watches_full, not_watched

    def __len__(self) -> int:
        return len(self._watches)

    def say(self, to: NodeId | Address, message: Message) -> None:
        self.host.send(to, message)

    def get(self, life: NodeId) -> Watch | None:
        return self._watches.get(life)

    def hears(self, life: NodeId) -> bool:
        """It is watched here, and its next heartbeat is not overdue."""
        watch = self._watches.get(life)
        return watch is not None and watch.detector.heard > 0 and not watch.detector.missing

    def silent(self, life: NodeId) -> bool:
        """It was heard here, and its next heartbeat is overdue."""
        watch = self._watches.get(life)
        return watch is not None and watch.detector.missing

    def alive(self, life: NodeId) -> bool:
        """As far as is known here: heard, or listed and not found dead."""
        watch = self._watches.get(life)
        if life == self.host.me or self.hears(life):
            return True
        return self.roads.listed(life) and (watch is None or watch.dead_at is None)

    def plans(self) -> dict[NodeId, Plan]:
        """What the demanded accuracy costs now, for each life that was heard."""
        heard = {life: watch.detector for life, watch in self._watches.items() if watch.detector.heard}
        return {life: detector.demand(self.config.p_m) for life, detector in heard.items()}

    def on_heartbeat(self, source: NodeId, ok: WatchedOk) -> int:
        """Returns the bits for MONITOR-OK."""
        watch = self._watches.get(source) or self._begin(source, ok.stamp)
        if watch is None:
            return 0
        watch.detector.on_heartbeat(source, ok)
        watch.stamp, watch.dead_at = max(watch.stamp, ok.stamp), None
        watch.tell()
        return watch.detector.missed_bits()

    def _begin(self, life: NodeId, stamp: int) -> Watch | None:
        if stamp <= self._dropped.get(life, 0):
            return None  # It is late, and what came after it is forgotten: a monitor that began with it would miss what it has had (I6).
        if len(self._watches) >= WATCHES_MAX:
            self.counts["watches_full"] += 1
            return None
        watch = self._watches[life] = Watch(self, life)
        return watch

    def on_query(self, source: NodeId, query: DidYouMissToo) -> None:
        watch = self._watches.get(NodeId(query.watched, query.boot))
        if watch is None:
            self.counts["not_watched"] += 1
        else:
            watch.detector.on_query(source, query)

    def on_vote(self, source: NodeId, vote: Vote) -> None:
        watch = self._watches.get(NodeId(vote.watched, vote.round))
        if watch is not None:
            watch.detector.on_vote(source, vote)
            watch.tell()

    def sweep(self, busy: Callable[[NodeId], bool]) -> None:
        """An agent that leads nothing and asks for nothing is not watched: its silence means nothing. The dead are let go too."""
        oldest = self.host.now - LINGER_INTERVALS * self.config.t_itv
        for life, watch in list(self._watches.items()):
            if watch.dead_at < oldest if watch.dead_at is not None else not busy(life):
                self.drop(life)

    def drop(self, life: NodeId) -> None:
        watch = self._watches.pop(life, None)
        if watch is not None:
            watch.detector.stop()
            self._dropped.pop(life, None)
            if len(self._dropped) >= WATCHES_MAX:
                del self._dropped[next(iter(self._dropped))]
            self._dropped[life] = watch.stamp

    def on_away(self, seconds: float) -> None:
        for watch in self._watches.values():
            watch.detector.on_away(seconds)

    def stop(self) -> None:
        for life in list(self._watches):
            self.drop(life)
