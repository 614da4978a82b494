"""Leadership with one rule taken out each: what the checkers of its scenario must catch.  No configuration reaches them.

Spec: detection 6, 7.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import inf
from random import Random

from msgspec.structs import replace

from holdfast.features.leadership.detector.ballot import Ballot
from holdfast.features.leadership.detector.facts import Report
from holdfast.features.leadership.detector.ffd import FastDetector
from holdfast.features.leadership.detector.messages import DidYouMissToo, Granted, Lead, VoteKind
from holdfast.features.leadership.lab.scenarios.leadership import LeadershipScenario
from holdfast.features.leadership.lab.spoken import SpokenWatches
from holdfast.features.leadership.protocol.campaign import Campaign, State
from holdfast.features.leadership.protocol.leadership import Leadership, LeadershipConfig
from holdfast.features.leadership.protocol.office import LeadOffice
from holdfast.features.leadership.protocol.reigns import Reigns
from holdfast.features.leadership.protocol.seat import LeadSeat
from holdfast.features.leadership.protocol.watch import Watch
from holdfast.host import Host, NodeId
from holdfast.kit.deadline import Deadline
from holdfast.kit.exchange import Exchange
from holdfast.kit.hold import Holder
from holdfast.kit.keeper import Keeper
from holdfast.kit.promise import Answer, HolderId, Promises
from holdfast.kit.seats import Seats
from holdfast.lab.checker import Checker
from holdfast.lab.links import Link, Uniform
from holdfast.lab.listed_members import ListedMembers
from holdfast.lab.scenario import Setup
from tests.kit.ablations import ForgetsUntil, IgnoresBusy

__all__ = ["ForgetsUntil", "IgnoresBusy"]


SLOW_LINK = Link(Uniform(0.02, 0.15))  # a round trip is a good part of a lease


class NoTermCheck(Promises):
    """Grant rule: a number that is recorded, or below, is granted once the promise before has ended."""

    def _refusal(self, key: str, holder: HolderId, number: int, length: float) -> Answer | None:
        refusal = super()._refusal(key, holder, number, length)
        return None if refusal is not None and refusal.wait == 0 else refusal


class OwnLength(LeadSeat):
    """F4: the seat promises for its own setting, not for what was asked."""

    def ask(self, holder: NodeId, lead: Lead, then: Callable[[Granted], None], later: Callable[[Granted], None] | None = None) -> None:
        super().ask(holder, replace(lead, length=lead.length * 0.8), then, later)


class ReleasesAnything(LeadSeat):
    """F15: anybody's word ends a promise."""

    def release(self, holder: NodeId, name: str, number: int) -> None:
        record = self.promises.get(f"lead:{name}") if self.promises is not None else None
        super().release(record.holder.life if record is not None and record.holder is not None else holder, name, number)


class CountsFromReceipt(Campaign):
    """F8: the lease counts from when the answer came."""

    def on_granted(self, slot: int, answer: Granted, asked_at: float) -> None:
        super().on_granted(slot, answer, self.office.now)


class FlagsItsLease(Campaign):
    """F9: a flag that a timer clears instead of a comparison."""

    @property
    def leading(self) -> bool:
        return self.state is State.LEADING


class CountsOneSeat(Campaign):
    """Section 5, count: the newest grant of anybody instead of the quorum-th newest."""

    def granted_at(self) -> float:
        return max((given.asked_at for given in self._grants.values()), default=super().granted_at())


class GivesBackEarly(Campaign):
    """F14, F15: RESIGN before the end."""

    def on_granted(self, slot: int, answer: Granted, asked_at: float) -> None:
        super().on_granted(slot, answer, asked_at)
        if self.state is State.LEADING and self.office.random.random() < 0.1:
            assert isinstance(self.office, LeadOffice)
            self.office._resign(self.name, self.number)


class RepeatsRounds(Campaign):
    """Section 5 (retry), I4: whoever asked in vain, or led, asks under that number again."""

    def _begin_asking(self, number: int, why: str) -> None:
        super()._begin_asking(self.number or number, why)


class LooksNoMore(Campaign):
    """D23, I9: whoever has heard of a round waits to be told of the next one, and whoever should tell it may be dead."""

    def due_at(self) -> float:
        waits = self.state is State.FOLLOWING and self.office.highest(self.name) > 0
        return inf if waits else super().due_at()


