"""A counter as a kind of grant: one client of this agent at a time has it to itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import ConfigError, shown
from holdfast.host import Host
from holdfast.kit.hold import Holder
from tests.toy.counter import KIND
from tests.toy.counter.protocol.counters import is_name

LENGTH = 4.0  # seconds for which a client may go on without a word of this agent
PERIOD = LENGTH / 4


class CounterHeld:
    """One client's wish, from its asking to its end."""

    def __init__(self, kind: CounterKind, name: str, holder: Holder) -> None:
        self.name, self.holder = name, holder
        self._kind, self._renewed, self._over = kind, True, False

    def cancel(self) -> None:
        self._end()

    def release(self) -> None:
        self._end()

    def renew_allowed(self, allowed: bool) -> None:
        self._renewed = allowed

    def extend(self, host: Host) -> None:
        """Again and again, until it is over."""
        if not self._over:
            if self._renewed:
                self.holder.on_extended(host.now + LENGTH)
            host.after(PERIOD, lambda: self.extend(host))

    def _end(self) -> None:
        self._over = True
        self._kind.end(self)


class CounterKind:
    """First come, first served."""

    kind = KIND

    def __init__(self, host: Host) -> None:
        self._host = host
        self._token = 0  # the last one; they begin at wall-clock milliseconds
        self._queues: dict[str, list[CounterHeld]] = {}  # by counter; the first has it

    def acquire(self, name: str, options: Mapping[str, Any], holder: Holder) -> CounterHeld:
        if options or not is_name(name):
            raise ConfigError(f"counter: {shown(name)}, {len(options)} options; accepted are a name of a counter, and no option")
        held = CounterHeld(self, name, holder)
        queue = self._queues.setdefault(name, [])
        queue.append(held)
        if len(queue) == 1:
            self._grant(held)
        else:
            holder.on_queued(len(queue) - 1)
        return held

    def end(self, held: CounterHeld) -> None:
        queue = self._queues.get(held.name, [])
        if held not in queue:
            return
        had_it = queue[0] is held
        queue.remove(held)
        if not queue:
            del self._queues[held.name]
        elif had_it:
            self._grant(queue[0])

    def _grant(self, held: CounterHeld) -> None:
        self._token = max(self._token + 1, int(self._host.wall() * 1000))
        held.holder.on_granted(self._token, self._host.now + LENGTH)
        self._host.after(PERIOD, lambda: held.extend(self._host))
