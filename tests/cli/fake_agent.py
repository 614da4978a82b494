"""An agent by script: a Unix socket that answers calls as a test says, and remembers what it was asked.

with FakeAgent(tmp_path / "a.sock") as agent:
    agent.answers[calls.Look] = view
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, token=7, seconds=2.0)
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from types import TracebackType
from typing import Any

import msgspec

from holdfast.host import Address, Member, NodeId
from holdfast.local import calls
from holdfast.local.frame import CALL_BYTES_MAX, Frames, framed
from holdfast.net import clock
from tests.support.calls import decode as _decode

ME = NodeId("fake", 7)
GROUP_VIEW = calls.GroupView(1, "member", Member(ME, Address("127.0.0.1", 7946), {}), (), ())
DEADLINE = 40.0  # seconds; only a broken program reaches it

_encode = msgspec.msgpack.encode


class Client:
    """One connection, from the agent's side."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.deadline = 0.0

    def done(self, serial: int, value: Any = None) -> None:
        self._say(calls.Done(serial, msgspec.Raw(_encode(value))))

    def refuse(self, serial: int, error: str, text: str) -> None:
        self._say(calls.Refused(serial, error, text))

    def push(self, serial: int, item: Any) -> None:
        self._say(calls.Pushed(serial, msgspec.Raw(_encode(item))))

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def grant(self, call: calls.Call, *, token: int = 7, seconds: float = 2.0, number: int = 0) -> None:
        """Answer an ``Acquire`` and grant it."""
        self.done(call.serial)
        self.deadline = clock.now() + seconds
        self.push(call.serial, calls.GrantItem("granted", token, self.deadline, number))

    def queue(self, call: calls.Call, position: int) -> None:
        """Answer an ``Acquire``, which has to wait."""
        self.done(call.serial)
        self.push(call.serial, calls.GrantItem("queued", 0, 0.0, position))

    def extend(self, serial: int, seconds: float, *, token: int = 7) -> None:
        self.deadline = clock.now() + seconds
        self.push(serial, calls.GrantItem("extended", token, self.deadline, 0))

    def tell(self, serial: int, what: str, why: str = "", error: str = "") -> None:
        self.push(serial, calls.GrantItem(what, 7, self.deadline, 0, why, {}, 0.0, error))

    def end(self, serial: int, error: str, text: str) -> None:
        """End a stream, or with 0 the connection."""
        self._say(calls.Closed(serial, error, text))

    def _say(self, said: Any) -> None:
        with suppress(OSError):
            self._socket.sendall(framed(_encode(said)))


Handler = Callable[[Client, Any], None]


class FakeAgent:
    """Answers ``Hello`` and ``Look`` by itself, everything else from ``on`` and ``answers``, or with None."""

    def __init__(self, path: Path, *, clock_ahead: float = 0.0, silent: bool = False) -> None:
        self.path = str(path)
        self.on: dict[type[calls.Call], Handler] = {}
        self.answers: dict[type[calls.Call], Any] = {calls.Look: GROUP_VIEW, calls.Watch: GROUP_VIEW}
        self.heard: list[tuple[float, Any]] = []  # when, and the call
        self.clients: list[Client] = []
        self._ahead, self._silent = clock_ahead, silent
        self._changed = Condition()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def __enter__(self) -> FakeAgent:
        self._listener.bind(self.path)
        self._listener.listen()
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.die()

    def die(self) -> None:
        """As a kill -9 looks to clients."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for client in self.clients:
            client.close()

    def asked(self, kind: type[calls.Call]) -> list[Any]:
        return [call for _, call in self.heard if isinstance(call, kind)]

    def wait_for(self, kind: type[calls.Call], count: int = 1) -> tuple[float, Any]:
        """When the call came, and the call."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.asked(kind)) >= count, DEADLINE), f"never asked: {kind.__name__}"
        return [each for each in self.heard if isinstance(each[1], kind)][count - 1]

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self.clients.append(Client(sock))
                Thread(target=self._serve, args=(sock, self.clients[-1]), daemon=True).start()

    def _serve(self, sock: socket.socket, client: Client) -> None:
        frames = Frames(CALL_BYTES_MAX)
        with sock, suppress(OSError):
            while data := sock.recv(65536):
                for body in frames.feed(data):
                    self._answer(client, _decode(body))

    def _answer(self, client: Client, call: Any) -> None:
        if self._silent:
            return
        with self._changed:
            self.heard.append((clock.now(), call))
            self._changed.notify_all()
        if isinstance(call, calls.Hello) and calls.Hello not in self.on:
            now = clock.now() + self._ahead
            client.done(call.serial, calls.Welcome(calls.VERSION, ME, os.getpid(), "test", now, 1))
        elif type(call) in self.on:
            self.on[type(call)](client, call)
        else:
            client.done(call.serial, self.answers.get(type(call)))
