"""How long does an experiment take?  So that ``lab list`` and the progress of ``lab run`` can say it before the first cell is done.

Seconds of one core per cell, at the parameters that an experiment has by itself: the mean of three cells drawn at random, on
one machine, so a guide and no promise. ``ring/E3`` is Figure 9 of the ring's paper, 1000 members, from its benchmark.
"""

from __future__ import annotations

SECONDS_PER_CELL = {
    "detection/E1": 0.47,
    "detection/E2": 0.29,
    "detection/E3": 0.18,
    "detection/E3b": 0.15,
    "detection/E4": 0.16,
    "detection/E5": 0.035,
    "detection/E6": 1.1,
    "detection/E7": 0.0076,
    "detection/E8": 0.75,
    "detection/E9": 1.1,
    "detection/E10": 0.18,
    "detection/E11": 0.92,
    "detection/E12": 1.1,
    "detection/E13": 0.6,
    "detection/E14": 1.6,
    "detection/E15": 1.5,
    "detection/E16": 0.062,
    "detection/E17": 3.4,
    "detection/E18": 0.36,
    "detection/E19": 0.26,
    "detection/E20": 1.3,
    "kit/F8": 0.099,
    "kit/phase-loss": 0.064,
    "kit/promise": 1.5,
    "kit/rows-alone": 0.19,
    "kit/seats-restart": 0.15,
    "ring/E1": 0.2,
    "ring/E2": 1,
    "ring/E3": 300,
    "ring/E4": 1.6,
    "ring/E5": 12,
    "ring/E6": 0.25,
    "ring/E7": 2.3,
    "ring/E8": 2.7,
    "ring/E9": 1.4,
    "ring/E10": 3.2,
    "ring/E11": 0.27,
    "ring/E12": 1.7,
    "ring/E13": 0.7,
    "ring/E14": 2.2,
    "ring/E16": 0.5,
    "ring/E17": 0.1,
    "tickets/E0": 0.001,
    "tickets/E1": 1.4,
    "tickets/E2": 0.045,
    "tickets/E3": 0.076,
    "tickets/E4": 2.4,
    "tickets/E5": 0.88,
    "tickets/E6": 0.0054,
    "tickets/E7": 0.27,
    "tickets/E8": 0.001,
    "tickets/E9": 2.4,
    "tickets/E10": 0.14,
    "tickets/E11": 0.13,
    "tickets/E12": 0.071,
    "tickets/E13": 1.8,
    "tickets/E14": 1.2,
}


def expected_seconds(experiment: str, cells: int, jobs: int = 1) -> float | None:
    """Of ``cells`` cells on ``jobs`` cores; None where it is not known, as for an experiment in a file of the user's own."""
    per_cell = SECONDS_PER_CELL.get(experiment)
    return None if per_cell is None else per_cell * cells / max(1, min(jobs, cells))
