"""What a process does about its membership between memberships: whom it remembers, whom it asks.  Spec: ring 5.5, 5.6, D20, D23; H164."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import JoinRetry, JoinStarted
from holdfast.features.ring.protocol.lifecycle import CACHE, CACHED_MAX, SAVE_LEASES
from holdfast.features.ring.protocol.ring import RingNode
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import Address, NodeId
from tests.features.ring.stand import STEP, T_L, Stand, crowd, expelled_again
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


@pytest.mark.parametrize("answering, soon", [(0, False), (1, False), (2, True), (3, True)])
def test_a_majority_of_the_seeds_shortens_the_absence(answering: int, soon: bool) -> None:
    """H164: after many forced departures up to 60 T_l; when a majority of the seeds answers, 8 T_l. What it waits for is said."""
    seeds = tuple(Address(name, 1) for name in "xyz")
    stand = Stand(config=RingConfig(k=3))
    expelled_again(stand, 12)
    stand.ring.config = replace(stand.ring.config, seeds=seeds)
    lifecycle = stand.ring.lifecycle
    while True:  # until a long one is drawn
        lifecycle.wanted = True
        stand.ring.depart("test")
        if stand.host.events(JoinRetry)[-1].delay > 30 * T_L:
            break
        lifecycle.stop()
        stand.ring.found()
    assert "or sooner when 2 of 3 seeds answer" in lifecycle.waits_for
    stand.take(m.Discover)
    came = False
    for _ in range(11 * 16):
        stand.host.pass_time(STEP)
        for to, message in stand.take(m.Discover):
            came = came or stand.ring.is_joining
            if to in seeds[:answering] and isinstance(to, Address):
                answer = m.Discovered(message.serial, m.Answer.NO_MEMBER, 0, (), seeded=False, asked=to)
                stand.ring.on_message(NodeId(to.host, 1), answer)
    assert (came or stand.ring.is_joining) is soon
