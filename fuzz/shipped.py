"""Every type of message that ships, found by walking through the package: a new one is fuzzed, and its bounds are looked at, by itself."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache

import holdfast
from holdfast.host import Message

NOT_ON_A_WIRE = re.compile(r"holdfast\.(lab|cli|agent\.page|(features|papers)\.\w+\.lab)\b")


@cache
def message_types() -> tuple[type[Message], ...]:
    """Sorted by module and name. What several types share, without a tag, is among them."""
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if not NOT_ON_A_WIRE.match(module.name) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found = sorted(set(_below(Message)), key=lambda kind: (kind.__module__, kind.__name__))
    return tuple(kind for kind in found if kind.__module__.startswith("holdfast.") and not NOT_ON_A_WIRE.match(kind.__module__))


def tagged_types() -> tuple[type[Message], ...]:
    """Those that can be sent."""
    return tuple(kind for kind in message_types() if isinstance(kind.__struct_config__.tag, int))


def _below(kind: type[Message]) -> Iterator[type[Message]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
