"""Monitor: the side of an election that watches the candidate of a term, answers its heartbeats, and finds it dead.

Spec: fast-detection 5 (WATCHED-OK, grant rule, omega, nag), D13, D14, D19, D21; paper 002, Figure 4, task 1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from holdfast.features.leadership.detector.config import ElectionConfig, Term
from holdfast.features.leadership.detector.facts import Report
from holdfast.features.leadership.detector.ffd import FastDetector
from holdfast.features.leadership.detector.links import Links
from holdfast.features.leadership.detector.messages import DidYouMissToo, Granted, Lead, MonitorOk, StartRound, Vote, WatchedOk
from holdfast.host import Address, Host, Message, NodeId
from holdfast.kit.promise import Answer
from holdfast.papers.detection.protocol.election_timers import TermTimers
from holdfast.papers.detection.protocol.election_voter import Voter

ASKED_MAX = 15  # F17: monitors in one ballot


class Election(Protocol):
    """What a monitor needs of the election that it works for."""

    term: Term
    members: tuple[str, ...]

    @property
    def voters(self) -> Sequence[str]: ...
    @property
    def quorum(self) -> int: ...
    @property
    def watched(self) -> str: ...
    def others(self) -> Mapping[str, Address]: ...
    def say(self, to: NodeId | Address, message: Message) -> None: ...
    def name_leader(self, leader: NodeId | None) -> None: ...
    def enter_next(self, why: str) -> None:
        """The watched is dead, or another life: the next round, and tell all."""


class Monitor:
    """Watches one candidate after the other. It is the ``Watcher`` of its detector."""

    def __init__(self, host: Host, config: ElectionConfig, voter: Voter, timers: TermTimers, election: Election) -> None:
        self._host, self._config, self._voter = host, config, voter
        self._timers, self._election = timers, election
        self.links = Links(host, config)
        self.ffd = FastDetector(host, config, self, self.links)

    def begin(self) -> None:
        """The term of another. Patience with it begins now, not at a freshness point of its predecessor (D12 d)."""
        election, config = self._election, self._config
        self.ffd.watch(election.watched, election.term, [name for name in election.members if name != election.watched])
        self._arm_omega(self._host.now + config.delta_c)
        self._arm_nag()

    def end(self) -> None:
        self.ffd.stop()

    def on_away(self, seconds: float) -> None:
        """F11: the silence was ours, so patience begins anew."""
        self.ffd.on_away(seconds)
        if "omega" in self._timers:
            self._arm_omega(self._host.now + self._config.t_itv + self._config.lat)

    def on_backlog(self) -> None:
        """What is read in this turn came before."""
        self.ffd.on_away(0.0)

    def on_heartbeat(self, source: NodeId, message: WatchedOk, lead: Lead) -> None:
        """WATCHED-OK of our term from its candidate."""
        if self.ffd.boot not in (0, source.boot):
            self._on_other_life(source)
            return
        self.ffd.on_heartbeat(source, message)
        if not self.ffd.heard:
            return  # The detector found it malformed, and has counted it.
        self._timers.cancel("nag")
        if self._config.mode == "paper":
            elected = self.ffd.heard >= self._config.elect_after
            self._answer(source, message, granted=False)
        else:
            elected = lead.leading
            self._ask_promise(source, message, lead)
        if elected:
            self._election.name_leader(source)
        sharers = max(1, len(self._election.members) - 1) if self._config.mode == "paper" else 1
        self._arm_omega(self.ffd.omega_at(sharers))

    def on_query(self, source: NodeId, message: DidYouMissToo) -> None:
        self.ffd.on_query(source, message)

    def on_vote(self, source: NodeId, message: Vote) -> bool:
        return self.ffd.on_vote(source, message)

    # A watcher: what the detector asks.

    def monitors(self) -> Mapping[str, NodeId | Address]:
        """Voters first: only they can be enough."""
        election = self._election
        others = election.others()
        asked = self.ffd.K if self._config.mode == "paper" else (*election.voters, *election.members)
        names = dict.fromkeys(name for name in asked if name in others and name != election.watched)
        return {name: others[name] for name in list(names)[:ASKED_MAX]}

    def enough(self, names: Collection[str]) -> bool:
        election = self._election
        return self._config.mode == "paper" or sum(name in names for name in election.voters) >= election.quorum

    def say(self, to: NodeId | Address, message: Message) -> None:
        self._election.say(to, message)

    def on_missed(self, seq: int) -> None:
        self.say(NodeId(self.ffd.watched, self.ffd.boot), MonitorOk(seq, -1, (), self.ffd.missed_bits(seq)))

    def on_report(self, report: Report) -> None:
        if report.acted:
            self._election.enter_next("reported")
        elif report.slow:
            self._arm_omega(self._host.now + self._config.delta_c * (1 + self._host.random.random()))

    # Answers.

    def _on_other_life(self, source: NodeId) -> None:
        """A term belongs to one life."""
        if source.boot > self.ffd.boot:
            self._election.enter_next("restarted")
        else:
            self.links.counts["old_life"] += 1

    def _ask_promise(self, source: NodeId, message: WatchedOk, lead: Lead) -> None:
        election = self._election
        term = election.term
        if self._host.me.name not in election.voters:
            self._answer(source, message, granted=False)
            return

        def then(answer: Answer) -> None:
            if self.ffd.watched and term == election.term:  # A monitor that has moved on says nothing more of this term.
                self._answer(source, message, granted=answer.granted, wait=answer.wait, number=answer.number)

        self._voter.ask(source, term, lead.length, then)

    def _answer(self, source: NodeId, message: WatchedOk, *, granted: bool, wait: float = 0.0, number: int = 0) -> None:
        answer = Granted("", *self._election.term, granted, wait, number)
        # The bits are those before the newest heartbeat; the one that is answered may have been overtaken.
        self.say(source, MonitorOk(self.ffd.last_seq, message.stamp, (answer,), self.ffd.missed_bits()))

    # Timers.

    def _arm_omega(self, due: float) -> None:
        self._timers.arm("omega", due, self._on_omega)

    def _on_omega(self) -> None:
        if self._host.late > self._config.lat:
            self._arm_omega(self._host.now + self._config.t_itv + self._config.lat)  # F11: we were stopped ourselves.
        elif self._config.mode == "paper":
            self._election.enter_next("silence")
        else:
            self.ffd.open_slow()

    def _arm_nag(self) -> None:
        self._timers.arm("nag", self._host.now + self._config.nag, self._on_nag)

    def _on_nag(self) -> None:
        """The next leader may not know it yet."""
        election = self._election
        self.say(election.others()[election.watched], StartRound("", *election.term))
        self._arm_nag()
