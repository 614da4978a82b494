"""Events and facts as they leave the process: on the local socket, in `/events` and in the log."""

from __future__ import annotations

from collections.abc import Iterator

from tests.pins.conftest import Pinned
from tests.pins.doors import Event, Internal, encoded_fields, import_all, log_line, name_of, ships, subclasses
from tests.pins.example import fields, full


def kinds() -> list[type[Event]]:
    """What an agent can tell. Classes with subclasses are families, and no facts."""
    import_all()
    found = subclasses(Event)
    families = {base for kind in found for base in kind.__mro__[1:]}
    return [kind for kind in found if kind not in families and ships(kind)]


def described(kind: type[Event]) -> Iterator[str]:
    event = full(kind)
    yield f"{name_of(event)}{' (inside a protocol)' if issubclass(kind, Internal) else ''}"
    yield from (f"    {line}" for line in fields(kind))
    yield f"    log    {log_line(event)}"
    yield f"    bytes  {encoded_fields(event).hex()}"
    yield ""


def test_names_of_facts(pinned: Pinned) -> None:
    """Foundation 5; docs/local-api.md (Watch): a program finds an event by its name, and an operator a line of the log."""
    found = sorted("\n".join(described(kind)) for kind in kinds())
    names = [text.partition("\n")[0] for text in found]
    assert sorted(set(names)) == names, "two facts leave the process under one name"
    pinned("facts", [line for text in found for line in text.split("\n")])
