"""How often a rumour is told and a member is probed.  Spec: gossip 7 (G8, G9), 5.3, 5.6."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Any

from holdfast.features.gossip.lab.members import Change
from holdfast.features.gossip.lab.watch import GossipChecker, Life
from holdfast.features.gossip.protocol.messages import Rumour
from holdfast.lab.world import World

SPARE = 1  # G8


class Budget(GossipChecker):
    """G8: each rumour is told at most ceil(lambda log10(n_max + 1)) + 1 times by one member.

    A rumour about its receiver, and what a member says of itself, answer directly (5.4, 5.5) and are not counted; the queue's own count is
    looked at for these.
    """

    name = "G8 budget"

    def acted(self, world: World, life: Life) -> None:
        sends = life.node.sends
        if not sends:
            return
        counts: Counter[Any] = life.kept.setdefault(self.name, Counter())
        limit = 0
        for name, message in sends:
            rumours: tuple[Rumour, ...] = getattr(message, "rumours", ())
            for rumour in rumours:
                limit = limit or life.node.config.sends(life.n_max) + SPARE
                if rumour.id.name not in (name, life.me.name):
                    self._count(life, counts, rumour, limit)
                item = life.node.queue.get(rumour.id.name)
                if item is not None and item.sends > limit:
                    self.fail(f"{life} told {_shown(rumour)} {item.sends} times; the limit is {limit}")

    def _count(self, life: Life, counts: Counter[Any], rumour: Rumour, limit: int) -> None:
        key = (rumour.id, rumour.inc, rumour.status, rumour.accusers, rumour.rows_at, rumour.rows is None)
        counts[key] += 1
        if counts[key] > limit:
            self.fail(f"{life} told {_shown(rumour)} {counts[key]} times; the limit is {limit}")

    def changed(self, world: World, life: Life, change: Change) -> None:
        """What was reaped may be told of again."""
        if change.new is None:
            counts: Counter[Any] = life.kept.setdefault(self.name, Counter())
            for key in [key for key in counts if key[0].name == change.name]:
                del counts[key]


def _shown(rumour: Rumour) -> str:
    return f"{rumour.status.name} {rumour.id} at {rumour.inc}"


class Probed:
    """Who was probed when, in ticks of one member; the one that waits longest comes first."""

    def __init__(self) -> None:
        self.ticks = 0
        self.since: OrderedDict[str, int] = OrderedDict()
        self.bag = 0


class ProbeGap(GossipChecker):
    """G9: a listed member is probed at least every 2n-1 ticks (shuffle), every 2B-1 (bag of size B)."""

    name = "G9 probe-gap"

    def began(self, world: World, life: Life) -> None:
        probed = life.kept[self.name] = Probed()
        probed.since.update((entry.id.name, 0) for entry in life.node.table.entries() if entry.listed and entry.id != life.me)

    def changed(self, world: World, life: Life, change: Change) -> None:
        probed: Probed = life.kept[self.name]
        if change.new is None or not change.new.listed:
            probed.since.pop(change.name, None)
        elif change.new.id != life.me and change.name not in probed.since:
            probed.since[change.name] = probed.ticks

    def acted(self, world: World, life: Life) -> None:
        prober = life.node.prober
        probed: Probed = life.kept[self.name]
        if prober.ticks == probed.ticks:
            return
        probed.ticks = prober.ticks
        probe = prober.probe
        if probe is not None and probe.target.name in probed.since:
            probed.since[probe.target.name] = prober.ticks
            probed.since.move_to_end(probe.target.name)
        if probed.since and life.node.config.target != "spatial":
            name, since = next(iter(probed.since.items()))
            most = self._most(life, probed)
            if prober.ticks - since > most:
                self.fail(f"{life} has not probed {name} for {prober.ticks - since} periods; the limit is {most}")

    def _most(self, life: Life, probed: Probed) -> int:
        if life.node.config.target == "shuffle":
            return 2 * life.n_max - 1
        return 2 * life.node.config.bag_cap * life.n_max - 1
