"""What an agent may ask, and the limits.  Spec: election 2, 9, 10, D14, D23; foundation F16, F17."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.config import Config
from holdfast.errors import ConfigError, HoldLost, Unavailable
from holdfast.features.election.protocol.config import NAMES_MAX, STANDS_MAX
from holdfast.features.election.protocol.manner import manner
from holdfast.features.election.protocol.messages import Leader, Query
from holdfast.features.election.protocol.profiles import default, literal, paper
from holdfast.features.election.protocol.rules import Rules
from holdfast.features.election.protocol.shown import Role
from tests.features.election.stand import BASE, HYBRID, NAME, TIMEOUT, Client, Stand, Town, life, post, ranked_names

NODES = ranked_names(5)
TERM = 1_700_000_000_500


def stand(**changes: Any) -> Stand:
    return Stand(*NODES[1:], me=NODES[0], **changes)


@pytest.mark.parametrize("name", ["", "x" * 101, "a\nb", "é" * 51])
def test_bad_names_are_refused(name: str) -> None:
    """Section 3: 1 to 100 bytes of printable text."""
    found = stand()
    with pytest.raises(ConfigError, match=r"name: .*; accepted are 1 to 100 bytes"):
        found.machine.campaign(name, 0.0, found.client)


@pytest.mark.parametrize("length", [-1.0, 0.01, 1e9, float("nan")])
def test_bad_lengths_are_refused(length: float) -> None:
    """5.10: hold."""
    found = stand()
    with pytest.raises(ConfigError, match="length: "):
        found.machine.campaign(NAME, length, found.client)


def test_a_second_candidacy_is_refused() -> None:
    """One per name and agent: clients wait in the agent's queue."""
    found = stand().stand()
    with pytest.raises(ConfigError, match="one candidacy per name"):
        found.machine.campaign(NAME, 0.0, Client(found.host))


def test_the_17th_name_is_refused() -> None:
    """Section 2: 16, because rows are limited; one that is given up makes room."""
    found = stand()
    for number in range(STANDS_MAX):
        found.machine.campaign(f"x{number}", 0.0, found.client)
    with pytest.raises(Unavailable, match="stands for 16 names already"):
        found.machine.campaign("more", 0.0, found.client)
    found.machine.withdraw("x3")
    found.machine.campaign("more", 0.0, found.client)


def test_seats_that_are_not_there() -> None:
    """Section 10: voters="seats" without seats."""
    found = stand()
    with pytest.raises(ConfigError, match='voters: "seats" and there are none: set seats, or seeds that are literal addresses'):
        found.machine.campaign(NAME, 0.0, found.client, manner=manner("base", "seats"))


def test_another_variant_is_refused_with_theirs() -> None:
    """F4: candidates of a name have one manner; the error says which, and who has it."""
    found = stand()
    with pytest.raises(ConfigError, match=r"variant: 'base'; accepted is 'hybrid', as m\d#1 has it"):
        found.machine.campaign(NAME, 0.0, found.client, manner=BASE)
    found = stand(candidates=[])
    found.hear(NODES[1], Leader(NAME, HYBRID, TERM, life(NODES[1]), active=True))
    with pytest.raises(ConfigError, match="rank: 'tag:x'; accepted is 'hash'"):
        found.machine.campaign(NAME, 0.0, found.client, manner=manner(rank="tag:x"))


def test_the_manner_follows_the_next_candidates() -> None:
    """H390: a name that none stands for any more is elected as its next candidates say."""
    found = stand(candidates=[])
    found.hear(NODES[1], Query(NAME, BASE, 1, 1, 0, 0))
    assert found.machine.manner(NAME) == BASE
    found.hear(NODES[1], Query(NAME, HYBRID, 1, 1, 0, 0))
    assert found.machine.manner(NAME) == HYBRID


def test_names_are_bounded() -> None:
    """Section 2: 1024 known; the one that was idle for longest goes; one that was met just now stays, and the next is refused."""
    found = stand().stand()
    for number in range(NAMES_MAX + 20):
        found.hear(NODES[1], Query(f"x{number}", HYBRID, 1, 1, 0, 0))
    assert len(found.machine.names()) == NAMES_MAX
    assert found.machine.counts["names_full"] == 21
    found.host.pass_time(10.0)
    found.hear(NODES[1], Query("late", HYBRID, 1, 1, 0, 0))
    assert "late" in found.machine.names()
    assert "x0" not in found.machine.names()
    assert NAME in found.machine.names()
    assert found.machine.counts["names_forgotten"] == 1
    assert sum(contest.watch is not None for contest in found.machine._core.contests.values()) <= NAMES_MAX


