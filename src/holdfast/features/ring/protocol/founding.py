"""Founding by a majority of the seeds, so that a group that starts together becomes one ring.  Spec: ring D20; foundation F4, F8.

A seed asks all seeds of the fixed list. It founds if a majority promises to found nothing itself for a while, no seed knows of a ring, and
no seed with a smaller name objects. A promise is on disk before it is given. A founder who stays alone until the promises end
gives its ring up before they do. What remains: a ring without any seed in it, all of its members forgotten on disk, can get a twin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from holdfast.features.ring.protocol.config import FOUNDING_LEASES
from holdfast.features.ring.protocol.messages import FoundAsk, FoundPromise
from holdfast.host import Address, NodeId
from holdfast.kit.deadline import holder_length
from holdfast.kit.phase import Outcome, Phase, PhaseEnd, Questions, count, majority

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

ASK_EVERY, ASK_TIMEOUT = 0.25, 1.0  # in T_l
PROMISED = "promised"  # on disk: the seed that this one promised itself to
NAME_BYTES_MAX = 256


class Founding:
    """One seed's attempts to found a ring, and its promises to other seeds."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self._questions = Questions()
        self._phase: Phase[Address] | None = None
        self._promised_to = ""
        self._promised_for: tuple[NodeId, int] | None = None  # whose attempt it was
        self._promised_until = ring.raw.now
        self._founded_by = 0  # the attempt that succeeded; its promises stand
        self._guide: Address | None = None  # where a process said that it is in a ring
        stored = ring.storage.load().get(PROMISED)
        if stored is not None:  # A promise outlives the life that gave it; how much of it is left is unknown.
            self._promised_to = stored.decode("utf-8", "replace")
            self._promised_until = ring.raw.now + self._length

    @property
    def _length(self) -> float:
        return FOUNDING_LEASES * self._ring.config.lease

    def start(self) -> None:
        ring = self._ring
        seeds = ring.config.seeds
        if self._promised_for is not None and not self._may_promise(ring.raw.me.name):
            ring.lifecycle.wait_for(self._promised_for[0])
            return
        self._guide = None
        self._phase = Phase(
            ring.host, self._questions, {each: None if each == ring.raw.address else each for each in seeds},
            FoundAsk, every=ASK_EVERY * ring.config.lease, timeout=ASK_TIMEOUT * ring.config.lease,
            enough=count(len(seeds), seeds), done=self._on_end,
        )  # fmt: skip
        phase = self._phase
        phase.start()
        own = self._may_promise(ring.raw.me.name)
        if own:
            self._promise(ring.raw.me, phase.serial, lambda: self._answer_own(phase.serial, granted=True))
        else:
            self._answer_own(phase.serial, granted=False)

    def cancel(self) -> None:
        if self._phase is not None:
            self._phase.cancel()
            self._phase = None

    def forget(self) -> None:
        """We are in a ring: what was promised has served its purpose."""
        self._promised_to, self._promised_for, self._promised_until = "", None, self._ring.raw.now
        self._ring.storage.save(PROMISED, None, _nothing)

    def on_ask(self, source: NodeId, message: FoundAsk) -> None:
        ring = self._ring
        if message.withdraw:
            if self._promised_for == (source, message.serial) and not ring.is_member:
                self.forget()
            return
        if ring.scouting.unasked and not ring.lifecycle.wanted and not ring.is_member:
            self._look_first(source, message)
            return
        if self._phase is not None and source.name < ring.raw.me.name:
            self._give_way(source)
        # Who wants no ring itself objects to none that it knows of no other beside. Who is about to join one knows of it.
        busy = not ring.scouting.may_found or (ring.lifecycle.wanted and ring.is_seed and ring.raw.me.name < source.name)
        if ring.is_member or busy or (ring.is_joining and ring.ring) or not self._may_promise(source.name):
            self._answer(source, message.serial, granted=False)
            ring.door.send_away(source)
        else:
            self._promise(source, message.serial, lambda: self._answer(source, message.serial, granted=True))

    def _give_way(self, to: NodeId) -> None:
        """Both of us ask, and of two the smaller name founds: ours would only keep that one from it. Our attempt ends before we promise."""
        assert self._phase is not None
        serial = self._phase.serial
        self.cancel()
        self._withdraw(serial, self._ring.config.seeds)
        self._ring.lifecycle.wait_for(to)

    def _withdraw(self, serial: int, seeds: Iterable[Address]) -> None:
        """That attempt is over; seeds that promised for it are free again."""
        ring = self._ring
        if self._promised_to == ring.raw.me.name:
            self.forget()
        for seed in seeds:
            if seed != ring.raw.address:
                ring.raw.send(seed, FoundAsk(serial, withdraw=True))

    def _look_first(self, source: NodeId, message: FoundAsk) -> None:
        """We have left politely, and the ring we left may have no seed in it any more: only we know where it is."""
        scouting = self._ring.scouting

        def looked(member: Address | None) -> None:
            if member is None:
                self.on_ask(source, message)
            else:
                self._answer(source, message.serial, granted=False, guide=member)

        if not scouting.busy:  # else the asker asks again
            scouting.start(looked)

    def on_promise(self, source: NodeId, message: FoundPromise) -> None:
        if message.seed not in self._ring.config.seeds or message.seed == self._ring.raw.address:
            return
        if self._phase is None or message.serial != self._phase.serial:
            if message.granted and message.serial != self._founded_by:
                self._ring.raw.send(source, FoundAsk(message.serial, withdraw=True))  # Too late: it shall not bind for nothing.
            return
        self._ring.fencing.note(message.gen)
        if message.granted:
            self._ring.door.send_away(source)  # It waits for this ring, and shall be told when it is there.
        if message.member or message.guide is not None:
            self._guide = message.seed if message.member else message.guide
        self._questions.answer(message.serial, message.seed, message, yes=message.granted and not message.member)

    def _answer(self, to: NodeId, serial: int, *, granted: bool, guide: Address | None = None) -> None:
        ring = self._ring  # The disk took its time: what was granted counts no more if we are in a ring by now.
        promise = FoundPromise(serial, granted and not ring.is_member, ring.is_member, ring.raw.address, ring.fencing.highest, guide)
        ring.raw.send(to, promise)

    def _answer_own(self, serial: int, *, granted: bool) -> None:
        me = self._ring.raw.address
        self._questions.answer(serial, me, FoundPromise(serial, granted, member=False, seed=me), yes=granted)

    def _may_promise(self, name: str) -> bool:
        return self._promised_to in ("", name) or self._ring.raw.now >= self._promised_until

    def _promise(self, to: NodeId, serial: int, then: Callable[[], None]) -> None:
        self._promised_to, self._promised_for = to.name, (to, serial)
        self._promised_until = self._ring.raw.now + self._length
        self._ring.storage.save(PROMISED, to.name.encode()[:NAME_BYTES_MAX], then)

    def _on_end(self, end: PhaseEnd[Address]) -> None:
        ring = self._ring
        assert self._phase is not None
        serial, self._phase = self._phase.serial, None
        free = not ring.is_member and not ring.is_joining  # else the user has decided otherwise meanwhile
        agreed = free and end.outcome is not Outcome.IMPOSSIBLE and majority(ring.config.seeds).enough(end.yes.keys())
        if agreed:
            self._founded_by = serial
            ring.found()
            ring.host.at(end.asked_at + holder_length(self._length, ring.config.rho), partial(self._on_probation_over, ring.ring))
            return
        self._withdraw(serial, end.yes)
        ring.lifecycle.not_founded(self._guide)

    def _on_probation_over(self, founded: int) -> None:
        """No member came. The others may be founding a ring of their own now, so this one must be gone."""
        ring = self._ring
        if ring.is_member and ring.ring == founded and len(ring.list) == 1 and len(ring.config.seeds) > 1:
            ring.depart("founded alone")


def _nothing() -> None:
    """No caller waits for this row."""
