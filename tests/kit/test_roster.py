"""Roster: the Membership interface over a fixed list.  Foundation 3."""

from __future__ import annotations

from math import inf

import pytest

from holdfast.errors import ConfigError
from holdfast.events import Event, Failed, Joined, Updated
from holdfast.host import FANOUT_MAX, ROWS_MAX, Address, Machine, Member, Membership, NodeId
from holdfast.kit.roster import Roster, RosterHello, listed
from tests.support.fake_host import FakeHost

ADDRESSES = {name: Address(name, 1) for name in ("a", "b", "c")}


def started(name: str = "a") -> tuple[FakeHost, Roster]:
    host = FakeHost(name)
    roster = Roster(host, listed(ADDRESSES))
    roster.start()
    host.pass_time(0)
    return host, roster


def hello(version: int = 0, *, wants: bool = False, **rows: bytes) -> RosterHello:
    return RosterHello(version, tuple(sorted(rows.items())), wants)


def test_it_offers_both_interfaces() -> None:
    """Foundation 3: a machine that ``node.use(Membership)`` finds."""
    _, roster = started()
    machine: Machine = roster
    assert machine.handles == (RosterHello,)
    assert isinstance(roster, Membership)
    assert roster.usable_until() == inf


def test_a_name_is_listed_when_its_life_is_known() -> None:
    """F1: who was never heard has no identity yet; oneself is always listed."""
    host, roster = started()
    assert [member.id for member in roster.members()] == [NodeId("a", 1)]
    assert roster.get("b") is None
    assert {to for to, _ in host.take(RosterHello)} == {Address("b", 1), Address("c", 1)}
    before = roster.version
    roster.on_message(NodeId("b", 7), hello(x=b"1"))
    assert roster.get("b") == Member(NodeId("b", 7), Address("b", 1), {"x": b"1"})
    assert roster.version > before
    assert host.events(Joined)


def test_it_answers_whoever_wants_to_know() -> None:
    """The greeting brings the rows of both sides together."""
    host, roster = started()
    host.take(RosterHello)
    roster.publish("x", b"1")
    host.pass_time(0)
    host.take(RosterHello)
    roster.on_message(NodeId("b", 1), hello(wants=True))
    host.pass_time(0)
    assert host.take(RosterHello) == [(Address("b", 1), hello(1, x=b"1"))]


def test_the_next_life_replaces_the_former() -> None:
    """F1: of two lives of one name the higher boot is the newer; a late word of the older one changes nothing."""
    host, roster = started()
    seen: list[Event] = []
    roster.subscribe(seen.append)
    roster.on_message(NodeId("b", 1), hello(9, x=b"old"))
    roster.on_message(NodeId("b", 2), hello(0, x=b"new"))
    roster.on_message(NodeId("b", 1), hello(99, x=b"late"))
    member = roster.get("b")
    assert member is not None
    assert (member.id.boot, member.rows) == (2, {"x": b"new"})
    assert [type(event) for event in seen] == [Joined, Failed, Joined]
    assert [event for event in seen if isinstance(event, Failed) and event.certain] == []
    assert roster.counts["old_life"] == 1
    assert host.emitted == seen


def test_rows_of_one_life_replace_each_other_by_version() -> None:
    """Greetings arrive in any order: an older one must not bring old rows back."""
    host, roster = started()
    roster.on_message(NodeId("b", 1), hello(1, x=b"1"))
    roster.on_message(NodeId("b", 1), hello(3, x=b"3"))
    roster.on_message(NodeId("b", 1), hello(2, x=b"2"))
    member = roster.get("b")
    assert member is not None
    assert member.rows == {"x": b"3"}
    assert len(host.events(Updated)) == 1


def test_a_change_is_told_to_everybody_at_once() -> None:
    """Rows reach others when they change, not at the next period."""
    host, roster = started()
    roster.on_message(NodeId("b", 1), hello())
    roster.on_message(NodeId("c", 1), hello())
    host.take(RosterHello)
    roster.publish("topic:t", b"")
    host.pass_time(0)
    assert [to for to, _ in host.take(RosterHello)] == [Address("b", 1), Address("c", 1)]
    assert [member.id.name for member in roster.members("t")] == ["a"]
    roster.publish("topic:t", b"")
    host.pass_time(0)
    assert host.take(RosterHello) == []
    roster.publish("topic:t", None)
    assert roster.members("t") == ()


def test_the_silent_are_greeted_again() -> None:
    """A member may start any day; those that are known are asked one at a time."""
    host, roster = started()
    roster.on_message(NodeId("b", 1), hello())
    host.take(RosterHello)
    host.pass_time(3.5)
    assert [to for to, _ in host.take(RosterHello)] == [Address("c", 1), Address("b", 1)] * 3
    roster.stop()
    host.pass_time(10)
    assert host.take(RosterHello) == []


def test_strangers_are_not_listed() -> None:
    """The list is fixed."""
    _, roster = started()
    roster.on_message(NodeId("x", 1), hello())
    roster.on_message(NodeId("a", 2), hello())
    assert [member.id for member in roster.members()] == [NodeId("a", 1)]
    assert roster.counts["stranger"] == 2


def test_a_static_roster_says_nothing() -> None:
    """hello_period 0: for the lab, where everybody knows everybody."""
    host = FakeHost("a")
    roster = Roster(host, [Member(NodeId("b", 3), Address("b", 1), {"topic:t": b""})], hello_period=0)
    roster.start()
    roster.publish("topic:t", b"")
    host.pass_time(100)
    assert host.sent == []
    assert [member.id for member in roster.members("t")] == [NodeId("a", 1), NodeId("b", 3)]


def test_a_large_list_is_greeted_in_turns() -> None:
    """F17: no callback sends to more than 64 peers; nobody is left out."""
    host = FakeHost("a")
    roster = Roster(host, listed({f"n{i}": Address(f"n{i}", 1) for i in range(100)}))
    roster.start()
    host.pass_time(1.5)
    assert len({to for to, _ in host.sent}) == 100
    assert len(host.sent) == 2 * FANOUT_MAX


@pytest.mark.parametrize("row, value", [("", b""), ("x" * 73, b""), ("x", b"x" * 257)])
def test_rows_have_limits(row: str, value: bytes) -> None:
    """Foundation 3: 256 bytes each."""
    _, roster = started()
    with pytest.raises(ConfigError, match="accepted are"):
        roster.publish(row, value)


def test_there_are_64_rows_at_most() -> None:
    """Foundation 3; replacing one is always possible."""
    _, roster = started()
    for i in range(ROWS_MAX):
        roster.publish(f"r{i}", b"")
    with pytest.raises(ConfigError, match="at most 64"):
        roster.publish("one more", b"")
    roster.publish("r0", b"new")


def test_rows_of_a_peer_beyond_the_limits_are_counted() -> None:
    """STYLE: a counted drop."""
    _, roster = started()
    roster.on_message(NodeId("b", 1), RosterHello(1, tuple((f"r{i}", b"") for i in range(ROWS_MAX + 1)), wants=False))
    roster.on_message(NodeId("b", 1), hello(1, x=b"x" * 257))
    roster.on_message(NodeId("b", 1), RosterHello(1, (("x" * 73, b""),), wants=False))
    assert roster.get("b") is None
    assert roster.counts["malformed"] == 3
