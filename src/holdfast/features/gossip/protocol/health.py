"""Who was suspected lately, and how often: the health of members as known here.  Spec: gossip 5.9; paper 004 (health metrics).

Each count loses half of its weight in ``health_half_life`` seconds. A member that was never suspected has no record.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from holdfast.host import HealthSource, NodeId

FALSE_WEIGHT = 2.0  # a member held to be dead by mistake counts as so many suspicions


class Record:
    """The counts of one life, as they were at ``at``."""

    __slots__ = ("at", "episode", "false_positives", "own", "own_episode", "suspicions")

    def __init__(self, at: float) -> None:
        self.at = at
        self.suspicions = self.own = self.false_positives = 0.0
        self.episode = self.own_episode = -1  # the inc that was last suspected, by any member and by this one's probes


class Health:
    """Records by name, at most one per entry of the table: a life that is forgotten there is forgotten here."""

    def __init__(self, now: Callable[[], float], half_life: float) -> None:
        self._now, self._half_life = now, half_life
        self._records: dict[NodeId, Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def lives(self) -> tuple[NodeId, ...]:
        """Those that were ever suspected, and are remembered."""
        return tuple(self._records)

    def suspected(self, life: NodeId, inc: int, *, own: bool) -> None:
        """Once per (life, inc), no matter which member says it first, and once more if a probe of this member says it too."""
        record = self._record(life)
        if inc > record.episode:
            record.episode = inc
            record.suspicions += 1
        if own and inc > record.own_episode:
            record.own_episode = inc
            record.own += 1

    def false_positive(self, life: NodeId) -> None:
        self._record(life).false_positives += 1

    def forget(self, life: NodeId) -> None:
        self._records.pop(life, None)

    def unhealthy(self, life: NodeId, source: HealthSource = "any") -> float:
        record = self._records.get(life)
        if record is None:
            return 0.0
        self._decay(record)
        if source == "own":
            return record.own
        if source == "false_positives":
            return record.false_positives
        raw = self._half_life == inf  # the paper counts suspicions and nothing else
        return record.suspicions if raw else record.suspicions + FALSE_WEIGHT * record.false_positives

    def _record(self, life: NodeId) -> Record:
        record = self._records.get(life)
        if record is None:
            record = self._records[life] = Record(self._now())
        self._decay(record)
        return record

    def _decay(self, record: Record) -> None:
        now = self._now()
        left = 0.5 ** ((now - record.at) / self._half_life)
        record.at = now
        record.suspicions *= left
        record.own *= left
        record.false_positives *= left
