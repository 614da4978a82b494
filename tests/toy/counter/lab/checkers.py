"""What must hold of counters at every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from holdfast.events import Event, Internal
from holdfast.host import NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World
from tests.toy.counter.protocol.facts import Counted


class Adding(Internal, frozen=True):
    """A user of this node adds, now."""

    family: ClassVar[str] = "counter"

    name: str
    by: int


class NothingInvented(Checker):
    """No member counts more than was added."""

    name = "counter nothing-invented"

    def __init__(self) -> None:
        self._added: dict[str, Counter[NodeId]] = {}  # name -> life -> how much

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Adding):
            self._added.setdefault(event.name, Counter())[host.me] += event.by
        elif isinstance(event, Counted) and event.value > self._added[event.name].total():
            self.fail(f"{host.me} counts {event.value} of {event.name}, and {self._added[event.name].total()} were added")

    def added_by(self, name: str, lives: Iterable[NodeId]) -> int:
        return sum(self._added.get(name, Counter())[life] for life in lives)


class NeverLess(Checker):
    """To one life, a counter only grows."""

    name = "counter never-less"

    def __init__(self) -> None:
        self._last: dict[tuple[NodeId, str], int] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Counted):
            before = self._last.get((host.me, event.name), 0)
            if event.value <= before:
                self.fail(f"{host.me} counts {event.value} of {event.name} after {before}")
            self._last[host.me, event.name] = event.value
