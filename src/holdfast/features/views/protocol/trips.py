"""Round trips of the last minute, for people: is the network too slow for the heartbeat?  Spec: views D27."""

from __future__ import annotations

from collections import deque

KEPT_SECONDS = 60.0
KEPT_MAX = 2048  # of a server with six others and a client, at the shortest heartbeat: a minute of them or less


class RoundTrips:
    """The latest round trips; the oldest one makes room."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, float]] = deque(maxlen=KEPT_MAX)

    def add(self, now: float, seconds: float) -> None:
        self._kept.append((now, seconds))

    def p99(self, now: float) -> float | None:
        """The round trip that one in a hundred exceeds; None: there were none."""
        found = sorted(seconds for at, seconds in self._kept if now - at <= KEPT_SECONDS)
        return found[min(len(found) - 1, int(0.99 * len(found)))] if found else None
