"""A host for unit tests: it records what a machine sends, saves and emits, and time passes only when a test says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple, TypeVar

from holdfast.events import Event
from holdfast.host import Address, Message, NodeId, Storage

M = TypeVar("M", bound=Message)
E = TypeVar("E", bound=Event)


class Sent(NamedTuple):
    """One call of ``send``."""

    to: NodeId | Address
    message: Message


class FakeTimer:
    """A callback in the host's heap."""

    def __init__(self, due_at: float, callback: Callable[[], None]) -> None:
        self._due_at = due_at
        self.callback: Callable[[], None] | None = callback

    @property
    def due_at(self) -> float:
        return self._due_at

    def cancel(self) -> None:
        self.callback = None


class FakeStorage:
    """Durable state whose writes complete when the test calls ``complete``; ``auto`` completes them at once.

    ``durable`` is what a restart finds. Give the same dict to a new storage to restart a machine. Parts share one
    queue, as they share one disk: writes complete in call order over all of them.
    """

    def __init__(self, durable: dict[str, bytes] | None = None, *, auto: bool = False) -> None:
        self.durable: dict[str, bytes] = {} if durable is None else durable
        self.auto = auto
        self.pending: list[tuple[str, bytes | None, Callable[[], None]]] = []
        self._prefix = ""
        self._root = self

    @property
    def fresh(self) -> bool:
        return not any(key.startswith(self._prefix) for key in self._root.durable)

    def load(self) -> Mapping[str, bytes]:
        start = len(self._prefix)
        return {key[start:]: value for key, value in sorted(self._root.durable.items()) if key.startswith(self._prefix)}

    def save(self, key: str, value: bytes | None, then: Callable[[], None]) -> None:
        self._root.pending.append((self._prefix + key, value, then))
        if self._root.auto:
            self._root.complete()

    def part(self, name: str) -> FakeStorage:
        part = FakeStorage()
        part._prefix = f"{self._prefix}{name}/"
        part._root = self._root
        return part

    def complete(self, writes: int | None = None, *, tell: bool = True) -> None:
        """The oldest writes (all by default) are durable; with ``tell=False`` the process dies before it hears of it."""
        for _ in range(len(self.pending) if writes is None else writes):
            key, value, then = self.pending.pop(0)
            if value is None:
                self.durable.pop(key, None)
            else:
                self.durable[key] = value
            if tell:
                then()


class FakeHost:
    """Implements ``holdfast.host.Host`` by recording."""

    def __init__(self, name: str = "a", boot: int = 1, *, storage: FakeStorage | None = None, seed: int = 0) -> None:
        self.me = NodeId(name, boot)
        self.address = Address(name, 1)
        self.random = Random(seed)
        self.disk = FakeStorage(auto=True) if storage is None else storage  # the same object as ``storage``, with its test side
        self.storage: Storage = self.disk
        self.clock = 1000.0  # set it freely; nothing runs before ``run`` or ``pass_time``
        self.wall_clock = 1_700_000_000.0
        self.sent: list[Sent] = []
        self.emitted: list[Event] = []
        self.met: dict[NodeId, Address] = {}
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._counter = 0
        self._late = 0.0

    @property
    def now(self) -> float:
        return self.clock

    @property
    def late(self) -> float:
        return self._late

    def wall(self) -> float:
        return self.wall_clock

    def at(self, due: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(due, callback)
        self._counter += 1
        heappush(self._timers, (due, self._counter, timer))
        return timer

    def after(self, delay: float, callback: Callable[[], None]) -> FakeTimer:
        return self.at(self.clock + delay, callback)

    def send(self, to: NodeId | Address, message: Message) -> None:
        self.sent.append(Sent(to, message))

    def meet(self, peer: NodeId, address: Address) -> None:
        self.met[peer] = address

    def emit(self, event: Event) -> None:
        self.emitted.append(event)

    # What only tests call.

    def pass_time(self, seconds: float) -> None:
        """Time passes and every timer runs at its due time."""
        end = self.clock + seconds
        while self._timers and self._timers[0][0] <= end:
            due, _, timer = heappop(self._timers)
            self.clock = max(self.clock, due)
            self._fire(timer)
        self.clock = end

    def pause(self, seconds: float) -> None:
        """The process is stopped: time passes first, then the timers that are due run late."""
        self.clock += seconds
        while self._timers and self._timers[0][0] <= self.clock:
            due, _, timer = heappop(self._timers)
            self._late = self.clock - due
            self._fire(timer)
        self._late = 0.0

    @property
    def timers(self) -> int:
        """Timers that would still run."""
        return sum(timer.callback is not None for _, _, timer in self._timers)

    def take(self, kind: type[M]) -> list[tuple[NodeId | Address, M]]:
        """Everything of this type sent since the last look, and forget it."""
        found = [(to, message) for to, message in self.sent if isinstance(message, kind)]
        self.sent = [sent for sent in self.sent if not isinstance(sent.message, kind)]
        return found

    def events(self, kind: type[E]) -> list[E]:
        return [event for event in self.emitted if isinstance(event, kind)]

    @staticmethod
    def _fire(timer: FakeTimer) -> None:
        callback, timer.callback = timer.callback, None
        if callback is not None:
            callback()
