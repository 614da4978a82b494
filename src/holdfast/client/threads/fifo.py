"""How threads wait in line for something that comes back with time.  The first one looks; the others wait behind it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from threading import Event, Lock

from holdfast.host import SLEEP_MAX
from holdfast.net.clock import now


class Fifo:
    """A line. A thread that is interrupted while it waits is taken out of the line."""

    def __init__(self) -> None:
        self.lock = Lock()  # of the line, and of what ``take`` changes
        self._places: deque[Event] = deque()

    def __len__(self) -> int:
        return len(self._places)

    def tell(self) -> None:
        """What the first one waits for may have changed."""
        with self.lock:
            self._wake_first()

    def wait(self, take: Callable[[], float], end_at: float) -> bool:
        """Wait until ``take`` took it, and returned 0. It is called for the first in the line alone, with the lock, and else returns the
        seconds after which to try again. False if time is up before. Raises what it raises."""
        place = Event()
        with self.lock:
            self._places.append(place)
        try:
            while True:
                with self.lock:
                    place.clear()
                    left = take() if self._places[0] is place else inf
                if left <= 0:
                    return True
                if (rest := end_at - now()) <= 0:
                    return False
                place.wait(min(left, rest, SLEEP_MAX))  # Waits of the kernel stand still while the machine is suspended (F10).
        finally:
            with self.lock:
                self._leave(place)

    def _leave(self, place: Event) -> None:
        if self._places[0] is place:
            self._places.popleft()
            self._wake_first()
        else:
            self._places.remove(place)

    def _wake_first(self) -> None:
        if self._places:
            self._places[0].set()
