"""Omega and the heartbeat detector with one rule taken out each: what the checkers must catch.  No configuration reaches them.

D12 (a) and (b) are Figure 3 as printed; the others are mistakes that are easy to make.  Spec: detection 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from holdfast.features.leadership.detector.detectors import Temporal
from holdfast.host import Address, Host, Message, NodeId
from holdfast.papers.detection.lab.scenarios.heartbeat import SLACK_INTERVALS, HeartbeatScenario, Parameters
from holdfast.papers.detection.lab.scenarios.omega import OmegaScenario
from holdfast.papers.detection.protocol.heartbeat import HeartbeatDetector
from holdfast.papers.detection.protocol.messages import Heartbeat, Ok, Start
from holdfast.papers.detection.protocol.omega import Omega


class CandidateStaysOut(Omega):
    """D12 (a): the body of StartRound stands inside "if p is not s mod n"."""

    def _start_round(self, number: int, why: str) -> None:
        if why == "start" or self.candidate_of(number) != self.host.me.name:
            super()._start_round(number, why)
        else:
            self._restart_timer()  # As printed not even this: it would try the same again without end.


class TimerOnlyAtElection(Omega):
    """D12 (b): the timer is restarted in the branch of the first election alone."""

    def _on_ok(self, source: NodeId, message: Ok) -> None:
        quiet_since, leader = self._quiet_since, self.leader
        super()._on_ok(source, message)
        if leader is not None:
            self._quiet_since = quiet_since


class OneOkElects(Omega):
    """D25: the first OK names the leader."""

    def _on_ok(self, source: NodeId, message: Ok) -> None:
        self._oks += 1
        super()._on_ok(source, message)


class DoubledOkElects(Omega):
    """D25: a datagram that came twice counts twice."""

    def _on_ok(self, source: NodeId, message: Ok) -> None:
        self._ok_seq = min(self._ok_seq, message.seq - 1)
        super()._on_ok(source, message)


class AnyLifeOfCandidate(Omega):
    """Section 5: whichever life of the candidate speaks is named."""

    def _on_ok(self, source: NodeId, message: Ok) -> None:
        if source.name == self.candidate_of(self.round):
            self._candidate = source
        super()._on_ok(source, message)


class AnybodyIsNamed(Omega):
    """Whoever starts a round is named its leader."""

    def on_message(self, source: NodeId, message: Message) -> None:
        super().on_message(source, message)
        if isinstance(message, Start) and message.round == self.round:
            self._name_leader(source)


class RoundsBeginAgain(Omega):
    """I4: whoever was away starts over."""

    def on_away(self, seconds: float) -> None:
        self._start_round(0, "start")


class PausedJudges(Omega):
    """F11: the pause is held against the others."""

    def on_away(self, seconds: float) -> None:
        """Nothing."""

    def _restart_timer(self) -> None:
        if self.host.late == 0:
            super()._restart_timer()

    def _on_timer(self) -> None:
        if self.host.late > 0:
            self._start_round(self.round + 1, "silence")
        super()._on_timer()


class PausedSilences(HeartbeatDetector):
    """F11: a late judge judges."""

    def _begin_grace(self) -> None:
        self._judge_from = -inf


class JudgesOnce(HeartbeatDetector):
    """A judge that found nothing does not look on."""

    def _on_deadline(self) -> None:
        subjects, self._subjects = self._subjects, {}
        self._subjects = {name: each for name, each in subjects.items() if each.detector.deadline() <= self.host.now}
        super()._on_deadline()
        self._subjects = subjects


class SilencedForGood(HeartbeatDetector):
    """Whoever was silenced is never heard again."""

    def _on_heartbeat(self, source: NodeId, message: Heartbeat) -> None:
        if source not in self.silenced:
            super()._on_heartbeat(source, message)


class AnyLife(HeartbeatDetector):
    """F1: what a former life said counts as said now."""

    def on_message(self, source: NodeId, message: Message) -> None:
        self._lives.pop(source.name, None)
        super().on_message(source, message)


class BacklogIsTimed(HeartbeatDetector):
    """F10: heartbeats that waited in the socket are taken for late ones."""

    def on_away(self, seconds: float) -> None:
        super().on_away(seconds)
        self._backlog = False


class GridIgnored(HeartbeatDetector):
    """Section 5: a heartbeat that left off the grid is taken for a late one."""

    def _on_heartbeat(self, source: NodeId, message: Heartbeat) -> None:
        super()._on_heartbeat(source, Heartbeat(message.seq, 0.0))


class OmegaAblation(OmegaScenario):
    """The scenario with another class in Omega's place."""

    def __init__(self, machine: type[Omega]) -> None:
        self.machine = machine

    def make(self, host: Host, members: dict[str, Address], alpha: float) -> Omega:
        return self.machine(host, members, alpha=alpha)


class HeartbeatAblation(HeartbeatScenario):
    """The scenario with another class in the detector's place, or with another m: D11."""

    def __init__(self, machine: type[HeartbeatDetector] = HeartbeatDetector, *, more: int = 0) -> None:
        self.machine, self.more = machine, more

    def make(self, host: Host, peers: Mapping[str, Address], parameters: Parameters) -> HeartbeatDetector:
        interval, m = float(parameters["interval"]), int(parameters["m"])
        slack = SLACK_INTERVALS * interval

        def detector() -> Temporal:
            temporal = Temporal(m, interval=interval, slack=slack)
            temporal.m += self.more
            return temporal

        return self.machine(host, peers, interval=interval, late_timeout=slack, make=detector)
