"""How a view and its id look where an event names them."""

from __future__ import annotations

from typing import Any

from holdfast.events import ViewChanged
from holdfast.host import NodeId, View, ViewId
from holdfast.local.shapes import Shape


def view_json(view: View) -> dict[str, Any]:
    """The whole of it."""
    return {
        "number": view.number,
        "id": str(view.id),
        "servers": [_life(server) for server in view.servers],
        "members": [
            {"name": each.id.name, "boot": each.id.boot, "address": str(each.address), "attach": each.attach, "server": _life(each.server)}
            for each in view.members
        ],
        "fleet": view.fleet,
    }


def _brief(view: View) -> dict[str, Any]:
    """Its members are in /v1/views: a large view is not told whole with every change."""
    servers = [_life(server) for server in view.servers]
    return {"id": str(view.id), "number": view.number, "size": view.size, "fleet": view.fleet, "servers": servers}


def _life(life: NodeId) -> dict[str, Any]:
    return {"name": life.name, "boot": life.boot}


def _text(view: View) -> str:
    return f"{view.id} of {view.size}"


def _words(view: View) -> dict[str, Any]:
    return {"view": view.id, "size": view.size}


SHAPES = {View: Shape(event=_brief, json=view_json, text=_text, log=_words), ViewId: Shape(event=str)}
LISTED = {ViewChanged: ("added", "removed")}
