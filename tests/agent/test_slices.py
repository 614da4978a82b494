"""The local socket within a turn of the loop: protocols come first, and one client does not keep the others.  H179."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.agent.socket import budget, connection
from holdfast.agent.socket.budget import SLICE_SECONDS, TURN_SECONDS, Slices
from holdfast.local import calls
from holdfast.local.frame import framed
from tests.agent.live import Live
from tests.agent.raw_client import RawClient

encode = msgspec.msgpack.Encoder().encode


class Time:
    """A clock, and a loop that turns when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.ready: deque[Callable[[], None]] = deque()
        monkeypatch.setattr(budget, "monotonic", lambda: self.now)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.ready.append(callback)

    def turn(self) -> float:
        """Seconds that it took."""
        began_at = self.now
        for _ in range(len(self.ready)):
            self.ready.popleft()()
        return self.now - began_at


class Client:
    """So many calls of ``cost`` seconds each."""

    def __init__(self, time: Time, calls: int, cost: float = 0.0003) -> None:
        self.time, self.calls, self.cost = time, calls, cost
        self.waits = False
        self.served = 0

    def serve(self, end_at: float) -> bool:
        self.waits = False
        while self.calls:
            self.calls, self.served = self.calls - 1, self.served + 1
            self.time.now += self.cost
            if self.time.now >= end_at:
                break
        return bool(self.calls)

    def wait(self) -> None:
        self.waits = True


def test_a_turn_is_short_however_many_clients_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """H179: all clients together get TURN_SECONDS and at most a slice more; those that wait are not read, and all are served."""
    time = Time(monkeypatch)
    slices, clients = Slices(time), [Client(time, 50) for _ in range(100)]  # type: ignore[arg-type]
    most = TURN_SECONDS + SLICE_SECONDS + 0.0003
    began_at = time.now
    for client in clients:
        slices.enter(client)  # All of them are ready in one turn.
    assert time.now - began_at <= most
    assert sum(client.waits for client in clients) >= 97
    while time.ready:
        assert time.turn() <= most
    assert all(client.served == 50 and not client.waits for client in clients)


def test_clients_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """H179: a client that sends without end is served a slice, then the others, then it again."""
    time = Time(monkeypatch)
    slices = Slices(time)  # type: ignore[arg-type]
    flood, others = Client(time, 10**6), [Client(time, 1) for _ in range(3)]
    slices.enter(flood)
    for each in others:
        slices.enter(each)
    time.turn()
    assert [each.served for each in others] == [1, 1, 1]
    assert flood.waits
    assert 0 < flood.served < 20


def test_a_client_that_is_gone_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """H179: it has no turn any more."""
    time = Time(monkeypatch)
    slices, client = Slices(time), Client(time, 100)  # type: ignore[arg-type]
    slices.enter(client)
    before = client.served
    slices.forget(client)
    slices.forget(client)
    time.turn()
    assert client.served == before


def test_one_call_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """H179: who asks once in a while does not wait for another turn of the loop."""
    time = Time(monkeypatch)
    slices = Slices(time)  # type: ignore[arg-type]
    for _ in range(100):
        client = Client(time, 1)
        slices.enter(client)
        assert client.served == 1
        time.now += 0.01
    assert not time.ready
    assert slices.deferred == 0


def test_a_flood_of_calls_is_spread_over_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H179: a thousand calls in one write: the loop turns between them, all are answered, and another client is served as well."""
    monkeypatch.setattr(budget, "TURN_SECONDS", 1e-9)
    monkeypatch.setattr(budget, "SLICE_SECONDS", 0.0)  # a call per turn
    with Live(tmp_path) as live, RawClient(live.path) as flood, RawClient(live.path) as other:
        turns = Counting(live)
        first, number = flood.serial + 1, 1000
        flood.serial += number
        batch = [calls.Look(serial) if serial % 2 else calls.Owns(serial, b"key") for serial in range(first, first + number)]
        flood.sock.sendall(b"".join(framed(encode(each)) for each in batch))
        assert other.ask(calls.Look).members is not None
        answered = [flood.next() for _ in range(number)]
        assert turns.end() >= number
        assert sorted(message.serial for message in answered) == list(range(first, first + number))
        assert live.call(lambda: live.server.slices.deferred) >= number // 2


def test_calls_that_enter_a_protocol_are_few_per_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H179: whatever time is left, a client enters the protocols at most ENTER_MAX times in one turn."""
    monkeypatch.setattr(budget, "SLICE_SECONDS", 60.0)
    entered: list[int] = []
    with Live(tmp_path) as live, RawClient(live.path) as client:
        enter = live.agent.host.enter

        def counted(callbacks: Any) -> None:
            entered.append(len(callbacks))
            enter(callbacks)

        live.call(lambda: setattr(live.server.turns, "enter", counted))
        batch = [calls.Owns(serial, b"key") for serial in range(client.serial + 1, client.serial + 201)]
        client.serial += 200
        client.sock.sendall(b"".join(framed(encode(each)) for each in batch))
        for _ in range(200):
            client.next()
    assert sum(entered) == 200
    assert max(entered) <= connection.ENTER_MAX


class Counting:
    """How often the loop of an agent turns."""

    def __init__(self, live: Live) -> None:
        self._live, self._count, self._over = live, 0, False
        live.call(self._on_turn)

    def end(self) -> int:
        self._over = True
        return self._count

    def _on_turn(self) -> None:
        self._count += 1
        if not self._over:
            self._live.loop.call_soon(self._on_turn)
