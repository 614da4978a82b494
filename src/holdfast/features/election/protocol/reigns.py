"""Reigns: who is known to lead, in one table that all members share; and what follows from a larger one.

Spec: election 5.7 (learn), D6, D22; foundation 4 (Rows). Reigns are ordered in one way everywhere: in the table, on LEADER, here, and at
the leader itself. With voters by the term, and without by (term, then better hash): both sides of a partition may have taken one number.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
from msgspec import Struct

from holdfast.bounds import Growing, Label, Name
from holdfast.errors import ConfigError
from holdfast.events import LeaderChanged
from holdfast.features.election.protocol.checks import is_life
from holdfast.features.election.protocol.config import NAME_BYTES_MAX, TOPIC
from holdfast.features.election.protocol.contest import Contest, Crowned
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.cvalue import BUCKET
from holdfast.features.election.protocol.facts import RankViolation, TermConflict
from holdfast.features.election.protocol.manner import Manner, is_sound
from holdfast.features.election.protocol.ranks import hash_of, ranked
from holdfast.features.election.protocol.shown import Role
from holdfast.features.election.protocol.watching import Watching
from holdfast.host import NodeId
from holdfast.kit.exchange import Exchange
from holdfast.kit.versioned import UNREADABLE


class Row(Struct, frozen=True, array_like=True):
    """One name's newest reign."""

    name: Label
    manner: Manner
    term: Growing
    agent: Name
    boot: Growing
    over: bool

    @property
    def crowned(self) -> Crowned:
        return Crowned(self.term, NodeId(self.agent, self.boot), self.over)


class Follow(Protocol):
    """What a larger reign causes in other parts."""

    def step_down(self, contest: Contest, why: str) -> None: ...
    def on_reign(self, contest: Contest, term: int, leader: NodeId) -> None:
        """A reign was learnt: an own election may be over."""

    def on_violation(self, contest: Contest) -> None:
        """A worse-ranked member leads."""


