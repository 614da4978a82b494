"""Hearing of a leader: LEADER, tentative or active, and what a voter says to it.  Spec: election 5.7; paper 004, Algorithm 1 lines 23-24.

An active LEADER may be passed on by any member, a tentative one only by its leader.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.features.election.protocol.checks import is_life
from holdfast.features.election.protocol.contest import Contest, Crowned
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.messages import Leader, LeaderAck
from holdfast.features.election.protocol.reigns import Reigns
from holdfast.features.election.protocol.shown import Role
from holdfast.features.election.protocol.voting import Voting
from holdfast.features.election.protocol.watching import Watching
from holdfast.host import NodeId

StepDown = Callable[[Contest, str], None]


class Hearing:
    """Handles LEADER of all names: learns the reign, and answers as a voter."""

    def __init__(self, core: Core, reigns: Reigns, voting: Voting, watching: Watching, step_down: StepDown) -> None:
        self._core, self._reigns, self._voting, self._watching, self._step_down = core, reigns, voting, watching, step_down

    def on_leader(self, source: NodeId, contest: Contest, message: Leader) -> None:
        core = self._core
        if not core.credible(message.term) or not is_life(message.leader):
            core.counts["malformed" if core.credible(message.term) else "far_ahead"] += 1
            return
        if message.leader == core.me:
            self._on_own(source, contest, message)
            return
        if not message.active and source != message.leader:
            core.counts["secondhand"] += 1
            return
        if not core.rules.nomination_terms:
            self._overwrite(contest, message)
        elif contest.manner.fencing:
            self._with_voters(source, contest, message)
        else:
            self._without(source, contest, message)
        if not message.active:
            self._watching.arm(contest)

    def on_otherwise(self, source: NodeId, message: Leader) -> None:
        """Learn the reign of a name that is elected otherwise here: a larger reign counts all the same."""
        sound = self._core.credible(message.term) and is_life(message.leader)
        if message.active and sound and message.leader != self._core.me:
            self._reigns.hear(source, message.name, message.manner, Crowned(message.term, message.leader, over=False))

    def _on_own(self, source: NodeId, contest: Contest, message: Leader) -> None:
        """Answer a member that says that this one leads."""
        core = self._core
        core.counts["own_leader"] += 1
        if not message.active or source == core.me:
            return
        if contest.role is Role.ACTIVE and contest.term == message.term:
            core.host.send(source, message)
        else:
            self._reigns.correct(contest, message.term)

    def check(self, contest: Contest) -> None:
        """A reign of which its leader itself did not speak: it is asked, and denies it if it is none (H401)."""
        active, core = contest.active, self._core
        if active is None or active.over or active.leader == core.me or contest.heard_from == (active.term, active.leader):
            return
        member = core.listed.members.get(active.leader)
        if member is not None:
            core.counts["asked_leader"] += 1
            core.outbox.put_member(member, Leader(contest.name, contest.manner, active.term, active.leader, active=True, final=True))

    def _without(self, source: NodeId, contest: Contest, message: Leader) -> None:
        """Learn a reign that no voter promised: reigns are ordered by (term, then better hash), here as in the table (D22)."""
        core, reigns = self._core, self._reigns
        new = (message.term, message.leader)
        if message.active:
            self._learn(source, contest, message)
            return
        if contest.shown is None or reigns.above(contest, new, contest.shown):
            contest.show(*new, core.now)
        contest.raise_promise(*new)
        if contest.role is Role.TENTATIVE and not contest.unsure and reigns.above(contest, new, (contest.term, core.me)):
            self._step_down(contest, "superseded")

    def _with_voters(self, source: NodeId, contest: Contest, message: Leader) -> None:
        """Learn a reign, or promise its term: terms are promised to one life each."""
        new = (message.term, message.leader)
        free = message.term > contest.promised or (message.term == contest.promised and contest.promised_to == message.leader)
        if free:
            self._promise(source, contest, message)
        elif message.term == contest.promised and message.active:
            contest.show(*new, self._core.now)  # It has a majority; to whom the term was promised here stays as it is.
            if contest.role is Role.TENTATIVE and contest.term == message.term:
                self._step_down(contest, "superseded")
        elif not message.active:
            self._ack(source, contest, message.term, ok=False)
        if message.active:
            self._learn(source, contest, message)

    def _promise(self, source: NodeId, contest: Contest, message: Leader) -> None:
        core, term = self._core, message.term
        votes = contest.manner.by_members and contest.voter
        if contest.manner.by_members and not votes:
            core.counts["silent"] += 1  # What it may have promised before is not known yet (5.2).
            return
        changed = term > contest.promised
        contest.promised, contest.promised_to = term, message.leader
        contest.show(term, message.leader, core.now)
        if contest.role is not Role.FOLLOWER and contest.term < term:
            self._step_down(contest, "superseded")
        if not votes or message.active:
            return
        if changed:
            self._voting.save(contest, lambda: self._saved(source, contest, message))
        else:
            self._saved(source, contest, message)

    def _saved(self, source: NodeId, contest: Contest, message: Leader) -> None:
        """Durable; and nothing higher was promised while the disk worked."""
        if (contest.promised, contest.promised_to) == (message.term, message.leader):
            self._ack(source, contest, message.term, ok=True)

    def _ack(self, source: NodeId, contest: Contest, term: int, *, ok: bool) -> None:
        if contest.manner.by_members and contest.voter:
            core = self._core
            core.host.send(source, LeaderAck(contest.name, contest.manner, term, ok, contest.promised, core.known()))

    def _learn(self, source: NodeId, contest: Contest, message: Leader) -> None:
        if source == message.leader:
            contest.heard_from = (message.term, message.leader)
        if self._reigns.learn(contest, Crowned(message.term, message.leader, over=False)):
            self.check(contest)
        else:
            self._correct(source, contest, (message.term, message.leader))

    def _correct(self, source: NodeId, contest: Contest, new: tuple[int, NodeId]) -> None:
        """A reign that is smaller than the newest one known is answered with that one, also if that one is over: as long as this leader
        does not know of it, each election names it again, and is answered with the smaller reign (H402). With voters two leaders of one
        term cannot be told apart: the one that says so itself hears of the other, gives up, and the next term is higher (5.9, H446)."""
        active, core = contest.active, self._core
        if active is None or (active.term, active.leader) == new or source == core.me:
            return
        if active.leader == core.me and contest.role is not Role.ACTIVE:
            return
        one_term = contest.manner.fencing and active.term == new[0] and source == new[1]
        if one_term or self._reigns.above(contest, (active.term, active.leader), new):
            core.counts["corrections"] += 1
            core.host.send(source, Leader(contest.name, contest.manner, active.term, active.leader, active=True, final=True))

    def _overwrite(self, contest: Contest, message: Leader) -> None:
        """D5 off: as the paper has it, each LEADER overwrites the last one."""
        contest.show(message.term, message.leader, self._core.now)
        if message.active:
            if contest.role is not Role.FOLLOWER:
                self._step_down(contest, "superseded")
            contest.active = Crowned(message.term, message.leader, over=False)
            self._reigns.tell(contest)
