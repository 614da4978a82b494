"""The queue of rumours.  Spec: gossip 5.6."""

from __future__ import annotations

from math import ceil, log10

from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.messages import Gossip
from holdfast.features.gossip.protocol.rumours import RUMOUR_BYTES, size_of
from tests.features.gossip.stand import ALIVE, DEAD, SUSPECT, Stand, life, rumour


def names(stand: Stand, to: str) -> list[str]:
    return [each.id.name for each in stand.node.rumours.pick(life(to))]


def fresh(*others: str) -> Stand:
    """With an empty queue."""
    stand = Stand(*others).without_probes()
    stand.node.rumours.clear()
    return stand


def test_each_rumour_is_sent_a_logarithmic_number_of_times() -> None:
    """Gossip 5.6, G8: ceil(lambda log10(n+1)), by the present n."""
    stand = fresh("b", "c", "d")
    stand.say("b", rumour("x"))
    sends = 0
    while names(stand, "c") == ["x"]:
        sends += 1
    assert sends == ceil(4 * log10(stand.node.table.n + 1)) == 4
    assert dict(stand.node.queue) == {}


def test_those_sent_least_go_first_and_of_these_the_newest() -> None:
    """Gossip 5.6: fresh news is not held up by old."""
    stand = fresh("b", "c", "d")
    stand.say("b", rumour("x"))
    stand.say("b", rumour("y"))
    assert names(stand, "c") == ["y", "x"]
    stand.say("b", rumour("z"))
    assert names(stand, "c")[0] == "z"


def test_the_newest_word_about_a_member_replaces_the_former() -> None:
    """Gossip 2 (rumours): one per member."""
    stand = fresh("b", "c", "x")
    stand.say("b", rumour("x", 0, SUSPECT, "b"))
    stand.say("b", rumour("x", 1))
    assert [(each.inc, each.status) for each in stand.node.rumours.pick(life("c"))] == [(1, ALIVE)]


def test_a_datagram_is_filled_and_not_more() -> None:
    """Gossip 3: up to what a sealed datagram holds; the rest goes with the next."""
    stand = fresh("b", *(f"member-{i:03}" for i in range(60)))
    for i in range(60):
        stand.say("b", rumour(f"member-{i:03}", 1))
    picked = stand.node.rumours.pick(life("b"))
    assert RUMOUR_BYTES * 0.9 < sum(map(size_of, picked)) <= RUMOUR_BYTES
    assert not {each.id for each in picked} & {each.id for each in stand.node.rumours.pick(life("b"))}


def test_an_accused_member_hears_its_accusation_first_and_always() -> None:
    """Gossip 5.6 (the buddy rule): uncounted, from each member that writes to it; also when it is held to be dead."""
    stand = fresh("b", "c", "d")
    stand.say("b", rumour("c", 0, SUSPECT, "b", "d"))
    for status in (SUSPECT, DEAD):
        if status is DEAD:
            stand.bury("c")
        stand.node.rumours.clear()
        for _ in range(20):
            ((first),) = stand.node.rumours.pick(life("c"))
            assert (first.id, first.status, first.accusers) == (life("c"), status, ("b", "d"))


def test_no_member_is_told_that_it_lives() -> None:
    """Gossip 5.6: the room is for others."""
    stand = fresh("b", "c")
    stand.say("b", rumour("c", 1))
    assert names(stand, "c") == []
    assert names(stand, "b") == ["c"]


def test_rounds_of_gossip_go_on_while_there_is_news() -> None:
    """Gossip 3 (GOSSIP): every gossip_interval to `fanout` members, and then silence."""
    stand = fresh("b", "c", "d", "e", "f")
    stand.say("b", rumour("b", 1))
    stand.host.pass_time(0.199)
    assert stand.host.take(Gossip) == []
    stand.host.pass_time(0.002)
    assert len(stand.host.take(Gossip)) in (2, 3)  # b itself needs not hear it
    stand.host.pass_time(10.0)
    assert dict(stand.node.queue) == {}
    stand.clear()
    stand.host.pass_time(5.0)
    assert stand.host.take(Gossip) == []


def test_without_fanout_rumours_ride_on_probes_alone() -> None:
    """Gossip 4: gossip_fanout = 0 is the original SWIM."""
    stand = Stand("b", "c", config=GossipConfig(gossip_fanout=0)).without_probes()
    stand.say("b", rumour("x"))
    stand.host.pass_time(5.0)
    assert stand.host.take(Gossip) == []
    assert "x" in stand.node.queue


def test_only_small_rows_ride_on_a_rumour() -> None:
    """Gossip 3, D18: 512 bytes; larger ones are announced by rows_at."""
    stand = Stand("b", "c").without_probes()
    stand.node.publish("tag:x", b"x" * 200)
    stand.host.pass_time(1.0)
    assert stand.node.myself.rumour().rows is not None
    for i in range(2):
        stand.node.publish(f"tag:{i}", b"x" * 200)
    stand.host.pass_time(1.0)
    said = stand.node.myself.rumour()
    assert (said.rows, said.rows_at) == (None, stand.node.inc)


def waits(stand: Stand) -> bool:
    """A round of gossip is to come."""
    return stand.node.rumours._timer is not None


def test_two_members_have_nothing_to_tell_each_other() -> None:
    """Gossip 5.6, H368: of two members each has only the word that the other one lives, which that one knows; no round goes on for it."""
    stand = Stand("b").without_probes()
    stand.host.pass_time(20.0)
    assert [each.rumour.id.name for each in stand.node.queue.values()] == ["b"]
    assert not waits(stand)
    stand.say("b", rumour("c"))
    assert waits(stand)
    stand.clear()
    stand.host.pass_time(2.0)
    assert {each.id.name for each in stand.rumours_to("c")} >= {"b"}
