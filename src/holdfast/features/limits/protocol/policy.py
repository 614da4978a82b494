"""From the target of a member to what it may use: fair, strict, exact.  Spec: limits 1, 5.3 step 6, 5.5, 5.7, 5.1, D3, D10, D13.

Pure functions of what is known now. ``target`` is T of 5.2, ``used`` is L as it was, ``single`` is R/n.
"""

from __future__ import annotations

from math import inf

from holdfast.features.limits.protocol.config import QUOTA

# The holder of a promise counts with a clock that may be slow, and the next life of its agent with one that may be fast (F8, 1 % each).
HELD_SHARE = 0.96


def whole(rate: float, size: int, fleet: int) -> float:
    """G: what the members of this view share (paper 003, 3.1)."""
    return rate * min(1.0, size / fleet) if fleet else 0.0


def single(rate: float, fleet: int) -> float:
    """R/n: what a member may use that knows of no others."""
    return rate / fleet if fleet else 0.0


def fair(target: float, single: float, *, panic: bool) -> float:
    return single if panic else target


def strict(used: float, target: float, single: float, *, panic: bool, lapsed: bool, may_grow: bool) -> float:
    """Views that change at different times never raise the sum: less at once, more when all that were left out have stopped."""
    if panic:
        return single if lapsed else min(used, single)
    return target if may_grow else min(used, target)


def exact(rate: float, quota: int, fleet: int) -> float:
    """What quota is worth."""
    return rate * quota / (QUOTA * fleet) if fleet else 0.0


def quota_for(target: float, rate: float, fleet: int) -> int:
    """The quota that is worth so much."""
    return int(target / rate * fleet * QUOTA) if rate > 0 else 0


def ends_at(until: float, settle: float, lease: float) -> float:
    """When workers of an agent that says nothing any more stop using an exact limit: its next life may claim the same part (5.1, D11)."""
    return until + max(0.0, HELD_SHARE * settle - lease) if settle < inf else inf
