"""``group.owns(key)``: may this member act for a key now?  Spec: ring 5.7 (owns), foundation F14.

A question on a blocking connection of its own, inline: the caller wants to know now, and a promise that arrives after a trip through
an event loop is older. An answer is used again while more than half of its time is left.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

from holdfast.client.line import Line
from holdfast.client.wire import CALL_TIMEOUT
from holdfast.errors import AgentLost, ConfigError, Timeout
from holdfast.host import Grant
from holdfast.local import calls
from holdfast.net.clock import now

OWNS_TIMEOUT = 0.05  # seconds: a caller on an event loop waits no longer
CACHED_MAX = 4096  # keys; the agent keeps as many one by one
KEY_BYTES_MAX = 4096  # of a key: the agent hashes it


class Told(NamedTuple):
    """An answer that may be used again."""

    grant: Grant
    until: float  # half of its time


class Quick:
    """A line that is opened when it is first needed, and again after it was lost."""

    def __init__(self, open_line: Callable[[], Line]) -> None:
        self._open = open_line
        self._opening = Lock()
        self._line: Line | None = None

    def call(self, kind: type[calls.Call], *fields: Any, timeout: float = CALL_TIMEOUT) -> Any:
        with self._opening:
            line = self._line
            if line is None:
                line = self._line = self._open()
        try:
            return line.call(kind, *fields, timeout=timeout)
        except AgentLost:
            self._line = None  # The next call may find another agent.
            raise

    def close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()


class Ownership:
    """Questions about keys, and answers that are still fresh."""

    def __init__(self, quick: Quick, timeout: float) -> None:
        self._quick, self._timeout = quick, timeout
        self._told: dict[bytes, Told] = {}

    def owns(self, key: str | bytes) -> Grant | None:
        data = key.encode() if isinstance(key, str) else key
        told = self._told.get(data)
        asked_at = now()
        if told is not None and asked_at < told.until:
            return told.grant
        owned = self._ask(data)
        if owned is None or owned.until <= now():
            return None
        grant = Grant("owner", data.decode("utf-8", "replace"), owned.token, owned.until)
        if len(self._told) >= CACHED_MAX:
            self._told.clear()
        self._told[data] = Told(grant, asked_at + (owned.until - asked_at) / 2)
        return grant

    def close(self) -> None:
        """Nothing that was told is used from here on."""
        self._told.clear()
        self._quick.close()

    def _ask(self, key: bytes) -> calls.Owned | None:
        if len(key) > KEY_BYTES_MAX:
            raise ConfigError(f"key: {len(key)} bytes; accepted are up to {KEY_BYTES_MAX}")
        try:
            owned: calls.Owned | None = self._quick.call(calls.Owns, key, timeout=self._timeout)
        except Timeout:
            return None  # Whatever it says later is dropped; it has not said yes.
        return owned
