"""Candidate: the watched's side of an election, from its first heartbeat of a term to the last.

Spec: fast-detection 5 (tick, heartbeat, renew, MONITOR-OK, count), D13, D14; paper 002, Figure 4, task 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Protocol

from msgspec.structs import replace

from holdfast.features.leadership.detector.config import LENGTH_MAX, ElectionConfig, Term
from holdfast.features.leadership.detector.messages import Granted, Lead, MonitorOk, WatchedOk
from holdfast.features.leadership.detector.watched import Watched
from holdfast.host import Address, Host, Message, NodeId
from holdfast.kit.promise import Answer
from holdfast.papers.detection.protocol.election_lease import Lease
from holdfast.papers.detection.protocol.election_timers import TermTimers
from holdfast.papers.detection.protocol.election_voter import Voter

RETRY_MARGIN = 0.001  # seconds: a voter asked at the very end of its promise would refuse once more


class Election(Protocol):
    """What a candidate needs of the election that it stands in."""

    term: Term

    @property
    def voters(self) -> Sequence[str]: ...
    @property
    def quorum(self) -> int: ...
    def others(self) -> Mapping[str, Address]:
        """All other members."""

    def say(self, to: NodeId | Address, message: Message) -> None: ...
    def on_won(self) -> None:
        """The term is led here now."""

    def on_extended(self) -> None:
        """The lease runs longer."""

    def on_gave_up(self) -> None:
        """Too long without a quorum."""


class Candidate:
    """Stands for the terms that belong to this process, one after the other."""

    def __init__(self, host: Host, config: ElectionConfig, voter: Voter, lease: Lease, timers: TermTimers, election: Election) -> None:
        self._host, self._config, self._voter, self._lease = host, config, voter, lease
        self._timers, self._election = timers, election
        self._watched = Watched(host, config)
        self._sent = 0  # heartbeats of this term
        self._tries = 0  # repeats since the last heartbeat to all
        self._goal = 0  # the stamp of that one: what a quorum shall grant
        self._give_up_at = inf
        self._latest: WatchedOk | None = None  # of this term; None: not standing

    @property
    def stands(self) -> bool:
        return self._latest is not None

    def begin(self) -> None:
        """Our term: the first heartbeat leaves at once, not at the next sigma (D13)."""
        config, now = self._config, self._host.now
        self._watched.begin(list(self._election.others()))
        self._sent, self._give_up_at = 0, now + config.lease + 2 * config.t_itv
        self._heartbeat_all()
        self._timers.arm("tick", self._watched.next_at, self._on_tick)

    def end(self) -> None:
        self._latest = None

    def repeat_to(self, monitor: NodeId) -> None:
        """It has not heard us yet. The same stamp again: what it grants is counted from when that one first left."""
        assert self._latest is not None
        sent_at = self._watched.sent_at(self._latest.stamp)
        assert sent_at is not None
        ago = self._host.now - sent_at
        if ago >= self._config.t_rtt and self._latest.after + ago < self._config.t_itv:  # Else one is on its way, or is leaving now.
            self._election.say(monitor, replace(self._latest, after=self._latest.after + ago))

    def on_monitor_ok(self, source: NodeId, message: MonitorOk) -> None:
        known = self._watched.on_monitor_ok(source, message) is not None
        for answer in message.answers:
            if (answer.view, answer.round) == self._election.term:
                self._on_answer(source.name, message.stamp if known else 0, answer)

    def _on_answer(self, voter: str, stamp: int, answer: Granted | Answer) -> None:
        granted = answer.grant if isinstance(answer, Granted) else answer.granted
        if granted:
            if stamp:
                self._lease.grant(voter, stamp)
                self._count()
        elif 0 < answer.wait <= LENGTH_MAX and not self._lease.valid:
            self._retry_after(answer.wait)

    def _on_tick(self) -> None:
        config = self._config
        if config.mode == "quorum" and not self._lease.valid and self._host.now > self._give_up_at:
            self._election.on_gave_up()  # D14: a candidate that all hear but that hears no other must not block the group.
            return
        self._heartbeat_all()
        self._timers.arm("tick", self._watched.next_at, self._on_tick)

    def _heartbeat_all(self) -> None:
        self._tries = 0
        self._heartbeat(self._election.others(), goal=True)

    def _heartbeat(self, names: Iterable[str], *, goal: bool = False) -> None:
        """``goal``: this is the one that a quorum shall grant; repeats only help it."""
        election, config = self._election, self._config
        leading = self._lease.valid and self._lease.term == election.term
        (ok,) = self._watched.heartbeat((Lead("", *election.term, leading, config.lease),))
        self._latest = ok
        self._sent += 1
        if goal:
            self._goal = ok.stamp
        others = election.others()
        for name in names:
            if name in others:
                election.say(others[name], ok)
        if config.mode == "paper":
            self._stand_by_speaking()
        else:
            self._support_ourselves(ok.stamp)
            self._timers.arm("renew", self._host.now + config.nag, self._on_renew)

    def _stand_by_speaking(self) -> None:
        """Paper mode: who has said so often that it lives, leads."""
        if self._sent >= self._config.elect_after and self._lease.term != self._election.term:
            self._lease.until = inf
            self._lease.hold(self._election.term)
            self._election.on_won()

    def _support_ourselves(self, stamp: int) -> None:
        """We vote like all others, and may have promised it to another life."""
        election, me = self._election, self._host.me
        term = election.term
        if me.name in election.voters:
            self._voter.ask(me, term, self._config.lease, lambda answer: self._on_own_answer(term, stamp, answer))

    def _on_own_answer(self, term: Term, stamp: int, answer: Answer) -> None:
        if self.stands and term == self._election.term:
            self._on_answer(self._host.me.name, stamp, answer)

    def _count(self) -> None:
        election, lease = self._election, self._lease
        if not lease.extend(election.voters, election.quorum, self._watched.sent_at):
            return
        if lease.term == election.term:
            election.on_extended()
            return
        lease.hold(election.term)
        election.on_won()
        self._heartbeat_all()  # All shall know at once, not at the next tick.

    def _on_renew(self) -> None:
        """Those that did not grant the last heartbeat to all get it again, while a quorum of them is missing."""
        election = self._election
        if self._lease.supported(election.voters, election.quorum) < self._goal and self._tries < self._config.renew_tries:
            self._tries += 1
            self._heartbeat(self._missing())

    def _retry_after(self, wait: float) -> None:
        """When the first promise to another ends, without waiting for the next tick."""
        due = self._host.now + wait + RETRY_MARGIN
        former = self._timers.due_at("retry")
        if former is None or due < former:
            self._timers.arm("retry", due, lambda: self._heartbeat(self._missing()))

    def _missing(self) -> list[str]:
        return [name for name in self._election.voters if not self._lease.granted(name, self._goal)]
