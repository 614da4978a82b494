"""What a seat promises, and how a candidate counts it.

Spec: fast-detection 5 (grant rule, count), D16, D17b; foundation 4 (Promise, Rows), F8, F13, F15, F16, F17.
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from holdfast.bounds import AHEAD_MAX
from holdfast.features.leadership.detector.messages import Granted, Lead
from holdfast.features.leadership.protocol.campaign import Campaign, State
from holdfast.features.leadership.protocol.leadership import LeadershipConfig
from holdfast.features.leadership.protocol.seat import ALL, LeadSeat
from holdfast.host import Address, NodeId
from holdfast.kit.deadline import Deadline, holder_length
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot
from tests.features.leadership.stand import Client
from tests.support.fake_host import FakeHost, FakeStorage

A, B, C = NodeId("a", 1), NodeId("b", 1), NodeId("c", 1)
LENGTH = 1.5
FIRST = 1_700_000_000_000
SLOTS = tuple(Slot(number, name, Address(name, 1)) for number, name in enumerate("abc"))


def seats_of(host: FakeHost, own: int | None = 0, *, sole: bool = True) -> Seats:
    """A seat that is open, as if the journal had been there: a sole one waits for nobody."""
    seats = Seats(host, SLOTS[:1] if sole else SLOTS, own, machine="m", rho=1e-3, length_max=LENGTH)
    seats.keeper.open(fresh=False)
    return seats


def lead(number: int = FIRST, name: str = "x", *, length: float = LENGTH) -> Lead:
    return Lead(name, 0, number, leading=False, length=length)


class Answers:
    """What a seat said, in order."""

    def __init__(self) -> None:
        self.all: list[tuple[Granted, ...]] = []

    def __call__(self, answers: tuple[Granted, ...]) -> None:
        self.all.append(answers)


def test_a_grant_is_durable_before_it_is_said() -> None:
    """Foundation 4 (Promise): at once only the sign of life; the grants when the disk has them, all of a page in one entry."""
    storage = FakeStorage()
    seat, answers = LeadSeat(host := FakeHost("a", storage=storage), seats_of(host)), Answers()
    seat.answer(B, [lead(name="x"), lead(name="y")], 3, answers)
    assert answers.all == [()]
    storage.complete()
    assert answers.all[1:] == [(Granted(ALL, 0, 3, grant=True),)]
    seat.answer(B, [lead(name="x"), lead(name="y")], 0, answers)  # A renewal touches no disk.
    assert answers.all[2:] == [(Granted(ALL, 0, 0, grant=True),)]
    assert not storage.pending


def test_what_is_refused_is_said_name_by_name() -> None:
    """Grant rule: a running promise refuses with the time that is left; its number and below without."""
    host = FakeHost("a")
    seat, answers = LeadSeat(host, seats_of(host)), Answers()
    seat.answer(B, [lead(name="x")], 0, Answers())
    host.pass_time(0.5)
    seat.answer(C, [lead(FIRST + 1, "x"), lead(FIRST, "y")], 0, answers)
    refused, granted = [answer for said in answers.all for answer in said]
    assert (refused.name, refused.grant, refused.wait, refused.number) == ("x", False, 1.0, FIRST)
    assert (granted.name, granted.grant) == ("y", True)
    host.pass_time(2.0)
    seat.answer(C, [lead(FIRST, "x")], 0, answers)
    assert answers.all[-1] == (Granted("x", 0, FIRST, grant=False, number=FIRST),)


def test_who_waits_is_granted_when_the_promise_is_given_back() -> None:
    """RESIGN: START often overtakes it; whoever was refused meanwhile need not ask again. F15: only the holder's own word counts."""
    host = FakeHost("a")
    seat, answers = LeadSeat(host, seats_of(host)), Answers()
    seat.answer(B, [lead()], 0, Answers())
    seat.answer(C, [lead(FIRST + 1)], 0, answers)
    seat.release(A, "x", FIRST)
    assert not any(answer.grant for said in answers.all for answer in said)
    seat.release(B, "x", FIRST)
    assert answers.all[-1] == (Granted("x", 0, FIRST + 1, grant=True, number=FIRST + 1),)


def test_who_gave_up_is_not_granted_from_the_queue() -> None:
    """A candidate that withdrew while it waited gets nothing when the promise ends."""
    host = FakeHost("a")
    seat, answers = LeadSeat(host, seats_of(host)), Answers()
    seat.answer(B, [lead()], 0, Answers())
    seat.answer(C, [lead(FIRST + 1)], 0, answers)
    seat.release(C, "x", FIRST + 1)
    seat.release(B, "x", FIRST)
    assert not any(answer.grant for said in answers.all for answer in said)


def test_a_heartbeat_after_its_resign_is_refused() -> None:
    """RESIGN overtakes heartbeats too: one that comes after it must not bind the seat to somebody who has gone."""
    host = FakeHost("a")
    seat, answers = LeadSeat(host, seats_of(host)), Answers()
    seat.answer(B, [lead()], 0, Answers())
    seat.release(B, "x", FIRST)
    seat.answer(B, [lead()], 0, answers)
    assert answers.all == [(Granted("x", 0, FIRST, grant=False, number=FIRST),)]
    seat.answer(B, [lead(FIRST + 1)], 0, answers)
    assert answers.all[-1][0].grant


def test_numbers_far_ahead_are_refused() -> None:
    """F16: a clock that is wrong by decades is believed, a number that would use up all others is not."""
    host = FakeHost("a")
    seat, answers = LeadSeat(host, seats_of(host)), Answers()
    seat.answer(B, [lead(FIRST + AHEAD_MAX + 1)], 0, answers)
    assert not answers.all[-1][0].grant
    assert seat.counts["far_ahead"] == 1
    seat.answer(B, [lead(FIRST + AHEAD_MAX - 1)], 0, answers)
    assert answers.all[-1][0].grant


