"""Events on the local socket: how an agent writes them and a client reads them.  docs/local-api.md (Watch).

A user's event travels under the name of its class in ``holdfast.events``, or in the ``events.py`` of a feature, with its
fields by name. A fact inside a protocol has a dot in its name ("protocol.Fact", because two protocols may use one word) and
fields that are plain: identities are text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

import msgspec

from holdfast import events
from holdfast.events import Event, Internal
from holdfast.local.calls import EventItem


def _kinds(module: ModuleType) -> dict[str, type[Event]]:
    found = {name: kind for name, kind in vars(module).items() if isinstance(kind, type) and issubclass(kind, Event)}
    return {name: kind for name, kind in found.items() if kind not in (Event, Internal)}


_KINDS = _kinds(events)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def name_of(event: Event) -> str:
    kind = type(event)
    return f"{event.family}.{kind.__name__}" if isinstance(event, Internal) else kind.__name__


def plain_fields(event: Event) -> dict[str, Any]:
    """A fact as people read it."""
    return {name: _plain(getattr(event, name)) for name in event.__struct_fields__}


def encoded_fields(event: Event) -> bytes:
    return _encode(plain_fields(event) if isinstance(event, Internal) else event)


def event_of(item: EventItem) -> Event | None:
    """The event; None for a fact inside a protocol, and for what this version does not know."""
    kind = _KINDS.get(item.name) or (None if "." in item.name else _of_features().get(item.name))
    return None if kind is None else msgspec.msgpack.decode(item.fields, type=kind)


@cache
def _of_features() -> dict[str, type[Event]]:
    """Imported when an event comes that is none of ``holdfast.events``."""
    from holdfast.features import rooms

    return {name: kind for room in rooms("events") for name, kind in _kinds(room).items()}


def fields_of(item: EventItem) -> dict[str, Any]:
    """Whatever it is, as plain data."""
    fields = _decode(item.fields)
    return fields if isinstance(fields, dict) else {}


def _plain(value: Any) -> Any:
    """A name with fields is an identity, and has its own way of being written."""
    if isinstance(value, tuple):
        return str(value) if hasattr(value, "_fields") else [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, float | int | str | bytes) or value is None:
        return value
    return str(value)
