"""Is the group about to fall in two? A minimum cut of the graph of direct links that work.  Spec: limits 5.9; paper 003, 6.3.

Advice only: the server with the smallest id looks, from what agents report to it, and an operator is told. M. Stoer and
F. Wagner, *A Simple Min-Cut Algorithm*, 1997. Nearly all pairs of a group have a good link, so members that no small
cut can part are put together first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from holdfast.host import NodeId

LOOK_INTERVAL: Final = 30.0  # seconds between two looks: it is advice, and costs milliseconds of one server
MEMBERS_MAX: Final = 512  # in a larger group no server looks: the graph alone would cost it tens of milliseconds


class Choke(NamedTuple):
    """Few links hold the group together."""

    cut: int  # good links between the two sides
    smaller_side: tuple[NodeId, ...]  # sorted; of two equal ones that with the smallest id


def threshold(fan_out: int) -> float:
    """t: a cut below half of the peers that a member gossips with in an epoch slows gossip down; with b = 1 only no link at all does."""
    return max(1.0, fan_out / 2)


def worth_looking(size: int, bad_pairs: int, threshold: float) -> bool:
    """Fewer bad pairs cannot leave any member with less than ``threshold`` good links."""
    return 4 <= size <= MEMBERS_MAX and bad_pairs >= size - 1 - threshold


def find_choke(members: Sequence[NodeId], bad: Iterable[tuple[NodeId, NodeId]], threshold: float) -> Choke | None:
    """The minimum cut of the good links, if it is below ``threshold`` and leaves two members on both sides."""
    members = sorted(set(members))
    links = _good_links(members, bad)
    if not worth_looking(len(members), sum(len(members) - 1 - link.bit_count() for link in links) // 2, threshold):
        return None
    blocks = _blocks(links, threshold)
    if len(blocks) < 2:
        return None
    cut, side = _minimum_cut(blocks, links)
    if cut >= threshold or min(side.bit_count(), len(members) - side.bit_count()) < 2:
        return None
    here = tuple(member for at, member in enumerate(members) if side >> at & 1)
    there = tuple(member for at, member in enumerate(members) if not side >> at & 1)
    return Choke(cut, min(here, there, key=lambda one: (len(one), one)))


def _good_links(members: Sequence[NodeId], bad: Iterable[tuple[NodeId, NodeId]]) -> list[int]:
    """For each member the others it has a good link to, as bits. Pairs that name others are left out."""
    place = {member: at for at, member in enumerate(members)}
    everyone = (1 << len(members)) - 1
    links = [everyone & ~(1 << at) for at in range(len(members))]
    for one, other in bad:
        a, b = place.get(one), place.get(other)
        if a is not None and b is not None:
            links[a] &= ~(1 << b)
            links[b] &= ~(1 << a)
    return links


def _blocks(links: Sequence[int], threshold: float) -> list[int]:
    """Members, as bits, that no cut below ``threshold`` can part: it would cut a link for each common neighbour."""
    blocks: list[int] = []
    for at, link in enumerate(links):
        for number, block in enumerate(blocks):
            if any((link & links[peer]).bit_count() + (link >> peer & 1) >= threshold for peer in _bits(block)):
                blocks[number] |= 1 << at
                break
        else:
            blocks.append(1 << at)
    return blocks


def _minimum_cut(blocks: Sequence[int], links: Sequence[int]) -> tuple[int, int]:
    """The smallest of the cuts of all phases, and one side of it, as bits; rather one with two members on both sides."""
    sides = list(blocks)
    weights = [[_between(one, other, links) if one != other else 0 for other in blocks] for one in blocks]
    left = list(range(len(sides)))
    best: tuple[int, bool, int] | None = None
    while len(left) > 1:
        before, last, cut = _phase(left, weights)
        found = (cut, not 2 <= sides[last].bit_count() <= len(links) - 2, sides[last])
        if best is None or found[:2] < best[:2]:
            best = found
        sides[before] |= sides[last]
        left.remove(last)
        for other in left:
            if other != before:
                weights[before][other] += weights[last][other]
                weights[other][before] = weights[before][other]
    assert best is not None
    return best[0], best[2]


def _phase(left: Sequence[int], weights: Sequence[Sequence[int]]) -> tuple[int, int, int]:
    """Add the block that is tied most to those added before, until none is left: the last two, and the cut that parts the last one."""
    tied = dict.fromkeys(left, 0)
    before = last = left[0]
    cut = 0
    while tied:
        before, last = last, max(tied, key=tied.__getitem__)
        cut = tied.pop(last)
        row = weights[last]
        for other in tied:
            tied[other] += row[other]
    return before, last, cut


def _between(one: int, other: int, links: Sequence[int]) -> int:
    return sum((links[at] & other).bit_count() for at in _bits(one))


def _bits(mask: int) -> Iterable[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
