"""Named timers of one term: a new one takes the place of the old one, and all of them end with the term."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.host import Host, Timer


class TermTimers:
    """``guard`` runs before every callback (F9); a callback whose term the guard has ended does not run."""

    def __init__(self, host: Host, guard: Callable[[], None]) -> None:
        self._host, self._guard = host, guard
        self._timers: dict[str, Timer] = {}
        self._generation = 0

    def __contains__(self, key: str) -> bool:
        return key in self._timers

    def arm(self, key: str, due: float, callback: Callable[[], None]) -> None:
        self.cancel(key)
        generation = self._generation
        self._timers[key] = self._host.at(due, lambda: self._fire(key, generation, callback))

    def due_at(self, key: str) -> float | None:
        timer = self._timers.get(key)
        return None if timer is None else timer.due_at

    def cancel(self, key: str) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        self._generation += 1
        for key in list(self._timers):
            self.cancel(key)

    def _fire(self, key: str, generation: int, callback: Callable[[], None]) -> None:
        del self._timers[key]
        self._guard()
        if generation == self._generation:
            callback()
