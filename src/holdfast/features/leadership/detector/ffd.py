"""Fast failure detection: one watched process as one of its monitors sees it.

Spec: fast-detection 2-5, D1-D11, D15, D19, D21; paper 002, Figures 1 and 2, Propositions 4.1 and 4.2.

A ``FastDetector`` is no machine: its owner, an election, receives all messages, checks who is who (member, life, term),
passes on what concerns the watched, and does all sending. The detector owns the timers of fast detection.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from holdfast.features.leadership.detector.ballot import Ballot
from holdfast.features.leadership.detector.config import FfdConfig, Term
from holdfast.features.leadership.detector.facts import Dismissed, PlanChanged, Report, Suspect
from holdfast.features.leadership.detector.freshness import next_point
from holdfast.features.leadership.detector.links import Links
from holdfast.features.leadership.detector.messages import DidYouMissToo, Vote, VoteKind, WatchedOk
from holdfast.features.leadership.detector.plan import Plan, make_plan
from holdfast.features.leadership.detector.sight import Sight
from holdfast.host import Address, Host, Message, NodeId, Timer

__all__ = ["FastDetector", "Links", "Report", "Watcher"]

SEQ_MAX = 1 << 40  # an index times t_itv is still exact to microseconds; ten a second need 3000 years to get there
AMONG_MAX = 64  # monitors in one heartbeat (F17)
DEFERRED_MAX = 64  # askers who wait for our freshness point; each has one question


class Watcher(Protocol):
    """Whom a FastDetector works for: the election that owns it."""

    def monitors(self) -> Mapping[str, NodeId | Address]:
        """Whom to ask in a ballot, name -> where: the other monitors, without this process and the watched; at most 15.
        Asked for when a ballot opens. Paper mode: those in the detector's K; quorum mode: all."""

    def enough(self, names: Collection[str]) -> bool:
        """May a report be acted upon if these miss the watched? Fast ballots ask about those who missed the heartbeat, slow ones
        add those who never heard the watched. Quorum mode: a majority of the voters (or seats) is among them; paper mode: True."""

    def say(self, to: NodeId | Address, message: Message) -> None:
        """Send it."""

    def on_missed(self, seq: int) -> None:
        """A freshness point passed without heartbeat ``seq``: send MONITOR-OK(seq, -1, (), detector.missed_bits(seq))."""

    def on_report(self, report: Report) -> None:
        """A ballot was closed (not: dismissed, aborted, or discarded because this process was stopped). If it was acted, move on to
        the next round: ``watch`` or ``stop`` may be called from here. Slow and not acted: call ``open_slow`` again after
        Delta_c (1 + random)."""


