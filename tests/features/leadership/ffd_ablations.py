"""Fast detection with one rule taken out each: what the tests must notice.  No configuration reaches them.

Those marked "as printed" are Figures 1 and 2 of paper 002.  Spec: detection 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from holdfast.features.leadership.detector.ballot import Ballot, Say
from holdfast.features.leadership.detector.common import CommonCause
from holdfast.features.leadership.detector.config import FfdConfig, Term
from holdfast.features.leadership.detector.facts import Report
from holdfast.features.leadership.detector.ffd import FastDetector
from holdfast.features.leadership.detector.links import Link
from holdfast.features.leadership.detector.loss import Loss
from holdfast.features.leadership.detector.messages import DidYouMissToo, Vote, VoteKind, WatchedOk
from holdfast.features.leadership.detector.plan import Evidence
from holdfast.features.leadership.detector.sight import Sight
from holdfast.host import Address, Host, NodeId


class SelfVotes(FastDetector):
    """D1, as printed: the query goes to its sender too, and miss-count starts at 1."""

    def _judge(self, ballot: Ballot) -> Report:
        ballot.misses["itself"] = self.links.p(self.watched)
        return super()._judge(ballot)


class WatchedHasRank(FastDetector):
    """D2, as printed: the watched answers itself and stays in V, so K contains it."""

    def watch(self, watched: str, term: Term, rank_among: Sequence[str], *, name: str = "", boot: int = 0) -> None:
        super().watch(watched, term, rank_among, name=name, boot=boot)
        self._sight.set_among = partial(_set_all, self._sight)  # type: ignore[method-assign]


def _set_all(sight: Sight, names: Sequence[str]) -> None:
    sight.K = tuple(sorted(names))


class AnswersFromFlag(FastDetector):
    """D4, D6, as printed: the answer is what ``missed`` said at the last freshness point."""

    flag = False

    def _on_fresh(self, seq: int) -> None:
        self.flag = True
        super()._on_fresh(seq)

    def on_heartbeat(self, source: NodeId, ok: WatchedOk) -> bool:
        tau = self.fresh_at
        news = super().on_heartbeat(source, ok)
        if news and self.host.now <= tau:
            self.flag = False  # Line 13 runs at the next freshness point; for a heartbeat in time that makes no difference.
        return news

    def _opinion(self, query: DidYouMissToo) -> VoteKind | None:
        return VoteKind.MISSED if self.flag else VoteKind.HAVE


class NeverDefers(FastDetector):
    """D4: whoever is asked before its own freshness point keeps silent."""

    def _may_defer(self, asker: str, seq: int) -> bool:
        return False


class MonitorsUnheard(FastDetector):
    """D5, as printed: the else branch sets ``monitoring`` although nothing was received in this term."""

    def watch(self, watched: str, term: Term, rank_among: Sequence[str], *, name: str = "", boot: int = 0) -> None:
        former = self._sight
        super().watch(watched, term, rank_among, name=name, boot=boot)
        if former.watched == watched and former.link is not None:
            self._sight.link, self._sight.heard, self._sight.last_seq = former.link, 1, former.last_seq
            self._arm_fresh(former.last_seq + 1)


class KeepsSuspicion(FastDetector):
    """D6, as printed: a heartbeat that comes during the ballot changes nothing before the next freshness point."""

    def _dismiss(self, by: str) -> None:
        if by != self.watched:
            super()._dismiss(by)


class CountingBallot(Ballot):
    """D7, as printed: votes are counted, not kept by voter, and whoever sends one has one."""

    def record(self, name: str, vote: Vote) -> bool:
        if vote.kind is not VoteKind.MISSED:
            return super().record(name, vote)
        self.misses[f"{name}{len(self.misses)}"] = vote.p
        return True


class PatientBallot(Ballot):
    """D7, as printed: it always takes 2 t_rtt."""

    def close_if_complete(self) -> None:
        """Not before the timer."""


class OnceAskingBallot(Ballot):
    """Section 5: the silent are not asked again."""

    def __init__(
        self,
        host: Host,
        config: FfdConfig,
        query: DidYouMissToo,
        ask: Mapping[str, NodeId | Address],
        say: Say,
        on_close: Callable[[], None],
    ) -> None:
        super().__init__(host, config, query, ask, say, on_close)
        self._timers[0].cancel()


class WithBallot(FastDetector):
    """A detector that opens ballots of another kind."""

    ballots: type[Ballot] = Ballot

    def _make_ballot(self, query: DidYouMissToo, ask: Mapping[str, NodeId | Address]) -> Ballot:
        return self.ballots(self.host, self.config, query, ask, self.watcher.say, self._on_close)


class CountsVotes(WithBallot):
    """D7."""

    ballots = CountingBallot


class WaitsForWindow(WithBallot):
    """D7."""

    ballots = PatientBallot


class AsksOnce(WithBallot):
    """Section 5."""

    ballots = OnceAskingBallot


class EqualLosses(FastDetector):
    """D8: every vote counts as the asker's own loss, as in P_m = p_L^k."""

    def _judge(self, ballot: Ballot) -> Report:
        for name in ballot.misses:
            ballot.misses[name] = self.links.p(self.watched)
        return super()._judge(ballot)


