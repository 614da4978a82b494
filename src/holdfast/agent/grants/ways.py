"""One name, one way: what may be had in several ways is had in one of them at a time.  Spec: election D23; foundation F16.

Two features may offer the same right under one name, by rules of their own. Who asks for it one way, while this agent knows a holder or a
candidate of the other way, is refused with who that is. The numbers of a name go on growing when its way changes.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from holdfast.errors import ConfigError, shown
from holdfast.host import NodeId


class Taken(NamedTuple):
    """Who has a name, or waits for it."""

    life: NodeId
    does: str  # "leads", "waits"


class Way(Protocol):
    """One of them, as far as this agent knows."""

    by: str  # what users call it

    def taken(self, name: str) -> Taken | None: ...
    def highest(self, name: str) -> int:
        """The highest number of that name that was heard of; 0: none."""


class Ways:
    """All ways that one agent has."""

    def __init__(self) -> None:
        self._ways: list[Way] = []

    def add(self, way: Way) -> None:
        self._ways.append(way)

    def other(self, name: str, way: Way) -> tuple[str, Taken] | None:
        """Who has it another way, and which."""
        for each in self._ways:
            if each is not way and (taken := each.taken(name)) is not None:
                return each.by, taken
        return None

    def enter(self, name: str, way: Way) -> int:
        """What the first number of a new holder has to exceed. Raises ``ConfigError`` with who has the name another way."""
        found = self.other(name, way)
        if found is not None:
            by, (life, does) = found
            why = f"{life} {does} that way, and a name has one way"
            raise ConfigError(f"by: {shown(way.by)}; accepted for {shown(name)} is {by}, because {why}")
        return self.highest(name, way)

    def highest(self, name: str, way: Way) -> int:
        """Of all other ways."""
        return max((each.highest(name) for each in self._ways if each is not way), default=0)
