"""Keeper: when may a seat or guardian give a promise again after a restart?  Spec: foundation F13; tickets 5.2.

How long a promise runs is not on disk: a renewal would cost a sync. So after a restart every promise is held to run for the
longest length ever granted, which *is* on disk (not for today's setting: it may have been made shorter meanwhile), and
nothing is granted before that time is over. One keeper per seat, shared by all machines that promise there.

The one seat of a machine can know better (H154): its *horizon* says until when anything runs that it ever promised, on the same clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Annotated, Protocol

import msgspec

from holdfast.errors import StorageDamaged, shown
from holdfast.events import StorageFailed
from holdfast.host import Host, Storage
from holdfast.kit.deadline import wait_length
from holdfast.kit.seat_records import ERA, LONGEST

LENGTH_MAX = 60.0  # seconds; fast-detection "grant rule": one message binds no peer for longer
MARGIN = 0.01  # ring 4: scheduling slop
NotNegative = Annotated[float, msgspec.Meta(ge=0)]


class Horizon(Protocol):
    """Until when anything can run that this seat promised, in this life and before, on ``host.now``."""

    @property
    def until(self) -> float | None:
        """None: not known."""

    def cover(self, until: float) -> bool:
        """Before anything is promised until then, which is after ``until``. False: it cannot be written, and must not be promised."""

    def settle(self, until: float) -> bool:
        """Nothing that was promised runs longer than this."""


class Keeper:
    """The longest length ever granted, the era, and the instant from which promises may be given. Closed at first."""

    def __init__(
        self,
        host: Host,
        storage: Storage,
        *,
        rho: float,
        margin: float = MARGIN,
        length_max: float = LENGTH_MAX,
        horizon: Horizon | None = None,
    ) -> None:
        """``horizon``: of a seat that has one, because it is the only one of its machine."""
        self._host, self._storage, self._horizon = host, storage, horizon
        self._blind = False  # the horizon could not be written, which was said
        self._rho, self._margin, self.length_max = rho, margin, length_max
        loaded = storage.load()
        self._longest = _number(loaded, LONGEST)  # durable
        self._longest_asked = self._longest  # durable, or on its way
        self.era = int(_number(loaded, ERA))  # F13: only a rebuild raises it, and that is not offered yet
        self._opens_at = inf
        self.on_change: Callable[[], None] = _nothing  # something is being saved that a promise rests on

    @property
    def wait(self) -> float:
        """Seconds until a promise may be given: 0.0 when it may, infinity until the keeper is opened."""
        return max(0.0, self._opens_at - self._host.now)

    def close(self) -> None:
        """Nothing is promised any more: what was promised before is not known."""
        self._opens_at = inf

    def open(self, *, fresh: bool, since: float | None = None) -> None:
        """From now on, or when whatever was promised before must be over.

        ``fresh`` means that no journal is left: what was promised is unknown, so the wait is that of the largest
        length allowed. At the very first start this waits for nothing, once; a seat that has a horizon need not. The wait counts from
        ``since``, when this process began, and by default from now.
        """
        horizon = self._horizon
        if horizon is not None and horizon.until is not None:
            self._opens_at = max(self._host.now, horizon.until)
            return
        longest = self.length_max if fresh else self._longest
        self._opens_at = (self._host.now if since is None else since) + (
            wait_length(longest, self._rho, self._margin) if longest > 0 else 0.0
        )
        if horizon is not None:
            horizon.settle(self._opens_at)

    def reaches(self, until: float) -> bool:
        """Asked before anything is promised until then. False: it must not be, because the next life would not know of it."""
        horizon = self._horizon
        if horizon is None or (horizon.until is not None and until <= horizon.until) or horizon.cover(until):
            return True
        if not self._blind:
            self._blind = True
            self._host.emit(StorageFailed("the end of what this seat promises cannot be written beside the lock of its group"))
        return False

    def settle(self, until: float) -> None:
        """What runs longest ends then: everything else was given back."""
        if self._horizon is not None and self._opens_at < inf:
            self._horizon.settle(max(until, self._opens_at))

    def covers(self, length: float) -> bool:
        """A restart would wait long enough for a promise of this length."""
        return length <= self._longest

    def cover(self, length: float, then: Callable[[], None]) -> None:
        """Make it so, then go on. Saved every time while a save is under way: saves complete in call order."""
        if self.covers(length):
            then()
            return
        longest = self._longest_asked = max(length, self._longest_asked)
        self._storage.save(LONGEST, msgspec.msgpack.encode(longest), lambda: self._on_saved(longest, then))

    def _on_saved(self, longest: float, then: Callable[[], None]) -> None:
        self._longest = max(longest, self._longest)
        then()


def _nothing() -> None:
    """No marks are kept."""


def _number(loaded: Mapping[str, bytes], key: str) -> float:
    value = loaded.get(key)
    if value is None:
        return 0.0
    try:
        return msgspec.msgpack.decode(value, type=NotNegative)
    except msgspec.DecodeError as error:
        raise StorageDamaged(f"{shown(key)} of the seat's journal is unreadable: {error}") from None
