# Made by scripts/spell.py from src/holdfast/client/aio/streams.py: edit that file and run the script.
"""What is read item by item: events, and streams that a call of their own opened."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from holdfast.client.buffers import EventBuffer, Kept
from holdfast.client.threads.connection import Connection
from holdfast.client.threads.readers import Reader
from holdfast.events import Event
from holdfast.local import calls

T = TypeVar("T")


class Watch(EventBuffer, Reader[Event]):
    """Events of ``holdfast.events``, in order, from the call of ``watch`` on."""


class Opened(Kept[T], Reader[T], Generic[T]):
    """What a call of its own opened."""

    call: ClassVar[type[calls.Call]]
    about = ""  # its one field

    _connection: Connection | None = None
    _serial = 0

    def open(self, connection: Connection) -> None:
        self._connection = connection
        self._serial = connection.open_stream(self.call, (self.about,), self)

    def close(self) -> None:
        super().close()
        if self._connection is not None:
            self._connection.close_stream(self._serial)
