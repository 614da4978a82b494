"""A door that is taken, silent or in no ring costs a candidate little.  Spec: ring 5.6; docs/decisions.md H160."""

from __future__ import annotations

from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import JoinRetry
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import Address, NodeId
from tests.features.ring.candidate import P17, RING, Candidate
from tests.features.ring.stand import T_L
from tests.support.fake_host import FakeHost


def test_a_door_that_is_taken_is_free_again_soon() -> None:
    """H160: a join takes four round trips; one in its way waits a few of those, doubled with every attempt, and never above T_l."""
    c = Candidate()
    for _ in range(10):
        c.host.pass_time(0.01)  # the trip
        c.discovered(m.Answer.BUSY)
        while not any(isinstance(sent.message, m.Discover) for sent in c.host.sent):
            c.host.pass_time(0.001)
    delays = [event.delay for event in c.host.events(JoinRetry) if event.why == "busy"]
    assert len(delays) >= 8
    for attempt, delay in enumerate(delays, 1):
        assert 0 <= delay <= min(T_L, 4 * 0.012 * 2**attempt)


def test_whoever_was_sent_away_is_called() -> None:
    """H160: the door that was taken says when it is free, and the next attempt begins there, at once."""
    c = Candidate()
    c.discovered(m.Answer.BUSY)
    c.host.take(m.Discover)
    c.say(P17, m.Discovered(m.INVITED, m.Answer.BUSY, RING, (), seeded=True, asked=P17.address))
    c.host.pass_time(0.0)
    assert [to for to, _ in c.host.take(m.Discover)] == [P17.address]


def test_a_call_in_the_middle_of_an_attempt_changes_nothing() -> None:
    """H160: a joiner that knocks already is not called back from there."""
    c = Candidate().until_locks()
    before = c.ring.id
    c.say(P17, m.Discovered(m.INVITED, m.Answer.BUSY, RING, (), seeded=True, asked=P17.address))
    c.host.pass_time(0.0)
    assert c.ring.id == before
    assert c.told(m.Discover) == []


def test_the_next_door_if_the_first_is_silent() -> None:
    """H160: of several seeds a silent one costs T_l / 4; the eight tries go round all of them."""
    host = FakeHost("c16")
    seeds = tuple(Address(name, 1) for name in "xyz")
    standalone(host, RingConfig(k=2, seeds=seeds, position=16)).ring.start()
    host.pass_time(2 * T_L - 0.01)
    asked = [to for to, _ in host.take(m.Discover)]
    assert len(asked) == 8
    assert asked[:3] == asked[3:6]
    assert set(asked[:3]) == set(seeds)


def test_the_next_door_if_the_first_is_in_no_ring() -> None:
    """H160: of several seeds one may be in a ring, and the others not yet."""
    host = FakeHost("c16")
    ring = standalone(host, RingConfig(k=2, seeds=tuple(Address(name, 1) for name in "xy"), position=16)).ring
    ring.start()
    host.pass_time(0.0)
    ((first, discover),) = host.take(m.Discover)
    assert isinstance(first, Address)
    ring.on_message(NodeId(first.host, 1), m.Discovered(discover.serial, m.Answer.NO_MEMBER, 0, (), seeded=False, asked=first))
    ((second, _),) = host.take(m.Discover)
    assert second != first
