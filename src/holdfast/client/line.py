"""One blocking connection to an agent, used inline by the thread that asks: no event loop, no thread of its own.

A call is written, and what comes is read until its answer is there: the shortest way to an answer and back. Threads take turns by a lock.
What an agent pushes is taken in meanwhile, or with ``read``. For calls that wait for another member there is ``pump``.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from struct import Struct
from threading import RLock
from typing import Any, Self

from holdfast.client.conversation import ENDED, NOBODY, Conversation, Sink, Waiter
from holdfast.client.wire import CALL_TIMEOUT, ITEMS, agent_lost, check_clock, check_version, forked, silent
from holdfast.errors import AgentLost, HoldfastError, Timeout
from holdfast.local import calls
from holdfast.net.clock import now

READ_BYTES = 1 << 16  # per read: most answers are far shorter, a list of 1000 members takes a few
PUSHED_MAX = 4096  # items of a stream kept while a call waits for its answer; the oldest goes first
FOR_EVER = bytes(16)  # a limit of zero, as the kernel wants it

_timeval = Struct("ll")


def program_name() -> str:
    """What a client says it is, for the agent's logs."""
    import sys

    return f"{os.path.basename(sys.argv[0] or 'python') if sys.argv else 'python'}[{os.getpid()}]"[:100]  # noqa: PTH119 - pathlib costs a start