def test_elect_needs_a_candidate() -> None:
    """Section 10: a name nobody stands for."""
    found = stand(candidates=[])
    with pytest.raises(ConfigError, match="no member stands for 'n'"):
        found.machine.elect(NAME)
    found.hear(NODES[1], Query(NAME, HYBRID, 1, 1, 0, 0))
    with pytest.raises(ConfigError, match="no member stands for 'n'"):
        found.machine.elect(NAME)


def test_elect_needs_a_member() -> None:
    """5.2: who takes part in nothing cannot initiate."""
    found = stand().stand()
    found.lists.unsettled[NODES[0]] = None
    with pytest.raises(Unavailable, match="settled member"):
        found.machine.elect(NAME)


def test_a_joiner_does_not_depose_and_elect_does() -> None:
    """D14: sticky by default; ``elect`` holds one in which the best-ranked may take over, if the leader lets a higher term pass."""
    town = Town(5, made=HYBRID, sticky=False)
    town.stand(*town.names[1:])
    town.run_until(town.agreed)
    assert town.leaders() == [town.names[1]]
    town.stand(town.names[0])
    town.run(3.0)
    assert town.leaders() == [town.names[1]]
    town.elections[town.names[4]].elect(NAME)
    town.run_until(lambda: town.leaders() == [town.names[0]] and town.agreed())
    assert town.clients[town.names[1]].lost == ["superseded"]


def test_an_incumbent_that_is_sticky_stays() -> None:
    """5.6 (1): ACTIVE and sticky: the initiator hears that it leads."""
    town = Town(5, made=HYBRID)
    town.stand(*town.names[1:])
    town.run_until(town.agreed)
    term = town.clients[town.names[1]].token
    town.elections[town.names[4]].elect(NAME)
    town.run(1.0)
    assert town.leaders() == [town.names[1]]
    assert town.clients[town.names[1]].token == term


def test_reads() -> None:
    """Section 10: who leads, under which token, in which state; a leader knows its own, others raise."""
    town = Town(3, made=HYBRID).stand()
    with pytest.raises(HoldLost):
        town.elections[town.names[0]].token(NAME)
    town.run_until(town.agreed)
    leader, other = town.elections[town.names[0]], town.elections[town.names[2]]
    reign = other.leader(NAME)
    assert reign is not None
    assert (reign.leader.name, reign.token, reign.active, reign.listed) == (town.names[0], leader.token(NAME), True, True)
    assert leader.is_leader(NAME)
    assert leader.deadline(NAME) > town.hosts[town.names[0]].now
    assert list(other.reigns()) == [NAME]
    assert [each.name for each in other.candidates(NAME)] == town.names
    assert other.highest(NAME) == reign.token


def test_unknown_names_are_ignored() -> None:
    """What an agent may say about a name that it does not know."""
    machine = stand().machine
    machine.withdraw("x")
    machine.resign("x")
    machine.renew_allowed("x", allowed=False)
    assert (machine.leader("x"), machine.state("x"), machine.last("x"), machine.candidates("x"), machine.highest("x")) == (
        None,
        None,
        None,
        (),
        0,
    )


def test_several_names_are_apart() -> None:
    """One machine for all names: each has its own order, leader and term."""
    town = Town(5, made=HYBRID)
    for name in town.names:
        for index in range(4):
            town.elections[name].campaign(f"job{index}", 0.0, Client(town.hosts[name]))
    town.run(5.0)
    leaders = {f"job{index}": town.elections[town.names[0]].leader(f"job{index}") for index in range(4)}
    assert all(reign is not None and reign.active for reign in leaders.values())
    assert len({reign.leader for reign in leaders.values() if reign is not None}) > 1


def test_metrics_are_numbers() -> None:
    """Section 9: election_*."""
    town = Town(3, made=HYBRID).stand()
    town.run_until(town.agreed)
    total = {key: sum(town.elections[name].metrics()[key] for name in town.names) for key in ("elected", "active_now", "finished", "names")}
    assert (total["elected"], total["active_now"], total["names"]) == (1.0, 1.0, 3.0)
    assert total["finished"] >= 1.0


