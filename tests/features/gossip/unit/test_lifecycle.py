"""Joining, settling, leaving, and the way back.  Spec: gossip 5.7, D9, D10, D20."""

from __future__ import annotations

from holdfast.events import Joined
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.contact import KNOWN_MAX
from holdfast.features.gossip.protocol.facts import BecameMember, JoinRetry, Settled
from holdfast.features.gossip.protocol.lifecycle import SETTLED_ROW, YES, formed
from holdfast.features.gossip.protocol.messages import Ack, Gossip, Knock, Met, Named, Ping, Sync, SyncDigest
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.host import Address, NodeId
from holdfast.lab.fake_host import FakeHost, FakeStorage
from tests.features.gossip.stand import DEAD, LEFT, SUSPECT, Stand, base_of, life, place, rumour


def seeded(*seeds: str, **changes: object) -> GossipConfig:
    return GossipConfig(seeds=tuple(place(name) for name in seeds), **changes)  # type: ignore[arg-type]


def knocked(stand: Stand) -> list[str]:
    stand.host.pass_time(0.0)
    return [to.host for to, _ in stand.host.take(Knock) if isinstance(to, Address)]


def met(*names: str) -> Met:
    return Met(tuple(Named(life(name), place(name)) for name in names))


def joined(stand: Stand, by: str = "b") -> Stand:
    """By the table of one other member."""
    stand.hear(by, met(by))
    ((to, sync),) = stand.host.take(Sync)
    assert to == life(by)
    stand.hear(by, Sync(sync.serial, 0, 1, (rumour(by),)))
    return stand


# Joining.


def test_without_seeds_of_others_it_is_the_group() -> None:
    """Gossip 5.7: at once; its own address is no other's."""
    stand = Stand(config=seeded("a"), host=FakeHost("a"))
    assert stand.node.is_member
    assert stand.names == ["a"]


def test_a_joiner_knocks_and_is_no_member_before_a_table_has_come() -> None:
    """Gossip 5.7, D20, H323: KNOCK, MET, SYNC; then BecameMember and Joined of all that it lists."""
    stand = Stand(config=seeded("b", "a", "c"))
    assert knocked(stand) == ["b", "c"]
    assert (stand.node.is_member, stand.node.is_joining, stand.names) == (False, True, [])
    assert "2 seeds" in stand.node.waits_for
    stand.hear("b", met("b"))
    ((_, sync),) = stand.host.take(Sync)
    assert [each.id.name for each in sync.entries] == ["a"]
    stand.hear("b", Sync(sync.serial, 1, 2, (rumour("c", 0, SUSPECT, "x"),)))
    assert (stand.names, stand.told) == ([], [])
    stand.hear("b", Sync(sync.serial, 0, 2, (rumour("b"),)))
    assert stand.node.is_member
    assert stand.host.events(BecameMember) == [BecameMember(3)]
    assert stand.told == ["Joined a", "Joined c", "Joined b", "Suspected c"]
    assert stand.names == ["a", "b", "c"]


def test_two_joiners_are_a_group() -> None:
    """Gossip 5.7: the whole table of the other side, no matter which of them asked."""
    stand = Stand(config=seeded("b"))
    stand.hear("b", Sync(1, 0, 1, (rumour("b"),), want=True))
    assert stand.node.is_member


def test_a_joiner_asks_two_of_the_members_that_are_named() -> None:
    """Gossip 5.7: a seed that a thousand newcomers knock at answers a thousand datagrams, not a thousand tables."""
    stand = Stand(config=seeded("b"))
    stand.hear("b", met("b", "c", "d", "e", "a"))
    asked = [to for to, _ in stand.host.take(Sync)]
    assert len(asked) == 2
    assert set(asked) < {life(name) for name in "bcde"}
    assert all(stand.host.met[each] == place(each.name) for each in asked if isinstance(each, NodeId))


def test_it_knocks_again_with_growing_delays() -> None:
    """Gossip 5.7, H326: T, 2 T, 4 T, 8 T, then every 10 T; never a member on its own."""
    stand = Stand(config=seeded("b"))
    knocked(stand)
    times = []
    for tenth in range(1, 500):
        stand.host.pass_time(0.1)
        if knocked(stand):
            times.append(round(tenth / 10))
    assert times == [1, 3, 7, 15, 25, 35, 45]
    assert not stand.node.is_member
    assert [event.attempt for event in stand.host.events(JoinRetry)] == [1, 2, 3, 4, 5, 6, 7]


def test_an_answer_that_was_not_asked_for_is_dropped() -> None:
    """Gossip 5.7: a MET makes this node show its table, so it has to follow a knock; a few tables are enough."""
    stand = Stand("b")
    stand.hear("b", met("x"))
    assert stand.host.take(Sync) == []
    assert stand.node.counts["met_unasked"] == 1
    asking = Stand(config=seeded("b"))
    knocked(asking)
    for _ in range(20):
        asking.hear("b", met("c", "d"))
    assert len(asking.host.take(Sync)) == 8


