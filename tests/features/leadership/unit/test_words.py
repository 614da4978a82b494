"""What is believed of leaders, the board, and what users and peers may say.

Spec: fast-detection 5 (grant rule, count), D16, D17b; foundation 4 (Promise, Rows), F8, F13, F15, F16, F17.
"""

from __future__ import annotations

from itertools import permutations
from math import inf
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from holdfast.bounds import NUMBER_MAX
from holdfast.errors import ConfigError, HoldLost, Unavailable
from holdfast.events import LeaderChanged
from holdfast.features.leadership.detector.messages import Granted, Lead, MonitorOk, Resign, WatchedOk
from holdfast.features.leadership.protocol.board import ABSENT_MAX, CANDIDATE, LEADER, SWEEP_PERIOD, Board, Row, _key, _newer
from holdfast.features.leadership.protocol.config import CANDIDACIES_MAX, LEADS_MAX, TOPIC
from holdfast.features.leadership.protocol.leadership import Leadership, LeadershipConfig
from holdfast.features.leadership.protocol.messages import StartRounds, Succession, WhoHolds
from holdfast.features.leadership.protocol.reigns import UNHEARD_MAX, Reigns
from holdfast.host import Address, Message, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.rows import KEYS_MAX
from holdfast.kit.rows import Row as TableRow
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot
from tests.features.leadership.stand import Client
from tests.support.fake_host import FakeHost, FakeStorage
from tests.support.fake_members import FakeMembers

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


def test_of_one_round_the_first_stays_and_the_leader_wins() -> None:
    """D16, D17b: START and askers by round; at equal rounds the first heard stays; a life that leads has the seats' word."""
    changed: list[str] = []
    reigns = Reigns(FakeHost(), changed.append)
    assert reigns.expect("x", 5, A)
    assert not reigns.expect("x", 5, B)
    assert reigns.hope("x") is not None
    reigns.asks("x", 5, B)
    hope = reigns.hope("x")
    assert hope is not None
    assert hope.life == A
    assert reigns.led("x", 5, B)
    assert reigns.hope("x") is None
    assert not reigns.led("x", 4, A)
    assert not reigns.led("x", 5, A)
    assert reigns.counts["two_leaders"] == 1
    assert reigns.names_of(B) == ("x",)
    reigns.over("x", 5)
    assert not reigns.led("x", 5, B)  # What it said before it ended comes late.
    assert reigns.names_of(B) == ()


def test_who_asked_in_vain_does_not_hide_the_leader() -> None:
    """G7: a candidate of a higher round gives up; the leader of the lower one is still the leader."""
    reigns = Reigns(FakeHost(), lambda name: None)
    reigns.led("x", 5, A)
    reigns.asks("x", 6, B)
    reigns.resigned("x", 6, B)
    reign = reigns.get("x")
    assert reign is not None
    assert (reign.life, reign.over, reign.hope) == (A, False, None)
    assert reigns.highest("x") == 6
    assert reigns.led("x", 5, A)


def test_who_was_named_and_not_heard_is_remembered() -> None:
    """H144: until it asks, or somebody leads; the present one too, and not for more lives than there is room for."""
    reigns = Reigns(FakeHost(), lambda name: None)
    assert list(reigns.unheard("x")) == []
    reigns.expect("x", 5, A)
    reigns.expect("x", 6, B)
    assert list(reigns.unheard("x")) == [A, B]
    reigns.asks("x", 6, B)
    assert list(reigns.unheard("x")) == [A]
    reigns.asks("x", 7, A)
    assert list(reigns.unheard("x")) == []
    for number in range(8, 8 + 2 * UNHEARD_MAX):
        reigns.expect("x", number, NodeId("d", number))
    assert len(reigns.unheard("x")) == UNHEARD_MAX + 1
    reigns.led("x", 100, C)
    assert list(reigns.unheard("x")) == []


