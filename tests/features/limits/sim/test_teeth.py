"""Decisions taken out one by one: a schedule that harms nothing while the rule is there, and what it breaks without it.

Spec: limits D4-D9, D11, D13-D16, D18, D20-D23. Views, lost messages and restarts come by script; those of D5 are real.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import pytest

from holdfast.events import Event
from holdfast.features.limits.lab.crews import Appetite
from holdfast.features.limits.lab.groups import LimitGroup
from holdfast.features.limits.lab.mutations import ewma_blending, never_quiet, without
from holdfast.features.limits.lab.terms import Terms
from holdfast.features.limits.protocol.config import WEIGHT, LimitsConfig
from holdfast.features.limits.protocol.facts import InstanceBegan
from holdfast.features.limits.protocol.messages import Gossip, GossipAck
from holdfast.host import Message, ViewId
from holdfast.lab.host import LabHost
from tests.features.limits import ablations
from tests.features.limits.stand import API, EPOCH, KEY, SETTLE, A, B, C, Group, Stand, residue, view_of

# What is tested elsewhere, or is no rule of this code: names and shapes of things (D1 to D3, D12, D17), what other protocols promise (D10),
# what was left out (D19), what is known of the evidence (D24, D25), and what saves messages (D26, in ``unit/test_gossip.py``).
NO_RULES = {"D1", "D2", "D3", "D10", "D12", "D17", "D19", "D24", "D25", "D26"}
R = 600.0
BUSY = LimitsConfig(epoch=0.05)  # so that messages are under way at any instant


def test_each_decision_can_be_taken_out() -> None:
    """Limits 6, 7: there is a change of the code, in the lab or the tests alone, for every decision, which says whose rule it takes out."""
    assert ablations.DECISIONS.keys() | NO_RULES == {f"D{number}" for number in range(1, 27)}
    for decision, ablation in ablations.DECISIONS.items():
        assert (ablation.__doc__ or "").startswith((f"{decision}:", f"{decision},", f"{decision} ")), ablation


def of(decision: str) -> AbstractContextManager[None]:
    return without(ablations.DECISIONS[decision])


def exact_group(wants: Sequence[float] = (0.0, 600.0, 600.0)) -> Group:
    """Three members of an exact limit, at rest: the idle one has given nearly all of its quota away."""
    group = Group(3)
    group.limit(R, arrives=wants, policy="exact", fleet=3)
    group.install(5)
    group.run(SETTLE + 12.0)
    assert group[0].q < 0.2
    assert group.total == pytest.approx(R)
    return group


# D4.


def lost_acknowledgements() -> tuple[int, int]:
    """Half of the acknowledgements are lost. What is too much or missing in the end."""
    group = Group(4)
    group.limit(R, arrives=[100.0] * 4, share="demand")
    group.loses = lambda source, to, message: isinstance(message, GossipAck) and group.random.random() < 0.5
    group.install(5)
    group.run(10.0)
    return residue(group)


def test_what_was_taken_in_part_is_not_taken_again() -> None:
    """D4, RL1: some but not all of (lb, seq] was taken; the receiver knows how much."""
    assert lost_acknowledgements() == (0, 0)


def test_without_d4_weight_is_made() -> None:
    """D4: the paper's two numbers count what was taken already."""
    with of("D4"):
        assert lost_acknowledgements()[0] > WEIGHT


# D5.


def restarted() -> list[ViewId]:
    """A process restarts at once, and its peers go on gossiping for a while. The instances of its former life that the new one begins."""
    terms = Terms("x", 300.0, 120.0, "fair", "demand", 3, steady=True)
    group = LimitGroup(3, 2, 3, [terms], lambda name: [{"x": Appetite(100.0, declared=True)}], config=BUSY, checked=False)
    group.run(10.0)
    old = group.limiter("c0").standing.inst
    begun: list[ViewId] = []

    def listen(host: LabHost, event: Event) -> None:
        if isinstance(event, InstanceBegan) and host.me.name == "c0" and event.inst == old:
            begun.append(event.inst)

    group.world.listeners.append(listen)
    group.crash("c0")
    group.start("c0")
    group.run(1.0)
    return begun


def test_what_is_meant_for_a_life_reaches_no_other() -> None:
    """D5, F3: a new life waits for a view that lists it."""
    with without(never_quiet):
        assert restarted() == []


