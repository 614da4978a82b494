"""One connection to the agent of this machine, for a command that asks and ends: blocking, no threads, no event loop.

Where the agent is: ``--agent``, else HOLDFAST_AGENT, else the socket of ``--group`` (else HOLDFAST_GROUP, else "default") in the runtime
directory, where agents put it unless told otherwise.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import msgspec

from holdfast import errors
from holdfast.disk.places import default_socket
from holdfast.errors import AddressUnusable, AgentLost, ConfigError, HoldfastError, Timeout, shown_path
from holdfast.host import NodeId
from holdfast.local.calls import VERSION, Call, Closed, Done, FromAgent, Hello, Pushed, Refused, Welcome
from holdfast.local.frame import ANSWER_BYTES_MAX, CALL_BYTES_MAX, Frames, FrameTooLong, framed
from holdfast.net import clock

ANSWER_TIMEOUT = 5.0  # seconds; an agent answers from memory, so only a stopped or overwhelmed one takes longer
CONNECT_TIMEOUT = 2.0  # seconds; a full queue of the socket is the only reason to wait at all
GRACE = 1.0  # seconds on top of a time limit that the agent keeps by itself: its own answer is the better one
READ_BYTES = 1 << 16

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(FromAgent).decode


def socket_path(agent: str = "", group: str = "") -> str:
    """Where to ask."""
    if agent or (agent := os.environ.get("HOLDFAST_AGENT", "")):
        return agent
    return str(default_socket(group or os.environ.get("HOLDFAST_GROUP", "") or "default"))


class AgentCall:
    """A conversation. ``ask`` returns the answer or raises the error that the agent named."""

    def __init__(self, path: str, *, program: str = "holdfast", timeout: float = ANSWER_TIMEOUT) -> None:
        self.path = path
        self._serial = 0
        self._frames = Frames(ANSWER_BYTES_MAX)
        self._ready: list[bytes] = []
        self._socket = _connected(path, min(timeout, CONNECT_TIMEOUT))
        try:
            self._greet(program, timeout)
        except BaseException:
            self.close()
            raise

    @property
    def agent(self) -> NodeId:
        return self.welcome.agent

    def __enter__(self) -> AgentCall:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def say(self, kind: type[Call], *fields: Any) -> int:
        """Send a call; returns its serial."""
        self._serial += 1
        body = _encode(kind(self._serial, *fields))
        if len(body) > CALL_BYTES_MAX:
            raise ConfigError(f"{kind.__name__}: {len(body)} bytes; accepted are up to {CALL_BYTES_MAX}")
        try:
            self._socket.settimeout(ANSWER_TIMEOUT)
            self._socket.sendall(framed(body))
        except OSError as error:
            raise AgentLost(f"the agent at {self.path} ended: {error.strerror or error}") from None
        return self._serial

    def ask(self, kind: type[Call], *fields: Any, timeout: float = ANSWER_TIMEOUT) -> Any:
        """The value of the answer, as the call declares it."""
        serial = self.say(kind, *fields)
        until = time.monotonic() + timeout
        while True:
            answer = self.hear(until - time.monotonic())
            if answer is None:
                raise Timeout(f"{kind.__name__}: no answer of the agent at {self.path} within {timeout:g} s; is it stopped, or very busy?")
            if answer.serial == serial and not isinstance(answer, Pushed):
                return value_of(answer, kind.answers)

    def stream(self, item: Any, kind: type[Call], *fields: Any, until: float = float("inf")) -> Iterator[Any]:
        """Open a stream; what is pushed on it, until then (``time.monotonic``)."""
        self.ask(kind, *fields)
        serial = self._serial
        while (said := self.hear(until - time.monotonic())) is not None:
            if isinstance(said, Pushed) and said.serial == serial:
                yield msgspec.msgpack.decode(said.item, type=item)
            elif isinstance(said, Closed) and said.serial == serial:
                value_of(said, None)

    def hear(self, timeout: float) -> FromAgent | None:
        """The next thing the agent says; None if that takes longer."""
        until = time.monotonic() + timeout
        while not self._ready:
            left = until - time.monotonic()
            if left <= 0 and timeout > 0:
                return None
            data = self._read(max(0.0, left))
            if data is None:
                return None
            self._feed(data)
        said = self._understood(self._ready.pop(0))
        if isinstance(said, Closed) and said.serial == 0:
            value_of(said, None)
        return said

    def _greet(self, program: str, timeout: float) -> None:
        before = clock.now()
        self.welcome: Welcome = self.ask(Hello, VERSION, program, before, timeout=timeout)
        # F14: deadlines are worth nothing between two clocks, as between a container with a time namespace and its host.
        self.same_clock = before <= self.welcome.now <= clock.now()

    def _read(self, timeout: float) -> bytes | None:
        try:
            self._socket.settimeout(None if timeout == float("inf") else timeout)
            data = self._socket.recv(READ_BYTES)
        except (TimeoutError, BlockingIOError):
            return None
        except OSError as error:
            raise AgentLost(f"the agent at {self.path} ended: {error.strerror}") from None
        if not data:
            raise AgentLost(f"the agent at {self.path} ended")
        return data

    def _feed(self, data: bytes) -> None:
        try:
            self._ready += self._frames.feed(data)
        except FrameTooLong:
            raise AgentLost(f"what answers at {self.path} is no agent") from None

    def _understood(self, body: bytes) -> FromAgent:
        try:
            said: FromAgent = _decode(body)
        except msgspec.DecodeError:
            raise AgentLost(f"what answers at {self.path} is no agent, or one of another version") from None
        return said


def value_of(answer: FromAgent, kind: Any) -> Any:
    """The value; an error of the agent is raised here as the class it named."""
    if isinstance(answer, Done):
        try:
            return None if kind is None else msgspec.msgpack.decode(answer.value, type=kind)
        except msgspec.DecodeError as odd:
            raise AgentLost(f"the agent is of another version: {odd}") from None
    assert isinstance(answer, Refused | Closed)
    error = getattr(errors, answer.error, None)
    raise (error if isinstance(error, type) and issubclass(error, HoldfastError) else HoldfastError)(answer.text)


def asked(agent: str, group: str, kind: type[Call], *fields: Any, timeout: float = ANSWER_TIMEOUT) -> Any:
    """One question, one answer."""
    with AgentCall(socket_path(agent, group), timeout=min(timeout, ANSWER_TIMEOUT)) as call:
        return call.ask(kind, *fields, timeout=timeout)


def _connected(path: str, timeout: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    try:
        connection.connect(path)
    except (OSError, ValueError) as error:
        connection.close()
        if isinstance(error, OSError) and error.strerror is None:
            raise AddressUnusable(f"--agent {shown_path(path)}: {error}; accepted is the path of an agent's socket") from None
        if isinstance(error, PermissionError):
            raise AgentLost(f"the agent at {path} belongs to another user: {error.strerror}") from None
        raise AgentLost(
            f"no agent answers at {path}; start one with `holdfast agent`, or name its socket with --agent or HOLDFAST_AGENT"
        ) from None
    return connection
