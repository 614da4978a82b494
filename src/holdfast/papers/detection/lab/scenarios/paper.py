"""Figure 4 under mixed faults: terms are unique and only grow, votes are true, in the end all agree.  Spec: fast-detection 7."""

from __future__ import annotations

from holdfast.papers.detection.lab.scenarios.election import ElectionScenario


class PaperScenario(ElectionScenario):
    """One to nine members, views that change, mixed faults."""

    name = "detection/paper"
    title = "Leader election of the paper (Figure 4 with fast detection) under mixed faults"
    mode = "paper"


SCENARIO = PaperScenario()
