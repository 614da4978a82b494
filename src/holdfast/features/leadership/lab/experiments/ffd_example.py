"""detection/E3: the paper's worked example, 50 seconds against slightly more than 10.

Spec: fast-detection 8 (E3), D9; paper 002, section 4: P_m = 1e-5, t_itv = 10 s, p_L = .1, a group of more than 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.leadership.detector.detectors import Temporal, heartbeats_to_miss
from holdfast.features.leadership.lab.experiments.ffd_speed import paper_config
from holdfast.features.leadership.lab.pairs import run_pair
from holdfast.features.leadership.lab.watching import DELAY, Watching
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import HIGH, LOW, MEAN, by_column, errors, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERVAL, LATENCY, ACCURACY, LOSS = 10.0, 0.1, 1e-5, 0.1
RATIO = 4.8
TEMPORAL = "temporal"
WORST, UNIFORM = "worst crash", "crash at any moment"
PAPER = {TEMPORAL: 50.0, "FFD": 10.0}  # "at least 50 seconds", "slightly more than 10 seconds"


class ExampleParameters(Parameters, frozen=True, kw_only=True):
    """t_lat is 0.1 s; the paper states none."""

    seeds: Annotated[int, Meta(ge=2, le=SEEDS_MAX)] = 1000  # deaths per bar
    members: Annotated[tuple[Annotated[int, Meta(ge=6, le=16)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (6, 7, 12)


class Example(Experiment[ExampleParameters]):
    """No loss after the crash; before it, the temporal detector meets the loss that it is configured for."""

    id = "detection/E3"
    name = "detection/worked-example"
    title = "The worked example: 50 seconds against 10"
    source = "paper 002, section 4; fast-detection 8, E3"
    criterion = "worst crash: the temporal scheme takes on average at least 4.8 times as long as the longest fast detection, for every n"
    parameters = ExampleParameters
    seconds_per_cell = 0.18
    quick: ClassVar[Mapping[str, str]] = {"seeds": "30"}

    def cells(self, parameters: ExampleParameters, seed: int) -> Sequence[Cell]:
        schemes = [0, *parameters.members]
        return [
            {"members": members, "worst": worst, "seeds": parameters.seeds, "seed": seed * 1000 + members * 2 + worst}
            for members in schemes
            for worst in (True, False)
        ]

    def measure(self, cell: Cell) -> Measured:
        if cell["members"] == 0:
            times, unnoticed = _temporal(cell), 0
        else:
            group = Watching(cell["seed"], cell["members"], paper_config(INTERVAL, LATENCY, ACCURACY, LOSS))
            times, unnoticed = group.detections(cell["seeds"], heartbeats=3, lead=1, worst=cell["worst"])
        return {"members": cell["members"], "worst": cell["worst"], "times": times, "unnoticed": unnoticed}

    def judge(self, parameters: ExampleParameters, results: Sequence[Measured]) -> Finding:
        rows = {_key(row): summary(row["times"]) for row in results}
        temporal = rows[_name(0, worst=True)][MEAN]
        notes = [f"{_key(row)}: {row['unnoticed']} deaths were not reported" for row in results if row["unnoticed"]]
        ratios = {n: temporal / rows[_name(n, worst=True)]["max"] for n in parameters.members}
        notes += [f"n = {n}: {ratio:.2f} times as fast, expected at least {RATIO}" for n, ratio in ratios.items() if ratio < RATIO]
        measured: dict[str, Any] = by_column(rows)
        measured["times as fast"] = {f"n={n}": round(ratio, 3) for n, ratio in ratios.items()}
        worst = {_name(n, worst=True): PAPER["FFD" if n else TEMPORAL] for n in (0, *parameters.members)}
        return Finding(measured, {MEAN: worst, "times as fast": dict.fromkeys(measured["times as fast"], RATIO)}, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        means = finding.measured[MEAN]
        schemes = list(dict.fromkeys(key.partition(", ")[0] for key in means))
        for shift, when in ((-0.2, WORST), (0.2, UNIFORM)):
            keys = [f"{scheme}, {when}" for scheme in schemes]
            middle, low, high = ([finding.measured[what][key] for key in keys] for what in (MEAN, LOW, HIGH))
            places = [place + shift for place in range(len(schemes))]
            axes.bar(places, middle, width=0.38, yerr=errors(middle, low, high), capsize=3, label=f"measured, {when}")
        paper = [finding.expected[MEAN][f"{scheme}, {WORST}"] for scheme in schemes]
        axes.plot(
            [p - 0.2 for p in range(len(schemes))], paper, linestyle="none", marker="_", markersize=36, color="#1f2933", label="paper"
        )
        axes.set_xticks(range(len(schemes)), schemes)
        axes.set_ylabel("seconds to detect, mean and its 95 % interval")
        axes.legend()


def _temporal(cell: Cell) -> list[float]:
    detector = Temporal(heartbeats_to_miss(ACCURACY, LOSS), interval=INTERVAL, slack=LATENCY - DELAY)
    random = Random(f"{cell['seed']}/temporal")
    # Of the worst crashes only those count whose last heartbeat arrived: draw enough of them.
    heartbeats = round(1.3 * cell["seeds"]) + 20
    run = run_pair(detector, random, heartbeats=heartbeats, interval=INTERVAL, loss=LOSS, delay=DELAY, worst=cell["worst"])
    return run.times[: cell["seeds"]]


def _name(members: int, *, worst: bool) -> str:
    return f"{f'FFD n={members}' if members else TEMPORAL}, {WORST if worst else UNIFORM}"


def _key(row: Measured) -> str:
    return _name(row["members"], worst=row["worst"])


EXPERIMENT = Example()
