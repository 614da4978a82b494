"""From estimates to shares: policies, panic, fleets, blending, starving, pace.

Spec: limits 1, 5.2, 5.3, 5.6, 5.7, 9, D3, D7, D9, D12, D26, H269.
"""

from __future__ import annotations

from math import inf

import pytest

from holdfast.bounds import MEMBERS_MAX
from holdfast.errors import ConfigError
from holdfast.events import Event, LimitChanged, Starved
from holdfast.features.limits.protocol import policy
from holdfast.features.limits.protocol.config import AMOUNT_MAX, DEMAND_MAX, QUOTA, LimitsConfig, micro
from holdfast.features.limits.protocol.pace import Pace
from holdfast.features.limits.protocol.specs import make
from holdfast.features.limits.protocol.survey import limits_of, look_at, member_of, metrics_of
from tests.features.limits.stand import API, EPOCH, KEY, SETTLE, A, B, C, D, Group, Stand, view_of

LIVES3 = (A, B, C)


def test_the_whole_of_a_view() -> None:
    """Limits 5.3 step 6, D3; paper 003, 3.1: G = R * min(1, |V|/n)."""
    assert policy.whole(600.0, 3, 6) == 300.0
    assert policy.whole(600.0, 8, 6) == 600.0
    assert policy.whole(600.0, 3, 0) == 0.0


def test_fair_follows_the_target() -> None:
    """Limits 5.3, 5.7: L = T, and R/n at once in panic."""
    assert policy.fair(250.0, 100.0, panic=False) == 250.0
    assert policy.fair(20.0, 100.0, panic=True) == 100.0


@pytest.mark.parametrize(
    "used, target, panic, lapsed, may_grow, expected",
    [
        (100.0, 250.0, False, False, True, 250.0),
        (100.0, 250.0, False, False, False, 100.0),
        (100.0, 50.0, False, False, False, 50.0),
        (150.0, 50.0, True, False, False, 100.0),
        (30.0, 50.0, True, False, False, 30.0),
        (30.0, 50.0, True, True, False, 100.0),
    ],
)
def test_strict_grows_only_when_it_may(used: float, target: float, panic: bool, lapsed: bool, may_grow: bool, expected: float) -> None:
    """Limits 5.3, 5.7, D13, D20: less at once; more when settled; in panic never more than it had, R/n after the lapse."""
    assert policy.strict(used, target, 100.0, panic=panic, lapsed=lapsed, may_grow=may_grow) == expected


