"""election/F9: how many leaders say so within one election?  Paper 004, Figure 9, VI.C.1.  Spec: election 8 (F9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.features.election.lab.figures import HYBRID, PointParameters, Points, lines, means, rises, unfinished
from holdfast.features.election.lab.paper import BY_DROP
from holdfast.features.election.protocol.manner import VARIANTS
from holdfast.lab.experiment import Finding, Measured
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS_MAX = 1.2
LOW, HIGH = 0.05, 0.2  # drops at which Hybrid is judged
LOW_MIN, LOW_MAX, HIGH_MIN = 1.0, 1.6, 1.3


class LeaderChanges(Points):
    """Changes of who says LEADER."""

    id = "election/F9"
    name = "election/leader-changes"
    title = "Leaders within one election, over drop rates"
    source = "paper 004, section VI.C.1, Figure 9; election 8, F9"
    criterion = "Base, Preferred, Optimistic <= 1.2; Hybrid 1.0-1.6 at .05, >= 1.3 at .2, rising"
    settings = BY_DROP

    def judge(self, parameters: PointParameters, results: Sequence[Measured]) -> Finding:
        settings = self.settings_of(results)
        table = means(results, settings, "changes")
        misses = unfinished(results)
        for setting in settings:
            row = table[str(setting)]
            misses += [
                f"{setting}: {variant} has {row[variant]:g} leaders per election"
                for variant in VARIANTS
                if variant != HYBRID and (row[variant] is None or row[variant] > OTHERS_MAX)
            ]
            hybrid = row[HYBRID] or 0.0
            if setting.drop == LOW and not LOW_MIN <= hybrid <= LOW_MAX:
                misses.append(f"{setting}: Hybrid has {hybrid:g}")
            if setting.drop == HIGH and hybrid < HIGH_MIN:
                misses.append(f"{setting}: Hybrid has {hybrid:g}")
        found = [table[str(setting)][HYBRID] or 0.0 for setting in settings]
        if not rises(found):
            misses.append(f"Hybrid does not rise: {found}")
        measured: dict[str, Any] = {"leaders per election": table}
        paper = {"base": 1, "optimistic": "about 1", "preferred": 1, "hybrid": "1.28 at .05, 2.57 at .2"}
        return Finding(measured, {"leaders per election": paper}, not misses and bool(settings), shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        table = finding.measured["leaders per election"]
        drops = [setting.drop for setting in self.settings if str(setting) in table]
        lines(figure.subplots(), table, drops, "drop", "leaders per election")


EXPERIMENT = LeaderChanges()
