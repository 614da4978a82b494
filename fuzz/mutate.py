"""Hostile MessagePack: takes a valid message apart and puts it together wrongly.

A message is a tree of Python lists, numbers and strings. ``mutate`` changes some of its nodes, and the writer here, unlike
a real encoder, also writes what no encoder would: lengths that lie, reserved bytes, bad UTF-8, a thousand levels of nesting.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

Tree = Any  # lists of lists of scalars, as MessagePack without types decodes to


class Odd:
    """Bytes that are written as they are, in the place of one value."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw


class Liar:
    """An array whose header names another length than it has."""

    __slots__ = ("claimed", "items")

    def __init__(self, claimed: int, items: list[Tree]) -> None:
        self.claimed, self.items = claimed, items


INTS = (
    0,
    1,
    -1,
    127,
    128,
    255,
    256,
    65535,
    1 << 31,
    1 << 32,
    (1 << 53) - 1,
    1 << 53,
    (1 << 53) + 1,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
    -(1 << 63),
)
FLOATS = (0.0, -0.0, 1e308, -1.0, float("nan"), float("inf"), float("-inf"))
STRINGS = ("", "a", "\x00", "a\nb", "\u202ereversed", "x" * 65, "y" * 300, "é" * 40, "🐙")
BINARIES = (b"", b"\x00", b"12345678", b"x" * 9, b"y" * 32, b"z" * 600)
LEVELS = (2, 40, 300, 950, 1100, 4000)  # around the interpreter's own limit, and past it
_VALUES: dict[type, tuple[Tree, ...]] = {int: INTS, float: FLOATS, str: STRINGS, bytes: BINARIES, bool: (True, False)}


def write(tree: Tree) -> bytes:
    out = bytearray()
    _write(tree, out)
    return bytes(out)


def mutate(tree: Tree, random: Random) -> Tree:
    """Change one to four places of a message; the tree itself is taken over."""
    root = [tree]
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        parent, index = _place(root, random)
        random.choice(_CHANGES)(parent, index, random)
    return root[0] if root else Odd(b"")


def mangle(data: bytes, random: Random) -> bytes:
    """Bytes changed without understanding: flipped, cut, doubled, extended."""
    kind = random.randrange(4)
    at = random.randrange(len(data) + 1)
    if kind == 0 and at < len(data):
        return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:at] + random.randbytes(random.randrange(1, 9)) + data[at:]
    return data[:at] + data[max(0, at - random.randrange(40)) :]


def odd(random: Random) -> Tree:
    """One value that hardly any field expects."""
    return random.choice(_ODDITIES)(random)


def nested(random: Random) -> Odd:
    levels = random.choice(LEVELS)
    if random.random() < 0.5:
        return Odd(b"\x91" * levels + b"\x90")
    return Odd(b"\x81\xa1k" * levels + b"\x80")


def _lying_length(random: Random) -> Odd:
    """A string, bytes, array, map or extension that claims to go on far beyond the end."""
    head = random.choice((b"\xdb", b"\xc6", b"\xdd", b"\xdf", b"\xc9"))
    return Odd(head + random.choice((5, 1 << 16, (1 << 31) - 1, (1 << 32) - 1)).to_bytes(4, "big") + b"\x01")


def _extension(random: Random) -> Odd:
    stamp = random.choice((b"\xd6\xff\x00\x00\x00\x01", b"\xd7\xff" + b"\xff" * 8, b"\xc7\x0c\xff" + b"\xff" * 12, b"\xd4\x05x"))
    return Odd(stamp)


def _bad_text(random: Random) -> Odd:
    text = random.choice((b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"ok\x80", b"\xf8\x88\x80\x80\x80"))
    return Odd(bytes([0xA0 | len(text)]) + text)


def _wide_int(random: Random) -> Odd:
    """A small number written with more bytes than it needs: legal, and no encoder's habit."""
    return Odd(random.choice((b"\xcc\x01", b"\xcd\x00\x01", b"\xce\x00\x00\x00\x01", b"\xcf" + bytes(7) + b"\x01", b"\xd3" + bytes(8))))


