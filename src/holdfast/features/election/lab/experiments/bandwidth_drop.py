"""election/F4: bandwidth over drop rates.  Paper 004, Figure 4.  Spec: election 8 (F4)."""

from __future__ import annotations

from holdfast.features.election.lab.bandwidth import Bandwidth
from holdfast.features.election.lab.paper import BY_DROP


class BandwidthByDrop(Bandwidth):
    """One of three cuts through the same kind of points."""

    id = "election/F4"
    name = "election/bandwidth-by-drop"
    title = "Bandwidth over drop rates"
    settings = BY_DROP
    axis = "drop"


EXPERIMENT = BandwidthByDrop()
