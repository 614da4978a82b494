"""detection/E11: what if one cause loses a heartbeat to all monitors?

Spec: fast-detection 8 (E11), D10; paper 002, section 6.2: "we could extend our model to include the correlations".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta

from holdfast.features.leadership.detector.config import FfdConfig
from holdfast.features.leadership.lab.experiments.ffd_accuracy import INTERVAL, LATENCY, live
from holdfast.features.leadership.lab.watching import Watching
from holdfast.lab.experiment import LIST_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.rates import rate_interval
from holdfast.lab.samples import HIGH, LOW, by_column, errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMBERS, LOSS = 8, 0.1  # n, p
Way = Literal["ignored", "known", "measured", "measured while demoted"]
WAYS: tuple[Way, ...] = ("ignored", "known", "measured", "measured while demoted")
IGNORED, KNOWN, MEASURED, DEMOTED = WAYS
RATE = "acted reports per heartbeat"
CLOSE = 0.2  # "about c": this share of it
TOLD = "measured while demoted: every loss that all share begins a new term, and what its monitors would have reported of it is dropped"
PARTS = 4  # pieces of the work per cell, so that other processes can help
PROTOTYPE_DEMAND = 1e-3  # P_m
PROTOTYPE = {"ignored, c=0.01": 9.9e-3, "ignored, c=0.05": 4.9e-2, "known, c=0.01": 1e-4, "known, c=0.05": 2.5e-4}


class CommonLossParameters(Parameters, frozen=True, kw_only=True):
    """Every heartbeat is a repetition."""

    commons: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.2)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (0.0, 0.01, 0.05)
    ways: Annotated[tuple[Way, ...], Meta(min_length=1, max_length=4)] = WAYS
    demand: Annotated[float, Meta(ge=1e-4, le=0.1)] = 1e-3  # P_m
    heartbeats: Annotated[int, Meta(ge=400, le=10_000_000)] = 20_000  # counted, per cell
    training: Annotated[int, Meta(ge=100, le=100_000)] = 5000  # before: the window of the estimate


class CommonLoss(Experiment[CommonLossParameters]):
    """A share c of all heartbeats reaches no monitor, the rest is lost independently. The watched stays the same (section 4, "static
    settings"): reports are counted, and none is acted on. How it is where every acted report begins a new term is shown beside, not
    judged."""

    id = "detection/E11"
    name = "detection/common-loss"
    title = "One cause, many losses: what independence does not see"
    source = "paper 002, section 6.2; fast-detection 8, E11, D10"
    criterion = "c ignored: mistakes within 20 % of c; c known, and c measured (after 5000 heartbeats): the 95 % interval ends below P_m"
    parameters = CommonLossParameters
    seconds_per_cell = 0.92
    repetitions = "heartbeats"
    quick: ClassVar[Mapping[str, str]] = {
        "commons": "[0.05]",
        "ways": '["ignored","measured"]',
        "demand": "0.01",
        "heartbeats": "2000",
        "training": "250",
    }

    def cells(self, parameters: CommonLossParameters, seed: int) -> Sequence[Cell]:
        share = -(-parameters.heartbeats // PARTS)
        return [
            {
                "c": c,
                "way": way,
                "demand": parameters.demand,
                "heartbeats": share,
                "training": parameters.training,
                "seed": seed * 10_000 + number * 100 + part,
            }
            for number, c in enumerate(parameters.commons)
            for way in parameters.ways
            for part in range(PARTS)
        ]

    def measure(self, cell: Cell) -> Measured:
        common = {IGNORED: 0.0, KNOWN: cell["c"]}.get(cell["way"])
        config = FfdConfig(t_itv=INTERVAL, t_lat=LATENCY, p_m=cell["demand"], common=common)
        group = Watching(cell["seed"], MEMBERS, config, loss=LOSS)
        random, share = Random(f"{cell['seed']}/common"), cell["c"]
        group.watched.lost = lambda: random.random() < share
        training = cell["training"] if common is None else cell["training"] // 5
        heartbeats, count = live(group, training, cell["heartbeats"], demote=cell["way"] == DEMOTED)
        return {"c": cell["c"], "way": cell["way"], "heartbeats": heartbeats, "mistakes": count, "estimate": group.watched.side.common}

    def judge(self, parameters: CommonLossParameters, results: Sequence[Measured]) -> Finding:
        keys = dict.fromkeys((row["way"], row["c"]) for row in results)
        rows = {key: _row([row for row in results if (row["way"], row["c"]) == key]) for key in keys}
        notes = [note for (way, c), row in rows.items() for note in _misses(way, c, row, parameters.demand)]
        measured: dict[str, Any] = by_column({_name(*key): row for key, row in rows.items()})
        expected = {RATE: {_name(way, c): c if way == IGNORED and c else parameters.demand for way, c in rows}}
        expected["prototype"] = {
            key: rate for key, rate in PROTOTYPE.items() if key in measured[RATE] and parameters.demand == PROTOTYPE_DEMAND
        }
        measured["P_m"] = parameters.demand
        measured["prototype"] = {key: measured[RATE][key] for key in expected["prototype"]}
        return Finding(measured, expected, not notes, (*notes, TOLD))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        demand = finding.measured["P_m"]
        floor = demand / 100
        cells = {key: key.split(", c=") for key in finding.measured[RATE]}
        for shift, way in zip((0.96, 0.99, 1.02, 1.05), WAYS, strict=True):
            keys = [key for key, (each, _) in cells.items() if each == way]
            if not keys:
                continue
            places = [max(float(cells[key][1]), 0.001) * shift for key in keys]
            rate, low, high = ([max(finding.measured[what][key], floor) for key in keys] for what in (RATE, LOW, HIGH))
            axes.errorbar(
                places, rate, yerr=errors(rate, low, high), marker="o", capsize=4, linestyle="--", label=f"c {way}, 95 % interval"
            )
        ends = [0.001, 0.1]
        axes.plot(ends, ends, color="#7b8794", linestyle=":", label="c: what nobody can beat with one heartbeat")
        axes.axhline(demand, color="#7b8794", linestyle="--", label="P_m")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("c: share of heartbeats that reach nobody (0 is drawn at the left end)")
        axes.set_ylabel("acted reports about a live leader, per heartbeat")
        axes.legend(loc="center left")


def _name(way: str, c: float) -> str:
    return f"{way}, c={c:g}"


def _row(parts: Sequence[Measured]) -> dict[str, float]:
    heartbeats, count = sum(row["heartbeats"] for row in parts), sum(row["mistakes"] for row in parts)
    low, high = rate_interval(count, heartbeats)
    estimate = sum(row["estimate"] for row in parts) / len(parts)
    return {RATE: count / heartbeats, LOW: low, HIGH: high, "mistakes": count, "heartbeats": heartbeats, "c used at the end": estimate}


def _misses(way: str, c: float, row: Mapping[str, float], demand: float) -> list[str]:
    told = f"{_name(way, c)}: {row[RATE]:.4g} per heartbeat (95 %: {row[LOW]:.4g} to {row[HIGH]:.4g})"
    if way == DEMOTED:
        return []
    if way == IGNORED and c:
        return [f"{told}, expected about c"] if abs(row[RATE] - c) > CLOSE * c else []
    return [f"{told}, expected below {demand:g}"] if row[HIGH] > demand else []


EXPERIMENT = CommonLoss()
