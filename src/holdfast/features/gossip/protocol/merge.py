"""What a rumour changes: the only code that changes another member's entry.  Spec: gossip 5.1, D1, D2, D3, D5, D18.

An entry is a join of (boot, inc, status), and beside it of its rows by ``rows_at``: any order and any repetition of
rumours ends in the same entry. Whatever changes an entry is told further.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from holdfast.events import Cleared, Decided, Failed, Joined, Left, MembershipEvent, Suspected, Updated
from holdfast.features.gossip.protocol.checks import INC_MAX, INC_STEP, OWN_STEPS, refused
from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.fetch import Fetch
from holdfast.features.gossip.protocol.health import Health
from holdfast.features.gossip.protocol.messages import Rumour, Status
from holdfast.features.gossip.protocol.myself import Myself
from holdfast.features.gossip.protocol.rumours import Rumours, rumour_of
from holdfast.features.gossip.protocol.suspicion import Suspicions
from holdfast.features.gossip.protocol.table import NO_ROWS, Entry, Tombstone, entry, of_rumour
from holdfast.host import Member, NodeId


class Order(Protocol):
    """The order in which members are probed."""

    def put(self, name: str) -> None:
        """Give a new name a place. A name that was known before has one in every round; a second one would make a round longer."""


class Merge:
    """Takes rumours, and decides what becomes of the entry."""

    def __init__(
        self, core: Core, rumours: Rumours, myself: Myself, health: Health, order: Order, missed: Callable[[NodeId, float], None]
    ) -> None:
        """``missed``: that life was held to be dead here, by mistake, since then."""
        self._core, self._rumours, self._myself, self._health, self._order, self._missed = core, rumours, myself, health, order, missed
        self._rival: tuple[NodeId, bool] | None = None  # another life of our own name, the newest that was heard of, and whether it is over

    def connect(self, suspicions: Suspicions, fetch: Fetch) -> None:
        """Set the parts that call this one, too."""
        self._suspicions, self._fetch = suspicions, fetch

    # What comes in.

    def absorb(self, source: NodeId, rumours: tuple[Rumour, ...], *, answered: bool = False) -> bool:
        """Merge all rumours of a datagram. True: one accuses this member, and what goes back to ``source`` (``answered``) refutes it."""
        accused = False
        for rumour in rumours:
            accused = self.merge(rumour, source, answered=answered) or accused
        return accused

    def merge(self, rumour: Rumour, source: NodeId, *, answered: bool = False, quiet: bool = False) -> bool:
        """Merge one rumour. ``quiet``: it is of a table, and news in it is known where it came from."""
        core = self._core
        name = rumour.id.name
        known = core.table.get(name)
        same = known if known is not None and known.id == rumour.id else None
        if same is not None and self._is_old(same, rumour, source):
            return False  # Most of what comes: each rumour is heard from several members.
        why = refused(rumour, source, same, steps=OWN_STEPS if rumour.id == core.me else 1)
        if why:
            core.counts[why] += 1
            return False
        if name == core.name:
            return self._about_our_name(rumour, source, answered=answered)
        if known is None:
            self._learn(rumour, source, quiet=quiet)
        elif same is None:
            self._other_life(known, rumour, source, quiet=quiet)
        else:
            self._same_life(same, rumour, source)
        return False

    def accuse(self, each: Entry, accusers: tuple[str, ...]) -> bool:
        """Suspect a member that an own probe failed to reach. True: the suspicion is new."""
        core = self._core
        now = core.table.of(each.id)
        if now is None or not now.listed or now.inc != each.inc:
            return False
        self._health.suspected(now.id, now.inc, own=True)
        if now.status is Status.SUSPECT:
            self._suspicions.confirm(now, accusers if core.rules.own_once else (*accusers[1:], f"{core.name} {core.host.now}"))
            return False
        self._change(now, Rumour(now.id, now.address, now.inc, Status.SUSPECT, accusers, now.rows_at), core.me)
        return True

    def confirm(self, life: NodeId, inc: int, accuser: str) -> None:
        """Count this helper among the accusers: its NACK came after the judgement."""
        each = self._core.table.of(life)
        if each is not None and each.inc == inc and each.status is Status.SUSPECT:
            self._suspicions.confirm(each, (accuser,))

    def bury(self, each: Entry) -> None:
        """Hold a member to be dead: its suspicion has ended."""
        core = self._core
        core.counts["buried"] += 1
        accusers = core.accusers.get(each.id.name, ())
        self._change(each, Rumour(each.id, each.address, each.inc, Status.DEAD, accusers, each.rows_at), core.me)

    def forget(self, each: Entry) -> None:
        """Give up a dead member for good, as an operator asks."""
        self._change(each, Rumour(each.id, each.address, each.inc, Status.LEFT, (), each.rows_at), self._core.me)

    def reap(self, name: str) -> None:
        """Drop a tombstone that is old enough."""
        each = self._core.table.get(name)
        assert each is not None
        self._core.table.drop(name)
        self._rumours.discard(name)
        self._core.accusers.pop(name, None)
        self._health.forget(each.id)

    def take_rows(self, life: NodeId, rows_at: int, rows: dict[str, bytes], source: NodeId) -> None:
        """Put rows that were fetched into the table."""
        each = self._core.table.of(life)
        if each is None or not each.listed or life == self._core.me:
            return
        if rows_at > each.inc + (INC_STEP if source == life else 0) or (rows_at <= each.rows_at and self._core.rules.rows_by_version):
            return  # Older than those that are here; or none but the member itself could know them.
        self._put(entry(life, each.address, each.inc, each.status, rows, max(rows_at, each.rows_at)))
        self._fetch.have(life.name, rows_at)
        if rows != each.rows:
            self._announce(Updated(self._member(life)))

    # What it means.

    def _is_old(self, known: Entry, rumour: Rumour, source: NodeId) -> bool:
        """It says nothing that is not known, of another member; so it need not be checked either."""
        if rumour.inc > known.inc or rumour.rows_at > known.rows_at or not self._core.rules.rows_by_version:
            return False
        if rumour.inc == known.inc and rumour.status >= known.status and rumour.status is not Status.ALIVE:
            return False
        return rumour.id != self._core.me and (rumour.id != source or rumour.address == known.address)

    def _about_our_name(self, rumour: Rumour, source: NodeId, *, answered: bool) -> bool:
        core = self._core
        if rumour.id == core.me:
            return self._myself.hear(rumour, source, answered=answered)
        if rumour.id.boot < core.me.boot:
            core.counts["refused_former"] += 1
            return True  # A former life of ours: its sender has not heard of this one, and is told.
        rival = rumour.id, rumour.status >= Status.DEAD
        if self._rival is None or self._rival < rival:
            # Never listed: whose name it is, features/names finds out, which listens to joins (gossip D17). One that is over counts as a
            # former life of this process: others hold it by its higher boot, and list none below it (gossip D1, H330).
            self._rival = rival
            core.tell(Joined(Member(rumour.id, core.host.address if rival[1] else rumour.address, NO_ROWS)))
        return False

    def _learn(self, rumour: Rumour, source: NodeId, *, quiet: bool) -> None:
        """Put a name into the table that was not known."""
        core, name = self._core, rumour.id.name
        if core.table.is_full and not self._make_room():
            core.counts["table_full"] += 1
            return
        new = of_rumour(rumour)
        if not new.listed:
            if rumour.ago < core.config.reap_after:
                now = core.host.now
                core.table.put(new, Tombstone(now - rumour.ago, now))
                if not quiet:
                    self._tell_further(new, rumour)
            return
        core.table.put(new)
        self._order.put(name)
        self._begin_listed(new, rumour, source, quiet=quiet)

    def _make_room(self) -> bool:
        """Make room for one more name, at the cost of the oldest tombstone; never at that of a listed member (gossip 2)."""
        oldest = next(iter(self._core.table.tombstones), None)
        if oldest is None:
            return False
        self.reap(oldest)
        return True

    def _begin_listed(self, new: Entry, rumour: Rumour, source: NodeId, *, quiet: bool) -> None:
        """``new`` is in the table, and this life was not listed before."""
        self._want_rows(new, rumour, source)
        self._tell_further(new, rumour, quiet=quiet)
        self._rumours.wake()
        self._announce(Joined(new.member))
        if new.status is Status.SUSPECT:
            self._begin_suspicion(new, rumour)

    def _other_life(self, known: Entry, rumour: Rumour, source: NodeId, *, quiet: bool) -> None:
        core = self._core
        if rumour.id.boot < known.id.boot:
            core.counts["former_lives"] += 1
            if rumour.id == source:
                self._myself.tell(source, rumour_of(known))  # It does not know that its time is over.
            return
        if known.listed:
            self._fail(known)
        self._health.forget(known.id)
        new = of_rumour(rumour)
        if new.listed:
            core.table.put(new)
            self._begin_listed(new, rumour, source, quiet=quiet)
        else:
            now = core.host.now
            core.table.put(new, Tombstone(now - rumour.ago, now))
            if not quiet:
                self._tell_further(new, rumour)

    def _same_life(self, known: Entry, rumour: Rumour, source: NodeId) -> None:
        if rumour.id == source and rumour.address != known.address:
            known = self._move(known, rumour)
        if (rumour.inc, rumour.status) > known.rank:
            if rumour.status is not Status.DEAD or not known.listed or not self._has_to_be_asked(known, rumour, source):
                self._change(known, rumour, source)
            return
        if (rumour.inc, rumour.status) == known.rank and known.status is Status.SUSPECT:
            self._suspicions.confirm(known, rumour.accusers)
        if known.listed and rumour.inc <= known.inc:
            self._newer_rows(known, rumour, source)

    def _has_to_be_asked(self, known: Entry, rumour: Rumour, source: NodeId) -> bool:
        """Another member has buried it. It may have been cut off from that one and not from this one, so it is asked here, too; True: it
        is suspected meanwhile (H353)."""
        rules, name = self._core.rules, known.id.name
        if not (rules.hearsay_asks and rules.last_call):
            return False
        if known.status is Status.SUSPECT and known.inc == rumour.inc:
            if self._suspicions.was_asked(name):
                return False
            self._suspicions.confirm(known, rumour.accusers)
        else:
            accusers = rumour.accusers or (source.name,)
            self._change(known, Rumour(known.id, known.address, rumour.inc, Status.SUSPECT, accusers, rumour.rows_at), source)
        self._suspicions.hurry(name)
        return True

    def _change(self, known: Entry, rumour: Rumour, source: NodeId) -> None:
        """Change the entry to what the rumour says, which is the greater one."""
        core = self._core
        name = known.id.name
        was_listed, was = known.listed, known.status
        if rumour.inc > known.inc:
            self._suspicions.cleared(name)
        else:
            self._suspicions.cancel(name)
        new = self._overwritten(known, rumour)
        if new.listed:
            since = None if was_listed else core.table.tombstones[name].missing_since
            self._put(new)
            self._end_doubts(new, since)
            self._want_rows(new, rumour, source)
            self._tell_further(new, rumour)
            self._say_listed(known, new, was, since)
            if new.status is Status.SUSPECT:
                self._begin_suspicion(new, rumour, again=was is Status.SUSPECT)
            return
        now = core.host.now
        stone = core.table.tombstones.get(name)
        core.table.put(new, Tombstone(now - rumour.ago, now) if stone is None else stone)
        self._fetch.have(name, INC_MAX)
        core.heard.pop(name, None)
        if new.status is Status.DEAD:
            core.accusers[name] = rumour.accusers
        else:
            core.accusers.pop(name, None)
        self._tell_further(new, rumour)
        if was_listed:
            self._say_gone(new)

    def _overwritten(self, known: Entry, rumour: Rumour) -> Entry:
        rows, rows_at = known.rows, known.rows_at
        if rumour.rows is not None and (rumour.rows_at > rows_at or not self._core.rules.rows_by_version):
            rows, rows_at = rumour.rows, max(rows_at, rumour.rows_at)
        return entry(known.id, known.address, rumour.inc, rumour.status, rows, rows_at)

    def _end_doubts(self, new: Entry, missing_since: float | None) -> None:
        """Drop the accusers of a member that is ALIVE, and count a false death if it was held to be dead (``missing_since``)."""
        core = self._core
        if new.status is Status.ALIVE:
            core.accusers.pop(new.id.name, None)
        if missing_since is None:
            return
        self._health.false_positive(new.id)
        core.counts["false_positives"] += 1
        self._missed(new.id, missing_since)
        self._rumours.wake()

    def _say_listed(self, known: Entry, new: Entry, was: Status, missing_since: float | None) -> None:
        """Emit the events of a change that leaves a member in the list, or brings it back."""
        if missing_since is not None:
            self._announce(Joined(self._member(new.id)))
            return
        if was is Status.SUSPECT and new.status is Status.ALIVE:
            self._core.counts["suspicions_cleared"] += 1
            self._announce(Cleared(new.member))
        if new.rows != known.rows:
            self._announce(Updated(new.member))

    def _say_gone(self, new: Entry) -> None:
        if new.status is Status.LEFT:
            self._announce(Left(new.member))
            return
        self._announce(Decided(new.member))
        self._announce(Failed(new.member, certain=False))

    def _fail(self, known: Entry) -> None:
        """Its process has begun another life, which takes its place."""
        core = self._core
        name = known.id.name
        self._suspicions.cancel(name)
        self._fetch.have(name, INC_MAX)
        core.accusers.pop(name, None)
        core.heard.pop(name, None)
        now = core.host.now
        dead = entry(known.id, known.address, known.inc, Status.DEAD, known.rows, known.rows_at)
        core.table.put(dead, Tombstone(now, now))
        self._say_gone(dead)

    def _begin_suspicion(self, new: Entry, rumour: Rumour, *, again: bool = False) -> None:
        """``again``: it was suspected under a smaller inc until now, so users heard of it."""
        core = self._core
        core.counts["suspicions"] += 1
        self._health.suspected(new.id, new.inc, own=core.name in rumour.accusers[:1])
        self._suspicions.begin(new, rumour.accusers)
        if not again:
            self._announce(Suspected(new.member))

    def _newer_rows(self, known: Entry, rumour: Rumour, source: NodeId) -> None:
        """Nothing new about whether it lives; perhaps about what it publishes."""
        by_version = self._core.rules.rows_by_version
        if rumour.rows is not None and (rumour.rows_at > known.rows_at or not by_version):
            rows_at = max(known.rows_at, rumour.rows_at)
            self._put(entry(known.id, known.address, known.inc, known.status, rumour.rows, rows_at))
            self._fetch.have(known.id.name, rows_at)
            if rumour.rows != known.rows:
                self._announce(Updated(self._member(known.id)))
        else:
            self._want_rows(known, rumour, source)

    def _want_rows(self, each: Entry, rumour: Rumour, source: NodeId) -> None:
        if rumour.rows_at > each.rows_at:
            self._fetch.want(each.id, rumour.rows_at, source)
        else:
            self._fetch.have(each.id.name, each.rows_at)

    def _move(self, known: Entry, rumour: Rumour) -> Entry:
        """Take the address that a member says itself: others may have been wrong."""
        moved = entry(known.id, rumour.address, known.inc, known.status, known.rows, known.rows_at)
        self._core.table.put(moved, self._core.table.tombstones.get(known.id.name))
        return moved

    def _tell_further(self, each: Entry, rumour: Rumour, *, quiet: bool = False) -> None:
        """``quiet``: a joiner that is shown a table tells no member of what all of them know."""
        if quiet and not self._core.is_member:
            return
        self._rumours.put(rumour_of(each, accusers=rumour.accusers, rows_at=rumour.rows_at, ago=rumour.ago))

    def _put(self, new: Entry) -> None:
        self._core.table.put(new)

    def _member(self, life: NodeId) -> Member:
        found = self._core.table.of(life)
        assert found is not None
        return found.member

    def _announce(self, event: MembershipEvent) -> None:
        """A joiner has no list yet that its users could compare with."""
        if self._core.is_member:
            self._core.announce(event)
