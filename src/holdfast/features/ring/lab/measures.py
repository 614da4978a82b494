"""What experiments count in a ring: who is in, who had to leave and whether that had to be, and how values spread.  Spec: ring 8."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from math import ceil
from statistics import quantiles

from msgspec import Struct

from holdfast.events import Event
from holdfast.features.ring.lab.rings import PAPER_LINK, Rings
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Departed
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.pair import Pair
from holdfast.features.ring.protocol.ring import RingNode
from holdfast.features.ring.protocol.rules import Rules
from holdfast.lab.host import LabHost
from holdfast.lab.links import Uniform

WARM_UP = 4  # in T_l: sessions run, and static arbitrators are older than T_arb, before which they accept no accuser (Algorithm 1)

assert isinstance(PAPER_LINK.delay, Uniform)
DELAY: Uniform = PAPER_LINK.delay  # of every message here


def formed(seed: int, members: int, config: RingConfig, rules: Rules | None = None) -> Rings:
    """A stable ring that has run for a while. Who leaves it stays out, so that every departure can be counted."""
    rings = Rings(seed, config, rules=rules)
    rings.start_arbitrators()
    rings.form([f"n{i}" for i in range(members)])
    for ring in rings.members.values():
        ring.lifecycle.stop()
    rings.world.run(WARM_UP * config.lease)
    return rings


def draw_members(rings: Rings, count: int) -> list[str]:
    """Random ones of those who are members now."""
    alive = [ring.raw.me.name for ring in rings.alive]
    return rings.world.random.sample(alive, min(count, len(alive)))


class Exit(Struct, frozen=True):
    """A member that was healthy and had to leave."""

    name: str
    at: float  # true time
    reason: str
    because: str  # which group had no live majority; "" if there is none to blame


class Exits:
    """All that leave from now on without having crashed, in order."""

    def __init__(self, rings: Rings) -> None:
        self._rings = rings
        self.seen: list[Exit] = []
        rings.world.listeners.append(self._on_event)

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, Departed) and event.was_member:
            because = self._because(self._rings.members[host.me.name])
            self.seen.append(Exit(host.me.name, self._rings.world.now, event.reason, because))

    def _because(self, leaver: RingNode) -> str:
        """A suspected peer whose arbitrator group cannot decide with those who live; or, about an orphan, all that are listed cannot (D19).

        The pairs are still there.
        """
        live = {ring.id for ring in self._rings.alive} | {leaver.id}
        hopeless = [pair for pair in leaver.pairs.values() if pair.susp is not None and is_lost(leaver, pair, live)]
        if hopeless:
            return _described(hopeless[0], live)
        listed = leaver.list.ids
        here = sum(each in live for each in listed)
        return f"{here} of {len(listed)} listed members alive" if leaver.neighbours.unmet and 2 * here <= len(listed) else ""


def is_lost(ring: RingNode, pair: Pair, live: AbstractSet[RingId]) -> bool:
    """A member that needs a decision about this peer cannot get one: the group has no live majority."""
    return not ring.arbitration.need(pair).enough(live)


def _described(pair: Pair, live: AbstractSet[RingId]) -> str:
    groups = [pair.cfg] if pair.next is None else [pair.cfg, pair.next[1]]
    shares = " and ".join(f"{len(group & live)} of {len(group)}" for group in groups)
    return f"{shares} arbitrators alive"


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them do not exceed."""
    assert 0 < share <= 1
    return sorted(values)[ceil(share * len(values)) - 1]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
