"""election/F13: completion time of 16 real processes over drop rates.  Paper 004, Figure 13, section VII.A.  Spec: election 8 (F13)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from holdfast.features.election.lab.completion import SAVINGS, savings
from holdfast.features.election.lab.figures import BASE, HYBRID, OPTIMISTIC, PREFERRED, lines, means, percentiles, unfinished
from holdfast.features.election.lab.paper import Setting
from holdfast.features.election.lab.recorded import OfDevices
from holdfast.features.election.protocol.manner import VARIANTS
from holdfast.lab.experiment import Finding, Measured
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 0.25  # that Optimistic saves of Base, on average
STREAMING, WAITING = (OPTIMISTIC, HYBRID), (BASE, PREFERRED)


class DevicesCompletion(OfDevices):
    """Seconds until the last process has the leader."""

    id = "election/F13"
    name = "election/devices-completion"
    title = "Completion time of 16 real processes, over drop rates"
    source = "paper 004, section VII.A, Figure 13; election 8, F13"
    criterion = (
        "as in Figure 7 each of Optimistic and Hybrid is below each of Base and Preferred, at every drop; "
        "Optimistic >= 25 % below Base on average; 100 elections per point and variant"
    )

    def judge_run(self, results: Sequence[Measured], misses: list[str]) -> Finding:
        settings = [Setting(*row["setting"]) for row in results]
        table = means(results, settings, "seconds")
        misses += unfinished(results)
        if not table or any(None in row.values() for row in table.values()):
            return Finding({"seconds": table}, {}, False, shortened([*misses, "a point was not measured"]))
        for name, row in table.items():
            misses += [
                f"{name}: {fast} takes {row[fast]:g} s, {slow} {row[slow]:g} s"
                for fast in STREAMING
                for slow in WAITING
                if row[fast] >= row[slow]
            ]
        saved = savings(table)
        mean = {variant: round(fmean(shares.values()), 4) for variant, shares in saved.items()}
        if mean[OPTIMISTIC] < LEAST:
            misses.append(f"Optimistic saves {mean[OPTIMISTIC]:.1%} of Base on average")
        found = {variant: [row[variant] for row in table.values()] for variant in VARIANTS}
        measured: dict[str, Any] = {
            "seconds": table,
            "median": percentiles(results, settings, "seconds", 0.5),
            "95th percentile": percentiles(results, settings, "seconds"),
            "saved": saved,
            "saved on average": mean,
            "slowest drop / quickest": {variant: round(max(each) / min(each), 2) for variant, each in found.items()},
        }
        expected = {"saved on average": {variant: paper for variant, (_, _, _, paper) in SAVINGS.items()}}
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        table = finding.measured.get("seconds", {})
        drops = [setting.drop for setting in self.settings if str(setting) in table]
        lines(figure.subplots(), table, drops, "drop", "seconds until all know")


EXPERIMENT = DevicesCompletion()
