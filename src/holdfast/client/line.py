"""One blocking connection to an agent, used inline by the thread that asks: the shortest way to an answer and back.

A call is one encode, one send, one receive and one typed decode, so that a program that asks often pays little more than the
socket itself. Threads take turns by a lock. For calls that wait for somebody else there is ``pump``.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from struct import Struct
from threading import Lock
from typing import Any

from holdfast.client.wire import (
    CALL_TIMEOUT,
    ITEMS,
    UNREADABLE,
    agent_lost,
    answer_of,
    check_clock,
    check_version,
    decode_frame,
    error_of,
    forked,
    frame_of,
)
from holdfast.errors import AgentLost, Timeout
from holdfast.local import calls
from holdfast.local.frame import ANSWER_BYTES_MAX, Frames, FrameTooLong
from holdfast.net.clock import now

READ_BYTES = 1 << 16  # per read: most answers are far shorter, a list of 1000 members takes a few
PUSHED_MAX = 4096  # frames of a stream kept while a call waits for its answer; the oldest goes first

_timeval = Struct("ll")


def program_name() -> str:
    """What a client says it is, for the agent's logs."""
    import sys

    return f"{os.path.basename(sys.argv[0] or 'python') if sys.argv else 'python'}[{os.getpid()}]"[:100]  # noqa: PTH119 - pathlib costs a start


def connect(path: str, timeout: float) -> socket.socket:
    """A socket on which reads and writes end after ``timeout`` seconds; raises AgentLost if nobody listens there."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.connect(path)
        # Limits of the kernel instead of Python's: those would ask poll() before every read and write.
        sock.settimeout(None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _limit(timeout))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _limit(timeout))
    except OSError as error:
        sock.close()
        raise AgentLost(f"agent {path}: {error.strerror or error}; start one, or correct agent= or HOLDFAST_AGENT") from error
    except BaseException:
        sock.close()
        raise
    return sock


class Line:
    """A connection for calls and, after ``stream``, for what an agent pushes."""

    def __init__(self, path: str, *, program: str = "", timeout: float = CALL_TIMEOUT) -> None:
        self.path = path
        self._pid = os.getpid()
        self._lock = Lock()
        self._serial = 0
        self._frames = Frames(ANSWER_BYTES_MAX)
        self._bodies: deque[bytes] = deque()  # read, and not looked at yet
        self._pushed: deque[calls.Pushed] = deque(maxlen=PUSHED_MAX)
        self._read_limit = timeout
        self._broken: AgentLost | None = None
        self._socket = connect(path, timeout)
        try:
            before = now()
            self.welcome: calls.Welcome = self.call(calls.Hello, calls.VERSION, program or program_name(), before, timeout=timeout)
            check_version(path, self.welcome)
            check_clock(path, before, self.welcome, now())
        except BaseException:
            self._socket.close()
            raise

    def call(self, kind: type[calls.Call], *fields: Any, timeout: float = CALL_TIMEOUT) -> Any:
        """Ask and wait. Raises what the agent answers, ``Timeout`` when it is silent, ``AgentLost`` when it is gone."""
        with self._lock:
            return self._ask(kind, fields, timeout)

    def stream(self, kind: type[calls.Call], *fields: Any, timeout: float = CALL_TIMEOUT) -> tuple[Any, Iterator[Any]]:
        """The answer to a call that opens a stream, and its items, without end; AgentLost when the agent is gone."""
        with self._lock:
            answer = self._ask(kind, fields, timeout)
            return answer, self._items(self._serial, ITEMS[kind])

    def close(self) -> None:
        self._broken = self._broken or agent_lost(self.path, "this connection was closed")
        self._socket.close()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _ask(self, kind: type[calls.Call], fields: tuple[Any, ...], timeout: float) -> Any:
        if os.getpid() != self._pid:
            raise forked()
        if self._broken is not None:
            raise self._broken
        self._serial = serial = self._serial + 1
        self._send(frame_of(kind(serial, *fields)))
        return self._answer(serial, kind, now() + timeout, timeout)

    def _send(self, frame: bytes) -> None:
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise self._break(f"cannot be written to ({error.strerror or error})") from error
        except BaseException:
            self._break("a call was interrupted half-way")  # Nobody knows where the next frame would begin.
            raise

    def _answer(self, serial: int, kind: type[calls.Call], end_at: float, timeout: float) -> Any:
        decode, done = answer_of(kind)
        while True:
            body = self._body(end_at, timeout)
            try:
                frame = decode(body)
            except UNREADABLE:
                frame = self._other(body)  # The late answer to another call, which has another type.
            if type(frame) is done:
                if frame.serial == serial:
                    return frame.value
            elif isinstance(frame, calls.Pushed):
                self._pushed.append(frame)
            elif isinstance(frame, calls.Closed):
                self._on_closed(frame)
            elif isinstance(frame, calls.Refused) and frame.serial == serial:
                raise error_of(frame.error, frame.text, frame.numbers)

    def _other(self, body: bytes) -> Any:
        try:
            frame = decode_frame(body)
        except UNREADABLE as error:
            raise self._break("speaks another language") from error
        if isinstance(frame, calls.Done) and frame.serial == self._serial:
            raise self._break("gave an answer of another kind")
        return frame

    def _body(self, end_at: float, limit: float) -> bytes:
        if self._bodies:
            return self._bodies.popleft()
        if limit != self._read_limit:
            self._read_limit = limit
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _limit(limit))
        while not (bodies := self._receive(limit)):
            if now() >= end_at:
                raise self._silent(limit)
        if len(bodies) > 1:
            self._bodies.extend(bodies[1:])
        return bodies[0]

    def _receive(self, limit: float) -> list[bytes]:
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            raise self._silent(limit) from None
        except OSError as error:
            raise self._break(f"cannot be read from ({error.strerror or error})") from error
        if not data:
            raise self._break("it ended")
        try:
            return self._frames.feed(data)
        except FrameTooLong as error:
            raise self._break("speaks another language") from error

    def _items(self, serial: int, decode: Any) -> Iterator[Any]:
        while True:
            if os.getpid() != self._pid:
                raise forked()
            if self._broken is not None:
                raise self._broken
            if self._pushed:
                frame: Any = self._pushed.popleft()
            else:
                with suppress(Timeout):  # Nothing has happened; that is no news.
                    frame = self._other(self._body(now() + CALL_TIMEOUT, CALL_TIMEOUT))
                    if isinstance(frame, calls.Pushed):
                        self._pushed.append(frame)
                    elif isinstance(frame, calls.Closed):
                        self._on_closed(frame)
                continue
            if frame.serial == serial:
                yield decode(frame.item)

    def _on_closed(self, frame: calls.Closed) -> None:
        if frame.serial == 0:
            raise self._break(frame.text or "it closed the connection")
        raise error_of(frame.error, frame.text)

    def _silent(self, limit: float) -> Timeout:
        return Timeout(f"agent {self.path}: no answer within {limit:g} s; is its machine overloaded, or the agent stopped?")

    def _break(self, why: str) -> AgentLost:
        self._broken = agent_lost(self.path, why)
        self._socket.close()
        return self._broken


def _limit(seconds: float) -> bytes:
    """As the kernel wants it; 0 would mean for ever."""
    micros = max(1, round(seconds * 1e6))
    return _timeval.pack(micros // 1_000_000, micros % 1_000_000)
