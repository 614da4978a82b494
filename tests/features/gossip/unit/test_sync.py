"""Tables that are compared and brought together.  Spec: gossip 5.7, D5, D19."""

from __future__ import annotations

from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.facts import Synced
from holdfast.features.gossip.protocol.messages import ALL_BUCKETS, BUCKETS, PAGE_BYTES_MAX, Observation, Rumour, Sync, SyncDigest
from holdfast.features.gossip.protocol.pages import cut, entries_of
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.features.gossip.protocol.rumours import size_of
from holdfast.features.gossip.protocol.table import bucket_of
from holdfast.host import Address
from tests.features.gossip.stand import ALIVE, DEAD, LEFT, SUSPECT, Stand, life, place, rumour

THEIRS = (1,) * BUCKETS


def page(*entries: Rumour, serial: int = 1, at: int = 0, of: int = 1, want: bool = False) -> Sync:
    return Sync(serial, at, of, entries, want=want)


def test_equal_tables_cost_two_datagrams() -> None:
    """Gossip D19: one hash of everything; the answer without hashes means "the same"."""
    stand = Stand("b").without_probes()
    stand.hear("b", SyncDigest(4, stand.node.table.root))
    assert stand.host.take(SyncDigest) == [(life("b"), SyncDigest(4, stand.node.table.root, answer=True))]


def test_different_tables_are_told_by_buckets() -> None:
    """Gossip D19: 64 hashes, then the entries of those that differ, both ways; the own entry comes along."""
    stand = Stand("b", "c", "d").without_probes()
    stand.hear("b", SyncDigest(4, 99))
    ((_, answer),) = stand.host.take(SyncDigest)
    assert answer.hashes == tuple(stand.node.table.hashes)
    member = stand.node.get("b")
    assert member is not None
    stand.node.syncs.compare(member)
    ((_, question),) = stand.host.take(SyncDigest)
    of_c = bucket_of(life("c"))
    hashes = [*stand.node.table.hashes]
    hashes[of_c] ^= 7
    stand.hear("b", SyncDigest(question.serial, 99, tuple(hashes), answer=True))
    ((_, sync),) = stand.host.take(Sync)
    assert (sync.serial, sync.want, sync.buckets) == (question.serial, True, 1 << of_c)
    assert [each.id.name for each in sync.entries] == ["a", "c"]
    stand.hear("b", page(serial=question.serial))
    assert stand.host.events(Synced)[-1].peer == life("b")


def test_a_suspicion_alone_is_no_difference() -> None:
    """Gossip D19: it will be over in a moment, in one way or the other."""
    stand = Stand("b", "c").without_probes()
    before = stand.node.table.root
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    assert stand.node.table.root == before
    stand.bury("c")
    assert stand.node.table.root != before


def test_a_question_with_the_same_serial_is_no_answer() -> None:
    """Gossip 3 (SYNCDIGEST): both ends count from 1, so an answer says that it is one."""
    stand = Stand("b").without_probes()
    member = stand.node.get("b")
    assert member is not None
    stand.node.syncs.compare(member)
    ((_, question),) = stand.host.take(SyncDigest)
    stand.hear("b", SyncDigest(question.serial, 99))
    assert stand.host.events(Synced) == []
    assert len(stand.host.take(SyncDigest)) == 1


def test_the_own_table_goes_back_before_the_page_is_merged() -> None:
    """Gossip 5.7 (SYNC receipt): once per question, whatever number of pages it has."""
    stand = Stand("b").without_probes()
    for at in (1, 0, 1):
        stand.hear("b", page(rumour("b"), rumour(f"x{at}"), at=at, of=2, want=True))
    ((to, answer),) = stand.host.take(Sync)
    assert to == life("b")
    assert [each.id.name for each in answer.entries] == ["a", "b"]
    assert stand.names == ["a", "b", "x0", "x1"]


def test_a_table_may_accuse_and_does_not_kill() -> None:
    """Gossip D5: DEAD about a member that is listed here is SUSPECT with the sender as accuser; LEFT is final."""
    stand = Stand("b", "c", "d", "e").without_probes()
    stand.hear("b", page(rumour("b"), rumour("c", 0, DEAD, "x", "y"), rumour("d", 0, LEFT), rumour("z", 0, DEAD)))
    assert [stand.status(name) for name in "cdz"] == [SUSPECT, LEFT, DEAD]
    assert list(stand.node.suspicions["c"].confirmers) == ["b"]
    stand.hear("e", page(rumour("e"), rumour("c", 0, SUSPECT, "x", "y")))
    assert list(stand.node.suspicions["c"].confirmers) == ["b", "e"]


