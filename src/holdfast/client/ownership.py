"""``group.owns(key)``: may this member act for a key now?  Spec: ring 5.7 (owns), foundation F14.

An answer is used again while more than half of its time is left.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.host import Grant
from holdfast.local import calls
from holdfast.net.clock import now

OWNS_TIMEOUT = 1.0  # seconds: an agent that has not said yes by then has said no
CACHED_MAX = 4096  # keys; the agent keeps as many one by one


class Told(NamedTuple):
    """An answer that may be used again."""

    grant: Grant
    until: float  # half of its time


class Ownership:
    """Answers about keys that are still fresh."""

    def __init__(self) -> None:
        self._told: dict[bytes, Told] = {}

    def fresh(self, key: bytes, asked_at: float) -> Grant | None:
        told = self._told.get(key)
        return told.grant if told is not None and asked_at < told.until else None

    def heard(self, key: bytes, asked_at: float, owned: calls.Owned | None) -> Grant | None:
        """What follows from an answer. One that came too late is none."""
        if owned is None or owned.until <= now():
            return None
        grant = Grant("owner", key.decode("utf-8", "replace"), owned.token, owned.until)
        if len(self._told) >= CACHED_MAX:
            self._told.clear()
        self._told[key] = Told(grant, asked_at + (owned.until - asked_at) / 2)
        return grant

    def close(self) -> None:
        """Nothing that was told is used from here on."""
        self._told.clear()
