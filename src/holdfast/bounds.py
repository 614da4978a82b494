"""What a value may be that another process wrote: every field of every message, row and record.  Spec: foundation F16; docs/wire.md.

Types, not checks: ``wire`` and ``disk`` decode with them, so a machine never sees a value outside. A test walks all messages and fails
for a field that has no bound.

Numbers that grow for as long as a group lives (``Growing``, ``Generation``) have a second bound that moves with the clock. Each of them
begins at 0 or at wall-clock time and takes far fewer steps than its clock has ticks, so none is ahead of the clock unless a clock was
wrong or a peer lies. What is further ahead than ``AHEAD_MAX`` is refused where it arrives. So what was accepted can be continued:
at the latest a tick later, one more is within the bound again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields

from holdfast.drops import Drop

NUMBER_MAX = (1 << 53) - 1  # F16: exact in every language
# Milliseconds, 139 years: a clock that stands at the end of 32-bit time (2106) is wrong and no lie. From today the bound for a generation,
# in microseconds, is below NUMBER_MAX until the year 2116.
AHEAD_MAX = 1 << 42
CLOCK_MIN = 1_577_836_800_000  # 2020 in milliseconds: a clock that says less is not set, and must not refuse what clocks that are say
NAME_CHARS_MAX = 64  # of an agent; ``wire`` holds a sender to 64 bytes
LABEL_CHARS_MAX = 128  # of a name, a topic, a row: the longest has 128 bytes
HOST_CHARS_MAX = 255  # of a DNS name; an address is shorter
PORT_MAX = 65_535
TEXT_CHARS_MAX = 256  # a sentence for people
SECONDS_MAX = 1e9  # 31 years: no process waits or lives so long
INSTANT_MAX = 1e12  # seconds on the clock of a process, whatever it counts from
PLACES_MAX = 64  # neighbours, guardians, candidates: F17's fan-out
# Entries of every table that has one per member: the list itself, lives, names, addresses. About half of it is for the members of the
# largest group, 10,000, and the rest for lives that are over and still remembered. What else depends on the size of a group is a
# multiple (H203, H343).
MEMBERS_MAX = 20_480
PAYLOAD_BYTES_MAX = 32 * 1024  # of a letter, the largest thing that is carried for a user
SLOT_MAX = 63  # far beyond the largest list of seats
MOVES = {"ms": 1, "us": 1000}  # ticks of a clock per millisecond, by the mark of a type

Number = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]  # serials, counters of one life
Index = Annotated[int, Meta(ge=-1, le=NUMBER_MAX)]  # -1: none
Growing = Annotated[int, Meta(ge=0, le=NUMBER_MAX, extra={"moves": "ms"})]  # boots, ballots, terms, tokens, versions
Generation = Annotated[int, Meta(ge=0, le=NUMBER_MAX, extra={"moves": "us"})]  # wall-clock microseconds at first (H26)
U64 = Annotated[int, Meta(ge=0, extra={"bits": 64})]  # a hash, a position: MessagePack has nothing above
Bits32 = Annotated[int, Meta(ge=0, lt=1 << 32)]
Small = Annotated[int, Meta(ge=0, le=65_535)]  # tags, hops, attempts, pages, buckets, ports
Slot = Annotated[int, Meta(ge=-1, le=SLOT_MAX)]  # -1: no seat
Seconds = Annotated[float, Meta(ge=0.0, le=SECONDS_MAX)]  # how long; not a number is neither
Instant = Annotated[float, Meta(ge=-INSTANT_MAX, le=INSTANT_MAX)]  # when, on the clock of the sender
Ratio = Annotated[float, Meta(ge=0.0, le=1.0)]
Name = Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
Label = Annotated[str, Meta(max_length=LABEL_CHARS_MAX)]
Host = Annotated[str, Meta(max_length=HOST_CHARS_MAX)]
Text = Annotated[str, Meta(max_length=TEXT_CHARS_MAX)]
Payload = Annotated[bytes, Meta(max_length=PAYLOAD_BYTES_MAX)]


def is_beyond(number: int, wall: Callable[[], float]) -> bool:
    """A number that grows, in milliseconds, is further ahead of the wall clock than an honest one can be."""
    return number > CLOCK_MIN + AHEAD_MAX and number > int(wall() * 1000) + AHEAD_MAX


def is_bound_broken(error: msgspec.ValidationError) -> bool:
    """The value has the right type and is outside of its bounds. msgspec has no class of its own for this; a test holds the wording."""
    return ", got " not in str(error) and str(error).startswith("Expected `")


def why_unread(error: Exception, tag: Callable[[], int], tags: Collection[object]) -> Drop:
    """The name of what is wrong with a message that could not be decoded. ``tag`` decodes its tag alone, ``tags`` are those we read."""
    try:
        found = tag()
    except RecursionError:
        return Drop.NESTED_TOO_DEEP
    except msgspec.ValidationError:
        return Drop.MALFORMED
    except msgspec.DecodeError as other:
        # msgspec has no class of its own for this; a test holds the wording.
        return Drop.TRUNCATED if "truncated" in str(other) else Drop.MALFORMED
    if found not in tags:
        return Drop.UNKNOWN_TAG
    beyond = isinstance(error, msgspec.ValidationError) and is_bound_broken(error)
    return Drop.OUT_OF_BOUNDS if beyond else Drop.MALFORMED


Read = Callable[[Any], int]


def highest_of(kind: Any) -> Read | None:
    """How to find the largest number that grows in a value of this type, in milliseconds, rounded up. None: it holds none."""
    return _reader(kind, None)


def _reader(kind: Any, mark: str | None) -> Read | None:
    """By ``typing``: what ``msgspec.inspect`` makes of a type, and imports for it, would stay in every agent (1 MiB)."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _reader(inner[0], next((each.extra["moves"] for each in inner[1:] if "moves" in (each.extra or {})), None))
    if kind is int:
        return None if mark is None else _in_milliseconds(MOVES[mark])
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _of_fields([(field.name, read) for field in fields(kind) if (read := _reader(field.type, None)) is not None])
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = get_type_hints(kind, include_extras=True)
        return _of_fields([(name, read) for name, type_ in hints.items() if (read := _reader(type_, None)) is not None])
    if origin is list or (origin is tuple and inner[-1] is ...):
        return _of_each(_reader(inner[0], None))
    if origin is tuple:
        return _of_items([(at, read) for at, item in enumerate(inner) if (read := _reader(item, None)) is not None])
    if origin in (Union, UnionType):
        found = [read for item in inner if (read := _reader(item, None)) is not None]
        assert len(found) <= 1, "which of them it is could not be told"
        return None if not found else lambda value: 0 if value is None else found[0](value)
    return None


def _in_milliseconds(ticks: int) -> Read:
    return _same if ticks == 1 else lambda value: -(-value // ticks)


def _same(value: int) -> int:
    return value


def _of_fields(reads: list[tuple[str, Read]]) -> Read | None:
    if not reads:
        return None
    if len(reads) == 1:
        ((name, read),) = reads
        return lambda value: read(getattr(value, name))
    return lambda value: max(read(getattr(value, name)) for name, read in reads)


def _of_items(reads: list[tuple[int, Read]]) -> Read | None:
    return (lambda value: max(read(value[at]) for at, read in reads)) if reads else None


def _of_each(read: Read | None) -> Read | None:
    return None if read is None else lambda value: max(map(read, value), default=0)
