"""Voting: how many must accept a term, and who may accept one.  Spec: election 5.2, D9, D20; section 4 (W, N_ref).

In mode ``members`` acceptances are counted by name, against all names that are known, also those that failed. A voter saves what it accepts
before it says so. One that has nothing saved asks a majority what it may have forgotten, after all that it may have accepted is over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from holdfast.bounds import Growing, Name
from holdfast.errors import StorageDamaged, shown
from holdfast.features.election.protocol.config import NAME_BYTES_MAX, QUARANTINE, UNANSWERED_MAX
from holdfast.features.election.protocol.contest import SPENT, Contest
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.facts import VoterReady
from holdfast.features.election.protocol.messages import Query, Response
from holdfast.features.election.protocol.watching import Watching
from holdfast.host import NodeId, Storage, Timer
from holdfast.kit.seats import Seats

SYNC_ROUNDS = 12  # of questions of a voter without memory; then it begins anew
PART = "election"  # of the storage: the last promise of each name


class Accepted(NamedTuple):
    """What is saved of a promise."""

    term: Growing
    name: Name
    boot: Growing


class Sync:
    """A voter without memory asks for its name."""

    def __init__(self, eid: int) -> None:
        self.eid = eid
        self.term = 0
        self.known = 0  # the largest number of names that an answer knew
        self.answered: dict[str, None] = {}  # names
        self.rounds = 0
        self.timer: Timer | None = None


class Voting:
    """What this member promised as a voter, for all names: promises are saved before they are said."""

    def __init__(self, core: Core, seats: Seats | None, watching: Watching) -> None:
        self._core, self._seats, self._watching = core, seats, watching
        self._storage: Storage = core.host.storage.part(PART)
        self._saved = {name: _read(name, value) for name, value in self._storage.load().items()}
        self._syncs: dict[str, Sync] = {}
        self._saving = 0
        self._started_at = core.now
        self._timer: Timer | None = None  # at the end of the quarantine

    def start(self) -> None:
        core = self._core
        self._started_at = core.now
        if core.rules.quarantined:
            self._timer = core.host.after(QUARANTINE * core.ttl, self._on_quarantined)

    # W.

    def needed(self, contest: Contest, known: int = 0) -> int:
        """W, the number of acceptances that make a term. ``known``: the largest number of names that an answer knew."""
        if not contest.manner.fencing:
            return 0
        if contest.manner.by_seats:
            return 1 if self._seats is None else self._fraction(len(self._seats.slots))
        return self._fraction(max(self._core.known(), contest.n_seen, known))

    def _fraction(self, n: int) -> int:
        quorum = self._core.rules.quorum
        return n // 2 + 1 if quorum == "majority" else 1 if quorum == "one" else max(1, n // 2)

    def supported(self, contest: Contest) -> bool:
        """True if W voters could still accept, as far as this member can see."""
        if contest.manner.by_members:
            return len({life.name for life in self._core.listed.members}) >= self.needed(contest)
        if contest.manner.by_seats and self._seats is not None:
            others = sum(slot.number != self._seats.own and self._seats.is_heard(slot.number) for slot in self._seats.slots)
            return others + (self._seats.own is not None) >= self.needed(contest)
        return True

    # Promises of members.

    def save(self, contest: Contest, then: Callable[[], None]) -> bool:
        """Save what was just promised, before it is said. False: too many are on their way to the disk, and it must not be said."""
        if self._saving >= UNANSWERED_MAX:
            self._core.counts["unsaved"] += 1
            return False
        holder = contest.promised_to or SPENT
        record = Accepted(contest.promised, *holder)
        self._saving += 1

        def done() -> None:
            self._saving -= 1
            then()

        self._saved[contest.name] = record
        self._storage.save(contest.name, msgspec.msgpack.encode(record), done)
        return True

    def forget(self, contest: Contest) -> None:
        """Drop the promise of a name that makes room: should it come back, others are asked about it anew (5.2)."""
        if self._saved.pop(contest.name, None) is not None:
            self._storage.save(contest.name, None, _nothing)
        self._end(contest.name)

    # Becoming a voter.

    def open(self, contest: Contest) -> None:
        """Take the saved promise of a name that was just met."""
        saved = self._saved.get(contest.name)
        if saved is not None:
            contest.promised, contest.promised_to, contest.voter = saved.term, NodeId(saved.name, saved.boot), True
        elif not self._core.rules.synced:
            contest.voter = True

    def tick(self, contest: Contest) -> None:
        """Begin to ask, where that is needed; the quarantine counts from the start of the process."""
        core = self._core
        if contest.voter or not contest.manner.by_members or contest.name in self._syncs or not core.is_listed(core.me):
            return
        alone = core.known() == 1
        since = core.now - self._started_at
        if core.rules.quarantined and not alone and since < QUARANTINE * core.ttl:
            return
        core.eids += 1
        self._syncs[contest.name] = Sync(core.eids)
        self._ask(contest)

    def on_answer(self, source: NodeId, contest: Contest, message: Response) -> bool:
        """Count an answer to a voter without memory. True: it was one."""
        sync = self._syncs.get(contest.name)
        if sync is None or sync.eid != message.eid:
            return False
        if source.name != self._core.me.name:
            sync.answered[source.name] = None
            sync.term = max(sync.term, message.term, 0 if message.active is None else message.active.term)
            sync.known = max(sync.known, message.known)
        self._judge(contest, sync)
        return True

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for name in list(self._syncs):
            self._end(name)

    def _on_quarantined(self) -> None:
        for contest in tuple(self._core.contests.values()):
            self.tick(contest)

    def _ask(self, contest: Contest) -> None:
        sync, core = self._syncs[contest.name], self._core
        sync.rounds += 1
        if sync.rounds > SYNC_ROUNDS:  # What was answered may have come from members that are gone.
            core.eids += 1
            sync = self._syncs[contest.name] = Sync(core.eids)
        question = Query(contest.name, contest.manner, sync.eid, 0, 0, contest.promised, sync=True)
        for member in core.others():
            if member.name not in sync.answered:
                core.outbox.put_member(member, question)
        sync.timer = core.host.after(core.timeout, lambda: self._ask(contest))
        self._judge(contest, sync)

    def _judge(self, contest: Contest, sync: Sync) -> None:
        """Other names, min(W, N_ref-1) of them: with this member's own name they meet every majority that it may have forgotten."""
        core = self._core
        names = max(core.known(), sync.known)
        if not core.settled(core.me) or len(sync.answered) < min(self.needed(contest, sync.known), names - 1):
            return
        self._end(contest.name)
        if sync.term > contest.promised:
            contest.promised, contest.promised_to = sync.term, SPENT
        contest.voter = True
        core.host.emit(VoterReady(contest.name, len(sync.answered)))
        self._watching.arm(contest, soon=contest.stands and not self._watching.led(contest))

    def _end(self, name: str) -> None:
        sync = self._syncs.pop(name, None)
        if sync is not None and sync.timer is not None:
            sync.timer.cancel()


def _read(name: str, value: bytes) -> Accepted:
    try:
        record = msgspec.msgpack.decode(value, type=Accepted)
    except msgspec.DecodeError as error:
        raise StorageDamaged(f"the promise for {shown(name)} is unreadable: {error}") from None
    if not 1 <= len(name.encode()) <= NAME_BYTES_MAX:
        raise StorageDamaged(f"a promise for {shown(name)}: names have 1 to {NAME_BYTES_MAX} bytes")
    return record


def _nothing() -> None:
    """Runs when a promise was removed from the disk: nothing follows."""
