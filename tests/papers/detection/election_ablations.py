"""Elections with one rule taken out each, and feeds that break detection D17: what the checkers must catch.

No configuration reaches them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import floor
from random import Random

import msgspec
from msgspec.structs import replace

from holdfast.features.leadership.detector.config import ElectionConfig, Mode, Term
from holdfast.features.leadership.detector.ffd import FastDetector
from holdfast.host import Host, NodeId
from holdfast.kit.promise import Answer, HolderId, Promises
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Drift, Plan
from holdfast.lab.scenario import Setup
from holdfast.papers.detection.lab.election_spoken import SpokenElection
from holdfast.papers.detection.lab.scenarios.election import ElectionScenario
from holdfast.papers.detection.protocol.election import LeaderElection
from holdfast.papers.detection.protocol.election_monitor import Monitor
from holdfast.papers.detection.protocol.election_voter import Voter
from holdfast.papers.detection.protocol.termstore import TermStore
from holdfast.papers.detection.protocol.views_feed import ViewsFeed
from tests.features.leadership.ffd_ablations import WatchedHasRank


class ShortVoter(Voter):
    """F4: promises for the length that is set here, and here it is half of what is asked."""

    def ask(self, life: NodeId, term: Term, length: float, then: Callable[[Answer], None]) -> None:
        super().ask(life, term, length / 2, then)


class UncheckedPromises(Promises):
    """Grant rule: without the term check. Whoever asks when no promise to another runs gets it."""

    def _refusal(self, key: str, holder: HolderId, number: int, length: float) -> Answer | None:
        refusal = super()._refusal(key, holder, number, length)
        return refusal if refusal is not None and refusal.wait > 0 else None


class FaithlessPromises(Promises):
    """Grant rule: without "unless a promise to another life runs"."""

    def _refusal(self, key: str, holder: HolderId, number: int, length: float) -> Answer | None:
        refusal = super()._refusal(key, holder, number, length)
        return None if refusal is not None and self._keeper.wait == 0 and number >= refusal.number else refusal


class HastyVoter(Voter):
    """D18: grants at once after a restart."""

    def start(self) -> None:
        self._keeper._opens_at = self._keeper._host.now


def with_voter(kind: type[Voter]) -> type[SpokenElection]:
    """An election whose votes are given by another class."""

    class Election(SpokenElection):
        def __init__(self, host: Host, config: ElectionConfig, store: TermStore, *, voters: Sequence[str] = ()) -> None:
            super().__init__(host, config, store, voters=voters)
            self._voter = self._candidate._voter = self._monitor._voter = kind(host, store, config.rho)

    Election.__name__ = kind.__name__
    return Election


def with_promises(kind: type[Promises]) -> type[SpokenElection]:
    """An election whose promises follow another rule."""

    class Election(SpokenElection):
        def __init__(self, host: Host, config: ElectionConfig, store: TermStore, *, voters: Sequence[str] = ()) -> None:
            super().__init__(host, config, store, voters=voters)
            self._voter._promises = kind(host, store.promises, self._voter._keeper)

    Election.__name__ = kind.__name__
    return Election


def with_detector(kind: type[FastDetector]) -> type[SpokenElection]:
    """An election whose monitors judge with another detector."""

    class Election(SpokenElection):
        def __init__(self, host: Host, config: ElectionConfig, store: TermStore, *, voters: Sequence[str] = ()) -> None:
            super().__init__(host, config, store, voters=voters)
            self._monitor.ffd = kind(host, config, self._monitor, self._monitor.links)

    Election.__name__ = kind.__name__
    return Election


def with_monitor(kind: type[Monitor]) -> type[SpokenElection]:
    """An election with another class on the monitor's side."""

    class Election(SpokenElection):
        def __init__(self, host: Host, config: ElectionConfig, store: TermStore, *, voters: Sequence[str] = ()) -> None:
            super().__init__(host, config, store, voters=voters)
            self._monitor = kind(host, config, self._voter, self._timers, self)

    Election.__name__ = kind.__name__
    return Election


class NoPrimary(with_detector(WatchedHasRank)):  # type: ignore[misc]
    """D2, as printed: the watched never leaves V, and V is what a heartbeat says."""

    def __init__(self, host: Host, config: ElectionConfig, store: TermStore, *, voters: Sequence[str] = ()) -> None:
        super().__init__(host, config, store, voters=voters)
        self._candidate._watched._fitting = lambda names: (*names, host.me.name)


class CandidateStaysOut(SpokenElection):
    """D12 (a), as printed: the body of StartRound stands inside "if p is not s mod n"."""

    def _enter(self, term: Term, why: str, tell: Sequence[str] = ()) -> None:
        if why == "view" or self.members[term.round % len(self.members)] != self.host.me.name:
            super()._enter(term, why, tell)


