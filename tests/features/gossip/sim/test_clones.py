"""Clones of a member, settled by names: the one that stays is in every list.  Spec: gossip D1, D17; foundation F5; H330."""

from __future__ import annotations

import pytest

from holdfast.features.gossip.lab.scenarios.mixed import MixedScenario
from holdfast.lab.scenario import run


@pytest.mark.parametrize("seed", [1662, 1774])
def test_a_clone_that_came_later_and_went(seed: int) -> None:
    """H330, gossip G4: the group holds a tombstone with a higher boot than that of the process that stays; it begins again above it."""
    assert run(MixedScenario(), seed).violation == ""
