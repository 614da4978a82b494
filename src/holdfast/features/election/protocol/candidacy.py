"""Candidacy: the life of a member that an initiator named, from NOTIFYLEADER to the end of its reign.

Spec: election 5.6, 5.7 (acks), 5.9; paper 004, Algorithm 1 lines 21-22.

FOLLOWER -> TENTATIVE (named) -> ACTIVE (confirmed, and accepted by W voters) -> FOLLOWER. After a pause ACTIVE -> TENTATIVE under the same
term, until it is accepted again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from holdfast.features.election.protocol.config import RESPREAD_MAX
from holdfast.features.election.protocol.contest import SPENT, Contest
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.facts import Elected, SteppedDown, Tentative, TentativeExpired, Unsure
from holdfast.features.election.protocol.messages import Leader, LeaderAck, NotifyLeader, NotifyNack, OfElection
from holdfast.features.election.protocol.reasons import REASONS
from holdfast.features.election.protocol.shown import Role
from holdfast.features.election.protocol.terms import Terms
from holdfast.features.election.protocol.voting import Voting
from holdfast.features.election.protocol.watching import Watching
from holdfast.host import Member, NodeId, Timer
from holdfast.kit.hold import LossReason

WEAK_TICKS = 2  # in a row with too few voters listed, after which a leader steps down


class Crowning(Protocol):
    """What a candidate needs of reigns, of its client, and of the own election that may have named it."""

    def lead(self, contest: Contest) -> None: ...
    def over(self, contest: Contest, term: int) -> None: ...
    def on_leading(self, contest: Contest) -> None: ...
    def at_risk(self, contest: Contest) -> None: ...
    def on_lost(self, contest: Contest, reason: LossReason) -> None: ...
    def drop_run(self, contest: Contest) -> None:
        """Give up the own election of this name, if it is not finished."""

    def to_initiator(self, contest: Contest, message: OfElection) -> None:
        """Hand a message to the own election, where this member named itself."""


class Candidacy:
    """What this member is to each name for which it may lead: not named, tentative or active."""

    def __init__(self, core: Core, voting: Voting, watching: Watching, terms: Callable[[], Terms], crowning: Crowning) -> None:
        self._core, self._voting, self._watching, self._terms, self._crowning = core, voting, watching, terms, crowning

    # NOTIFYLEADER.

    def on_notify(self, source: NodeId, contest: Contest, notify: NotifyLeader) -> None:
        core, term = self._core, notify.term
        if not core.takes_part(contest):
            core.counts["silent"] += 1
            if contest.stands and not contest.voter and contest.manner.by_members:
                # Not yet; that is no silence, after which another would be named (H396).
                self._reply(source, contest, NotifyNack(contest.name, contest.manner, notify.eid, 0))
        elif contest.role is Role.ACTIVE and (core.config.sticky or term <= contest.term):
            self._reply(source, contest, self._leader(contest))
        elif contest.role is not Role.FOLLOWER and term == contest.term:
            self._again(source, contest, final=notify.final)
        elif core.rules.nomination_terms and self._is_taken(contest, term):
            core.counts["nacks"] += 1
            self._reply(source, contest, NotifyNack(contest.name, contest.manner, notify.eid, contest.promised))
        elif not core.i_am_eligible(contest):
            core.counts["nacks"] += 1
            self._reply(source, contest, NotifyNack(contest.name, contest.manner, notify.eid, term, gone=True))
        else:
            self._accept(source, contest, notify)

    def _is_taken(self, contest: Contest, term: int) -> bool:
        """True if this term was promised or led already; a reign that is over is not led again under its term."""
        active = contest.active
        if active is not None and term <= active.term:
            return True
        return term < contest.promised or (term == contest.promised and contest.promised_to != self._core.me)

    def _again(self, source: NodeId, contest: Contest, *, final: bool) -> None:
        """Handle a nomination under the same term once more. Where that makes this member ACTIVE, all hear so."""
        named = contest.role is Role.TENTATIVE
        contest.final = contest.final or final
        self.try_activate(contest)
        heard = named and self._leads(contest) and (source == self._core.me or self._core.is_listed(source))
        if not heard and contest.term:
            self._reply(source, contest, self._leader(contest))

    def _accept(self, source: NodeId, contest: Contest, notify: NotifyLeader) -> None:
        core = self._core
        if contest.role is Role.ACTIVE or contest.unsure:
            self.step_down(contest, "superseded")  # Its client acts under the former term.
        if source != core.me:
            self._crowning.drop_run(contest)
        contest.promised, contest.promised_to = max(notify.term, contest.promised), core.me
        contest.show(notify.term, core.me, core.now)
        self._begin(contest, notify.term, final=notify.final)
        core.counts["tentative"] += 1
        core.host.emit(Tentative(contest.name, contest.term))
        if not contest.manner.by_members:
            self._accepted(contest, contest.term, source)
        elif not self._voting.save(contest, lambda: self._accepted(contest, notify.term, source)):
            self._end(contest, "withdrawn")

    def _begin(self, contest: Contest, term: int, *, final: bool) -> None:
        core = self._core
        self._cancel(contest)
        contest.role, contest.term, contest.final, contest.unsure = Role.TENTATIVE, term, final, False
        contest.acks, contest.n_seen, contest.spreads, contest.weak_ticks = {}, 0, 0, 0
        contest.began_at = core.now
        contest.candidacy = core.host.after(core.ttl, lambda: self._on_expired(contest, term))

    def _accepted(self, contest: Contest, term: int, source: NodeId) -> None:
        """This member has accepted its own term, and that is saved."""
        core = self._core
        if contest.role is not Role.TENTATIVE or contest.term != term:
            return
        contest.acks[core.me.name] = None
        at_once = contest.final and not contest.manner.fencing
        if not at_once:
            self._spread(contest)
        self.try_activate(contest)
        if source != core.me and not core.is_listed(source) and contest.term == term:
            core.host.send(source, self._leader(contest))

    # From TENTATIVE to ACTIVE.

    def try_activate(self, contest: Contest) -> None:
        """Become ACTIVE if nothing is missing. A process that was stopped runs its timers late, so the age is compared here, too."""
        core = self._core
        if contest.role is not Role.TENTATIVE or not contest.final or core.now - contest.began_at >= core.ttl:
            return
        if contest.unsure and not contest.manner.fencing:
            return  # Others have one TIMEOUT to object.
        if contest.manner.by_seats and not self._promised(contest):
            return
        if contest.manner.by_members and len(contest.acks) < self._voting.needed(contest):
            return
        self._activate(contest)

    def _activate(self, contest: Contest) -> None:
        core = self._core
        self._cancel(contest)
        contest.role, contest.unsure, contest.weak_ticks = Role.ACTIVE, False, 0
        core.counts["elected"] += 1
        self._crowning.lead(contest)
        if not self._leads(contest):
            if contest.role is Role.ACTIVE:
                self.step_down(contest, "superseded")  # The table knew better.
            return
        core.cast(self._leader(contest))
        if core.rules.repeat:
            contest.respread = core.host.after(core.timeout, lambda: self._on_repeat(contest))
        core.host.emit(Elected(contest.name, contest.term))
        self._crowning.to_initiator(contest, self._leader(contest))
        self._crowning.on_leading(contest)

    def _leads(self, contest: Contest) -> bool:
        active = contest.active
        mine = (contest.term, self._core.me, False)
        return contest.role is Role.ACTIVE and active is not None and (active.term, active.leader, active.over) == mine

    def _promised(self, contest: Contest) -> bool:
        """True if enough slots promised this term; else they are asked, once the initiator has finished (mode ``seats``)."""
        terms = self._terms()
        needed = self._voting.needed(contest)
        if sum(ack.startswith(SLOT) for ack in contest.acks) >= needed:
            return True
        if not terms.asks(contest.name):
            terms.ask(contest, needed, contest.began_at + self._core.ttl - self._core.now)
        return False

    def on_promised(self, contest: Contest, term: int, slots: tuple[int, ...] | None, refused: int) -> None:
        """The seats have decided; ``refused``: the highest number that they told."""
        if contest.role is not Role.TENTATIVE or contest.term != term:
            return
        if slots is not None:
            contest.acks.update((f"{SLOT}{slot}", None) for slot in slots)
            self.try_activate(contest)
            return
        if self._core.credible(refused):
            contest.raise_promise(refused, SPENT)
        self.step_down(contest, "unsure" if contest.unsure else "refused")
        self._watching.arm(contest)

    def on_ack(self, source: NodeId, contest: Contest, ack: LeaderAck) -> None:
        """Count a voter's answer to a LEADER of the present term."""
        core = self._core
        if contest.role is Role.FOLLOWER or ack.term != contest.term or not contest.manner.by_members:
            return
        contest.see(ack.known)
        if ack.ok:
            contest.acks[source.name] = None
            self.try_activate(contest)
        elif ack.promised > contest.term and contest.role is Role.TENTATIVE and core.credible(ack.promised):
            contest.raise_promise(ack.promised, SPENT)
            self.step_down(contest, "unsure" if contest.unsure else "refused")
            self._watching.arm(contest)

    def _on_expired(self, contest: Contest, term: int) -> None:
        if contest.role is not Role.TENTATIVE or contest.term != term:
            return
        if contest.unsure:
            self.step_down(contest, "unsure")
        else:
            self._core.counts["expired"] += 1
            self._core.host.emit(TentativeExpired(contest.name, term))
            self._reset(contest)
        self._watching.arm(contest)

    # LEADER.

    def _spread(self, contest: Contest) -> None:
        """Send LEADER to all; again to the silent while this member is tentative, where their acceptance counts."""
        core = self._core
        core.cast(self._leader(contest))
        if contest.manner.by_members:
            contest.respread = core.host.after(core.timeout, lambda: self._on_respread(contest))

    def _on_respread(self, contest: Contest) -> None:
        core = self._core
        contest.spreads += 1
        message = self._leader(contest)
        for member in core.others():
            if member.name not in contest.acks:
                core.outbox.put_member(member, message)
        contest.respread = None
        if contest.spreads < RESPREAD_MAX:
            contest.respread = core.host.after(core.timeout, lambda: self._on_respread(contest))

    def _leader(self, contest: Contest) -> Leader:
        active = contest.role is Role.ACTIVE
        return Leader(contest.name, contest.manner, contest.term, self._core.me, active, final=contest.final)

    def _on_repeat(self, contest: Contest) -> None:
        """Who lost the first one would hear of it by the table alone, one period of gossip after the other (H441)."""
        contest.respread = None
        assert contest.role is Role.ACTIVE
        self._core.cast(self._leader(contest))

    def announce(self, contest: Contest, to: Member) -> None:
        """Say to one member that this one leads."""
        if contest.role is Role.ACTIVE:
            self._core.outbox.put_member(to, self._leader(contest))

    # Doubts, and the end (5.9).

    def on_pause(self, contest: Contest) -> None:
        """Doubt the own reign: the process was stopped, and is ACTIVE again under this term only when that is confirmed."""
        core = self._core
        if contest.role is not Role.ACTIVE or not core.rules.pause_check:
            return
        term = contest.term
        self._begin(contest, term, final=True)
        contest.unsure = True
        core.counts["unsure"] += 1
        core.host.emit(Unsure(contest.name, term))
        self._crowning.at_risk(contest)
        if contest.manner.by_members:
            contest.acks[core.me.name] = None
        if contest.manner.fencing:
            self._spread(contest)
            self.try_activate(contest)
            return
        core.cast(Leader(contest.name, contest.manner, term, core.me, active=True, final=True))
        contest.respread = core.host.after(core.timeout, lambda: self._on_unopposed(contest, term))

    def _on_unopposed(self, contest: Contest, term: int) -> None:
        contest.respread = None
        if contest.unsure and contest.term == term and contest.role is Role.TENTATIVE:
            contest.unsure = False
            self.try_activate(contest)

    def on_tick(self, contest: Contest) -> None:
        """Step down if the own list has had no majority for two ticks."""
        if contest.role is not Role.ACTIVE or not contest.manner.fencing or not self._core.rules.support_check:
            return
        contest.weak_ticks = 0 if self._voting.supported(contest) else contest.weak_ticks + 1
        if contest.weak_ticks >= WEAK_TICKS:
            self.step_down(contest, "no support")
            self._watching.arm(contest)

    def step_down(self, contest: Contest, why: str) -> None:
        """Be neither named nor the leader under this term any more, and never again under it."""
        core, term = self._core, contest.term
        if contest.role is Role.FOLLOWER:
            return
        led = contest.role is Role.ACTIVE or contest.unsure
        newest = contest.active is not None and (contest.active.term, contest.active.leader) == (term, core.me)
        self._reset(contest)
        core.counts["stepped_down"] += led
        core.host.emit(SteppedDown(contest.name, term, why, led))
        if newest:
            self._crowning.over(contest, term)  # Or all would go on to believe in it.
        if led and why in REASONS:
            self._crowning.on_lost(contest, REASONS[why]())

    def _end(self, contest: Contest, why: str) -> None:
        self.step_down(contest, why)
        self._watching.arm(contest)

    def _reset(self, contest: Contest) -> None:
        self._cancel(contest)
        contest.role, contest.term, contest.final, contest.unsure = Role.FOLLOWER, 0, False, False
        contest.acks, contest.n_seen = {}, 0

    def _cancel(self, contest: Contest) -> None:
        self._terms().cancel(contest.name)
        for timer in (contest.candidacy, contest.respread):
            _stop(timer)
        contest.candidacy = contest.respread = None

    def stop(self, contest: Contest) -> None:
        self._cancel(contest)

    def _reply(self, source: NodeId, contest: Contest, message: OfElection) -> None:
        if source == self._core.me:
            self._crowning.to_initiator(contest, message)
        else:
            self._core.host.send(source, message)


SLOT = "\0slot "  # of a seat, among the names that accepted: no member has such a name


def _stop(timer: Timer | None) -> None:
    if timer is not None:
        timer.cancel()
