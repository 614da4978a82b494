"""What happened in a run, one line each, the same bytes for the same seed.  Kept as objects, written when asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache

from msgspec import Struct
from msgspec.structs import fields

from holdfast.host import Address, NodeId


class Trace:
    """The last ``limit`` lines of a run, or all of them."""

    def __init__(self, limit: int | None = None) -> None:
        self._lines: deque[tuple[float, str, tuple[object, ...]]] = deque(maxlen=limit)

    def record(self, at: float, form: str, *parts: object) -> None:
        """``form`` has one ``{}`` per part. Formatting waits until a line is read: most lines are never read."""
        self._lines.append((at, form, parts))

    def lines(self) -> Iterator[str]:
        for at, form, parts in self._lines:
            yield f"{at:11.6f}  {form.format(*map(show, parts))}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


def show(value: object) -> str:
    """A value as a reader of the trace wants it: ids as name#boot, bytes as hex, structs with their field names."""
    kind = type(value)
    write = _known.get(kind)
    if write is None:
        write = _known[kind] = next((write for kinds, write in _WRITERS if issubclass(kind, kinds)), str)
    return write(value)


def _show_struct(value: object) -> str:
    assert isinstance(value, Struct)
    names = value.__struct_fields__
    if value.__struct_config__.repr_omit_defaults:  # fields that came later, and mostly say nothing new
        names = tuple(name for name, default in _with_defaults(type(value)) if getattr(value, name) != default)
    inside = ", ".join([f"{name}={show(getattr(value, name))}" for name in names])
    return f"{type(value).__name__}({inside})"


@cache
def _with_defaults(kind: type[Struct]) -> tuple[tuple[str, object], ...]:
    return tuple((field.name, field.default) for field in fields(kind))


def _show_bytes(value: object) -> str:
    assert isinstance(value, bytes)
    return value.hex() if len(value) <= 12 else f"{value[:12].hex()}..({len(value)} B)"


def _show_many(value: object) -> str:
    assert isinstance(value, (tuple, list))
    return "(" + ", ".join(map(show, value)) + ")"


def _show_dict(value: object) -> str:
    assert isinstance(value, dict)
    return "{" + ", ".join(f"{show(k)}: {show(v)}" for k, v in value.items()) + "}"


def _show_set(value: object) -> str:
    assert isinstance(value, (set, frozenset))
    return "{" + ", ".join(sorted(map(show, value))) + "}"


_known: dict[type, Callable[[object], str]] = {}  # how each type that was met is written
_WRITERS: tuple[tuple[type | tuple[type, ...], Callable[[object], str]], ...] = (
    ((NodeId, Address), str),
    (float, lambda value: f"{value:.6g}"),
    (bytes, _show_bytes),
    (Enum, lambda value: str(value.name)),  # type: ignore[attr-defined]
    (Struct, _show_struct),
    ((tuple, list), _show_many),
    (dict, _show_dict),
    ((set, frozenset), _show_set),
)