def test_a_knock_is_answered_with_a_few_members() -> None:
    """Gossip 3 (MET): up to 8 that are ALIVE, not the one that knocks."""
    stand = Stand(*(f"m{i}" for i in range(20)))
    stand.say("m0", rumour("m1", 0, SUSPECT, "m0"))
    stand.hear("m0", Knock())
    ((to, answer),) = stand.host.take(Met)
    assert to == life("m0")
    assert len({each.id for each in answer.members}) == 8
    assert not {"m0", "m1"} & {each.id.name for each in answer.members}


def test_a_joiner_tells_no_member_what_all_know() -> None:
    """Gossip 5.1 step 2, H325: of a table that it is shown; itself it tells."""
    stand = Stand(config=seeded("b"))
    stand.hear("b", met("b"))
    ((_, sync),) = stand.host.take(Sync)
    stand.hear("b", Sync(sync.serial, 0, 1, (rumour("b"), rumour("c"))))
    assert set(stand.node.queue) == {"a"}


def test_a_node_that_has_not_joined_says_nothing() -> None:
    """Gossip 5.7: names are settled first (D17)."""
    stand = Stand(join=False)
    stand.hear("b", Ping(1))
    stand.hear("b", Knock())
    stand.host.pass_time(60.0)
    assert stand.host.sent == []
    assert stand.node.counts["not_joined"] == 2
    assert (stand.node.wanted, stand.node.left) == (False, True)


def test_known_addresses_are_tried_beside_the_seeds() -> None:
    """Gossip 2 (known), H43: saved at most every 8 T; 32 of them."""
    disk = FakeStorage(auto=True)
    names = [f"m{i:02}" for i in range(40)]
    stand = Stand(*names, host=FakeHost("a", storage=disk)).without_probes()
    stand.host.pass_time(11.0)
    assert len(stand.node.known) == KNOWN_MAX
    later = Stand(config=seeded("s"), host=FakeHost("a", 2, storage=FakeStorage(disk.durable, auto=True)))
    assert later.node.known == stand.node.known
    assert knocked(later) == ["s", *(each.host for each in later.node.known)]


def test_an_unreadable_record_is_no_record() -> None:
    """Gossip 2 (known): these addresses are hints."""
    stand = Stand(host=FakeHost("a", storage=FakeStorage({"gossip/known": b"\xc1"}, auto=True)))
    assert stand.node.known == ()
    assert stand.node.counts["known_unreadable"] == 1


# Settling.


def test_a_joiner_settles_after_a_comparison() -> None:
    """Gossip D10: ceil(3 log2(n+1)) gossip intervals after the join, and one more SYNC; it publishes that itself."""
    stand = joined(Stand(config=seeded("b"))).without_probes()
    stand.host.pass_time(5 * 0.2 - 0.01)
    stand.clear()
    stand.host.pass_time(0.02)
    ((to, digest),) = stand.host.take(SyncDigest)
    assert to == life("b")
    assert stand.node.observed_for() == 0.0
    stand.hear("b", SyncDigest(digest.serial, digest.root, answer=True))
    assert len(stand.host.events(Settled)) == 1
    stand.host.pass_time(1.0)
    assert stand.node.settled(life("a"))
    assert not stand.node.settled(life("b"))
    stand.say("b", rumour("b", 1, rows={SETTLED_ROW: YES}, rows_at=1))
    assert stand.node.settled(life("b"))
    assert stand.node.observed_for() == 1.0


def test_a_comparison_that_is_lost_is_repeated() -> None:
    """Gossip D10: a joiner does not wait for the sync period."""
    stand = joined(Stand(config=seeded("b"))).without_probes()
    stand.host.pass_time(8.0)
    assert len(stand.host.take(SyncDigest)) > 3
    assert not stand.node.settled(life("a"))


def test_a_group_of_one_settles_alone() -> None:
    """Gossip D8, D10."""
    stand = Stand()
    stand.host.pass_time(3.0)
    assert stand.node.settled(life("a"))


# Leaving.


def test_a_goodbye_is_said_three_times_and_then_it_is_over() -> None:
    """Gossip 5.7: LEFT to 3 fanout members, twice more; PINGs are answered for 2 T."""
    stand = Stand(*(f"m{i:02}" for i in range(30))).without_probes()
    stand.node.leave()
    assert (stand.node.is_member, stand.node.wanted, stand.node.left, stand.names) == (False, False, False, [])
    said = []
    for _ in range(3):
        stand.host.pass_time(0.0)
        goodbyes = stand.host.take(Gossip)
        assert all(message.rumours[0].status is LEFT for _, message in goodbyes)
        said.append(len(goodbyes))
        stand.host.pass_time(0.2)
    assert said == [9, 9, 9]
    stand.hear("m01", Ping(3))
    assert len(stand.host.take(Ack)) == 1
    stand.host.pass_time(1.5)
    assert stand.node.left
    stand.hear("m01", Ping(3))
    assert stand.host.take(Ack) == []
    assert stand.host.timers == 0 or all(not sent for sent in (stand.host.take(Ping), stand.host.take(SyncDigest)))


