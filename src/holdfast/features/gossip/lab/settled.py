"""When is a group that gossips as it should be?  Spec: gossip 7 (G3, G4, G11), 1 (convergence).

Asked when faults have stopped: each process that wants to be a member is one, all list exactly the living members, none is suspected, and
the rows of each are what it publishes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from holdfast.features.gossip.lab.watch import GossipWatch, Life
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.messages import Status
from holdfast.host import NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.world import World

QUIET = 80  # periods without loss, after which all lists are equal (G4)


class Convergence(Checker):
    """G3, G4 and G11, asked by the scenario when the faults are over."""

    name = "G3 completeness"

    def __init__(self, watch: GossipWatch) -> None:
        self.watch = watch
        self.calm_at = inf  # since when nothing goes wrong any more

    def why(self, world: World) -> str:
        """What is not yet as it should be; "" if all is."""
        self.calm_at = min(self.calm_at, world.now)
        lives = self.wanted(world)
        for life in lives:
            self._complete(world, life)
        return unsettled(lives)

    def wanted(self, world: World) -> list[Life]:
        """Those that are up, and have not said goodbye."""
        lives = (self.watch.lives.get(host) for host in world.alive if host.running)
        return [life for life in lives if life is not None and not life.left and life.node.wanted]

    def _complete(self, world: World, life: Life) -> None:
        most = bound(life.node.config, life.n_max)
        for entry in life.node.table.entries():
            owner = self.watch.of(entry)
            if not entry.listed or owner is None or not owner.host.dead:
                continue
            since = world.now - max(owner.died_at, self.calm_at)
            if since > most:
                self.fail(f"{life} lists {entry.id}, which has been dead for {since:g} s; the bound is {most:g} s")


def bound(config: GossipConfig, n: int) -> float:
    """G3: (2n-1)(S+1) T + Max + sync_interval."""
    return (2 * n - 1) * (config.lhm_max + 1) * config.period + config.suspicion_max(n) + config.sync(n)


def unsettled(lives: Sequence[Life]) -> str:
    """G4 and G11 among these."""
    names = [life.me.name for life in lives]
    if len(lives) == 1 and not lives[0].node.is_member and lives[0].node.contact.other_seeds:
        return ""  # No process is left that could tell it of the group (5.7).
    for life in lives:
        if not life.node.is_member:
            return f"G4: {life} is no member{f', {life.node.waits_for}' if life.node.waits_for else ''}"
        if names.count(life.me.name) > 1:
            return f"G4: there are {names.count(life.me.name)} processes called {life.me.name}"
    published = {life.me: life.node.rows for life in lives}
    for life in lives:
        why = differs(life, published)
        if why:
            return f"{life} {why}"
    return ""


def differs(life: Life, published: Mapping[NodeId, Mapping[str, bytes]]) -> str:
    """How the list of this member differs from what is so."""
    table = life.node.table
    listed = {member.id: member.rows for member in life.node.members()}
    for other in published:
        entry = table.get(other.name)
        if entry is None or entry.id != other:
            return f"does not know {other} (G4)"
        if entry.status is not Status.ALIVE:
            return f"holds {other} to be {entry.status.name} at inc {entry.inc} (G11)"
    if listed.keys() != published.keys():
        strange = next((each for each in listed if each not in published), None)
        return f"lists {strange}, which is gone (G4)" if strange is not None else f"lists {len(listed)} of {len(published)} (G4)"
    for other, rows in published.items():
        if dict(listed[other]) != dict(rows):
            return f"holds other rows of {other} than it publishes (G4)"
    return ""
