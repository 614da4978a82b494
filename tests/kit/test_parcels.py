"""Parcels: a message inside a message is read like a datagram.  Spec: views D30; foundation F3, F4, F16."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from holdfast.bounds import AHEAD_MAX, Growing, Name, Number, Payload
from holdfast.drops import Drop, Drops
from holdfast.features.views.protocol.messages import OvData
from holdfast.host import Message, NodeId, ViewId
from holdfast.kit import parcels
from holdfast.kit.parcels import DIGEST_BYTES_MAX, NAME_BYTES_MAX, PARCEL_BYTES_MAX, Parcel, Parcels

PEER = NodeId("b", 3)
DIGEST = bytes(range(DIGEST_BYTES_MAX))
WALL = 1_700_000_000.0
AHEAD = int(WALL * 1000) + AHEAD_MAX  # the highest number that is read


class Goods(Message, frozen=True, tag=240):
    """May travel so."""

    carried: ClassVar[bool] = True
    number: Number
    text: Name = ""
    body: Payload = b""


class Claim(Message, frozen=True, tag=241):
    """May travel so, and holds a number that grows."""

    carried: ClassVar[bool] = True
    token: Growing
    few: Annotated[tuple[Number, ...], Meta(max_length=3)] = ()


class Local(Message, frozen=True, tag=242):
    """May not."""

    number: Number


class FakeRouter:
    """Keeps what is handed on."""

    def __init__(self, *types: type[Message]) -> None:
        self.drops: Drops = Drops()
        self.types: tuple[type[Message], ...] = types
        self.digests: dict[type[Message], bytes] = {Goods: DIGEST}
        self.handed: list[tuple[NodeId, bytes, Message]] = []

    def hand_on(self, sender: NodeId, fingerprint: bytes, message: Message) -> None:
        self.handed.append((sender, fingerprint, message))


class Stand:
    """Parcels of one node."""

    def __init__(self, *types: type[Message]) -> None:
        self.router = FakeRouter(*(types or (Goods, Claim, Local, OvData)))
        self.parcels = Parcels(self.router, lambda: WALL)

    def dropped(self, contents: bytes, *, fingerprint: bytes = b"", sender: NodeId = PEER) -> list[Drop]:
        """Why these bytes went no further."""
        self.router.drops.clear()
        self.router.handed.clear()
        self.parcels.unpack(sender, Parcel(fingerprint, contents))
        assert len(self.router.handed) + self.router.drops.total() == 1
        return list(self.router.drops)


@pytest.fixture
def stand() -> Stand:
    return Stand()


def encoded(*values: object) -> bytes:
    return msgspec.msgpack.encode(values)


def test_what_is_packed_is_handed_on_as_it_was(stand: Stand) -> None:
    """Views D30: to the owner of its type, with the sender and the fingerprint that its owner there counts with (F4)."""
    for message, digest in [(Goods(1, "x", b"y"), DIGEST), (Claim(5), b"")]:
        parcel = stand.parcels.pack(message)
        assert parcel is not None
        assert parcel.fingerprint == digest
        stand.parcels.unpack(PEER, parcel)
        assert stand.router.handed.pop() == (PEER, digest, message)
    assert stand.router.drops == {}


def test_only_what_is_declared_is_packed(stand: Stand) -> None:
    """Views D30: a machine that gives another type to the overlay has a bug."""
    with pytest.raises(AssertionError, match="Local is not declared"):
        stand.parcels.pack(Local(1))


def test_too_large_is_not_packed(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views D30: the limit is that of the field it travels in, so what is packed is read at the far end."""
    largest = stand.parcels.pack(Goods(1, "", bytes(32 * 1024)))
    assert largest is not None
    assert len(largest.contents) <= PARCEL_BYTES_MAX
    monkeypatch.setattr(parcels, "PARCEL_BYTES_MAX", len(largest.contents) - 1)
    assert stand.parcels.pack(Goods(1, "", bytes(32 * 1024))) is None


def test_a_type_that_may_not_travel_so_is_refused(stand: Stand) -> None:
    """Views D30: also one that this node handles, and above all a parcel inside a parcel."""
    inner = Parcel(b"", msgspec.msgpack.encode(Goods(1)))
    for message in (Local(1), OvData(PEER, 1, PEER, ViewId(1, "s", 1), inner, 3, 1)):
        assert stand.dropped(msgspec.msgpack.encode(message)) == [Drop.UNKNOWN_TAG]


