"""Messages to bytes and back, and what the codec calls the bytes that are none."""

from __future__ import annotations

from math import nan
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.messages import TYPES, Renewal, RowsPage, Span
from holdfast.drops import Drop, Rejected
from holdfast.host import MESSAGE_BYTES_MAX, Message, NodeId
from holdfast.node import OtherFingerprint, WrongLife
from holdfast.wire import Codec
from holdfast.wire.codec import BOOT_MAX, SENDERS_MAX
from tests.wire.strategies import boots, fingerprints, messages, node_ids

CODEC = Codec((*TYPES, WrongLife, OtherFingerprint))
ME = NodeId("web-3", 1_753_000_000_000)
RENEWAL = Renewal(5, 6, 2.5, ME, (1, 2), b"proof")


class PointOld(Message, frozen=True, tag=250):
    """A type as an old release has it."""

    x: int


class PointNew(Message, frozen=True, tag=250):
    """The same type, grown at the end."""

    x: int
    y: int = 7
    labels: tuple[str, ...] = ("none",)


class Checked(Message, frozen=True, tag=251):
    """A type whose own check raises something that no decoder knows."""

    surprise: ClassVar[type[Exception]] = KeyError
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise self.surprise("negative")


def why(payload: bytes, codec: Codec = CODEC) -> Drop:
    with pytest.raises(Rejected) as rejected:
        codec.decode(payload)
    return rejected.value.why


def packed(*envelope: object) -> bytes:
    return msgspec.msgpack.encode(envelope)


def around(body: bytes, sender: bytes = packed(*ME)) -> bytes:
    """An envelope in bytes, for bodies that no encoder would write."""
    return b"\x94" + sender + b"\x01\xc4\x00" + body


@given(node_ids, boots, fingerprints, messages)
def test_what_is_encoded_is_decoded(sender: NodeId, to_life: int, fingerprint: bytes, message: Message) -> None:
    """F3: the envelope and the message arrive as they were sent, the same types included."""
    envelope = CODEC.decode(CODEC.encode(sender, to_life, fingerprint, message))
    assert (envelope.sender, envelope.to_life, envelope.fingerprint, envelope.message) == (sender, to_life, fingerprint, message)
    assert type(envelope.sender) is NodeId
    assert type(envelope.message) is type(message)


@given(st.binary(max_size=300))
def test_bytes_that_nobody_wrote_are_rejected_or_a_message(payload: bytes) -> None:
    """PRODUCT, rules of conduct: a hostile datagram costs a counter, never another exception."""
    try:
        envelope = CODEC.decode(payload)
    except Rejected:
        return
    assert isinstance(envelope.message, Message)


def test_an_old_decoder_passes_over_fields_it_does_not_know() -> None:
    """Append-only evolution: a message of a newer release is read without what was appended."""
    payload = Codec([PointNew]).encode(ME, 1, b"", PointNew(3, 4, ("a", "b")))
    assert Codec([PointOld]).decode(payload).message == PointOld(3)


def test_a_new_decoder_fills_in_what_an_old_sender_left_out() -> None:
    """Append-only evolution: a message of an older release gets the defaults."""
    payload = Codec([PointOld]).encode(ME, 1, b"", PointOld(3))
    assert Codec([PointNew]).decode(payload).message == PointNew(3, 7, ("none",))


def test_the_envelope_grows_in_the_same_way() -> None:
    """Append-only evolution of the envelope itself."""
    payload = packed(ME, 9, b"", [244, 1, 2], "appended", [1, 2, 3])
    assert CODEC.decode(payload).message == Span(1, 2)


@pytest.mark.parametrize("tag", [1, 15, 16, 127, 128, 151, 175, 255, 256, 70_000])
def test_every_tag_of_the_ranges_works(tag: int) -> None:
    """Foundation 6: folders have tags up to 175; MessagePack writes those above 127 in another way."""
    kind: Any = msgspec.defstruct("Kind", [("x", int)], bases=(Message,), tag=tag, frozen=True)
    codec = Codec([kind])
    assert codec.decode(codec.encode(ME, 1, b"", kind(5))).message == kind(5)


