"""What a member demands of a limit: smoothed, from what its workers report.  Spec: limits 5.2, D8; paper 003, 3.1.

One object per limit and member; the limiter looks once an epoch. Each kind answers with ``want`` in cost per second,
except ``FlowDemand`` and a ``demand=`` callable under share "demand", which answer with a weight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import isfinite
from typing import Final, Protocol

from holdfast.features.limits.protocol.outlet import Wants

ALPHA_UP, ALPHA_DOWN = 0.5, 0.25
POLLED_MAX: Final = 4.0  # times the share: what arrives above it, refused attempts included, is not demand (5.2)
FIRST_COST: Final = 1.0  # but this much counts in any epoch, or a member without a share would never ask for one (H277)
DEMAND_MAX: Final = 1e9  # cost per second, R of the largest limit: no member wants more
FLOOR: Final = 1e-6  # of the weight of flows
USED_UP: Final = 0.95  # of the share: flows that use so much would use more
LAG: Final = 4  # looks: flows that are let go faster need about a second to do so, and are not satisfied meanwhile (H287)
GROWTH: Final = 1.1  # what flows that use less may need soon, of what they use now


class Demand(Protocol):
    """From what was reported to what is demanded."""

    def look(self, wants: Wants, elapsed: float, share: float, even: float = 0.0) -> float:
        """Once an epoch: ``wants`` since the last look, ``elapsed`` seconds ago; ``share`` is what the member may use now, ``even`` an
        even part of the limit."""


class Smoothed:
    """An average of what it is given, quicker up than down."""

    __slots__ = ("alpha_down", "alpha_up", "value")

    def __init__(self, alpha_up: float, alpha_down: float) -> None:
        assert 0 < alpha_up <= 1
        assert 0 < alpha_down <= 1
        self.alpha_up, self.alpha_down = alpha_up, alpha_down
        self.value = 0.0

    def add(self, value: float) -> float:
        self.value += (self.alpha_up if value > self.value else self.alpha_down) * (value - self.value)
        return self.value


class RequestDemand:
    """Requests: what arrives, smoothed, and what waits, which is demanded away within ``horizon`` seconds."""

    __slots__ = ("horizon", "offered")

    def __init__(self, alpha_up: float = ALPHA_UP, alpha_down: float = ALPHA_DOWN, horizon: float = 0.25) -> None:
        assert horizon > 0
        self.offered = Smoothed(alpha_up, alpha_down)
        self.horizon = horizon

    def look(self, wants: Wants, elapsed: float, share: float, even: float = 0.0) -> float:
        if elapsed <= 0:
            return min(DEMAND_MAX, self.offered.value + wants.waiting / self.horizon)
        arrived = min(wants.arrived, max(POLLED_MAX * max(share, even) * elapsed, FIRST_COST))
        return min(DEMAND_MAX, self.offered.add(arrived / elapsed) + wants.waiting / self.horizon)


class UserDemand:
    """What a ``demand=`` callable of the program said last. An answer that is no number leaves the last one standing."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def look(self, wants: Wants, elapsed: float, share: float, even: float = 0.0) -> float:
        if wants.user is not None and isfinite(wants.user) and wants.user >= 0:
            self.value = min(DEMAND_MAX, wants.user)
        return self.value


class FlowDemand:
    """Flows of traffic: a member whose share is used up weighs as many as its flows, another one as much as yields what it uses.

    ``largest`` says the rate of its largest flow, ``aggregate`` A (all weights), and ``whole`` R' = R * min(1, |V|/n).
    """

    __slots__ = ("_shares", "aggregate", "largest", "smoothed", "whole")

    def __init__(
        self,
        largest: Callable[[], float],
        aggregate: Callable[[], float],
        whole: Callable[[], float],
        *,
        alpha_up: float = ALPHA_UP,
        alpha_down: float = ALPHA_DOWN,
    ) -> None:
        self.largest, self.aggregate, self.whole = largest, aggregate, whole
        self.smoothed = Smoothed(alpha_up, alpha_down)
        self._shares: deque[float] = deque(maxlen=LAG)

    def look(self, wants: Wants, elapsed: float, share: float, even: float = 0.0) -> float:
        use = wants.arrived / elapsed if elapsed > 0 else 0.0
        self._shares.append(share)
        return self.smoothed.add(max(FLOOR, self._saturated(share) if use >= USED_UP * min(self._shares) else self._satisfied(use)))

    def _saturated(self, share: float) -> float:
        largest = self.largest()
        return min(DEMAND_MAX, share / largest) if largest > 0 else 1.0

    def _satisfied(self, use: float) -> float:
        """The weight that would yield just what is used: D / A = d / R', where D is part of A."""
        whole, others = self.whole(), self.aggregate() - self.smoothed.value
        if whole <= 0 or others <= FLOOR * FLOOR:
            return 1.0
        wanted = min(GROWTH * use, USED_UP * whole)
        return wanted * others / (whole - wanted)
