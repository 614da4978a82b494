"""Members that reach each other over several radio hops, and what crosses how many of them.  Spec: gossip 8 (S4, S5)."""

from __future__ import annotations

from random import Random

from holdfast.features.gossip.lab.groups import GossipGroup, names_of
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.lab.accounting import HopBytes
from holdfast.lab.links import Link, Uniform
from holdfast.lab.topology import scattered

REACH = 4.0  # metres
DENSITY = 0.22  # members per square metre: 49 in a square of 15 m
HOP_DELAY = Uniform(0.0, 0.05)


class RadioGroup(GossipGroup):
    """Scattered over a square, formed, with positions that all know."""

    def __init__(self, seed: int, profile: Profile, members: int, loss: float) -> None:
        names = names_of(members)
        field = scattered(names, Random(f"{seed}/field"), side=(members / DENSITY) ** 0.5, reach=REACH)
        super().__init__(seed, profile, link=Link(HOP_DELAY, loss=loss), topology=field)
        self._counted: HopBytes | None = None
        self.form(names)

    @property
    def hop_bytes(self) -> int:
        return 0 if self._counted is None else self._counted.total

    def count_hop_bytes(self) -> None:
        """From now on: the bytes of each message, once for each hop of its way."""
        self._counted = HopBytes(self.world)

    def hops(self, source: str, target: str) -> int:
        assert self._counted is not None
        return self._counted.hops(source, target)
