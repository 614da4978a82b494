"""How members and events are shown: as stable JSON, and as text for people. docs/cli.md has the shapes."""

from __future__ import annotations

import time
from typing import Any

from holdfast.cli.show import shown
from holdfast.host import Grant, Member, NodeId
from holdfast.local.calls import EventItem
from holdfast.local.news import event_of, fields_of
from holdfast.local.shapes import shape_of

VERSION_ROW = "holdfast:v"  # what an agent publishes about its software


def tags_text(tags: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(tags.items()))


def version_of(member: Member) -> str:
    return member.rows.get(VERSION_ROW, b"").decode("utf-8", "replace")


def member_json(member: Member) -> dict[str, Any]:
    return {
        "name": member.id.name,
        "boot": member.id.boot,
        "address": str(member.address),
        "status": member.status.name.lower(),
        "tags": member.tags,
        "version": version_of(member),
    }


def event_json(item: EventItem) -> dict[str, Any]:
    """``at``, ``version`` and ``event``, then the fields of the event; members as in ``holdfast members --json``."""
    return {"at": item.at, "version": item.version, "event": item.name} | {name: plain(value) for name, value in _fields(item).items()}


def event_line(item: EventItem) -> str:
    """One line: when, what, and about whom."""
    words = [f"{name}={_text(value)}" if name != "member" else _text(value) for name, value in _fields(item).items()]
    return timed(item.at, item.name, " ".join(words))


def timed(at: float, name: str, text: str) -> str:
    """A line of something that happened; ``at`` is in wall-clock seconds."""
    clock = time.strftime("%H:%M:%S", time.localtime(at)) + f".{int(at * 1000) % 1000:03d}"
    return shown(f"{clock}  {name.ljust(12)}  {text}".rstrip())


def _fields(item: EventItem) -> dict[str, Any]:
    event = event_of(item)  # None for a fact inside a protocol: its class is not imported here
    return fields_of(item) if event is None else {name: getattr(event, name) for name in event.__struct_fields__}


def plain(value: Any) -> Any:
    """A field of an event, as JSON has it."""
    if isinstance(value, Member):
        return member_json(value)
    if isinstance(value, NodeId):
        return {"name": value.name, "boot": value.boot}
    if (shape := shape_of(value)) is not None:
        return shape.json(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return [plain(each) for each in value]
    return value


def _text(value: Any) -> str:
    if isinstance(value, Member):
        return f"{value.id} {value.address} {tags_text(value.tags)}".rstrip()
    if isinstance(value, Grant):
        return f"{value.kind}:{value.name} token={value.token}"
    if (shape := shape_of(value)) is not None:
        return shape.text(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return ",".join(map(str, value)) or "none"
    return str(value)
