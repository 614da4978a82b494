"""Ranks by hash, as the checkers reckon them: not by the protocol's own code.  Spec: election D13."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b

from holdfast.host import NodeId

HASH_BYTES = 8


@cache
def hash_of(election: str, member: str) -> bytes:
    """The first eight bytes of BLAKE2b over the name of the election and that of the member, a zero byte between them."""
    return blake2b(f"{election}\0{member}".encode()).digest()[:HASH_BYTES]


def rank_of(election: str, member: NodeId) -> tuple[bytes, NodeId]:
    return hash_of(election, member.name), member


def by_rank(election: str, names: Iterable[str]) -> list[str]:
    """The best-ranked first."""
    return sorted(names, key=lambda name: hash_of(election, name))