class FastDetector:
    """Fig. 2's monitor task and collectVotes task for one watched process, with the faults of D1-D7 removed."""

    def __init__(self, host: Host, config: FfdConfig, watcher: Watcher, links: Links) -> None:
        """``links``: one per node, shared by all its detectors; what it measured survives term changes."""
        self.host, self.config, self.watcher, self.links = host, config, watcher, links
        self.counts = links.counts
        self.common = config.c0  # c, as the watched publishes it
        self.ballot: Ballot | None = None
        self._sight = Sight(config)
        self._timers: dict[str, Timer] = {}  # fresh, backup, slow, backlog
        self._backlog = False  # we read what waited while we were stopped

    # What the owner asks.

    @property
    def watched(self) -> str:
        """Its name; "" before the first ``watch`` and after ``stop``."""
        return self._sight.watched

    @property
    def term(self) -> Term:
        return self._sight.term

    @property
    def heard(self) -> int:
        """Heartbeats of this term, repeats not counted; > 0 is the paper's ``monitoring``."""
        return self._sight.heard

    @property
    def last_seq(self) -> int:
        """The newest index of this term; -1: none."""
        return self._sight.last_seq

    @property
    def boot(self) -> int:
        """The life of the watched that speaks; 0: none was heard."""
        return self._sight.boot

    @property
    def K(self) -> tuple[str, ...]:  # noqa: N802 - the paper's name
        """The monitors that the watched believes alive, sorted; never the watched itself."""
        return self._sight.K

    @property
    def fresh_at(self) -> float:
        """The freshness point of the next heartbeat, on this host's clock; infinity before the first one."""
        return self._sight.fresh_at

    @property
    def missing(self) -> bool:
        """Heard, and the freshness point of the next heartbeat has passed."""
        return self.host.now >= self.fresh_at

    @property
    def p_false(self) -> float:
        """The chance that a live watched was missed like this: the evidence of all ballots in a row (D9); 1.0 without any."""
        return self._sight.evidence.p_false

    @property
    def suspected(self) -> bool:
        """Suspect was said of it, and no sign of life came since: a heartbeat, or a witness of one (Dismissed)."""
        return self._sight.suspected

    def omega_at(self, sharers: int = 1) -> float:
        """When the slow path begins: (m_Omega - 1) t_itv after ``fresh_at``; infinity before the first heartbeat (then it is
        the owner's Delta_c after entering the round). ``sharers``: n - 1 in paper mode, 1 in quorum mode."""
        return self.fresh_at + (self.config.m_omega(self.links.p(self.watched), sharers) - 1) * self.config.t_itv

    def missed_bits(self, seq: int | None = None) -> int:
        """For MONITOR-OK: bit j set = heartbeat seq - 1 - j of this term did not come in time. Default: of ``last_seq``."""
        return self._sight.missed_bits(self.last_seq if seq is None else seq)

    def demand(self, p_m: float) -> Plan:
        """What this accuracy would cost now. The loss of other monitors' links is known from their votes, p_new before."""
        me, losses = self.host.me.name, self._sight.losses
        fallback = self.config.p_fixed or self.config.p_new
        known = [self.links.p(self.watched), *(losses.get(name, fallback) for name in self.K if name != me)]
        return make_plan(self.config, p_m, known, self.common)

    def rank(self) -> int | None:
        """Position of this process in sorted K + {self}; 0 is the primary monitor; None while the watched is unheard (D5)."""
        me = self.host.me.name
        return sum(name < me for name in self.K) if self.heard else None

    # What the owner tells.

    def watch(self, watched: str, term: Term, rank_among: Sequence[str], *, name: str = "", boot: int = 0) -> None:
        """OnSetNewLeader: everything of the former term is dropped, only what ``links`` measured stays. K starts as ``rank_among``
        (the monitors, with or without this process, without the watched). ``name`` only travels in queries, for the owner of
        the voter. ``boot``: the one life that is watched, where the owner has a detector per life; 0: whichever speaks first."""
        assert watched
        self.stop()
        self._sight = Sight(self.config, watched, term, rank_among, name, boot)

    def stop(self) -> None:
        """Cancels everything; ``watch`` starts it again."""
        self._drop_ballot()
        for what in ("fresh", "backup", "slow"):
            self._cancel(what)
        self._sight = Sight(self.config)

    def on_heartbeat(self, source: NodeId, ok: WatchedOk) -> bool:
        """The watched lives: trains the estimators, resets evidence, aborts ballots, answers deferred queries, arms the next freshness
        point. True if ``seq`` was news. The owner has checked term and sender; another life than ``boot`` is counted and dropped
        here. Every page of a heartbeat may be passed on. Afterwards ``fresh_at`` and ``omega_at`` are those of the next one."""
        sight = self._sight
        if not sight.is_life(source) or not self._well_formed(ok):
            self.counts["malformed" if sight.is_life(source) else "other_life"] += 1
            return False
        news = ok.seq > sight.last_seq
        if news:
            sight.learn(source, sight.link or self.links.link(source), ok, self.host.now, timed=not self._backlog)
        if ok.page == 0 and ok.stamp >= sight.stamp:
            sight.set_among(ok.among)
        if ok.stamp > sight.stamp:  # Said later than all before; a datagram that came twice, or was overtaken, proves nothing new.
            sight.stamp, self.common = ok.stamp, ok.common
            self._on_life()
        if news:
            self._arm_fresh(sight.last_seq + 1)
            self._replan()
        return news

    def on_query(self, source: NodeId, query: DidYouMissToo) -> None:
        """Answers now, defers, or stays silent (D4). The owner has checked that ``source`` may ask, and caught up with its term."""
        sight = self._sight
        if (query.watched, query.view, query.round) != (sight.watched, *sight.term) or not sight.may_mean(query.boot):
            self.counts["other_term"] += 1
            return
        sight.asked_at = self.host.now
        if self._is_due(query.seq):
            sight.asked_seq = max(sight.asked_seq, query.seq)
        self._answer(source, query)

    def on_vote(self, source: NodeId, vote: Vote) -> bool:
        """Counts it, if it belongs to the open ballot; False if not (the owner may try another detector)."""
        ballot = self.ballot
        if ballot is None or vote.watched != self.watched or not ballot.record(source.name, vote):
            self.counts["votes_ignored"] += 1
            return False
        self.counts["votes"] += 1
        self.links.vote_seconds += self.host.now - ballot.opened_at
        self._sight.losses[source.name] = vote.p
        if vote.kind is VoteKind.HAVE and not ballot.query.slow:
            self._sight.on_sign_of_life()
            self._dismiss(source.name)  # One witness suffices.
        else:
            ballot.close_if_complete()
        return True

    def open_slow(self) -> None:
        """The owner's omega timer fired: ask all monitors whether they miss the watched now (D21). Yields once, by w (1 + random), if
        another monitor asked within the last w; waits for a fast ballot that is open. Ends with ``on_report``, or with a
        heartbeat. If this process was stopped meanwhile it is discarded, and opened again by itself after t_itv. Not in paper mode."""
        sight, ballot, now = self._sight, self.ballot, self.host.now
        if not sight.watched or (ballot is not None and ballot.query.slow):
            return
        if ballot is not None:
            self._arm("slow", ballot.closes_at, self._on_slow)  # Its evidence is not thrown away.
        elif now - sight.asked_at < self.config.w and not sight.yielded:
            sight.yielded = True
            self._arm("slow", now + self.config.w * (1 + self.host.random.random()), self._on_slow)
        else:
            sight.yielded = False
            self._open(sight.last_seq + 1 if sight.heard else -1, slow=True)

    def on_away(self, seconds: float) -> None:
        """This process was stopped: no ballot of before counts, and heartbeats that waited teach nothing about delays (F10, F11)."""
        self._backlog = True
        self._arm("backlog", self.host.now, self._on_backlog_read)
        self._cancel("backup")
        self._sight.deferred.clear()
        self._discard()

    # Heartbeats.

    def _well_formed(self, ok: WatchedOk) -> bool:
        return 0 <= ok.seq < SEQ_MAX and 0 <= ok.after <= self.config.t_itv and 0 <= ok.common <= 1 and len(ok.among) <= AMONG_MAX

    def _on_life(self) -> None:
        sight = self._sight
        sight.on_sign_of_life()
        sight.yielded = False
        self._cancel("backup")
        self._cancel("slow")
        if self.ballot is not None and self.ballot.query.seq <= sight.last_seq:
            self._dismiss(sight.watched)  # D6: it came after all.
        self._answer_deferred(sight.last_seq, VoteKind.HAVE)

    def _replan(self) -> None:
        plan = self.demand(self.config.p_m)
        if plan.heartbeats != self._sight.planned:
            self._sight.planned = plan.heartbeats
            self.host.emit(PlanChanged(self.term, self.watched, plan))

    # Freshness points.

    def _arm_fresh(self, seq: int) -> None:
        link = self._sight.link
        assert link is not None
        # Points that went by are not made up for: we were stopped (F11), or this heartbeat was on the road for longer than an interval.
        seq = next_point(link.freshness, seq, self.host.now, self.config.t_itv)
        self._arm("fresh", link.freshness.deadline(seq), lambda: self._on_fresh(seq))

    def _on_fresh(self, seq: int) -> None:
        """tau_seq passed, and neither ``seq`` nor a later one came: it would have moved the timer."""
        self._arm_fresh(seq + 1)
        if self.host.late > self.config.lat:
            self.counts["late_timers"] += 1  # F11: it was us who were stopped. A monitor that asked meanwhile has closed without us.
            self._sight.deferred.clear()
            return
        self._answer_deferred(seq, VoteKind.MISSED)
        self.watcher.on_missed(seq)
        rank = self.rank()
        if rank == 0:
            self._open_fast(seq)
        elif rank is not None and rank <= self.config.backups:
            self._arm("backup", self.host.now + rank * self.config.w, lambda: self._on_backup(seq))

    def _on_backup(self, seq: int) -> None:
        """D15: the primary may be dead, or stopped."""
        if self.host.late > self.config.lat:
            self.counts["late_timers"] += 1
        elif self._sight.asked_seq < seq:
            self._open_fast(seq)

    def _on_slow(self) -> None:
        if self.host.late > self.config.lat:
            self.counts["late_timers"] += 1
            self._arm("slow", self.host.now + self.config.t_itv + self.config.lat, self._on_slow)
        else:
            self.open_slow()

    def _on_backlog_read(self) -> None:
        self._backlog = False  # Timers come after the datagrams that waited (F10).

    # Questions of others.

    def _answer(self, source: NodeId, query: DidYouMissToo) -> None:
        """Never from a stored flag, always from what we hold now (D4)."""
        kind = self._opinion(query)
        if kind is not None:
            self._vote(source, query, kind)
        elif not query.slow and not self._backlog and self._may_defer(source.name, query.seq):
            self.counts["deferred"] += 1
            self._sight.deferred[source.name] = (source, query)
        else:
            self.counts["silent"] += 1

    def _opinion(self, query: DidYouMissToo) -> VoteKind | None:
        """None: not yet, or not for us to say."""
        sight, now = self._sight, self.host.now
        if sight.link is None:
            return VoteKind.UNHEARD
        tau = sight.fresh_at if query.slow else sight.link.freshness.deadline(query.seq)
        if (query.slow and now < tau) or (not query.slow and sight.last_seq >= query.seq):
            return VoteKind.HAVE
        return VoteKind.MISSED if now >= tau and not self._backlog else None  # F11: it may wait right behind this question.

    def _may_defer(self, asker: str, seq: int) -> bool:
        deferred = self._sight.deferred
        return self._is_due(seq) and (asker in deferred or len(deferred) < DEFERRED_MAX)

    def _is_due(self, seq: int) -> bool:
        """Its freshness point here has passed, or comes while a ballot is open that was opened just now."""
        link = self._sight.link
        return link is not None and link.freshness.deadline(seq) - self.host.now <= self.config.w

    def _answer_deferred(self, seq: int, kind: VoteKind) -> None:
        deferred = self._sight.deferred
        for source, query in list(deferred.values()):
            if query.seq <= seq:
                del deferred[source.name]
                self._vote(source, query, kind)

    def _vote(self, source: NodeId, query: DidYouMissToo, kind: VoteKind) -> None:
        p = self.links.p(self.watched)
        self.watcher.say(source, Vote(self.watched, query.view, query.round, query.seq, query.nonce, kind, p, self.last_seq))

    # Own questions.

    def _open_fast(self, seq: int) -> None:
        if self.ballot is None or not self.ballot.query.slow:  # A slow one asks more.
            self._open(seq, slow=False)

    def _open(self, seq: int, *, slow: bool) -> None:
        self._drop_ballot()
        sight, me = self._sight, self.host.me.name
        ask = {name: to for name, to in self.watcher.monitors().items() if name not in (me, sight.watched)}
        query = DidYouMissToo(sight.watched, sight.boot, sight.name, *sight.term, seq, self.links.next_nonce(), slow)
        self.ballot = self._make_ballot(query, ask)
        self.ballot.count_own(me, self.links.p(sight.watched) if sight.heard else None)
        self.counts["ballots_slow" if slow else "ballots_fast"] += 1
        self.ballot.open()

    def _make_ballot(self, query: DidYouMissToo, ask: Mapping[str, NodeId | Address]) -> Ballot:
        return Ballot(self.host, self.config, query, ask, self.watcher.say, self._on_close)

    def _on_close(self) -> None:
        ballot = self.ballot
        assert ballot is not None
        if self.host.late > self.config.lat:
            self._discard()
            return
        self._drop_ballot()
        report = self._judge(ballot)
        self._sight.suspected = True
        self.counts["ballots_acted" if report.acted else "ballots_without_act"] += 1
        self.host.emit(report)
        self.watcher.on_report(report)

    def _judge(self, ballot: Ballot) -> Report:
        sight, query, misses = self._sight, ballot.query, ballot.misses
        if query.slow:
            acted = self.watcher.enough([*misses, *ballot.unheard])  # A majority beats vetoes (D21).
        else:
            sight.evidence.fold(query.seq, misses.values(), self.common)
            acted = sight.evidence.meets(self.config.p_m) and self.watcher.enough(list(misses))
        return Suspect(
            sight.term, sight.watched, query.boot, query.seq, tuple(sorted(misses)), ballot.silent, tuple(sorted(ballot.unheard)),
            tuple(sorted(ballot.have)), self.p_false, acted, query.slow,
        )  # fmt: skip

    def _dismiss(self, by: str) -> None:
        assert self.ballot is not None
        self.counts["ballots_dismissed"] += 1
        self.host.emit(Dismissed(self.term, self.watched, self.ballot.query.seq, by))
        self._drop_ballot()

    def _discard(self) -> None:
        """F11: votes that came while we were stopped are of another time."""
        if self.ballot is not None:
            self.counts["ballots_discarded"] += 1
            if self.ballot.query.slow:
                self._arm("slow", self.host.now + self.config.t_itv, self._on_slow)
            self._drop_ballot()

    def _drop_ballot(self) -> None:
        if self.ballot is not None:
            self.ballot.cancel()
            self.ballot = None

    # Timers.

    def _arm(self, what: str, due: float, callback: Callable[[], None]) -> None:
        self._cancel(what)
        self._timers[what] = self.host.at(due, callback)

    def _cancel(self, what: str) -> None:
        timer = self._timers.pop(what, None)
        if timer is not None:
            timer.cancel()