def board_of(host: FakeHost, members: FakeMembers) -> tuple[Board, Exchange, list[Row]]:
    exchange = Exchange(host, Broadcast(host, members))
    heard: list[Row] = []
    return Board(host, exchange, lambda life: life in members.listed, heard.append), exchange, heard


def encoded(row: Row) -> bytes:
    return msgspec.msgpack.encode(row)


def test_rows_of_the_board_are_a_join() -> None:
    """Foundation 4 (Rows): any order of updates ends in the same value; the end of a candidacy is newer than its beginning."""
    rows = [Row(CANDIDATE, "x", "a", boot, boot, minor, over) for boot in (1, 2) for minor in (1, 2) for over in (False, True)]
    for order in permutations([encoded(row) for row in rows[-5:]]):
        value = order[0]
        for other in order[1:]:
            value = _newer(value, other)
        assert value == encoded(Row(CANDIDATE, "x", "a", 2, 2, 2, True))


def test_candidates_are_ordered_by_hash() -> None:
    """D17b: everybody has the same order for a name, and names spread over the agents."""
    board, exchange, _ = board_of(FakeHost("a"), FakeMembers(A, B, C))
    firsts = set()
    for name in (f"name-{i}" for i in range(30)):
        rows = [Row(CANDIDATE, name, life.name, 1, 1, 1, over=False) for life in (C, A, B)]
        exchange.table(TOPIC).learn([TableRow(_key(row), encoded(row), 0.0) for row in rows])
        assert set(board.candidates(name)) == {A, B, C}
        firsts.add(board.candidates(name)[0])
    assert firsts == {A, B, C}


def test_a_row_in_the_wrong_place_counts_for_nobody() -> None:
    """A peer's mistake or malice: counted, and not believed."""
    board, exchange, heard = board_of(FakeHost("a"), FakeMembers(A))
    row = Row(LEADER, "x", "b", 1, 5, 0, over=False)
    exchange.table(TOPIC).learn([TableRow("l:y", encoded(row), 0.0), TableRow("l:x", b"\xc1", 0.0), TableRow("l:x", b"\x93", 0.0)])
    assert heard == []
    assert board.counts["misplaced"] == 1
    assert exchange.table(TOPIC).counts["malformed"] == 2


def test_the_long_gone_are_taken_down_and_the_living_come_back() -> None:
    """F17: rows of lives that nobody lists any more do not stay for ever; whoever was only cut off puts its row up again."""
    host, members = FakeHost("a"), FakeMembers(A)
    board, exchange, _ = board_of(host, members)
    board.start()
    gone = Row(CANDIDATE, "x", "b", 1, 1, 1, over=False)
    exchange.table(TOPIC).learn([TableRow(_key(gone), encoded(gone), 0.0)])
    board.stand("x")
    host.pass_time(ABSENT_MAX + 4 * SWEEP_PERIOD)
    assert board.candidates("x") == (A,)
    assert board.counts["taken_down"] == 1
    mine = Row(CANDIDATE, "x", "a", 1, 1, 1, over=True)
    exchange.table(TOPIC).learn([TableRow(_key(mine), encoded(mine), 0.0)])
    assert board.candidates("x") == ()
    host.pass_time(0.1)
    assert board.candidates("x") == (A,)
    board.withdraw("x")
    host.pass_time(0.1)
    assert board.candidates("x") == ()


def test_a_full_board_refuses_a_candidate_and_keeps_no_trace() -> None:
    """F17: the table has a limit; whoever is refused can try again."""
    board, exchange, _ = board_of(FakeHost("a"), FakeMembers(A))
    exchange.table(TOPIC)._kept.update(dict.fromkeys((f"k{i}" for i in range(KEYS_MAX)), cast("Any", SimpleNamespace(value=b""))))
    with pytest.raises(ConfigError, match="too full"):
        board.stand("x")
    board.withdraw("x")
    assert board.candidates("x") == ()


