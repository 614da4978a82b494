"""What a process does about its membership: knock, found, come back after it was put out.  Spec: ring 5.5, 5.6, D20, D21, D23.

Members that were known last are kept on disk and tried before anything is founded. A member that was forced out comes back
later each time, because a broken link between two neighbours must not eject one of them every few seconds.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from holdfast.features.ring.protocol.config import BACKOFF_CALM, BACKOFF_FORCED, CALM_AFTER
from holdfast.features.ring.protocol.facts import JoinRetry
from holdfast.host import Address, NodeId, Timer
from holdfast.kit.versioned import UNREADABLE

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

BACKOFF_MIN = 0.2  # in T_l
# A door that is taken is free again after one join, which is four round trips; a seed that is in no ring yet may found one at any moment.
# Neither is a reason to stay away for long, so these waits begin short, double like the others, and never exceed one T_l (H160).
CROWDED = ("busy", "redirect", "a neighbour is busy", "the neighbourhood has changed", "refused", "a neighbour left")
CROWD_TRIPS, CROWD_MIN = 4, 1 / 64  # round trips of a join; in T_l: below this, timers and schedulers are what is measured
NOT_YET = ("no_member", "not founded")
NOT_YET_MIN, NOT_YET_MAX = 1 / 16, 1 / 8  # in T_l, at first; a seed that founds wakes those that it sent away before
SHORT_MAX = 1.0  # in T_l
PATIENT_ATTEMPTS = 4  # without an answer, before the wait between two of them grows beyond one T_l
KNOCKS_MAX = 8  # addresses that one attempt asks, as many as it asks times
CACHE = "known"  # on disk: addresses of the last members
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
        self._guide: Address | NodeId | None = None  # a process that said that it is in a ring, or is about to be
        self._waits_for_others = False  # the timer runs because others were joining, or no process was in a ring yet
        self._cached = _read(ring.storage.load().get(CACHE))
        ring.scouting.suspects(self._cached)
        self._saved_at = ring.raw.now
        self._why = ""  # the last attempt, or the last membership, ended
        self._returns_at = ring.raw.now
        self.seeds_there = 0  # that answered when they were last asked
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
        """The seeds did not agree. If one of them said where a ring is, that is the door, and there is nothing to wait for (H160)."""
        if guide is None or not self.wanted:
            self._retry("not founded")
        else:
            self._guide = guide
            self._schedule(0.0)

    def wait_for(self, founder: NodeId) -> None:
        """We have promised this seed to found nothing ourselves: it is the one to ask next."""
        self._guide = founder
        self._retry("not founded")

    def on_door(self, member: Address) -> None:
        """A process that had to send us away is in a ring now, or free again. Who was put out waits all the same (D23)."""
        if self.wanted and self._waits_for_others:
            self._guide = member
            self._schedule(0.0)

    def on_departed(self, reason: str) -> None:
        """D23: the backoff doubles with every departure that was not our wish."""
        ring = self._ring
        if reason == "graceful":
            self.stop()
            return
        if ring.raw.now - self._member_since >= CALM_AFTER * ring.config.lease:
            self.forced = 0
        self.forced += 1
        lease = ring.config.lease
        self._back_off(reason, BACKOFF_MIN * lease, lease * min(BACKOFF_FORCED, 2.0 ** min(self.forced, 10)))
        self._shorten()

    # D23 keeps a member that was put out several times away for up to 60 T_l, because a bad link shall not put it out every few seconds.
    # That it is bad no more shows when a majority of the seeds answers: then 8 T_l are enough, as for all others (H164).

    def _shorten(self) -> None:
        ring = self._ring
        if not (self.wanted and ring.config.seeds) or self._returns_at - ring.raw.now <= BACKOFF_CALM * ring.config.lease:
            return
        delay = ring.raw.random.uniform(BACKOFF_CALM / 2, BACKOFF_CALM) * ring.config.lease
        if self._timer is not None:
            self._timer.cancel()
        self._timer = ring.host.after(delay, self._on_look)

    def _on_look(self) -> None:
        ring = self._ring
        if self.wanted and not ring.is_member and not ring.is_joining:
            self._timer = ring.host.at(max(self._returns_at, ring.raw.now), self._on_turn)
            ring.scouting.call_the_roll(self._on_roll)

    def _on_roll(self, there: int) -> None:
        ring = self._ring
        self.seeds_there = there
        if not self.wanted or ring.is_member or ring.is_joining or self._returns_at <= ring.raw.now:
            return
        if 2 * there > len(ring.config.seeds):
            self._schedule(0.0)
        else:
            self._shorten()

    @property
    def waits_for(self) -> str:
        """What a process that is no member waits for, in a sentence; "" if it does not want to be one."""
        ring = self._ring
        if not self.wanted:
            return ""
        if ring.is_joining:
            return "it is joining now"
        left = max(0.0, self._returns_at - ring.raw.now)
        if self._why in NOT_YET:
            return "no seed is in a group yet, and a majority of the seeds founds one; it asks again every second or sooner"
        if self._why in CROWDED:
            return "others are joining beside it; it asks again every second or sooner"
        if self._why == "nobody answered":
            return f"no seed answers; it asks again within {left:.0f} s"
        text = f"it had to leave {self.forced} times lately ({self._why}); it comes back within {left:.0f} s"
        if left > BACKOFF_CALM * ring.config.lease:
            need = len(ring.config.seeds) // 2 + 1
            text += f", or sooner when {need} of {len(ring.config.seeds)} seeds answer ({self.seeds_there} did)"
        last = f"the last attempt failed ({self._why or 'none yet'}); it asks again within {left:.0f} s"
        return text if self.forced and self._why else last

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
        self._back_off(why, *self._bounds(why, 2.0 ** min(self.attempt, 10)))

    def _bounds(self, why: str, growth: float) -> tuple[float, float]:
        """Between which seconds the next attempt begins."""
        ring = self._ring
        lease = ring.config.lease
        if why in CROWDED and not ring.config.join_pace:
            step = max(CROWD_TRIPS * ring.joiner.trip, CROWD_MIN * lease)
            return 0.0, min(SHORT_MAX * lease, step * growth)
        if why in NOT_YET:
            return NOT_YET_MIN * lease, min(SHORT_MAX, NOT_YET_MAX * growth / 2) * lease
        if why == "nobody answered":  # The attempt took 2 T_l; seeds that start late are not to be waited for longer.
            growth = max(1.0, growth / 2**PATIENT_ATTEMPTS)
        return BACKOFF_MIN * lease, lease * min(BACKOFF_CALM, growth)

    def _back_off(self, why: str, shortest: float, longest: float) -> None:
        if not self.wanted:
            return
        delay = self._ring.raw.random.uniform(shortest, longest)
        self._why, self._returns_at = why, self._ring.raw.now + delay
        self._ring.raw.emit(JoinRetry(why, delay))
        self._schedule(delay)
        self._waits_for_others = why in CROWDED or why in NOT_YET

    def _schedule(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._waits_for_others = False
        self._timer = self._ring.host.after(delay, self._on_turn)

    def _on_turn(self) -> None:
        ring = self._ring
        self._waits_for_others = False
        if not self.wanted or ring.is_member or ring.is_joining:
            return
        if ring.scouting.unasked:
            ring.scouting.start(self._on_scouted)
            return
        targets = self._targets()
        if targets:
            ring.begin_join(targets, self.attempt)
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
            self._ring.begin_join([member], self.attempt)

    def _targets(self) -> list[Address | NodeId]:
        """Where to knock, one after the other: at a guide's, at the seeds, at members known from the disk."""
        ring = self._ring
        me = ring.raw.address
        guide, self._guide = self._guide, None
        seeds = [seed for seed in ring.config.seeds if seed != me]
        others = seeds or [each for each in self._cached if each != me]
        drawn: list[Address | NodeId] = [*ring.raw.random.sample(others, min(KNOCKS_MAX, len(others)))]
        return drawn if guide is None else [guide, *(each for each in drawn if each != guide)]


def _read(value: bytes | None) -> tuple[Address, ...]:
    if value is None:
        return ()
    try:
        return msgspec.msgpack.decode(value, type=tuple[Address, ...])[:CACHED_MAX]
    except UNREADABLE:
        return ()  # A cache: nothing is lost but time.


def _nothing() -> None:
    """No caller waits for this row."""
