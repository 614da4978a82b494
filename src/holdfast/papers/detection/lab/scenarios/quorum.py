"""Leases under mixed faults: never two leaders, terms led in order, none leads without a majority.  Spec: fast-detection 7."""

from __future__ import annotations

from holdfast.papers.detection.lab.scenarios.election import ElectionScenario


class QuorumScenario(ElectionScenario):
    """One to nine members, views that change, mixed faults."""

    name = "detection/quorum"
    title = "Leader election with majorities and leases, over views or fixed voters, under mixed faults"
    mode = "quorum"


SCENARIO = QuorumScenario()
