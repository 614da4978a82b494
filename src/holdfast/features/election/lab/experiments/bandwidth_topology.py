"""election/F3: bandwidth over topologies.  Paper 004, Figure 3.  Spec: election 8 (F3)."""

from __future__ import annotations

from holdfast.features.election.lab.bandwidth import Bandwidth
from holdfast.features.election.lab.paper import BY_TOPOLOGY


class BandwidthByTopology(Bandwidth):
    """One of three cuts through the same kind of points."""

    id = "election/F3"
    name = "election/bandwidth-by-topology"
    title = "Bandwidth over topologies"
    settings = BY_TOPOLOGY
    axis = ""


EXPERIMENT = BandwidthByTopology()
