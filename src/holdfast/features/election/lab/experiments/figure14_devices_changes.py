"""election/F14: how many leaders say so within one election of 16 real processes?  Paper 004, Figure 14.  Spec: election 8 (F14)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from holdfast.features.election.lab.figures import HYBRID, lines, means, unfinished
from holdfast.features.election.lab.paper import Setting
from holdfast.features.election.lab.recorded import OfDevices
from holdfast.features.election.protocol.manner import VARIANTS
from holdfast.lab.experiment import Finding, Measured
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS = tuple(variant for variant in VARIANTS if variant != HYBRID)


class DevicesChanges(OfDevices):
    """Changes of who says LEADER."""

    id = "election/F14"
    name = "election/devices-changes"
    title = "Leaders within one election of 16 real processes, over drop rates"
    source = "paper 004, section VII.A, Figure 14; election 8, F14"
    criterion = "Hybrid has more than any other on average, and at no drop fewer; 100 elections per point and variant"

    def judge_run(self, results: Sequence[Measured], misses: list[str]) -> Finding:
        settings = [Setting(*row["setting"]) for row in results]
        table = means(results, settings, "changes")
        misses += unfinished(results)
        if not table or any(None in row.values() for row in table.values()):
            return Finding({"leaders per election": table}, {}, False, shortened([*misses, "a point was not measured"]))
        for name, row in table.items():
            misses += [
                f"{name}: {other} has {row[other]:g} leaders per election, Hybrid {row[HYBRID]:g}"
                for other in OTHERS
                if row[other] > row[HYBRID]
            ]
        mean = {variant: round(fmean(row[variant] for row in table.values()), 4) for variant in VARIANTS}
        misses += [f"{other} has {mean[other]:g} on average, Hybrid {mean[HYBRID]:g}" for other in OTHERS if mean[other] >= mean[HYBRID]]
        paper = "as Figure 9; Optimistic a bit higher, Hybrid lower at high drop"
        return Finding({"leaders per election": table, "on average": mean}, {"leaders per election": paper}, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        table = finding.measured.get("leaders per election", {})
        drops = [setting.drop for setting in self.settings if str(setting) in table]
        lines(figure.subplots(), table, drops, "drop", "leaders per election")


EXPERIMENT = DevicesChanges()
