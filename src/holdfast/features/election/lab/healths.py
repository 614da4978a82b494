"""Who is unhealthy in the eyes of all, and how much one list knows of it: p of Theorem 4.  Spec: election 8 (T2, L3, F10), D8, D16."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log

Values = Mapping[int, float]  # by member: how unhealthy it looks


def system_wide(lists: Sequence[Values]) -> dict[int, float]:
    """The sum over all lists."""
    sums: dict[int, float] = {}
    for values in lists:
        for member, value in values.items():
            sums[member] = sums.get(member, 0.0) + value
    return sums


def ordered(values: Values, members: int) -> list[int]:
    """All members, the most unhealthy first; ties: the worse hash rank first, and members are numbered by hash rank."""
    return sorted(range(members), key=lambda member: (-values.get(member, 0.0), -member))


def top(values: Values, y: int, *, but: int | None = None) -> list[int]:
    """The y most unhealthy, of those that are unhealthy at all (D8)."""
    chosen = sorted(
        (member for member, value in values.items() if value > 0 and member != but), key=lambda member: (-values[member], -member)
    )
    return chosen[:y]


def p_of(lists: Sequence[Values], y: int) -> float | None:
    """The share of the system-wide top y that an arbitrary answer does not have; None if no member is unhealthy."""
    worst = top(system_wide(lists), y)
    missing = asked = 0
    for viewer, values in enumerate(lists):
        mine = set(top(values, y, but=viewer))
        for member in worst:
            if member != viewer:
                asked += 1
                missing += member not in mine
    return missing / asked if asked else None


def r_of(p: float, members: int) -> int:
    """Answers that Theorem 4 wants: r > log_{1/p} N, so the next whole number above it."""
    if p <= 0:
        return 1
    if p >= 1:
        return members
    exact = log(members) / log(1 / p)
    return ceil(exact) if ceil(exact) > exact + 1e-9 else ceil(exact) + 1
