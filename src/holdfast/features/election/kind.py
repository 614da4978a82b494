"""Elections as a kind of grant: clients of this agent that ask to lead, and exclude no others.  Spec: election 5.10, 10; foundation F14.

This agent stands for a name as long as a client of it waits for that name. Clients of one agent take turns (``agent.grants.queue``), and
each turn is a term of its own with a larger token (F16).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from math import isfinite
from typing import Any, Protocol

from holdfast.agent.grants.queue import Queue, Wish
from holdfast.errors import ConfigError, shown
from holdfast.features.election import KIND
from holdfast.features.election.asked import FIELDS, manner_in
from holdfast.features.election.protocol.config import HOLD_MAX, NAME_BYTES_MAX
from holdfast.features.election.protocol.manner import Manner
from holdfast.kit.histogram import Histogram
from holdfast.kit.hold import Holder

OPTIONS = (*FIELDS, "grace")
MARGIN_BOUNDS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 20.0)  # seconds


class Leads(Protocol):
    """What this kind needs of ``protocol.elections.Elections``."""

    def campaign(self, name: str, length: float, holder: Holder, *, manner: Manner | None = None) -> None: ...
    def withdraw(self, name: str) -> None: ...
    def resign(self, name: str) -> None: ...
    def renew_allowed(self, name: str, allowed: bool) -> None: ...


class ElectKind:
    """Terms as the elected leader of a name."""

    kind = KIND

    def __init__(self, leads: Leads, now: Callable[[], float], *, me: str, hold: float, enter: Callable[[str], object]) -> None:
        """``hold`` is how far ahead a client's deadline is without a grace; ``enter`` refuses a name that is led in another way."""
        self._leads, self._now, self._me, self._hold, self._enter = leads, now, me, hold, enter
        self.margins = Histogram(*MARGIN_BOUNDS)  # seconds that were left of a term when it was extended
        self.counts: Counter[str] = Counter()  # asked, refused
        self._queues: dict[str, Queue] = {}
        self._asked: dict[str, tuple[Manner, float]] = {}  # of each queue: how it is elected, and since when this agent stands

    def acquire(self, name: str, options: Mapping[str, Any], holder: Holder) -> Wish:
        try:
            length, manner = self._checked(name, options)
            self._enter(name)
        except ConfigError:
            self.counts["refused"] += 1
            raise
        self.counts["asked"] += 1
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = Queue(name, self._leads, partial(self._forget, name), self._on_renewed)
            self._asked[name] = manner, self._now()
        wish = Wish(queue, partial(self._leads.campaign, name, length, manner=manner), holder)
        queue.ask(wish)
        return wish

    @property
    def waiting(self) -> Mapping[str, int]:
        """How many clients of this agent want each name, the one that leads included."""
        return {name: len(queue) for name, queue in sorted(self._queues.items())}

    def asked_since(self, name: str) -> float:
        """When a client first asked for it, of those that are there."""
        return self._asked[name][1]

    def _on_renewed(self, deadline: float) -> None:
        self.margins.add(deadline - self._now())

    def _forget(self, name: str) -> None:
        self._queues.pop(name, None)
        self._asked.pop(name, None)

    def _checked(self, name: str, options: Mapping[str, Any]) -> tuple[float, Manner]:
        """How far ahead the deadlines are to be, and how it is elected."""
        if len(name.encode()) > NAME_BYTES_MAX:
            raise ConfigError(f"name: {shown(name)}; accepted are elections with a name of 1 to {NAME_BYTES_MAX} bytes")
        unknown = next((option for option in options if option not in OPTIONS), None)
        if unknown is not None:
            raise ConfigError(f"option {shown(unknown)}: an election has none of that name; accepted are {', '.join(OPTIONS)}")
        grace, most = options.get("grace", 0.0), HOLD_MAX - self._hold
        if isinstance(grace, bool) or not isinstance(grace, int | float) or not isfinite(grace) or not 0 <= grace <= most:
            raise ConfigError(f"grace: {str(grace)[:32]}; accepted are 0 to {most:g} seconds")
        manner = manner_in(options)
        if name in self._asked:
            self._check_alike(name, manner, self._asked[name][0])
        return self._hold + grace, manner

    def _check_alike(self, name: str, wanted: Manner, theirs: Manner) -> None:
        """The clients of one agent are one candidate."""
        ours, has = wanted.words(), theirs.words()
        for field in (each for each in ours if ours[each] != has[each]):
            raise ConfigError(
                f"{field}: {shown(ours[field])}; accepted is {shown(has[field])}, as {self._me} has it, which stands for {shown(name)}"
            )
