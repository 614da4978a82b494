"""What features add to a client: ``group.<name>`` where ``Group`` has no method for it, and errors of their own.  Spec: H214, H252."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import holdfast.features
from holdfast.errors import HoldfastError, shown


def entry(name: str, room: str) -> Callable[..., Any]:
    """What ``ENTRIES`` of a feature's client has under this name. ``room`` is the module of the spelling in the feature's folder.

    Raises AttributeError. A feature whose client is not asked for is loaded only to find out what it has."""
    if not name.startswith("_"):
        for place in holdfast.features.FEATURES:
            found = _entries(f"{place.partition(':')[0].rpartition('.')[0]}.{room}").get(name)
            if found is not None:
                return found
    raise AttributeError(f"'Group' object has no attribute {shown(name)}; no feature has an entry of that name")


def error_of_feature(name: str) -> type[HoldfastError] | None:
    """The error that the ``errors.py`` of a feature declares under this name."""
    for room in holdfast.features.rooms("errors"):
        found = vars(room).get(name)
        if isinstance(found, type) and issubclass(found, HoldfastError):
            return found
    return None


def _entries(module: str) -> Mapping[str, Callable[..., Any]]:
    found = sys.modules.get(module)
    if found is None and find_spec(module) is not None:
        found = import_module(module)
    return getattr(found, "ENTRIES", {})
