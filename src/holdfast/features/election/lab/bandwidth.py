"""Figures 3 to 5: bytes times hops of an election.  Paper 004, VI.A.  Spec: election 8 (F3 to F5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.features.election.lab.figures import HYBRID, PointParameters, Points, bars, fit, lines, means, unfinished
from holdfast.features.election.protocol.manner import VARIANTS
from holdfast.lab.experiment import Finding, Measured
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALIKE = 1.6  # the largest of Base, Optimistic and Preferred over the smallest
LINEAR = 0.85  # R2
HIGH_DROP = 0.1


class Bandwidth(Points):
    """Bytes times hops, over one of three axes."""

    axis: ClassVar[str]  # "", "drop" or "members"
    source = "paper 004, section VI.A; election 8, F3 to F5"
    criterion = "Hybrid highest at drop >= 0.1; the other three within 1.6x of each other; linear in drop and in N: R2 > 0.85"

    def judge(self, parameters: PointParameters, results: Sequence[Measured]) -> Finding:
        settings = self.settings_of(results)
        table = means(results, settings, "bytes", 0)
        misses = unfinished(results)
        for setting in settings:
            row = table[str(setting)]
            if None in row.values():
                misses.append(f"{setting}: not measured")
                continue
            others = [row[variant] for variant in VARIANTS if variant != HYBRID]
            if max(others) > ALIKE * min(others):
                misses.append(f"{setting}: the other three differ by {max(others) / min(others):.2f}")
            if setting.drop >= HIGH_DROP and row[HYBRID] < max(others):
                misses.append(f"{setting}: Hybrid has {row[HYBRID]:g} bytes times hops, another one {max(others):g}")
        fits: dict[str, float] = {}
        if self.axis and not misses:
            xs = [float(getattr(setting, self.axis)) for setting in settings]
            fits = {variant: fit(xs, [table[str(setting)][variant] for setting in settings]) for variant in VARIANTS}
            misses += [f"{variant}: R2 of a line is {r2:g}" for variant, r2 in fits.items() if r2 <= LINEAR]
        measured: dict[str, Any] = {"bytes times hops": table, "R2": fits}
        expected = {"bytes times hops": "Base ~ Optimistic ~ Preferred < Hybrid", "R2": f"> {LINEAR}"}
        return Finding(measured, expected, not misses and bool(settings), shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes, table = figure.subplots(), finding.measured["bytes times hops"]
        if not self.axis:
            bars(axes, table, "bytes times hops")
            return
        settings = [setting for setting in self.settings if str(setting) in table]
        lines(axes, table, [getattr(setting, self.axis) for setting in settings], self.axis, "bytes times hops")
