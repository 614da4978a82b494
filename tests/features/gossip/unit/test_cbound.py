"""The measured c.  Spec: gossip 5.11."""

from __future__ import annotations

from holdfast.features.gossip.protocol.cbound import OPEN_MAX
from holdfast.features.gossip.protocol.facts import CBound
from holdfast.features.gossip.protocol.messages import FRONT_MAX, Ack, Missed, MissedAck, Observation, Ping
from tests.features.gossip.stand import Stand, life, rumour


def quiet(*others: str) -> Stand:
    return Stand(*others).without_probes()


def test_reports_are_counted_by_name_and_bucket() -> None:
    """Gossip 5.11: the largest bucket of the window; a reporter counts once in each bucket that its report overlaps."""
    stand = quiet(*"bcdefg")
    stand.host.clock = 3000.0 + 15.0  # in the middle of a bucket of 30 s
    for serial in (1, 2):
        stand.hear("b", Missed(serial, 5.0))
    assert stand.host.take(MissedAck) == [(life("b"), MissedAck(1)), (life("b"), MissedAck(2))]
    stand.hear("c", Missed(1, 100.0))
    assert stand.node.c_measured() == 2
    stand.host.clock += 60.0
    stand.hear("d", Missed(1, 1.0))
    assert stand.node.c_measured() == 2
    stand.hear("e", Missed(1, 70.0))
    assert stand.node.c_measured() == 3
    assert [event.value for event in stand.host.events(CBound)] == [1, 2, 3]


def test_it_is_over_when_the_window_is() -> None:
    """Gossip 5.11: an observation counts for `window` seconds."""
    stand = quiet("b")
    stand.hear("b", Missed(1, 5.0))
    stand.host.clock += 599.0
    assert stand.node.c_measured() == 1
    stand.host.clock += 2.0
    assert stand.node.c_measured() == 0


def test_the_front_keeps_what_is_not_dominated() -> None:
    """Gossip 5.11: larger or longer; four pairs; a hair's breadth of 5 s is no difference."""
    stand = quiet("b")
    for value, ttl in ((3, 100.0), (2, 104.0)):
        stand.node.measured.push(Observation(value, ttl))
    assert [each.value for each in stand.node.c_front] == [3]
    for value, ttl in ((3, 100.0), (2, 104.0), (2, 200.0), (1, 300.0), (1, 250.0), (3, 90.0)):
        stand.node.measured.push(Observation(value, ttl))
    assert [(each.value, round(each.expires - stand.host.now)) for each in stand.node.c_front] == [(3, 100), (2, 200), (1, 300)]
    for value, ttl in ((9, 10.0), (7, 20.0), (5, 30.0)):
        stand.node.measured.push(Observation(value, ttl))
    assert [each.value for each in stand.node.c_front] == [9, 7, 5, 3]
    assert len(stand.node.c_front) == FRONT_MAX
    stand.node.measured.push(Observation(9, 590.0))
    assert [each.value for each in stand.node.c_front] == [9]


def test_what_cannot_be_is_refused() -> None:
    """Gossip 5.11: a value above members_max, a ttl above the window: counted."""
    stand = quiet("b")
    stand.node.measured.push(Observation(101, 10.0))
    stand.node.measured.push(Observation(1, 700.0))
    stand.node.measured.push(Observation(0, 10.0))
    assert list(stand.node.c_front) == []
    assert stand.node.counts["refused_c"] == 2


def test_a_long_absence_is_cut_to_the_window() -> None:
    """Gossip 5.11: so the buckets are bounded."""
    stand = quiet("b")
    stand.hear("b", Missed(1, 1e9))
    assert len(stand.node.measured.reports) <= 22


def test_a_bucket_has_at_most_n_names() -> None:
    """Gossip 5.11: more lists than members there are not."""
    stand = quiet("b", "c")
    for i in range(10):
        stand.hear(f"x{i}", Missed(1, 1.0))
    assert stand.node.c_measured() == 3
    assert stand.node.counts["reports_full"] >= 7


def test_hints_ride_on_probes() -> None:
    """Gossip 3 (hint): the largest live pair, as (value, remaining ttl); no clock is compared."""
    stand = quiet("b")
    stand.node.measured.push(Observation(3, 100.0))
    stand.host.clock += 40.0
    stand.hear("b", Ping(1, (), Observation(1, 500.0)))
    ((_, ack),) = stand.host.take(Ack)
    assert ack.hint == Observation(3, 60.0)
    stand.hear("b", Ack(99, (), Observation(8, 50.0)))
    assert stand.node.c_measured() == 8


def test_turbulence_is_of_the_last_bucket() -> None:
    """Gossip 5.11: a MISSED sent or received."""
    stand = quiet("b", "c")
    assert not stand.node.turbulent()
    stand.hear("b", Missed(1, 1.0))
    assert stand.node.turbulent()
    stand.host.clock += 31.0
    assert not stand.node.turbulent()
    stand.bury("c")
    stand.say("b", rumour("c", 1))
    assert stand.node.turbulent()


def test_a_report_is_repeated_until_it_is_noted() -> None:
    """Gossip 3 (MISSED), H331: twenty tries, 1 s apart."""
    stand = quiet("b", "c")
    stand.bury("c")
    stand.say("b", rumour("c", 1))
    stand.host.pass_time(1.5)
    reports = stand.host.take(Missed)
    assert [to for to, _ in reports] == [life("c")] * 2
    stand.hear("c", MissedAck(reports[0][1].serial))
    stand.host.pass_time(10.0)
    assert stand.host.take(Missed) == []
    stand.bury("c")
    stand.say("b", rumour("c", 2))
    stand.host.pass_time(25.0)
    assert len(stand.host.take(Missed)) == 20
    assert stand.node.counts["reports_unanswered"] == 1


def test_reports_wait_their_turn() -> None:
    """Foundation F17: a partition that heals makes a member report to half of the group; 32 at a time."""
    names = [f"m{i:02}" for i in range(80)]
    stand = quiet(*names)
    for name in names:
        stand.bury(name)
        stand.say("m00", rumour(name, 1))
    stand.host.pass_time(0.0)
    assert len(stand.host.take(Missed)) == OPEN_MAX
    stand.host.pass_time(60.0)
    assert {to for to, _ in stand.host.take(Missed)} == {life(name) for name in names[32:]} | {life(name) for name in names[:32]}
