"""Leadership with one rule taken out each: what the checkers of its scenario must catch.  No configuration reaches them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from holdfast.host import Host, NodeId
from holdfast.kit.deadline import Deadline
from holdfast.kit.exchange import Exchange
from holdfast.kit.keeper import Keeper
from holdfast.kit.promise import Answer, HolderId, Promises
from holdfast.kit.seats import Seats
from holdfast.lab.lead_members import ListedMembers
from holdfast.lab.links import Link, Uniform
from holdfast.lab.scenario import Setup
from holdfast.lab.scenarios.leadership import LeadershipScenario
from holdfast.protocols.detection.lead_campaign import Campaign, Candidacy, State
from holdfast.protocols.detection.lead_office import LeadOffice
from holdfast.protocols.detection.lead_seat import LeadSeat
from holdfast.protocols.detection.leadership import Leadership, LeadershipConfig
from holdfast.protocols.detection.messages import Granted, Lead
from tests.support.kit_ablations import ForgetsUntil, IgnoresBusy

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


class AblatedOffice(LeadOffice):
    """Runs campaigns of another class."""

    campaign: type[Campaign] = Campaign

    def make_campaign(self, name: str, length: float, candidacy: Candidacy) -> Campaign:
        return self.campaign(self, Deadline(self._host), name, length, candidacy)


class LeadershipAblation(LeadershipScenario):
    """The scenario with one part replaced."""

    def __init__(
        self,
        *,
        promises: type[Promises] = Promises,
        keeper: type[Keeper] = Keeper,
        seat: type[LeadSeat] = LeadSeat,
        campaign: type[Campaign] = Campaign,
        rho: float | None = None,
        link: Link | None = None,
    ) -> None:
        self.promises, self.keeper, self.seat, self.campaign, self.rho, self.link = promises, keeper, seat, campaign, rho, link

    def setup(self, random: Random) -> Setup:
        setup = super().setup(random)
        return setup if self.link is None else replace(setup, link=self.link)

    def make_seats(self, host: Host, setup: Setup) -> Seats:
        sound = super().make_seats(host, setup)
        sound.keeper.__class__ = self.keeper
        return sound

    def make(self, host: Host, members: ListedMembers, seats: Seats, exchange: Exchange, setup: Setup) -> Leadership:
        sound = super().make(host, members, seats, exchange, setup)
        sound.seat.__class__ = self.seat
        if sound.seat.promises is not None:
            sound.seat.promises.__class__ = self.promises
        if self.campaign is not Campaign:
            sound.office.__class__ = type("Office", (AblatedOffice,), {"campaign": self.campaign})
        return sound

    def config(self, setup: Setup) -> LeadershipConfig:
        sound = super().config(setup)
        return sound if self.rho is None else replace(sound, rho=self.rho)
