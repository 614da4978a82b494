"""Whom to probe next: in rounds, by distance, or from a bag.  Spec: gossip 5.3, D22; SWIM 4.3 (rounds), Medley (distance, bag).

No list of all members is kept per node where many nodes share one base: a round goes through the base by a
permutation that a key gives.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from math import ceil
from random import Random
from typing import Protocol

from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.distance import Distances
from holdfast.features.gossip.protocol.table import Entry

FEISTEL_ROUNDS = 4
REBUILD_SHARE = 8  # weights are read anew after n/8 draws, so one draw costs O(log n) and a newcomer waits no longer than that
REBUILD_MIN = 4  # draws


class Targets(Protocol):
    """A way to choose the member that is probed next."""

    def put(self, name: str) -> None:
        """Give a new name a place in the order."""

    def next(self) -> Entry | None:
        """A listed other member; None if there is none."""


def targets_of(core: Core, distances: Distances) -> Targets:
    kind = core.config.target
    return Shuffle(core) if kind == "shuffle" else Bag(core, distances) if kind == "bag" else Spatial(core, distances)


class Permutation:
    """The numbers below ``size`` in an order that a key gives, without a list of them (a Feistel network over the next square)."""

    __slots__ = ("_half", "_keys", "_mask", "size")

    def __init__(self, size: int, random: Random) -> None:
        self.size = size
        self._half = max(1, ceil(max(1, size - 1).bit_length() / 2))
        self._mask = (1 << self._half) - 1
        self._keys = tuple(random.getrandbits(32) | 1 for _ in range(FEISTEL_ROUNDS))

    def at(self, place: int) -> int:
        """What walks out of the square is walked on; it comes back within four steps on average."""
        place = self._step(place)
        while place >= self.size:
            place = self._step(place)
        return place

    def _step(self, number: int) -> int:
        left, right = number >> self._half, number & self._mask
        for key in self._keys:
            mixed = (right + key) * 0x9E3779B1 & 0xFFFFFFFF
            left, right = right, left ^ ((mixed ^ mixed >> 15) * key >> 7 & self._mask)
        return left << self._half | right


class Shuffle:
    """Every listed other once per round, in a new random order each time: no member waits longer than 2n-1 periods (SWIM 4.3)."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._base = Permutation(0, core.host.random)
        self._walked = 0  # of the base, in this round
        self._rest: list[str] = []  # of the others

    def put(self, name: str) -> None:
        """Put a name at a random place of what is left of this round."""
        self._rest.insert(self._core.host.random.randrange(len(self._rest) + 1), name)

    def next(self) -> Entry | None:
        core = self._core
        if core.n < 2:
            return None
        for _ in range(2):
            for name in self._round():
                each = core.table.get(name)
                if each is not None and each.listed and name != core.name:
                    return each
            self._refill()
        return None

    def _round(self) -> Iterator[str]:
        """Names of this round, each taken out of it. Base and newcomers are mixed: each name that is left is as likely as any other."""
        table, random = self._core.table, self._core.host.random
        while True:
            of_base = self._base.size - self._walked
            if of_base + len(self._rest) == 0:
                return
            if random.randrange(of_base + len(self._rest)) < of_base:
                self._walked += 1
                yield table.base.names[self._base.at(self._walked - 1)]
            else:
                yield self._rest.pop()

    def _refill(self) -> None:
        table, random = self._core.table, self._core.host.random
        self._base = Permutation(len(table.base.names), random)
        self._walked = 0
        self._rest = list(dict.fromkeys(table.added))
        random.shuffle(self._rest)


class Bag:
    """Drawn without replacement from a bag in which near members are several times: no gap is longer than 2B-1 periods (Medley)."""

    def __init__(self, core: Core, distances: Distances) -> None:
        self._core, self._distances = core, distances
        self._bag: list[str] = []
        self.size = 0  # B, of the present bag

    def put(self, name: str) -> None:
        self._bag.insert(self._core.host.random.randrange(len(self._bag) + 1), name)
        self.size += 1

    def next(self) -> Entry | None:
        core = self._core
        if core.n < 2:
            return None
        for _ in range(2):
            while self._bag:
                name = self._bag.pop()
                each = core.table.get(name)
                if each is not None and each.listed and name != core.name:
                    return each
            self._refill()
        return None

    def _refill(self) -> None:
        core = self._core
        others = [each for each in core.table.listed() if core.is_other(each)]
        weights = self._distances.weights(others)
        least = min(weights, default=1.0)
        self._bag = []
        for each, weight in zip(others, weights, strict=True):
            self._bag += [each.id.name] * min(core.config.bag_cap, ceil(weight / least))
        self.size = len(self._bag)
        core.host.random.shuffle(self._bag)


class Spatial:
    """Each probe is a draw of its own, nearer members are likelier: no bound, only an expectation (Medley)."""

    def __init__(self, core: Core, distances: Distances) -> None:
        self._core, self._distances = core, distances
        self._names: list[str] = []
        self._sums: list[float] = []
        self._draws_left = 0

    def put(self, name: str) -> None:
        """It is in the next reading of the weights."""

    def next(self) -> Entry | None:
        core = self._core
        if core.n < 2:
            return None
        if self._draws_left <= 0:
            self._read()
        for _ in range(2):
            while self._names:
                self._draws_left -= 1
                at = min(bisect_right(self._sums, core.host.random.random() * self._sums[-1]), len(self._names) - 1)
                each = core.table.get(self._names[at])
                if each is not None and each.listed:
                    return each
                if self._draws_left <= 0:
                    break
            self._read()
        return None

    def _read(self) -> None:
        core = self._core
        others = [each for each in core.table.listed() if core.is_other(each)]
        self._names = [each.id.name for each in others]
        self._sums = list(accumulate(self._distances.weights(others)))
        self._draws_left = max(REBUILD_MIN, core.n // REBUILD_SHARE)
