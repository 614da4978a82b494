"""Every field of every message, row and record has bounds, and what is outside of them reaches no machine (bounds.py)."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Annotated, Any, NamedTuple

import msgspec
import pytest
from msgspec import Meta

from fuzz.shipped import message_types
from holdfast import bounds
from holdfast.bounds import AHEAD_MAX, CLOCK_MIN, NUMBER_MAX, highest_of, is_beyond, is_bound_broken
from holdfast.drops import Drop, Rejected
from holdfast.features.leadership.detector.messages import Lead
from holdfast.features.leadership.protocol import board as lead_board
from holdfast.features.leadership.protocol.messages import Succession
from holdfast.features.ring.protocol import memberlist
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.messages import Gen
from holdfast.features.tickets.protocol import cview, guardian
from holdfast.features.tickets.protocol.messages import Alive, Prepare, Refuse, Renew
from holdfast.features.tickets.protocol.values import NO_BALLOT, NO_LEASE, Agent, Ballot, Key, Ptr, Status, Val, Who
from holdfast.features.views.protocol.messages import ClientPing, Known, LinkPong, Propose
from holdfast.host import Address, Message, NodeId
from holdfast.kit import rows, seats, versioned
from holdfast.wire import Codec
from tests.wire.leaves import leaves

RECORDS: tuple[Any, ...] = (
    rows.Row,
    versioned.Versioned,
    memberlist.Listed,
    memberlist.Tombstone,
    cview.Entry,
    lead_board.Row,
    seats.Journal,
    guardian.Record,
    NodeId,
    Address,
)  # what travels inside of messages as bytes, or is read from a journal
NOW = 1_790_000_000.0  # seconds, 2026
ME = NodeId("a", 1_753_000_000_000)
KEY = Key("gpus", "anchor", 0)


def test_every_field_of_every_message_has_bounds() -> None:
    """F16, foundation 6: a new field without a bound fails here, however deep it is; so does one of a row or a record."""
    kinds = message_types()
    assert len(kinds) > 70
    assert {Renew, Prepare, Lead, Succession, Gen} <= set(kinds)
    unbounded = [f"{kind}{leaf.path}" for kind in (*kinds, *RECORDS) for leaf in leaves(kind) if not leaf.bounded]
    assert unbounded == []


class Unbounded(NamedTuple):
    """What the walk must find."""

    number: int
    half: Annotated[int, Meta(ge=0)]
    text: str
    data: bytes
    many: tuple[bounds.Number, ...]
    table: dict[bounds.Label, bounds.Number]
    seconds: Annotated[float, Meta(ge=0.0)]
    anything: Any
    inner: tuple[bounds.Number, tuple[str, bounds.U64]]
    fine: Annotated[tuple[bounds.Growing, ...], Meta(max_length=3)]


def test_the_walk_finds_what_has_no_bounds() -> None:
    """The test above can fail: every kind of value that has none is found."""
    found = [leaf.path for leaf in leaves(Unbounded) if not leaf.bounded]
    expected = [".number", ".half", ".text", ".data", ".many", ".table", ".seconds", ".anything", ".inner[1][0]"]
    assert found == expected


@pytest.mark.parametrize("seconds", [nan, inf, -inf, -1.0, 1e300])
def test_seconds_are_seconds(seconds: float) -> None:
    """What is no number, or no time that a process waits, is refused by the type alone."""
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.msgpack.decode(msgspec.msgpack.encode(seconds), type=bounds.Seconds)
    assert is_bound_broken(error.value)


VAL = Val(0, NO_LEASE, CLOCK_MIN, CLOCK_MIN, 0, 3, Ptr("anchor", 0, (), Agent(ME, Address("h", 1))), Status.LIVE, None, 3, Address("h", 1))
FAR = int(NOW * 1000) + AHEAD_MAX
GROWING: list[Callable[[int], Message]] = [
    lambda number: Prepare(1, KEY, Ballot(number, NO_LEASE), None),
    lambda number: Renew(KEY, Who(NO_LEASE, 5), Ballot(number, NO_LEASE), 1, 1.0),
    lambda number: Renew(KEY, Who(NO_LEASE, number), NO_BALLOT, 1, 1.0),
    lambda number: Renew(KEY, Who(NO_LEASE, 5), NO_BALLOT, number, 1.0),
    lambda number: Alive(KEY, Who(NO_LEASE, 5), 1.0, True, Ballot(number, NO_LEASE), False, False),
    lambda number: Refuse(1, NO_BALLOT, msgspec.structs.replace(VAL, fence=number), 0.0, False, 0),
    lambda number: Refuse(1, NO_BALLOT, msgspec.structs.replace(VAL, seq=number), 0.0, False, 0),
    lambda number: Propose(1, ME, number, bytes(16), 0, False, 1, ME),
    lambda number: ClientPing(1, 1, 0, 0.0, number),
    lambda number: LinkPong(1, 1, (Known(1, ME, 1, 0.0, number, 0.0),)),
]


@pytest.mark.parametrize("make", GROWING)
def test_numbers_that_no_honest_clock_comes_to_are_refused(make: Callable[[int], Message]) -> None:
    """F16: ballots, tokens, fences and versions up to ``AHEAD_MAX`` before the clock are read; beyond it, and up to the largest number
    there is, they are counted drops."""
    kind = type(make(1))
    codec = Codec([kind], wall=lambda: NOW)
    for number in (0, 1, int(NOW * 1000), FAR):
        assert codec.decode(codec.encode(ME, 1, b"", make(number))).message == make(number)
    for number, why in ((FAR + 1, Drop.FAR_AHEAD), (NUMBER_MAX, Drop.FAR_AHEAD), (NUMBER_MAX + 1, Drop.OUT_OF_BOUNDS)):
        assert _why(codec, make(number)) is why
    for number in ((1 << 64) - 1, -1):
        assert _why(codec, make(number)) is Drop.OUT_OF_BOUNDS


def test_what_was_accepted_can_be_continued() -> None:
    """A number at the very bound is continued a millisecond later: no message makes one that nobody can go on from."""
    codec = Codec([Prepare], wall=lambda: NOW + 0.001)
    last = Prepare(1, KEY, Ballot(FAR + 1, NO_LEASE), None)
    assert codec.decode(codec.encode(ME, 1, b"", last)).message == last


def test_generations_are_microseconds() -> None:
    """Ring 9, H26: their clock ticks a thousand times as often."""
    codec = Codec([Gen], wall=lambda: NOW)
    fits = Gen(1, RingId(1, 1), 1, 1, FAR * 1000, 1, False)
    assert codec.decode(codec.encode(ME, 1, b"", fits)).message == fits
    assert _why(codec, Gen(1, RingId(1, 1), 1, 1, FAR * 1000 + 1, 1, False)) is Drop.FAR_AHEAD
    assert _why(codec, Gen(1, RingId(1, 1), 1, 1, 1, FAR * 1000 + 1, False)) is Drop.FAR_AHEAD


def test_a_life_from_the_far_future_is_no_sender() -> None:
    """F1: whoever claimed such a boot would put all later lives of its name behind it."""
    codec = Codec([Prepare], wall=lambda: NOW)
    fine = Prepare(1, KEY, NO_BALLOT, None)
    payload = codec.encode(NodeId("a", FAR + 1), 1, b"", fine)
    with pytest.raises(Rejected) as rejected:
        codec.decode(payload)
    assert rejected.value.why is Drop.FAR_AHEAD


def test_a_clock_that_is_not_set_refuses_nobody() -> None:
    """A machine that starts in 1970 believes what machines with the right time say, for a century."""
    assert not is_beyond(int(NOW * 1000), lambda: 0.0)
    assert is_beyond(CLOCK_MIN + AHEAD_MAX + 1, lambda: 0.0)


def test_every_number_that_grows_is_found() -> None:
    """``highest_of`` reads what the annotations mark: through structs, tuples, optionals and lists."""
    assert [leaf.path for leaf in leaves(Renew) if "moves" in leaf.extra] == [
        ".key.cfg",
        ".who.holder.life.boot",
        ".who.token",
        ".ballot.number",
        ".ballot.lease.life.boot",
        ".seq",
    ]
    for kind in message_types():
        marked = any("moves" in leaf.extra for leaf in leaves(kind))
        assert (highest_of(kind) is not None) == marked, kind


def _why(codec: Codec, message: Message) -> Drop:
    with pytest.raises(Rejected) as rejected:
        codec.decode(codec.encode(ME, 1, b"", message))
    return rejected.value.why
