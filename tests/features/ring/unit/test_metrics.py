"""What a member counts.  Spec: ring 9 (metrics)."""

from __future__ import annotations

import pytest

from holdfast.features.ring.protocol.facts import Overslept
from holdfast.features.ring.protocol.metrics import metrics, of_peers
from tests.features.ring.stand import STEP, T_L, crowd


def test_numbers_of_a_quiet_member() -> None:
    """Ring 9: pairs, groups, deadlines, members; everything is a number."""
    stand, _ = crowd()
    stand.live(2 * T_L)
    found = metrics(stand.ring)
    assert {"member": 1, "members": 7, "pairs_active": 6, "group_size_max": 7, "links_broken": 0}.items() <= found.items()
    assert found["safe_for"] >= found["safe_for_least"] > 0
    assert all(isinstance(value, float) for value in found.values())


def test_suspicions_votes_and_their_end_are_counted() -> None:
    """Ring 9: suspicions, wins, votes received."""
    stand, peers = crowd()
    while stand.pair(peers[0]).susp is None:
        stand.live(STEP, silent=peers[:1])
    assert of_peers(stand.ring)["a"]["suspected"] == 1
    stand.vote(yes=peers[1:4])
    found = metrics(stand.ring)
    assert (found["suspicions"], found["wins"], found["votes_received"]) == (1, 1, 3)
    assert "a" not in of_peers(stand.ring)


def test_neighbours_have_numbers_of_their_own() -> None:
    """Ring 9 (per peer): how long each takes to answer, and how often it had to be asked."""
    stand, peers = crowd()
    while stand.pair(peers[0]).acked:
        stand.live(STEP, silent=peers[:1])
    stand.live(T_L / 2, silent=peers[:1])
    found = of_peers(stand.ring)
    assert sorted(found) == list("abcefg")
    assert found["a"]["lease_tries"] > found["b"]["lease_tries"] >= 1
    assert found["b"]["group_size"] == 7


@pytest.mark.parametrize(
    "late,word", [(0.1, "under 0.25 leases"), (0.5, "under 1 leases"), (2.0, "under 4 leases"), (9.0, "4 leases or more")]
)
def test_pauses_are_a_histogram(late: float, word: str) -> None:
    """Ring 9 (oversleep histogram), D6: every session whose end was overslept counts, by how much of T_l."""
    stand, peers = crowd()
    pair = stand.pair(peers[0])
    pair.acked = False
    stand.ring.leases._on_overslept(pair, late * T_L)
    assert metrics(stand.ring)[f"overslept: {word}"] == 1
    assert [event.seconds for event in stand.host.events(Overslept)] == [late * T_L]