def test_without_d5_a_new_life_joins_the_instance_of_the_former_one() -> None:
    """D5: the bounds of its messages lead to what the former life took."""
    with without(never_quiet), of("D5"):
        assert restarted()


# D6.


def time_to_repair() -> float:
    """Of 24 members with b = 1 one loses a message. Epochs until its receiver has acknowledged what it carried."""
    group = Group(24, config=LimitsConfig(branching=1))
    group.limit(R, arrives=[20.0] * 24, share="demand")
    group.install(5)
    group.run(2.0)
    lost: list[str] = []

    def lose(source: str, to: str, message: Message) -> bool:
        if isinstance(message, Gossip) and source == "m00" and not lost:
            lost.append(to)
            return True
        return False

    group.loses = lose
    group.run(2 * EPOCH)
    begun = group.now
    (receiver,) = lost
    sums = group[0].limiter.sums
    assert sums is not None
    while sums.ledger(group.stands[receiver].me).is_open and group.now < begun + 30.0:
        group.run(EPOCH / 5)
    return (group.now - begun) / EPOCH


def test_a_lost_share_goes_again_in_the_next_epoch() -> None:
    """D6: not at the next random choice."""
    assert time_to_repair() <= 1.0


def test_without_d6_it_waits_until_its_receiver_is_chosen() -> None:
    """D6: n/b epochs in the mean."""
    with of("D6"):
        assert time_to_repair() > 3.0


# D7.


def idle_share() -> float:
    """What a member may use at once that wants nothing, beside three that want more than there is."""
    group = Group(4)
    group.limit(400.0, arrives=[800.0, 800.0, 800.0, 0.0], share="demand")
    group.install(5)
    group.run(20.0)
    return group[3].used


def test_an_idle_member_can_start_at_once() -> None:
    """D7: a part of the limit is split equally."""
    assert idle_share() == pytest.approx(0.05 * 100.0, rel=0.01)


def test_without_d7_an_idle_member_has_nothing() -> None:
    """D7: its first request waits for gossip."""
    with of("D7"):
        assert idle_share() < 0.1


# D8.


def falls() -> float:
    """Six members, 40 and 20 flows, and 40 drop to 4: the largest sum of shares, as a part of the limit."""
    group = Group(6)
    group.limit(6.0, arrives=[0.0] * 6, share="demand", reserve=0.0)
    for stand, flows in zip(group, (40.0, 20.0, 1e-6, 1e-6, 1e-6, 1e-6), strict=True):
        stand.users[API].user = flows
    group.install(5)
    group.run(10.0)
    group[0].users[API].user = 4.0
    peak = 0.0
    for _ in range(80):
        group.run(EPOCH / 8)
        peak = max(peak, group.total / 6.0)
    return peak


def test_a_demand_that_falls_makes_no_share_jump() -> None:
    """D8: less is taken out slowly, and of two estimates the larger one counts (H273)."""
    assert falls() < 1.3


def test_without_d8_an_estimate_is_negative() -> None:
    """D8: 60 - 6 * 36 < 0; what it would give to its peers is a debt."""
    with of("D8"), pytest.raises(AssertionError, match="an amount is never negative"):
        falls()


# D9.


def loss_after_a_view_change() -> float:
    """A harmless view change at 24 members: what the busy one could not use, in seconds of its share."""
    group = Group(24)
    group.limit(2400.0, arrives=[1600.0, *([20.0] * 23)], share="demand")
    group.install(5)
    group.run(25.0)
    before = group[0].used
    group.install(6)
    lost = 0.0
    for _ in range(200):
        group.run(0.05)
        lost += max(0.0, before - group[0].used) * 0.05
    return lost / before


def test_a_new_instance_is_believed_step_by_step() -> None:
    """D9: the first estimates of a new instance are far off, and count for next to nothing."""
    assert loss_after_a_view_change() < 0.3


@pytest.mark.parametrize("ablation", [ewma_blending, ablations.no_blending])
def test_without_d9_the_busy_member_waits(ablation: ablations.Ablation) -> None:
    """D9: the paper's moving average keeps the outlier with which an instance begins; without blending it is believed at once."""
    with without(ablation):
        assert loss_after_a_view_change() > 1.0


# D11.


def restart_with_less_than_its_part() -> float:
    """A process that gave its quota away restarts, and has a view of its own while the others still count on theirs: the largest sum."""
    group = exact_group()
    group.restart(0)
    stand = group[0]
    stand.learn(API, next(iter(group[1].specs.items()))[1])
    stand.use(API, 600.0)
    stand.views.install(view_of(6, [stand.me]))
    peak = 0.0
    for _ in range(int((SETTLE - 0.1) / 0.1)):
        group.run(0.1)
        peak = max(peak, group.total / R)
    return peak


