"""election/F5: bandwidth over sizes.  Paper 004, Figure 5.  Spec: election 8 (F5)."""

from __future__ import annotations

from holdfast.features.election.lab.bandwidth import Bandwidth
from holdfast.features.election.lab.paper import BY_SIZE


class BandwidthBySize(Bandwidth):
    """One of three cuts through the same kind of points."""

    id = "election/F5"
    name = "election/bandwidth-by-size"
    title = "Bandwidth over sizes"
    settings = BY_SIZE
    axis = "members"


EXPERIMENT = BandwidthBySize()
