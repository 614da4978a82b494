"""How far other members are, as far as this one can tell.  Spec: gossip 5.3; Medley (weights 1/d^m).

By the positions that members publish; without them by the round trips of own probes. Who is unknown counts as half-
way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import hypot, isfinite
from statistics import median

from holdfast.features.gossip.protocol.config import POSITION_MAX, GossipConfig
from holdfast.features.gossip.protocol.table import Entry, Table
from holdfast.host import NodeId
from holdfast.kit.histogram import Histogram

POSITION_ROW = "gossip:position"
SMOOTHING = 0.125  # of a new round trip, as TCP has it
FLOOR = 0.01  # of the largest distance: a member in the same rack is not probed all the time
LAST_RTTS = 256  # for the 99th percentile: two or three lie above it
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds


def position_row(position: tuple[float, float]) -> bytes:
    return f"{position[0]:g},{position[1]:g}".encode()


def read_position(value: bytes | None) -> tuple[float, float] | None:
    """A peer published it: two numbers in metres, or nothing."""
    parts = (value or b"").split(b",")
    if len(parts) != 2:
        return None
    try:
        x, y = float(parts[0]), float(parts[1])
    except ValueError:
        return None
    return (x, y) if isfinite(x) and isfinite(y) and max(abs(x), abs(y)) <= POSITION_MAX else None


class Distances:
    """Round trips of own probes, and distances from them or from positions."""

    def __init__(self, config: GossipConfig, table: Table) -> None:
        self._config, self._table = config, table
        self._rtts: dict[NodeId, float] = {}  # smoothed; only where targets are chosen by distance
        self._last: deque[tuple[NodeId, float]] = deque(maxlen=LAST_RTTS)
        self.histogram = Histogram(*BOUNDS)

    def measured(self, life: NodeId, seconds: float) -> None:
        """An own probe was answered by the member itself."""
        self.histogram.add(seconds)
        self._last.append((life, seconds))
        if self._config.target == "shuffle":
            return
        former = self._rtts.pop(life, None)
        if former is None and len(self._rtts) >= self._table.members_max:
            del self._rtts[next(iter(self._rtts))]
        self._rtts[life] = seconds if former is None else former + SMOOTHING * (seconds - former)

    @property
    def rtt_p99(self) -> float:
        ordered = sorted(seconds for _, seconds in self._last)
        return ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] if ordered else 0.0

    def rtt(self, life: NodeId) -> float | None:
        """To one member: smoothed where targets are chosen by distance, else the latest of the last probes; None: it is not among them."""
        smoothed = self._rtts.get(life)
        return smoothed if smoothed is not None else next((seconds for each, seconds in reversed(self._last) if each == life), None)

    def weights(self, others: Sequence[Entry]) -> list[float]:
        """1/d^m of each."""
        exponent = self._config.exponent
        return [each**-exponent for each in self._distances(others)]

    def _distances(self, others: Sequence[Entry]) -> list[float]:
        raw = [self._distance(each) for each in others]
        known = [each for each in raw if each is not None]
        if not known:
            return [1.0] * len(others)
        half_way, least = median(known), FLOOR * max(known)
        if least <= 0:
            return [1.0] * len(others)
        return [max(least, half_way if each is None else each) for each in raw]

    def _distance(self, each: Entry) -> float | None:
        mine = self._config.position
        theirs = None if mine is None else read_position(each.rows.get(POSITION_ROW))
        if mine is not None and theirs is not None:
            return hypot(mine[0] - theirs[0], mine[1] - theirs[1])
        return None if mine is not None else self._rtts.get(each.id)