class Reigns:
    """The newest reign of each name, as this member knows it, and what a larger one changes here."""

    def __init__(self, core: Core, exchange: Exchange, watching: Watching, follow: Follow) -> None:
        self._core, self._watching, self._follow = core, watching, follow
        merge = _larger if core.rules.pairs else _by_term
        self._rows = exchange.rows(TOPIC, merge, gone=_over, valid=_valid, credible=self._is_credible)
        self._rows.on_change(self._on_change)

    # What this member says of itself.

    def lead(self, contest: Contest) -> None:
        """Say to all that this member leads under its term."""
        crowned = Crowned(contest.term, self._core.me, over=False)
        if self._core.rules.nomination_terms:
            self._say(contest, crowned)
        else:
            contest.active = crowned  # D5 off: whatever was heard before.
            self.tell(contest)

    def over(self, contest: Contest, term: int) -> None:
        """Say to all that this member leads no more. Where the table knows a larger reign this changes nothing."""
        self._say(contest, Crowned(term, self._core.me, over=True))

    def recall(self, contest: Contest) -> None:
        """Take what the table knows of a name that was just met."""
        value = self._rows.raw(contest.name)
        row = None if value is None else _read(value)
        if row is not None and row.name == contest.name:
            self.hear(row.crowned.leader, row.name, row.manner, row.crowned)

    # What is heard.

    def learn(self, contest: Contest, new: Crowned) -> bool:
        """Learn a reign that is, or was, active. True: it is news."""
        known = contest.active
        if known is not None and (known.term, known.leader) == (new.term, new.leader):
            if new.over and not known.over:
                if new.leader == self._core.me and self._i_lead(contest, new):
                    self._follow.step_down(contest, "superseded")  # By the word of another; the table cannot take it back.
                self._end(contest, new)
                return True
            return False
        if self._conflicts(contest, new):
            self._on_conflict(contest, new)
            return False
        if not self.is_larger(contest, new):
            return False
        self._adopt(contest, new)
        return True

    def hear(self, source: NodeId, name: str, manner: Manner, new: Crowned) -> bool:
        """Hear a reign of a name, however that was elected: the larger one counts, in the order of the table. True: it is news."""
        core, contest = self._core, self._core.contests.get(name)
        if contest is None or contest.manner == manner:
            contest = core.meet(source, name, manner)
            return contest is not None and self.learn(contest, new)
        known, pair = contest.active, (new.term, new.leader)
        fenced = contest.manner.fencing or manner.fencing
        if known is None or self._is_above(contest, pair, (known.term, known.leader), fenced=fenced):
            if contest.role is not Role.FOLLOWER and self._is_above(contest, pair, (contest.term, core.me), fenced=fenced):
                self._follow.step_down(contest, "superseded")
            core.turn(contest, manner)
            self._adopt(contest, new)
            news = True
        else:
            news = self.learn(contest, new)  # Perhaps the one that is known is over.
        if contest.manner != manner:
            core.mismatch(source, contest, manner)
        return news

    def is_larger(self, contest: Contest, new: Crowned) -> bool:
        """True if this reign is larger than the newest one that is known."""
        known = contest.active
        if known is None:
            return True
        return self.above(contest, (new.term, new.leader), (known.term, known.leader))

    def above(self, contest: Contest, one: tuple[int, NodeId], other: tuple[int, NodeId]) -> bool:
        """True if one reign is larger than the other (D22)."""
        return self._is_above(contest, one, other, fenced=contest.manner.fencing)

    def _is_above(self, contest: Contest, one: tuple[int, NodeId], other: tuple[int, NodeId], *, fenced: bool) -> bool:
        if fenced or not self._core.rules.pairs:
            return one[0] > other[0]
        return contest.pair(*one) > contest.pair(*other)

    def tell(self, contest: Contest) -> None:
        """Tell users if another member leads now, as known here."""
        active = contest.active
        believed = (active.term, active.leader) if active is not None and self._watching.led(contest) else None
        if believed == contest.told:
            return
        contest.told = believed
        if believed is None:
            self._core.host.emit(LeaderChanged(contest.name, None, contest.promised, "election"))
        else:
            self._core.host.emit(LeaderChanged(contest.name, believed[1], believed[0], "election"))

    # How it is done.

    def _say(self, contest: Contest, crowned: Crowned) -> None:
        """The table tells all members, this one by ``_on_change``."""
        if self._core.rules.nomination_terms:
            try:
                self._rows.set(contest.name, _written(contest, crowned))
            except ConfigError:
                self._core.counts["table_full"] += 1  # LEADER says the same, as far as it reaches.
        self.learn(contest, crowned)

    def _adopt(self, contest: Contest, new: Crowned) -> None:
        core, known, mine = self._core, contest.active, new.leader == self._core.me
        new_to_lead = known is None or known.leader != new.leader
        contest.active = new
        contest.raise_promise(new.term, new.leader)
        if contest.shown is None or new.term >= contest.shown[0]:
            contest.show(new.term, new.leader, core.now)
        if contest.role is not Role.FOLLOWER and self.above(contest, (new.term, new.leader), (contest.term, core.me)):
            self._follow.step_down(contest, "superseded")  # Also by a reign that it is said to have, and has not.
        self._follow.on_reign(contest, new.term, new.leader)
        if new.over or (mine and not self._i_lead(contest, new)):
            self._end(contest, new)
            return
        if self._watching.led(contest):
            self._watching.cancel(contest)
        else:
            self._watching.arm(contest)
        contest.failures = contest.yields = 0
        contest.retry = (0, 0)
        contest.silent.clear()
        self.tell(contest)
        if new_to_lead and self._is_violation(contest, new.leader):
            core.counts["rank_violations"] += 1
            core.host.emit(RankViolation(contest.name, new.leader, new.term))
            self._follow.on_violation(contest)

    def _end(self, contest: Contest, new: Crowned) -> None:
        """That reign is over; a row that calls this member a leader, which it is not, is its own to correct (5.7)."""
        mine = new.leader == self._core.me
        contest.active = Crowned(new.term, new.leader, over=True)
        if mine and not new.over:
            self._core.host.after(0.0, lambda: self.correct(contest, new.term))
        self.tell(contest)
        self._watching.on_gone(contest, resigned=True)

    def correct(self, contest: Contest, term: int) -> None:
        """Another says that this member leads under that term. If it does not, that reign is over."""
        if not self._i_lead(contest, Crowned(term, self._core.me, over=False)):
            self._core.counts["corrected"] += 1
            self.over(contest, term)

    def _i_lead(self, contest: Contest, crowned: Crowned) -> bool:
        return contest.role is not Role.FOLLOWER and contest.term == crowned.term

    def _conflicts(self, contest: Contest, new: Crowned) -> bool:
        """With voters: another leads under the term under which this member leads. An assumption of A2 broke."""
        leads = contest.role is Role.ACTIVE and contest.term == new.term
        return contest.manner.fencing and leads and new.leader != self._core.me and not new.over

    def _on_conflict(self, contest: Contest, new: Crowned) -> None:
        self._core.counts["term_conflicts"] += 1
        self._core.host.emit(TermConflict(contest.name, new.term, new.leader))
        self._follow.step_down(contest, "conflict")
        self._watching.arm(contest)

    def _is_violation(self, contest: Contest, leader: NodeId) -> bool:
        """D6: this member ranks before the new leader, and no list that is right could leave it out."""
        core = self._core
        if not core.rules.violations or leader == core.me or not core.i_am_eligible(contest) or core.lists.observed_for() <= BUCKET:
            return False
        if contest.manner.prefers and (core.lists.sick or core.lists.unhealthy(core.me) > 0):
            return False
        found = {each.id: each.ranked for each in core.candidates(contest)}
        theirs = found.get(leader)
        if theirs is None and contest.manner.rank:
            return False
        return found[core.me] < (theirs or ranked(contest.name, leader, b""))

    def _on_change(self, key: str, before: bytes | None, now: bytes) -> None:
        del before
        row = _read(now)
        if row is None or row.name != key:
            self._core.counts["misplaced"] += 1
            return
        self.hear(row.crowned.leader, row.name, row.manner, row.crowned)

    def _is_credible(self, value: bytes) -> bool:
        row = _read(value)
        return row is not None and self._core.credible(row.term)


