"""What one member may use of a limit, from estimates of what all want.  Spec: limits 5.2, 5.3 step 6, D7, D21.

Pure arithmetic. Amounts are cost per second. ``whole`` is G, what the members of this view share; ``size`` is how many
they are. ``small`` and ``saturated`` are the two aggregates of max-min: U, what members want that are satisfied with
it, and N, the weights of those that want more than they get.
"""

from __future__ import annotations

from typing import Final

WEIGHT_MIN, WEIGHT_MAX = 0.1, 1.0  # H276: a weight is a part of the largest one
NONE_SATURATED: Final = WEIGHT_MIN / 2  # N below this: no member is saturated; above it there may be one with the smallest weight (H276)
IDLE: Final = 0.001  # share "demand": an aggregate below this for each member is that of idle members


def level(whole: float, size: int, small: float, saturated: float, weight: float) -> float:
    """Lambda: what a saturated member of this weight gets.

    Never less than an even split of the whole: where wants below it are satisfied first, more than that remains for each of the others.
    """
    assert size >= 1
    assert WEIGHT_MIN <= weight <= WEIGHT_MAX
    free = whole - small
    if saturated <= 0:
        # None wants more than it gets. Where they want more than there is, one that wants more than an even split has to become the first.
        return whole if free >= 0 else whole / size * weight
    return min(whole, max(whole / size, free / saturated) * weight)


def is_saturated(want: float, headroom: float, level: float) -> bool:
    """Does a member that wants so much want more than a saturated one gets?"""
    return want * (1 + headroom) > level


def small_want(whole: float, size: int, want: float, *, headroom: float, reserve: float) -> float:
    """What a member that is not saturated adds to U, and gets: a little above what it wants, and never nothing (D7)."""
    return max(want * (1 + headroom), reserve * whole / size)


def maxmin_target(
    whole: float, size: int, want: float, level: float, small: float, saturated: float, *, headroom: float, reserve: float
) -> float:
    """T of share "maxmin". While no member is saturated, what is free is spread over all of them."""
    if is_saturated(want, headroom, level):
        return level
    target = small_want(whole, size, want, headroom=headroom, reserve=reserve)
    if saturated < NONE_SATURATED:
        target += max(0.0, whole - small) / size
    return min(whole, target)


def demand_target(whole: float, size: int, report: float, aggregate: float, reserve: float) -> float:
    """T of share "demand", the paper's: in proportion to demand, beside an even part for an idle member to start with (D7)."""
    even = whole / size
    if aggregate < IDLE * size:
        return even
    share = min(1.0, max(0.0, report / aggregate))
    return reserve * even + (1 - reserve) * whole * share
