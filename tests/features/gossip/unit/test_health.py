"""Who was suspected lately.  Spec: gossip 5.9."""

from __future__ import annotations

from math import inf

import pytest

from holdfast.features.gossip.protocol.config import GossipConfig
from tests.features.gossip.stand import SUSPECT, Stand, life, rumour


def test_an_episode_counts_once() -> None:
    """Gossip 5.9: one per (id, inc), whether by own probe or by rumour."""
    stand = Stand("b", "c", "d").without_probes()
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    stand.say("d", rumour("c", 0, SUSPECT, "d"))
    assert stand.node.unhealthy(life("c")) == 1.0
    stand.say("b", rumour("c", 1), rumour("c", 1, SUSPECT, "d"))
    assert stand.node.unhealthy(life("c")) == 2.0
    assert stand.node.unhealthy(life("c"), "own") == 0.0


def test_own_probes_are_counted_apart() -> None:
    """Gossip 5.9: the source `own`; it is a metric that the paper names."""
    stand = Stand("b", "c", "d").without_probes()
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    entry = stand.node.entry("c")
    assert entry is not None
    stand.node.merge.accuse(entry, ("a",))
    assert (stand.node.unhealthy(life("c")), stand.node.unhealthy(life("c"), "own")) == (1.0, 1.0)


def test_counts_decay() -> None:
    """Gossip 5.9: half of it after 300 s; a false positive weighs two."""
    stand = Stand("b", "c", "d").without_probes()
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    stand.bury("c")
    stand.say("b", rumour("c", 1))
    assert stand.node.unhealthy(life("c")) == 3.0
    stand.host.clock += 300.0
    assert stand.node.unhealthy(life("c")) == pytest.approx(1.5)
    assert stand.node.unhealthy(life("c"), "false_positives") == pytest.approx(0.5)


def test_raw_counts_for_the_paper() -> None:
    """Gossip 5.9: in the profile `paper` an integer count of suspicions."""
    stand = Stand("b", "c", "d", config=GossipConfig(health_half_life=inf)).without_probes()
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    stand.bury("c")
    stand.say("b", rumour("c", 1))
    stand.host.clock += 3000.0
    assert stand.node.unhealthy(life("c")) == 1.0


def test_a_new_life_is_healthy() -> None:
    """Gossip 5.1, D1: counts are of a life."""
    stand = Stand("b", "c", "d").without_probes()
    stand.say("b", rumour("c", 0, SUSPECT, "b"), rumour("c", boot=2))
    assert stand.node.unhealthy(life("c", 2)) == 0.0
    assert len(stand.node.health) == 0


def test_sick_is_the_own_health() -> None:
    """Gossip 5.9: own lhm > S/2."""
    stand = Stand("b")
    assert not stand.node.sick
    stand.node.core.worsen(4)
    assert not stand.node.sick
    stand.node.core.worsen(1)
    assert stand.node.sick
