"""Lists of gossip, recorded once and replayed under every variant: what the paper's simulator reads.  Spec: election 8 (common setup).

A group gossips in a field of radios with the profile ``paper``. After a warm-up the lists of all members, and how unhealthy others look
there, are sampled every half second. No member fails, so whatever a list lacks is a false verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

from msgspec import Struct

from holdfast.features.election.lab.fields import HOP, Drops, field
from holdfast.features.election.lab.lists import Board, Director, ScriptedLists
from holdfast.features.gossip.lab.groups import GossipGroup, names_of
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.host import Member, NodeId
from holdfast.lab.host import LabHost
from holdfast.lab.topology import Point
from holdfast.lab.world import World

WARM_UP, STEP, HEALTH_STEP = 60.0, 0.5, 2.5  # seconds


class FieldGroup(GossipGroup):
    """Members that gossip in a field of radios, formed; messages are lost end to end."""

    def __init__(self, seed: int, kind: str, members: int, drop: float, by_rank: Sequence[str], profile: Profile) -> None:
        names = names_of(members)
        assert sorted(by_rank) == names
        topology = field(kind, names, Random(f"{seed}/{kind} {members}"))
        super().__init__(seed, profile, link=HOP, topology=topology)
        self.drops = Drops(drop, by_rank)
        self.world.network.set_pair_loss(self.drops.pair)
        self.form(names)


class Trace(Struct):
    """What the lists of one group were. Members are numbers: places in ``names``."""

    kind: str
    drop: float
    names: list[str]
    points: dict[str, Point]
    by_rank: list[str]
    step: float = STEP
    lacking: list[dict[int, frozenset[int]]] = []  # by sample: viewers that lack some member, and which
    health: list[list[dict[int, float]]] = []  # by sample of health, by viewer: who looks unhealthy there

    @property
    def seconds(self) -> float:
        return len(self.lacking) * self.step

    def c(self, since: float, until: float) -> int:
        """By how many lists some member was lacked at some time of this span (the c that Theorem 1 needs)."""
        lackers: dict[int, set[int]] = {}
        for number in range(int(since / self.step), min(len(self.lacking), int(until / self.step) + 1)):
            for viewer, missing in self.lacking[number].items():
                for member in missing:
                    lackers.setdefault(member, set()).add(viewer)
        return max(map(len, lackers.values()), default=0)


def record(seed: int, kind: str, members: int, drop: float, by_rank: Sequence[str], seconds: float, *, warm_up: float = WARM_UP) -> Trace:
    """One trace. ``by_rank``: names, the best-ranked first."""
    group = FieldGroup(seed, kind, members, drop, by_rank, profiles.paper(1.0))
    names = names_of(members)
    trace = Trace(kind, drop, names, dict(group.points), list(by_rank))
    lives = [group.host(name).me for name in names]
    nodes = [group.node(name) for name in names]
    same: dict[frozenset[int], frozenset[int]] = {}  # Most viewers lack the same members, and for many samples.
    group.run(warm_up)
    while trace.seconds < seconds:
        group.run(STEP)
        if len(trace.lacking) % round(HEALTH_STEP / STEP) == 0:
            trace.health.append([_unhealthy(node, lives) for node in nodes])
        trace.lacking.append({viewer: same.setdefault(missing, missing) for viewer, missing in _lacking(nodes, lives).items()})
    return trace


def _lacking(nodes: Sequence[GossipNode], lives: Sequence[NodeId]) -> dict[int, frozenset[int]]:
    found = {}
    for viewer, node in enumerate(nodes):
        if len(node.members()) < len(lives):
            found[viewer] = frozenset(number for number, life in enumerate(lives) if not node.table.lists(life))
    return found


def _unhealthy(node: GossipNode, lives: Sequence[NodeId]) -> dict[int, float]:
    values = ((number, node.unhealthy(life)) for number, life in enumerate(lives))
    return {number: round(value, 3) for number, value in values if value > 0}


class Replay(Director):
    """Shows each member of a world what a trace says, from some time on; past its end it begins again."""

    def __init__(self, world: World, board: Board, trace: Trace, begin: float = 0.0) -> None:
        self.trace, self._begin = trace, begin
        self._sample, self._health_sample = -1, -1
        self._hosts: list[LabHost] = []
        self._all: dict[str, Member] = {}
        self._version = -1
        super().__init__(world, board, period=trace.step)

    def look(self) -> None:
        """As others do, but only where something changed."""
        self._looking = False
        world, trace = self.world, self.trace
        if not self._hosts:
            self._hosts = [world.nodes[name] for name in trace.names]
            self.board.settled.update(host.me for host in self._hosts)
        at = self._begin + world.now
        sample = int(at / trace.step) % len(trace.lacking)
        before = trace.lacking[self._sample] if self._sample >= 0 else {}
        fresh = self._version != self.board.version
        if fresh:
            self._all, self._version = {host.me.name: self.member(host) for host in self._hosts}, self.board.version
        now = trace.lacking[sample]
        for number, host in enumerate(self._hosts):
            if host.running and (fresh or self._sample < 0 or before.get(number) != now.get(number)):
                self._show(host, now.get(number, frozenset()))
        self._sample = sample
        self._show_health(int(at / HEALTH_STEP) % len(trace.health))

    def wanted(self, viewer: LabHost) -> dict[str, Member]:
        raise AssertionError("a replay compares samples")

    def _show(self, host: LabHost, missing: frozenset[int]) -> None:
        names = self.trace.names
        others = self._all if not missing else {name: each for name, each in self._all.items() if name not in {names[i] for i in missing}}
        self.world.step(host, partial(host.node.use(ScriptedLists).show, others))

    def _show_health(self, sample: int) -> None:
        if sample == self._health_sample:
            return
        self._health_sample = sample
        for host, values in zip(self._hosts, self.trace.health[sample], strict=True):
            host.node.use(ScriptedLists).health = {self._hosts[number].me: value for number, value in values.items()}
