"""election/L3: how often is a leader among the most unhealthy?  Paper 004, Theorem 4.  Spec: election 8 (L3), D16.

Elections of Preferred and Hybrid over traces at loss 0.05. Theorem 4 promises less than 1/N where c+1 answers are more than log_{1/p} N.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.election.lab.figures import HYBRID, PREFERRED, TRACE_SEEDS
from holdfast.features.election.lab.healths import p_of, r_of
from holdfast.features.election.lab.paper import BY_SIZE, Setting, Y
from holdfast.features.election.lab.runs import elect, trace_of
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VARIANTS = (PREFERRED, HYBRID)
BATCH = 50


class PreferenceParameters(Parameters, frozen=True, kw_only=True):
    """1000 elections per size."""

    runs: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    largest: Annotated[int, Meta(ge=8, le=500)] = 256


class Preference(Experiment[PreferenceParameters]):
    """Elections up to the last nomination."""

    id = "election/L3"
    name = "election/preference"
    title = "Preferred and Hybrid avoid the five most unhealthy"
    source = "paper 004, Theorem 4; election 8, L3, D16"
    criterion = "a share of at least 1 - 2/N of the leaders is not among the system-wide top 5, where r <= c+1; reported elsewhere"
    parameters = PreferenceParameters
    seconds_per_cell = 10
    repetitions = "runs"
    quick: ClassVar[Mapping[str, str]] = {"runs": "50", "largest": "49"}

    def cells(self, parameters: PreferenceParameters, seed: int) -> Sequence[Cell]:
        batches = -(-parameters.runs // BATCH)
        return [
            {
                "setting": list(setting),
                "trace": seed * TRACE_SEEDS + number,
                "first": seed * SEEDS_MAX + number * BATCH,
                "runs": min(BATCH, parameters.runs - number * BATCH),
            }
            for setting in BY_SIZE
            if setting.members <= parameters.largest
            for number in range(batches)
        ]

    def measure(self, cell: Cell) -> Measured:
        setting = Setting(*cell["setting"])
        trace = trace_of(setting, cell["trace"])
        found = [p for lists in trace.health[:: max(1, len(trace.health) // 6)] if (p := p_of(lists, Y)) is not None]
        counts: dict[str, dict[str, int]] = {}
        for variant in VARIANTS:
            runs = [elect(setting, variant, trace, seed, flood=False) for seed in range(cell["first"], cell["first"] + cell["runs"])]
            ended = [run for run in runs if run["whole"]]
            counts[variant] = {
                "ended": len(ended),
                "ill": sum(run["among worst"] for run in ended),
                "judged": sum(run["someone ill"] for run in ended),
            }
        return {**cell, "p": round(fmean(found), 4) if found else None, **counts}

    def judge(self, parameters: PreferenceParameters, results: Sequence[Measured]) -> Finding:
        rows: list[dict[str, Any]] = []
        misses: list[str] = []
        notes: list[str] = []
        for setting in BY_SIZE:
            of = [row for row in results if tuple(row["setting"]) == tuple(setting)]
            if not of:
                continue
            values = [row["p"] for row in of if row["p"] is not None]
            p = fmean(values) if values else 0.0
            row: dict[str, Any] = {"N": setting.members, "p": round(p, 3), "r": r_of(p, setting.members), "c+1": setting.c + 1}
            for variant in VARIANTS:
                ended, ill = sum(each[variant]["ended"] for each in of), sum(each[variant]["ill"] for each in of)
                row[variant] = round(1 - ill / ended, 4) if ended else None
                wanted = 1 - 2 / setting.members
                if ended < sum(each["runs"] for each in of):
                    misses.append(f"N={setting.members}, {variant}: {sum(each['runs'] for each in of) - ended} elections came to no end")
                elif row[variant] < wanted:
                    text = f"N={setting.members}, {variant}: {row[variant]:.2%} of the leaders are healthy, wanted are {wanted:.2%}"
                    (misses if row["r"] <= row["c+1"] else notes).append(text)
            rows.append(row)
        measured: dict[str, Any] = {"share of healthy leaders": rows}
        expected = {"share of healthy leaders": {str(row["N"]): f">= {1 - 2 / row['N']:.4f}" for row in rows}}
        return Finding(measured, expected, not misses and bool(rows), shortened([*misses, *notes]))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes, rows = figure.subplots(), finding.measured["share of healthy leaders"]
        sizes = [row["N"] for row in rows]
        for variant in VARIANTS:
            axes.plot(sizes, [row[variant] for row in rows], marker="o", label=variant)
        axes.plot(sizes, [1 - 1 / size for size in sizes], linestyle=":", color="#7b8794", label="1 - 1/N")
        axes.plot(sizes, [1 - 2 / size for size in sizes], linestyle="--", color="#7b8794", label="1 - 2/N")
        axes.set_xlabel("N")
        axes.set_xscale("log", base=2)
        axes.set_ylabel("leaders that are not among the top 5")
        axes.legend()


EXPERIMENT = Preference()
