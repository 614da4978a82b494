"""detection/E7: does accuracy get better when the group grows?

Spec: fast-detection 8 (E7), 1 (proof of ``P_m = p_L^k``); paper 002, section 4: "the accuracy of the new algorithm gets better when the
group size grows". The rule alone, with as many misses demanded in a large group as in a small one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from holdfast.errors import ConfigError
from holdfast.features.leadership.lab.spatial import chance, mistakes
from holdfast.lab.experiment import LIST_MAX, Cell, Count, Experiment, Finding, Measured, Parameters
from holdfast.lab.rates import rate_interval
from holdfast.lab.samples import HIGH, LOW, errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE, FORMULA = "mistakes per heartbeat", "by the formula"
PARTS = 4  # pieces of the work per size, so that other processes can help
MONITORS_MAX = 63


class GroupSizeParameters(Parameters, frozen=True, kw_only=True):
    """Every heartbeat is a repetition."""

    loss: Annotated[float, Meta(ge=0.05, le=0.6)] = 0.3  # p_L
    misses: Annotated[int, Meta(ge=2, le=10)] = 3  # k
    monitors: Annotated[tuple[Annotated[int, Meta(ge=2, le=MONITORS_MAX)], ...], Meta(min_length=3, max_length=LIST_MAX)] = (
        3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 30,
    )  # fmt: skip
    heartbeats: Count = 400_000  # per size

    def __post_init__(self) -> None:
        if not {self.misses, self.misses + 1} <= set(self.monitors) or max(self.monitors) < 4 * self.misses:
            raise ConfigError(f"monitors: accepted are lists with k = {self.misses}, k + 1 and at least one of 4 k or more")


class GroupSize(Experiment[GroupSizeParameters]):
    """A live leader, everything is lost now and then; k misses and no veto make a report."""

    id = "detection/E7"
    name = "detection/group-size"
    title = "A larger group is more accurate, once it is large enough"
    source = "paper 002, section 4; fast-detection 8, E7"
    criterion = "both regimes: more mistakes with k + 1 monitors than with k, fewer than with k in the largest group; never more than p^k"
    parameters = GroupSizeParameters
    seconds_per_cell = 0.0076
    repetitions = "heartbeats"
    quick: ClassVar[Mapping[str, str]] = {"heartbeats": "60000", "monitors": "[3,4,8,20]"}

    def cells(self, parameters: GroupSizeParameters, seed: int) -> Sequence[Cell]:
        return [
            {
                "monitors": monitors,
                "misses": parameters.misses,
                "loss": parameters.loss,
                "heartbeats": -(-parameters.heartbeats // PARTS),
                "seed": f"{seed}/{monitors}/{part}",
            }
            for monitors in parameters.monitors
            for part in range(PARTS)
        ]

    def measure(self, cell: Cell) -> Measured:
        count = mistakes(Random(cell["seed"]), cell["heartbeats"], cell["monitors"], cell["misses"], cell["loss"])
        return {"monitors": cell["monitors"], "heartbeats": cell["heartbeats"], "mistakes": count}

    def judge(self, parameters: GroupSizeParameters, results: Sequence[Measured]) -> Finding:
        rows = {monitors: _row(monitors, parameters, results) for monitors in parameters.monitors}
        notes = _misses(rows, parameters)
        measured = {what: {_key(m): row[what] for m, row in rows.items()} for what in (RATE, LOW, HIGH, "mistakes", "heartbeats")}
        measured["demanded"] = {"p^k": demanded(parameters)}
        expected = {
            RATE: {_key(m): chance(m, parameters.misses, parameters.loss) for m in rows},
            "demanded": {"p^k": demanded(parameters)},
        }
        peak = max(rows, key=lambda monitors: rows[monitors][RATE])
        told = f"most mistakes with {peak} monitors: more of them can reach k = {parameters.misses} while a silent one cannot veto"
        return Finding(measured, expected, not notes, (*notes, told))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        sizes = [int(key.partition("=")[2]) for key in finding.measured[RATE]]
        rate, low, high = (list(finding.measured[what].values()) for what in (RATE, LOW, HIGH))
        axes.errorbar(sizes, rate, yerr=errors(rate, low, high), marker="o", linestyle="none", capsize=4, label="measured, 95 % interval")
        axes.plot(sizes, list(finding.expected[RATE].values()), color="#7b8794", linestyle="--", label="formula")
        axes.axhline(finding.measured["demanded"]["p^k"], color="#7b8794", linestyle=":", label="p^k: the demand")
        axes.set_yscale("log")
        axes.set_xlabel("monitors: n - 1")
        axes.set_ylabel("mistakes per heartbeat of a live leader")
        axes.legend(loc="lower left")


def demanded(parameters: GroupSizeParameters) -> float:
    return float(parameters.loss**parameters.misses)


def _key(monitors: int) -> str:
    return f"monitors={monitors}"


def _row(monitors: int, parameters: GroupSizeParameters, results: Sequence[Measured]) -> dict[str, float]:
    parts = [row for row in results if row["monitors"] == monitors]
    heartbeats, count = sum(row["heartbeats"] for row in parts), sum(row["mistakes"] for row in parts)
    low, high = rate_interval(count, heartbeats)
    return {RATE: count / heartbeats, LOW: low, HIGH: high, "mistakes": count, "heartbeats": heartbeats}


def _misses(rows: Mapping[int, Mapping[str, float]], parameters: GroupSizeParameters) -> list[str]:
    """Differences count only where the intervals do not touch."""
    least, more, largest = rows[parameters.misses], rows[parameters.misses + 1], rows[max(rows)]
    notes = []
    if more[LOW] <= least[HIGH]:
        notes.append(f"{more[RATE]:.4g} with k + 1 monitors is not clearly above {least[RATE]:.4g} with k")
    if largest[HIGH] >= least[LOW]:
        notes.append(f"{largest[RATE]:.4g} with {max(rows)} monitors is not clearly below {least[RATE]:.4g} with k")
    notes += [
        f"{m} monitors: {row[RATE]:.4g} is above p^k = {demanded(parameters):.4g}"
        for m, row in rows.items()
        if row[HIGH] > demanded(parameters)
    ]
    return notes


EXPERIMENT = GroupSize()
