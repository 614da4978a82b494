"""Limits as processes of this agent use them: the streams of ``AttachLimit``.  Spec: limits 5.1, D22; foundation F14; docs/local-api.md.

A stream tells the newest of what there is to tell, so a process that does not read has one item waiting. Its end means one of two things:
the process said that it has stopped, and then what it was told is free; or the connection is gone, and then the process may go on with what
it was told, until the kernel confirms that it is dead, or its time has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from holdfast.features.limits.protocol.workers import Tell
from holdfast.local.frame import encoded

if TYPE_CHECKING:
    from holdfast.features.limits.calls import LimitItem
    from holdfast.local.family import Process


class Client(Protocol):
    """What this needs of a connection."""

    @property
    def connected(self) -> bool: ...
    @property
    def pid(self) -> int: ...
    @property
    def program(self) -> str: ...
    def wake(self, serial: int) -> None: ...


class Body(Protocol):
    """The process of a connection, as long as that is there."""

    def process(self) -> Process | None:
        """The same for longer."""


class LimitStream:
    """One ``AttachLimit``: one worker of one limit."""

    def __init__(self, client: Client, serial: int, number: int, body: Body | None) -> None:
        """``body``: by which the process is known. None: the kernel will not say that it is dead."""
        self.client, self.serial, self.number = client, serial, number
        self.process: Process | None = None  # once the connection is gone; a descriptor, so only then
        self._body = body
        self.told: Tell | None = None
        self.item: Callable[[LimitStream], LimitItem] = _unset
        self.on_close: Callable[[LimitStream, bool], None] = _ignore
        self._fresh = True  # there is something to tell

    def tell(self, told: Tell) -> None:
        """What the worker may use from now on."""
        self.told = told
        self.wake()

    def wake(self) -> None:
        self._fresh = True
        self.client.wake(self.serial)

    def take(self, limit: int) -> list[bytes]:
        """One item, the newest."""
        del limit
        if not self._fresh:
            return []
        self._fresh = False
        return [encoded(self.item(self))]

    def close(self) -> None:
        """From anywhere. The client closed it, or its connection is gone."""
        stopped = self.client.connected
        if not stopped and self._body is not None:
            self.process = self._body.process()
        self.on_close(self, stopped)


def _unset(stream: LimitStream) -> LimitItem:
    raise AssertionError(f"stream {stream.serial} has no source")


def _ignore(stream: LimitStream, stopped: bool) -> None:
    """Nothing follows."""
