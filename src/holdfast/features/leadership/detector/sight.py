"""What one monitor knows of the watched in one term.  Spec: fast-detection 2 (state), 5 (WATCHED-OK), D2, D5, D8."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from holdfast.features.leadership.detector.common import BITS
from holdfast.features.leadership.detector.config import FfdConfig, Term
from holdfast.features.leadership.detector.links import Link
from holdfast.features.leadership.detector.messages import DidYouMissToo, WatchedOk
from holdfast.features.leadership.detector.plan import Evidence
from holdfast.host import NodeId

BITS_MASK = (1 << BITS) - 1
NO_TERM = Term(-1, -1)


class Sight:
    """The next term begins with a new one. Only a heartbeat sets ``heard`` (D5); before it there is no link, no point and no rank."""

    def __init__(
        self, config: FfdConfig, watched: str = "", term: Term = NO_TERM, among: Sequence[str] = (), name: str = "", wanted: int = 0
    ) -> None:
        self.config, self.watched, self.term, self.name = config, watched, term, name
        self.heard = 0  # heartbeats of this term, repeats not counted
        self.last_seq = -1
        self.boot = 0  # the life that speaks
        self.link: Link | None = None  # from that life
        self.stamp = -1  # of the newest heartbeat
        self.K: tuple[str, ...] = ()
        self.evidence = Evidence()
        self.suspected = False  # a ballot was closed, and nothing was heard of the watched since
        self.deferred: dict[str, tuple[NodeId, DidYouMissToo]] = {}  # asker -> its question, until our own freshness point
        self.asked_at, self.asked_seq = -inf, -1  # the latest query of another monitor
        self.yielded = False  # to it, once (D21)
        self.losses: dict[str, float] = {}  # of other monitors' links, from their votes
        self.planned = 0  # heartbeats needed, as last told
        self._wanted = wanted  # the one life that is meant; 0: whichever speaks first
        self._bits, self._last_late = 0, False  # bit j: last_seq - 1 - j did not come in time; and last_seq itself
        self.set_among(among)

    @property
    def fresh_at(self) -> float:
        """The freshness point of the next heartbeat."""
        return inf if self.link is None else self.link.freshness.deadline(self.last_seq + 1)

    def is_life(self, life: NodeId) -> bool:
        """The one that speaks, or may begin to."""
        return life.name == self.watched and life.boot == (self.boot or self._wanted or life.boot)

    def may_mean(self, boot: int) -> bool:
        """A question about this life is about what is seen here; 0 on either side: never heard."""
        return 0 in (boot, self.boot) or boot == self.boot

    def on_sign_of_life(self) -> None:
        """From the watched itself, or from a monitor that has its heartbeat."""
        self.evidence.reset()
        self.suspected = False

    def set_among(self, names: Sequence[str]) -> None:
        """D2: never with the watched, or no monitor might be the smallest."""
        self.K = tuple(sorted({*names} - {self.watched}))

    def learn(self, life: NodeId, link: Link, ok: WatchedOk, now: float, *, timed: bool) -> None:
        """A new index. Only a gap that a later heartbeat of this term closes counts as loss (D8): a death teaches nothing."""
        late = timed and self.heard > 0 and self._is_late(link, ok, now)
        if self.heard:
            if timed:
                link.loss.add(True, min(ok.seq - self.last_seq - 1, self.config.m_max))
                link.loss.add(late)
            self._bits = self.missed_bits(ok.seq)
        link.freshness.arrived(ok.seq, now - ok.after, timed=timed)
        self.link, self._last_late = link, late
        self.boot, self.last_seq = life.boot, ok.seq
        self.heard += 1

    def missed_bits(self, seq: int) -> int:
        """As seen from this heartbeat; all between the last one and it are missing."""
        ahead = seq - self.last_seq
        if ahead <= 0 or not self.heard:
            return self._bits
        if ahead > BITS:
            return BITS_MASK
        return ((self._bits << 1 | self._last_late) << (ahead - 1) | (1 << (ahead - 1)) - 1) & BITS_MASK

    def _is_late(self, link: Link, ok: WatchedOk, now: float) -> bool:
        """After its freshness point, or a repeat: then the one that left in time did not come. Late counts as lost (section 6.1)."""
        return now > link.freshness.deadline(ok.seq) or ok.after > self.config.lat