def _written(contest: Contest, crowned: Crowned) -> bytes:
    return msgspec.msgpack.encode(Row(contest.name, contest.manner, crowned.term, *crowned.leader, crowned.over))


def _read(value: bytes) -> Row | None:
    try:
        return _ROW.decode(value)
    except UNREADABLE:
        return None


def _valid(value: bytes) -> bool:
    row = _read(value)
    if row is None or not is_life(row.crowned.leader):
        return False
    return 1 <= len(row.name.encode()) <= NAME_BYTES_MAX and is_sound(row.manner)


def _over(value: bytes) -> bool:
    row = _read(value)
    assert row is not None
    return row.over


def _larger(a: bytes, b: bytes) -> bytes:
    """The join: larger term, then better hash, then newer life, then over; the rest only makes the order total."""
    return max(a, b, key=_order)


def _order(value: bytes) -> tuple[int, int, int, bool, bytes]:
    row = _read(value)
    assert row is not None
    return row.term, -hash_of(row.name, row.agent), row.boot, row.over, value


def _by_term(a: bytes, b: bytes) -> bytes:
    """D22 off: of two reigns of one term each table keeps the one that it has."""
    one, other = _read(a), _read(b)
    assert one is not None
    assert other is not None
    return b if (other.term, other.over) > (one.term, one.over) else a


_ROW = msgspec.msgpack.Decoder(Row)