def test_a_process_begins_with_nothing() -> None:
    """D11: until no member can use what its former life gave away."""
    assert restart_with_less_than_its_part() <= 1.0 + 1e-9


def test_without_d11_its_part_is_used_twice() -> None:
    """D11: by itself, and by those that it was given to."""
    with of("D11"):
        assert restart_with_less_than_its_part() > 1.2


# D13.


def panic_of_a_giver() -> float:
    """A member that gave its quota away loses its lease while the others count on the view: the largest sum."""
    group = exact_group()
    group[0].views.lose()
    group[0].users[API].arrives = 600.0
    peak = 0.0
    for _ in range(40):
        group.run(0.1)
        peak = max(peak, group.total / R)
    return peak


def test_in_panic_an_exact_member_has_no_more_than_before() -> None:
    """D13: others use what it gave."""
    assert panic_of_a_giver() <= 1.0 + 1e-9


def test_without_d13_panic_exceeds_the_limit() -> None:
    """D13: the paper's 1/n at once."""
    with of("D13"):
        assert panic_of_a_giver() > 1.2


# D14.


def isolated() -> float:
    """A member without one good link, which wants more from then on: the error of its estimate 15 s later, as a part of the sum."""
    group = Group(6)
    group.limit(R, arrives=[100.0, 50.0, 50.0, 50.0, 50.0, 50.0], share="demand")
    group.install(5)
    group.run(10.0)
    group.cut = {pair for other in group.stands for pair in (("m00", other), (other, "m00"))}
    group.run(8.0)
    group[0].users[API].arrives = 350.0
    group.run(15.0)
    return abs(group[0].of().aggregates[KEY] / 600.0 - 1.0)


def test_an_isolated_member_exchanges_halves() -> None:
    """D14: over the overlay, and gets as much of the others as it gives."""
    assert isolated() < 0.1


def test_without_d14_its_estimate_explodes() -> None:
    """D14: it only gives, until it has next to nothing."""
    with of("D14"):
        assert isolated() > 0.5


# D15.


def two_views_that_reach_each_other() -> int:
    """Two views whose members reach each other: weight that is too much or missing in one of them, when all is acknowledged."""
    group = Group(4)
    group.limit(R, arrives=[100.0] * 4, share="demand")
    group.install(5)
    group.run(5.0)
    group.install(6, 0, 1)
    group.install(7, 2, 3)
    group.run(20.0)
    sums = [stand.limiter.sums for stand in (group[0], group[1])]
    return sum(each.w + each.outstanding_weight for each in sums if each is not None) - 2 * WEIGHT


def test_views_do_not_mix() -> None:
    """D15: only members of the own view are chosen, and what is of an older instance is refused."""
    assert two_views_that_reach_each_other() == 0


def test_without_d15_weight_goes_from_one_to_the_other() -> None:
    """D15: what a view counts is not its own."""
    with of("D15"):
        assert two_views_that_reach_each_other() != 0


# D16.


def after_a_pause() -> float:
    """A process was stopped for longer than its lease, and quota waits in its socket: what it holds then."""
    stand = Stand()
    stand.limit(R, arrives=600.0, policy="exact", fleet=3)
    stand.views.install(view_of(5, (A, B, C)))
    stand.settle()
    stand.views.leased_until = stand.host.now + 1.0
    stand.host.clock += 10.0
    stand.limiter.on_away(10.0)
    stand.give(B, 0.5)
    return stand.q


def test_after_a_pause_the_lease_comes_first() -> None:
    """D16, F10: what waited is read by a member in panic."""
    assert after_a_pause() == 1.0


def test_without_d16_a_resumed_process_takes_quota() -> None:
    """D16: no view promised it that the giver and its view are still there."""
    with of("D16"):
        assert after_a_pause() == 1.5


# D18.


SEED = 4  # with it m00 has something for m01 first


def one_way_cut() -> set[str]:
    """What the far end of a cut in one direction black-lists as soon as the near end does."""
    group = Group(8, config=LimitsConfig(branching=1), seed=SEED)
    group.limit(R, arrives=[100.0] * 8, share="demand")
    group.install(5)
    group.run(2.0)
    group.cut = {("m00", "m01")}
    for _ in range(400):
        group.run(0.02)
        if group[0].limiter.links.black:
            break
    group.run(0.02)
    return {peer.name for peer in group[1].limiter.links.black}