def test_a_table_kills_if_the_rule_is_off() -> None:
    """Gossip 7 (ablations): each side of a partition that heals buries its own live members."""
    stand = Stand("b", "c", rules=Rules(tables_accuse=False, hearsay_asks=False)).without_probes()
    stand.hear("b", page(rumour("b"), rumour("c", 0, DEAD)))
    assert stand.status("c") is DEAD


def test_the_place_of_the_sender_is_in_its_first_page() -> None:
    """Gossip 3 (SYNC): a stream's far port is no place to answer to."""
    stand = Stand()
    stand.hear("b", page(rumour("b"), want=True))
    assert stand.host.met[life("b")] == place("b")
    assert [to for to, _ in stand.host.take(Sync)] == [life("b")]


def test_large_tables_are_pages() -> None:
    """Gossip 3 (SYNC): at most 64 KiB each, in any order; nothing is left out."""
    entries = [Rumour(life("x" * 40 + str(i)), Address("host" * 40, 1), 0, ALIVE) for i in range(2000)]
    pages = cut(entries)
    assert [each for one in pages for each in one] == entries
    assert len(pages) > 5
    assert max(sum(map(size_of, one)) for one in pages) <= PAGE_BYTES_MAX


def test_the_age_of_a_tombstone_travels() -> None:
    """Gossip 5.7, H320: what is too old is told to no member and taken from none, so it does not come back for ever."""
    stand = Stand("b", config=GossipConfig(reap_after=200.0)).without_probes()
    stand.hear("b", page(rumour("b"), rumour("c", 0, DEAD, ago=50), rumour("d", 0, DEAD, ago=200)))
    assert set(stand.node.table.tombstones) == {"c"}
    stand.host.pass_time(100.0)
    assert [each.ago for each in entries_of(stand.node.core, ALL_BUCKETS) if each.id.name == "c"] == [150]
    stand.host.clock += 55.0
    assert [each.id.name for each in entries_of(stand.node.core, ALL_BUCKETS)] == ["a", "b"]
    stand.host.pass_time(10.0)
    assert stand.node.entry("c") is None


def test_a_tombstone_in_a_table_is_no_news() -> None:
    """Gossip 5.1 step 2, H320: tables bring it to all; a rumour of it is told further."""
    stand = Stand("b").without_probes()
    stand.node.rumours.clear()
    stand.hear("b", page(rumour("b"), rumour("c", 0, DEAD), rumour("d")))
    stand.say("b", rumour("e", 0, DEAD))
    assert set(stand.node.queue) == {"d", "e"}


def test_observations_of_c_come_with_tables() -> None:
    """Gossip 5.11: pairs of value and seconds left."""
    stand = Stand("b")
    stand.hear("b", Sync(1, 0, 1, (rumour("b"),), (Observation(3, 100.0),)))
    assert stand.node.c_measured() == 3


def test_pages_that_cannot_be_are_refused() -> None:
    """Gossip 3: counted, dropped."""
    stand = Stand("b")
    stand.hear("b", page(rumour("x"), at=3, of=2))
    assert stand.node.entry("x") is None
    member = stand.node.get("b")
    assert member is not None
    stand.node.syncs.compare(member)
    ((_, question),) = stand.host.take(SyncDigest)
    stand.hear("b", SyncDigest(question.serial, 1, (1, 2, 3), answer=True))
    assert stand.node.counts["refused_page"] == 2
    assert stand.host.take(Sync) == []


def test_comparisons_come_with_the_size_of_the_group() -> None:
    """Gossip 4 (sync_interval): max(30 T, 10 s), longer in large groups; 0 is off."""
    config = GossipConfig()
    assert [config.sync(n) for n in (1, 32, 33, 64, 1024)] == [30.0, 30.0, 60.0, 60.0, 180.0]
    assert GossipConfig(period=0.1).sync(5) == 10.0
    assert GossipConfig(sync_interval=0.0).sync(5) == 0.0
    stand = Stand("b").without_probes()
    stand.node.lifecycle.stop()
    stand.clear()
    stand.host.pass_time(34.0)
    assert len(stand.host.take(SyncDigest)) == 1
