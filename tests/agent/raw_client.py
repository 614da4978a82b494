"""A client as small as it can be: a socket, msgspec, and nothing of ``holdfast.client``.

It answers for the language of the local socket, not for its comfort: one thread, blocking, streams in lists.
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from types import TracebackType
from typing import Any, Self

import msgspec

from holdfast.local import calls
from holdfast.local.calls import Call, Closed, Done, FromAgent, GrantItem, Hello, Pushed, Refused
from holdfast.local.frame import ANSWER_BYTES_MAX, Frames, framed

TIMEOUT = 30.0  # seconds; only a broken agent or a broken machine reaches it

_encode = msgspec.msgpack.Encoder().encode
_answers: msgspec.msgpack.Decoder[FromAgent] = msgspec.msgpack.Decoder(FromAgent)


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Sent(Exception):
    """The agent refused; ``error`` is the name it gave."""

    def __init__(self, error: str, text: str) -> None:
        super().__init__(f"{error}: {text}")
        self.error, self.text = error, text


class RawClient:
    """One connection."""

    def __init__(self, path: str, *, greet: bool = True) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(path)
        self.serial = 0
        self.frames = Frames(ANSWER_BYTES_MAX)
        self.read: deque[FromAgent] = deque()
        self.pushed: dict[int, deque[bytes]] = {}
        self.closed: dict[int, Closed] = {}
        self.welcome: calls.Welcome | None = None
        if greet:
            self.welcome = self.ask(Hello, calls.VERSION, f"raw client {os.getpid()}", now())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.sock.close()

    def say(self, kind: type[Call], *fields: Any) -> int:
        """Send a call; its serial."""
        self.serial += 1
        self.sock.sendall(framed(_encode(kind(self.serial, *fields))))
        return self.serial

    def ask(self, kind: type[Call], *fields: Any) -> Any:
        """Send a call and wait for its answer."""
        return self.answer(kind, self.say(kind, *fields))

    def answer(self, kind: type[Call], serial: int) -> Any:
        while True:
            message = self.next()
            if isinstance(message, Done) and message.serial == serial:
                return msgspec.msgpack.decode(message.value, type=kind.answers)
            if isinstance(message, Refused) and message.serial == serial:
                raise Sent(message.error, message.text)

    def next(self) -> FromAgent:
        """The next message, whatever it is; what streams say is kept as well."""
        while not self.read:
            data = self.sock.recv(1 << 18)
            if not data:
                raise EOFError
            self.read.extend(_answers.decode(body) for body in self.frames.feed(data))
        message = self.read.popleft()
        if isinstance(message, Pushed):
            self.pushed.setdefault(message.serial, deque()).append(bytes(message.item))
        elif isinstance(message, Closed):
            self.closed[message.serial] = message
        return message

    def item(self, serial: int, kind: type[Any]) -> Any:
        """The next item of a stream."""
        while not self.pushed.get(serial):
            self.next()
        return msgspec.msgpack.decode(self.pushed[serial].popleft(), type=kind)

    def grant(self, serial: int, what: str, *, confirm: bool = True) -> GrantItem:
        """The next item of a grant that says so; others are passed over. What was granted is taken up, as a client that acts does."""
        while True:
            item: GrantItem = self.item(serial, GrantItem)
            if item.what == "granted" and confirm:
                self.say(calls.Confirm, serial, item.token)
            if item.what == what:
                return item

    def ending(self) -> Closed | None:
        """Read to the end; what the agent said about the connection."""
        try:
            while True:
                self.next()
        except (EOFError, ConnectionError):
            return self.closed.get(0)
