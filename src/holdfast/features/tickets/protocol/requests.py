"""Requests: what a guardian is asked beside renewals waits until those are answered.  docs/decisions.md H166.

A seat that has more to do than it can loses what is asked last. A candidate asks again; a holder whose renewal is not
answered stops. So renewals are answered as they are read, and all else of the same turn afterwards, a bounded share of it at a time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from holdfast.host import Host

WAITING_MAX = 1024  # requests; each is asked again, every ``rtx``, by who wants to know
TURN_MAX = 32  # answered in one callback: about 3 ms
DROPPED = "requests_dropped"


class Requests:
    """First in, first out."""

    def __init__(self, host: Host, counts: Counter[str]) -> None:
        self._host, self._counts = host, counts
        self._waiting: deque[Callable[[], None]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, handle: Callable[[], None]) -> None:
        if len(self._waiting) >= WAITING_MAX:
            self._counts[DROPPED] += 1
            return
        if not self._waiting:
            self._host.after(0.0, self._on_turn)
        self._waiting.append(handle)

    def clear(self) -> None:
        self._waiting.clear()

    def _on_turn(self) -> None:
        for _ in range(min(TURN_MAX, len(self._waiting))):
            self._waiting.popleft()()
        if self._waiting:
            self._host.after(0.0, self._on_turn)
