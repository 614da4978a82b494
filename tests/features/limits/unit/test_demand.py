"""What a member demands of a limit.  Spec: limits 5.2; paper 003, 3.1."""

from __future__ import annotations

from math import inf, nan

import pytest

from holdfast.features.limits.protocol.demand import FLOOR, FlowDemand, RequestDemand, UserDemand
from holdfast.features.limits.protocol.outlet import Wants
from tests.features.limits.stand import A, B, C, Stand, view_of

EPOCH = 0.5


def test_what_arrives_is_smoothed_quicker_up_than_down() -> None:
    """Limits 5.2: offered += alpha (x - offered), with alpha_up if x is larger."""
    demand = RequestDemand(0.5, 0.25, 0.25)
    assert demand.look(Wants(50, 0), EPOCH, 1000) == 50
    assert demand.look(Wants(50, 0), EPOCH, 1000) == 75
    assert demand.look(Wants(0, 0), EPOCH, 1000) == 75 * 0.75


def test_what_waits_is_demanded_away_within_the_horizon() -> None:
    """Limits 5.2: want = offered + waiting cost / horizon; the waiting part is not smoothed."""
    demand = RequestDemand(0.5, 0.25, 0.25)
    assert demand.look(Wants(0, 10), EPOCH, 1000) == 40
    assert demand.look(Wants(0, 0), EPOCH, 1000) == 0


def test_a_polling_loop_cannot_inflate_demand_without_end() -> None:
    """Limits 5.2: refused attempts count too, at most 4 L in total."""
    demand = RequestDemand(1.0, 1.0, 0.25)
    assert demand.look(Wants(1_000_000, 0), EPOCH, 10) == 40


def test_attempts_of_a_member_without_a_share_are_heard() -> None:
    """H277: 4 L of nothing is nothing; one unit of cost counts in any epoch, and four times the share from then on."""
    demand = RequestDemand(1.0, 1.0, 0.25)
    assert demand.look(Wants(1000, 0), EPOCH, 0.0) == 2


def test_an_epoch_without_length_changes_no_average() -> None:
    """D16: epochs missed are not made up, and two looks at one instant are one."""
    demand = RequestDemand(0.5, 0.25, 0.25)
    demand.look(Wants(50, 0), EPOCH, 1000)
    assert demand.look(Wants(50, 1), 0.0, 1000) == 54


@pytest.mark.parametrize("wrong", [nan, inf, -1.0])
def test_an_answer_that_is_no_demand_leaves_the_last_one_standing(wrong: float) -> None:
    """Limits 5.2, a user-defined demand: what is no number, or is negative, counts as not said."""
    demand = UserDemand()
    assert demand.look(Wants(1000, 1000), EPOCH, 10) == 0
    assert demand.look(Wants(0, 0, 7.0), EPOCH, 10) == 7
    assert demand.look(Wants(0, 0, wrong), EPOCH, 10) == 7
    assert demand.look(Wants(0, 0), EPOCH, 10) == 7


class Flows:
    """A member with equal flows, in a group whose other members weigh ``others``."""

    def __init__(self, largest: float, others: float, whole: float = 6.0) -> None:
        self.demand = FlowDemand(lambda: largest, lambda: others + self.demand.smoothed.value, lambda: whole, alpha_up=1.0, alpha_down=1.0)

    def look(self, use: float, share: float, even: float = 0.0) -> float:
        return self.demand.look(Wants(use * EPOCH, 0), EPOCH, share, even)


def test_a_member_whose_share_is_used_up_weighs_as_many_as_its_flows() -> None:
    """Limits 5.2, flows: saturated if use >= 0.95 L: D = L / rate of the largest flow."""
    assert Flows(largest=0.1, others=20).look(use=3.9, share=4.0) == pytest.approx(40)


def test_a_share_below_an_even_part_is_used_up_when_it_is_used() -> None:
    """Limits 5.2, flows, F6: what flows use is compared with what they may use. An even part is for what arrives at requests (H362)."""
    assert Flows(largest=0.1, others=20).look(use=1.0, share=1.0, even=2.0) == pytest.approx(10)


def test_another_one_weighs_what_yields_just_what_it_uses() -> None:
    """Limits 5.2, flows: D = d (A - D) / (R' - d), d = min(1.1 use, 0.95 R'): then D / A of R' is d."""
    weight = Flows(largest=0.1, others=20).look(use=1.0, share=4.0)
    assert 6.0 * weight / (20 + weight) == pytest.approx(1.1)


def test_a_member_alone_weighs_one_and_an_idle_one_next_to_nothing() -> None:
    """Limits 5.2, flows: floor 1e-6; if A = D then 1."""
    assert Flows(largest=0.1, others=0).look(use=1.0, share=4.0) == 1.0
    assert Flows(largest=0.1, others=20).look(use=0.0, share=4.0) == FLOOR


def test_a_member_without_a_share_counts_what_arrives_up_to_four_even_parts() -> None:
    """H362: the next life of an agent has nothing of an exact limit at first, and its worker goes on with what the former one told."""
    for arrives, counted in ((50.0, 50.0), (5000.0, 800.0)):
        stand = Stand()
        stand.limit(600.0, arrives=arrives, policy="exact", fleet=3)
        stand.views.install(view_of(5, (A, B, C)))
        stand.epochs(9)
        assert stand.of().used == 0.0
        assert stand.of().want == pytest.approx(counted, rel=0.01)
