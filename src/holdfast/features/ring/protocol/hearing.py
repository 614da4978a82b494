"""Hearing: before a member accuses a neighbour, is it the one that hears nothing?  Decision H162; spec: ring 5.2, 12 (P2).

First come, first served lets a member win that is deaf and can still speak: its leases run out first, because it loses the
answers. So a member that most of its neighbours did not answer at the first try listens before it asks any arbitrator: it
repeats the present lease request to each of them six times within T_a / 4. A neighbour that answers four of six is heard.
One that has crashed answers none, and then those that live are heard; a deaf member hears none, or some of them now and then.
So does a member whose neighbours are busy for a moment: the test is made twice before the member takes itself for deaf. A
member that is busy itself sends its requests late, and the test ends later by as much. Its own deadline does not move, and
leaving is always safe.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from holdfast.features.ring.protocol.pair import Pair
from holdfast.host import Timer
from holdfast.kit.phase import weighted

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

PROBES, HEARD_PROBES = 6, 4  # and a usual try: with 90 % of loss 3 in 1000 peers seem to be heard, with 5 % both ways 99 in 100
SPACING, LAST_ANSWER = 1 / 40, 1 / 8  # in T_a: between two requests, and after the last one
LISTEN = (PROBES - 1) * SPACING + LAST_ANSWER  # in T_a; our own lateness comes on top
TESTS = 2  # T_a / 2: the arbitrators need the other half
FEW = 6  # one of so many neighbours that is heard is luck; if the others had crashed, so would most of the arbitrators
RAGGED_WEIGHT = 2  # one that is heard once weighs as much as two that are heard

Verdict = Callable[[bool], None]


class Hearing:
    """Whether one member hears its neighbours."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self._tested: list[Pair] = []  # who is asked in the test that runs
        self._waiting: list[Verdict] = []  # at most one per pair; not empty: a test runs
        self._timer: Timer | None = None

    def is_doubtful(self, silent: Pair) -> bool:
        """Most neighbours, ourselves counted as votes are, were not heard as peers are while ``silent`` was asked."""
        pairs, since = self._pairs(), silent.s - self._ring.config.oversleep
        return not self._is_majority(pairs, [pair for pair in pairs if pair.is_heard(since)])

    def listen(self, then: Verdict) -> None:
        """``then`` is told whether we are deaf. Suspicions that come together share one test."""
        self._waiting.append(then)
        if len(self._waiting) > 1:
            return
        self._ring.counts["listened"] += 1
        self._tested = self._pairs()
        for pair in self._tested:
            pair.answers = 0
        self._probe(PROBES)

    def reset(self) -> None:
        """The membership is over, and nothing is asked any more."""
        self._tested, self._waiting = [], []
        if self._timer is not None:
            self._timer.cancel()

    def is_deaf(self, tested: list[Pair]) -> bool:
        """What the test of these has shown. A pair that was closed meanwhile shows nothing."""
        pairs = [pair for pair in tested if self._ring.holds(pair)]
        heard = [pair for pair in pairs if pair.answers >= HEARD_PROBES]
        if self._is_majority(pairs, heard):
            return False
        ragged = sum(0 < pair.answers < HEARD_PROBES for pair in pairs)
        return FEW * len(heard) <= len(pairs) or RAGGED_WEIGHT * ragged >= len(heard)

    def _probe(self, left: int) -> None:
        """One round of requests. What follows counts from when it was really sent: who is late has sent less than it believes."""
        ring = self._ring
        for pair in self._tested:
            if pair.susp is None and ring.holds(pair):
                ring.leases.repeat(pair)
        if left > 1:
            self._timer = ring.host.after(SPACING * ring.config.t_a, partial(self._probe, left - 1))
        else:
            self._timer = ring.host.after(LAST_ANSWER * ring.config.t_a, self._on_end)

    def _on_end(self) -> None:
        """One verdict for all: the first of them may begin the next test."""
        deaf, waiting = self.is_deaf(self._tested), self._waiting
        self._waiting = []
        for then in waiting:
            then(deaf)

    def _pairs(self) -> list[Pair]:
        return [pair for pair in self._ring.pairs.values() if pair.obliged]

    def _is_majority(self, pairs: list[Pair], heard: list[Pair]) -> bool:
        """Counted as arbitrators' votes are: where all are neighbours, a member that hears no majority could not win one either."""
        me = self._ring.id
        group = frozenset((me, *(pair.peer.id for pair in pairs)))
        return weighted(group).enough({me, *(pair.peer.id for pair in heard)})
