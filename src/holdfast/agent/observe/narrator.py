"""Events as lines of the log: one per change of the membership, the facts inside protocols at level debug, drops in sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from holdfast.agent.observe.logs import Log
from holdfast.drops import Drop
from holdfast.events import (
    ConfigMismatch,
    Decided,
    Event,
    Expelled,
    Failed,
    Internal,
    Joined,
    Left,
    Paused,
    RecordUnusable,
    StorageFailed,
    Suspected,
    TokenRefused,
    Updated,
)
from holdfast.host import Member
from holdfast.local.shapes import shape_of

SUM_PERIOD = 60.0  # seconds between two lines about drops that are known already
LOOK_PERIOD = 5.0  # seconds until a kind of drop that is new gets its line

INFO = (Joined, Left)
WARNING = (Suspected, Decided, Failed, Expelled, Paused)
ERROR = (ConfigMismatch, StorageFailed, RecordUnusable, TokenRefused)


class Narrator:
    """Writes what happens into the log."""

    def __init__(self, log: Log, *, info: tuple[type[Event], ...] = (), warning: tuple[type[Event], ...] = ()) -> None:
        """``info``, ``warning``: facts of the membership and of features that are told at these levels."""
        self._log = log
        self._info: tuple[type[Event], ...] = (*INFO, *info)
        self._warning: tuple[type[Event], ...] = (*WARNING, *warning)
        self.silent: set[type[Event]] = set()  # kinds that were found to have no line at the present level: the agent hands over the others
        self._told: dict[Drop, int] = {}
        self._summed_at = float("-inf")

    def on_event(self, event: Event) -> None:
        say = self._level(event)
        if say is None:
            self.silent.add(type(event))
        else:
            say(type(event).__name__, **_fields(event))

    def at_level(self, level: str) -> None:
        """From now on."""
        self._log.level = level
        self.silent.clear()

    def sum_up(self, drops: Mapping[Drop, int], now: float) -> None:
        """At most one line a minute about messages that were dropped; a reason that is new does not wait for it."""
        news = {why: count - self._told.get(why, 0) for why, count in drops.items() if count > self._told.get(why, 0)}
        unheard = any(why not in self._told for why in news)
        if news and (unheard or now - self._summed_at >= SUM_PERIOD):
            self._summed_at = now
            self._told = dict(drops)
            self._log.info("dropped", **{why.value: count for why, count in sorted(news.items())})

    def _level(self, event: Event) -> Callable[..., None] | None:
        if isinstance(event, ERROR):
            return self._log.error
        if isinstance(event, self._warning):
            return self._log.info if getattr(event, "cleared", False) else self._log.warning  # An alarm that was false is no warning.
        if isinstance(event, self._info):
            return self._log.info
        if isinstance(event, Internal | Updated):
            return self._log.debug if self._log.level == "debug" else None
        return self._log.info


def _fields(event: Event) -> dict[str, Any]:
    """By name. Of a member, who it is and where; of a struct with a shape, what this says. "at" and "level" are words of the line."""
    found: dict[str, Any] = {}
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if isinstance(value, Member):
            found["member"], found["address"] = value.id, value.address
        elif isinstance(value, Struct) and (shape := shape_of(value)) is not None and shape.log is not None:
            found.update(shape.log(value))
        else:
            found[f"{name}_" if name in ("at", "level", "event") else name] = value
    return found
