"""Leadership as a kind of grant: clients of this agent that ask to lead.  Spec: PRODUCT (lead), foundation F14; fast-detection D17b, D26.

This agent is a candidate for a name as long as a client of it waits for that name; the seats decide. Clients of one agent take turns
in the order of their asking (``agent.grants.queue``), and each turn is a term of its own with a larger token (F16). To the seats two
clients of one agent are the same holder, so they would not object to what the queue must never do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from math import isfinite
from typing import Any, Protocol

from holdfast.agent.grants.queue import Queue, Wish
from holdfast.config import Config
from holdfast.errors import ConfigError, shown
from holdfast.features.leadership import KIND
from holdfast.features.leadership.protocol.config import NAME_BYTES_MAX
from holdfast.kit.histogram import Histogram
from holdfast.kit.hold import Holder

OPTIONS = ("grace",)
MARGIN_BOUNDS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 20.0)  # seconds; a term of the quickest heartbeat lasts 0.15


class Leads(Protocol):
    """What this kind needs of ``features.leadership.protocol.leadership.Leadership``."""

    def campaign(self, name: str, length: float, holder: Holder) -> None: ...
    def withdraw(self, name: str) -> None: ...
    def resign(self, name: str) -> None: ...
    def renew_allowed(self, name: str, allowed: bool) -> None: ...
    def exceed(self, name: str, number: int) -> None: ...


def _alone(name: str) -> int:
    """Names are led in no other way."""
    del name
    return 0


class LeadKind:
    """Terms as leader of a name."""

    kind = KIND

    def __init__(
        self,
        leads: Leads,
        now: Callable[[], float],
        *,
        term_length: Callable[[float], float],
        longest: float,
        enter: Callable[[str], int] = _alone,
    ) -> None:
        """``term_length`` says how long a term is for a grace, ``longest`` what the seats grant at most. ``enter`` says what the token of a
        new term has to exceed, or refuses the name."""
        self._leads, self._now, self._term_length, self._longest, self._enter = leads, now, term_length, longest, enter
        self.margins = Histogram(*MARGIN_BOUNDS)  # seconds that were left of a term when it was renewed
        self.margin_least: float | None = None  # of them
        self._queues: dict[str, Queue] = {}
        self.counts: Counter[str] = Counter()  # asked, refused

    @classmethod
    def of(cls, leads: Leads, now: Callable[[], float], config: Config, enter: Callable[[str], int] = _alone) -> LeadKind:
        return cls(leads, now, term_length=config.term_length, longest=config.longest_grant, enter=enter)

    def acquire(self, name: str, options: Mapping[str, Any], holder: Holder) -> Wish:
        try:
            length = self._length(name, options)
            least = self._enter(name)
        except ConfigError:
            self.counts["refused"] += 1
            raise
        self.counts["asked"] += 1
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = Queue(name, self._leads, partial(self._forget, name), self._on_renewed)
        if least:
            self._leads.exceed(name, least)
        wish = Wish(queue, partial(self._leads.campaign, name, length), holder)
        queue.ask(wish)
        return wish

    @property
    def waiting(self) -> Mapping[str, int]:
        """How many clients of this agent want each name, the one that leads included."""
        return {name: len(queue) for name, queue in sorted(self._queues.items())}

    def _on_renewed(self, deadline: float) -> None:
        left = deadline - self._now()
        self.margins.add(left)
        self.margin_least = left if self.margin_least is None else min(left, self.margin_least)

    def _forget(self, name: str) -> None:
        self._queues.pop(name, None)

    def _length(self, name: str, options: Mapping[str, Any]) -> float:
        """How long a promise is asked for: 1.5 heartbeats outlive one that is lost (D26), and the grace is on top of it."""
        if len(name.encode()) > NAME_BYTES_MAX:
            raise ConfigError(f"name: {shown(name)}; accepted are leaderships with a name of 1 to {NAME_BYTES_MAX} bytes")
        unknown = next((option for option in options if option not in OPTIONS), None)
        if unknown is not None:
            raise ConfigError(f"option {shown(unknown)}: leadership has none of that name; accepted is grace")
        grace = options.get("grace", 0.0)
        most = self._longest - self._term_length(0.0)
        if isinstance(grace, bool) or not isinstance(grace, int | float) or not isfinite(grace) or not 0 <= grace <= most:
            raise ConfigError(
                f"grace: {str(grace)[:32]}; accepted are 0 to {most:g} seconds: a term lasts {self._term_length(0.0):g} s and the grace, "
                f"and no grant is longer than longest_grant ({self._longest:g} s)"
            )
        return min(self._term_length(float(grace)), self._longest)
