"""The member list of one node, what users see of it, and what members publish.  Spec: ring 2, 5.7, tombstone_ttl; foundation 3, 5."""

from __future__ import annotations

import pytest

from holdfast.errors import ConfigError
from holdfast.events import Event, Joined, Left, Updated
from holdfast.features.ring.lab.rings import Rings
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.ids import Peer, RingId
from holdfast.features.ring.protocol.memberlist import KNOWN_MAX, Listed, MemberList, Tombstone, key_of, topic_of, write
from holdfast.features.ring.protocol.ring import RingNode
from holdfast.host import Address, MemberStatus, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.roster import Roster
from holdfast.kit.rows import Row
from tests.features.ring.stand import T_L, Stand, crowd, peer
from tests.support.fake_host import FakeHost

A, B = peer("a", 100), peer("b", 200)
TTL = 100.0


class Listener:
    """Who is told; it only writes down."""

    def __init__(self) -> None:
        self.listed: list[tuple[RingId, bool]] = []  # and whether it was known before
        self.gone: list[tuple[RingId, Tombstone]] = []

    def on_listed(self, ring_id: RingId, before: Listed | None, now: Listed) -> None:
        self.listed.append((ring_id, before is not None))

    def on_gone(self, ring_id: RingId, before: Listed | None, tombstone: Tombstone) -> None:
        self.gone.append((ring_id, tombstone))


def empty() -> tuple[FakeHost, MemberList, Listener]:
    host = FakeHost("me")
    listener = Listener()
    alone = Roster(host, [], hello_period=0.0)
    made = MemberList(Exchange(host, Broadcast(host, alone), ae_period=8.0), host, 7, listener, TTL)
    made.open()
    return host, made, listener


def listed(whom: Peer, version: int = 1, rows: dict[str, bytes] | None = None, since: float = 0.0) -> Listed:
    return Listed(whom.node, whom.address, since, version, rows or {})


def test_ids_are_sorted_and_counted() -> None:
    """Ring 2 (members): a sorted list of ids."""
    _, members, _ = empty()
    for each in (B, A):
        members.announce(each.id, listed(each))
    assert members.ids == [A.id, B.id]
    assert len(members) == 2
    assert A.id in members


def test_hearsay_adds_the_unknown_only() -> None:
    """Ring 5.3 (piggyback), 5.7: unknown and not tombstoned ids are added; what a member said itself is not replaced by hearsay."""
    _, members, listener = empty()
    members.announce(A.id, listed(A, rows={"tag": b"x"}))
    members.announce(B.id, Tombstone(certain=True, gen=1, reason="left"))
    members.hear([A, B])
    assert members.ids == [A.id]
    assert members.entries[A.id].rows == {"tag": b"x"}
    assert listener.listed == [(A.id, False)]


def test_gone_is_for_ever() -> None:
    """Ring 2 (gone): gone wins over alive, by whatever way and however late the news of life comes."""
    _, members, listener = empty()
    members.announce(A.id, listed(A))
    members.announce(A.id, Tombstone(certain=True, gen=3, reason="failed"))
    members.announce(A.id, listed(A, version=99))
    members.table.learn([Row(key_of(A.id), write(listed(A, version=100)), 0.0)])
    assert members.ids == []
    assert [each for each, _ in listener.gone] == [A.id]


def test_tombstones_are_forgotten_in_the_end() -> None:
    """Ring 4 (tombstone_ttl): kept for so long, then dropped, together with the address."""
    host, members, _ = empty()
    members.announce(A.id, listed(A))
    members.announce(A.id, Tombstone(certain=True, gen=3, reason="failed"))
    host.pass_time(TTL - 1)
    assert members.forget() == []
    host.pass_time(1)
    assert members.forget() == [A.id]
    assert A.id not in members.gone
    assert members.peer(A.id) is None


def test_addresses_of_the_gone_are_kept_a_while() -> None:
    """Ring 5.2: an arbitrator group may still name them."""
    _, members, _ = empty()
    members.announce(A.id, listed(A))
    members.announce(A.id, Tombstone(certain=True, gen=3, reason="failed"))
    assert members.peer(A.id) == A


def test_known_addresses_have_a_limit() -> None:
    """F17: the oldest goes first."""
    _, members, _ = empty()
    for number in range(KNOWN_MAX + 1):
        members.meet(peer("x", number))
    assert members.peer(RingId(0, 1)) is None
    assert members.peer(RingId(KNOWN_MAX, 1)) is not None


def test_made_up_keys_are_passed_over() -> None:
    """F17: a row whose key names no id changes nothing and raises nothing."""
    _, members, listener = empty()
    members.table.learn([Row("no id", write(listed(A)), 0.0)])
    assert members.ids == []
    assert listener.listed == []


def test_topics_keep_rings_apart() -> None:
    """D20: ring ids keep twins from mixing; each ring has a topic of its own."""
    assert topic_of(1) != topic_of(2)


