"""``group.owns(key)``: may this member act for a key now?  Spec: ring 5.7 (owns), foundation F14.

An answer is used again while more than half of its time is left. Who asks differs: a thread asks inline, on a connection of its own, which
is the shortest way; a task asks on the connection of its loop and awaits the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple

from holdfast.client.line import Line
from holdfast.client.wire import CALL_TIMEOUT
from holdfast.errors import AgentLost
from holdfast.host import Grant
from holdfast.local import calls
from holdfast.net.clock import now

OWNS_TIMEOUT = 1.0  # seconds: an agent that has not said yes by then has said no
CACHED_MAX = 4096  # keys; the agent keeps as many one by one


class Told(NamedTuple):
    """An answer that may be used again."""

    grant: Grant
    until: float  # half of its time


class Quick:
    """A line that is opened when it is first needed, and again after it was lost."""

    def __init__(self, open_line: Callable[[float], Line]) -> None:
        self._open = open_line
        self._opening = Lock()
        self._line: Line | None = None

    def call(self, kind: type[calls.Call], *fields: Any, timeout: float = CALL_TIMEOUT) -> Any:
        with self._opening:
            line = self._line
            if line is None:
                line = self._line = self._open(timeout)
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


class Asked(Coroutine[Any, Any, Grant | None]):
    """The answer to come, of ``owns`` with asyncio: a coroutine that is not mistaken for a yes.

    A plain coroutine is true, so that ``if group.owns(key):`` without ``await`` would act for every key."""

    def __init__(self, asking: Coroutine[Any, Any, Grant | None]) -> None:
        self._asking = asking

    def __await__(self) -> Generator[Any, None, Grant | None]:
        return self._asking.__await__()

    def __bool__(self) -> bool:
        self._asking.close()  # It is said here, and need not be said again.
        raise TypeError("owns: the answer was not awaited; accepted is `await group.owns(key)`")

    def send(self, value: Any) -> Any:
        return self._asking.send(value)

    def throw(self, typ: Any, val: Any = None, tb: TracebackType | None = None) -> Any:
        return self._asking.throw(typ if val is None else val)

    def close(self) -> None:
        self._asking.close()
