"""Medley: near members are probed more often, and a bag bounds the wait.  Spec: gossip 5.3, G9; R. Yang and others, 2019 and 2022."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import ceil

import pytest

from holdfast.features.gossip.protocol.config import GossipConfig, Target
from holdfast.features.gossip.protocol.distance import POSITION_ROW, position_row
from holdfast.features.gossip.protocol.helpers import helpers_for
from holdfast.features.gossip.protocol.targets import Bag
from tests.features.gossip.stand import Stand, life, rumour

METRES = {"b": 1.0, "c": 1.5, "d": 2.0, "e": 3.0}
DRAWS = 4000


def field(target: Target, exponent: float) -> Stand:
    """Members on a line. The one here stands at its beginning."""
    stand = Stand(*METRES, config=GossipConfig(target=target, exponent=exponent, position=(0.0, 0.0), k_indirect=1)).without_probes()
    for name, metres in METRES.items():
        stand.say(name, rumour(name, 1, rows={POSITION_ROW: position_row((metres, 0.0))}, rows_at=1))
    return stand


def drawn(stand: Stand, count: int) -> list[str]:
    return [each.id.name for _ in range(count) if (each := stand.node.targets.next()) is not None]


@pytest.mark.parametrize("m", [0.0, 1.0, 3.0])
def test_a_member_is_probed_with_probability_1_over_d_to_the_m(m: float) -> None:
    """Medley, spatial probing: a target is drawn with a probability proportional to 1/d^m; m = 0 is SWIM's uniform draw."""
    counts = Counter(drawn(field("spatial", m), DRAWS))
    weights = {name: metres**-m for name, metres in METRES.items()}
    for name, weight in weights.items():
        assert counts[name] / DRAWS == pytest.approx(weight / sum(weights.values()), abs=0.03)


def test_helpers_are_near_as_well() -> None:
    """Medley, indirect probing: helpers are drawn by the same weights, so that a ping-req crosses few links."""
    stand = field("spatial", 3.0)
    counts = Counter(each.id.name for _ in range(400) for each in helpers_for(stand.node.core, stand.node.distances, life("e")))
    assert counts["b"] / counts["d"] == pytest.approx(8.0, rel=0.5)
    assert counts["e"] == 0


def full_bag(stand: Stand) -> tuple[list[str], int]:
    """What one bag holds, in the order in which it is drawn; the bag of before is emptied first."""
    assert isinstance(stand.node.targets, Bag)
    drawn(stand, len(METRES))
    first = drawn(stand, 1)
    size = stand.node.targets.size
    return first + drawn(stand, size - 1), size


def test_a_bag_has_members_by_their_weights() -> None:
    """Medley, time-bounded: a drawn member loses the least weight w_min, so it is drawn ceil(w/w_min) times per bag."""
    found, size = full_bag(field("bag", 2.0))
    assert Counter(found) == {name: ceil((METRES["e"] / metres) ** 2) for name, metres in METRES.items()}
    assert len(found) == size


def test_the_wait_of_the_farthest_is_bounded() -> None:
    """Medley, time-bounded: with B draws per bag a member is probed again within 2B-1 periods; with draws by distance there is no bound."""
    stand = field("bag", 2.0)
    found, size = full_bag(stand)
    found += drawn(stand, 300 * size)
    gaps = [later - earlier for earlier, later in pairwise(at for at, name in enumerate(found) if name == "e")]
    assert size < max(gaps) <= 2 * size - 1
    free = drawn(field("spatial", 2.0), 300 * size)
    unbounded = [later - earlier for earlier, later in pairwise(at for at, name in enumerate(free) if name == "e")]
    assert max(unbounded) > 2 * size - 1