class NoElse(Monitor):
    """D12 (c), as printed: line 26 has no else, so only a candidate that was heard is ever given up."""

    def begin(self) -> None:
        super().begin()
        self._timers.cancel("omega")


class NaiveElse(Monitor):
    """D12 (d): with an else at the next freshness point of the grid, whenever the round was entered."""

    def begin(self) -> None:
        super().begin()
        t_itv = self._config.t_itv
        self._arm_omega((floor(self._host.now / t_itv) + 1) * t_itv + self._config.lat)


class AnyoneDemotes(Monitor):
    """D14: a report is acted upon without a majority."""

    def enough(self, names: Collection[str]) -> bool:
        return True


class StartsOver(SpokenElection):
    """D18: a restarted process begins its view anew, not at the stored round."""

    def _first_term(self, view: int) -> Term:
        self._store.stored = min(self._store.stored, Term(view, -1))
        return super()._first_term(view)


class ForgetsAll(StartsOver, with_promises(UncheckedPromises)):  # type: ignore[misc]
    """D18 and the term check together: nothing is left that remembers a term."""


class RoundsBeginAgain(SpokenElection):
    """I4: whoever was away starts over."""

    def on_away(self, seconds: float) -> None:
        super().on_away(seconds)
        if self.members:
            self.term = self._store.stored = Term(self.term.view, -1)
            self._enter(Term(self.term.view, 0), "told")


class LeadsAgain(SpokenElection):
    """D18: a new life leads the term that its former life may have led."""

    def start(self) -> None:
        super().start()
        self._no_lead = Term(-1, -1)


class SpeaksFirst(SpokenElection):
    """D18: messages of a term leave before it is on disk."""

    @property
    def _busy(self) -> bool:
        return False

    def _enter(self, term: Term, why: str, tell: Sequence[str] = ()) -> None:
        stored = self._store.stored
        self._store.stored = max(term, stored)
        super()._enter(term, why, tell)
        if term > stored:
            self._store._storage.save("term", msgspec.msgpack.encode(tuple(term)), lambda: None)


class FlaggedLease(SpokenElection):
    """F9: whether this process leads is a flag that a timer takes down."""

    def is_leader(self) -> bool:
        return self.lease.term is not None


class CountsFromReceipt(SpokenElection):
    """G5: the lease counts from when the grants came, not from before the heartbeat left."""

    def __init__(self, host: Host, config: ElectionConfig, store: TermStore, *, name: str = "leader", voters: Sequence[str] = ()) -> None:
        super().__init__(host, config, store, name=name, voters=voters)
        watched = self._candidate._watched
        sent_at = watched.sent_at
        watched.sent_at = lambda stamp: None if sent_at(stamp) is None else host.now  # type: ignore[method-assign]


class MinorityLeads(SpokenElection):
    """G5: one grant less is enough."""

    @property
    def quorum(self) -> int:
        return max(1, super().quorum - 1)


class NoMajority(ViewsFeed):
    """D17: a view is handed on after the wait alone."""

    def _majority(self) -> bool:
        return True


class NoWait(ViewsFeed):
    """D17: a view is handed on as soon as a majority has installed the one before."""

    def _advance(self) -> None:
        super()._advance()
        if self._wait is not None:
            self._wait.cancel()
            self._on_waited()


class NoFeed(ViewsFeed):
    """D17: views are handed on as they come."""

    def _advance(self) -> None:
        if self.held:
            self._release(max(self._views))


class ElectionAblation(ElectionScenario):
    """The scenario of a mode with another class in the election's place, or in the feed's."""

    def __init__(
        self, mode: Mode, machine: type[LeaderElection] = SpokenElection, feed: type[ViewsFeed] = ViewsFeed, without: str = ""
    ) -> None:
        self.mode, self.machine, self.feed, self.without = mode, machine, feed, without
        self.name = f"detection/{mode}"

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        """All but one: to see what the others find."""
        return [checker for checker in super().checkers(setup) if checker.name != self.without]

    def make(self, host: Host, config: ElectionConfig, store: TermStore, voters: Sequence[str]) -> LeaderElection:
        return self.machine(host, config, store, voters=voters)

    def make_feed(self, host: Host, election: LeaderElection) -> ViewsFeed:
        feed = super().make_feed(host, election)
        feed.__class__ = self.feed
        return feed


class WrongDrift(ElectionAblation):
    """E19: clocks run 5 % apart from true time, and the group counts with 1e-4."""

    def setup(self, random: Random) -> Setup:
        setup = super().setup(random)
        drifts = [Drift(0.0, name, random.choice((0.95, 1.05))) for name in setup.names]
        faults = tuple(fault for fault in setup.plan.faults if not isinstance(fault, Drift))
        return replace(setup, plan=Plan((*drifts, *faults)), parameters={**setup.parameters, "rho": 1e-4})
