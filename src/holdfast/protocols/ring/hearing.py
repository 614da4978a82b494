"""Hearing: before a member accuses a neighbour, is it the one that hears nothing?  Decision H162; spec: ring 5.2, 12 (P2).

First come, first served lets a member win that is deaf and can still speak: its leases run out first, because it loses the
answers. So a member that most of its neighbours did not answer at the first try listens before it asks any arbitrator: it
repeats the present lease request to each of them five times within T_a / 4. A neighbour that answers three of five is heard.
One that has crashed answers none, and then those that live are heard; a deaf member hears none, or some of them now and then.
So does a member whose neighbours are busy for a moment: the test is made twice before the member takes itself for deaf. Its
own deadline does not move, and leaving is always safe.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.kit.quorum import weighted
from holdfast.protocols.ring.pair import Pair

if TYPE_CHECKING:
    from holdfast.protocols.ring.ring import RingNode

PROBES, HEARD_PROBES = 5, 3  # with 90 % of loss one in a hundred peers seems to be heard, with 5 % both ways 99
LISTEN, SPACING = 1 / 4, 1 / 32  # in T_a; the last answer has as long as four spacings
TESTS = 2  # T_a / 2 at most: the arbitrators need the other half
FEW = 6  # one of so many neighbours that is heard is luck; if the others had crashed, so would most of the arbitrators
RAGGED_WEIGHT = 2  # one that is heard once weighs as much as two that are heard


class Hearing:
    """Whether one member hears its neighbours."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self._ends_at = ring.raw.now

    def is_doubtful(self, silent: Pair) -> bool:
        """Most neighbours, ourselves counted as votes are, did not answer the present request at its first try, as peers do."""
        ring = self._ring
        now, grace = ring.raw.now, ring.config.oversleep
        return not self._is_majority([pair for pair in self._pairs() if pair.is_heard(now, silent.s - grace, grace)])

    def listen(self) -> float:
        """Returns when it is known whether we hear. Suspicions that come together share one test."""
        ring = self._ring
        now, t_a = ring.raw.now, ring.config.t_a
        if now >= self._ends_at:
            self._ends_at = now + LISTEN * t_a
            ring.counts["listened"] += 1
            for pair in self._pairs():
                pair.answers = 0
            self._probe(PROBES)
        return self._ends_at

    def is_deaf(self) -> bool:
        """What the test has shown."""
        pairs = self._pairs()
        heard = [pair for pair in pairs if pair.answers >= HEARD_PROBES]
        if self._is_majority(heard):
            return False
        ragged = sum(0 < pair.answers < HEARD_PROBES for pair in pairs)
        return FEW * len(heard) <= len(pairs) or RAGGED_WEIGHT * ragged >= len(heard)

    def _probe(self, left: int) -> None:
        ring = self._ring
        if not ring.is_member:
            return
        for pair in self._pairs():
            if pair.susp is None:
                ring.leases.repeat(pair)
        if left > 1:
            ring.host.after(SPACING * ring.config.t_a, partial(self._probe, left - 1))

    def _pairs(self) -> list[Pair]:
        return [pair for pair in self._ring.pairs.values() if pair.obliged]

    def _is_majority(self, heard: list[Pair]) -> bool:
        """Counted as arbitrators' votes are: where all are neighbours, whoever hears no majority could not win one either."""
        me = self._ring.id
        group = frozenset((me, *(pair.peer.id for pair in self._pairs())))
        return weighted(group).enough({me, *(pair.peer.id for pair in heard)})
