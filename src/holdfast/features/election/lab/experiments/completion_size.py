"""election/F8: completion time over sizes.  Paper 004, Figure 8.  Spec: election 8 (F8)."""

from __future__ import annotations

from holdfast.features.election.lab.completion import Completion
from holdfast.features.election.lab.paper import BY_SIZE


class CompletionBySize(Completion):
    """One of three cuts through the same kind of points."""

    id = "election/F8"
    name = "election/completion-by-size"
    title = "Completion time over sizes"
    settings = BY_SIZE
    axis = "members"


EXPERIMENT = CompletionBySize()
