"""Leadership as a kind of grant: clients of this agent that ask to lead.  Spec: PRODUCT (lead), foundation F14; fast-detection D17b, D26.

This agent is a candidate for a name as long as a client of it waits for that name; the seats decide. Clients of one agent take turns
in the order of their asking, and each turn is a term of its own with a larger token (F16).

One thing must never happen here: that this agent leads for its next client while the former one may still act. To the seats both
are the same holder, so they would not object. Therefore no client campaigns before the law has released the former grant, which is when its
client has stopped, its bodies are dead, or its last published deadline has passed (F14).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial
from math import isfinite
from typing import Any, Protocol

from holdfast.config import Config
from holdfast.errors import ConfigError, HoldfastError, shown
from holdfast.features.leadership import KIND
from holdfast.features.leadership.protocol.config import NAME_BYTES_MAX
from holdfast.kit.histogram import Histogram
from holdfast.kit.hold import Holder, LossReason

OPTIONS = ("grace",)
MARGIN_BOUNDS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 20.0)  # seconds; a term of the quickest heartbeat lasts 0.15


class Refused(LossReason, frozen=True):
    """The machine takes no candidate for that name now."""

    word = "refused"

    kind: str  # of the error
    text: str

    @property
    def error(self) -> str:
        return self.kind

    def __str__(self) -> str:
        return self.text


class Leads(Protocol):
    """What this kind needs of ``features.leadership.protocol.leadership.Leadership``."""

    def campaign(self, name: str, length: float, holder: Holder) -> None: ...
    def withdraw(self, name: str) -> None: ...
    def resign(self, name: str) -> None: ...
    def renew_allowed(self, name: str, allowed: bool) -> None: ...


class LeadHeld:
    """One client's wish to lead, from its asking to its end; the candidacy while it is this client's turn."""

    def __init__(self, queue: Queue, length: float, holder: Holder) -> None:
        self.length = length
        self.holder = holder
        self.over = False  # its holder is told nothing any more
        self._queue = queue
        self._deadline = 0.0  # as the machine said last

    # What the law says.

    def cancel(self) -> None:
        self._queue.cancel(self)

    def release(self) -> None:
        self._queue.release(self)

    def renew_allowed(self, allowed: bool) -> None:
        self._queue.renew_allowed(self, allowed)

    # What the machine says. It may have had something to say just before it was told that there is no listener.

    def on_queued(self, position: int, why: str = "") -> None:
        """The machine has no queue: clients of one agent wait in this one."""

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        if not self.over:
            self._queue.on_leading(self)
            self._deadline = deadline
            self.holder.on_granted(token, deadline)

    def on_extended(self, deadline: float) -> None:
        if not self.over:
            self._queue.renewed(self._deadline)
            self._deadline = deadline
            self.holder.on_extended(deadline)

    def on_at_risk(self) -> None:
        if not self.over:
            self.holder.on_at_risk()

    def on_lost(self, reason: LossReason) -> None:
        if not self.over:
            self._queue.on_lost(self, reason)


class Queue:
    """All wishes of this agent for one name: the first is the candidate, or leads, or has led and may still act."""

    def __init__(self, name: str, leads: Leads, empty: Callable[[], None], renewed: Callable[[float], None]) -> None:
        """``renewed`` hears the deadline that was there before."""
        self.name = name
        self.renewed = renewed
        self.led = False  # the machine said that the first one leads; until it is released no other client campaigns
        self._leads, self._empty = leads, empty
        self._wishes: deque[LeadHeld] = deque()

    def __len__(self) -> int:
        return len(self._wishes)

    def ask(self, wish: LeadHeld) -> None:
        self._wishes.append(wish)
        if self._wishes[0] is wish:
            try:
                self._campaign()
            except HoldfastError:
                self._drop(wish)
                self._empty()
                raise

    def cancel(self, wish: LeadHeld) -> None:
        """Before the law granted it. The machine may have led already, a moment ago: no client was told, so it is given back like a
        term."""
        first = self._is_first(wish)
        self._drop(wish)
        if first:
            self._give_up()

    def release(self, wish: LeadHeld) -> None:
        """F14 allows it: the next one may have it, here or elsewhere."""
        assert self._is_first(wish)
        self._drop(wish)
        self._give_up()

    def renew_allowed(self, wish: LeadHeld, allowed: bool) -> None:
        if self._is_first(wish) and not wish.over:
            self._leads.renew_allowed(self.name, allowed)

    def on_leading(self, wish: LeadHeld) -> None:
        assert self._is_first(wish)
        self.led = True

    def on_lost(self, wish: LeadHeld, reason: LossReason) -> None:
        """The machine leads no more. Its client may act until its deadline, so the place stays taken until the law says otherwise."""
        assert self._is_first(wish)
        assert self.led
        wish.over = True
        self._leads.renew_allowed(self.name, False)  # Or the machine would lead again, for a client that has stopped for good.
        wish.holder.on_lost(reason)

    def _is_first(self, wish: LeadHeld) -> bool:
        return bool(self._wishes) and self._wishes[0] is wish

    def _drop(self, wish: LeadHeld) -> None:
        wish.over = True
        self._wishes.remove(wish)

    def _give_up(self) -> None:
        """Also after a loss: then there is nothing left to resign, and the machine knows."""
        if self.led:
            self._leads.resign(self.name)
        else:
            self._leads.withdraw(self.name)
        self._next()

    def _next(self) -> None:
        """The first of those who wait, whom the machine takes."""
        self.led = False
        while self._wishes:
            try:
                self._campaign()
            except HoldfastError as error:
                refused = self._wishes[0]
                self._drop(refused)
                refused.holder.on_lost(Refused(type(error).__name__, str(error)))
            else:
                return
        self._empty()

    def _campaign(self) -> None:
        wish = self._wishes[0]
        self._leads.campaign(self.name, wish.length, wish)


class LeadKind:
    """Terms as leader of a name."""

    kind = KIND

    def __init__(self, leads: Leads, now: Callable[[], float], *, term_length: Callable[[float], float], longest: float) -> None:
        """``term_length`` says how long a term is for a grace, ``longest`` what the seats grant at most."""
        self._leads, self._now, self._term_length, self._longest = leads, now, term_length, longest
        self.margins = Histogram(*MARGIN_BOUNDS)  # seconds that were left of a term when it was renewed
        self.margin_least: float | None = None  # of them
        self._queues: dict[str, Queue] = {}
        self.counts: Counter[str] = Counter()  # asked, refused

    @classmethod
    def of(cls, leads: Leads, now: Callable[[], float], config: Config) -> LeadKind:
        return cls(leads, now, term_length=config.term_length, longest=config.longest_grant)

    def acquire(self, name: str, options: Mapping[str, Any], holder: Holder) -> LeadHeld:
        try:
            length = self._length(name, options)
        except ConfigError:
            self.counts["refused"] += 1
            raise
        self.counts["asked"] += 1
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = Queue(name, self._leads, partial(self._forget, name), self._on_renewed)
        held = LeadHeld(queue, length, holder)
        queue.ask(held)
        return held

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