def test_what_quota_is_worth() -> None:
    """Limits 5.5: L = R q / (Q n), and back."""
    assert policy.exact(600.0, QUOTA * 3 // 2, 6) == 150.0
    assert policy.quota_for(150.0, 600.0, 6) == QUOTA * 3 // 2
    assert (policy.exact(600.0, QUOTA, 0), policy.quota_for(5.0, 0.0, 3)) == (0.0, 0)


def test_when_orphans_end() -> None:
    """Limits 5.1, D11: before the agent's next life may claim the same part, counted by clocks that run 1 % apart."""
    assert 10.0 < policy.ends_at(10.0, SETTLE, 1.5) <= 10.0 + (SETTLE / 1.01 * 0.99) - 1.5
    assert policy.ends_at(10.0, inf, 1.5) == inf


def test_a_first_process_alone_and_auto() -> None:
    """D3: with ``auto`` nothing is known of the others before the first view; after ``settle`` it is taken to be alone."""
    stand = Stand()
    users = stand.limit(600.0)
    stand.epochs(4)
    assert users.usable == 0.0
    stand.settle()
    assert users.usable == 600.0
    stand.views.install(view_of(5, LIVES3))
    stand.epochs(2)
    stand.views.lose()
    stand.epochs(1)
    assert users.usable == pytest.approx(200.0)


def test_auto_is_the_largest_view_of_late() -> None:
    """D3: each side of a partition works with |V|/n of what was there before."""
    stand = Stand()
    users = stand.limit(600.0, arrives=600.0)
    stand.views.install(view_of(5, (A, B), fleet=6))
    stand.epochs(2)
    stand.know(busy=0, others=1)
    stand.epochs(12)
    assert users.usable <= 200.0 + 1e-6


def test_a_fair_process_begins_with_its_part() -> None:
    """Limits 5.7: fair does not wait for a view where n is given."""
    stand = Stand()
    users = stand.limit(600.0, fleet=6)
    assert users.usable == pytest.approx(100.0)


def test_the_first_target_is_an_even_part() -> None:
    """D12, paper 003, 6.1: before anything is known of the others no member takes more than G/|V|."""
    group = Group(6)
    group.limit(600.0, arrives=[600.0] * 6)
    group.install(5)
    for _ in range(20):
        group.run(0.2)
        assert group.total <= 630.0


def test_water_filling() -> None:
    """Limits 5.2, D21: who wants little gets it, the rest is split evenly among those who want more."""
    group = Group(8)
    group.limit(1000.0, arrives=[900.0, *([50.0] * 7)])
    group.install(5)
    group.run(15.0)
    assert group.shares == pytest.approx([643.0, *([51.0] * 7)], rel=0.01)


def test_weights() -> None:
    """Limits 5.2, 10: a member with weight 0.5 gets half of what another one gets that wants more, too."""
    group = Group(3)
    group.limit(900.0, arrives=[900.0, 900.0, 0.0])
    group[1].users[API].weight = 0.5
    group.install(5)
    group.run(15.0)
    assert group[0].used == pytest.approx(2 * group[1].used, rel=0.05)


def test_an_idle_member_may_start() -> None:
    """D7: reserve: it has a part of an even split without asking for it, under both ways to share."""
    for share in ("maxmin", "demand"):
        group = Group(4)
        group.limit(400.0, arrives=[800.0, 800.0, 800.0, 0.0], share=share, reserve=0.2)
        group.install(5)
        group.run(15.0)
        assert group[3].used == pytest.approx(20.0, rel=0.01)


def test_members_on_the_edge_stay_on_their_side() -> None:
    """H269: wants between an even split and what a saturated member gets do not make members change sides in turn."""
    group = Group(6)
    group.limit(600.0, arrives=[500.0, 140.0, 130.0, 120.0, 10.0, 10.0])
    group.install(5)
    group.run(20.0)
    for _ in range(40):
        group.run(EPOCH)
        assert group.total == pytest.approx(600.0, rel=0.02)
        assert group[1].used >= 140.0


def test_more_than_before_is_wanted_at_once() -> None:
    """H269: a member that wants much more than it said does not go over step by step."""
    group = Group(6)
    group.limit(600.0, arrives=[10.0] * 6)
    group.install(5)
    group.run(15.0)
    group[0].users[API].arrives = 500.0
    group.run(6 * EPOCH)
    assert group[0].used > 350.0


def test_after_a_view_change_what_was_known_counts() -> None:
    """D9: the estimate of the former instance counts for less and less; scaled up when the view grows, or a merge would double shares."""
    stand = Stand()
    stand.limit(600.0, arrives=60.0, share="demand")
    stand.views.install(view_of(5, LIVES3))
    stand.know(busy=0)
    stand.epochs(2)
    limit = stand.of()
    limit.aggregates[KEY] = 300.0
    stand.views.install(view_of(6, (A, B, C, D, D._replace(boot=9), D._replace(boot=8))))
    assert limit.aggregates[KEY] == 600.0
    limit.aggregates[KEY] = 300.0
    stand.views.install(view_of(7, (A, B)))
    assert limit.aggregates[KEY] == 300.0


def test_panic_forgets() -> None:
    """Limits 5.6, 5.7: leaving panic there is no blending."""
    stand = Stand()
    stand.limit(600.0, arrives=60.0, share="demand")
    stand.views.install(view_of(5, LIVES3))
    stand.epochs(3)
    stand.views.lose()
    assert stand.of().aggregates == {}


def test_a_rate_that_changes_while_it_runs() -> None:
    """Limits 5.10: a member applies a version on receipt."""
    stand = Stand()
    users = stand.limit(600.0, fleet=6)
    told: list[Event] = []
    stand.limiter.subscribe(told.append)
    stand.specs.change(API, rate=300.0)
    stand.epochs(1)
    assert users.usable == pytest.approx(50.0)
    stand.specs.penalize(API, 10.0, 0.5)
    stand.epochs(1)
    assert users.usable == pytest.approx(25.0)
    stand.host.wall_clock += 11.0
    stand.epochs(1)
    assert users.usable == pytest.approx(50.0)
    assert [event.rate for event in told if isinstance(event, LimitChanged)] == [300.0, 150.0]


def test_a_limit_that_is_removed_while_it_is_used() -> None:
    """Limits 5.10: nothing may be used; made again, it goes on; closed and removed, it is forgotten."""
    stand = Stand()
    users = stand.limit(600.0, fleet=6)
    stand.specs.remove(API)
    stand.epochs(1)
    assert users.usable == 0.0
    stand.specs.set(API, make(600.0, 10.0, fleet=6))
    stand.epochs(1)
    assert users.usable == pytest.approx(100.0)
    stand.limiter.close(API)
    stand.specs.remove(API)
    stand.epochs(1)
    assert stand.limiter.allocator.limits == {}
    with pytest.raises(ConfigError, match="there is no such limit"):
        stand.use()


def test_a_drain_gives_everything_up() -> None:
    """Limits 5.5, D22: nothing is wanted any more, and what is held goes to those that ask; it is over when no worker may use anything."""
    stand = Stand()
    users = stand.limit(600.0, arrives=200.0, policy="exact", fleet=3)
    stand.views.install(view_of(5, LIVES3))
    stand.settle()
    users.slow = True
    stand.limiter.retire()
    before = stand.limiter.retired
    stand.ask(B, 2.0)
    stand.epochs(2)
    assert (stand.q, stand.given()) == (0.0, 0.0)
    users.confirm()
    stand.ask(C, 2.0)
    stand.epochs(1)
    assert (before, stand.limiter.retired) == (False, True)
    assert stand.limiter.quotas.promises == []


def test_callers_that_wait_for_nothing() -> None:
    """Limits 9: waiters, and L below 1 % of R for 10 s; told once, and again only after it was better."""
    stand = Stand()
    users = stand.limit(600.0, policy="exact", fleet=3)
    users.waiting = 5.0
    stand.views.install(view_of(5, LIVES3))
    stand.views.change()
    stand.pass_time(9.5)
    assert stand.host.events(Starved) == []
    stand.pass_time(20.0)
    assert [event.name for event in stand.host.events(Starved)] == [API]
    assert 10.0 <= stand.host.events(Starved)[0].seconds < 11.0


def test_pace() -> None:
    """D26: quiet after 10 epochs without news of the demands and 4 of the estimates; then one peer in every fourth epoch."""
    pace = Pace()
    for epoch in range(10):
        pace.look({1: 100.0}, {1: 500.0})
        assert pace.peers(3) == 3, epoch
    pace.look({1: 100.9}, {1: 504.0})
    assert pace.is_quiet
    spoken = []
    for _ in range(8):
        pace.look({1: 100.0}, {1: 500.0})
        spoken.append(pace.peers(3))
    assert sorted(spoken) == [0, 0, 0, 0, 0, 0, 1, 1]
    pace.look({1: 100.0}, {1: 506.0})
    assert pace.peers(3) == 3
    for _ in range(20):
        pace.look({1: 100.0}, {1: 506.0})
    pace.look({1: 100.0, 2: 1.0}, {1: 506.0})
    assert pace.peers(3) == 3


def test_numbers_have_limits() -> None:
    """Limits 4: each out of its range is refused by its name; b follows from the size."""
    assert [LimitsConfig().fanout(size) for size in (1, 2, 6, 60, 182)] == [1, 1, 3, 6, 8]
    for field, value in (("epoch", 0.01), ("loss", 2), ("probe", 0.5), ("alpha_up", 0.0), ("branching", 17), ("adopt_timeout", inf)):
        with pytest.raises(ConfigError, match=f"limit_{field}: "):
            LimitsConfig(**{field: value})  # type: ignore[arg-type]


def test_amounts_stay_within_what_one_member_may_want() -> None:
    """D1, F17: whatever a callable returns, the sum of the largest group fits 64 bits."""
    assert [micro(value) for value in (0.5, -3.0, inf, float("nan"), 1e300)] == [500_000, 0, 0, 0, DEMAND_MAX]
    assert 0.9 * 10**15 < DEMAND_MAX <= 10**15
    assert MEMBERS_MAX // 2 * DEMAND_MAX <= AMOUNT_MAX


def test_what_people_see() -> None:
    """Limits 9, 10: one look at each limit and at the member; numbers for metrics."""
    stand = Stand()
    users = stand.limit(600.0, arrives=150.0, policy="exact", fleet=3)
    assert look_at(stand.limiter, "other") is None
    (look,) = limits_of(stand.limiter)
    assert (look.state, look.used, look.quota, look.rate, look.fleet, look.auto) == ("starting", 0.0, None, 600.0, 3, False)
    stand.views.install(view_of(5, LIVES3))
    stand.settle()
    stand.know(busy=0)
    stand.epochs(2)
    (look,) = limits_of(stand.limiter)
    assert (look.state, look.quota) == ("stable", 1.0)
    assert (look.used, look.told) == pytest.approx((200.0, 200.0))
    assert 140.0 < look.aggregate <= 200.0  # what it wants, and what others may have
    stand.views.change()
    assert limits_of(stand.limiter)[0].state == "changing"
    member = member_of(stand.limiter, stand.host.now)
    assert (member.size, member.panic_for, member.settles_in, member.black) == (3, None, None, ())
    stand.views.lose()
    stand.host.pass_time(3.0)
    assert limits_of(stand.limiter)[0].state == "panic"
    assert member_of(stand.limiter, stand.host.now).panic_for == pytest.approx(3.0)
    numbers = metrics_of(stand.limiter, stand.host.now)
    assert (numbers["size"], numbers["limits"], numbers["panic"]) == (3.0, 1.0, 1.0)
    assert users.usable == pytest.approx(200.0)
