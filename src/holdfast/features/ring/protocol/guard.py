"""The host as the parts of a ring see it: nothing runs before the own deadline was looked at.  Spec: ring 5 (entry guard), F9."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from holdfast.events import Event
from holdfast.host import Address, Host, Message, NodeId, Storage, Timer

Enter = Callable[[Callable[[], None]], None]


class Guarded:
    """Hands everything to the host, timers with ``enter`` around them."""

    def __init__(self, host: Host, enter: Enter) -> None:
        self._host, self._enter = host, enter
        self.me: NodeId = host.me
        self.address: Address = host.address
        self.random: Random = host.random
        self.storage: Storage = host.storage
        self.send: Callable[[NodeId | Address, Message], None] = host.send
        self.meet: Callable[[NodeId, Address], None] = host.meet
        self.emit: Callable[[Event], None] = host.emit
        self.wall: Callable[[], float] = host.wall

    @property
    def now(self) -> float:
        return self._host.now

    @property
    def late(self) -> float:
        return self._host.late

    def at(self, due: float, callback: Callable[[], None]) -> Timer:
        return self._host.at(due, partial(self._enter, callback))

    def after(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self._host.after(delay, partial(self._enter, callback))
