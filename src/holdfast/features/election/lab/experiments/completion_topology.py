"""election/F6: completion time over topologies.  Paper 004, Figure 6.  Spec: election 8 (F6)."""

from __future__ import annotations

from holdfast.features.election.lab.completion import Completion
from holdfast.features.election.lab.paper import BY_TOPOLOGY


class CompletionByTopology(Completion):
    """One of three cuts through the same kind of points."""

    id = "election/F6"
    name = "election/completion-by-topology"
    title = "Completion time over topologies"
    settings = BY_TOPOLOGY
    axis = ""


EXPERIMENT = CompletionByTopology()
