"""How a value of a feature looks where an event names it.  docs/architecture.md (adding a feature).

Members, identities and plain values look the same everywhere. A feature whose events hold a type of their own says in its ``shapes.py``
how that is shown: ``SHAPES`` maps the type to a ``Shape``. ``LISTED`` maps a kind of event to those of its fields that may name thousands
of values: over HTTP an event tells the first of them, and how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from msgspec import Struct

from holdfast.events import Event
from holdfast.host import Address, Grant, Member, NodeId

COMMON = (Address, Grant, Member, NodeId)  # in most events, and shown by what asks


def as_it_is(value: Any) -> Any:
    return value


class Shape(NamedTuple):
    """How the values of one type are shown."""

    event: Callable[[Any], Any]  # in JSON of ``/events``, where what can be asked for elsewhere may be left out
    json: Callable[[Any], Any] = as_it_is  # in JSON of the command line
    text: Callable[[Any], str] = str  # on a line of the command line
    log: Callable[[Any], Mapping[str, Any]] | None = None  # words of a line of the log; None: one, named as the field is


def shape_of(value: object) -> Shape | None:
    """None: no feature has one for this type."""
    kind = type(value)
    if kind in COMMON or not (issubclass(kind, Struct) or hasattr(kind, "_fields")):
        return None
    return _rooms()[0].get(kind)


def listed_of(event: Event) -> tuple[str, ...]:
    return _rooms()[1].get(type(event), ())


@cache
def _rooms() -> tuple[Mapping[type, Shape], Mapping[type, tuple[str, ...]]]:
    """Imported when the first value or event comes that a feature may have something to say of."""
    from holdfast.features import rooms

    shapes: dict[type, Shape] = {}
    listed: dict[type, tuple[str, ...]] = {}
    for room in rooms("shapes"):
        shapes.update(room.SHAPES)
        listed.update(room.LISTED)
    return shapes, listed
