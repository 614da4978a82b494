"""Rings for experiments in which I1 to I15 look on, and how a violation becomes part of a result.  Spec: ring 7, 8.

A violation ends a run. It is no error of the experiment but what it found, so a cell reports it and the verdict is a miss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from random import Random

from msgspec.structs import replace

from holdfast.features.ring.lab.checkers.keys import OneOwner, TokenOrder, sampled_keys
from holdfast.features.ring.lab.checkers.pairs import ConfigSkew, OneLock, OneWinner, RightNeedsDuty, UpgradeLag
from holdfast.features.ring.lab.checkers.ring import RingWatch
from holdfast.features.ring.lab.checkers.settled import unsettled
from holdfast.features.ring.lab.checkers.time import Declaration, Detection, JoinTime, Lifespan
from holdfast.features.ring.lab.checkers.views import DoubtEnds, JoinKnown, NoFalseDeclaration
from holdfast.features.ring.lab.rings import PAPER_LINK, Rings, address_of
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.ids import position_of
from holdfast.features.ring.protocol.rules import Rules
from holdfast.kit.broadcast import hops
from holdfast.lab.checker import Checker
from holdfast.lab.links import Fixed, Link, Uniform


def names_of(members: int) -> list[str]:
    return [f"n{i:02}" for i in range(members)]


def longest_way(members: int, links: Iterable[Link]) -> float:
    """Seconds after which no rumour is on its way any more, if these are all the links that there are in the run."""
    return hops(members) * max(_longest(link) for link in links)


def _longest(link: Link) -> float:
    tail = link.tail_seconds if link.tail else 0.0
    if isinstance(link.delay, Uniform):
        return link.delay.high + tail
    return link.delay.seconds + tail if isinstance(link.delay, Fixed) else inf


def invariants(watch: RingWatch, keys: tuple[int, ...], *, lossless: bool, travel: float) -> list[Checker]:
    """I1 to I15 but for I9, which is asked for at an end. ``lossless``: I12 is judged, too. ``travel``: the longest way of a rumour."""
    winners = OneWinner(watch)
    return [
        watch,
        winners,
        NoFalseDeclaration(watch),
        RightNeedsDuty(watch, winners),
        ConfigSkew(watch),
        Detection(watch),
        Declaration(watch),
        Lifespan(watch),
        OneOwner(watch),
        JoinKnown(watch),
        OneLock(watch),
        JoinTime(watch, lossless=lossless),
        TokenOrder(watch, keys),
        UpgradeLag(watch),
        DoubtEnds(watch, travel),
    ]


def keys_of(names: Sequence[str]) -> tuple[int, ...]:
    return sampled_keys(Random("keys"), [position_of(name) for name in names])


class Observed(Rings):
    """A ring formed beforehand whose members know the seeds, so that a member that is put out comes back; observed unless told
    otherwise."""

    def __init__(
        self,
        seed: int,
        names: Sequence[str],
        config: RingConfig,
        *,
        rules: Rules | None = None,
        link: Link = PAPER_LINK,
        seeds: Sequence[str] = (),
        lossless: bool = True,
        checkers: Sequence[Checker] | None = None,
        drift: float = 0.0,
        positions: Mapping[str, int] | None = None,
    ) -> None:
        """``drift``: each clock's rate is anywhere within 1 +- drift. ``positions``: of those who do not sit where their names hash to."""
        places = dict(positions or {})
        addresses = tuple(address_of(name) for name in seeds)
        looking_on = checkers
        if looking_on is None:
            looking_on = invariants(RingWatch(), keys_of(names), lossless=lossless, travel=longest_way(len(names), [link]))
        super().__init__(
            seed,
            config,
            rules=rules,
            link=link,
            seeds=seeds,
            checkers=looking_on,
            configure=lambda name, given: replace(given, seeds=addresses, position=places.get(name)),
        )
        self.names = list(names)
        for name in names if drift else ():
            self.world.drift[name] = 1 + self.world.random.uniform(-drift, drift)

    @property
    def watch(self) -> RingWatch:
        return next(each for each in self.world.checkers if isinstance(each, RingWatch))

    @property
    def whole(self) -> bool:
        """All are members, of one ring."""
        alive = self.alive
        return len(alive) == len(self.names) and len({each.ring for each in alive}) == 1

    def unsettled(self) -> str:
        """I9, asked now."""
        return unsettled(self.watch, self.world, keys_of(self.names))
