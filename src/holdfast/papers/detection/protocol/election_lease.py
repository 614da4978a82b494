"""Lease: how long this process may lead, counted from what its voters granted.  Spec: fast-detection 5 (count), G5, D17; foundation F8, F9.

Every voter's newest grant counts from the moment *before* the heartbeat left that it answers. A quorum of voters has promised
to support no other until the oldest of their newest grants ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from holdfast.features.leadership.detector.config import Term
from holdfast.kit.deadline import Clock, holder_length


class Lease:
    """The leadership that is held here, if any. ``term`` may lag behind the election's after a view change (D17)."""

    def __init__(self, clock: Clock, length: float, rho: float) -> None:
        self._clock = clock
        self._length = holder_length(length, rho)
        self.term: Term | None = None  # lead_term
        self.until = -inf  # lease_until
        self.margin = inf  # seconds that were left when it was last extended, for metrics
        self._acks: dict[str, int] = {}  # voter -> the newest stamp of the running term that it granted

    @property
    def valid(self) -> bool:
        """Read from the clock, never from a flag (F9)."""
        return self.term is not None and self._clock.now < self.until

    @property
    def lapsed(self) -> bool:
        return self.term is not None and self._clock.now >= self.until

    def begin(self) -> None:
        """A term begins: what was granted in another one counts no more. What is held is held on."""
        self._acks.clear()

    def grant(self, voter: str, stamp: int) -> None:
        """Answers come in any order; each voter's newest one counts."""
        self._acks[voter] = max(stamp, self._acks.get(voter, 0))

    def granted(self, voter: str, stamp: int) -> bool:
        return self._acks.get(voter, 0) >= stamp

    def supported(self, voters: Sequence[str], quorum: int) -> int:
        """The newest stamp that a quorum granted, each of them this one or a later one; 0: none."""
        return sorted((self._acks.get(voter, 0) for voter in voters), reverse=True)[quorum - 1]

    def extend(self, voters: Sequence[str], quorum: int, sent_at: Callable[[int], float | None]) -> bool:
        """Count again. True if a quorum's grants run now; the end then is theirs, or a later one that is held already."""
        stamp = self.supported(voters, quorum)
        left_at = sent_at(stamp) if stamp else None
        if left_at is None or left_at + self._length <= self._clock.now:
            return False
        if left_at + self._length > self.until:
            self.margin = self.until - self._clock.now if self.term is not None else inf
            self.until = left_at + self._length
        return True

    def hold(self, term: Term) -> None:
        self.term = term

    def end(self) -> None:
        self.term, self.until = None, -inf
