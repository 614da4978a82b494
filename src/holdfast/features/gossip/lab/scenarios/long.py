"""Gossip under mixed faults for a hundred periods: what ``make soak`` runs by the thousand.  Spec: gossip 7."""

from __future__ import annotations

from holdfast.features.gossip.lab.scenarios.mixed import MixedScenario


class LongScenario(MixedScenario):
    """As many faults per process as in gossip/mixed, over three times the time; tombstones, syncs and reconnects come into play."""

    name = "gossip/long"
    title = "Gossip membership under mixed faults for a hundred periods"
    periods = (80.0, 120.0)


SCENARIO = LongScenario()