def test_looking_changes_nothing() -> None:
    """D14: whoever looks learns number, holder and time left; nothing is recorded."""
    host = FakeHost("a")
    seat = LeadSeat(host, seats_of(host))
    assert seat.holdings(["x"]) is not None
    assert host.disk.fresh or not host.disk.part("promises").load()
    seat.answer(B, [lead()], 0, Answers())
    host.pass_time(0.5)
    found = seat.holdings(["x", "y"])
    assert found is not None
    assert [(each.name, each.round, each.holder, each.boot, each.wait) for each in found] == [
        ("x", FIRST, "b", 1, 1.0),
        ("y", 0, "", 0, 0.0),
    ]


def test_who_is_no_seat_says_nothing() -> None:
    """D17b: other members monitor and do not vote."""
    host = FakeHost("d")
    seat, answers = LeadSeat(host, seats_of(host, None, sole=False)), Answers()
    seat.answer(B, [lead()], 0, answers)
    seat.release(B, "x", FIRST)
    assert answers.all == [()]
    assert seat.holdings(["x"]) is None


class FakeOffice:
    """Implements ``Office`` as far as counting needs it."""

    me = A
    slots, quorum = 3, 2
    config = LeadershipConfig(t_itv=1.0)

    def __init__(self, host: FakeHost) -> None:
        self.host, self.random = host, host.random
        self.done: list[str] = []

    @property
    def now(self) -> float:
        return self.host.now

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self.done.append(name)


def asking(host: FakeHost) -> tuple[Campaign, FakeOffice, Client]:
    office, client = FakeOffice(host), Client()
    campaign = Campaign(cast("Any", office), Deadline(host), "x", LENGTH, client)
    assert campaign.on_start(FIRST)
    return campaign, office, client


def granted(number: int = FIRST, *, era: int = 0) -> Granted:
    return Granted("x", 0, number, grant=True, number=number, era=era)


def leads(campaign: Campaign) -> bool:
    return campaign.leading


def test_the_quorum_th_newest_asking_counts() -> None:
    """Count, F8: holder_length from before the older of the two newest askings left; what is older shortens nothing."""
    host = FakeHost("a")
    campaign, _, client = asking(host)
    asked_at = host.now
    host.pass_time(0.2)
    campaign.on_granted(0, granted(), asked_at)
    assert not leads(campaign)
    campaign.on_granted(1, granted(), asked_at + 0.1)
    assert leads(campaign)
    assert client.deadline == asked_at + holder_length(LENGTH, campaign.office.config.rho)
    host.pass_time(0.2)
    campaign.on_granted(2, granted(), asked_at + 0.3)
    assert client.deadline == asked_at + 0.1 + holder_length(LENGTH, campaign.office.config.rho)
    campaign.on_granted(1, granted(), asked_at - 5)
    assert client.deadline == asked_at + 0.1 + holder_length(LENGTH, campaign.office.config.rho)
    host.pass_time(2.0)
    assert not leads(campaign)


def test_eras_are_never_added_up() -> None:
    """F13: two grants of different eras are no quorum."""
    host = FakeHost("a")
    campaign, _, _ = asking(host)
    campaign.on_granted(0, granted(era=0), host.now)
    campaign.on_granted(1, granted(era=1), host.now)
    assert not leads(campaign)
    campaign.on_granted(2, granted(era=1), host.now)
    assert leads(campaign)


def test_a_grant_that_comes_too_late_makes_no_leader() -> None:
    """F9: a quorum that arrives after its own end, or under another number, is none."""
    host = FakeHost("a")
    campaign, _, client = asking(host)
    asked_at = host.now
    host.clock += 2 * LENGTH
    campaign.on_granted(0, granted(), asked_at)
    campaign.on_granted(1, granted(), asked_at)
    campaign.on_granted(0, granted(FIRST - 1), host.now)
    campaign.on_granted(1, granted(FIRST - 1), host.now)
    assert not client.said


def test_a_number_that_is_used_up_is_gone_beyond_at_once() -> None:
    """Grant rule: refused without a wait means that the number is spent there; refused with one, that somebody holds it."""
    host = FakeHost("a")
    campaign, office, _ = asking(host)
    campaign.on_granted(0, Granted("x", 0, FIRST, grant=False, number=FIRST + 7), host.now)
    assert (campaign.state, campaign.number) == (State.ASKING, FIRST + 8)
    for slot in (0, 1):
        campaign.on_granted(slot, Granted("x", 0, FIRST + 8, grant=False, wait=1.0, number=FIRST + 8), host.now)
    assert campaign.state is State.FOLLOWING
    assert office.done[-1] == "gave_up"
    assert campaign.spent == FIRST + 8


def test_it_asks_again_when_the_first_promise_ends() -> None:
    """Retry: without this a new leader waits for the next tick. Late (F11): it looks instead."""
    host = FakeHost("a")
    campaign, office, _ = asking(host)
    campaign.on_granted(0, Granted("x", 0, FIRST, grant=False, wait=0.7, number=FIRST - 1), host.now)
    campaign.on_granted(1, Granted("x", 0, FIRST, grant=False, wait=0.4, number=FIRST - 1), host.now)
    assert campaign.due_at() == pytest.approx(host.now + 0.401)
    host.clock = campaign.due_at()
    campaign.on_due(0.0)
    assert office.done[-1] == "again"
    campaign.on_granted(0, Granted("x", 0, FIRST, grant=False, wait=0.3, number=FIRST - 1), host.now)
    host.clock = campaign.due_at()
    campaign.on_due(0.5)
    assert office.done[-1] == "gave_up"