def test_no_setting_reaches_the_rules() -> None:
    """Issue 18: the paper's literal behaviour and every ablation are for the lab alone."""
    fields = set(Rules.__struct_fields__)
    assert fields.isdisjoint(Config.__struct_fields__)
    assert default().rules == Rules()
    assert paper(c=2).rules != Rules()
    assert literal(c=2).rules != paper(c=2).rules


def test_stop_is_silent() -> None:
    """Machine: after ``stop`` no timer says anything."""
    found = stand().stand()
    found.begin()
    found.machine.stop()
    found.host.sent.clear()
    found.lists.lose(NODES[1])
    found.lists.find(NODES[1])
    found.host.pass_time(20.0)
    assert found.host.sent == []


def test_a_plugged_multicast_carries_leader() -> None:
    """5.7: the multicast is a parameter of the machine; the rest of the messages does not use it."""
    from holdfast.features.election.protocol.elections import Elections
    from tests.features.election.stand import settings

    class Flood:
        def __init__(self) -> None:
            self.cast_: list[tuple[Leader, list[str]]] = []

        def cast(self, message: Leader, members) -> None:  # type: ignore[no-untyped-def]
            self.cast_.append((message, [member.name for member in members]))

    found, flood = stand(), Flood()
    found.exchange.close("elected")
    machine = Elections(found.host, found.lists, found.exchange, None, settings(HYBRID, c=0), multicast=flood)
    machine.start()
    machine.campaign(NAME, 0.0, found.client)
    machine.elect(NAME)
    found.host.pass_time(0.0)
    assert [(message.active, sorted(names)) for message, names in flood.cast_] == [(True, sorted(NODES[1:]))]
    assert found.host.take(Leader) == []


def test_more_than_1024_members_hear_a_rumour() -> None:
    """5.7, F17: above 1024 members LEADER is cast; up to there it is a datagram to each, 64 in a callback."""
    from holdfast.features.election.protocol.multicast import CAST_TOPIC, DirectMulticast
    from holdfast.host import Address, Member
    from holdfast.kit.broadcast import Rumour
    from holdfast.kit.outbox import Outbox

    found = stand()
    heard: list[tuple[object, Leader]] = []
    outbox = Outbox(found.host)
    multicast = DirectMulticast(found.host, outbox, found.broadcast, lambda source, message: heard.append((source, message)))
    members = [Member(life(f"p{number}"), Address("p", number + 1), {}) for number in range(1025)]
    message = Leader(NAME, HYBRID, TERM, found.host.me, active=True)
    multicast.cast(message, members[:1024])
    assert len(outbox) == 1024
    outbox.clear()
    found.rows.publish(life(NODES[1]), f"topic:{CAST_TOPIC}", b"")
    multicast.cast(message, members)
    assert len(outbox) == 0
    found.host.pass_time(0.0)
    (_, rumour), *_ = found.host.take(Rumour)
    found.broadcast.on_message(life("p1"), Rumour(life("p1"), CAST_TOPIC, 1, 0, rumour.payload))
    assert heard == [(life("p1"), message)]
    found.broadcast.on_message(life("p1"), Rumour(life("p1"), CAST_TOPIC, 2, 0, b"\xc1"))
    assert len(heard) == 1


def test_a_pause_of_the_whole_group_loses_no_name() -> None:
    """5.9: all stop for five seconds; afterwards one leads."""
    town = Town(4, made=HYBRID).stand()
    town.run_until(town.agreed)
    town.clock += 5.0
    for name in town.names:
        town.hosts[name].pause(5.0)
    town.run_until(town.agreed)
    assert sum(town.role(name) is Role.ACTIVE for name in town.names) == 1
    assert TIMEOUT > 0


def test_a_row_that_finds_no_room_is_refused() -> None:
    """Section 2: rows are limited; a campaign that cannot publish its row is none."""
    found = stand()

    def full(row: str, value: bytes | None) -> None:
        raise ConfigError(f"row {row}: would be row 65")

    found.lists.publish = full  # type: ignore[method-assign]
    with pytest.raises(ConfigError, match="would be row 65"):
        found.machine.campaign(NAME, 0.0, found.client)
    assert found.machine.state(NAME).stands is False  # type: ignore[union-attr]
    assert post(HYBRID)
