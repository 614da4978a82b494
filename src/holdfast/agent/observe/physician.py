"""Who is asked by ``doctor``: remembers what the agent noticed, and has it examined.  docs/operations.md."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.agent.life.installed import check_installed
from holdfast.agent.observe.sightings import GONE_AFTER
from holdfast.agent.socket.events import BUFFER_MAX
from holdfast.events import ConfigMismatch, Event, Paused, StorageFailed

if TYPE_CHECKING:
    from holdfast.agent.life.agent import Agent
    from holdfast.local.calls import Finding

MISMATCHES_MAX = 256  # peers and fields that are remembered, the oldest goes first
PAUSES_MAX = 256


class Physician:
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