def test_a_life_that_left_does_not_come_back() -> None:
    """Gossip 1, G7: LEFT is final; `waits_for` says so."""
    stand = Stand("b")
    stand.node.leave()
    stand.node.join()
    stand.host.pass_time(5.0)
    stand.node.join()
    assert (stand.node.is_member, stand.node.wanted) == (False, False)
    assert "final" in stand.node.waits_for


def test_who_gives_up_joining_is_out_at_once() -> None:
    """Gossip 5.7: no member lists it; it may join later."""
    stand = Stand(config=seeded("b"))
    stand.node.leave()
    assert stand.node.left
    stand.clear()
    stand.node.join()
    assert knocked(stand) == ["b"]


# The way back.


def test_a_dead_member_is_knocked_at() -> None:
    """Gossip 5.7 (reconnect), D9: with probability max(0.1, dead / (dead + listed)); never one that left."""
    stand = Stand("b", "c", "d").without_probes()
    stand.say("b", *(rumour(name, 0, DEAD) for name in "bcd"), rumour("e", 0, LEFT))
    stand.node.contact.known = ()
    hit: set[str] = set()
    for _ in range(30):
        stand.host.pass_time(10.0)
        hit |= set(knocked(stand))
    assert hit == {"b", "c", "d"}


def test_a_tombstone_is_left_alone_if_the_rule_is_off() -> None:
    """Gossip 7 (ablations): without it two halves stay two groups."""
    stand = Stand("b", "c", rules=Rules(reconnect=False)).without_probes()
    stand.say("b", rumour("c", 0, DEAD))
    stand.host.pass_time(500.0)
    assert stand.host.take(Knock) == []


def test_an_unlisted_seed_is_tried_for_ever() -> None:
    """Gossip D9: also while others are listed; two joiners that were cut off find each other and stop being alone."""
    stand = joined(Stand(config=seeded("b", "s"))).without_probes()
    knocked(stand)
    hit = []
    for _ in range(5):
        stand.host.pass_time(10.0)
        hit += knocked(stand)
    assert hit == ["s"] * 5
    other = joined(Stand(config=seeded("b", "s"), rules=Rules(standing_seeds=False))).without_probes()
    knocked(other)
    other.host.pass_time(50.0)
    assert other.host.take(Knock) == []


def test_a_member_that_is_alone_knocks_at_all() -> None:
    """Gossip 5.7 (reconnect): seeds and known addresses, each reconnect_interval."""
    stand = joined(Stand(config=seeded("b", "s"))).without_probes()
    stand.say("b", rumour("b", 0, LEFT))
    knocked(stand)
    stand.host.pass_time(10.0)
    assert sorted(knocked(stand)) == ["b", "s"]


def test_a_member_asks_only_whom_it_does_not_list() -> None:
    """Gossip 5.7: a MET of its own group makes it show its table to none."""
    stand = joined(Stand(config=seeded("b", "s"))).without_probes()
    stand.hear("b", met("b"))
    assert stand.host.take(Sync) == []
    stand.hear("b", met("b", "x"))
    assert [to for to, _ in stand.host.take(Sync)] == [life("x")]


def test_tombstones_are_dropped() -> None:
    """Gossip 5.7 (reconnect): after reap_after; what was known of the life goes with it."""
    stand = Stand("b", config=GossipConfig(reap_after=200.0)).without_probes()
    stand.say("b", rumour("c"), rumour("c", 0, DEAD))
    stand.host.pass_time(190.0)
    assert stand.status("c") is DEAD
    stand.host.pass_time(20.0)
    assert stand.node.entry("c") is None
    assert stand.node.unhealthy(life("c")) == 0.0


def test_a_base_is_a_group_that_was_formed_before() -> None:
    """Gossip D22: for the laboratory; what all begin with is news to none."""
    stand = Stand(base=base_of("a", "b", "c"), join=False)
    stand.node.join()
    assert stand.node.is_member
    assert stand.names == ["a", "b", "c"]
    assert [event.member.id.name for event in stand.host.events(Joined)] == ["a"]


def test_a_group_that_was_formed_has_settled_and_is_silent() -> None:
    """Gossip D22: no member has news for the others, or the first minutes of a large group would measure nothing else."""
    stand = Stand(base=formed({life(name): place(name) for name in "abc"})).without_probes()
    assert stand.node.settled(life("a"))
    assert dict(stand.node.queue) == {}
    stand.host.pass_time(20.0)
    assert dict(stand.node.queue) == {}
    assert stand.node.observed_for() == 20.0
