"""election/F7: completion time over drop rates.  Paper 004, Figure 7.  Spec: election 8 (F7)."""

from __future__ import annotations

from holdfast.features.election.lab.completion import Completion
from holdfast.features.election.lab.paper import BY_DROP


class CompletionByDrop(Completion):
    """One of three cuts through the same kind of points."""

    id = "election/F7"
    name = "election/completion-by-drop"
    title = "Completion time over drop rates"
    settings = BY_DROP
    axis = "drop"


EXPERIMENT = CompletionByDrop()
