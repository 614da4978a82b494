"""The law of grants without sockets and processes: a host whose time the test moves, sessions that record, bodies that die on command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from holdfast.agent.grants.bodies import Body
from holdfast.agent.grants.granted import TOKEN_FIRST_MIN
from holdfast.agent.grants.grants import Grants
from holdfast.errors import ConfigError, HoldfastError
from holdfast.kit.hold import Holder, LossReason
from holdfast.local.calls import Acquire, GrantItem
from tests.support.fake_host import FakeHost

KIND = "lock"


class TurnHost(FakeHost):
    """With the way in for what comes from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.posted: list[Callable[[], None]] = []

    def post(self, callback: Callable[[], None]) -> None:
        self.posted.append(callback)

    def settle(self) -> None:
        while self.posted:
            self.posted.pop(0)()


class FakeBody:
    """A process that lives until the test says otherwise."""

    def __init__(self, pid: int = 1) -> None:
        self.pid, self.dead, self.closed = pid, False, False
        self.on_death: Callable[[], None] | None = None

    def watch(self, on_death: Callable[[], None]) -> None:
        self.on_death = on_death

    def close(self) -> None:
        self.closed = True

    def die(self) -> None:
        self.dead = True
        if self.on_death is not None and not self.closed:
            self.on_death()


class FakeSession:
    """A connection that remembers what it was told."""

    def __init__(self, number: int, body: FakeBody | None, law: Grants | None = None) -> None:
        """``law``: where it confirms what it is granted, at once."""
        self.number, self.law = number, law
        self.client = body
        self.connected = True
        self.paused = False
        self.read: int | None = None  # so many items; None: all
        self.items: list[tuple[int, GrantItem]] = []
        self.ended: list[tuple[int, str]] = []
        self.forgets = 0

    @property
    def reads(self) -> bool:
        return self.connected and not self.paused

    @property
    def sent(self) -> int:
        return len(self.items)

    def follows(self, sent: int) -> bool:
        return self.read is None or sent <= self.read

    def push(self, serial: int, item: GrantItem) -> None:
        assert self.connected
        self.items.append((serial, item))
        if item.what == "granted" and self.law is not None:
            with suppress(HoldfastError):  # What a client is answered to its confirmation is nothing to it.
                self.law.confirm(self, serial, item.token)

    def end(self, serial: int, error: str, text: str) -> None:
        self.ended.append((serial, error))

    def body(self) -> Body | None:
        return cast(Body | None, self.client)

    def forget(self) -> None:
        self.forgets += 1

    @property
    def said(self) -> list[str]:
        return [item.what for _, item in self.items]

    @property
    def last(self) -> GrantItem:
        return self.items[-1][1]


class Because(LossReason, frozen=True):
    """A reason of the test's choice."""

    word = "because"

    text: str

    def __str__(self) -> str:
        return self.text


class FakeHeld:
    """What a kind keeps: here, what was done to it."""

    def __init__(self, name: str, holder: Holder) -> None:
        self.name, self.holder = name, holder
        self.calls: list[str] = []
        self.renewing = True

    def cancel(self) -> None:
        self.calls.append("cancel")

    def release(self) -> None:
        self.calls.append("release")

    def renew_allowed(self, allowed: bool) -> None:
        self.renewing = allowed


class FakeKind:
    """Grants nothing by itself: the test does."""

    kind = KIND

    def __init__(self) -> None:
        self.held: list[FakeHeld] = []
        self.at_once: Callable[[Holder], None] = lambda holder: None

    def acquire(self, name: str, options: Mapping[str, Any], holder: Holder) -> FakeHeld:
        if options.get("bad"):
            raise ConfigError("bad: accepted is nothing")
        self.held.append(FakeHeld(name, holder))
        self.at_once(holder)
        return self.held[-1]


class Stand:
    """One law, one kind, any number of sessions."""

    def __init__(self) -> None:
        self.host = TurnHost()
        self.law = Grants(self.host)
        self.kind = FakeKind()
        self.law.add(self.kind)
        self.sessions = 0
        self.token = TOKEN_FIRST_MIN

    def session(self, *, named: bool = True, confirms: bool = True) -> FakeSession:
        """``named``: the kernel can name its process. ``confirms``: it takes up what it is granted, at once."""
        self.sessions += 1
        return FakeSession(self.sessions, FakeBody(self.sessions) if named else None, self.law if confirms else None)

    def ask(self, session: FakeSession, serial: int = 1, name: str = "x") -> FakeHeld:
        self.law.acquire(session, Acquire(serial, KIND, name, {}), lambda: None)
        return self.kind.held[-1]

    def hold(self, session: FakeSession, length: float = 10.0, serial: int = 1, name: str = "x") -> FakeHeld:
        """Asked and granted."""
        held = self.ask(session, serial, name)
        self.token += 1
        held.holder.on_granted(self.token, self.host.now + length)
        return held

    def leave(self, session: FakeSession) -> None:
        """The socket closes."""
        session.connected = False
        self.law.disconnected(session)
        self.host.settle()

    def kill(self, session: FakeSession) -> None:
        """The kernel says that its process is dead; the socket may be open in a child."""
        assert session.client is not None
        session.client.dead = True
        self.law.client_died(session)
        self.host.settle()
