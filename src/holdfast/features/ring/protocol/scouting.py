"""Scouting: is there a ring already, or another one beside ours?  Spec: ring D20 (cached members are tried first, twins).

Before a process founds anything, or promises another seed not to stand in the way, it asks all that it last knew in a ring. If it was
put out of that ring, silence is no answer for a while: it may be cut off together with the seeds, and the ring goes on without it (H29).
And a ring that holds no majority of the seeds looks for one that does: a member that finds such a twin leaves its own and joins that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from holdfast.features.ring.protocol.messages import INVITED, Answer, Discover, Discovered
from holdfast.host import FANOUT_MAX, Address, Message, NodeId
from holdfast.kit.phase import Call, Outcome, Phase, PhaseEnd, count, majority

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

ASK_EVERY, ASK_TIMEOUT = 0.25, 1.0  # in T_l
TWIN_LEASES = 8  # in T_l: how often a ring without a majority of the seeds looks for another
TRIES = 2

Found = Callable[[Address | None], None]


class Scouting:
    """Questions to those who may be in a ring."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self.unasked: tuple[Address, ...] = ()  # members we last knew, not asked since
        self._doubt: tuple[Address, ...] = ()  # asked, and too many of them were silent (H29)
        self._doubt_ends_at = ring.raw.now
        self._phase: Phase[Address] | None = None
        self._roll: Phase[Address] | None = None  # do the seeds answer? (H164)
        self._call: Call | None = None
        self._looked_at = ring.raw.now

    def suspects(self, addresses: Iterable[Address], *, forced: bool = False) -> None:
        """There was a ring with these in it. Until they have been asked, it may still be there. ``forced``: we were put out of it, so it
        may be there although we cannot reach it, for a while."""
        ring = self._ring
        me = ring.raw.address
        self.unasked, self._doubt = tuple(dict.fromkeys(each for each in addresses if each != me))[:FANOUT_MAX], ()
        self._doubt_ends_at = ring.raw.now + (ring.config.refound * ring.config.lease if forced else 0.0)

    @property
    def may_found(self) -> bool:
        """Whom we last knew in a ring has been asked, and enough of them are in none (H29)."""
        return not self.unasked and not self.doubtful

    @property
    def doubtful(self) -> bool:
        return bool(self._doubt) and self._ring.raw.now < self._doubt_ends_at

    def again(self) -> None:
        """Members that were silent may answer now."""
        if self.doubtful:
            self.unasked, self._doubt = self._doubt, ()

    def start(self, found: Found) -> None:
        """Ask all of them at once; ``found`` gets the address of a member, or None."""
        ring = self._ring
        asked = self.unasked
        self.cancel()
        self._phase = Phase(
            ring.host, ring.knocks, {each: each for each in asked},
            lambda serial: Discover(serial, ring.id, *ring.departing.claims(), ring.raw.address),
            every=ASK_EVERY * ring.config.lease, timeout=ASK_TIMEOUT * ring.config.lease,
            enough=count(1, asked), done=lambda end: self._on_end(end, found),
        )  # fmt: skip
        self._phase.start()

    def call_the_roll(self, done: Callable[[int], None]) -> None:
        """Ask all seeds whether they are there; ``done`` gets how many are, ourselves counted, as soon as they are a majority (H164)."""
        ring = self._ring
        seeds = ring.config.seeds
        if self._roll is not None:
            self._roll.cancel()
        self._roll = Phase(
            ring.host, ring.knocks, {each: None if each == ring.raw.address else each for each in seeds},
            lambda serial: Discover(serial, ring.id, (), over=False),
            every=ASK_EVERY * ring.config.lease, timeout=ASK_TIMEOUT * ring.config.lease,
            enough=majority(seeds), done=lambda end: self._on_roll(end, done),
        )  # fmt: skip
        roll = self._roll
        roll.start()
        if ring.is_seed:
            me = ring.raw.address
            own = Discovered(roll.serial, Answer.NO_MEMBER, 0, (), seeded=False, asked=me)
            ring.knocks.answer(roll.serial, me, own)

    def _on_roll(self, end: PhaseEnd[Address], done: Callable[[int], None]) -> None:
        self._roll = None
        done(len(end.yes))

    def cancel(self) -> None:
        for each in (self._phase, self._call, self._roll):
            if each is not None:
                each.cancel()
        self._phase = self._roll = None

    @property
    def busy(self) -> bool:
        return self._phase is not None

    def on_discovered(self, source: NodeId, message: Discovered) -> None:
        """Every answer to Discover passes here; one of ours names the address that was asked."""
        ring = self._ring
        if message.answer is Answer.NO_MEMBER:
            ring.fencing.note(message.gen)
        if message.serial == INVITED:
            ring.lifecycle.on_door(message.asked)
        elif self._phase is not None and message.serial == self._phase.serial:
            where = message.asked
            ring.knocks.answer(message.serial, where, message, yes=message.answer is not Answer.NO_MEMBER)
        elif self._roll is not None and message.serial == self._roll.serial:
            ring.knocks.answer(message.serial, message.asked, message)  # Whatever it says, it is there.
        else:
            ring.knocks.answer(message.serial, source, message)

    def _on_end(self, end: PhaseEnd[Address], found: Found) -> None:
        self._phase = None
        if end.outcome is Outcome.ENOUGH:
            found(next(iter(end.yes)))  # There is a ring: until we are in it, or no member knows of it any more, nothing is founded.
        else:
            asked, self.unasked = self.unasked, ()
            if 2 * (len(end.no) + 1) <= len(asked) + 1:  # No majority of the ring that we were in, ourselves counted, is out of it.
                self._doubt = asked
            found(None)

    # Twins.

    @property
    def seeded(self) -> bool:
        """A majority of the seeds is in our list. True without seeds: then there is nowhere to look."""
        ring = self._ring
        seeds = ring.config.seeds
        return not seeds or majority(seeds).enough({entry.address for entry in ring.list.entries.values()})

    def on_tick(self) -> None:
        ring = self._ring
        now = ring.raw.now
        if now - self._looked_at < TWIN_LEASES * ring.config.lease:
            return
        self._looked_at = now
        if self.seeded:
            return
        here = {entry.address for entry in ring.list.entries.values()}
        elsewhere = [seed for seed in ring.config.seeds if seed not in here]
        self._call = Call(
            ring.host, ring.knocks, ring.raw.random.choice(elsewhere), lambda serial: Discover(serial, ring.id, (), over=False),
            every=ASK_EVERY * ring.config.lease, tries=TRIES, done=self._on_seed,
        )  # fmt: skip
        self._call.start()

    def _on_seed(self, message: Message | None) -> None:
        ring = self._ring
        if not isinstance(message, Discovered) or message.answer is Answer.NO_MEMBER or not ring.is_member:
            return
        if message.ring != ring.ring and (message.seeded or message.ring < ring.ring):
            ring.depart("twin")
            ring.lifecycle.guide(message.asked)
