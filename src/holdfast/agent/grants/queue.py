"""Clients of one agent that want the same right take turns.  Spec: foundation F14, F16; fast-detection D17b, D26.

The agent is a candidate as long as one of its clients waits for a name; the machine decides, and knows the agent as one holder. So one
thing must never happen here: that the agent holds it for its next client while the former one may still act. No client campaigns
before the law has released the former grant, which is when its client has stopped, its bodies are dead, or its last published
deadline has passed (F14). Each turn has a number of its own, larger than the one before (F16).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from holdfast.errors import HoldfastError
from holdfast.kit.hold import Holder, LossReason


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


class Machine(Protocol):
    """What a queue needs of the machine beside ``campaign``."""

    def withdraw(self, name: str) -> None: ...
    def resign(self, name: str) -> None: ...
    def renew_allowed(self, name: str, allowed: bool) -> None: ...


class Wish:
    """One client's wish, from its asking to its end; the candidacy while it is this client's turn."""

    def __init__(self, queue: Queue, campaign: Callable[[Holder], None], holder: Holder) -> None:
        """``campaign`` makes the agent a candidate, in the words of this wish."""
        self.campaign = campaign
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
            self._queue.on_held(self)
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
    """All wishes of this agent for one name: the first is the candidate, or holds it, or has held it and may still act."""

    def __init__(self, name: str, machine: Machine, empty: Callable[[], None], renewed: Callable[[float], None]) -> None:
        """``renewed`` hears the deadline that was there before."""
        self.name = name
        self.renewed = renewed
        self.held = False  # the machine said that the first one holds it; until it is released no other client campaigns
        self._machine, self._empty = machine, empty
        self._wishes: deque[Wish] = deque()

    def __len__(self) -> int:
        return len(self._wishes)

    def ask(self, wish: Wish) -> None:
        self._wishes.append(wish)
        if self._wishes[0] is wish:
            try:
                wish.campaign(wish)
            except HoldfastError:
                self._drop(wish)
                self._empty()
                raise

    def cancel(self, wish: Wish) -> None:
        """Before the law granted it. The machine may have held it already, a moment ago: no client was told, so it is given back like a
        term."""
        first = self._is_first(wish)
        self._drop(wish)
        if first:
            self._give_up()

    def release(self, wish: Wish) -> None:
        """F14 allows it: the next one may have it, here or elsewhere."""
        assert self._is_first(wish)
        self._drop(wish)
        self._give_up()

    def renew_allowed(self, wish: Wish, allowed: bool) -> None:
        if self._is_first(wish) and not wish.over:
            self._machine.renew_allowed(self.name, allowed)

    def on_held(self, wish: Wish) -> None:
        assert self._is_first(wish)
        self.held = True

    def on_lost(self, wish: Wish, reason: LossReason) -> None:
        """The machine holds it no more. Its client may act until its deadline, so the place stays taken until the law says otherwise."""
        assert self._is_first(wish)
        assert self.held
        wish.over = True
        self._machine.renew_allowed(self.name, False)  # Or the machine would hold it again, for a client that has stopped for good.
        wish.holder.on_lost(reason)

    def _is_first(self, wish: Wish) -> bool:
        return bool(self._wishes) and self._wishes[0] is wish

    def _drop(self, wish: Wish) -> None:
        wish.over = True
        self._wishes.remove(wish)

    def _give_up(self) -> None:
        """Also after a loss: then there is nothing left to resign, and the machine knows."""
        if self.held:
            self._machine.resign(self.name)
        else:
            self._machine.withdraw(self.name)
        self._next()

    def _next(self) -> None:
        """The first of those who wait, whom the machine takes."""
        self.held = False
        while self._wishes:
            wish = self._wishes[0]
            try:
                wish.campaign(wish)
            except HoldfastError as error:
                self._drop(wish)
                wish.holder.on_lost(Refused(type(error).__name__, str(error)))
            else:
                return
        self._empty()