def test_a_type_of_no_machine_here_is_refused() -> None:
    """Foundation 3: as a datagram of an unknown tag; also where no type is declared at all, and where one is."""
    here: list[tuple[type[Message], ...]] = [(Local,), (Goods,), (Goods, Local)]
    for types in here:
        stand = Stand(*types)
        assert stand.dropped(msgspec.msgpack.encode(Claim(1))) == [Drop.UNKNOWN_TAG]


def test_machines_that_come_and_go_are_followed(stand: Stand) -> None:
    """H203: the types that this node handles are those of now."""
    contents = msgspec.msgpack.encode(Goods(1))
    assert stand.dropped(contents) == []
    stand.router.types = (Local,)
    assert stand.dropped(contents) == [Drop.UNKNOWN_TAG]
    stand.router.types = (Local, Goods)
    assert stand.dropped(contents) == []


@pytest.mark.parametrize(
    "contents, why",
    [
        (encoded(240, -1), Drop.OUT_OF_BOUNDS),
        (encoded(240, 1 << 60), Drop.OUT_OF_BOUNDS),
        (encoded(240, 1, "x" * 65), Drop.OUT_OF_BOUNDS),
        (encoded(240, 1, "", bytes(32 * 1024 + 1)), Drop.OUT_OF_BOUNDS),
        (encoded(241, 1, (1, 2, 3, 4)), Drop.OUT_OF_BOUNDS),
        (encoded(240, "1"), Drop.MALFORMED),
        (encoded(240), Drop.MALFORMED),
        (encoded("240", 1), Drop.MALFORMED),
        (encoded(), Drop.MALFORMED),
        (msgspec.msgpack.encode({"tag": 240}), Drop.MALFORMED),
        (encoded(240, 1) + b"\x00", Drop.MALFORMED),
        (b"\x93\xcc\xf0\x01\xa1\xff", Drop.MALFORMED),  # text that is no UTF-8
        (b"\xc1", Drop.MALFORMED),
        (encoded(240, 1)[:-1], Drop.TRUNCATED),
        (b"", Drop.TRUNCATED),
        (encoded(7, 1), Drop.UNKNOWN_TAG),
        (encoded(-1, 1), Drop.UNKNOWN_TAG),
        (b"\x93\xcc\xf0\x01\xa0" + b"\x91" * 5000 + b"\x90", Drop.MALFORMED),
        (b"\x95\xcc\xf0\x01\xa0\xc4\x00" + b"\x91" * 5000 + b"\x90", Drop.NESTED_TOO_DEEP),  # in a field of a later version
    ],
)
def test_what_cannot_be_read_has_a_name(stand: Stand, contents: bytes, why: Drop) -> None:
    """Foundation 2, F16: as of a datagram. This holds msgspec's wording too, which has no classes for these."""
    assert stand.dropped(contents) == [why]


def test_numbers_that_no_honest_clock_comes_to_are_refused(stand: Stand) -> None:
    """H174: of the message, and of the life that is said to have sent it."""
    assert stand.dropped(encoded(241, AHEAD)) == []
    assert stand.dropped(encoded(241, AHEAD + 1)) == [Drop.FAR_AHEAD]
    assert stand.dropped(encoded(240, 1), sender=NodeId("b", AHEAD + 1)) == [Drop.FAR_AHEAD]


@pytest.mark.parametrize(
    "sender", [NodeId("", 1), NodeId("b", 0), NodeId("a\nb", 1), NodeId("ü" * 33, 1), NodeId("x" * (NAME_BYTES_MAX + 1), 1)]
)
def test_the_sender_is_one_that_an_envelope_may_name(stand: Stand, sender: NodeId) -> None:
    """F3, docs/wire.md: names are short and printable, and no life has boot 0."""
    assert stand.dropped(encoded(240, 1), sender=sender) == [Drop.MALFORMED]
    assert stand.dropped(encoded(240, 1), sender=NodeId("ü" * 32, 1)) == []


def test_a_fingerprint_is_whole_or_empty(stand: Stand) -> None:
    """F4, docs/wire.md: another length is no other number, and draws no answer."""
    assert stand.dropped(encoded(240, 1), fingerprint=DIGEST[:-1]) == [Drop.MALFORMED]
    assert stand.dropped(encoded(240, 1), fingerprint=DIGEST) == []
    assert stand.dropped(encoded(240, 1)) == []


def test_a_later_version_may_have_more_fields(stand: Stand) -> None:
    """Foundation F3: messages grow at the end."""
    assert stand.dropped(encoded(240, 1, "x", b"y", "later")) == []
    assert stand.router.handed == [(PEER, b"", Goods(1, "x", b"y"))]


@given(st.binary(max_size=200))
def test_any_bytes_cost_a_counter(contents: bytes) -> None:
    """Foundation 2: a peer can send anything."""
    Stand().dropped(contents)
