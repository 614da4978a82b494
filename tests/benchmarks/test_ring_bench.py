"""What `ring` measures with, at sizes that measure nothing: the counts are those of the runs, and a wrong run is a problem.

No test here asserts a speed. The whole benchmark, with real sockets, runs in ``test_harness``.
"""

from __future__ import annotations

import pytest

from benchmarks import ring_full_size, ring_lab
from benchmarks.ring_lab import LEASES, Watched, messages_sent, view_bytes
from holdfast.kit.exchange import RowsDigest
from holdfast.lab.accounting import Sent, total
from holdfast.lab.world import World


@pytest.mark.parametrize("n, k", [(16, 1), (16, 3), (5, 3)])
def test_leases_are_counted_against_equation_2(n: int, k: int) -> None:
    """Paper 000, Eq. 2; ring E6: LR + ACK are 2 * 2k per member and T_l, also where all others are fewer than 2k."""
    found = messages_sent(1, n, k)
    assert found["leases_of_equation_2"] == pytest.approx(1.0, abs=0.01)
    assert found[RowsDigest.__name__] > 0
    assert not any(kind in found for kind in LEASES)


def test_a_message_too_many_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ring E6: every message of any kind is counted, leases apart from the rest."""
    looks = []

    def padded(world: World) -> dict[str, Sent]:
        looks.append(world)
        late = len(looks) == 2
        return {**total(world), "Babble": Sent(500 if late else 100, 0)}

    monkeypatch.setattr(ring_lab, "total", padded)
    found = messages_sent(1, 8, 1)
    assert found["Babble"] == 400
    assert found["others_of_leases"] > 400 / (8 * 4 * 10)


def test_figure_9_at_a_small_size() -> None:
    """Ring E3: everybody but the crashed is there, and every crash was arbitrated by groups of 8, 9 and 10, twice each."""
    found = ring_full_size.figure_9(20, 2, 1)
    assert found["problems"] == []
    assert (found["alive"], found["requests_addressed_per_member"]) == (18, 2 * 2 * (8 + 9 + 10) / 20)
    assert found["cpu_seconds_projected"] > 0


def test_figure_9_says_when_it_is_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ring E3: half the ring at once is not Figure 9, and its time would mean nothing."""
    monkeypatch.setattr(ring_full_size, "APART", 0.0)
    (problem,) = ring_full_size.figure_9(20, 10, 1)["problems"]
    assert "10 crashes" in problem


def test_checkers_see_the_same_run() -> None:
    """Ring 7: with checkers or without, the same events; otherwise the slowdown compares different work."""
    watched, unwatched = Watched(1, 8, watched=True), Watched(1, 8, watched=False)
    for each in (watched, unwatched):
        assert each.per_event() > 0
    assert watched.result == unwatched.result == (watched.result[0], 8)


def test_a_view_is_measured_as_it_grows() -> None:
    """Ring 5.7: what a member keeps of the others is counted, all of it and nothing twice."""
    small, large = view_bytes(50), view_bytes(200)
    assert large["memory_bytes"] > 2 * small["memory_bytes"]
    assert large["bytes_per_member"] == round(large["memory_bytes"] / 200)
    assert large["memory_bytes"] > large["wire_bytes"] > 2 * small["wire_bytes"]
    assert view_bytes(200)["memory_bytes"] == pytest.approx(large["memory_bytes"], rel=0.05)
