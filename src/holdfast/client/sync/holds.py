# Made by scripts/spell.py from src/holdfast/client/aio/holds.py: edit that file and run the script.
"""What excludes others, for the length of a block.  ``holding`` has the part without I/O."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from types import TracebackType
from typing import Any, Self

from holdfast.client.holding import not_granted
from holdfast.client.threads.connection import Connection
from holdfast.client.threads.held import Awaited
from holdfast.client.wire import CALL_TIMEOUT, forked, silent
from holdfast.errors import AgentLost, HoldfastError
from holdfast.local import calls
from holdfast.local.ends import RELEASED, UNWANTED
from holdfast.net.clock import now


class Holding(Awaited):
    """Something that excludes others, for the length of a ``with`` block."""

    def __init__(self, connection: Connection, kind: str, name: str, options: Mapping[str, Any], timeout: float | None) -> None:
        super().__init__(kind, name)
        self._connection, self._options, self._timeout = connection, options, timeout
        self._serial = 0
        self._answered = False
        self._refused: HoldfastError | None = None  # what the agent answered instead of taking the question

    def __enter__(self) -> Self:
        """Ask, and wait until it is granted. Raises ``AcquireTimeout``, or what the agent refuses it with."""
        self._enter()
        end_at = inf if self._timeout is None else now() + self._timeout
        self._serial = self._connection.begin(calls.Acquire, (self.kind, self.name, self._options), Asking(self), sink=self)
        try:
            if not self._until(self._heard, min(end_at, now() + CALL_TIMEOUT)) and now() < end_at:
                raise silent(self._connection.path, CALL_TIMEOUT)
            if not self._until(self._decided, end_at):
                raise not_granted(self, self._timeout)
            if self._refused is not None:
                raise self._refused
            if self._look():
                raise self._not_held()
            with suppress(AgentLost):  # Then it ends at its deadline.
                self._connection.tell(calls.Confirm, self._serial, self.token)
        except BaseException:
            self._give_up()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Say that the work has stopped, and wait until it was released. After a fork it is the parent's to give back."""
        if os.getpid() == self._pid:
            self.release()

    def release(self) -> None:
        """Give it back now, before the block ends. Nothing may be done under it from here on."""
        if os.getpid() != self._pid:
            raise forked()  # It is the parent's to give back (F14).
        self._finish(RELEASED)
        self._changed()
        serial, self._serial = self._serial, 0
        if serial and not self._connection.lost:
            with suppress(HoldfastError):  # Then it ends at its deadline.
                self._connection.stop(serial)

    def _give_up(self) -> None:
        """It is not wanted any more. It may have been granted just now: then nothing was done under it."""
        self._finish(UNWANTED)
        self._changed()
        if self._serial:  # Else it was given back by a caller that left the group meanwhile; 0 would speak of keys.
            with suppress(AgentLost):
                self._connection.tell(calls.Stopped, self._serial)
                self._connection.close_stream(self._serial)

    def _heard(self) -> bool:
        return self._answered or self._decided()

    def _decided(self) -> bool:
        return self._granted or self._over or self._refused is not None

    def _on_answer(self, refused: HoldfastError | None) -> None:
        self._answered, self._refused = True, refused
        self._changed()


class Asking:
    """Waits for the answer to ``Acquire``: whether the agent took the question."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding

    def set_result(self, value: Any, /) -> None:
        self._holding._on_answer(None)

    def set_exception(self, error: HoldfastError, /) -> None:
        self._holding._on_answer(error)

    def done(self) -> bool:
        return False
