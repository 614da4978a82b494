"""One connection that many threads share: they write, a thread of its own reads.

It carries what an agent pushes (events, messages, news of grants) and calls that wait for another member: those are answered in any order,
so a thread that waits five seconds for a peer does not hold up the others. Calls that the agent answers by itself (``ask``) go over a
``Line``, which is faster: it is opened with the first of them.

The reading thread never waits for a thread that writes: an agent reads nothing from a client that does not read.
"""

from __future__ import annotations

import os
import select
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, RLock, Thread, current_thread, get_ident
from typing import Any

from holdfast.client.conversation import ENDED, NOBODY, Conversation, Sink, Waiter
from holdfast.client.line import FOR_EVER, READ_BYTES, Line, connect, program_name, unreachable
from holdfast.client.wire import CALL_TIMEOUT, agent_lost, check_clock, check_version, silent
from holdfast.errors import AgentLost, HoldfastError, Timeout
from holdfast.local import calls
from holdfast.net.clock import now


class Answer:
    """What a thread waits for."""

    def __init__(self) -> None:
        self._open = Lock()
        self._open.acquire()
        self._value: Any = None
        self._error: BaseException | None = None

    def set_result(self, value: Any, /) -> None:
        self._value = value
        self._open.release()

    def set_exception(self, error: BaseException, /) -> None:
        self._error = error
        self._open.release()

    def done(self) -> bool:
        return not self._open.locked()

    def wait(self, path: str, timeout: float) -> Any:
        if not self._open.acquire(timeout=timeout):
            raise silent(path, timeout)
        self._open.release()  # It stays answered.
        if self._error is not None:
            raise self._error
        return self._value


