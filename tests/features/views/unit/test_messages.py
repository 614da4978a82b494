"""Messages of views as bytes: what fits, and what a peer cannot say.  Spec: views 3, 10; foundation F16."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
from msgspec import msgpack
from msgspec.structs import asdict, replace

from holdfast.drops import Drop, Rejected
from holdfast.features.views.protocol.config import CLIENTS_MAX, SERVERS_MAX
from holdfast.features.views.protocol.messages import (
    TYPES,
    ClientPing,
    ClientPong,
    Known,
    LinkPing,
    LinkPong,
    Listed,
    Lsa,
    OvData,
    OvResult,
    Propose,
    StartChange,
    ViewMsg,
)
from holdfast.host import DATAGRAM_BYTES_MAX, MESSAGE_BYTES_MAX, Address, Message, NodeId, ViewId, ViewMember
from holdfast.kit.parcels import PARCEL_BYTES_MAX, Parcel
from holdfast.wire import Codec

NOW = 1_790_000_000.0
SENDER = NodeId("a" * 40, 1_790_000_000_000)
LONG = [NodeId(f"{i:04}.rack-17.zone-b.example.org", 1_790_000_000_000 + i) for i in range(CLIENTS_MAX)]
AT = Address("2001:db8:85a3:8d3:1319:8a2e:370:7348", 65_535)
CODEC = Codec(TYPES, wall=lambda: NOW)
DIGEST = bytes(range(16))
VIEW_ID = ViewId(1 << 41, *LONG[0])
SEALED = 100  # bytes of envelope and seal beside the message, and more

PING = ClientPing(1, 1, 1, 1.0, 1)
PONG = ClientPong(1, 1, 0, VIEW_ID, 1, 0, 1.0)
KNOWN = Known(1, LONG[0], 1, 0.5, 1, 0.5)
LSA = Lsa(1, LONG[0], 1, (LONG[1],), (Listed(LONG[2], 1, AT),))
PROPOSE = Propose(1, LONG[0], 1, DIGEST, 1, False, 3, LONG[1])
VIEW = ViewMsg(1, 1, VIEW_ID, (LONG[0],), None, (ViewMember(LONG[2], AT, 1, LONG[0]),), (), 1, DIGEST, 1)
DATA = OvData(LONG[0], 1, LONG[1], VIEW_ID, Parcel(b"", b"x"), 3, 1)


def travel(message: Message) -> Message:
    return CODEC.decode(CODEC.encode(SENDER, 1, b"", message)).message


def size(message: Message) -> int:
    return len(CODEC.encode(SENDER, 1 << 47, bytes(8), message))


def why(message: Message) -> Drop:
    with pytest.raises(Rejected) as rejected:
        travel(message)
    return rejected.value.why


@pytest.mark.parametrize(
    "message",
    [
        PING,
        PONG,
        LinkPing(1, 0),
        LinkPong(1, 0, (KNOWN,)),
        LSA,
        PROPOSE,
        VIEW,
        DATA,
        StartChange(1, 1, 1),
        OvResult(SENDER, 1, ok=True, why=0, ttl=1),
    ],
)
def test_what_is_said_is_heard(message: Message) -> None:
    """Views 3, foundation F3: every field arrives as it was sent."""
    assert travel(message) == message
    assert asdict(travel(message)) == asdict(message)


def test_the_largest_group_fits_one_message() -> None:
    """Views 10: 2,000 clients with long names and addresses, in a link state and in a view; both leave by the stream."""
    lsa = replace(LSA, clients=tuple(Listed(life, 1 << 40, AT) for life in LONG))
    view = replace(VIEW, members=tuple(ViewMember(life, AT, 1 << 40, LONG[0]) for life in LONG), size=CLIENTS_MAX)
    for message in (lsa, view):
        assert travel(message) == message
        assert DATAGRAM_BYTES_MAX < size(message) < MESSAGE_BYTES_MAX / 2


def test_a_letter_of_the_largest_size_fits() -> None:
    """Views 3 (OvData), D30: what the overlay takes it can send."""
    message = replace(DATA, parcel=Parcel(bytes(8), bytes(PARCEL_BYTES_MAX)))
    assert travel(message) == message


def test_heartbeats_are_datagrams() -> None:
    """Views 3, D24: no rule may rest on what is large. Pings, pongs and proposals of the largest groups fit a datagram."""
    seven = tuple(KNOWN._replace(slot=i, life=LONG[i], age=1.23456789, num=1 << 41, num_age=9.87654321) for i in range(SERVERS_MAX))
    for message in (
        LinkPing(1 << 40, 6),
        LinkPong(1 << 40, 6, seven),
        PROPOSE,
        PONG,
        replace(PING, address=AT),
        StartChange(1 << 40, 1 << 40, 1 << 41),
    ):
        assert size(message) + SEALED < DATAGRAM_BYTES_MAX


LIES: list[tuple[str, Callable[[], Any]]] = [
    *((f"age {age}", lambda age=age: LinkPong(1, 1, (KNOWN._replace(age=age),))) for age in (-1.0, -1e-9, nan, inf, -inf, 1e10)),
    *((f"age of a number {age}", lambda age=age: LinkPong(1, 1, (KNOWN._replace(num_age=age),))) for age in (-1.0, nan, inf)),
    ("too many slots known", lambda: LinkPong(1, 1, (KNOWN,) * (SERVERS_MAX + 1))),
    ("a slot beyond all", lambda: LinkPing(1, 64)),
    ("too many links", lambda: replace(LSA, up=tuple(LONG[: SERVERS_MAX + 1]))),
    ("too many clients", lambda: replace(LSA, clients=(LSA.clients[0],) * (CLIENTS_MAX + 1))),
    ("too many members", lambda: replace(VIEW, members=(VIEW.members[0],) * (CLIENTS_MAX + 1))),
    ("too many that are gone", lambda: replace(VIEW, gone=("x",) * (CLIENTS_MAX + 1))),
    ("a digest that is short", lambda: replace(PROPOSE, key=b"x" * 15)),
    ("a digest that is long", lambda: replace(PROPOSE, key=b"x" * 17)),
    ("a negative number", lambda: replace(PROPOSE, num=-1)),
    ("a number beyond 2^53", lambda: replace(PING, last_num=1 << 53)),
    ("a stamp that is no number", lambda: replace(PING, stamp=nan)),
    ("an attach number beyond all", lambda: replace(PING, attach=(1 << 40) + 1)),
    ("a negative attach number", lambda: replace(PONG, hint=-1)),
    ("an answer that there is not", lambda: replace(PONG, state=9)),
    ("a reason that there is not", lambda: OvResult(SENDER, 1, ok=False, why=9, ttl=1)),
    ("hops beyond all", lambda: replace(DATA, ttl=1 << 16)),
    ("a parcel that is too large", lambda: replace(DATA, parcel=Parcel(b"", bytes(PARCEL_BYTES_MAX + 1)))),
]


@pytest.mark.parametrize("make", [make for _, make in LIES], ids=[name for name, _ in LIES])
def test_what_a_peer_cannot_say(make: Callable[[], Message]) -> None:
    """Views 10: refused when it is decoded, with a counter of its own; no machine sees it."""
    assert why(make()) is Drop.OUT_OF_BOUNDS


def test_a_million_members_are_no_message() -> None:
    """Views 10: refused by the length, before a byte is decoded."""
    assert why(replace(VIEW, members=VIEW.members * 10**6)) is Drop.OVERSIZED


def test_numbers_far_ahead_of_the_clock() -> None:
    """Views 10, H228: one packet must not use up the numbers of all."""
    far = int(NOW * 1000) + (1 << 43)
    for message in (
        replace(PROPOSE, num=far),
        replace(PING, last_num=far),
        LinkPong(1, 1, (KNOWN._replace(num=far),)),
        StartChange(1, 1, far),
        replace(VIEW, id=VIEW_ID._replace(number=far)),
    ):
        assert why(message) is Drop.FAR_AHEAD


def test_only_greetings_are_sent_to_an_address() -> None:
    """Views 3, foundation F3: ``LinkPing`` and ``ClientPing`` are said before the life of the other end is known, and nothing else is."""
    assert [kind.__name__ for kind in TYPES if kind.greeting] == ["LinkPing", "ClientPing"]
    assert not any(kind.carried for kind in TYPES)


def test_a_message_may_grow_at_its_end() -> None:
    """Foundation F3: fields that a newer version appends are passed over."""
    fields = msgpack.decode(msgpack.encode(StartChange(1, 2, 3)))
    assert msgpack.decode(msgpack.encode([*fields, "more"]), type=StartChange) == StartChange(1, 2, 3)
