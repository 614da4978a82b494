"""What the HTTP API answers with, and how it is read from an agent.  docs/http.md; the OpenAPI document is made from these types.

Everything here only looks. Positions on the ring have 64 bits, more than a number in JavaScript holds: they are given as 16 hexadecimal
digits, and beside them as the part of a whole turn, for drawing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from holdfast.errors import NotAMember
from holdfast.events import Event
from holdfast.host import Grant, Member, NodeId
from holdfast.protocols.ring.ids import CIRCLE, RingId, position_of

if TYPE_CHECKING:
    from holdfast.agent.agent import Agent
    from holdfast.agent.metrics import Lateness
    from holdfast.kit.seats import Seats
    from holdfast.kit.slots import Slot
    from holdfast.protocols.ring.pair import Pair
    from holdfast.protocols.ring.ring import RingNode

EXACT_MAX = 1 << 53  # integers above are written as hexadecimal text: JavaScript would round them
VERSION_ROW = "holdfast:v"  # every agent publishes its version there


class Refusal(Struct, frozen=True):
    """Why a request was not served. ``error`` is a name to compare, ``text`` is for people."""

    error: str
    text: str


class MemberAnswer(Struct, frozen=True):
    """One line of the member list."""

    name: str
    boot: int
    address: str
    status: Literal["alive", "suspected", "decided"]
    tags: dict[str, str]
    version: str  # of its Holdfast, as it says; "" if it does not
    me: bool  # the agent that answers
    position: str | None  # on the ring; None: not known
    turn: float | None  # the same, from 0 up to 1
    since: float | None  # wall clock when it became a member, as it says


class MembersAnswer(Struct, frozen=True):
    """Who is here, as this agent knows it."""

    version: int  # grows with every change
    state: Literal["joining", "member", "leaving", "left"]
    members: tuple[MemberAnswer, ...]


class Place(Struct, frozen=True):
    """A position on the ring, and who sits there; the name is None where the id is not known."""

    name: str | None
    position: str
    turn: float


class PairAnswer(Struct, frozen=True):
    """This agent's side of one pair: its lease on a peer."""

    peer: str
    position: str
    turn: float
    state: Literal["dormant", "half", "active"]  # neither obliged nor entitled; obliged; both
    opener: bool
    closing: bool
    epoch: int
    session: int  # grows by one per lease period
    acked: bool  # in this session
    age: float  # seconds since the nominal start of the last session that was acked
    rtt: float | None
    relayed: int  # sessions in a row that only reached it through others
    suspected: float | None  # for so many seconds
    group: tuple[str, ...]  # the arbitrators of this pair, by name
    group_version: int
    group_pending: bool  # another group is proposed


class Condemned(Struct, frozen=True):
    """A peer against which the arbitrators decided, until it is declared out."""

    peer: str
    seconds: float  # since acking stopped
    declared_in: float  # seconds until it is declared


class Timing(Struct, frozen=True):
    """The numbers of the ring, in seconds."""

    lease: float
    arbitration: float
    wait: float  # from the end of acking to the declaration
    bound: float  # from a crash until it is out and every monitor knows: T_a + 4 T_l
    neighbours: int  # per side


class RingAnswer(Struct, frozen=True):
    """This agent's own part of the ring."""

    status: Literal["new", "joining", "member", "left"]
    ring: str
    id: str
    position: str
    turn: float
    generation: int
    settled: bool
    safe_for: float | None  # seconds for which nobody treats this agent as gone; None: no limit, or no member
    neighbours: tuple[Place, ...]
    pairs: tuple[PairAnswer, ...]
    condemned: tuple[Condemned, ...]
    timing: Timing


class OwnerAnswer(Struct, frozen=True):
    """The member closest to a key: a hint. What an agent may act for, and until when, is told on its local socket alone."""

    key: str
    position: str
    turn: float
    owner: MemberAnswer | None


class SeatAnswer(Struct, frozen=True):
    """One slot of the seats."""

    number: int
    name: str
    address: str
    life: str | None  # who sits there, as last heard
    own: bool
    state: str  # of the own one: "asking", "waiting", "serving", "silent"; of others "heard" or "unheard"
    wait: float  # seconds until the own one may promise


class SeatsAnswer(Struct, frozen=True):
    """The slots, as this agent sees them; ``why`` says what is missing when there are none."""

    seats: tuple[SeatAnswer, ...]
    why: str


