"""The initiator: asks c+f+1 members, takes c+1 answers, names the leader, and sees that it leads.

Spec: election 5.3, 5.5, D3-D8, D11, D12; paper 004, Algorithms 1 to 4 (INITIATEELECTION).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from holdfast.features.election.protocol.answering import Answering
from holdfast.features.election.protocol.config import CONFUSED_MAX, NOTIFY_TIMEOUTS, XY_MAX
from holdfast.features.election.protocol.contest import Contest, Run
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.cvalue import CValue
from holdfast.features.election.protocol.facts import ElectionFailed, Initiated, Nominated, Yielded
from holdfast.features.election.protocol.messages import Leader, NotifyLeader, NotifyNack, Query, Response
from holdfast.features.election.protocol.selection import Choice, account, choose
from holdfast.features.election.protocol.shown import Role
from holdfast.features.election.protocol.terms import Terms
from holdfast.features.election.protocol.voting import Voting
from holdfast.features.election.protocol.watching import UNASKED, Watching
from holdfast.host import Member, NodeId
from holdfast.kit.histogram import Histogram

GREETINGS = 8  # in 2 TIMEOUT: how often it is looked whether a majority of seats was heard
NACKS_MAX = 8  # of one election: a nominee that refuses more often is a liar
YIELDS_MAX = 3  # in a row without a leader: an initiator that is only heard of, or never finishes, stops no other for ever
SECONDS = (0.01, 0.03, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)  # an election in one room takes 1 ms


class Named(Protocol):
    """What the initiator says to itself."""

    def on_notify(self, source: NodeId, contest: Contest, notify: NotifyLeader) -> None: ...


class Want(NamedTuple):
    """Of a member, how often it was asked: whom to ask next."""

    asked: int
    lot: float
    member: Member


class Initiator:
    """Initiates elections: asks members, chooses among their answers, and names a leader."""

    def __init__(
        self, core: Core, answering: Answering, cvalue: CValue, voting: Voting, watching: Watching, terms: Terms, named: Named
    ) -> None:
        self.me = core.me
        self._core, self._answering, self._cvalue, self._voting = core, answering, cvalue, voting
        self._watching, self._terms, self._named = watching, terms, named
        self.took = Histogram(*SECONDS)  # from the first QUERY to the leader's word

    # Beginning.

    def begin(self, contest: Contest, why: str, *, x: int = 0, y: int = 0, sticky: bool = True) -> bool:
        """Begin an election. ``x`` and ``y`` are those of a restart; 0 and 0: as configured. False: it may not, or not now."""
        core = self._core
        if not self._may(contest, why):
            self._watching.arm(contest)
            return False
        if why not in UNASKED and contest.yields < YIELDS_MAX and self._answering.busy(contest, core.me) is not None:
            self._watching.arm(contest)
            return False
        if contest.manner.by_seats and not self._seats_heard(contest, why):
            contest.retry, contest.retry_sticky = (x, y), sticky
            return False
        bounds = self._cvalue.for_election(contest)
        core.eids += 1
        if not contest.manner.prefers:
            x, y = 1, 0
        elif x == 0:
            x, y = core.config.x, core.config.y
        run = contest.run = Run(core.eids, why, x=x, y=y, c=bounds.c, f=bounds.f, began_at=core.now)
        run.needed = max(1, run.c) if not core.rules.extra else run.c + 1
        run.sticky = sticky and core.config.sticky
        core.counts["started"] += 1
        asked = self._ask(contest, run, run.needed + run.f - core.rules.self_response)
        core.host.emit(Initiated(contest.name, run.eid, x, y, tuple(asked), why))
        self._arm(contest, run, core.timeout)
        if core.rules.self_response:
            self.take(contest, core.me, self._answering.answer(contest, run.eid, run.x, run.y))
        elif not asked:
            self._fail(contest, run, "responses")
        return True

    def _may(self, contest: Contest, why: str) -> bool:
        """True if this member may begin an election: a minority, or a group that is still starting, must not inflate terms (5.3)."""
        core = self._core
        free = contest.role is Role.FOLLOWER or why in UNASKED or (why == "empty" and core.rules.restart_tentative)
        if not free or contest.run is not None or not core.takes_part(contest):
            return False
        if not core.candidates(contest):
            return False
        return not contest.manner.by_members or self._voting.supported(contest)

    def _seats_heard(self, contest: Contest, why: str) -> bool:
        """True if a majority of the seats was heard just now; else ask them, and look again (mode ``seats``)."""
        if self._terms.reachable:
            contest.greetings = 0
            return True
        contest.greetings += 1
        if contest.greetings > GREETINGS:
            contest.greetings = 0
            self._core.counts["no_seats"] += 1
            self._watching.arm(contest)
            return False
        period = 2 * self._core.timeout / GREETINGS
        self._terms.greet(every=2 * period)
        self._watching.later(contest, period, why)
        return False

    def _ask(self, contest: Contest, run: Run, wanted: int) -> list[NodeId]:
        """Ask others that have not answered, those first that were asked least often; equal ones by lot."""
        core = self._core
        left = [member for member in core.others() if member.id not in run.got]
        wants = sorted(Want(run.asked.get(each.id, 0), core.host.random.random(), each) for each in left)[: max(0, wanted)]
        question = Query(contest.name, contest.manner, run.eid, min(run.x, XY_MAX), min(run.y, XY_MAX), contest.promised)
        for want in wants:
            run.asked[want.member.id] = want.asked + 1
            core.counts["queries"] += 1
            core.outbox.put_member(want.member, question)
        return [want.member.id for want in wants]

    # Answers.

    def take(self, contest: Contest, source: NodeId, answer: Response) -> None:
        """A RESPONSE, of another or of this member itself. From a member that is not listed, too: it answered, so it lives."""
        core, run = self._core, contest.run
        if run is None or answer.eid != run.eid or run.done or source in run.got:
            core.counts["late"] += 1
            return
        if contest.manner.by_members and not answer.voter:
            core.counts["unsound"] += 1
            return
        if self._yields(contest, run, answer.busy):
            return
        run.got[source] = answer
        run.got_at[source] = core.now
        run.hint = max(run.hint, answer.term, 0 if answer.active is None else answer.active.term)
        core.counts["responses"] += 1
        if len(run.got) >= run.needed:
            self._finish(contest, run)
            return
        self._arm(contest, run, core.timeout)
        if not contest.manner.streams:
            return
        choice = choose(core, contest, run)
        if choice.best is None and not core.rules.empty_at_end:
            self._restart(contest, run)
        elif choice.best is not None and choice.best != run.nominee:
            self._nominate(contest, run, choice, final=not core.rules.confirm)

    def _yields(self, contest: Contest, run: Run, busy: NodeId | None) -> bool:
        """D11: a better-ranked initiator is at work, and none was named here yet."""
        core = self._core
        if busy is None or not core.rules.yields or run.nominee is not None or contest.yields >= YIELDS_MAX:
            return False
        if contest.order(busy) >= contest.order(core.me):
            return False
        contest.hear(busy, core.now)
        self._yield(contest, run, busy)
        return True

    def on_rival(self, contest: Contest, initiator: NodeId) -> None:
        """QUERY of another one."""
        core, run = self._core, contest.run
        contest.hear(initiator, core.now)
        if run is None or run.done or not core.rules.yields or contest.yields >= YIELDS_MAX:
            return
        if contest.order(initiator) < contest.order(core.me):
            self._yield(contest, run, initiator)

    def _yield(self, contest: Contest, run: Run, initiator: NodeId) -> None:
        self._core.counts["yielded"] += 1
        contest.yields += 1
        self._core.host.emit(Yielded(contest.name, run.eid, initiator))
        self.end(contest, "yielded")
        self._watching.arm(contest)

    def _finish(self, contest: Contest, run: Run) -> None:
        """c+1 answers: no later one counts."""
        core = self._core
        run.done = True
        choice = choose(core, contest, run)
        if choice.best is None:
            self._restart(contest, run)
            return
        if choice.best == run.nominee and run.final:
            if run.led:
                self.end(contest, "elected")
            else:
                self._arm(contest, run, NOTIFY_TIMEOUTS * core.timeout)
            return
        self._arm(contest, run, NOTIFY_TIMEOUTS * core.timeout)
        self._nominate(contest, run, choice, final=True)

    def _restart(self, contest: Contest, run: Run) -> None:
        """The set of leaders is empty: one candidate more, one unhealthy member less (GETNEXTX, GETNEXTY)."""
        core = self._core
        core.counts["restarts"] += 1
        n = max(1, len(core.listed.members))
        x, y = min(n, run.x + 1, XY_MAX), max(0, run.y - 1)
        self.end(contest, "empty")
        if run.y == 0:
            run.x = 0
            self._later(contest, run)  # There was no candidate in any answer; the next one is as configured.
        else:
            self.begin(contest, "empty", x=x, y=y, sticky=run.sticky)

    # Nominations.

    def _nominate(self, contest: Contest, run: Run, choice: Choice, *, final: bool) -> None:
        core, best = self._core, choice.best
        assert best is not None
        run.final = final
        if best != run.nominee:
            run.led = run.answered = False
            run.nominee = best
            run.term = self._next_term(contest, run)
            core.counts["nominations"] += 1
            core.host.emit(Nominated(contest.name, run.eid, best, run.term, final, len(run.got)))
        member = core.listed.members.get(best)
        if member is not None:
            core.outbox.meet(member)  # It may never have been heard here.
        elif choice.address is not None:
            core.host.meet(best, choice.address)  # The own list lacks it; an answer says where it is.
        self._notify(contest, run)

    def _next_term(self, contest: Contest, run: Run) -> int:
        """Above all that was heard of, and at least what the wall clock says (D5, D21, D22)."""
        if run.term and not self._core.rules.nomination_terms:
            return run.term
        return max(run.hint + 1, contest.promised + 1, run.term + 1, contest.floor + 1, self._core.clock_term())

    def _notify(self, contest: Contest, run: Run) -> None:
        core = self._core
        assert run.nominee is not None
        notify = NotifyLeader(contest.name, contest.manner, run.eid, run.term, run.final)
        if run.nominee == core.me:
            self._named.on_notify(core.me, contest, notify)
        else:
            core.counts["notifies"] += 1
            core.host.send(run.nominee, notify)

    def on_leader(self, source: NodeId, contest: Contest, message: Leader) -> None:
        """LEADER of the nominee: the run is over when it leads, or knows that it may."""
        run = contest.run
        if run is None or source != run.nominee or message.leader != source:
            return
        confirmed = message.active or (message.final and message.term == run.term)
        if run.done and confirmed and message.term >= run.term:
            self.end(contest, "elected")
        elif message.active and message.term == run.term:
            run.led = True
        elif message.active:
            self.end(contest, "overtaken")  # It led already, under its own term.

    def on_nack(self, source: NodeId, contest: Contest, nack: NotifyNack) -> None:
        core, run = self._core, contest.run
        if run is None or source != run.nominee or nack.eid != run.eid or not core.credible(nack.term):
            core.counts["late"] += 1
            return
        run.answered = True
        if nack.term < run.term:
            core.counts["late"] += 1  # Of a former nomination, or it is no voter yet.
            return
        run.nacks += 1
        if run.nacks > NACKS_MAX:
            core.counts["unsound"] += 1
            return
        run.hint = max(run.hint, nack.term)
        if not nack.gone:
            run.term = self._next_term(contest, run)
            core.host.emit(Nominated(contest.name, run.eid, source, run.term, run.final, len(run.got)))
            self._notify(contest, run)
            return
        run.gone[source] = None
        run.nominee = None
        if run.done:
            self._finish(contest, run)

    # Silence.

    def _arm(self, contest: Contest, run: Run, delay: float) -> None:
        if run.timer is not None:
            run.timer.cancel()
        run.timer = self._core.host.after(delay, lambda: self._on_timer(contest, run))

    def _on_timer(self, contest: Contest, run: Run) -> None:
        if contest.run is not run:
            return
        run.timer = None
        if run.done:
            self._on_silent_nominee(contest, run)
        else:
            self._on_silent_members(contest, run)

    def _on_silent_members(self, contest: Contest, run: Run) -> None:
        """No new RESPONSE for TIMEOUT."""
        run.rounds += 1
        if run.rounds > self._core.config.query_rounds:
            self._fail(contest, run, "responses")
            return
        self._ask(contest, run, run.needed + run.f - len(run.got))
        self._arm(contest, run, self._core.timeout)

    def _on_silent_nominee(self, contest: Contest, run: Run) -> None:
        core = self._core
        run.retries += 1
        if run.retries <= core.config.notify_retries:
            self._arm(contest, run, NOTIFY_TIMEOUTS * core.timeout)
            self._notify(contest, run)
            return
        assert run.nominee is not None
        contest.silent[run.nominee] = 0 if run.answered else contest.silent.get(run.nominee, 0) + 1
        while len(contest.silent) > XY_MAX:
            del contest.silent[next(iter(contest.silent))]
        if core.rules.backoff and run.nominee != core.me:
            core.lists.probe_now(run.nominee)
        self._fail(contest, run, "notify")

    def _fail(self, contest: Contest, run: Run, why: str) -> None:
        core = self._core
        core.counts["failed"] += 1
        core.host.emit(ElectionFailed(contest.name, why, len(run.got), run.needed))
        self.end(contest, why)
        if why == "notify":
            self._later(contest, run)
        else:
            self._watching.arm(contest)

    def _later(self, contest: Contest, run: Run) -> None:
        """The same again after a pause, which doubles with each failure in a row (D12)."""
        core = self._core
        contest.failures += 1
        contest.retry, contest.retry_sticky = (run.x, run.y), run.sticky
        factor = min(2.0 ** min(contest.failures - 1, 10), CONFUSED_MAX) if core.rules.backoff else 1.0
        self._watching.arm(contest)
        self._watching.later(contest, core.uniform(0, 2 * core.timeout) * factor, "retry")

    # The end.

    def on_reign(self, contest: Contest, term: int, leader: NodeId) -> None:
        """A larger reign was learnt. That of an earlier nominee of this run is none of its ends: a later one follows."""
        run = contest.run
        if run is None:
            return
        if (term, leader) == (run.term, run.nominee) and not run.done:
            run.led = True
        elif (term, leader) == (run.term, run.nominee):
            self.end(contest, "elected")
        elif term >= run.term:
            self.end(contest, "overtaken")

    def drop(self, contest: Contest) -> None:
        """Another initiator named this member: the own run, if it is unfinished, is not needed."""
        if contest.run is not None and not contest.run.done:
            self.end(contest, "overtaken")

    def end(self, contest: Contest, outcome: str) -> None:
        core, run = self._core, contest.run
        if run is None:
            return
        if run.timer is not None:
            run.timer.cancel()
        contest.run = None
        contest.last = account(core, contest, run, outcome)
        if outcome == "elected":
            core.counts["finished"] += 1
            core.counts["responses_used"] += len(run.got)
            self.took.add(core.now - run.began_at)
