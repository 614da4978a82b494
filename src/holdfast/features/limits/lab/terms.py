"""The terms of a limit in the lab, and the shares that they come to by arithmetic of the lab's own.  Spec: limits 5.2, 5.3, 7 (RL6), D7."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Policy = Literal["fair", "strict", "exact"]
Share = Literal["maxmin", "demand"]
Aggregate = Literal["gossip", "central"]
HEADROOM = 0.02
ROUNDS = 60  # of halving an interval: beyond, floats do not differ


class Terms(Struct, frozen=True):
    """One limit."""

    name: str
    rate: float
    burst: float
    policy: Policy
    share: Share
    fleet: int
    aggregate: Aggregate = "gossip"
    reserve: float = 0.05
    constant: bool = True  # what processes want of it does not change while they live
    steady: bool = False  # nor do processes die or hang, so what members want of it is the same all the time
    declared: bool = True  # processes say what they want; otherwise it is measured, with all that waits

    @property
    def rests(self) -> bool:
        """The demand that members report is constant, as RL5 has it. One that is measured moves with what waits (H420)."""
        return self.steady and self.declared


def shares_of(terms: Terms, wants: Mapping[str, float], size: int) -> dict[str, float]:
    """What each member of a view of so many should come to, when nothing changes any more."""
    whole = terms.rate * min(1.0, size / terms.fleet)
    if terms.share == "demand":
        return in_proportion(terms, whole, wants, size)
    return filled_up(terms, whole, wants, size)


def spare_of(terms: Terms, wants: Mapping[str, float], size: int) -> float:
    """What is left when all have what they want: who gets it takes nothing from another one."""
    whole = terms.rate * min(1.0, size / terms.fleet)
    return max(0.0, whole - sum(asked_of(terms, whole, wants, size).values())) if terms.share == "maxmin" else 0.0


def asked_of(terms: Terms, whole: float, wants: Mapping[str, float], size: int) -> dict[str, float]:
    return {name: max(want * (1 + HEADROOM), terms.reserve * whole / size) for name, want in wants.items()}


def in_proportion(terms: Terms, whole: float, wants: Mapping[str, float], size: int) -> dict[str, float]:
    total = sum(wants.values())
    if total <= 0:
        return dict.fromkeys(wants, whole / size)
    even, rest = terms.reserve * whole / size, (1 - terms.reserve) * whole
    return {name: even + rest * want / total for name, want in wants.items()}


def filled_up(terms: Terms, whole: float, wants: Mapping[str, float], size: int) -> dict[str, float]:
    """The level at which what all get up to it is the whole; where all are content below it, the rest is spread."""
    asked = asked_of(terms, whole, wants, size)
    spare = whole - sum(asked.values())
    if spare >= 0:
        return {name: want + spare / size for name, want in asked.items()}
    low, high = 0.0, whole
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(min(want, middle) for want in asked.values()) <= whole else (low, middle)
    return {name: min(want, low) for name, want in asked.items()}