def test_both_ends_black_list() -> None:
    """D18: the first reconciliation tells the other end."""
    assert one_way_cut() == {"m00"}


def test_without_d18_the_other_end_goes_on() -> None:
    """D18: it gives to a member that gives nothing back, until it notices by itself."""
    with of("D18"):
        assert one_way_cut() == set()


# D20.


def lapsed_in_an_instance_known_from_a_peer() -> float:
    """The trace of D20: a member with little quota is in panic, knows instance 13 from a peer, lapses, and is given view 10."""
    stand = Stand()
    stand.limit(R, arrives=600.0, policy="exact", fleet=3)
    stand.views.install(view_of(5, (A, B, C)))
    stand.settle()
    stand.holding.q = stand.holding.q * 85 // 1000  # It gave the rest away.
    stand.views.lose(leave=True)
    stand.gossip(13, B)
    stand.views.refuses = True
    stand.pass_time(2 * SETTLE)
    assert stand.q == 1.0
    stand.views.install(view_of(10, (A, B, C)))
    stand.pass_time(2 * SETTLE)
    stand.views.install(view_of(13, (A, B, C)))
    stand.pass_time(2 * SETTLE)
    return stand.q


def test_a_lapse_is_the_raise() -> None:
    """D20: one per instance, and whatever view comes then that is no new instance, it trips."""
    assert lapsed_in_an_instance_known_from_a_peer() == 1.0


def test_without_d20_it_is_raised_once_more() -> None:
    """D20: its 1/n, and once more what it had given away."""
    with of("D20"):
        assert lapsed_in_an_instance_known_from_a_peer() == pytest.approx(1.915)


# D21.


def one_hog() -> list[float]:
    """900 wanted by one process, 50 by each of seven, of 1000: what the seven get."""
    group = Group(8)
    group.limit(1000.0, arrives=[900.0, *([50.0] * 7)])
    group.install(5)
    group.run(20.0)
    return group.shares[1:]


def test_small_wants_are_satisfied_first() -> None:
    """D21: water-filling; each of the seven has what it wants."""
    assert min(one_hog()) >= 50.0


def test_without_d21_they_queue_for_ever() -> None:
    """D21: in proportion to demand each gets 40 and something."""
    with of("D21"):
        assert max(one_hog()) < 47.0


# D22.


def workers_that_do_not_know() -> float:
    """A worker says nothing for a while after its agent promised quota to another member: what both may use, as a part of R."""
    stand = Stand()
    stand.limit(R, arrives=20.0, policy="exact", fleet=3)
    stand.views.install(view_of(5, (A, B, C)))
    stand.settle()
    stand.epochs(12)
    stand.know(busy=2)
    stand.users[API].slow = True
    stand.peers_answer = False
    stand.ask(B, 0.5)
    stand.epochs(1)
    return stand.users[API].told / R + stand.given() / 3


def test_a_give_waits_for_the_workers() -> None:
    """D22: it leaves when they are known to use no more than what is left."""
    assert workers_that_do_not_know() <= 1 / 3 + 1e-9


def test_without_d22_both_use_it() -> None:
    """D22: "q -= give" is not "I use less"."""
    with of("D22"):
        assert workers_that_do_not_know() == pytest.approx(1 / 3 + 0.5 / 3)


# D23.


def panic_without_leaving() -> float:
    """A member that gave half of its quota away hears nothing for ``settle``, and its server goes on listing it: what it takes."""
    stand = Stand()
    stand.limit(R, arrives=20.0, policy="exact", fleet=3)
    stand.views.install(view_of(5, (A, B, C)))
    stand.settle()
    stand.epochs(12)
    stand.know(busy=2)
    stand.ask(B, 0.5)
    stand.epochs(1)
    assert stand.q == 0.5
    stand.views.refuses = True
    stand.views.lose()
    stand.pass_time(SETTLE + 2 * EPOCH)
    return stand.q


def test_a_lapse_counts_from_leaving() -> None:
    """D23: as long as it is attached, others keep what it gave."""
    assert panic_without_leaving() == 0.5


def test_without_d23_it_is_too_early() -> None:
    """D23: counted from the panic it takes its whole part while others use half of it."""
    with of("D23"):
        assert panic_without_leaving() == 1.0
