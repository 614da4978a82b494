"""Calls under way and open streams of one connection, by serial; no I/O here.  docs/local-api.md.

Calls may be answered in any order. A stream is known from the moment its call is written, because its first item may come in the same
read as the answer. Streams are kept by weak references: what is not held any more is closed when its next item comes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol
from weakref import ReferenceType, ref

from msgspec.msgpack import Decoder

from holdfast.client.wire import UNREADABLE, agent_lost, decode_frame, error_of, forked, frame_of
from holdfast.errors import HoldfastError
from holdfast.local import calls
from holdfast.local.frame import ANSWER_BYTES_MAX, Frames, FrameTooLong


class Values(dict[type[calls.Call], Any]):
    """Decoders of what calls are answered with, made when they are first needed: a command needs one or two of them."""

    def __missing__(self, kind: type[calls.Call]) -> Any:
        decode = self[kind] = Decoder(kind.answers).decode
        return decode


VALUES = Values()  # of the value alone: which call it answers stands in the frame
ENDED = "it ended"  # the other side closed the connection and said nothing
STRANGE = "speaks another language"  # what came is nothing that an agent of this version says
CALLS_MAX = 10_000  # under way on one connection: beyond that the program forgets to wait for answers


class Waiter(Protocol):
    """Who waits for an answer; both kinds of future are one."""

    def set_result(self, value: Any, /) -> None: ...
    def set_exception(self, error: Any, /) -> None: ...
    def done(self) -> bool: ...


class Sink(Protocol):
    """Who reads a stream."""

    def push(self, item: Any) -> None: ...
    def end(self, error: HoldfastError | None) -> None: ...


class Conversation:
    """One connection's calls and streams. ``receive`` says what is to be written in return."""

    def __init__(self, path: str, lost: Callable[[str, str, str], HoldfastError] = agent_lost) -> None:
        """``lost`` makes the error of a connection that is over, from the path, why, and how the agent called it if it did."""
        self.path = path
        self.over: HoldfastError | None = None
        self._lost = lost
        self._pid = os.getpid()
        self._frames = Frames(ANSWER_BYTES_MAX)
        self._serial = 0
        self._waiting: dict[int, tuple[type[calls.Call], Waiter, float]] = {}
        self._streams: dict[int, ReferenceType[Sink]] = {}
        self._unheard: list[int] = []  # streams that are not held any more, and that had an item

    def begin(self, kind: type[calls.Call], fields: tuple[Any, ...], waiter: Waiter, end_at: float, sink: Sink | None = None) -> bytes:
        """The bytes of a call, to be written in the order of their making. Its answer goes to the waiter, what is pushed to the sink."""
        if os.getpid() != self._pid:
            raise forked()  # A child that speaks on its parent's connection could say that the parent's work has stopped (F14).
        if self.over is not None:
            raise self.error
        if len(self._waiting) >= CALLS_MAX:
            raise HoldfastError(f"{CALLS_MAX} calls wait for an answer on one connection; wait for some of them first")
        frame = frame_of(kind(self._serial + 1, *fields))
        self._serial = serial = self._serial + 1
        self._waiting[serial] = kind, waiter, end_at
        if sink is not None:
            self._streams[serial] = ref(sink)
        return frame

    @property
    def error(self) -> HoldfastError:
        """One of its own for each caller that raises it: an exception collects the places it passed."""
        assert self.over is not None
        return type(self.over)(*self.over.args)

    @property
    def serial(self) -> int:
        """Of the last call."""
        return self._serial

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def close_stream(self, serial: int) -> bytes:
        """What is to be written when a stream is not wanted any more; b"" if it is closed."""
        if self._streams.pop(serial, None) is None or self.over is not None or os.getpid() != self._pid:
            return b""
        return self.begin(calls.Close, (serial,), NOBODY, float("inf"))

    def receive(self, data: bytes) -> bytes:
        """What came. Returns what is to be written now. Raises AgentLost if this is no agent of ours."""
        try:
            for body in self._frames.feed(data):
                self._on_frame(decode_frame(body))
        except (FrameTooLong, *UNREADABLE) as error:
            raise self._lost(self.path, STRANGE, "") from error
        if not self._unheard:
            return b""
        # Last: a caller that heard something may have asked in return, and serials are written in the order of their making.
        unheard, self._unheard = self._unheard, []
        return b"".join(map(self.close_stream, unheard))

    def expire(self, now: float) -> list[Waiter]:
        """Those whose answer is overdue. They are forgotten: an answer that comes later is dropped."""
        late = [serial for serial, (_, _, end_at) in list(self._waiting.items()) if end_at <= now]
        return [found[1] for serial in late if (found := self._waiting.pop(serial, None)) is not None]

    def forget(self, serial: int) -> None:
        """This answer is not waited for any more; what comes is dropped."""
        self._waiting.pop(serial, None)
        self._streams.pop(serial, None)

    def lose(self, error: HoldfastError) -> None:
        """The connection is gone: so is everything open on it. What the agent said before of the reason comes first."""
        if self.over is None:
            self.over = error
        waiting, self._waiting = self._waiting, {}
        for _, waiter, _ in waiting.values():
            if not waiter.done():
                waiter.set_exception(self.error)
        streams, self._streams = self._streams, {}
        for each in streams.values():
            if (sink := each()) is not None:
                sink.end(self.error)

    def _on_frame(self, frame: calls.FromAgent) -> None:
        if type(frame) is calls.Done:
            found = self._waiting.pop(frame.serial, None)
            if found is not None and not found[1].done():  # Else nobody waits any more.
                found[1].set_result(VALUES[found[0]](frame.value))
        elif isinstance(frame, calls.Pushed):
            self._on_pushed(frame)
        elif isinstance(frame, calls.Refused):
            self._on_refused(frame)
        elif isinstance(frame, calls.Closed):
            self._on_closed(frame)

    def _on_refused(self, frame: calls.Refused) -> None:
        self._streams.pop(frame.serial, None)
        found = self._waiting.pop(frame.serial, None)
        if found is not None and not found[1].done():
            found[1].set_exception(error_of(frame.error, frame.text, frame.numbers))

    def _on_pushed(self, frame: calls.Pushed) -> None:
        found = self._streams.get(frame.serial)
        if found is None:
            return  # It was closed while this was on its way.
        sink = found()
        if sink is None:
            self._unheard.append(frame.serial)
        else:
            sink.push(frame.item)

    def _on_closed(self, frame: calls.Closed) -> None:
        if frame.serial == 0:
            self.over = self._lost(self.path, frame.text or "it closed the connection", frame.error)
            return
        found = self._streams.pop(frame.serial, None)
        sink = None if found is None else found()
        if sink is not None:
            sink.end(error_of(frame.error, frame.text) if frame.error else None)


class Nobody:
    """Waits for an answer that does not matter."""

    def set_result(self, value: Any, /) -> None: ...
    def set_exception(self, error: Any, /) -> None: ...
    def done(self) -> bool:
        return True


NOBODY = Nobody()
