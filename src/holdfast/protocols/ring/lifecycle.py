"""What a process does about its membership: knock, found, come back after it was put out.  Spec: ring 5.5, 5.6, D20, D21, D23.

Members that were known last are kept on disk and tried before anything is founded. Whoever was forced out comes back
later each time, because a broken link between two neighbours must not eject one of them every few seconds.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from holdfast.host import Address, Timer
from holdfast.kit.versioned import UNREADABLE
from holdfast.protocols.ring.config import BACKOFF_CALM, BACKOFF_FORCED, CALM_AFTER
from holdfast.protocols.ring.facts import JoinRetry

if TYPE_CHECKING:
    from holdfast.protocols.ring.ring import RingNode

BACKOFF_MIN = 0.2  # in T_l
CACHE = "known"  # the row on disk
CACHED_MAX = 32  # addresses of members on disk
SAVE_LEASES = 8  # in T_l: at most one save in this time
NO_RING = ("nobody answered", "no_member")  # failures after which founding is worth a try


class Lifecycle:
    """Attempts to join, and the time between them."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self.attempt = 0
        self.forced = 0  # departures that were not our wish, since we were last a member for long
        self._member_since = ring.raw.now
        self._timer: Timer | None = None
        self._guide: Address | None = None  # somebody who said that it is in a ring
        self._cached = _read(ring.storage.load().get(CACHE))
        ring.scouting.suspects(self._cached)
        self._saved_at = ring.raw.now
        self.wanted = False  # the user wants to be in a ring

    @property
    def known(self) -> tuple[Address, ...]:
        """Members that were known last, in this life or a former one."""
        return self._cached

    def start(self) -> None:
        config = self._ring.config
        if config.found:
            self.wanted = True
            self._ring.found()
        elif config.seeds:
            self.join()

    def join(self, *, delay: float = 0.0) -> None:
        self.wanted = True
        self._schedule(delay)

    def stop(self) -> None:
        self.wanted = False
        if self._timer is not None:
            self._timer.cancel()

    def on_member(self) -> None:
        self.attempt = 0
        self._guide = None
        self._member_since = self._ring.raw.now
        self._ring.scouting.suspects(())

    def on_failed(self, why: str) -> None:
        """An attempt to join failed."""
        ring = self._ring
        if why in NO_RING and ring.is_seed and self.wanted and ring.scouting.may_found:
            ring.founding.start()
        else:
            ring.scouting.again()
            self._retry(why)

    def not_founded(self, guide: Address | None) -> None:
        """The seeds did not agree; one of them may have said where a ring is."""
        self._guide = guide
        self._retry("not founded")

    def on_departed(self, reason: str) -> None:
        """D23: the backoff doubles with every departure that was not our wish."""
        ring = self._ring
        if reason == "graceful":
            self.stop()
            return
        if ring.raw.now - self._member_since >= CALM_AFTER * ring.config.lease:
            self.forced = 0
        self.forced += 1
        self._back_off(reason, self.forced, BACKOFF_FORCED)

    def remember(self) -> None:
        """Now and then, who is in the ring, for a later life."""
        ring = self._ring
        now = ring.raw.now
        if now - self._saved_at < SAVE_LEASES * ring.config.lease:
            return
        others = tuple(islice((entry.address for each, entry in ring.list.entries.items() if each != ring.id), CACHED_MAX))
        if others and others != self._cached:
            self._saved_at, self._cached = now, others
            ring.storage.save(CACHE, msgspec.msgpack.encode(others), _nothing)

    def _retry(self, why: str) -> None:
        self.attempt += 1
        self._back_off(why, self.attempt, BACKOFF_CALM)

    def _back_off(self, why: str, exponent: int, longest: int) -> None:
        if not self.wanted:
            return
        ring = self._ring
        lease = ring.config.lease
        delay = ring.raw.random.uniform(BACKOFF_MIN * lease, lease * min(longest, 2 ** min(exponent, 10)))
        ring.raw.emit(JoinRetry(why, delay))
        self._schedule(delay)

    def _schedule(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._ring.host.after(delay, self._on_turn)

    def _on_turn(self) -> None:
        ring = self._ring
        if not self.wanted or ring.is_member or ring.is_joining:
            return
        if ring.scouting.unasked:
            ring.scouting.start(self._on_scouted)
            return
        target = self._target()
        if target is not None:
            ring.begin_join(target, self.attempt)
        elif ring.is_seed and ring.scouting.may_found:
            ring.founding.start()
        else:
            ring.scouting.again()
            self._retry("nobody to ask")

    def guide(self, member: Address) -> None:
        """Where to knock first: the better of two rings is there."""
        self._ring.scouting.suspects(())
        self._guide = member

    def _on_scouted(self, member: Address | None) -> None:
        """Those we last knew in a ring have been asked."""
        if member is None or not self.wanted or self._ring.is_member or self._ring.is_joining:
            self._on_turn()
        else:
            self._ring.begin_join(member, self.attempt)

    def _target(self) -> Address | None:
        """Where to knock: at a guide's, at any seed, at any member known from the disk."""
        ring = self._ring
        me = ring.raw.address
        if self._guide is not None:
            guide, self._guide = self._guide, None
            return guide
        seeds = [seed for seed in ring.config.seeds if seed != me]
        others = seeds or [each for each in self._cached if each != me]
        return ring.raw.random.choice(others) if others else None


def _read(value: bytes | None) -> tuple[Address, ...]:
    if value is None:
        return ()
    try:
        return msgspec.msgpack.decode(value, type=tuple[Address, ...])[:CACHED_MAX]
    except UNREADABLE:
        return ()  # A cache: nothing is lost but time.


def _nothing() -> None:
    """Nobody waits for this row."""
