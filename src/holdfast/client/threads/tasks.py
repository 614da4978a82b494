"""How threads take turns, wait, and run something beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from threading import Condition, Event, Lock
from typing import ParamSpec, TypeVar

from holdfast.host import SLEEP_MAX
from holdfast.net.clock import now

P = ParamSpec("P")
R = TypeVar("R")

ROOM = "client_sync"  # the module in a feature's folder that has its client, in this spelling

as_block = contextmanager  # a function with one ``yield`` is entered as a block
Guard = Lock  # of what several callers change
Flag = Event  # set once; callers may wait for it


def in_thread(function: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
    """What would hold up a loop; the caller is a thread."""
    return function(*args, **options)


class News:
    """What is true of something may have changed; callers wait until it is what they want."""

    def __init__(self) -> None:
        self._changed = Condition()

    def tell(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def until(self, true: Callable[[], bool], end_at: float) -> bool:
        """Wait until it is true; False if time is up before. Waits of the kernel stand still while the machine is suspended (F10)."""
        with self._changed:
            while not true():
                if now() >= end_at:
                    return False
                self._changed.wait(max(0.0, min(SLEEP_MAX, end_at - now())))
            return True


class Beside:
    """One function that runs while its caller goes on. The caller of ``run`` is the thread that read from an agent that is gone: it has
    nothing else to do, so it runs the function itself."""

    def run(self, function: Callable[[], None]) -> None:
        function()

    def stop(self) -> None:
        """A thread cannot be stopped. The function looks at a flag, and ``Connection.close`` waits for the thread."""


def all_done(functions: Iterable[Callable[[], None]]) -> None:
    """Call all of them, one after the other."""
    for function in functions:
        function()
