"""Worker processes of the lab outlive their agent as real ones do.  Spec: limits 5.1, 8 (P2m), D11; H310, H362."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from holdfast.features.limits.lab.crews import Appetite
from holdfast.features.limits.lab.groups import LimitGroup
from holdfast.features.limits.lab.terms import Terms

RATE, MEMBERS = 400.0, 4
WANT = 40.0
AWAY = 2.0  # seconds until the next life of the agent
GLANCE = 0.5  # seconds: from the instant at which a life may claim its part to its next epoch


def below(seed: int) -> tuple[float, float]:
    """For how long the process of a killed agent may use less than it wants, and the largest sum of what all may use, by the limit."""

    def appetites(name: str) -> list[Mapping[str, Appetite]]:
        return [{"api": Appetite(RATE if name == "c0" else WANT)}] if name.startswith("c") else []

    group = LimitGroup(seed, 3, MEMBERS, [Terms("api", RATE, RATE / 10, "exact", "maxmin", MEMBERS)], appetites)
    assert group.until(group.is_one, 20.0)
    group.run(30.0)
    (process,) = group.fleet.crews["c3"].processes
    group.world.crash("c3")
    group.world.revive_after(AWAY, "c3")
    seconds, step = 0.0, 0.05
    for _ in range(round(20.0 / step)):
        group.run(step)
        seconds += step if process.usable("api") < WANT else 0.0
    return seconds, group.fleet.peaks["api"]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_process_goes_on_until_the_next_life_may_claim_its_part(seed: int) -> None:
    """H310, H362: it has what it wants all the time but for a glance, and the sum is never above R (RL4)."""
    seconds, peak = below(seed)
    assert seconds <= GLANCE
    assert peak <= 1.0 + 1e-9
