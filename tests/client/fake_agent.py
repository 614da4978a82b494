"""An agent that does what a test says: a thread per connection that speaks frames, remembers what was asked and answers by a table."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from holdfast.features.ring.protocol.ids import position_of
from holdfast.host import Address, Member, MemberStatus, NodeId
from holdfast.local import calls
from holdfast.local.frame import CALL_BYTES_MAX, Frames, framed
from holdfast.net.clock import now
from tests.support.calls import decode

C = TypeVar("C", bound=calls.Call)

DEADLINE = 30.0  # seconds; only a broken program reaches it
SILENCE = object()  # the answer that never comes

encode = msgspec.msgpack.Encoder().encode
decode_call: Callable[[bytes], calls.Call] = decode


def member(name: str, boot: int = 1, status: MemberStatus = MemberStatus.ALIVE, **tags: str) -> Member:
    return Member(NodeId(name, boot), Address("127.0.0.1", 7000), {f"tag:{tag}": text.encode() for tag, text in tags.items()}, status)


def view(version: int, *members: Member, state: str = "member") -> calls.GroupView:
    listed = members or (member("a"),)
    return calls.GroupView(version, state, listed[0], listed, tuple(position_of(each.name) for each in listed))


class Session:
    """One connection, as the fake agent sees it."""

    def __init__(self, agent: FakeAgent, sock: socket.socket) -> None:
        self.agent, self.socket = agent, sock
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()

    def write(self, frame: object) -> None:
        self.write_bytes(framed(encode(frame)))

    def write_bytes(self, data: bytes) -> None:
        with suppress(OSError):
            self.socket.sendall(data)

    def close(self) -> None:
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        frames = Frames(CALL_BYTES_MAX)
        with suppress(OSError):
            while data := self.socket.recv(65536):
                for body in frames.feed(data):
                    self.agent.on_call(self, decode_call(body))
        self.socket.close()


class FakeAgent:
    """Listens at ``path``. ``answers`` maps a kind of call to a value, an exception (name, text), ``SILENCE`` or a function of the call."""

    def __init__(self, path: Path, *, group: str = "orders", view: calls.GroupView | None = None) -> None:
        self.path = str(path)
        self.me = NodeId("a", 1)
        self.group = group
        self.view = view or globals()["view"](1)
        self.skew = 0.0  # of its clock
        self.version = calls.VERSION
        self.answers: dict[type[calls.Call], Any] = {calls.Look: lambda call: self.view, calls.Watch: lambda call: self.view}
        self.asked: list[calls.Call] = []
        self.sessions: list[Session] = []
        self._where: dict[int, Session] = {}  # id of a call -> its session
        self._news = Condition()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with suppress(FileNotFoundError):
            path.unlink()
        self._listener.bind(self.path)
        self._listener.listen()
        self._thread = Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> FakeAgent:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """It ends, with all its connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for session in self.sessions:
            session.close()
        for session in self.sessions:
            session.thread.join()

    def session_of(self, call: calls.Call) -> Session:
        return self._where[id(call)]

    def push(self, opened: calls.Call, item: object) -> None:
        """An item on the stream that this call opened."""
        self._where[id(opened)].write(calls.Pushed(opened.serial, Raw(encode(item))))

    def happened(self, name: str, version: int, /, **fields: Any) -> None:
        """An event on every ``Watch``."""
        for opened in self.all(calls.Watch):
            self.push(opened, calls.EventItem(version, 0.0, name, Raw(encode(fields))))

    def say(self, about: calls.Call, frame: object) -> None:
        """Any frame, on the connection that this call came by."""
        self._where[id(about)].write(frame)

    def say_bytes(self, about: calls.Call, data: bytes) -> None:
        self._where[id(about)].write_bytes(data)

    def all(self, kind: type[C]) -> list[C]:
        return [call for call in list(self.asked) if isinstance(call, kind)]

    def wait_for(self, kind: type[C], count: int = 1) -> C:
        """The last of them, when so many were asked."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.all(kind)) >= count, DEADLINE), f"no {kind.__name__} in {self.asked}"
        return self.all(kind)[-1]

    def on_call(self, session: Session, call: calls.Call) -> None:
        self._where[id(call)] = session
        self.asked.append(call)
        answer = self.answers.get(type(call))
        if isinstance(call, calls.Hello):
            answer = calls.Welcome(self.version, self.me, os.getpid(), self.group, now() + self.skew, 1)
        elif callable(answer):
            answer = answer(call)
        if isinstance(answer, tuple):
            session.write(calls.Refused(call.serial, *answer))
        elif answer is not SILENCE:
            session.write(calls.Done(call.serial, Raw(encode(answer))))
        with self._news:
            self._news.notify_all()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self.sessions.append(Session(self, self._listener.accept()[0]))