class Connection:
    """A conversation over a blocking socket."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._pid = os.getpid()
        self._on_lost: Callable[[HoldfastError], None] | None = None
        self._conversation = Conversation(path)
        self._lock = RLock()  # of the conversation, and of what is to be written; held for moments
        self._out: deque[bytes] = deque()  # made and not written yet, in the order of their making
        self._writing = Lock()  # of the socket's way out; its holder may wait for the agent
        self._opening = Lock()  # of the line
        self._line: Line | None = None  # for ``ask``
        try:
            self._socket = connect(path, CALL_TIMEOUT)
        except (OSError, ValueError) as error:
            raise unreachable(path, error) from error
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, FOR_EVER)
        self._thread = Thread(target=self._run, name=f"holdfast {path}", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self._socket.close()
            raise
        try:
            before = now()
            self.welcome: calls.Welcome = self.call(calls.Hello, calls.VERSION, program_name(), before)
            check_version(path, self.welcome)
            check_clock(path, before, self.welcome, now())
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, path: str) -> Connection:
        """Connect and greet. Raises AgentLost when no agent answers there, ConfigError when it is none for this client."""
        return cls(path)

    def notice(self, on_lost: Callable[[HoldfastError], None]) -> None:
        """From now on ``on_lost`` is called, once, by the reading thread, when the agent is gone. If it is gone already, AgentLost."""
        with self._lock:
            self.check()
            self._on_lost = on_lost

    @property
    def lost(self) -> bool:
        return self._conversation.over is not None

    def check(self) -> None:
        """Raises AgentLost if it is lost."""
        if self._conversation.over is not None:
            raise self._conversation.error

    def call(self, kind: type[calls.Call], *fields: Any, timeout: float = CALL_TIMEOUT) -> Any:
        """Ask and wait. Raises what the agent answers, ``Timeout`` when it is silent, ``AgentLost`` when it is gone."""
        answer = Answer()
        self.begin(kind, fields, answer, timeout=timeout)
        return self.answered(answer, timeout)

    def ask(self, kind: type[calls.Call], *fields: Any, timeout: float = CALL_TIMEOUT) -> Any:
        """The same for a call that the agent answers by itself, at once: asked inline, on a line of its own."""
        line = self._line or self._open_line(timeout)
        try:
            return line.call(kind, *fields, timeout=timeout)
        except AgentLost:
            self._line = None  # Another one is opened if the agent is there after all.
            raise

    def _open_line(self, timeout: float) -> Line:
        with self._opening:
            if self._line is None:
                self.check()
                self._line = Line(self.path, timeout=timeout)
            return self._line

    def answer(self) -> Answer:
        """For ``begin``: what waits for an answer."""
        return Answer()

    def answered(self, answer: Answer, timeout: float = CALL_TIMEOUT) -> Any:
        """Wait for it. Raises as ``call`` does."""
        try:
            return answer.wait(self.path, timeout)
        finally:
            if not answer.done():
                self._expire()

    def stop(self, grant: int) -> None:
        """No process acts under it any more, and its stream is over: said at once, so that the agent wakes up once."""
        answer = Answer()
        with self._lock:
            self._out.append(self._conversation.begin(calls.Stopped, (grant,), answer, now() + CALL_TIMEOUT, None))
            self._out.append(self._conversation.close_stream(grant))
        self._flush()
        self.answered(answer)

    def _expire(self) -> None:
        """End the calls whose limit has passed, and those whose caller was interrupted."""
        with self._lock:
            for waiter in self._conversation.expire(now()):
                waiter.set_exception(Timeout(f"agent {self.path}: no answer in time"))

    def begin(
        self, kind: type[calls.Call], fields: tuple[Any, ...], waiter: Waiter, *, sink: Sink | None = None, timeout: float = CALL_TIMEOUT
    ) -> int:
        """Ask. The answer goes to the waiter, what is pushed to the sink, both in the reading thread; returns the serial."""
        with self._lock:
            self._out.append(self._conversation.begin(kind, fields, waiter, now() + timeout, sink))
            serial = self._conversation.serial
        self._flush()
        return serial

    def tell(self, kind: type[calls.Call], *fields: Any) -> None:
        """Ask, and wait for nothing."""
        self.begin(kind, fields, NOBODY)

    def open_stream(self, kind: type[calls.Call], fields: tuple[Any, ...], sink: Sink) -> int:
        """Ask for a stream. Returns its serial when the agent has agreed: what happens from then on arrives at the sink."""
        opened = Answer()
        serial = self.begin(kind, fields, opened, sink=sink)
        self.answered(opened)
        return serial

    def close_stream(self, serial: int) -> None:
        with self._lock:
            self._out.append(self._conversation.close_stream(serial))
        with suppress(AgentLost):
            self._flush()

    def close(self) -> None:
        """End the connection, and wait until nothing of it runs any more. A forked child closes only its own copy."""
        self._on_lost = None
        self._close_line()
        if os.getpid() != self._pid:
            self._socket.close()
            return
        self._shut()
        self.join()
        self._close_line()  # Another thread may have opened it just now.

    def _close_line(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def join(self) -> None:
        """Wait for the reading thread, unless this is it."""
        if self._thread is not current_thread():
            self._thread.join()

    def _flush(self) -> None:
        """Write what is there. The reading thread does so when it has dealt with all it read."""
        if get_ident() == self._thread.ident:
            return
        with self._writing:
            try:
                self._socket.sendall(self._taken())
            except OSError as error:
                self._shut()  # Half a frame may be out. The reading thread sees the end, and tells all callers.
                raise agent_lost(self.path, f"cannot be written to ({error.strerror or error})") from error
            except BaseException:
                self._shut()  # Interrupted half-way.
                raise

    def _taken(self) -> bytes:
        with self._lock:
            out = b"".join(self._out)
            self._out.clear()
        return out

    def _write_what_fits(self) -> None:
        """By the reading thread: until nothing is left, or there is something to read."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | select.POLLOUT)
        while self._out:
            ((_, ready),) = poll.poll()
            if ready & select.POLLOUT and self._writing.acquire(blocking=False):  # else a thread writes, and is about to end
                try:
                    self._write_some()
                finally:
                    self._writing.release()
            if ready & ~select.POLLOUT:
                return

    def _write_some(self) -> None:
        out, sent = self._taken(), 0
        with suppress(BlockingIOError):
            sent = self._socket.send(out, socket.MSG_DONTWAIT)
        with self._lock:
            if sent < len(out):
                self._out.appendleft(out[sent:])

    def _shut(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        error: HoldfastError = agent_lost(self.path, ENDED)
        try:
            while data := self._socket.recv(READ_BYTES):
                with self._lock:
                    if out := self._conversation.receive(data):
                        self._out.append(out)
                if self._out:
                    self._write_what_fits()
        except HoldfastError as lost:
            error = lost
        except OSError as broken:
            error = agent_lost(self.path, f"cannot be read from ({broken.strerror or broken})")
        with self._lock:
            self._conversation.lose(error)
            on_lost, self._on_lost = self._on_lost, None
        self._shut()  # A thread that still writes is told, before the descriptor is given to another file.
        with self._writing:
            self._socket.close()
        self._close_line()
        if on_lost is not None:
            on_lost(self._conversation.error)