def test_a_codec_writes_types_it_does_not_read() -> None:
    """A machine may send questions whose type only the other side handles."""
    payload = Codec([PointOld]).encode(ME, 1, b"", RENEWAL)
    assert CODEC.decode(payload).message == RENEWAL


def test_memoryviews_are_read_in_place() -> None:
    """A host may hand over a view of its buffer."""
    payload = CODEC.encode(ME, 1, b"", RENEWAL)
    assert CODEC.decode(memoryview(bytearray(payload))).message == RENEWAL


def test_unknown_tag() -> None:
    """A decoder meets the types of other releases calmly, and under their own name."""
    assert why(packed(ME, 1, b"", [99, 1, 2])) is Drop.UNKNOWN_TAG
    assert why(packed(ME, 1, b"", [200])) is Drop.UNKNOWN_TAG
    assert why(packed(ME, 1, b"", [-1])) is Drop.UNKNOWN_TAG


def test_every_truncation_is_called_so() -> None:
    """The name depends on a word of msgspec's: this test holds it."""
    payload = CODEC.encode(ME, 1, b"", RENEWAL)
    assert {why(payload[:size]) for size in range(len(payload))} == {Drop.TRUNCATED}


@pytest.mark.parametrize("claim", [b"\xdb" + b"\xff" * 4, b"\xc6" + b"\xff" * 4, b"\xdd" + b"\xff" * 4, b"\xdf" + b"\xff" * 4])
def test_a_length_beyond_the_end_costs_no_memory(claim: bytes) -> None:
    """A header of five bytes must not reserve gigabytes; this would not come back in time if it did."""
    assert why(around(b"\x94\xcc\xf2\xa1t" + claim)) is Drop.TRUNCATED  # as the rows of a page
    assert why(around(b"\x94\xcc\xf4\x01\x02" + claim)) is Drop.TRUNCATED  # appended


OUTSIDE: list[object] = [
    [241, 5, 6, nan, ME],
    [241, 5, 6, -1.0, ME],
    [241, 5, 6, 2.5, ME, [], b"x" * 33],  # above the type's own limit
]


@pytest.mark.parametrize(
    "body",
    [
        *OUTSIDE,
        [241],  # required fields missing
        [241, "5", 6, 2.5, ME],  # a string for a number
        [241, 5, 6, 2.5, "web-3"],  # a string for an identity
        [241, 5, 6, 2.5, ME, [1, "2"]],
        [244, 2, 1],  # refused by the type's own check
        ["241", 5],
        [],
        {"tag": 241},
        None,
        5,
    ],
)
def test_malformed_bodies(body: object) -> None:
    """Field-level checks come from the types of the message; what has the right type and a value outside is named so."""
    expected = Drop.OUT_OF_BOUNDS if body in OUTSIDE else Drop.MALFORMED
    assert why(packed(ME, 1, b"", body)) is expected


@pytest.mark.parametrize(
    "envelope",
    [
        (["", 1], 1, b""),
        (["x" * 65, 1], 1, b""),
        (["é" * 33, 1], 1, b""),  # 66 bytes in 33 letters
        (["a\nb", 1], 1, b""),
        (["a\u202eb", 1], 1, b""),
        (["a", 0], 1, b""),  # no life has boot 0
        (["a", -1], 1, b""),
        (["a", BOOT_MAX + 1], 1, b""),
        (["a", 1], -1, b""),
        (["a", 1], BOOT_MAX + 1, b""),
        (["a", 1], 1, b"1234567"),
        (["a", 1], 1, b"123456789"),
        (["a", 1], 1, "12345678"),
        (["a"], 1, b""),
        (["a", 1, 2], 1, b""),
        ("a", 1, b""),
    ],
)
def test_malformed_envelopes(envelope: tuple[object, ...]) -> None:
    """F1, F3, F4: limits of name, boot and fingerprint."""
    assert why(packed(*envelope, [244, 1, 2])) in {Drop.MALFORMED, Drop.OUT_OF_BOUNDS}