class TrainsOnSilence(FastDetector):
    """D8: a missed freshness point counts as loss at once, so a dead watched makes its links bad."""

    def _on_fresh(self, seq: int) -> None:
        assert self._sight.link is not None
        self._sight.link.loss.add(True)
        super()._on_fresh(seq)


class LateIsInTime(FastDetector):
    """Section 6.1: whatever arrives counts as received, also as a repeat and after its freshness point."""

    def watch(self, watched: str, term: Term, rank_among: Sequence[str], *, name: str = "", boot: int = 0) -> None:
        super().watch(watched, term, rank_among, name=name, boot=boot)
        self._sight._is_late = _never_late  # type: ignore[method-assign]


def _never_late(link: Link, ok: WatchedOk, now: float) -> bool:
    return False


class MeanLoss(Loss):
    """D8: the mean is used, which is below the true loss every other time."""

    @property
    def p(self) -> float:
        return self.mean


class ForgetfulEvidence(Evidence):
    """D9: every heartbeat is judged alone, as in the paper."""

    def fold(self, seq: int, losses: Iterable[float], common: float) -> None:
        self.reset()
        super().fold(seq, losses, common)


class OneHeartbeatOnly(FastDetector):
    """D9."""

    def watch(self, watched: str, term: Term, rank_among: Sequence[str], *, name: str = "", boot: int = 0) -> None:
        super().watch(watched, term, rank_among, name=name, boot=boot)
        self._sight.evidence = ForgetfulEvidence()


class StubbornEvidence(Evidence):
    """D9: a sign of life takes nothing back."""

    def reset(self) -> None:
        """Nothing."""


class NoReset(FastDetector):
    """D9."""

    def watch(self, watched: str, term: Term, rank_among: Sequence[str], *, name: str = "", boot: int = 0) -> None:
        super().watch(watched, term, rank_among, name=name, boot=boot)
        self._sight.evidence = StubbornEvidence()


class NoCommonCause(FastDetector):
    """D10, the paper: heartbeats to different monitors are lost independently."""

    def _judge(self, ballot: Ballot) -> Report:
        self.common = 0.0
        return super()._judge(ballot)


class NothingExpected(CommonCause):
    """D10: every heartbeat that most of them missed is held for common cause."""

    @property
    def c(self) -> float:
        self._expected = 0.0
        return super().c


class BlindBackups(FastDetector):
    """D15: a backup asks although somebody else did."""

    def on_query(self, source: NodeId, query: DidYouMissToo) -> None:
        asked = self._sight.asked_seq
        super().on_query(source, query)
        self._sight.asked_seq = asked


class NoBackups(FastDetector):
    """D15, the paper: only the smallest monitor asks."""

    def _on_backup(self, seq: int) -> None:
        """Never."""


class PausedJudges(FastDetector):
    """D19, F11: a process that was stopped takes its timers for punctual and its ballots for valid."""

    def on_away(self, seconds: float) -> None:
        """Nothing."""

    def _on_fresh(self, seq: int) -> None:
        _punctually(self.host, lambda: super(PausedJudges, self)._on_fresh(seq))

    def _on_close(self) -> None:
        _punctually(self.host, super()._on_close)


def _punctually(host: Host, callback: Callable[[], None]) -> None:
    late, host.late = host.late, 0.0  # type: ignore[misc]
    callback()
    host.late = late  # type: ignore[misc]


class PausedVotes(FastDetector):
    """F11: asked before it has read what waited, it says that it missed it."""

    def on_away(self, seconds: float) -> None:
        super().on_away(seconds)
        self._backlog = False


class YieldsForEver(FastDetector):
    """D21: it yields whenever somebody asked lately."""

    def _on_slow(self) -> None:
        self._sight.yielded = False
        super()._on_slow()


class VetoedSlow(FastDetector):
    """D21: one witness dismisses a slow ballot too."""

    def _judge(self, ballot: Ballot) -> Report:
        if ballot.have:
            ballot.misses.clear()
        return super()._judge(ballot)
