"""What surrounds one limiter in ``fuzz.limits``: its host, its peers as correct ones count, its worker processes.  Spec: limits 7; F17."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NoReturn, Protocol

from holdfast.events import Event
from holdfast.features.limits.protocol.config import key_of
from holdfast.features.limits.protocol.messages import TYPES
from holdfast.features.limits.protocol.workers import Tell
from holdfast.host import FANOUT_MAX, Address, Message, NodeId
from holdfast.kit.ledger import Batch, Ledger
from holdfast.lab.fake_host import FakeHost, FakeTimer

NAME = "x"
KEY = key_of(NAME)


class Watcher(Protocol):
    """The run that the host is of."""

    def on_send(self, to: NodeId, message: Message) -> None: ...
    def on_event(self, event: Event) -> None: ...
    def after(self) -> None: ...
    def fail(self, what: str) -> NoReturn: ...


class TurnHost(FakeHost):
    """A fake host that shows each call to a run, and counts the peers that one callback reaches (F17)."""

    def __init__(self, me: NodeId, seed: int, run: Watcher) -> None:
        super().__init__(me.name, me.boot, seed=seed)
        self._run_of = run
        self._reached: dict[str, None] = {}

    def at(self, due: float, callback: Callable[[], None]) -> FakeTimer:
        return super().at(due, partial(self.turn, callback))

    def send(self, to: NodeId | Address, message: Message) -> None:
        self._reached[str(to)] = None
        if len(self._reached) > FANOUT_MAX:
            self._run_of.fail(f"F17: one callback sends to more than {FANOUT_MAX} peers")
        if isinstance(to, NodeId) and isinstance(message, TYPES):
            self._run_of.on_send(to, message)

    def emit(self, event: Event) -> None:
        self._run_of.on_event(event)

    def turn(self, callback: Callable[[], None]) -> None:
        self._reached.clear()
        callback()
        self._run_of.after()


class Peer:
    """One other member in one instance, as a correct one would count."""

    def __init__(self) -> None:
        self.sums, self.quota = Ledger(), Ledger()
        self.seen = Ledger()  # takes whatever quota the limiter ever sent: what may be in use there
        self.got = self.gave = 0  # quota, in all

    def see(self, batch: Batch) -> None:
        taken = self.seen.take(batch)
        if isinstance(taken, dict):
            self.got += taken.get(KEY, 0)


class Process:
    """A worker process. It goes by what it read last; what was told later is still on its way."""

    def __init__(self) -> None:
        self.told: list[Tell] = []
        self.read: Tell | None = None
        self.hangs = False

    def usable(self, now: float) -> float:
        return 0.0 if self.read is None else self.read.usable(now)