class FirstLeaderStays(Reigns):
    """Section 2, D16: the first leader that was heard of is believed in, also when a later round is led."""

    def led(self, name: str, number: int, life: NodeId) -> bool:
        reign = self.get(name)
        return (reign is None or reign.life in (None, life)) and super().led(name, number, life)


class AsksUnlooked(Campaign):
    """D14, G7: whoever has waited for its time asks, whatever it hears of the leader and the seats would tell."""

    def _on_look_due(self, late: float) -> None:
        self._begin_asking(max(self.office.highest(self.name), self.spent, self.office.first_number()) + 1, "vacant")


class AnySeats(Watch):
    """D17b: a report is acted upon without a quorum of the seats."""

    def enough(self, names: Collection[str]) -> bool:
        return True


class OneMissSuffices(FastDetector):
    """D9: a report is acted upon whatever the chance that the watched is alive."""

    def _judge(self, ballot: Ballot) -> Report:
        report = super()._judge(ballot)
        return replace(report, acted=self.watcher.enough(list(report.misses)))


class HoldsNothing(FastDetector):
    """D4: the answer is about the freshness point, not about what came since."""

    def _opinion(self, query: DidYouMissToo) -> VoteKind | None:
        link = self._sight.link
        return VoteKind.MISSED if link is not None and self.host.now >= link.freshness.deadline(query.seq) else super()._opinion(query)


class AblatedWatches(SpokenWatches):
    """Makes watches and detectors of other classes."""

    watch: type[Watch] = Watch
    detector: type[FastDetector] = FastDetector

    def _begin(self, life: NodeId, stamp: int) -> Watch | None:
        sound = super()._begin(life, stamp)
        if sound is not None:
            sound.__class__ = self.watch
            sound.detector.__class__ = self.detector
        return sound


class AblatedOffice(LeadOffice):
    """Runs campaigns of another class."""

    campaign: type[Campaign] = Campaign

    def make_campaign(self, name: str, length: float, holder: Holder) -> Campaign:
        return self.campaign(self, Deadline(self._host), name, length, holder)


class LeadershipAblation(LeadershipScenario):
    """The scenario with one part replaced."""

    def __init__(
        self,
        *,
        promises: type[Promises] = Promises,
        keeper: type[Keeper] = Keeper,
        seat: type[LeadSeat] = LeadSeat,
        campaign: type[Campaign] = Campaign,
        reigns: type[Reigns] = Reigns,
        watch: type[Watch] = Watch,
        detector: type[FastDetector] = FastDetector,
        rho: float | None = None,
        link: Link | None = None,
        calm: bool = False,
        only: str = "",
    ) -> None:
        """``calm``: every run is watched when all is well, and loses no message then (I10). ``only``: the one checker that looks on."""
        self.promises, self.keeper, self.seat, self.campaign, self.rho, self.link = promises, keeper, seat, campaign, rho, link
        self.reigns, self.watch, self.detector, self.calm, self.only = reigns, watch, detector, calm, only

    def setup(self, random: Random) -> Setup:
        setup = super().setup(random)
        if self.calm:
            setup.parameters.update(watched=1.0, loss=0.0)
            return replace(setup, link=replace(setup.link, loss=0.0))
        return setup if self.link is None else replace(setup, link=self.link)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return [checker for checker in super().checkers(setup) if self.only in ("", checker.name)]

    def make_seats(self, host: Host, setup: Setup) -> Seats:
        sound = super().make_seats(host, setup)
        sound.keeper.__class__ = self.keeper
        return sound

    def make(self, host: Host, members: ListedMembers, seats: Seats, exchange: Exchange, setup: Setup) -> Leadership:
        sound = super().make(host, members, seats, exchange, setup)
        sound.seat.__class__ = self.seat
        if sound.seat.promises is not None:
            sound.seat.promises.__class__ = self.promises
        sound.reigns.__class__ = self.reigns
        sound.watches.__class__ = type("Watches", (AblatedWatches,), {"watch": self.watch, "detector": self.detector})
        if self.campaign is not Campaign:
            sound.office.__class__ = type("Office", (AblatedOffice,), {"campaign": self.campaign})
        return sound

    def config(self, setup: Setup) -> LeadershipConfig:
        sound = super().config(setup)
        return sound if self.rho is None else replace(sound, rho=self.rho)