def leadership_of(host: FakeHost, *, own: int | None = 0, sole: bool = True) -> Leadership:
    members = FakeMembers(A, B, C)
    exchange = Exchange(host, Broadcast(host, members))
    machine = Leadership(host, members, seats_of(host, own, sole=sole), exchange, LeadershipConfig(t_itv=1.0))
    machine.start()
    return machine


@pytest.mark.parametrize(
    "name, length, field",
    [
        ("", LENGTH, "name"),
        ("n" * 101, LENGTH, "name"),
        ("a\nb", LENGTH, "name"),
        ("x", 1.0, "length"),
        ("x", 2.0, "length"),
        ("x", inf, "length"),
    ],
)
def test_bad_campaigns_name_the_field(name: str, length: float, field: str) -> None:
    """Bad input of a user: one clear error naming field and accepted values."""
    with pytest.raises(ConfigError, match=f"^{field}: .*accepted"):
        leadership_of(FakeHost("a")).campaign(name, length, Client())


@pytest.mark.parametrize("field, value", [("rho", 0.2), ("rho", -0.1), ("renew_tries", 4), ("renew_tries", -1), ("t_itv", 0.0)])
def test_bad_settings_name_the_field(field: str, value: float) -> None:
    """Bad input of a user: one clear error naming field and accepted values."""
    with pytest.raises(ConfigError, match=f"^{field}: .*accepted"):
        LeadershipConfig(**{field: value})  # type: ignore[arg-type]


def test_one_candidacy_per_name_and_so_many_names() -> None:
    """F17: everything has a limit."""
    leadership = leadership_of(FakeHost("a"))
    for i in range(CANDIDACIES_MAX):
        leadership.campaign(f"n{i}", LENGTH, Client())
    with pytest.raises(ConfigError, match="already"):
        leadership.campaign("n0", LENGTH, Client())
    with pytest.raises(Unavailable, match="256"):
        leadership.campaign("one more", LENGTH, Client())
    leadership.withdraw("unknown")
    leadership.withdraw("n0")
    leadership.campaign("one more", LENGTH, Client())


def test_a_sole_seat_leads_by_itself() -> None:
    """D22: one seat that is the only agent leads at once, under a number of its own clock; who does not lead has no token."""
    host = FakeHost("a")
    leadership, client = leadership_of(host), Client()
    with pytest.raises(HoldLost):
        leadership.token("x")
    leadership.campaign("x", LENGTH, client)
    host.pass_time(0.1)
    assert client.said == ["leading"]
    assert leadership.is_leader("x")
    assert leadership.token("x") == client.token == int(host.wall_clock * 1000)
    assert leadership.deadline("x") == client.deadline
    assert [(event.leader, event.token) for event in host.events(LeaderChanged)] == [(A, client.token)]
    assert list(leadership.leaders()) == ["x"]
    host.pass_time(10.0)
    assert leadership.is_leader("x")
    leadership.resign("x")
    assert leadership.leader("x") is None
    assert leadership.deadline("x") == -inf
    host.pass_time(10.0)
    assert not leadership.is_leader("x")


def test_the_same_life_never_uses_a_number_twice() -> None:
    """F16: the next client of this agent leads under a higher number, also if nobody else ever asked."""
    host = FakeHost("a")
    leadership = leadership_of(host)
    tokens = []
    for _ in range(4):
        client = Client()
        leadership.campaign("x", LENGTH, client)
        host.pass_time(0.5)
        tokens.append(client.token)
        leadership.resign("x")
    assert tokens == sorted(set(tokens))


def heartbeat(*leads: Lead, stamp: int = 1, seq: int = 1000) -> WatchedOk:
    return WatchedOk(seq, stamp, leads, (), 0.0)


