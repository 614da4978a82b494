"""What a client may ask about counters on the local socket."""

from __future__ import annotations

from typing import Any, ClassVar

from holdfast.local.calls import Call


class CounterAdd(Call, frozen=True, tag=200):
    """Add to a counter. Answered with the value that this agent knows then."""

    answers: ClassVar[Any] = int

    name: str
    by: int


class CounterValues(Call, frozen=True, tag=201):
    """All counters, as this agent knows them."""

    answers: ClassVar[Any] = dict[str, int]
