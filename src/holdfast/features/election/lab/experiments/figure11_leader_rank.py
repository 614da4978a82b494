"""election/F11: how far from the lowest hash is the leader?  Paper 004, Figure 11, VI.C.3.  Spec: election 8 (F11)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from holdfast.features.election.lab.figures import BASE, OPTIMISTIC, PointParameters, Points, lines, means, unfinished, values
from holdfast.features.election.lab.paper import BY_DROP
from holdfast.features.election.protocol.manner import VARIANTS
from holdfast.lab.experiment import Finding, Measured
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEST_SHARE, OTHERS_MAX = 0.99, 4.0


class LeaderRank(Points):
    """Ranks of leaders by hash."""

    id = "election/F11"
    name = "election/leader-rank"
    title = "The hash rank of the leader, over drop rates"
    source = "paper 004, section VI.C.3, Figure 11; election 8, F11"
    criterion = "Base and Optimistic 0 in at least 99 % of the elections; the others at most 4 on average"
    settings = BY_DROP

    def judge(self, parameters: PointParameters, results: Sequence[Measured]) -> Finding:
        settings = self.settings_of(results)
        table, misses = means(results, settings, "hash", 3), unfinished(results)
        best: dict[str, float] = {}
        for variant in (BASE, OPTIMISTIC):
            found = [rank for setting in settings for rank in values(results, setting, variant, "hash")]
            best[variant] = round(fmean(rank == 0 for rank in found), 4) if found else 0.0
            if best[variant] < BEST_SHARE:
                misses.append(f"{variant}: the lowest hash leads in {best[variant]:.1%}")
        misses += [
            f"{setting}: {variant} has hash rank {table[str(setting)][variant]}"
            for setting in settings
            for variant in VARIANTS
            if variant not in best and (table[str(setting)][variant] is None or table[str(setting)][variant] > OTHERS_MAX)
        ]
        measured: dict[str, Any] = {"hash rank": table, "lowest hash": best}
        expected = {"hash rank": {"base": 0, "optimistic": 0, "preferred": "0.5-2.0", "hybrid": "0.5-2.0"}}
        return Finding(measured, expected, not misses and bool(settings), shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        table = finding.measured["hash rank"]
        drops = [setting.drop for setting in self.settings if str(setting) in table]
        lines(figure.subplots(), table, drops, "drop", "hash rank of the leader (0: lowest)")


EXPERIMENT = LeaderRank()
