"""What a process does about its membership between memberships: whom it remembers, whom it asks.  Spec: ring 5.5, 5.6, D20, D23."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import JoinRetry, JoinStarted
from holdfast.features.ring.protocol.lifecycle import CACHE, CACHED_MAX, SAVE_LEASES
from holdfast.features.ring.protocol.ring import RingNode
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import Address, NodeId
from tests.features.ring.stand import T_L, crowd
from tests.support.fake_host import FakeHost, FakeStorage

SEED, KNOWN = Address("seed", 1), Address("known", 1)


def process(cached: tuple[Address, ...] = (), seeds: tuple[Address, ...] = (SEED,)) -> tuple[FakeHost, RingNode]:
    """A starting process that knew these members in its former life."""
    durable = {f"ring/{CACHE}": msgspec.msgpack.encode(cached)} if cached else {}
    host = FakeHost("me", 2, storage=FakeStorage(durable, auto=True))
    ring = standalone(host, RingConfig(seeds=seeds)).ring
    ring.start()
    host.pass_time(0.0)
    return host, ring


def asked(host: FakeHost) -> list[Address]:
    return [to for to, _ in host.take(m.Discover) if isinstance(to, Address)]


def test_without_a_past_it_knocks_at_a_seed() -> None:
    """Ring 5.6 (1): at a random seed or cached member."""
    host, _ = process()
    assert asked(host) == [SEED]
    assert len(host.events(JoinStarted)) == 1


def test_who_was_known_last_is_asked_first() -> None:
    """D20: the cached member list on disk is tried first, all of it at once; nothing is founded before."""
    others = tuple(Address(f"m{i}", 1) for i in range(3))
    host, _ = process(cached=others)
    assert asked(host) == list(others)
    assert host.events(JoinStarted) == []


@pytest.mark.parametrize("answer", [m.Answer.OK, m.Answer.BUSY, m.Answer.REDIRECT], ids=lambda answer: answer.name)
def test_any_member_shows_that_there_is_a_ring(answer: m.Answer) -> None:
    """D20: busy or not the owner, it is a member: the join begins there."""
    host, ring = process(cached=(KNOWN,))
    ((_, discover),) = host.take(m.Discover)
    ring.on_message(NodeId("known", 1), m.Discovered(discover.serial, answer, 7, (), seeded=True, asked=KNOWN))
    host.pass_time(0.0)
    assert asked(host) == [KNOWN]
    assert len(host.events(JoinStarted)) == 1


def test_when_nobody_remembers_a_ring_the_seeds_are_asked() -> None:
    """D20: all of them are in no ring, or silent for T_l."""
    host, ring = process(cached=(KNOWN, Address("other", 1)))
    ((_, discover), *_) = host.take(m.Discover)
    ring.on_message(NodeId("known", 1), m.Discovered(discover.serial, m.Answer.NO_MEMBER, 0, (), seeded=False, asked=KNOWN))
    host.pass_time(T_L - 0.01)
    assert set(asked(host)) <= {Address("other", 1), KNOWN}
    host.pass_time(0.02)
    assert asked(host)[-1:] == [SEED]


def test_a_damaged_cache_costs_time_only() -> None:
    """Ring 5.6: what cannot be read is forgotten."""
    host = FakeHost("me", 2, storage=FakeStorage({f"ring/{CACHE}": b"\xc1"}, auto=True))
    standalone(host, RingConfig(seeds=(SEED,))).ring.start()
    host.pass_time(0.0)
    assert asked(host) == [SEED]


def test_members_are_remembered_on_disk() -> None:
    """D20: who is in the ring, now and then, never ourselves, at most 32 of them; unchanged, it is not written again."""
    stand, peers = crowd()
    stand.live((SAVE_LEASES + 2) * T_L)
    saved = msgspec.msgpack.decode(stand.host.disk.durable[f"ring/{CACHE}"], type=list[Address])
    assert sorted(saved) == sorted(each.address for each in peers)
    assert len(saved) <= CACHED_MAX
    del stand.host.disk.durable[f"ring/{CACHE}"]
    stand.live(2 * SAVE_LEASES * T_L)
    assert f"ring/{CACHE}" not in stand.host.disk.durable


def test_who_leaves_on_purpose_knocks_nowhere() -> None:
    """Ring 5.5: leave() also ends an attempt to join, and stays out."""
    host, ring = process()
    ring.leave()
    host.take(m.Discover)
    host.pass_time(100 * T_L)
    assert asked(host) == []
    assert ring.left
    assert host.events(JoinRetry) == []


def test_stop_ends_everything() -> None:
    """Foundation 3 (Machine.stop): no timer of this machine does anything any more."""
    stand, _ = crowd()
    stand.ring.stop()
    stand.host.sent.clear()
    stand.host.pass_time(20 * T_L)
    assert [sent for sent in stand.host.sent if isinstance(sent.message, m.OfRing)] == []
