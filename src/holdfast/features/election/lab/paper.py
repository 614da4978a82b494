"""What paper 004 says, in numbers: Tables I and II, the settings of its sections VI and VII, and what its figures claim.

Spec: election 8.
"""

from __future__ import annotations

from typing import NamedTuple

UNIT = 0.001  # seconds: the paper counts in time units; one is a millisecond here
TIMEOUT = 500 * UNIT
HOP_DELAY_MAX = 50 * UNIT
REACH = 4.0  # metres
DENSITY = 0.22  # nodes per square metre: 49 in a square of 15 m
X = Y = 5
CLUSTERS = (7, 7, 9, 10, 16)
RUNS = 100  # per point


class Setting(NamedTuple):
    """One row of Table I."""

    kind: str
    members: int
    drop: float
    c: int

    def __str__(self) -> str:
        return f"{self.kind} {self.members} {self.drop:g}"


TABLE_I = (
    Setting("grid", 49, 0.05, 4),
    Setting("cluster", 49, 0.05, 4),
    Setting("random", 49, 0.05, 4),
    Setting("random", 49, 0.1, 7),
    Setting("random", 49, 0.15, 10),
    Setting("random", 49, 0.2, 13),
    Setting("random", 32, 0.05, 2),
    Setting("random", 64, 0.05, 5),
    Setting("random", 128, 0.05, 9),
    Setting("random", 256, 0.05, 17),
)  # fmt: skip
BY_TOPOLOGY = tuple(TABLE_I[number] for number in (0, 2, 1))  # Figures 3 and 6
BY_DROP = TABLE_I[2:6]  # Figures 4, 7, 9 to 11
BY_SIZE = (TABLE_I[6], TABLE_I[2], *TABLE_I[7:])  # Figures 5 and 8

DEVICES = (  # section VII: 16 devices; c of five minutes of their failure detector
    Setting("grid", 16, 0.05, 2),
    Setting("grid", 16, 0.1, 3),
    Setting("grid", 16, 0.15, 5),
    Setting("grid", 16, 0.2, 7),
)
PITCH, RANGE = 1.5, 2.2  # metres: four rows on 4.5 m; the paper does not say how far a device is heard, so diagonal neighbours are here


class Column(NamedTuple):
    """One column of Table II."""

    members: int
    p: float
    r: int
    needed: int  # c + 1


TABLE_II = (Column(32, 0.34, 3, 3), Column(49, 0.43, 5, 5), Column(64, 0.48, 6, 6), Column(128, 0.5, 7, 10), Column(256, 0.5, 8, 18))
OPTIMISTIC_SAVES, HYBRID_SAVES = 0.426, 0.333  # of completion, against Base and Preferred
