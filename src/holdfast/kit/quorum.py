"""Which sets of voters decide.  Spec: foundation 4 (Quorum), ring 5 (``quorum``: even groups, joint while a group changes).

A quorum knows its whole group, because a question may end early in two ways: enough said yes, or so many said
no that enough never will.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, TypeVar


class Voter(Hashable, Protocol):
    """Anything that can be counted once and ordered: NodeId, RingId, the number of a slot."""

    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=Voter)
K_contra = TypeVar("K_contra", bound=Voter, contravariant=True)


class Quorum(Protocol[K_contra]):
    """A monotone rule over sets of voters: a voter outside the group does not count."""

    def enough(self, yes: AbstractSet[K_contra]) -> bool:
        """These voters decide."""

    def possible(self, yes: AbstractSet[K_contra], no: AbstractSet[K_contra]) -> bool:
        """Some superset of ``yes`` that leaves out ``no`` would decide. A voter in both has said yes first."""


class Weights(Quorum[K]):
    """Each voter has a weight; ``need`` decides."""

    __slots__ = ("need", "weights")

    def __init__(self, weights: Mapping[K, int], need: int) -> None:
        assert need >= 1  # an empty group must never be enough
        self.weights = dict(weights)
        self.need = need

    def enough(self, yes: AbstractSet[K]) -> bool:
        return sum(weight for voter, weight in self.weights.items() if voter in yes) >= self.need

    def possible(self, yes: AbstractSet[K], no: AbstractSet[K]) -> bool:
        return sum(weight for voter, weight in self.weights.items() if voter in yes or voter not in no) >= self.need


class Joint(Quorum[K]):
    """Several groups at once, each by its own rule: what a change from one group to another needs (ring 5.3)."""

    __slots__ = ("parts",)

    def __init__(self, parts: Iterable[Quorum[K]]) -> None:
        self.parts = tuple(parts)
        assert self.parts

    def enough(self, yes: AbstractSet[K]) -> bool:
        return all(part.enough(yes) for part in self.parts)

    def possible(self, yes: AbstractSet[K], no: AbstractSet[K]) -> bool:
        # Exact although each part is asked alone: all of them are monotone, and one set, all voters but ``no``, is best for all.
        return all(part.possible(yes, no) for part in self.parts)


def majority(group: Collection[K]) -> Quorum[K]:
    """More than half. Any two winning sets share a voter."""
    return Weights(dict.fromkeys(group, 1), len(set(group)) // 2 + 1)


def weighted(group: Collection[K]) -> Quorum[K]:
    """As ``majority``, but in an even group the smallest id counts twice (ring 5, D5).

    The weights then sum to an odd total, so winning sets still share a voter, and a pair survives the crash of
    its larger id.
    """
    weights = dict.fromkeys(group, 1)
    if weights and len(weights) % 2 == 0:
        weights[min(weights)] = 2
    return Weights(weights, len(weights) // 2 + 1)


def joint(a: Quorum[K], b: Quorum[K]) -> Quorum[K]:
    """Both. A winning set shares a voter with every winning set of either."""
    return Joint((a, b))


def count(n: int, group: Collection[K]) -> Quorum[K]:
    """Any ``n`` of the group. Two such sets may be disjoint: for samples and for "all", not for exclusion."""
    return Weights(dict.fromkeys(group, 1), n)
