"""The value of c: how many lists may lack a live member during one election; and f, how many listed members are down.

Spec: election 5.1, D2, D6; paper 004, III.A. Measured by the membership, taken larger than measured, and clamped so that c+1 answers can
come although f members are down.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from holdfast.features.election.protocol.config import DEAD_SHARE, FLOOR, SAFETY, SAFETY_TURBULENT
from holdfast.features.election.protocol.contest import Contest
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.facts import CBound, CBoundUnusable

BUCKET, WINDOW = 30.0, 600.0  # seconds: over which the membership measures (gossip 5.11)
CHANGE = 0.25  # of c: what is worth a fact


class Bounds(NamedTuple):
    """What one election counts with."""

    c: int
    f: int
    want: int  # what c would have to be
    most: int  # what it can be


class CValue:
    """The c and the f with which an election counts, as of now."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def bounds(self, contest: Contest) -> Bounds:
        n = len(self._core.listed.members)
        f = self._f(n)
        want = self._want(contest, n)
        most = max(0, n - 1 - f)
        return Bounds(min(want, most), f, want, most)

    def for_election(self, contest: Contest) -> Bounds:
        """The bounds for an election that begins; a change, and a c that cannot be used, are emitted."""
        found = self.bounds(contest)
        if abs(found.c - contest.said_c) > CHANGE * contest.said_c:
            contest.said_c = found.c
            self._core.host.emit(CBound(contest.name, found.c, found.f))
        if found.want > found.most:
            self._core.counts["c_unusable"] += 1
            self._core.host.emit(CBoundUnusable(contest.name, found.want, found.most))
        return found

    def violated(self, contest: Contest) -> None:
        """Raise c for one window: a worse-ranked member leads, so c was too small (D6)."""
        contest.boost = min(2 * max(1, self.bounds(contest).c), len(self._core.listed.members))
        contest.boost_until = self._core.now + WINDOW

    def _f(self, n: int) -> int:
        configured = self._core.config.f
        return max(1, self._core.listed.suspects, ceil(DEAD_SHARE * n)) if configured is None else configured

    def _want(self, contest: Contest, n: int) -> int:
        core, lists = self._core, self._core.lists
        if core.config.c is not None:
            return core.config.c
        boost = contest.boost if core.now < contest.boost_until else 0
        if lists.observed_for() < BUCKET:
            return n - 1  # Nothing was measured yet: ask all.
        measured = lists.c_measured()
        factor = SAFETY_TURBULENT if lists.turbulent() or lists.observed_for() < WINDOW else SAFETY
        return max(ceil(FLOOR * n), ceil(factor * measured) + 1 if measured else 0, boost)