def connect(path: str, timeout: float) -> socket.socket:
    """A socket on which reads and writes end after ``timeout`` seconds; raises OSError or ValueError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.connect(path)
        # Limits of the kernel instead of Python's: those would ask poll() before every read and write.
        sock.settimeout(None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _limit(timeout))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _limit(timeout))
    except BaseException:
        sock.close()
        raise
    return sock


def unreachable(path: str, error: OSError | ValueError) -> HoldfastError:
    return AgentLost(f"agent {path}: {getattr(error, 'strerror', None) or error}; start one, or correct agent= or HOLDFAST_AGENT")


class Answer:
    """Waits for an answer inline."""

    __slots__ = ("error", "given", "value")

    def __init__(self) -> None:
        self.given, self.value = False, None
        self.error: HoldfastError | None = None

    def set_result(self, value: Any, /) -> None:
        self.given, self.value = True, value

    def set_exception(self, error: Any, /) -> None:
        self.given, self.error = True, error

    def done(self) -> bool:
        return self.given


class Items:
    """Reads a stream inline."""

    def __init__(self, kind: type[calls.Call]) -> None:
        self._decode = ITEMS[kind]
        self.items: deque[Any] = deque(maxlen=PUSHED_MAX)
        self.over = False
        self.error: HoldfastError | None = None

    def push(self, item: Any) -> None:
        self.items.append(self._decode(item))

    def end(self, error: HoldfastError | None) -> None:
        self.over, self.error = True, error


class Line:
    """A conversation over a blocking socket. Subclasses may say in other words what went wrong."""

    def __init__(self, path: str, *, program: str = "", timeout: float = CALL_TIMEOUT) -> None:
        self.path = path
        self._pid = os.getpid()
        self._lock = RLock()  # also of what a sink asks in return
        self._conversation = Conversation(path, self.loss)
        self._read_limit = timeout
        try:
            self._socket = connect(path, timeout)
        except (OSError, ValueError) as error:
            raise self.unreachable(error) from error
        try:
            before = now()
            self.welcome: calls.Welcome = self.call(calls.Hello, calls.VERSION, program or program_name(), before, timeout=timeout)
            self.check_welcome(before, now())
        except BaseException:
            self._socket.close()
            raise

    def call(self, kind: type[calls.Call], *fields: Any, timeout: float = CALL_TIMEOUT) -> Any:
        """Ask and wait. Raises what the agent answers, ``Timeout`` when it is silent, ``AgentLost`` when it is gone."""
        with self._lock:
            return self._ask(kind, fields, None, timeout)

    def open(self, kind: type[calls.Call], *fields: Any, sink: Sink, through: Callable[[Waiter], Waiter] | None = None) -> Any:
        """Ask for a stream and wait for the answer. What is pushed goes to the sink, which the caller keeps. The answer goes ``through``
        another waiter, if there is one, before anything that is pushed."""
        with self._lock:
            return self._ask(kind, fields, sink, CALL_TIMEOUT, through)

    def begin(self, kind: type[calls.Call], fields: tuple[Any, ...], waiter: Waiter, *, sink: Sink | None = None) -> int:
        """Ask. The answer goes to the waiter and what is pushed to the sink, when ``read`` or another call takes it in."""
        with self._lock:
            self._send(self._conversation.begin(kind, fields, waiter, inf, sink))
            return self._conversation.serial

    def tell(self, kind: type[calls.Call], *fields: Any, waiter: Waiter = NOBODY) -> None:
        """Ask, and do not wait for the answer."""
        self.begin(kind, fields, waiter)

    def close_stream(self, serial: int) -> None:
        with self._lock:
            self._send(self._conversation.close_stream(serial))

    def read(self, timeout: float) -> bool:
        """Take in what the agent says, and wait for it at most so long. False if it said nothing."""
        with self._lock:
            return self._receive(timeout)

    def stream(self, kind: type[calls.Call], *fields: Any, until: float = inf) -> Iterator[Any]:
        """The items of a stream, up to an instant of this machine's clock; raises what ended it earlier."""
        items = Items(kind)
        self.open(kind, *fields, sink=items)
        return self._read_items(items, until)

    def close(self) -> None:
        if self._conversation.over is None:
            self._conversation.over = self.loss(self.path, "this connection was closed")
        self._socket.close()

    @property
    def lost(self) -> bool:
        return self._conversation.over is not None

    def fileno(self) -> int:
        """Readable when there is something to ``read``."""
        return self._socket.fileno()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # What a subclass may say in other words.

    def check_welcome(self, before: float, after: float) -> None:
        """The agent is one that this client can talk to."""
        check_version(self.path, self.welcome)
        check_clock(self.path, before, self.welcome, after)

    def unreachable(self, error: OSError | ValueError) -> HoldfastError:
        return unreachable(self.path, error)

    @staticmethod
    def loss(path: str, why: str, error: str = "") -> HoldfastError:
        """The connection is over; ``error`` is what the agent called it, if it closed the connection itself."""
        return agent_lost(path, why, error)

    def silent(self, kind: type[calls.Call], limit: float) -> Timeout:
        return silent(self.path, limit)

    # Under the lock.

    def _ask(
        self,
        kind: type[calls.Call],
        fields: tuple[Any, ...],
        sink: Sink | None,
        timeout: float,
        through: Callable[[Waiter], Waiter] | None = None,
    ) -> Any:
        answer, end_at = Answer(), now() + timeout
        self._send(self._conversation.begin(kind, fields, answer if through is None else through(answer), end_at, sink))
        serial, left = self._conversation.serial, timeout
        while not answer.given:
            if left <= 0 or not self._receive(left):
                self._conversation.forget(serial)
                raise self.silent(kind, timeout)
            if not answer.given:
                left = end_at - now()  # Something else was said.
        if answer.error is not None:
            raise answer.error
        return answer.value

    def _send(self, frame: bytes) -> None:
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise self._break(f"cannot be written to ({error.strerror or error})") from error
        except BaseException:
            self._break("a call was interrupted half-way")  # The agent would not know where the next frame begins.
            raise

    def _receive(self, timeout: float) -> bool:
        conversation = self._conversation
        if conversation.over is not None:
            raise conversation.error
        try:
            if timeout != self._read_limit and timeout > 0:
                self._read_limit = timeout
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, FOR_EVER if timeout == inf else _limit(timeout))
            data = self._socket.recv(READ_BYTES, 0 if timeout > 0 else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._break(f"cannot be read from ({error.strerror or error})") from error
        if not data:
            raise self._break(ENDED)
        try:
            out = conversation.receive(data)
        except HoldfastError as error:
            conversation.over = conversation.over or error
            out = b""
        if conversation.over is not None:
            self._ended(conversation.over)  # The next read raises it: what came before the end counts, as an answer to ``Leave`` does.
        elif out:
            self._send(out)
        return True

    def _break(self, why: str) -> HoldfastError:
        return self._ended(self.loss(self.path, why))

    def _ended(self, error: HoldfastError) -> HoldfastError:
        """Everything that is open here is over. Returns what to raise."""
        self._conversation.lose(error)
        self._socket.close()
        return self._conversation.error

    def _read_items(self, items: Items, until: float) -> Iterator[Any]:
        while True:
            if os.getpid() != self._pid:
                raise forked()
            while items.items:
                yield items.items.popleft()
            if items.error is not None:
                raise items.error
            if items.over or until <= now():
                return
            self.read(until - now())


def _limit(seconds: float) -> bytes:
    """As the kernel wants it; 0 would mean for ever."""
    micros = max(1, round(seconds * 1e6))
    return _timeval.pack(micros // 1_000_000, micros % 1_000_000)
