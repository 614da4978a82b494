"""What features add to a group: ``group.<name>`` for features that have no method of their own on ``Group``.  docs/decisions.md H214."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import holdfast.features
from holdfast.errors import shown


def entry(name: str, room: str) -> Callable[..., Any]:
    """What ``ENTRIES`` of a feature's client has under this name. ``room`` is the module of the spelling in the feature's folder.

    Raises AttributeError. A feature whose client is not asked for is loaded only to find out what it has."""
    if not name.startswith("_"):
        for place in holdfast.features.FEATURES:
            found = _entries(f"{place.partition(':')[0].rpartition('.')[0]}.{room}").get(name)
            if found is not None:
                return found
    raise AttributeError(f"'Group' object has no attribute {shown(name)}; no feature has an entry of that name")


def _entries(module: str) -> Mapping[str, Callable[..., Any]]:
    found = sys.modules.get(module)
    if found is None and find_spec(module) is not None:
        found = import_module(module)
    return getattr(found, "ENTRIES", {})
