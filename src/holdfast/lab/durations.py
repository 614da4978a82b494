"""How long does an experiment take?  So that ``lab list`` and the progress of ``lab run`` can say it before the first cell is done."""

from __future__ import annotations

from typing import Any

from holdfast.lab.experiment import Experiment


def expected_seconds(experiment: Experiment[Any], cells: int, jobs: int = 1) -> float | None:
    """Of ``cells`` cells on ``jobs`` cores; None where it is not known, as for most experiments in a file of the user's own."""
    per_cell = experiment.seconds_per_cell
    return None if per_cell is None else per_cell * cells / max(1, min(jobs, cells))
