"""One member, as another one believes it to be: what the page shows of the cell at which a person looks.  Spec: gossip 5.4, 5.9, 10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from holdfast.errors import NotAMember, shown
from holdfast.features.gossip.field import STATUSES, CellStatus

if TYPE_CHECKING:
    from holdfast.features.gossip.protocol.node import GossipNode


class SuspicionAnswer(Struct, frozen=True):
    """A suspicion that is open."""

    accusers: tuple[str, ...]  # the first, and those that confirmed it; whose probes failed
    seconds: float  # since it began
    ends_in: float  # seconds until the member is buried unless it is heard of
    shortest: float  # seconds that it takes when enough members confirm it
    longest: float  # seconds that it takes when none does
    called: bool  # the last call went out


class RowAnswer(Struct, frozen=True):
    """Something that a member publishes."""

    name: str
    value: str  # as text, or as hexadecimal digits after "0x"
    bytes: int


class GossipMemberAnswer(Struct, frozen=True):
    """One member, as this agent believes it to be."""

    name: str
    boot: int
    address: str
    status: CellStatus
    me: bool
    place: int | None  # in the field
    inc: int  # how often it has spoken for itself
    settled: bool  # all others are held to list it
    unhealthy: float  # suspicions of late, decayed; a false death counts twice
    unhealthy_own: float  # of these, by this agent's own probes
    false_deaths: float  # how often it was held to be dead by mistake, decayed
    heard: float | None  # seconds since this agent heard from it directly
    rtt: float | None  # seconds, of this agent's probes; null: none of the last 256 probes was its own
    one_way: int  # probes in a row that only a helper's way answered
    suspicion: SuspicionAnswer | None
    accusers: tuple[str, ...]  # of a dead member: whose probes failed
    gone_for: float | None  # seconds since it died or left, as far as the group knows
    equal: bool | None  # whether its list was equal to this one when they were last compared; null: not lately
    compared: float | None  # seconds since then
    rows: tuple[RowAnswer, ...]


def closeup(node: GossipNode, name: str, place: int | None) -> GossipMemberAnswer:
    """Raises ``NotAMember`` for a name that this agent does not remember."""
    core = node.core
    found, now = node.entry(name), core.host.now
    if found is None:
        raise NotAMember(f"{shown(name)} is neither in the list nor remembered")
    stone, heard, look = node.table.tombstones.get(name), core.heard.get(name), node.compared.get(name)
    life = found.id
    return GossipMemberAnswer(
        name=name,
        boot=life.boot,
        address=str(found.address),
        status=STATUSES[found.status],
        me=life == core.me,
        place=place,
        inc=found.inc,
        settled=node.settled(life),
        unhealthy=node.unhealthy(life),
        unhealthy_own=node.unhealthy(life, "own"),
        false_deaths=node.unhealthy(life, "false_positives"),
        heard=None if heard is None or life == core.me else now - heard,
        rtt=node.distances.rtt(life),
        one_way=node.one_way.get(name, 0),
        suspicion=_suspicion(node, name),
        accusers=() if found.listed else core.accusers.get(name, ()),
        gone_for=None if stone is None else now - stone.since,
        equal=None if look is None else not look.differing,
        compared=None if look is None else now - look.at,
        rows=tuple(_row(row, value) for row, value in sorted(found.rows.items())),
    )


def _suspicion(node: GossipNode, name: str) -> SuspicionAnswer | None:
    found, now = node.suspicions.get(name), node.core.host.now
    if found is None:
        return None
    return SuspicionAnswer(
        tuple(found.confirmers), now - found.start, max(0.0, found.end_at - now), found.floor, found.ceiling, found.called
    )


def _row(name: str, value: bytes) -> RowAnswer:
    """A peer published it: text is shown as text only if all of it can be seen."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    if not text.isprintable() or (value and not text):
        text = f"0x{value.hex()}"
    return RowAnswer(name, text, len(value))