class GrantAnswer(Struct, frozen=True):
    """What a client of this agent holds."""

    kind: str
    name: str
    token: int
    number: int
    left: float  # seconds until the last deadline that the client was told; 0.0: passed


class GrantsAnswer(Struct, frozen=True):
    """What the clients of this agent hold."""

    grants: tuple[GrantAnswer, ...]


class EventAnswer(Struct, frozen=True):
    """One event."""

    id: str  # what Last-Event-ID takes
    at: float  # wall-clock seconds
    name: str
    internal: bool  # a fact inside a protocol
    version: int  # of the member list after it
    fields: dict[str, Any]


class EventsAnswer(Struct, frozen=True):
    """The latest events, oldest first."""

    life: str
    last: str  # id of the newest event there is
    events: tuple[EventAnswer, ...]


class Health(Struct, frozen=True):
    """How this agent is doing. Seconds are seconds."""

    lateness: float  # of the event loop, at the last look
    lateness_worst: float
    pauses: int
    paused_longest: float
    rtt: float | None  # longest of the leases
    safe_for: float | None
    safe_for_most: float  # what it is right after every lease was renewed: 2 T_l + T_a
    drops: int
    drops_most: str  # the reason of most of them; "" without drops
    resident_bytes: int
    streams: int


class Beat(Struct, frozen=True):
    """What the page is told four times a second."""

    at: float  # wall-clock seconds
    state: str
    ring: RingAnswer
    health: Health
    grants: tuple[GrantAnswer, ...]


class TagsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Tags to set; null removes one."""

    tags: dict[str, str | None]


class Accepted(Struct, frozen=True):
    """It was done, or has begun."""

    state: str


# Reading.


def turn_of(position: int) -> float:
    return position / CIRCLE


def hex_of(position: int) -> str:
    return f"{position:016x}"


def members_of(agent: Agent) -> MembersAnswer:
    view = agent.view()
    since = _since(agent.ring)
    places = dict(zip((member.id for member in view.members), view.positions, strict=False))
    members = tuple(_member(member, places.get(member.id), since, agent.me) for member in view.members)
    return MembersAnswer(view.version, view.state, members)  # type: ignore[arg-type]


def member_of(agent: Agent, name: str) -> MemberAnswer:
    for member in members_of(agent).members:
        if member.name == name:
            return member
    raise NotAMember(f"{name!r} is not in the group")


def owner_of(agent: Agent, key: str) -> OwnerAnswer:
    position = position_of(key)
    owner = agent.ring.owner(key) if agent.ring.is_member else None
    return OwnerAnswer(key, hex_of(position), turn_of(position), None if owner is None else member_of(agent, owner.name))


def ring_of(agent: Agent) -> RingAnswer:
    ring, config = agent.ring, agent.ring.config
    safe_for = ring.safe_until - ring.raw.now
    return RingAnswer(
        status=ring.status.name.lower(),  # type: ignore[arg-type]
        ring=hex_of(ring.ring),
        id=str(ring.id),
        position=hex_of(ring.id.pos),
        turn=turn_of(ring.id.pos),
        generation=ring.fencing.gen,
        settled=ring.is_member and ring.settled,
        safe_for=safe_for if isfinite(safe_for) else None,
        neighbours=tuple(_place(ring, each) for each in ring.nbrs),
        pairs=tuple(_pair(ring, pair) for _, pair in sorted(ring.pairs.items())),
        condemned=tuple(_condemned(ring, peer, stop) for peer, stop in sorted(ring.condemned.items())),
        timing=Timing(config.lease, config.t_a, config.wait, config.t_a + 4 * config.lease, config.k),
    )


def grants_of(agent: Agent) -> GrantsAnswer:
    now = agent.host.now
    held = (grant for grant in agent.grants.all if grant.token)
    return GrantsAnswer(tuple(GrantAnswer(each.kind, each.name, each.token, each.number, max(0.0, each.published - now)) for each in held))


def seats_of(agent: Agent) -> SeatsAnswer:
    seats = agent.seats
    if seats is None:
        return SeatsAnswer((), agent.seats_missing)
    return SeatsAnswer(tuple(_seat(seats, slot) for slot in seats.slots), "")


def _seat(seats: Seats, slot: Slot) -> SeatAnswer:
    own, life = slot.number == seats.own, seats.life(slot.number)
    state = seats.state.name.lower() if own else ("unheard" if life is None else "heard")
    wait = seats.keeper.wait if own and isfinite(seats.keeper.wait) else 0.0
    return SeatAnswer(slot.number, slot.name, str(slot.address), None if life is None else str(life), own, state, wait)


def beat_of(agent: Agent, lateness: Lateness, resident_bytes: int, streams: int) -> Beat:
    ring, drops = ring_of(agent), agent.host.drops
    health = Health(
        lateness=lateness.last,
        lateness_worst=lateness.worst,
        pauses=lateness.pauses,
        paused_longest=lateness.paused_longest,
        rtt=max((pair.rtt for pair in ring.pairs if pair.rtt is not None), default=None),
        safe_for=ring.safe_for,
        safe_for_most=agent.ring.config.t_arb,
        drops=drops.total(),
        drops_most=max(drops, key=drops.__getitem__).value if drops else "",
        resident_bytes=resident_bytes,
        streams=streams,
    )
    return Beat(agent.host.wall(), agent.state, ring, health, grants_of(agent).grants)


def _member(member: Member, position: int | None, since: Mapping[NodeId, float], me: NodeId) -> MemberAnswer:
    return MemberAnswer(
        name=member.name,
        boot=member.id.boot,
        address=str(member.address),
        status=member.status.name.lower(),  # type: ignore[arg-type]
        tags=member.tags,
        version=member.rows.get(VERSION_ROW, b"").decode("utf-8", "replace"),
        me=member.id == me,
        position=None if position is None else hex_of(position),
        turn=None if position is None else turn_of(position),
        since=since.get(member.id),
    )


def _since(ring: RingNode) -> dict[NodeId, float]:
    """A member that was only heard of by a neighbour has told nobody yet when it came."""
    return {entry.node: entry.since for entry in ring.list.entries.values() if entry.since > 0 and isfinite(entry.since)}


def name_of(ring: RingNode, ring_id: RingId) -> str | None:
    if ring_id == ring.id:
        return ring.raw.me.name
    peer = ring.list.peer(ring_id)
    return None if peer is None else peer.node.name


def _place(ring: RingNode, ring_id: RingId) -> Place:
    return Place(name_of(ring, ring_id), hex_of(ring_id.pos), turn_of(ring_id.pos))


def _pair(ring: RingNode, pair: Pair) -> PairAnswer:
    now = ring.raw.now
    return PairAnswer(
        peer=pair.peer.node.name,
        position=hex_of(pair.peer.id.pos),
        turn=turn_of(pair.peer.id.pos),
        state=pair.state.name.lower(),  # type: ignore[arg-type]
        opener=pair.opener,
        closing=pair.closing,
        epoch=pair.epoch,
        session=pair.n,
        acked=pair.acked,
        age=max(0.0, now - pair.est),
        rtt=pair.rtt or None,
        relayed=pair.relayed,
        suspected=None if pair.susp is None else max(0.0, now - pair.susp),
        group=_names(ring, pair.cfg),
        group_version=pair.ver,
        group_pending=pair.next is not None,
    )


def _names(ring: RingNode, ids: Iterable[RingId]) -> tuple[str, ...]:
    return tuple(sorted(name_of(ring, each) or str(each) for each in ids))


def _condemned(ring: RingNode, peer: RingId, stop: float) -> Condemned:
    seconds = max(0.0, ring.raw.now - stop)
    return Condemned(name_of(ring, peer) or str(peer), seconds, max(0.0, ring.config.wait - seconds))


# Events.


def fields_of(event: Event, ring: RingNode) -> dict[str, Any]:
    """The fields of an event as JSON has them: ids of the ring with the names behind them, now, while they are known."""
    return {field: _plain(getattr(event, field), ring) for field in event.__struct_fields__}


def _plain(value: Any, ring: RingNode) -> Any:
    if isinstance(value, Member):
        shown = {"name": value.name, "boot": value.id.boot, "address": str(value.address), "status": value.status.name.lower()}
        return {**shown, "tags": value.tags}
    if isinstance(value, RingId):
        return {"name": name_of(ring, value), "position": hex_of(value.pos), "turn": turn_of(value.pos)}
    if isinstance(value, NodeId):
        return {"name": value.name, "boot": value.boot}
    if isinstance(value, Grant):
        return {"kind": value.kind, "name": value.name, "token": value.token, "number": value.number}
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        return value if -EXACT_MAX < value < EXACT_MAX else f"{value:x}"
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, tuple | list):
        return [_plain(each, ring) for each in value]
    return str(value)
