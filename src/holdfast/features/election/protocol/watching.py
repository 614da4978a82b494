"""Watching: when an election starts.  Spec: election 5.8, D10, D25; paper 004, III.B.

Three ways: the watch fires, the leader is gone, a client asks for one. Every member that saw a sign of an election arms its watch, so an
initiator that dies is no loss.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.features.election.protocol.config import INITIATORS, PAUSE_MAX
from holdfast.features.election.protocol.contest import Contest
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.ranks import hash_of
from holdfast.features.election.protocol.shown import Role
from holdfast.host import NodeId

RECENT_TIMEOUTS = 2.0  # an election of others that was heard so lately still runs
RESIGNED_SPREAD = 0.25  # of the spread: a leader that resigned is no false alarm

UNASKED = ("elect", "violation")  # elections although there is a leader: the incumbent is one candidate among others

Begin = Callable[[Contest, str], None]


class Watching:
    """The watches of all names."""

    def __init__(self, core: Core, begin: Begin) -> None:
        self._core, self._begin = core, begin

    def led(self, contest: Contest) -> bool:
        """True if an active leader is known, and it is listed here."""
        active = contest.active
        if active is None or active.over:
            return False
        if active.leader == self._core.me:
            return contest.role is not Role.FOLLOWER and contest.term == active.term
        return self._core.is_listed(active.leader)

    def arm(self, contest: Contest, *, soon: bool = False) -> None:
        """Arm the watch of a name, unless it is armed. ``soon``: of a first candidate, that need not wait for an election of others."""
        core = self._core
        if not core.rules.watch:
            return
        delay = core.uniform(0, 2 * core.timeout) if soon else self._period * core.uniform(1, 2)
        due = core.now + delay
        if contest.watch is not None and (not soon or contest.watch.due_at <= due):
            return
        if contest.watch is not None:
            contest.watch.cancel()
        contest.watch = core.host.at(due, lambda: self._on_watch(contest))

    def cancel(self, contest: Contest) -> None:
        if contest.watch is not None:
            contest.watch.cancel()
            contest.watch = None
        if contest.start is not None:
            contest.start.cancel()
            contest.start = None

    def on_gone(self, contest: Contest, *, resigned: bool) -> None:
        """Begin an election if this member is chosen: the list dropped the leader, or it said that its reign is over."""
        core = self._core
        self.arm(contest)
        if contest.role is not Role.FOLLOWER or not core.takes_part(contest) or not self._is_chosen(contest):
            return
        if contest.start is None:
            delay = core.uniform(0, core.spread) * (RESIGNED_SPREAD if resigned else 1.0)
            contest.start = core.host.after(delay, lambda: self._on_start(contest, "gone"))

    def later(self, contest: Contest, delay: float, why: str) -> None:
        """Begin another election after a delay, unless a leader is known by then: the own one came to nothing."""
        if contest.start is not None:
            contest.start.cancel()
        contest.start = self._core.host.after(delay, lambda: self._on_start(contest, why))

    def needed(self, contest: Contest) -> bool:
        """True if this follower takes part, knows a candidate, and knows no leader."""
        core = self._core
        return contest.role is Role.FOLLOWER and not self.led(contest) and core.takes_part(contest) and bool(core.candidates(contest))

    @property
    def _period(self) -> float:
        core = self._core
        return 6 * core.timeout if core.config.watch is None else core.config.watch

    def _is_chosen(self, contest: Contest) -> bool:
        """D25: among the eight listed members with the lowest hash for this name after this term."""
        core, active = self._core, contest.active
        if not core.rules.few_initiators or len(core.listed.members) <= INITIATORS:
            return True
        term = str(0 if active is None else active.term)
        mine = self._lot(contest, term, core.me)
        before = 0
        for life in core.listed.members:
            before += self._lot(contest, term, life) < mine
            if before >= INITIATORS:
                return False
        return True

    def _lot(self, contest: Contest, term: str, life: NodeId) -> tuple[int, NodeId]:
        return hash_of(contest.name, term, life.name), life

    def _on_start(self, contest: Contest, why: str) -> None:
        contest.start = None
        core = self._core
        if contest.run is not None or (self.led(contest) and why not in UNASKED):
            return
        if core.host.late > PAUSE_MAX:
            self.arm(contest)  # F11: what waited is read first; the list may be old.
            return
        if why == "gone" and not contest.quiet(core.now, core.timeout):
            return  # Another one has begun; the watch is armed.
        self._begin(contest, why)

    def _on_watch(self, contest: Contest) -> None:
        contest.watch = None
        core = self._core
        if core.contests.get(contest.name) is not contest or not self.needed(contest):
            return  # The tick arms it again when it is needed.
        awake = core.host.late <= PAUSE_MAX  # F11
        free = contest.run is None and contest.start is None  # else one runs, or begins in a moment
        if awake and free and contest.quiet(core.now, RECENT_TIMEOUTS * core.timeout):
            core.counts["watch_fired"] += 1
            self._begin(contest, "watch")
        if not self.led(contest):
            self.arm(contest)
