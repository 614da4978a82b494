"""What users of counters hear: `holdfast watch`, ``group.watch()``."""

from __future__ import annotations

from holdfast.events import Event


class CounterBegan(Event, frozen=True):
    """A member added to a counter that this agent did not know."""

    name: str
