"""election/F10: how healthy is the leader in the eyes of all?  Paper 004, Figure 10, VI.C.2.  Spec: election 8 (F10), D17.

Ranks run from 0, the most unhealthy node of the system, to N-1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.features.election.lab.figures import BASE, HYBRID, PREFERRED, PointParameters, Points, lines, means, unfinished
from holdfast.features.election.lab.paper import BY_DROP
from holdfast.lab.experiment import Finding, Measured
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JUDGED = (0.15, 0.2)
TIMES, LEAST = 5.0, 10.0  # as healthy as Base; where Base is near 0, so many ranks
NEAR_ZERO = 1.0
LOW = 0.05


class LeaderHealth(Points):
    """Ranks of leaders by health."""

    id = "election/F10"
    name = "election/leader-health"
    title = "The system-wide health rank of the leader, over drop rates"
    source = "paper 004, section VI.C.2, Figure 10; election 8, F10, D17"
    criterion = "Preferred and Hybrid >= 5x Base at .15 and .2 (Base near 0: then >= 10); at .05 no worse than Base"
    settings = BY_DROP

    def judge(self, parameters: PointParameters, results: Sequence[Measured]) -> Finding:
        settings = self.settings_of(results)
        table = means(results, settings, "health", 2)
        misses = unfinished(results)
        for setting in settings:
            row = table[str(setting)]
            if None in row.values():
                misses.append(f"{setting}: not measured")
                continue
            wanted = row[BASE] if setting.drop == LOW else LEAST if row[BASE] < NEAR_ZERO else TIMES * row[BASE]
            if setting.drop in (LOW, *JUDGED):
                misses += [
                    f"{setting}: {variant} has health rank {row[variant]:g}, Base {row[BASE]:g}; wanted are {wanted:g}"
                    for variant in (PREFERRED, HYBRID)
                    if row[variant] < wanted
                ]
        measured: dict[str, Any] = {"health rank": table}
        paper = {"Preferred and Hybrid over Base": {"0.05": 1.5, "0.2": 28.5}}
        return Finding(measured, {"health rank": paper}, not misses and bool(settings), shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        table = finding.measured["health rank"]
        drops = [setting.drop for setting in self.settings if str(setting) in table]
        lines(figure.subplots(), table, drops, "drop", "health rank of the leader (0: most unhealthy)")


EXPERIMENT = LeaderHealth()
