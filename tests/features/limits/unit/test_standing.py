"""How a member stands: instances, panic, lapse, trips.  Spec: limits 5.5-5.7, D11, D16, D20, D23, H266; F9, F11."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from holdfast.events import LimitPanicked, LimitRestored
from holdfast.features.limits.protocol.facts import Calmed, InstanceBegan, InstanceConfirmed, Lapsed, Panicked, Raised
from holdfast.features.limits.protocol.messages import Gossip, GossipAck
from holdfast.features.limits.protocol.standing import Standing
from holdfast.host import ViewId
from tests.features.limits.stand import CONFIG, EPOCH, LEASE, SERVER, SETTLE, A, B, C, Stand, view_of

EXACT: dict[str, Any] = {"policy": "exact", "fleet": 3}


def inst(number: int) -> ViewId:
    return ViewId(number, SERVER.name, SERVER.boot)


def give_half(stand: Stand) -> None:
    """It wants little, the others more, and one of them asks."""
    stand.users["api"].arrives = 20.0
    stand.epochs(12)
    stand.know(busy=2)
    stand.ask(B, 0.5)
    stand.epochs()
    assert stand.q == 0.5


@pytest.fixture
def stand() -> Stand:
    """In view 5 with two others, settled, with an exact limit of 600 for three."""
    stand = Stand()
    stand.limit(600.0, arrives=200.0, **EXACT)
    stand.views.install(view_of(5, (A, B, C)))
    stand.settle()
    return stand


def test_a_process_begins_with_nothing() -> None:
    """Limits 5.5, D11: what a former life gave away may be in use until ``settle`` after the start, so it starts at 0."""
    stand = Stand()
    users = stand.limit(600.0, arrives=200.0, **EXACT)
    stand.views.install(view_of(5, (A, B, C)))
    stand.pass_time(SETTLE - 0.01)
    assert (stand.q, users.usable) == (0.0, 0.0)
    stand.epochs(2)
    assert (stand.q, users.usable) == (1.0, 200.0)
    assert [event.by for event in stand.host.events(Raised)] == [1 << 32]


def test_seconds_in_panic_and_in_views_that_were_not_delivered(stand: Stand) -> None:
    """Limits 9: both go on counting, and never fall."""
    standing = stand.limiter.standing
    before = standing.panic_seconds, standing.provisional_seconds
    stand.pass_time(5.0)
    assert (standing.panic_seconds, standing.provisional_seconds) == before
    stand.gossip(6, B, w=7)
    stand.pass_time(1.0)
    stand.views.install(view_of(6, (A, B)))
    stand.pass_time(5.0)
    stand.views.lose()
    stand.pass_time(2.0)
    assert standing.panic_seconds == pytest.approx(before[0] + 2.0)
    stand.limiter.stop()
    stand.limiter.start()
    stand.views.restore()
    stand.pass_time(5.0)
    assert standing.panic_seconds == pytest.approx(before[0] + 2.0)
    assert standing.provisional_seconds == pytest.approx(before[1] + 1.0)


def test_a_restart_is_a_new_instance(stand: Stand) -> None:
    """Limits 5.6: a view above the instance begins another one; the weight is whole, and only the own demand is known."""
    sums = stand.limiter.sums
    stand.views.install(view_of(6, (A, B)))
    assert stand.limiter.sums is not sums
    assert (stand.limiter.standing.inst, stand.limiter.standing.size) == (inst(6), 2)
    assert stand.host.events(InstanceBegan)[-1] == InstanceBegan(inst(6), 2, provisional=False)


def test_a_lower_view_is_ignored(stand: Stand) -> None:
    """Limits 5.6: lower: ignore."""
    stand.gossip(9)
    sums = stand.limiter.sums
    stand.views.install(view_of(8, (A, B, C)))
    assert stand.limiter.sums is sums
    assert stand.limiter.standing.inst == inst(9)


def test_a_peer_knows_a_newer_view(stand: Stand) -> None:
    """Limits 5.6, paper 003, 6.3: it begins at once, speaks only to those heard there, and asks its server."""
    stand.gossip(6, B, w=7)
    standing = stand.limiter.standing
    assert (standing.inst, standing.provisional, standing.peers) == (inst(6), True, (B,))
    assert stand.views.hurries == 1
    assert stand.sent(GossipAck)[-1] == (B, GossipAck(inst(6), 1))
    stand.gossip(6, C)
    assert standing.peers == (B, C)


def test_the_breaker_delivers_it(stand: Stand) -> None:
    """Limits 5.6: with the id of the provisional instance the mass is kept, and the member list taken."""
    stand.gossip(6, B, size=2, w=7)
    sums = stand.limiter.sums
    assert sums is not None
    stand.views.install(view_of(6, (A, B)))
    assert stand.limiter.sums is sums
    assert (sums.w, stand.limiter.standing.provisional, stand.limiter.standing.members) == ((1 << 32) + 7, False, (A, B))
    assert stand.host.events(InstanceConfirmed) == [InstanceConfirmed(inst(6))]


def test_it_settles_after_the_delivery(stand: Stand) -> None:
    """H266, views G6 (a): what earlier views allowed ends ``settle`` after the delivery, not after the first word of it."""
    stand.pass_time(1.0)
    stand.gossip(6, B)
    stand.pass_time(2.0)
    stand.views.install(view_of(6, (A, B, C)))
    assert stand.limiter.standing.settle_at == stand.host.now + SETTLE


def test_it_is_not_delivered(stand: Stand) -> None:
    """Limits 5.6: not within ``adopt_timeout``: trip, and above that number, so that the next view is a new instance. Once."""
    stand.gossip(6, B)
    stand.pass_time(CONFIG.adopt_timeout - EPOCH)
    assert stand.views.trips == []
    stand.epochs(6)
    assert [above for _, above in stand.views.trips] == [6]


def test_a_trip_that_was_refused_is_tried_again(stand: Stand) -> None:
    """Limits 5.6, views 5.7: a client trips only now and then."""
    stand.views.refuses = True
    stand.gossip(6, B)
    stand.pass_time(CONFIG.adopt_timeout + EPOCH)
    stand.views.refuses = False
    stand.epochs(2)
    assert [above for _, above in stand.views.trips] == [6]


def test_who_was_away_accuses_no_server(stand: Stand) -> None:
    """F11: in a late callback the view may wait in the socket, so it does not trip."""
    stand.gossip(6, B)
    stand.host.pause(CONFIG.adopt_timeout + 2)
    assert stand.views.trips == []
    stand.epochs(2)
    assert len(stand.views.trips) == 1


def test_panic_at_the_end_of_the_lease(stand: Stand) -> None:
    """Limits 5.7, F9: compared with the clock; a member that has more than 1/n has 1/n from then on."""
    stand.give(B, 0.5)
    assert stand.q == 1.5
    stand.views.leased_until = stand.host.now + 0.1
    stand.pass_time(0.2)
    assert stand.limiter.share("api") == pytest.approx(200.0)
    assert stand.q == 1.0
    assert len(stand.host.events(Panicked)) == 1
    assert [event.rate for event in stand.host.events(LimitPanicked)] == [pytest.approx(200.0)]


def test_in_panic_it_keeps_less_than_its_part(stand: Stand) -> None:
    """Limits 5.5, D13: never more than it had, for others may hold what it gave."""
    give_half(stand)
    stand.views.lose(leave=True)
    stand.pass_time(SETTLE - 0.6)
    assert stand.q == 0.5
    assert stand.used == pytest.approx(100.0)


def test_a_lapse_counts_from_leaving(stand: Stand) -> None:
    """D23: ``settle`` after it left, and not after the panic: until then its server may list it, and others keep what it gave."""
    give_half(stand)
    stand.views.lose()
    stand.pass_time(3.0)
    stand.views.leave()
    stand.pass_time(SETTLE - 0.1)
    assert stand.q == 0.5
    stand.epochs(2)
    assert stand.q == 1.0
    assert len(stand.host.events(Lapsed)) == 1


def test_a_member_that_does_not_leave_trips(stand: Stand) -> None:
    """Limits 5.5: in panic for ``settle`` without having left: tripping is leaving, and then it waits ``settle`` more."""
    stand.views.lose()
    stand.pass_time(SETTLE + 2 * EPOCH)
    assert len(stand.views.trips) == 1
    assert not stand.limiter.standing.lapsed
    stand.settle()
    assert stand.limiter.standing.lapsed


def test_views_that_do_not_say_when_a_member_left() -> None:
    """Limits 5.5, views 5Z: over ZooKeeper no member lapses, and tripping for it is no use."""
    stand = Stand(silent=True)
    stand.limit(600.0, **EXACT)
    stand.views.install(view_of(5, (A, B, C)))
    stand.settle()
    give_half(stand)
    stand.views.lose()
    stand.pass_time(20 * SETTLE)
    assert stand.q == 0.5
    assert stand.views.trips == []


def test_silent_views_are_known_by_one_trip() -> None:
    """Limits 5.5: a limiter that begins within a view finds out that these views say nothing: it trips once, and never again for that."""
    stand = Stand(silent=True)
    stand.views.install(view_of(5, (A, B, C)))
    stand.limiter.stop()
    standing = Standing(stand.host, stand.views, CONFIG, agreed=True)
    standing.start()
    stand.views.lose()
    for _ in range(200):
        stand.host.pass_time(EPOCH)
        standing.look()
    assert (len(stand.views.trips), standing.lapsed) == (1, False)


def test_views_that_never_said_anything() -> None:
    """Limits 5.5, H270: without a first view and without word of leaving nothing is known to end, so a process stays at 0."""
    stand = Stand(silent=True)
    users = stand.limit(600.0, **EXACT)
    stand.pass_time(10 * SETTLE)
    assert (users.usable, stand.limiter.standing.lapsed, stand.views.trips) == (0.0, False, [])


def test_a_process_that_never_had_a_view_takes_its_part() -> None:
    """Limits 5.5, H270: no member holds anything that this life gave, and what its former life gave is over ``settle`` after the start."""
    stand = Stand()
    users = stand.limit(600.0, **EXACT)
    stand.pass_time(SETTLE - EPOCH)
    assert users.usable == 0.0
    stand.epochs(3)
    assert users.usable == pytest.approx(200.0)


@pytest.mark.parametrize("how", ["same", "confirmed", "lower"])
def test_a_lapse_is_the_raise_of_its_instance(stand: Stand, how: str) -> None:
    """D20: panic that ends in any way but by a new instance ends with a trip, and nothing is raised, given or taken until then."""
    stand.gossip(13, B)
    stand.views.lose(leave=True)
    stand.pass_time(2 * SETTLE)
    assert stand.limiter.standing.lapsed
    stand.views.trips.clear()
    stand.views.refuses = True
    if how == "same":
        stand.views.last = view_of(13, (A, B, C))
        stand.views.restore()
    else:
        stand.views.install(view_of(13 if how == "confirmed" else 10, (A, B, C)))
    stand.sent(Gossip)
    stand.settle()
    assert stand.sent(Gossip) == []
    stand.give(B, 0.5, number=13)
    stand.ask(B, 0.5)
    stand.epochs(2)
    assert stand.q == 1.0
    assert stand.used == pytest.approx(200.0)
    stand.views.refuses = False
    stand.epochs(1)
    assert [above for _, above in stand.views.trips] == [13]


def test_a_new_instance_ends_a_lapse(stand: Stand) -> None:
    """D20: there it counts again: it trades with what it has, and the raise adds nothing to a whole part."""
    stand.views.lose(leave=True)
    stand.settle()
    stand.epochs()
    before = stand.limiter.standing.lapsed
    stand.views.install(view_of(9, (A, B, C)))
    assert (before, stand.limiter.standing.lapsed, len(stand.host.events(Calmed))) == (True, False, 2)
    stand.settle()
    assert stand.q == 1.0
    assert stand.views.trips == []


def test_panic_is_over_with_the_same_view(stand: Stand) -> None:
    """Limits 5.7: before a lapse the old instance goes on, with what is left of the quota."""
    stand.give(B, 0.5)
    sums = stand.limiter.sums
    stand.views.lose()
    stand.epochs()
    stand.views.restore()
    assert stand.limiter.sums is sums
    assert not stand.limiter.standing.panic
    assert stand.q == 1.0
    assert len(stand.host.events(LimitRestored)) == 1


def test_after_a_pause_the_lease_is_looked_at_first(stand: Stand) -> None:
    """D16, F10: before anything is read; a resumed process does not take what was sent to it while it had a lease."""
    stand.views.leased_until = stand.host.now + LEASE
    stand.host.clock += 10.0
    stand.limiter.on_away(10.0)
    assert stand.limiter.standing.panic
    stand.give(B, 0.5)
    assert stand.q == 1.0
    assert stand.count("no_trade") == 1


def test_epochs_that_were_missed_are_not_made_up(stand: Stand) -> None:
    """D16: after a pause of twenty epochs there is one."""
    before = stand.limiter.epochs
    stand.host.pause(20 * EPOCH)
    assert stand.limiter.epochs == before + 1


def test_what_workers_are_told_ends_with_the_lease(stand: Stand) -> None:
    """Limits 5.1, F9: ``until`` is the end of the lease; after it no more than R/n, and of an exact limit nothing past ``settle``."""
    stand.views.leased_until = until = stand.host.now + LEASE
    stand.epochs(1)
    allotted = stand.users["api"].allotted
    assert (allotted.until, allotted.after) == (until, 200.0)
    assert until < allotted.ends_at <= until + SETTLE - LEASE
    stand.limiter.stop()
    fair = Stand(B)
    fair.limit(600.0)
    fair.views.install(view_of(5, (A, B, C)))
    fair.epochs(2)
    assert fair.users["api"].allotted.ends_at == inf


def test_what_workers_are_told_ends_also_without_a_lease() -> None:
    """Limits 5.1, 5.11: a member list may be usable for ever; a worker that hangs holds what it was told for no longer than a lease."""
    stand = Stand(agreed=False)
    users = stand.limit(600.0)
    stand.views.install(view_of(5, (A, B, C)), leased=inf)
    stand.epochs(2)
    assert stand.host.now < users.allotted.until <= stand.host.now + LEASE


def test_a_limiter_that_is_taken_out_and_put_in_again(stand: Stand) -> None:
    """Limits 5.5: it goes on as a process that was stopped does: with what it holds in the same view, anew in another one."""
    stand.give(B, 0.5)
    stand.limiter.stop()
    stand.host.pass_time(3.0)
    stand.limiter.start()
    assert stand.q == 1.5
    stand.limiter.stop()
    began = len(stand.host.events(InstanceBegan))
    stand.limiter.start()
    stand.views.install(view_of(6, (A, B, C)))
    assert (stand.q, len(stand.host.events(InstanceBegan))) == (1.0, began + 1)
