"""Rings for experiments: many members at once, joined one by one or formed beforehand.  Spec: ring 8.

Forming a ring of a thousand by joins takes longer than most of what is measured in it. ``preform`` puts members into the state that joins
lead to: each lists all, each has an ACTIVE pair with its k nearest on each side, groups are those of the formula. A
test compares it with a ring that was joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from holdfast.features.ring.protocol.config import Arbitrator, RingConfig
from holdfast.features.ring.protocol.facts import BecameMember
from holdfast.features.ring.protocol.ids import Peer, RingId, hash_of, nearest
from holdfast.features.ring.protocol.memberlist import Listed, MemberList, key_of, write
from holdfast.features.ring.protocol.pair import Pair, State
from holdfast.features.ring.protocol.ring import ID_BITS, RingNode, Status
from holdfast.features.ring.protocol.rules import Rules
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import Address, Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.trace import Trace
from holdfast.lab.world import World
from holdfast.papers.ring.protocol.central import CentralArbitrator

PAPER_LINK = Link(Uniform(0.0005, 0.002))  # 8: delays 0.5 to 2 ms
PAPER_RULES = Rules(leave_notice=False, deaf=False)


def paper_config(**changes: object) -> RingConfig:
    """The paper's flags: one try per session, by the direct way, paced joins, no early news (8)."""
    return replace(RingConfig(retry=1.0, indirect=False, join_pace=True, early_news=False), **changes)


def address_of(name: str) -> Address:
    return Address(name, PORT)


def arbitrators(count: int) -> tuple[Arbitrator, ...]:
    """Static arbitrators (CA): processes called arb0, arb1, ..."""
    return tuple(Arbitrator(f"arb{i}", address_of(f"arb{i}")) for i in range(count))


class Rings:
    """A world of ring members; ``members`` has the present life of each name. Later lives knock at the seeds."""

    def __init__(
        self,
        seed: int,
        config: RingConfig,
        *,
        rules: Rules | None = None,
        link: Link = PAPER_LINK,
        seeds: Iterable[str] = (),
        checkers: Sequence[Checker] = (),
        trace: Trace | None = None,
        configure: Callable[[str, RingConfig], RingConfig] | None = None,
    ) -> None:
        self.config, self.rules = config, rules
        self.seeds = tuple(address_of(name) for name in seeds)
        self.members: dict[str, RingNode] = {}
        self.arbitrators: dict[str, CentralArbitrator] = {}
        self._configure = configure
        self._idle: set[str] = set()  # who is not to do anything by itself when it starts
        self.world = World(seed, self._build, link=link, checkers=checkers, trace=trace)

    def _build(self, host: Host) -> Iterable[Machine]:
        name = host.me.name
        if name in {each.name for each in self.config.arbitrators}:
            self.arbitrators[name] = CentralArbitrator(host, self.config)
            return (self.arbitrators[name],)
        config = replace(self.config, seeds=() if name in self._idle else self.seeds)
        if self._configure is not None:
            config = self._configure(name, config)
        machines = standalone(host, config, rules=self.rules, sole_life=True)
        self.members[name] = machines.ring
        return machines

    def start(self, name: str, *, idle: bool = False) -> RingNode:
        """A process starts. ``idle``: it waits to be told what to do, in this life."""
        if idle:
            self._idle.add(name)
        self.world.start(name)
        self._idle.discard(name)
        return self.members[name]

    def start_arbitrators(self) -> None:
        for each in self.config.arbitrators:
            self.world.start(each.name)

    def form(self, names: Sequence[str]) -> None:
        """A stable ring of these, now."""
        preform(self.world, [self.start(name, idle=True) for name in names])

    @property
    def alive(self) -> list[RingNode]:
        """Those who are members at this instant."""
        return [ring for name, ring in self.members.items() if not self.world.nodes[name].dead and ring.valid]

    @property
    def size(self) -> int:
        return len(self.alive)


def preform(world: World, rings: Sequence[RingNode]) -> None:
    """Make these idle processes one stable ring. Sessions begin at random points of the first lease period."""
    ring = world.random.getrandbits(ID_BITS)
    for each in rings:
        each._draw_id()
    peers = {each.id: each.me for each in rings}
    ids = sorted(peers)
    k = rings[0].config.k
    nbrs = {each: nearest(ids, each, k) for each in ids}
    gen = rings[0].fencing.first()
    listed = {each: Listed(peers[each].node, peers[each].address, rings[0].raw.wall(), 1, {}) for each in ids}
    template: MemberList | None = None
    for each in rings:
        _admit(each, ring, gen)
        _fill(each.list, ids, peers, listed, template)
        template = template or each.list
        each.neighbours.adopt(tuple(peers[nbr] for nbr in nbrs[each.id]))
        for nbr in nbrs[each.id]:
            _pair(each, peers[nbr], nbrs, gen, world.random.random() * each.config.lease)
        each._bound = each.safe_until
        each.dirty = False


def _admit(each: RingNode, ring: int, gen: int) -> None:
    each.status, each.ring, each.since = Status.MEMBER, ring, each.raw.now
    each.list = MemberList(each.exchange, each.raw, ring, each.changes, each.config.tombstone_ttl)
    each.list.open()
    each.news.open(ring)
    each.fencing.begin(gen)
    each.lifecycle.wanted = True
    each.lifecycle.on_member()
    each.raw.emit(BecameMember(ring, each.id, founded=True))
    each._tick = each.host.after(each.config.lease * each.raw.random.uniform(0.5, 1.0), each._on_tick)


def _fill(
    view: MemberList, ids: list[RingId], peers: dict[RingId, Peer], listed: dict[RingId, Listed], template: MemberList | None
) -> None:
    """Each lists all. Rows are made once and shared: they never change in place."""
    view.ids, view.entries = list(ids), dict(listed)
    view._known = dict(peers)
    view.version = 1
    if template is None:
        view._names = {entry.node.name: (each,) for each, entry in listed.items()}
        view._stale = dict.fromkeys(view._names)
        view.table.quietly((key_of(each), write(entry)) for each, entry in listed.items())
    else:
        view._names, view._members = dict(template._names), template.members()
        view.table.copy(template.table)
    for peer in peers.values():
        view._host.meet(peer.node, peer.address)


def _pair(each: RingNode, peer: Peer, nbrs: dict[RingId, tuple[RingId, ...]], gen: int, phase: float) -> None:
    now = each.raw.now
    pair = Pair(peer, 1, opener=each.id < peer.id, now=now, lease=each.config.lease)
    pair.state, pair.est, pair.acked = State.ACTIVE, now, True
    pair.cfg = frozenset((each.id, peer.id, *nbrs[each.id], *nbrs[peer.id]))
    pair.peer_nbrs, pair.peer_view, pair.knows = nbrs[peer.id], hash_of(nbrs[peer.id]), each.view
    pair.peer_wants = True
    pair.pgen = pair.pseen = gen
    each.epochs[peer.id] = 1
    each.pairs[peer.id] = pair
    pair.timer = each.host.at(now + phase, partial(each.leases.begin, pair, now + phase))
