"""A member of a ring: one state machine, wired from its parts.  Spec: ring 2, 5, 5.5, 10; paper 000.

The parts, each in its file: leases, arbitration, opening and groups of pairs, neighbours, the door and the joiner, the member list,
fencing, orphans, founding, the lifecycle. This file holds what they share and the order in which things happen: whatever
comes in, the own deadline is looked at first, and what a change of the view asks for is done last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from math import inf

from msgspec.structs import replace

from holdfast.errors import ConfigError
from holdfast.events import Event, Expelled, MembershipEvent
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.arbitration import Arbitration
from holdfast.features.ring.protocol.changes import Changes, Publishing
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.departing import Departing
from holdfast.features.ring.protocol.dispatch import handlers_of, is_meant_for
from holdfast.features.ring.protocol.door import Door
from holdfast.features.ring.protocol.facts import BecameMember, Departed
from holdfast.features.ring.protocol.fencing import Fencing
from holdfast.features.ring.protocol.forgetting import forget
from holdfast.features.ring.protocol.founding import Founding
from holdfast.features.ring.protocol.freshness import Freshness
from holdfast.features.ring.protocol.groups import Groups
from holdfast.features.ring.protocol.guard import Guarded
from holdfast.features.ring.protocol.ids import Peer, RingId, owner_of, position_of
from holdfast.features.ring.protocol.join import Joiner
from holdfast.features.ring.protocol.lease import Leases
from holdfast.features.ring.protocol.lifecycle import Lifecycle
from holdfast.features.ring.protocol.memberlist import MemberList
from holdfast.features.ring.protocol.metrics import metrics
from holdfast.features.ring.protocol.neighbours import Neighbours
from holdfast.features.ring.protocol.news import News
from holdfast.features.ring.protocol.opening import Opening
from holdfast.features.ring.protocol.orphans import Orphans
from holdfast.features.ring.protocol.pair import Pair, State
from holdfast.features.ring.protocol.proposal import Proposals
from holdfast.features.ring.protocol.rules import Rules
from holdfast.features.ring.protocol.scouting import Scouting
from holdfast.host import Address, Host, Member, Message, NodeId, Ownership, Timer
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.phase import Questions

PART = "ring"  # of the journal; its keys are CACHE (``lifecycle``), PROMISED (``founding``) and JUMPED (``fencing``)
ID_BITS = 64

Status = Enum("Status", ["NEW", "JOINING", "MEMBER", "LEFT"])  # LEFT is final for an id, not for the process


class RingNode:
    """One process on a ring. Offers ``Standing`` and ``Keyed``."""

    former_until: float | None = None  # nothing that a former life told is used after that; None: it is not known (F6)

    def __init__(
        self, host: Host, config: RingConfig, broadcast: Broadcast, exchange: Exchange, *,
        rules: Rules | None = None, sole_life: bool = False,
    ) -> None:  # fmt: skip
        """``broadcast`` and ``exchange`` are the node's: they carry the member list, and what other machines share beside it.

        ``sole_life``: the caller holds the lock of the state directory, so every former life of this name is over (F6)."""
        self.raw = host
        self.config = config
        self.rules = Rules() if rules is None else rules
        self.sole_life = sole_life
        self.host = Guarded(host, self._enter)
        self.storage = host.storage.part(PART)
        self.knocks = Questions()  # Discover, of all parts that ask it
        self.counts: Counter[str] = Counter()
        self.broadcast, self.exchange = broadcast, exchange
        # Who we are.
        self.status = Status.NEW
        self.ring = 0
        self.id = RingId(0, 0)
        self.me = Peer(self.id, host.me, host.address)
        self.since = host.now  # when this membership began
        self.since_wall = 0.0
        # What we know.
        self.changes = Changes(self)
        self.list = MemberList(self.exchange, host, 0, self.changes, config.tombstone_ttl)
        self.pairs: dict[RingId, Pair] = {}
        self.epochs: dict[RingId, int] = {}
        self.condemned: dict[RingId, float] = {}  # decided by us, not yet declared -> when we stopped acking
        self.condemnations = 0  # changes of it
        self.nbrs: tuple[RingId, ...] = ()
        self.nbr_peers: tuple[Peer, ...] = ()
        self.view = 0  # hash of nbrs
        self.dirty = False  # the view has changed; what follows from it is done at the end of the callback
        self._bound = inf  # not after safe_until
        self.safe_for_least = inf  # seconds that were left when the deadline was closest, as seen once per T_l
        self._version = 0
        self._subscribers: list[Callable[[MembershipEvent], None]] = []
        self._tick: Timer | None = None
        # The parts.
        self.publishing = Publishing(self)
        self.freshness = Freshness(self)
        self.leases = Leases(self)
        self.arbitration = Arbitration(self)
        self.opening = Opening(self)
        self.groups = Groups(self)
        self.neighbours = Neighbours(self)
        self.door = Door(self)
        self.joiner = Joiner(self)
        self.fencing = Fencing(self)
        self.news = News(self)
        self.orphans = Orphans(self)
        self.proposals = Proposals(self)
        self.departing = Departing(self)
        self.scouting = Scouting(self)
        self.founding = Founding(self)
        self.lifecycle = Lifecycle(self)
        self._on = handlers_of(self)

    # Machine.

    @property
    def handles(self) -> Sequence[type[Message]]:
        return tuple(self._on)

    @property
    def fingerprint(self) -> bytes:
        return self.config.fingerprint if self.rules.fingerprint else b""

    def start(self) -> None:
        self._enter(self.lifecycle.start)

    def stop(self) -> None:
        """The node ends. A polite member calls ``leave`` first and waits for ``left``."""
        self.lifecycle.stop()
        self.founding.cancel()
        self.scouting.cancel()
        self.joiner.cancel()
        self._end_pairs()
        if self._tick is not None:
            self._tick.cancel()

    def on_away(self, seconds: float) -> None:
        """The guard does the rest; only a candidate has promised nothing yet and starts again (D6)."""
        if self.is_joining and seconds > self.config.oversleep:
            self._enter(partial(self.joiner.fail, "overslept"))
        else:
            self._enter(_nothing)

    def on_message(self, source: NodeId, message: Message) -> None:
        if self.raw.now >= self._bound or self.dirty:
            self._begin_turn()
        if not isinstance(message, m.OfRing) or is_meant_for(self, source, message):
            self._on[type(message)](source, message)
        if self.dirty:
            self._settle()

    # What users ask for.

    def found(self) -> None:
        """Begin a ring of one. No seed is asked."""
        if self.is_member or self.is_joining:
            raise ConfigError("found: this process is in a ring already, or about to join one; leave first")
        self._draw_id()
        self.lifecycle.wanted = True
        self.ring = self.raw.random.getrandbits(ID_BITS)
        self.become_member((), self.fencing.first(), founded=True)

    def join(self) -> None:
        """Knock at the seeds until one opens; come back after a forced departure."""
        if not self.config.seeds:
            raise ConfigError("seeds: none; accepted are the addresses of 1 or more members")
        self.lifecycle.join()

    def leave(self) -> None:
        """Go politely. Peers take over at once, without an arbitration."""
        self.lifecycle.stop()
        self.founding.cancel()
        self.scouting.cancel()
        if self.is_joining:
            self._enter(partial(self.joiner.fail, "left"))
        else:
            self._enter(partial(self.depart, "graceful"))

    @property
    def left(self) -> bool:
        """Nothing remains to be said: the process may end."""
        return not self.is_member and not self.is_joining and not self.departing.speaking

    def owner(self, key: str | bytes | int) -> Member | None:
        """The member closest to a key: a hint, from the own list."""
        owner = owner_of(self.list.ids, position_of(key))
        return None if owner is None else self.list.member(owner)

    def owns(self, key: str | bytes | int) -> Ownership | None:
        """This process may act for the key until the given instant. None: it may not, or not yet; ask again in a round trip."""
        self._enter(_nothing)
        return self.fencing.owns(position_of(key))

    # Membership.

    @property
    def version(self) -> int:
        return self._version + self.list.version

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        listed = self.list.members() if self.is_member else ()
        if topic is None or topic in (self.list.topic, self.news.topic):
            return listed
        return tuple(member for member in listed if f"topic:{topic}" in member.rows)

    def get(self, name: str) -> Member | None:
        return self.list.named(name) if self.is_member else None

    def publish(self, row: str, value: bytes | None) -> None:
        self.publishing.publish(row, value)

    def subscribe(self, listener: Callable[[MembershipEvent], None]) -> None:
        self._subscribers.append(listener)

    def usable_until(self) -> float:
        return self.safe_until

    # Standing, Keyed: what else an agent asks.

    @property
    def wanted(self) -> bool:
        return self.lifecycle.wanted

    @property
    def is_over(self) -> bool:
        return False  # It may come back under another id.

    @property
    def waits_for(self) -> str:
        return "" if self.is_member else self.lifecycle.waits_for

    @property
    def known(self) -> tuple[Address, ...]:
        return self.lifecycle.known

    @property
    def rows(self) -> Mapping[str, bytes]:
        return self.publishing.rows

    def seeds(self, addresses: tuple[Address, ...]) -> None:
        self.config = replace(self.config, seeds=addresses)

    def positions(self) -> Mapping[NodeId, int]:
        return {entry.node: ring_id.pos for ring_id, entry in self.list.entries.items()}

    def metrics(self) -> Mapping[str, float]:
        return metrics(self)

    def withdrawn(self) -> None:
        self.fencing.withdrawn()

    # Deadlines.

    @property
    def is_member(self) -> bool:
        return self.status is Status.MEMBER

    @property
    def is_joining(self) -> bool:
        return self.status is Status.JOINING

    @property
    def is_seed(self) -> bool:
        return self.raw.address in self.config.seeds

    @property
    def safe_until(self) -> float:
        """No member treats this one as gone before this instant, on its own clock; -inf when it is none."""
        if not self.is_member:
            return -inf
        lease, t_a, until = self.config.lease, self.config.t_a, inf
        for pair in self.pairs.values():  # A loop, not min() of a generator: every turn and every call passes here.
            if pair.state is not State.DORMANT and (deadline := pair.deadline(lease, t_a)) < until:
                until = deadline
        return until

    @property
    def valid(self) -> bool:
        return self.is_member and (self.raw.now < self.safe_until or not self.rules.guard)

    @property
    def settled(self) -> bool:
        return self.neighbours.settled

    def claims(self, pos: int) -> bool:
        """Owner of this position, as far as the ring is concerned: valid, settled and closest."""
        # Closest comes first: of most keys another member is the owner, and the rest costs a look at every pair.
        return owner_of(self.list.ids, pos) == self.id and self.valid and self.settled

    def bind(self, pair: Pair) -> None:
        """This pair is obliged now, or suspected: its deadline counts."""
        self._bound = min(self._bound, pair.deadline(self.config.lease, self.config.t_a))

    def _begin_turn(self) -> None:
        """The bound may be old: leases have been renewed since. Only if the deadline itself has passed it is over (F9).
        And a rumour may have changed the list: no client is answered from the view of before."""
        self._bound = self.safe_until if self.is_member else inf
        if self.is_member and self.raw.now >= self._bound and self.rules.guard:
            self.depart(self.arbitration.on_deadline())
        self._settle()

    def _enter(self, callback: Callable[[], None]) -> None:
        """Every timer and every call passes here."""
        if self.raw.now >= self._bound or self.dirty:
            self._begin_turn()
        callback()
        if self.dirty:
            self._settle()

    def _settle(self) -> None:
        while self.dirty and self.is_member:
            self.dirty = False
            self.neighbours.recompute()
        self.dirty = False
        if self.is_member:
            self.door.invite()

    # Beginning and end of a membership.

    def begin_join(self, to: Sequence[Address | NodeId], attempt: int) -> None:
        self._draw_id()
        self.status = Status.JOINING
        self.joiner.start(to, attempt)

    def give_up(self, why: str) -> None:
        """An attempt to join failed; the joiner has said so to whom it concerned."""
        self.status = Status.LEFT
        self.raw.emit(Departed(self.id, why, was_member=False))
        self.departing.keep(why, was_member=False)
        self._end_pairs()
        self.lifecycle.on_failed(why)

    def become_member(self, view: Sequence[Peer], gen: int, *, founded: bool = False) -> None:
        self.status = Status.MEMBER
        self.since, self.since_wall = self.raw.now, self.raw.wall()
        self._version += self.list.version + 1
        self.list = MemberList(self.exchange, self.raw, self.ring, self.changes, self.config.tombstone_ttl)
        self.list.open()
        self.news.open(self.ring)
        self.condemned, self.condemnations = {}, 0
        self.fencing.begin(gen)
        self._bound = self.safe_until
        self.raw.emit(BecameMember(self.ring, self.id, founded))
        self.lifecycle.on_member()
        self.founding.forget()
        self.list.hear(peer for peer in view if peer.id != self.id)
        self.publishing.tell()
        for pair in self.pairs.values():
            self.list.compare_with(pair.peer)
            break
        self.dirty = True
        self._tick = self.host.after(self.config.lease * self.raw.random.uniform(0.5, 1.0), self._on_tick)

    def depart(self, reason: str) -> None:
        """Out, before any member is told (5.5)."""
        if not self.is_member:
            return
        self.status = Status.LEFT
        self._version += 1  # Machines on this membership have no peers any more.
        self.counts[f"departed: {reason}"] += 1
        self.raw.emit(Departed(self.id, reason, was_member=True))
        if reason != "graceful":
            self.announce(Expelled(reason))
        self.departing.keep(reason, was_member=True)
        last_known = (self.list.entries[each].address for each in (*self.nbrs, *self.list.ids) if each in self.list.entries)
        self.scouting.suspects(last_known, forced=reason != "graceful")
        self._end_pairs()
        self.list.close()
        self.news.close()
        self.lifecycle.on_departed(reason)

    def _draw_id(self) -> None:
        pos = position_of(self.raw.me.name) if self.config.position is None else self.config.position
        self.id = RingId(pos, self.raw.random.getrandbits(ID_BITS) or 1)  # 0 is the id of no member
        self.me = Peer(self.id, self.raw.me, self.raw.address)
        self.ring = 0
        self._end_pairs()

    def _end_pairs(self) -> None:
        for pair in self.pairs.values():
            pair.quiet()
        self.pairs = {}
        self.epochs = {}
        self.condemned = {}
        self.door.reset()
        self.fencing.gens.clear()
        self.opening.retry_at.clear()
        self.orphans.reset()
        self.proposals.reset()
        self.neighbours.reset()
        self.arbitration.hearing.reset()
        self._bound = inf
        if self._tick is not None:
            self._tick.cancel()

    # What the parts share.

    def head(self, to: RingId) -> tuple[int, RingId, int]:
        """How every message to a membership begins."""
        return self.ring, self.id, to.inc

    def holds(self, pair: Pair) -> bool:
        return self.pairs.get(pair.peer.id) is pair

    def meet(self, peer: Peer) -> None:
        if self.is_member:
            self.list.meet(peer)
        else:
            self.raw.meet(peer.node, peer.address)

    def condemn(self, peer: RingId, stop: float) -> None:
        self.condemned[peer] = stop
        self.condemnations += 1
        self.dirty = True

    def announce(self, event: Event) -> None:
        """A fact for users, and for machines on this membership."""
        self.raw.emit(event)
        if isinstance(event, MembershipEvent):
            for subscriber in tuple(self._subscribers):
                subscriber(event)

    def _on_tick(self) -> None:
        """Every T_l: what no message brings about."""
        if not self.is_member:
            return  # The guard has just ended it.
        self._tick = self.host.after(self.config.lease, self._on_tick)
        self.arbitration.trim()
        self.safe_for_least = min(self.safe_for_least, self.safe_until - self.raw.now)
        forget(self)
        self.door.expire()
        self.door.invite()
        self.lifecycle.remember()
        self.scouting.on_tick()
        self.neighbours.recompute()
        for part in (self.orphans, self.news, self.freshness):
            part.on_tick()


def _nothing() -> None:
    """A call that only wants the deadline to be looked at."""
