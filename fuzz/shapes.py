"""Values of any type that bounds can describe: extreme ones, harvested ones, and real messages with some of their fields replaced.

Made from the annotations alone, so a new message type is fuzzed as soon as a machine handles it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import inf, nan
from random import Random
from typing import Any

import msgspec
from msgspec import inspect as types

from holdfast.bounds import AHEAD_MAX, NUMBER_MAX
from holdfast.features.leadership.protocol import board as lead_board
from holdfast.features.ring.protocol.memberlist import Listed, Tombstone
from holdfast.features.tickets.protocol.cview import Entry
from holdfast.features.tickets.protocol.values import Tickets
from holdfast.host import Message
from holdfast.kit.rows import Row

TAME = 0.3  # of the messages that are made up hold nothing extreme: one with fifty numbers would hardly ever pass otherwise
TAME_INTS, TAME_FLOATS, TAME_TEXTS = (0, 1, 1, 2, 3, 5), (0.0, 0.5, 1.0), ("a", "lead", "gpus")
KEPT = 256  # harvested values of a kind, the newest
CHANGED = (0.0, 0.02, 0.05, 0.1, 0.4)  # of the leaves of a real message are replaced: few, so that the others lead it deep into a machine
INTS = (0, 1, -1, 2, 3, 63, 64, 255, 65_535, 65_536, (1 << 31) - 1, 1 << 32, NUMBER_MAX - 1, NUMBER_MAX, NUMBER_MAX + 1, (1 << 63) - 1)
WIDE = (1 << 63, (1 << 64) - 1, -(1 << 63), 1 << 40, 1 << 42)
FLOATS = (0.0, -0.0, 1e-300, 0.5, 1.0, -1.0, 59.0, 1e9, 1.1e9, 1e12, 1e300, nan, inf, -inf)
TEXTS = (
    "",
    "a",
    "anchor",
    "gpus",
    "lead",
    "x" * 56,
    "x" * 64,
    "x" * 65,
    "x" * 128,
    "x" * 129,
    "é" * 64,
    "\u202e",
    "\x00",
    "a/b",
    "0/gpus",
    "🐙",
)
CARRIED: tuple[Any, ...] = (Listed, Tombstone, Entry, lead_board.Row, tuple[Row, ...], tuple[Tickets, int, bytes])


def leaves_of(value: Any) -> list[Any]:
    """Every plain value inside."""
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in leaves_of(each)]
    if isinstance(value, dict):
        return [leaf for item in value.items() for leaf in leaves_of(item)]
    return [] if isinstance(value, bool) or value is None else [value]


class Harvest:
    """What was seen in real traffic, by kind of value and by type of message."""

    def __init__(self) -> None:
        self.messages: dict[type[Message], deque[Any]] = {}
        self.ints: deque[int] = deque(maxlen=KEPT)
        self.floats: deque[float] = deque(maxlen=KEPT)
        self.texts: deque[str] = deque(maxlen=KEPT)
        self.bytes: deque[bytes] = deque(maxlen=KEPT)

    def note(self, message: Message) -> None:
        plain = msgspec.to_builtins(message, builtin_types=(bytes,))
        self.messages.setdefault(type(message), deque(maxlen=KEPT)).append(plain)
        kept: dict[type, deque[Any]] = {int: self.ints, float: self.floats, str: self.texts, bytes: self.bytes}
        for leaf in leaves_of(plain):
            kept[type(leaf)].append(leaf)


class Shapes:
    """Draws values; the same seed and harvest give the same ones."""

    def __init__(self, random: Random, harvest: Harvest, wall: Callable[[], float]) -> None:
        self._random, self._harvest, self._wall = random, harvest, wall
        self.hot: list[Any] = []  # values of the one message that is being answered; they come before all others
        self._share = 0.0  # of the leaves of the present message that are replaced
        self._tame = False  # the present message holds nothing extreme
        self._types: dict[Any, types.Type] = {}
        self._carried = [types.type_info(kind) for kind in CARRIED]

    def message(self, kind: type[Message]) -> Any:
        """The body of a message as plain values: a real one with some leaves replaced, or one that was made up."""
        seen = self._harvest.messages.get(kind)
        info = self._info(kind)
        assert isinstance(info, types.StructType)
        self._tame = False
        if seen and self._random.random() < 0.75:
            tag, *fields = self._random.choice(seen)
            self._share = self._random.choice(CHANGED)
            changed = [self._changed(field.type, value) for field, value in zip(info.fields, fields, strict=True)]
            return [tag, *changed]
        self._tame = self._random.random() < TAME
        return [info.tag, *(self._drawn(field.type) for field in info.fields)]

    def _info(self, kind: Any) -> types.Type:
        if kind not in self._types:
            self._types[kind] = types.type_info(kind)
        return self._types[kind]

    def _changed(self, kind: types.Type, value: Any) -> Any:
        """The same value, some of whose leaves are others."""
        if isinstance(kind, types.Metadata):
            return self._changed(kind.type, value)
        if isinstance(kind, types.UnionType):
            found = [each for each in kind.types if not isinstance(each, types.NoneType)]
            return (
                self._drawn(kind)
                if value is None or len(found) != 1 or self._random.random() < self._share
                else self._changed(found[0], value)
            )
        if isinstance(kind, types.StructType | types.NamedTupleType) and isinstance(value, list | tuple):
            tagged = isinstance(kind, types.StructType) and kind.tag is not None
            fields = value[1:] if tagged else value
            return [*value[:1]] * tagged + [self._changed(field.type, each) for field, each in zip(kind.fields, fields, strict=True)]
        if isinstance(kind, types.TupleType) and isinstance(value, list | tuple):
            return [self._changed(item, each) for item, each in zip(kind.item_types, value, strict=True)]
        if isinstance(kind, types.VarTupleType) and isinstance(value, list | tuple) and self._random.random() >= self._share:
            return [self._changed(kind.item_type, each) for each in value]
        if isinstance(kind, types.DictType) and isinstance(value, dict) and self._random.random() >= self._share:
            return {self._changed(kind.key_type, key): self._changed(kind.value_type, each) for key, each in value.items()}
        return self._drawn(kind) if self._random.random() < self._share else value

    def _drawn(self, kind: types.Type) -> Any:
        random = self._random
        if isinstance(kind, types.Metadata):
            return self._drawn(kind.type)
        if isinstance(kind, types.UnionType):
            return self._drawn(random.choice(kind.types))
        if isinstance(kind, types.NoneType):
            return None
        if isinstance(kind, types.BoolType):
            return random.random() < 0.5
        if isinstance(kind, types.EnumType):
            return random.choice([each.value for each in kind.cls] * 8 + [99] * (not self._tame))
        if isinstance(kind, types.IntType):
            return self._int(kind)
        if isinstance(kind, types.FloatType):
            return random.choice(TAME_FLOATS) if self._tame else self._one_of(FLOATS, self._harvest.floats)
        if isinstance(kind, types.StrType):
            text = random.choice(TAME_TEXTS) if self._tame else self._one_of(TEXTS, self._harvest.texts)
            return text if kind.max_length is None or random.random() < 0.1 else text[: kind.max_length]
        if isinstance(kind, types.BytesType):
            return self._bytes(kind)
        return self._many(kind)

    def _int(self, kind: types.IntType) -> int:
        """Mostly one that passes: what is outside of its bounds ends at the codec, and the same codec every time."""
        random = self._random
        low, high = kind.ge or 0, kind.le if kind.le is not None else kind.lt - 1 if kind.lt is not None else (1 << 64) - 1
        if self._tame:
            return min(max(random.choice(TAME_INTS), low), high)
        way = random.random()
        hot = [each for each in self.hot if type(each) is int]
        if hot and random.random() < 0.5:
            value = random.choice(hot)
        elif way < 0.35 and self._harvest.ints:
            value = random.choice(self._harvest.ints) + random.choice((0, 0, 0, 1, -1, 1000))
        elif way < 0.5:
            value = random.choice((low, low + 1, high, high - 1, low - 1, high + 1))
        elif way < 0.6:
            value = int(self._wall() * 1000) + random.choice((0, 1, AHEAD_MAX, AHEAD_MAX - 1000, AHEAD_MAX + 1000))
        elif way < 0.63:
            value = random.choice(WIDE)
        else:
            value = random.choice(INTS)
        if random.random() < 0.9:
            value = min(max(value, low), high)
        return min(max(value, -(1 << 63)), (1 << 64) - 1)

    def _bytes(self, kind: types.BytesType) -> bytes:
        random = self._random
        way = random.random()
        if kind.max_length is not None and kind.min_length == kind.max_length and random.random() < 0.9:
            return random.randbytes(kind.max_length)  # a digest: of another length it ends at the codec
        if way < 0.4 and self._harvest.bytes:
            return random.choice(self._harvest.bytes)
        if way < 0.8:
            return msgspec.msgpack.encode(self._drawn(random.choice(self._carried)))
        size = random.choice((0, 1, 8, 300, kind.max_length or 900, (kind.max_length or 900) + 1))
        return random.randbytes(min(size, 900))

    def _many(self, kind: types.Type) -> Any:
        random = self._random
        if isinstance(kind, types.StructType | types.NamedTupleType):
            tag = [kind.tag] if isinstance(kind, types.StructType) and kind.tag is not None else []
            return [*tag, *(self._drawn(field.type) for field in kind.fields)]
        if isinstance(kind, types.TupleType):
            return [self._drawn(item) for item in kind.item_types]
        if isinstance(kind, types.VarTupleType):
            most = kind.max_length or 3
            many = random.choice((0, 1, 1, 2, 3, 3, 5, min(most, 9)))
            return [self._drawn(kind.item_type) for _ in range(min(many, most) if self._tame else many)]
        assert isinstance(kind, types.DictType), kind
        return {self._drawn(kind.key_type): self._drawn(kind.value_type) for _ in range(random.randrange(3))}

    def _one_of(self, extreme: Sequence[Any], harvested: deque[Any]) -> Any:
        hot = [each for each in self.hot if type(each) is type(extreme[0])]
        if hot and self._random.random() < 0.5:
            return self._random.choice(hot)
        return self._random.choice(harvested) if harvested and self._random.random() < 0.6 else self._random.choice(extreme)
