"""Whom to probe next.  Spec: gossip 5.3, D22."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.distance import POSITION_ROW, position_row, read_position
from holdfast.features.gossip.protocol.targets import Bag, Permutation
from tests.features.gossip.stand import LEFT, SUSPECT, Stand, base_of, life, rumour

NAMES = tuple(f"m{i:02}" for i in range(20))


def chosen(stand: Stand, count: int) -> list[str]:
    found = [stand.node.targets.next() for _ in range(count)]
    return [each.id.name for each in found if each is not None]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 100, 1000])
def test_a_permutation_has_every_number_once(size: int) -> None:
    """Gossip D22: an order by a key, without a list."""
    for seed in range(3):
        permutation = Permutation(size, Random(seed))
        assert sorted(permutation.at(i) for i in range(size)) == list(range(size))


def test_permutations_differ_and_are_even() -> None:
    """Gossip 5.3: a new random order each round; each place is as likely for each member."""
    first = Counter(Permutation(10, Random(seed)).at(0) for seed in range(2000))
    assert len(first) == 10
    assert max(first.values()) < 1.5 * 200 < 2.5 * min(first.values())


@pytest.mark.parametrize("base", [False, True], ids=["own", "base"])
def test_a_round_has_every_other_member_once(base: bool) -> None:
    """Gossip 5.3 (shuffle), G9; SWIM 4.3: no member waits longer than 2n-1 periods."""
    stand = Stand(base=base_of("a", *NAMES)) if base else Stand(*NAMES)
    chosen(stand, len(NAMES) if not base else 0)
    for _ in range(3):
        assert sorted(chosen(stand, len(NAMES))) == sorted(NAMES)


def test_base_and_newcomers_are_mixed() -> None:
    """Gossip D22: a keyed permutation of the base, and a list of newcomers."""
    stand = Stand("x", "y", base=base_of("a", *NAMES))
    chosen(stand, 2)  # they came after the first round had begun, which was empty
    orders = {tuple(chosen(stand, len(NAMES) + 2)) for _ in range(2)}
    assert all(sorted(order) == sorted((*NAMES, "x", "y")) for order in orders)
    assert len(orders) == 2


def test_a_newcomer_has_a_random_place_in_this_round() -> None:
    """Gossip 5.1 step 2: not the last one, so its first probe is not a round away."""
    places = set()
    for seed in range(12):
        stand = Stand(*NAMES)
        stand.host.random.seed(seed)
        stand.node.targets.next()
        chosen(stand, 2 * len(NAMES))
        stand.say("m00", rumour("x"))
        places.add(chosen(stand, len(NAMES) + 1).index("x"))
    assert len(places) > 4


def test_a_new_life_has_no_second_place_in_a_round() -> None:
    """Gossip 5.3, G9: a round that grows by those who come back would be longer than n-1."""
    stand = Stand(*NAMES)
    chosen(stand, len(NAMES))
    for name in NAMES[:10]:
        stand.say(name, rumour(name, 0, boot=2), boot=2)
    for name in NAMES[10:]:
        stand.bury(name)
        stand.say("m00", rumour(name, 1))
    assert sorted(chosen(stand, len(NAMES))) == sorted(NAMES)
    assert sorted(chosen(stand, len(NAMES))) == sorted(NAMES)


def test_who_is_not_listed_is_skipped() -> None:
    """Gossip 5.3, D3: SUSPECT members are probed, DEAD and LEFT ones are not."""
    stand = Stand("b", "c", "d")
    stand.bury("c")
    stand.say("b", rumour("b", 0, SUSPECT, "x"), rumour("d", 0, LEFT))
    assert chosen(stand, 3) == ["b"] * 3
    stand.bury("b")
    assert chosen(stand, 1) == []


def near_and_far(target: str, **changes: object) -> Stand:
    """B is near, c is far, of d nothing is known."""
    config = GossipConfig(target=target, position=(0.0, 0.0), **changes)  # type: ignore[arg-type]
    stand = Stand("b", "c", "d", config=config)
    for name, distance in (("b", 1.0), ("c", 4.0)):
        stand.say(name, rumour(name, 1, rows={POSITION_ROW: position_row((distance, 0.0))}, rows_at=1))
    return stand


def test_nearer_members_are_probed_more_often() -> None:
    """Gossip 5.3 (spatial): with probability 1/d^m; who is unknown counts as the median."""
    stand = near_and_far("spatial", exponent=1.0)
    counts = Counter(chosen(stand, 3000))
    weights = {"b": 1.0, "c": 1 / 4, "d": 1 / 2.5}
    for name, weight in weights.items():
        assert counts[name] / 3000 == pytest.approx(weight / sum(weights.values()), abs=0.04)


def test_a_bag_has_copies_and_a_bound() -> None:
    """Gossip 5.3 (bag), G9: min(bag_cap, ceil(w/w_min)) copies of each, drawn without replacement."""
    stand = near_and_far("bag")
    chosen(stand, 4)
    assert isinstance(stand.node.targets, Bag)
    stand.node.targets._bag.clear()
    first = chosen(stand, 1)
    size = stand.node.targets.size
    bag = Counter(first + chosen(stand, size - 1))
    assert bag == {"b": 32, "c": 1, "d": 5}
    gaps = [at for at, name in enumerate(chosen(stand, 6 * size)) if name == "c"]
    assert max(later - earlier for earlier, later in pairwise(gaps)) <= 2 * size - 1


def test_without_a_position_round_trips_are_distances() -> None:
    """Gossip 5.3: the smoothed RTT of own probes; the floor is 1 % of the largest."""
    stand = Stand("b", "c", "d", config=GossipConfig(target="bag", bag_cap=32, exponent=1.0))
    for name, rtt in (("b", 0.001), ("c", 0.004)):
        stand.node.distances.measured(life(name), rtt)
    weights = stand.node.distances.weights([e for n in "bcd" if (e := stand.node.entry(n))])
    assert weights == pytest.approx([1000.0, 250.0, 400.0])
    stand.node.distances.measured(life("d"), 10.0)
    weights = stand.node.distances.weights([e for n in "bcd" if (e := stand.node.entry(n))])
    assert weights[0] == pytest.approx(10.0)


@pytest.mark.parametrize("value", [None, b"", b"1", b"1,2,3", b"x,y", b"nan,1", b"inf,0", b"1e99,0", b"\xff,1"])
def test_a_position_that_is_none_is_no_position(value: bytes | None) -> None:
    """Gossip 5.3: a peer published it."""
    assert read_position(value) is None


def test_positions_are_published() -> None:
    """Gossip 5.3: as a row, from the start."""
    stand = Stand(config=GossipConfig(position=(3.5, -2.0)))
    member = stand.node.get("a")
    assert member is not None
    assert read_position(member.rows[POSITION_ROW]) == (3.5, -2.0)


def test_helpers_are_near_where_targets_are() -> None:
    """Gossip 5.2 step 4: spatially in the Medley modes, without replacement."""
    from holdfast.features.gossip.protocol.helpers import helpers_for

    stand = near_and_far("spatial", k_indirect=1)
    counts = Counter(each.id.name for _ in range(300) for each in helpers_for(stand.node.core, stand.node.distances, life("d")))
    assert counts["b"] > 5 * counts["c"]