def _odd_map(random: Random) -> Odd:
    return Odd(random.choice((b"\x81\x01\x02", b"\x82\xa1a\x01\xa1a\x02", b"\x81\x90\x01", b"\x81\x80\x80", b"\x81\xc0\xc0", b"\x81\xa1a")))


_ODDITIES: tuple[Callable[[Random], Tree], ...] = (
    lambda random: random.choice(INTS),
    lambda random: random.choice(FLOATS),
    lambda random: random.choice(STRINGS),
    lambda random: random.choice((None, True, False)),
    lambda random: random.choice(BINARIES),
    lambda random: [random.choice(INTS) for _ in range(random.choice((0, 1, 3, 16, 400)))],
    lambda random: Odd(b"\xc1"),  # reserved, never used
    lambda random: Odd(b"\xca" + struct.pack(">f", random.uniform(0, 9))),
    nested,
    _lying_length,
    _extension,
    _bad_text,
    _wide_int,
    _odd_map,
)


def _replace(parent: list[Tree], index: int, random: Random) -> None:
    parent[index] = odd(random)


def _tweak(parent: list[Tree], index: int, random: Random) -> None:
    """Another value of the same type: what passes the decoder and reaches a machine."""
    values = _VALUES.get(type(parent[index]))
    parent[index] = odd(random) if values is None else random.choice(values)


def _delete(parent: list[Tree], index: int, random: Random) -> None:
    del parent[index]


def _repeat(parent: list[Tree], index: int, random: Random) -> None:
    parent.insert(index, parent[index])


def _insert(parent: list[Tree], index: int, random: Random) -> None:
    parent.insert(index, odd(random))


def _append(parent: list[Tree], index: int, random: Random) -> None:
    parent.extend(odd(random) for _ in range(random.choice((1, 2, 20))))


def _cut_short(parent: list[Tree], index: int, random: Random) -> None:
    del parent[index:]


def _wrap(parent: list[Tree], index: int, random: Random) -> None:
    parent[index] = [parent[index]]


def _lie(parent: list[Tree], index: int, random: Random) -> None:
    items = parent[index] if isinstance(parent[index], list) else [parent[index]]
    parent[index] = Liar(random.choice((0, len(items) + 1, len(items) - 1, 16, 70_000, (1 << 32) - 1)), items)


def _swap(parent: list[Tree], index: int, random: Random) -> None:
    other = random.randrange(len(parent))
    parent[index], parent[other] = parent[other], parent[index]


_CHANGES: tuple[Callable[[list[Tree], int, Random], None], ...] = (
    _replace,
    _replace,
    _tweak,
    _tweak,
    _tweak,
    _delete,
    _repeat,
    _insert,
    _append,
    _cut_short,
    _wrap,
    _lie,
    _swap,
)


def _place(root: list[Tree], random: Random) -> tuple[list[Tree], int]:
    """A random node, reached from the top so that the envelope is hit as often as what is deep inside."""
    parent, index = root, 0
    while random.random() < 0.75:
        node = parent[index] if parent else None
        if not isinstance(node, list) or not node:
            break
        parent, index = node, random.randrange(len(node))
    if not parent:
        parent.append(None)
    return parent, index


def _write(tree: Tree, out: bytearray) -> None:
    if isinstance(tree, Odd):
        out += tree.raw
    elif isinstance(tree, Liar):
        out += b"\xdd" + max(0, tree.claimed).to_bytes(4, "big")
        for item in tree.items:
            _write(item, out)
    elif isinstance(tree, list):
        out += bytes([0x90 | len(tree)]) if len(tree) < 16 else b"\xdd" + len(tree).to_bytes(4, "big")
        for item in tree:
            _write(item, out)
    else:
        out += msgspec.msgpack.encode(tree)
