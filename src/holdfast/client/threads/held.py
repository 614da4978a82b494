"""How a thread waits for what it holds, and works under it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from math import inf
from threading import Condition
from typing import TypeVar

from holdfast.client import checks
from holdfast.client.checks import Seconds
from holdfast.client.holding import Held
from holdfast.host import SLEEP_MAX
from holdfast.net.clock import now

R = TypeVar("R")

Ended = Future  # what a function returned or raised


class Signal:
    """Set when something held is over, by word or by clock; used as a ``threading.Event``."""

    def __init__(self, held: Awaited) -> None:
        self._held = held

    def is_set(self) -> bool:
        return self._held._look()

    def wait(self, timeout: Seconds | None = None) -> bool:
        """Wait until it is over, at most so long; whether it is. 0 only looks."""
        limit = checks.patience(timeout)
        return self._held._until(self._held._look, inf if limit is None else now() + limit)


class Awaited(Held):
    """Something held that threads wait for."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(kind, name)
        self._news = Condition()

    @property
    def lost(self) -> Signal:
        """``lost.wait(timeout)`` returns when it is lost, told to stop, or its deadline has passed on this machine's clock; ``why`` says
        which."""
        return Signal(self)

    def _until(self, true: Callable[[], bool], end_at: float) -> bool:
        """Wait until something is true of it; False if time is up before."""
        with self._news:
            while not true():
                if now() >= end_at:
                    return False
                # Waits of the kernel stand still while the machine is suspended, so none is longer than a second (F10).
                deadline = self.deadline if self._granted else inf
                self._news.wait(max(0.0, min(SLEEP_MAX, end_at - now(), deadline - now())))
            return True

    def _changed(self) -> None:
        with self._news:
            self._news.notify_all()


H = TypeVar("H", bound=Awaited)


def worked(function: Callable[[H], R], held: H, notice: float) -> Ended[R] | None:
    """Run a function while something is held. A thread cannot be stopped, so ``notice`` is not used here: the function looks at ``valid``,
    or calls ``check()``, and returns. None: the hold ended before it did."""
    work: Ended[R] = Future()
    try:
        work.set_result(function(held))
    except held.lost_error as error:  # By ``check()``; if it is valid, of something else that is held.
        work.set_exception(error)
    return work if held.valid else None
