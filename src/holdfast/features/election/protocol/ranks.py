"""Ranks: who comes first among the candidates of a name, as bytes that order alike everywhere.  Spec: election D13; paper 004, IV.A.

A candidate publishes a row: how it is elected, its rank attribute, its health by a tag. The attribute is one string of bytes; the smaller
one is better, and of equal ones the lower hash. So a responder ranks members by what they say of themselves, and need not know what it
means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from math import isfinite
from struct import pack
from typing import NamedTuple

import msgspec
from msgspec import Struct

from holdfast.bounds import Number
from holdfast.features.election.protocol.manner import MINUS_TAG, TAG, Manner, is_sound
from holdfast.features.election.protocol.messages import Metric, RankKey
from holdfast.host import Member, NodeId
from holdfast.kit.versioned import UNREADABLE

ROW = "e:"
HASH_BYTES = 8
TEXT_BYTES_MAX = 31  # of a tag's text, in a rank attribute
NUMBER, TEXT, MISSING = b"\x00", b"\x01", b"\x02"  # numbers first, what is missing last, in both directions
METRIC_MAX = 1e15
_FINITE = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class Post(Struct, frozen=True, array_like=True):
    """The row of a candidate. ``inc`` grows with every row of its life."""

    manner: Manner
    inc: Number
    rank: RankKey
    health: Metric


class Ranked(NamedTuple):
    """The rank of a candidate: the smaller one is better."""

    rank: bytes
    hash: int
    id: NodeId


class Candidate(NamedTuple):
    """A listed member that stands for a name."""

    ranked: Ranked
    post: Post
    member: Member

    @property
    def id(self) -> NodeId:
        return self.member.id


def row_of(name: str) -> str:
    """The row by which a member stands for this name."""
    return ROW + blake2b(name.encode(), digest_size=HASH_BYTES).hexdigest()


def hash_of(name: str, *parts: str) -> int:
    """The hash of an agent for this name: another order for each name, and the same after a restart."""
    return int.from_bytes(blake2b("\0".join((name, *parts)).encode()).digest()[:HASH_BYTES], "big")


def ranked(name: str, life: NodeId, rank: bytes) -> Ranked:
    return Ranked(rank, hash_of(name, life.name), life)


def rank_key(manner: Manner, tags: Mapping[str, str]) -> bytes:
    """The rank attribute of an agent with these tags."""
    return b"".join(_component(tag, tags) for tag in manner.rank)


def health_of(manner: Manner, tags: Mapping[str, str]) -> float:
    """What the agent publishes about its own health; 0.0 where the membership is asked instead."""
    if not manner.health.startswith(TAG):
        return 0.0
    number = _number(tags.get(manner.health[len(TAG) :], ""))
    return 0.0 if number is None else min(max(number, 0.0), METRIC_MAX)


def unread_health(manner: Manner, tags: Mapping[str, str]) -> str:
    """The text of its health tag if that is no number, which counts as healthy; "" if it is one, or not there."""
    text = tags.get(manner.health[len(TAG) :], "") if manner.health.startswith(TAG) else ""
    return text if _number(text) is None else ""


def encode(post: Post) -> bytes:
    return msgspec.msgpack.encode(post)


def decode(value: bytes) -> Post | None:
    """The row that a peer published; None: it cannot be read."""
    try:
        post = _POST.decode(value)
    except UNREADABLE:
        return None
    return post if is_sound(post.manner) else None


def _component(tag: str, tags: Mapping[str, str]) -> bytes:
    """One tag as bytes: which kind of value, then the value so that bytes order as values do; turned round after the kind for "-tag:"."""
    turned = tag.startswith(MINUS_TAG)
    text = tags.get(tag.removeprefix("-")[len(TAG) :])
    if text is None:
        return MISSING
    number = _number(text)
    kind, value = (TEXT, _text(text)) if number is None else (NUMBER, _ordered(number))
    return kind + (bytes(255 - byte for byte in value) if turned else value)


def _number(text: str) -> float | None:
    """A finite number; "inf" and "nan" are text."""
    if not _FINITE.fullmatch(text) or not isfinite(float(text)):
        return None
    return float(text) + 0.0  # -0.0 is 0.0


def _text(text: str) -> bytes:
    return text.replace("\0", "").encode("utf-8", "replace")[:TEXT_BYTES_MAX] + b"\0"


def _ordered(number: float) -> bytes:
    """A float in IEEE 754, changed so that unsigned bytes order as numbers do."""
    raw = int.from_bytes(pack(">d", number), "big")
    flipped = raw ^ ((1 << 64) - 1) if raw >> 63 else raw | 1 << 63
    return flipped.to_bytes(8, "big")


_POST = msgspec.msgpack.Decoder(Post)
