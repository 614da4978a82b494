"""Every checker of limits fails when what it forbids is planted, and not before.  Spec: limits 7 (RL1 to RL9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from holdfast.features.limits.bucket import DEPTH_MIN, MICRO, SECOND
from holdfast.features.limits.lab.admitted import Admitted
from holdfast.features.limits.lab.crews import Appetite
from holdfast.features.limits.lab.fleet import Fleet
from holdfast.features.limits.lab.groups import LimitGroup
from holdfast.features.limits.lab.settled import PATIENCE, LimitsSettled
from holdfast.features.limits.lab.terms import Policy, Share, Terms, shares_of
from holdfast.features.limits.protocol.config import QUOTA, key_of
from holdfast.features.limits.protocol.links import Cut
from holdfast.features.limits.protocol.outlet import Allotment
from holdfast.features.views.lab.users import ViewUser
from holdfast.lab.violation import Violation

FORMED = 12.0  # seconds: one view, ``settle``, and shares that have moved
WANTS = {"c0": 300.0, "c1": 60.0, "c2": 30.0}


def terms_of(policy: Policy, share: Share = "demand", fleet: int = 3) -> Terms:
    return Terms("x", 300.0, 120.0, policy, share, fleet, steady=True)


def appetites(name: str) -> Sequence[Mapping[str, Appetite]]:
    return [{"x": Appetite(WANTS[name], declared=True)}]


def formed(policy: Policy = "exact", share: Share = "demand") -> LimitGroup:
    """Three members under all checkers, at rest."""
    group = LimitGroup(3, 2, 3, [terms_of(policy, share)], appetites)
    group.run(FORMED)
    assert group.is_one()
    return group


def plant(group: LimitGroup, name: str, action: Callable[[], object]) -> str:
    """Which invariant does a checker name, at the latest a second later?"""
    group.world.at(group.world.now, lambda: group.world.step(group.world.nodes[name], lambda: (action(), None)[1]))
    with pytest.raises(Violation) as raised:
        group.run(1.0)
    return raised.value.invariant


# RL1 to RL3.


def test_rl1_a_weight_that_is_made_is_found() -> None:
    """RL1: one part in 2^32 more than members brought in."""
    group = formed()
    sums = group.limiter("c0").sums
    assert sums is not None
    assert plant(group, "c0", lambda: setattr(sums, "w", sums.w + 1)) == "RL1 weight"


def test_rl2_a_portion_that_is_made_is_found() -> None:
    """RL2: one micro-unit more than was reported."""
    group = formed()
    sums, key = group.limiter("c1").sums, key_of("x")
    assert sums is not None
    assert plant(group, "c1", lambda: sums.p.update({key: sums.p[key] + 1})) == "RL2 demand"


def test_rl3_a_number_that_was_never_given_is_found() -> None:
    """RL3: what was taken was given."""
    group = formed()
    sums, peer = group.limiter("c0").sums, group.world.nodes["c1"].me
    assert sums is not None
    ledger = sums.ledger(peer)
    assert plant(group, "c0", lambda: setattr(ledger, "taken", ledger.taken + 50)) == "RL3 no double take"


def test_rl3_more_than_was_given_is_found() -> None:
    """RL3: under one number, a peer took more than was given under it."""
    group = formed()
    group.world.network.partition("cut", [["c0"], ["c1"]])  # What c1 gives from now on stays open.
    group.run(1.0)
    sums, peer = group.limiter("c0").sums, group.world.nodes["c1"].me
    assert sums is not None
    ledger = sums.ledger(peer)
    given = group.limiter("c1").sums
    assert given is not None
    assert given.ledger(group.world.nodes["c0"].me).is_open

    def take() -> None:
        ledger._entries.append((ledger.taken + 1, {-1: 1 << 40}))
        ledger.taken += 1

    assert plant(group, "c0", take) == "RL3 no double take"


# RL4 and RL5.


def test_rl4_quota_that_is_made_is_found() -> None:
    """RL4: all of them may use R together and no more."""
    group = formed()
    holding = group.limiter("c2").quotas.holdings[key_of("x")]

    def grow() -> None:
        holding.q += QUOTA // 10
        group.limiter("c2").allocator.allot_all()

    assert group.fleet.peaks["x"] <= 1.0 + 1e-9
    assert plant(group, "c2", grow) == "RL4 quota"


def test_rl4_a_worker_that_was_told_too_much_is_found() -> None:
    """RL4, D22: what processes may use counts, whatever their agent may use."""
    group = formed()
    part = group.fleet.crews["c2"].processes[0].parts["x"]
    assert part.tell is not None
    told = part.tell

    def grow() -> None:
        part.tell = told._replace(rate=10 * told.rate + 100.0, until=told.until + 60.0)
        group.fleet.crews["c2"].on_change()

    assert plant(group, "c2", grow) == "RL4 quota"


def test_rl4_quota_that_is_lost_is_found_at_rest() -> None:
    """RL4 at rest: the sum is |V| Q, exactly."""
    group = formed()
    settled = checker(group)
    group.run(10.0)
    assert settled.why(group.world) == ""
    group.limiter("c0").quotas.holdings[key_of("x")].q -= 1
    assert "parts are held" in settled.why(group.world)


def test_rl5_a_strict_sum_far_above_r_is_found() -> None:
    """RL5: above 1.2 R in no run; a little above R is counted."""
    group = formed("strict")

    def grow(rate: float) -> None:
        outlet = group.desk("c1").outlets["x"]
        outlet.allot(Allotment(rate, outlet.allotted.until, 100.0, limit=300.0, burst=120.0))

    group.world.step(group.world.nodes["c1"], lambda: grow(group.fleet.enforced("c1", "x") + 30.0))
    assert 1.05 < group.fleet.peaks["x"] < 1.15
    assert plant(group, "c1", lambda: grow(200.0)) == "RL5 strict"


def test_a_fair_sum_is_counted_and_no_violation() -> None:
    """Limits 1: fair promises nothing of the moment; the peak is reported."""
    group = formed("fair")
    outlet = group.desk("c1").outlets["x"]
    group.world.step(group.world.nodes["c1"], lambda: outlet.allot(Allotment(290.0, outlet.allotted.until, 100.0, limit=300.0)))
    assert group.fleet.peaks["x"] > 1.5


# RL6 and RL7.


def checker(group: LimitGroup) -> LimitsSettled:
    return next(each for each in group.world.checkers if isinstance(each, LimitsSettled))


def late(group: LimitGroup) -> str:
    """What it fails with when all stays as it is."""
    settled = checker(group)
    settled.why(group.world)
    group.run(PATIENCE + 1.0)
    with pytest.raises(Violation) as raised:
        settled.why(group.world)
    return raised.value.invariant


@pytest.mark.parametrize("share", ["demand", "maxmin"])
def test_rl6_shares_that_are_not_as_wanted_are_found(share: Share) -> None:
    """RL6: in proportion to demand, or filled up; 25 s are enough."""
    group = formed("fair", share)
    group.run(5.0)
    assert checker(group).why(group.world) == ""
    group.fleet.crews["c2"].appetites[0]["x"].rate = 240.0
    group.fleet.crews["c2"].processes[0].parts["x"].appetite = Appetite(30.0, declared=True)  # It says less than it is checked against.
    group.fleet.crews["c2"].wanted = lambda limit: 240.0  # type: ignore[method-assign]
    assert late(group) == "RL6 share"


def test_rl7_a_black_list_that_stays_is_found() -> None:
    """RL7: links that are good are used."""
    group = formed()
    limiter, peer = group.limiter("c0"), group.world.nodes["c1"].me
    limiter.links.black[peer] = Cut(float("inf"))
    assert late(group) == "RL7 whole"


def test_rl7_a_provisional_member_is_found() -> None:
    """RL7: all are in the view that was delivered."""
    group = formed("fair")
    group.limiter("c0").standing.provisional = True
    assert "provisional" in checker(group).why(group.world)


def test_expected_shares_by_hand() -> None:
    """RL6 is checked against these: half of R for 1/2 of the demand beside the reserve; filled up, the small ones get what they want."""
    wants = {"a": 900.0, "b": 50.0, "c": 50.0}
    by_demand = shares_of(Terms("x", 100.0, 1.0, "fair", "demand", 3, reserve=0.0), wants, 3)
    assert by_demand == pytest.approx({"a": 90.0, "b": 5.0, "c": 5.0})
    filled = shares_of(Terms("x", 200.0, 1.0, "fair", "maxmin", 3), wants, 3)
    assert filled == pytest.approx({"a": 98.0, "b": 51.0, "c": 51.0})
    half = shares_of(Terms("x", 200.0, 1.0, "fair", "maxmin", 6), wants, 3)
    assert half == pytest.approx(dict.fromkeys(wants, 100.0 / 3))
    spare = shares_of(Terms("x", 1600.0, 1.0, "fair", "maxmin", 3), wants, 3)
    assert sum(spare.values()) == pytest.approx(1600.0)
    assert spare["b"] == pytest.approx(51.0 + (1600.0 - 1020.0) / 3)


# RL8.


def test_rl8_by_hand() -> None:
    """RL8: in any interval what the rate brings in, and the depth at its start."""
    watched = Admitted(0, DEPTH_MIN, MICRO)
    watched.change(0, 10 * MICRO, 5 * MICRO)
    assert [watched.admit(SECOND, MICRO) > 0 for _ in range(6)] == [False] * 5 + [True]
    again = Admitted(0, 5 * MICRO, MICRO)
    again.change(0, 10 * MICRO, 5 * MICRO)
    assert [again.admit(number * SECOND // 10, MICRO) > 0 for number in range(100)] == [False] * 100
    again.change(10 * SECOND, 0, DEPTH_MIN)
    assert [again.admit(20 * SECOND, MICRO) > 0 for _ in range(2)] == [False, True]


def test_rl8_tokens_from_nowhere_are_found() -> None:
    """RL8 at one bucket."""
    group = formed()
    bucket = group.fleet.crews["c0"].processes[0].parts["x"].bucket

    def fill() -> None:
        bucket.tokens += 500 * MICRO

    assert plant(group, "c0", fill) == "RL8 bucket"


def test_rl8_of_the_fleet_is_found() -> None:
    """RL8 over all buckets: each may keep its own rule, and all together admit too much."""
    group = formed()
    fleet = group.fleet

    def admit() -> None:
        for _ in range(200):
            fleet.crews["c0"].on_admitted("x", 1.0)

    assert plant(group, "c0", admit) == "RL8 bucket"


# RL9.


def test_rl9_views_larger_than_the_fleet_are_found() -> None:
    """RL9: settled views divide n; here n is wrong by one."""
    group = LimitGroup(3, 1, 3, [terms_of("fair", fleet=2)], appetites)
    with pytest.raises(Violation, match=r"RL9 partition: .* are settled in a fleet of 2"):
        group.run(FORMED)


def test_a_calm_group_breaks_nothing() -> None:
    """RL1 to RL9 hold, all is settled, and the shares are as expected."""
    for policy in ("fair", "strict", "exact"):
        group = formed(policy)
        group.run(8.0)
        settled = checker(group)
        assert settled.why(group.world) == ""
        assert settled.worst < 0.03
        assert isinstance(group.fleet, Fleet)
        assert 0.95 < group.fleet.peaks["x"] < 1.2  # H286: three that begin together


def test_users_trip_no_more_when_the_faults_are_over() -> None:
    """RL7: each trip is another view, for which exact limits wait ``settle``; while users trip, nothing can come to rest."""
    group = LimitGroup(3, 3, 2, [Terms("api", 100.0, 10.0, "exact", "maxmin", 2)], lambda name: [{"api": Appetite(50.0)}])
    users = [host.node.use(ViewUser) for host in group.world.alive]
    assert not any(user.calm for user in users)
    checker(group).why(group.world)
    assert all(user.calm for user in users)
