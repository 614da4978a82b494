"""Groups for experiments and directed runs: many members at once, joined one by one or formed beforehand.  Spec: gossip 8, D22.

Ten thousand members that join take longer than most of what is measured in them. ``form`` gives all of them one table to begin
with, in which each is listed and settled. A test compares such a group with one that was joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from msgspec.structs import replace

from holdfast.bounds import MEMBERS_MAX
from holdfast.features.gossip.lab.checkers.entries import CalmAccuracy, LeftStaysLeft, Monotone, Ownership
from holdfast.features.gossip.lab.checkers.events import EventOrder
from holdfast.features.gossip.lab.checkers.suspicions import Bounds, LastCalls
from holdfast.features.gossip.lab.checkers.traffic import Budget, ProbeGap
from holdfast.features.gossip.lab.members import Joiner, WatchedNode, address_of, machines
from holdfast.features.gossip.lab.settled import Convergence
from holdfast.features.gossip.lab.watch import GossipWatch
from holdfast.features.gossip.protocol.distance import POSITION_ROW, position_row
from holdfast.features.gossip.protocol.lifecycle import SETTLED_ROW, YES
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.features.gossip.protocol.table import EMPTY, Base, entry
from holdfast.host import Host, Machine, NodeId
from holdfast.lab.calm import Calm
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.topology import Point, Topology
from holdfast.lab.trace import Trace
from holdfast.lab.world import World

LINK = Link(Uniform(0.0001, 0.002))
STEP = 0.05  # seconds between two looks at whether something has come about


def checkers_of(link: Link) -> list[Checker]:
    """G1 to G13 but for G12, which an experiment measures, and G3, G4, G11, for which ``Convergence`` is asked at the end."""
    calm, watch = Calm(), GossipWatch()
    return [
        calm,
        watch,
        Monotone(watch),
        Ownership(watch),
        CalmAccuracy(watch, calm, link),
        Bounds(watch),
        LeftStaysLeft(watch),
        Budget(watch),
        ProbeGap(watch),
        EventOrder(watch),
        LastCalls(watch),
        Convergence(watch),
    ]


def names_of(members: int) -> list[str]:
    return [f"n{i:05}" for i in range(members)]


class GossipGroup:
    """A world of members. Those that ``form`` makes list all of each other from the first instant; those that ``start`` makes join."""

    def __init__(
        self,
        seed: int,
        profile: Profile,
        *,
        link: Link = LINK,
        topology: Topology | None = None,
        seeds: Sequence[str] = (),
        checkers: Iterable[Checker] = (),
        trace: Trace | None = None,
        drift: float = 0.0,
        profile_of: Callable[[str], Profile] | None = None,
        members_max: int = MEMBERS_MAX,
    ) -> None:
        """``profile_of``: of members that have another one. ``seeds``: known to those that join, and to the formed ones as well."""
        self.profile, self.seeds = profile, tuple(seeds)
        self._profile_of, self._members_max = profile_of, members_max
        checkers = list(checkers)
        self._kind: type[GossipNode] = WatchedNode if checkers else GossipNode
        self._base = EMPTY
        self._formed: set[str] = set()  # first lives that begin with the base
        self._idle: set[str] = set()
        self._drift, self._random = drift, Random(f"{seed}/drift")
        self.points: Mapping[str, Point] = {} if topology is None else topology.points
        self.world = World(seed, self._build, link=link, topology=topology, checkers=checkers, trace=trace)

    # What runs do.

    def form(self, names: Sequence[str]) -> None:
        """These are a group now, also if they are more than a table holds elsewhere."""
        self._members_max = max(self._members_max, len(names))
        self._base = Base(
            entry(NodeId(name, 1), address_of(name), 1, rows=self._rows(name), rows_at=1) for name in names
        )  # fmt: skip
        self._formed.update(names)
        for name in names:
            self.start(name)

    def start(self, name: str, *, idle: bool = False) -> None:
        """A process starts, and joins unless it is ``idle``."""
        if self._drift:
            self.world.drift.setdefault(name, 1 + self._random.uniform(-self._drift, self._drift))
        if idle:
            self._idle.add(name)
        self.world.start(name)
        self._idle.discard(name)

    def crash(self, name: str) -> None:
        self.world.crash(name)

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)

    def until(self, done: Callable[[], bool], seconds: float, step: float = STEP) -> bool:
        """Run until it is so; False if it is not within so many seconds."""
        end = self.world.now + seconds
        while not done():
            if self.world.now >= end:
                return False
            self.run(step)
        return True

    # What they see.

    def host(self, name: str) -> LabHost:
        return self.world.nodes[name]

    def node(self, name: str) -> GossipNode:
        return self.world.nodes[name].node.use(GossipNode)

    @property
    def period(self) -> float:
        return self.profile.config.period

    @property
    def alive(self) -> list[str]:
        return [name for name, host in self.world.nodes.items() if not host.dead]

    def is_whole(self, names: Iterable[str] | None = None) -> bool:
        """These, or all that are up, list each other and no other member, and suspect none."""
        wanted = sorted(self.alive if names is None else names)
        lives = [(self.world.nodes[name].me, 0) for name in wanted]
        return all([(each.id, int(each.status)) for each in self.node(name).members()] == lives for name in wanted)

    # How it is made.

    def _rows(self, name: str) -> dict[str, bytes]:
        rows = {SETTLED_ROW: YES}
        if self._position(name) is not None:
            rows[POSITION_ROW] = position_row(self.points[name])
        return rows

    def _position(self, name: str) -> Point | None:
        return self.points.get(name) if self.profile.config.target != "shuffle" else None

    def _build(self, host: Host) -> Sequence[Machine]:
        name = host.me.name
        profile = self.profile if self._profile_of is None else self._profile_of(name)
        config = replace(profile.config, seeds=tuple(map(address_of, self.seeds)), position=self._position(name))
        formed = name in self._formed and host.me.boot == 1
        found = machines(
            host, Profile(config, profile.rules), kind=self._kind, base=self._base if formed else EMPTY, members_max=self._members_max
        )
        node = found[0]
        assert isinstance(node, GossipNode)
        if formed:
            node.publish(SETTLED_ROW, YES)  # As its entry in the base says.
        return found if name in self._idle else [*found, Joiner(node)]
