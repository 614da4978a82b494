"""What was wrong, and when was it last seen?  What ``doctor`` remembers between two examinations; docs/operations.md.

Counters say that something happened, not when. The agent looks at them every few seconds, so an instant here is exact to that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from holdfast.agent.life.installed import check_installed
from holdfast.agent.socket.events import BUFFER_MAX
from holdfast.drops import Drop
from holdfast.events import ConfigMismatch, Event, Paused, StorageFailed

if TYPE_CHECKING:
    from holdfast.agent.life.agent import Agent
    from holdfast.local.calls import Finding
    from holdfast.net.host import NetHost

MISMATCHES_MAX = 256  # peers and fields that are remembered, the oldest goes first
PAUSES_MAX = 256
GONE_AFTER = 600.0  # seconds after which it is no finding any more, unless the caller asks for older ones


class Sightings:
    """Instants on the host's clock."""

    def __init__(self) -> None:
        self.drops: dict[Drop, float] = {}  # reason -> when a message was last dropped for it
        self.mismatches: dict[str, float] = {}  # name of a peer -> when a message of it was last dropped for its fingerprint
        self._dropped: dict[Drop, int] = {}
        self._mismatched: dict[str, int] = {}

    def look(self, host: NetHost) -> None:
        """Note what grew since the last look. Tables here are as large as the node's: it forgets the oldest peers."""
        _note(self.drops, self._dropped, dict(host.drops), host.now)
        _note(self.mismatches, self._mismatched, host.node.mismatched, host.now)


class Doctor:
    """Remembers what was noticed, and examines when asked. One of the subscribers of the agent's events."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.mismatches: dict[tuple[str, str], ConfigMismatch] = {}
        self.pauses: deque[tuple[float, float]] = deque(maxlen=PAUSES_MAX)  # when, and how long
        self.storage_failed = ""
        self._subscription = agent.events.subscribe(self._on_news)

    def collect(self, timeout: float, done: Callable[[tuple[Finding, ...]], None], since: float = GONE_AFTER) -> None:
        """``done`` gets the findings, errors first, within the timeout. What was last seen ``since`` seconds ago is left out."""
        check_installed()
        from holdfast.agent.observe.doctor import Examination  # what only a user's question needs (0.2 MiB)

        Examination(self._agent, self, timeout, done, since).start()

    def _on_news(self) -> None:
        for record in self._subscription.take(BUFFER_MAX):
            self._on_event(record.event)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Paused):
            self.pauses.append((self._agent.host.now, event.seconds))
        elif isinstance(event, ConfigMismatch):
            key = event.peer.name, event.field
            if key not in self.mismatches and len(self.mismatches) >= MISMATCHES_MAX:
                del self.mismatches[next(iter(self.mismatches))]
            self.mismatches[key] = event
        elif isinstance(event, StorageFailed):
            self.storage_failed = event.why


K = TypeVar("K")


def _note(seen: dict[K, float], counted: dict[K, int], now_counted: Mapping[K, int], now: float) -> None:
    for key, count in now_counted.items():
        if count > counted.get(key, 0):
            seen[key] = now
    for gone in seen.keys() - now_counted.keys():
        del seen[gone]
    counted.clear()
    counted.update(now_counted)
