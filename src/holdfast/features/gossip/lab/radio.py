"""Members that reach each other over several radio hops, and what crosses how many of them.  Spec: gossip 8 (S4, S5)."""

from __future__ import annotations

from random import Random

from holdfast.features.gossip.lab.groups import GossipGroup, names_of
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.host import Message
from holdfast.lab.accounting import sealed_bytes
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
        self._hops: dict[tuple[str, str], int] = {}
        self.hop_bytes = 0
        self.form(names)

    def count_hop_bytes(self) -> None:
        """From now on: the bytes of each message, once for each hop of its way."""
        self.world.network.lose_if(self._count, self)

    def hops(self, source: str, target: str) -> int:
        if (source, target) not in self._hops:
            field = self.world.network.topology
            path = None if field is None else field.path(source, target)
            self._hops[source, target] = 0 if path is None else len(path)
        return self._hops[source, target]

    def _count(self, source: str, target: str, message: Message) -> bool:
        self.hop_bytes += sealed_bytes(source, message) * self.hops(source, target)
        return False
