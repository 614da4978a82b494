"""Every call that there is, of the agent and of the features in the list, and a decoder for any of them."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from holdfast.features import rooms
from holdfast.local.calls import OWN, Call, Lines
from holdfast.local.leaders import LINES, LeaderView
from holdfast.local.table import CallTable, tag_of


def of_features() -> dict[str, tuple[type[Call], ...]]:
    """The calls that each feature declares in its ``calls.py``."""
    return {room.__name__: tuple(each for each in vars(room).values() if _is_call(each)) for room in rooms("calls")}


def _is_call(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Call) and kind is not Call


def leader_lines(*leaders: LeaderView) -> Lines:
    """As a view has them."""
    return {LINES[0]: {line.name: Raw(msgspec.msgpack.encode(line)) for line in leaders}}


CALLS = tuple(sorted((*OWN, *(kind for kinds in of_features().values() for kind in kinds)), key=tag_of))
decode = CallTable(CALLS).decode
