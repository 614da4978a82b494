"""Figures 6 to 8: from the start of an election until the last live node has its leader.  Paper 004, VI.B.  Spec: election 8 (F6 to F8).

The accepted savings are means over all points of the three figures; each figure is judged by its own points, and its report says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.features.election.lab.figures import (
    BASE,
    HYBRID,
    OPTIMISTIC,
    PREFERRED,
    PointParameters,
    Points,
    Table,
    bars,
    lines,
    means,
    percentiles,
    rises,
    unfinished,
)
from holdfast.features.election.lab.paper import HYBRID_SAVES, OPTIMISTIC_SAVES
from holdfast.features.election.protocol.manner import VARIANTS
from holdfast.lab.experiment import Finding, Measured
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAVINGS = {OPTIMISTIC: (BASE, 0.3, 0.6, OPTIMISTIC_SAVES), HYBRID: (PREFERRED, 0.25, 0.6, HYBRID_SAVES)}  # against whom, from, to, paper
LEAST = 0.1  # at any point


def savings(table: Table) -> dict[str, dict[str, float]]:
    """Of seconds at points that were measured: the share that a streaming variant saves, by variant and point."""
    return {
        variant: {name: round(1 - row[variant] / row[other], 4) for name, row in table.items()}
        for variant, (other, *_) in SAVINGS.items()
    }  # fmt: skip


class Completion(Points):
    """Seconds, over one of three axes."""

    axis: ClassVar[str]  # "", "drop" or "members"
    source = "paper 004, section VI.B; election 8, F6 to F8"
    criterion = "Optimistic saves 30-60 % of Base, Hybrid 25-60 % of Preferred on average, nowhere below 10 %; rising with drop and with N"

    def judge(self, parameters: PointParameters, results: Sequence[Measured]) -> Finding:
        settings = self.settings_of(results)
        table = means(results, settings, "seconds")
        misses = unfinished(results)
        if any(None in row.values() for row in table.values()):
            return Finding({"seconds": table}, {}, False, shortened([*misses, "a point was not measured"]))
        saved = savings(table)
        mean: dict[str, float] = {}
        for variant, (other, least, most, _) in SAVINGS.items():
            mean[variant] = round(fmean(saved[variant].values()), 4)
            if not least <= mean[variant] <= most:
                misses.append(f"{variant} saves {mean[variant]:.1%} of {other} on average")
            misses += [f"{name}: {variant} saves {share:.1%} of {other}" for name, share in saved[variant].items() if share < LEAST]
        if self.axis:
            for variant in VARIANTS:
                found = [row[variant] for row in table.values()]
                if not rises(found):
                    misses.append(f"{variant} does not rise with {self.axis}: {found}")
        measured: dict[str, Any] = {
            "seconds": table,
            "95th percentile": percentiles(results, settings, "seconds"),
            "saved": saved,
            "saved on average": mean,
        }
        expected = {"saved on average": {variant: paper for variant, (_, _, _, paper) in SAVINGS.items()}}
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes, table = figure.subplots(), finding.measured["seconds"]
        if not self.axis:
            bars(axes, table, "seconds until all know")
            return
        settings = [setting for setting in self.settings if str(setting) in table]
        lines(axes, table, [getattr(setting, self.axis) for setting in settings], self.axis, "seconds until all know")
