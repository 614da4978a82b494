"""Message types as protocols have them, for fuzzing and wire tests: nested tuples, bytes, optionals, bounds, own checks."""

from __future__ import annotations

from random import Random
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from holdfast.host import Address, Message, NodeId
from holdfast.node import OtherFingerprint, WrongLife

Seconds = Annotated[float, Meta(ge=0.0, le=1e12)]  # A bound on both sides also refuses NaN and the infinities.
Digest = Annotated[bytes, Meta(max_length=32)]
Topic = Annotated[str, Meta(min_length=1, max_length=32)]


class Row(Struct, frozen=True, array_like=True):
    """A part of a message."""

    owner: NodeId
    value: bytes
    until: Seconds | None = None


class Discover(Message, frozen=True, tag=240):
    """A greeting."""

    greeting: ClassVar[bool] = True
    serial: int
    address: Address


class Renewal(Message, frozen=True, tag=241):
    """Small and frequent: six fields, the message that speed is measured with."""

    lease: int
    session: int
    length: Seconds
    holder: NodeId
    acks: tuple[int, ...] = ()
    proof: Digest = b""


class RowsPage(Message, frozen=True, tag=242):
    """A page of anti-entropy."""

    topic: Topic
    rows: tuple[Row, ...]
    digest: Digest
    more: bool = False


class Offer(Message, frozen=True, tag=243):
    """Optionals, pairs and a map."""

    number: Annotated[int, Meta(ge=0, le=1 << 53)]
    holder: NodeId | None
    members: tuple[tuple[NodeId, Address], ...] = ()
    weights: dict[Topic, int] | None = None
    note: str | None = None


class Span(Message, frozen=True, tag=244):
    """A type that checks what no annotation can say."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


TYPES: tuple[type[Message], ...] = (Discover, Renewal, RowsPage, Offer, Span)


def draw(random: Random) -> Message:
    """Any message that a well-behaved peer could send, the node's own ones included."""
    return random.choice(_DRAWS)(random)


def _name(random: Random) -> str:
    return random.choice(("web-3", "db", "worker-17-qhzkfa", "größe", "数据-1", "x" * 64))


def _node(random: Random) -> NodeId:
    return NodeId(_name(random), random.choice((1, 2, 1_753_000_000_000, 2_000_000_000_000)))


def _address(random: Random) -> Address:
    return Address(random.choice(("10.0.0.5", "fe80::1", "node-7")), random.randrange(1, 65536))


def _row(random: Random) -> Row:
    return Row(_node(random), random.randbytes(random.randrange(24)), random.choice((None, 0.0, random.uniform(0, 1e9))))


def _discover(random: Random) -> Message:
    return Discover(random.getrandbits(32), _address(random))


def _renewal(random: Random) -> Message:
    acks = tuple(random.getrandbits(20) for _ in range(random.randrange(5)))
    return Renewal(random.getrandbits(63), random.randrange(1000), random.uniform(0, 60), _node(random), acks, random.randbytes(16))


def _rows_page(random: Random) -> Message:
    rows = tuple(_row(random) for _ in range(random.choice((0, 1, 3, 8, 60))))
    return RowsPage(random.choice(("tags", "lead:scheduler")), rows, random.randbytes(8), random.random() < 0.5)


def _offer(random: Random) -> Message:
    members = tuple((_node(random), _address(random)) for _ in range(random.randrange(4)))
    holder = random.choice((None, _node(random)))
    weights = random.choice((None, {"a": 1, "b": -5}))
    return Offer(random.getrandbits(53), holder, members, weights, random.choice((None, "", "why not")))


def _span(random: Random) -> Message:
    low = random.randrange(-1000, 1000)
    return Span(low, low + random.randrange(10))


def _wrong_life(random: Random) -> Message:
    return WrongLife(random.choice((0, 1, (1 << 53) - 1)))


def _other_fingerprint(random: Random) -> Message:
    text = random.choice((b"", b"lease=2.5", b"lease=1.0;rho=0.001", random.randbytes(40)))
    return OtherFingerprint(random.choice((1, 241, 250)), text, answer=random.random() < 0.5)


_DRAWS = (_discover, _renewal, _renewal, _rows_page, _offer, _span, _wrong_life, _other_fingerprint)
