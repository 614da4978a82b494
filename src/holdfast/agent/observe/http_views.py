"""An agent as the HTTP API shows it: everything here only looks.  docs/http.md."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from holdfast.agent.life.build import VERSION_ROW
from holdfast.agent.observe.http_answers import (
    GrantAnswer,
    GrantsAnswer,
    Health,
    MemberAnswer,
    MembersAnswer,
    OwnerAnswer,
    SeatAnswer,
    SeatsAnswer,
)
from holdfast.agent.observe.seat_views import seat_views
from holdfast.errors import NotAMember, shown
from holdfast.events import Event
from holdfast.host import Grant, Member, NodeId
from holdfast.local.shapes import listed_of, shape_of
from holdfast.local.verdict import verdict

if TYPE_CHECKING:
    from holdfast.agent.life.agent import Agent
    from holdfast.agent.membership import HttpSide
    from holdfast.agent.observe.agent_metrics import Lateness
    from holdfast.local.calls import SeatView

POSITIONS = 1 << 64  # that a member or a key can have
LISTED_MAX = 256  # values of one field that an event names: a buffer of events must stay small when 2,000 members come and go
EXACT_MAX = 1 << 53  # integers above are written as hexadecimal text: JavaScript would round them


def turn_of(position: int) -> float:
    return position / POSITIONS


def hex_of(position: int) -> str:
    return f"{position:016x}"


def members_of(agent: Agent, http: HttpSide) -> MembersAnswer:
    view = agent.view()
    since = http.since()
    places = dict(zip((member.id for member in view.members), view.positions, strict=False))
    members = tuple(_member(member, places.get(member.id), since, agent.me) for member in view.members)
    return MembersAnswer(view.version, view.state, members)  # type: ignore[arg-type]


def member_of(agent: Agent, http: HttpSide, name: str) -> MemberAnswer:
    view = agent.view()
    for number, member in enumerate(view.members):
        if member.name == name:
            return _member(member, view.positions[number] if number < len(view.positions) else None, http.since(), agent.me)
    raise NotAMember(f"{shown(name)} is not in the group")


def owner_of(agent: Agent, http: HttpSide, key: str) -> OwnerAnswer:
    owner = agent.side.owner(key)
    position = http.position_of(key)
    if not agent.membership.is_member:
        owner = None
    return OwnerAnswer(key, hex_of(position), turn_of(position), None if owner is None else member_of(agent, http, owner.name))


def grants_of(agent: Agent) -> GrantsAnswer:
    now = agent.host.now
    held = (grant for grant in agent.grants.all if grant.token)
    return GrantsAnswer(tuple(GrantAnswer(each.kind, each.name, each.token, each.number, max(0.0, each.published - now)) for each in held))


def seats_of(agent: Agent) -> SeatsAnswer:
    seats = agent.seats
    if seats is None:
        return SeatsAnswer((), agent.seats_missing, 0, 0, "")
    views = seat_views(agent)
    return SeatsAnswer(tuple(_seat(view) for view in views), "", seats.voting, len(views) // 2 + 1, verdict(views))


def _seat(view: SeatView) -> SeatAnswer:
    life = None if view.life is None else str(view.life)
    return SeatAnswer(view.number, view.name, view.address, life, view.own, view.state, view.wait, view.heard_ago, view.why)


def unready(agent: Agent) -> str:
    """Why this agent is not ready, in one sentence; "" if it is: a member, and its seat, if it has one, votes."""
    if agent.state != "member":
        return f"this agent is no member of its group: it is {agent.state}"
    seats = agent.seats
    if seats is None or seats.own is None or seats.state.name == "SERVING":
        return ""
    if seats.why:
        return f"seat {seats.own} of this agent does not vote: {seats.why}"
    wait = f", for {seats.keeper.wait:.1f} s more" if isfinite(seats.keeper.wait) and seats.keeper.wait > 0 else ""
    return f"seat {seats.own} of this agent does not vote: it is {seats.state.name.lower()}{wait}"


def beat_of(agent: Agent, http: HttpSide, lateness: Lateness, resident_bytes: int, streams: int) -> dict[str, Any]:
    """What the page is told four times a second, without what the membership and features add."""
    leases, drops = http.leases(), agent.host.drops
    health = Health(
        lateness=lateness.last,
        lateness_worst=lateness.worst,
        pauses=lateness.pauses,
        paused_longest=lateness.paused_longest,
        rtt=leases.rtt,
        safe_for=leases.safe_for,
        safe_for_most=leases.safe_for_most,
        lease=leases.length,
        drops=drops.total(),
        drops_most=max(drops, key=drops.__getitem__).value if drops else "",
        resident_bytes=resident_bytes,
        streams=streams,
        seats=0 if agent.seats is None else len(agent.seats.slots),
        seats_voting=0 if agent.seats is None else agent.seats.voting,
    )
    return {"at": agent.host.wall(), "state": agent.state, "health": health, "grants": grants_of(agent).grants}


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


# Events.


def fields_of(event: Event, http: HttpSide) -> dict[str, Any]:
    """The fields of an event as JSON has them: ids of the membership with the names behind them, now, while they are known."""
    values, listed = {field: getattr(event, field) for field in event.__struct_fields__}, listed_of(event)
    counts = {f"{field}_count": len(values[field]) for field in listed}
    values.update({field: values[field][:LISTED_MAX] for field in listed})
    return {field: _plain(value, http) for field, value in values.items()} | counts


def _plain(value: Any, http: HttpSide) -> Any:
    if isinstance(value, Member):
        shown = {"name": value.name, "boot": value.id.boot, "address": str(value.address), "status": value.status.name.lower()}
        return {**shown, "tags": value.tags}
    if isinstance(value, NodeId):
        return {"name": value.name, "boot": value.boot}
    if isinstance(value, Grant):
        return {"kind": value.kind, "name": value.name, "token": value.token, "number": value.number}
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int):
        return value if -EXACT_MAX < value < EXACT_MAX else f"{value:x}"
    if isinstance(value, float):
        return value if isfinite(value) else None
    if (own := http.plain(value)) is not None:
        return own
    if (shape := shape_of(value)) is not None:
        return shape.event(value)
    if isinstance(value, tuple | list):
        return [_plain(each, http) for each in value]
    return str(value)
