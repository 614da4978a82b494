"""Remove faults from a failing plan while it still fails: what is left is what matters.  Delta debugging (Zeller)."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.lab.faults import Fault, Plan

Fails = Callable[[Plan], bool]


def shrink(plan: Plan, fails: Fails, *, tries: int = 1000) -> Plan:
    """A plan from which no single fault can be taken without losing the failure (or the best found in ``tries`` runs)."""
    assert fails(plan)
    left = tries
    faults = plan.faults
    size = max(1, len(faults) // 2)
    while left > 0 and faults:
        smaller, used = _without_some(faults, size, fails, left)
        left -= used
        if smaller is not None:
            faults = smaller
            size = max(1, min(size, len(faults) // 2))
        elif size == 1:
            break
        else:
            size = max(1, size // 2)
    return Plan(faults)


def _without_some(faults: tuple[Fault, ...], size: int, fails: Fails, left: int) -> tuple[tuple[Fault, ...] | None, int]:
    """The first failing plan that lacks ``size`` neighbouring faults, and how many runs it took to look."""
    used = 0
    for begin in range(0, len(faults), size):
        if used == left:
            break
        rest = faults[:begin] + faults[begin + size :]
        used += 1
        if fails(Plan(rest)):
            return rest, used
    return None, used