def test_of_two_lives_the_newer_is_shown() -> None:
    """D21 (the old inc may still be present), F1: a user sees one member per name, of the newest life and the newest membership."""
    _, members, _ = empty()
    old = Peer(RingId(100, 1), NodeId("a", 1), Address("a", 1))
    again = Peer(RingId(100, 2), NodeId("a", 1), Address("a", 1))
    reborn = Peer(RingId(100, 3), NodeId("a", 2), Address("a", 2))
    members.announce(old.id, listed(old, since=1.0))
    members.announce(again.id, listed(again, since=2.0))
    assert [member.id.boot for member in members.members()] == [1]
    members.announce(reborn.id, listed(reborn, since=0.5))
    assert [member.id for member in members.members()] == [NodeId("a", 2)]
    assert len(members.of_name("a")) == 3


def test_doubts_only_grow() -> None:
    """D3: SUSPECTED, then DECIDED, never back; what is no news is not told."""
    _, members, _ = empty()
    members.announce(A.id, listed(A))
    assert members.member(A.id).status is MemberStatus.ALIVE
    assert members.mark(A.id, MemberStatus.DECIDED)
    assert not members.mark(A.id, MemberStatus.SUSPECTED)
    assert members.member(A.id).status is MemberStatus.DECIDED
    assert not members.mark(B.id, MemberStatus.SUSPECTED)


def test_the_version_grows_with_every_change() -> None:
    """Foundation 3 (Membership.version): of the list or of a row."""
    _, members, _ = empty()
    versions = [members.version]
    for entry in (listed(A), listed(A, 2, {"tag": b"x"}), Tombstone(certain=True, gen=1, reason="left")):
        members.announce(A.id, entry)
        versions.append(members.version)
    assert versions == sorted(set(versions))


# What a member publishes (foundation 3).


def test_rows_are_published_and_changed() -> None:
    """Foundation 3 (publish), 5 (Updated): own rows only; a changed tag is an event, an unchanged one is not."""
    stand = Stand()
    stand.ring.publish("tag", b"1")
    stand.ring.publish("tag", b"1")
    stand.ring.publish("tag", b"2")
    stand.ring.publish("tag", None)
    assert [dict(event.member.rows) for event in stand.host.events(Updated)] == [{"tag": b"1"}, {"tag": b"2"}, {}]


@pytest.mark.parametrize(
    "row,value",
    [("", b""), ("x" * 73, b""), ("x", bytes(257))],
    ids=["no name", "long name", "long value"],
)
def test_rows_have_limits(row: str, value: bytes) -> None:
    """Foundation 3: 256 bytes each, 64 rows; refused by name, before anything is told."""
    stand = Stand()
    with pytest.raises(ConfigError, match="row"):
        stand.ring.publish(row, value)
    assert stand.host.events(Updated) == []


def test_there_are_at_most_64_rows_and_3072_bytes() -> None:
    """Foundation 3; ring 3: an entry is one row of the shared table."""
    stand = Stand()
    for number in range(64):
        stand.ring.publish(f"r{number:02}", b"")
    with pytest.raises(ConfigError, match="at most 64"):
        stand.ring.publish("one more", b"")
    large = Stand()
    for number in range(11):  # of 259 bytes each
        large.ring.publish(f"r{number:02}", bytes(256))
    with pytest.raises(ConfigError, match="3072 bytes"):
        large.ring.publish("r11", bytes(256))


def test_rows_outlive_a_membership() -> None:
    """D21: whoever comes back brings its rows along."""
    stand = Stand()
    stand.ring.publish("tag", b"1")
    stand.ring.depart("test")
    stand.ring.lifecycle.stop()
    stand.ring.found()
    me = stand.ring.get("me")
    assert me is not None
    assert me.rows == {"tag": b"1"}


def test_topics_select_members() -> None:
    """Foundation 3 (members(topic)): those who publish it; the list's own topics are everybody's."""
    stand, _ = crowd()
    assert stand.ring.members("x") == ()
    stand.ring.publish("topic:x", b"")
    assert [member.id.name for member in stand.ring.members("x")] == ["me"]
    assert len(stand.ring.members(stand.ring.list.topic)) == 7


def test_subscribers_hear_what_users_hear() -> None:
    """Foundation 3 (subscribe): every membership event, none of the internal ones."""
    stand = Stand()
    heard: list[Event] = []
    stand.ring.subscribe(heard.append)
    stand.responds_to(A)
    stand.say(A, m.Leave(*stand.head(A), "graceful", 0))
    assert [type(event) for event in heard] == [Joined, Left]


def test_a_changed_row_reaches_everybody() -> None:
    """G8, foundation 4 (Rows): by rumour within a few delays; by anti-entropy even if every rumour is lost."""
    rings = Rings(1, RingConfig(k=2))
    rings.form([f"n{i}" for i in range(12)])
    rings.world.run(2.0)
    rings.members["n3"].publish("tag", b"new")
    rings.world.run(2.1)
    assert {tag(ring) for ring in rings.alive} == {b"new"}
    rings.world.network.lose_if(lambda source, target, message: type(message).__name__ == "Rumour")
    rings.members["n3"].publish("tag", b"newer")
    rings.world.run(60 * T_L)
    assert {tag(ring) for ring in rings.alive} == {b"newer"}


def tag(ring: RingNode) -> bytes:
    """What this member knows of n3."""
    member = ring.get("n3")
    assert member is not None
    return member.rows["tag"]