@pytest.mark.parametrize(
    "message",
    [
        heartbeat(lead(name="")),
        heartbeat(lead(name="n" * 101)),
        heartbeat(lead(0)),
        heartbeat(lead(-1)),
        heartbeat(lead(NUMBER_MAX)),
        heartbeat(lead(NUMBER_MAX + 5)),
        heartbeat(*[lead(name=f"n{i}") for i in range(LEADS_MAX + 1)]),
        StartRounds((Succession("x", NUMBER_MAX, "a", 1),)),
        StartRounds((Succession("x", 1 << 60, "a", 1),)),
        StartRounds(tuple(Succession(f"n{i}", FIRST, "a", 1) for i in range(LEADS_MAX + 1))),
        Resign("x", 0, NUMBER_MAX),
        WhoHolds(1, tuple(f"n{i}" for i in range(LEADS_MAX + 1))),
        MonitorOk(5, 77, (Granted("x", 0, 1, grant=True),), 0),
        MonitorOk(5, 1, (Granted("", 0, 99, grant=True), Granted("", 0, -1, grant=True)), 0),
    ],
    ids=lambda message: type(message).__name__,
)
def test_bad_words_of_peers_change_nothing(message: Message) -> None:
    """F16, F17: numbers and sizes that cannot be are counted, not believed, and raise nothing."""
    host = FakeHost("a")
    leadership, client = leadership_of(host), Client()
    leadership.campaign("x", LENGTH, client)
    leadership.on_message(B, message)
    host.pass_time(1.0)
    assert leadership.token("x") == (1_700_000_000 * 1000)
    assert leadership.reigns.highest("x") == leadership.token("x")
    assert leadership.candidates("x") == (A,)


def test_a_heartbeat_that_was_overtaken_begins_no_watch() -> None:
    """I6: whoever led is not watched after its RESIGN; a heartbeat of before would begin with the past, and miss what it had."""
    leadership = leadership_of(FakeHost("a"))
    leadership.on_message(B, heartbeat(lead(), stamp=5))
    assert len(leadership.watches) == 1
    leadership.on_message(B, Resign("x", 0, FIRST))
    assert len(leadership.watches) == 0
    leadership.on_message(B, heartbeat(lead(), stamp=4))
    assert len(leadership.watches) == 0
    leadership.on_message(B, heartbeat(lead(FIRST + 1), stamp=6))
    assert len(leadership.watches) == 1


def test_a_seat_that_lies_about_numbers_is_not_followed_there() -> None:
    """F16: an answer with a number that no clock comes to raises nobody's round."""
    host = FakeHost("d", 1)
    leadership = leadership_of(host, own=None, sole=False)
    leadership.campaign("x", LENGTH, Client())
    campaign = leadership.office.campaigns["x"]
    assert campaign.on_start(FIRST)
    host.pass_time(0.01)
    leadership.office._on_granted(0, Granted("x", 0, FIRST, grant=False, number=NUMBER_MAX - 1), host.now)
    assert campaign.number == FIRST
    assert leadership.counters()["far_ahead"] == 1


def test_messages_stay_below_a_datagram() -> None:
    """D17b, F17: START and what seats answer are paged, also with the longest names and agents."""
    host = FakeHost("a", storage=FakeStorage())
    leadership = leadership_of(host)
    names = [f"{i:02}" + "n" * 98 for i in range(30)]
    leadership.on_message(B, heartbeat(*[lead(name=name) for name in names]))
    leadership.on_message(C, heartbeat(*[lead(FIRST + 1, name) for name in names]))
    cast("FakeStorage", host.storage).complete()
    for name in names:
        leadership.office._starts.append(Succession(name, FIRST + 2, "agent" * 12, 1 << 40))
    leadership.office._on_starts()
    sizes = [len(msgspec.msgpack.encode(message)) for _, message in host.sent if isinstance(message, MonitorOk | StartRounds)]
    assert len(sizes) > 10
    assert max(sizes) <= 1049  # what is left of 1200 beside header, seal and an envelope with the longest name