@pytest.mark.parametrize("name", ["x" * 64, "é" * 32, "a b", "ø"])
def test_names_up_to_the_limit_are_welcome(name: str) -> None:
    """F1: a name is up to 64 printable bytes."""
    assert CODEC.decode(packed((name, BOOT_MAX), BOOT_MAX, b"12345678", [244, 1, 2])).sender == NodeId(name, BOOT_MAX)


@pytest.mark.parametrize("junk", [b"\xc1", b"\x94\xc1", b"\x01", b"\xa1x", b"\x80", b"\x90", b"\xff"])
def test_malformed_from_the_start(junk: bytes) -> None:
    """Well-formed or not, what is no envelope is malformed."""
    assert why(junk) in {Drop.MALFORMED, Drop.TRUNCATED}
    assert why(CODEC.encode(ME, 1, b"", RENEWAL) + junk) is Drop.MALFORMED


@pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80", b"\xc3"])
def test_bad_utf8_is_malformed(text: bytes) -> None:
    """From msgspec comes a UnicodeDecodeError, which is none of its own errors."""
    bad = bytes([0xA0 | len(text)]) + text
    assert why(around(b"\x94\xcc\xf2" + bad + b"\x90\xc4\x00")) is Drop.MALFORMED
    assert why(around(packed(244, 1, 2), sender=b"\x92" + bad + b"\x01")) is Drop.MALFORMED


@pytest.mark.parametrize("level", [b"\x91", b"\x81\xa1k", b"\x81"])
def test_nested_too_deep(level: bytes) -> None:
    """Where the typed fields end, a peer may append anything; it is passed over, but not to any depth."""
    deep = level * 50_000 + b"\x90"
    assert why(around(b"\x94\xcc\xf4\x01\x02" + deep)) is Drop.NESTED_TOO_DEEP  # appended
    assert why(around(b"\x93\xcc\xf4\x01" + deep)) is Drop.NESTED_TOO_DEEP  # in the place of a field
    assert why(around(deep)) is Drop.NESTED_TOO_DEEP


def test_oversized() -> None:
    """Foundation 3: a message has at most 1 MiB; more is not even looked at."""
    assert why(bytes(MESSAGE_BYTES_MAX + 1)) is Drop.OVERSIZED
    page = RowsPage("t", (), b"")
    appended = MESSAGE_BYTES_MAX - len(packed(ME, 1, b"", [242, "t", [], b"", False, b""])) - 3
    assert CODEC.decode(packed(ME, 1, b"", [242, "t", [], b"", False, bytes(appended)])).message == page


@pytest.mark.parametrize("surprise", [KeyError, TypeError, AssertionError, OverflowError, RecursionError])
def test_whatever_a_types_own_check_raises_is_a_drop(surprise: type[Exception]) -> None:
    """STYLE 3: a peer's bytes never raise through the loop, even where a message type is careless."""
    kind = type("Careless", (Checked,), {"surprise": surprise}, tag=252, frozen=True)
    assert why(packed(ME, 1, b"", [252, -1]), Codec([kind])) in {Drop.MALFORMED, Drop.NESTED_TOO_DEEP}
    assert Codec([kind]).decode(packed(ME, 1, b"", [252, 1])).sender == ME


def test_the_table_of_senders_is_bounded() -> None:
    """STYLE 3: everything has a limit, also what a member with the key can fill by making up names."""
    codec = Codec([Span])
    for boot in range(1, SENDERS_MAX + 10):
        codec.decode(codec.encode(NodeId("a", boot), 1, b"", Span(1, 2)))
    assert len(codec._senders) <= SENDERS_MAX
    assert why(packed(("", 1), 1, b"", [244, 1, 2]), codec) is Drop.MALFORMED


def test_a_codec_needs_types_with_tags_of_their_own() -> None:
    """Foundation 6: a tag has one owner. Only a bug breaks this, so it is an assertion."""
    with pytest.raises(AssertionError, match="reads nothing"):
        Codec([])
    with pytest.raises(AssertionError, match="two types with one tag"):
        Codec([PointOld, PointNew])
    with pytest.raises(AssertionError, match="no integer tag"):
        Codec([Message])
