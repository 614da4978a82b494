"""What handlers of calls share: checks of what a client gave, and an answer that is given once."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from holdfast.errors import ConfigError, HoldfastError
from holdfast.local.frame import encoded

if TYPE_CHECKING:
    from holdfast.agent.socket.connection import Connection

TIMEOUT_MAX = 3600.0  # seconds; who wants to wait longer asks again


def checked_timeout(timeout: float) -> float:
    if not (isfinite(timeout) and 0 < timeout <= TIMEOUT_MAX):
        raise ConfigError(f"timeout: {timeout}; accepted are seconds above 0, at most {TIMEOUT_MAX:.0f}")
    return timeout


class Once:
    """An answer that comes by a callback or by a timer, whichever is first."""

    def __init__(self, client: Connection, serial: int) -> None:
        self._client, self._serial = client, serial
        self._open = True

    def done(self, value: Any = None) -> None:
        if self._open:
            self._open = False
            self._client.done(self._serial, encoded(value))

    def refuse(self, error: HoldfastError) -> None:
        if self._open:
            self._open = False
            self._client.refuse(self._serial, error)
