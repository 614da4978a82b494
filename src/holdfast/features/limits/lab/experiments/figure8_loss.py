"""limits/F8: what does packet loss do to the estimate, without and with acknowledgements?

Spec: limits 5.3, 8 (F8), D1, D4, D6; paper 003, 7.1.2, Figure 8. Six members, no traffic. All of them report 1, and 10 from 2 s on;
push-sum as it was published has lost messages for a minute before that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.measures import between, mean, thinned
from holdfast.features.limits.lab.sums import SumGroup
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMBERS, EPOCH = 6, 0.1
BEFORE, AFTER = 1.0, 10.0  # values of each member
CHANGED_AT, END = 2.0, 12.0
LOST_FOR = 60.0  # seconds in which plain push-sum loses messages before the change
FORMED = 3.0  # seconds without loss at the beginning
LOOK = 0.1
NEAR, WITHIN = 0.01, 3.0  # criterion: error, seconds after the change
DIVERGED = 10.0  # 1000 %, the paper's words
PLAIN, ACKED = "plain", "acknowledged"
DELAY = Uniform(0.001, 0.005)


class LossParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 7.1.2."""

    losses: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.5)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (
        0.0,
        0.01,
        0.05,
        0.1,
        0.25,
    )


class Loss(Experiment[LossParameters]):
    """Plain push-sum beside ours, for each loss."""

    id = "limits/F8"
    name = "limits/loss"
    title = "Push-sum under packet loss: diverging without acknowledgements, exact with them"
    source = "paper 003, 6.2.1, Figure 8; limits 8, F8"
    criterion = (
        "plain: an error of 1000 % or more at a loss of 1 % or more; acknowledged: below 1 % within 3 s at each loss, and RL1 to RL3 hold"
    )
    parameters = LossParameters
    seconds_per_cell = 1.0
    quick: ClassVar[Mapping[str, str]] = {"losses": "[0.0,0.25]"}

    def cells(self, parameters: LossParameters, seed: int) -> Sequence[Cell]:
        return [
            {"loss": loss, "way": way, "seed": seed * SEEDS_MAX + number}
            for loss in parameters.losses
            for way in (PLAIN, ACKED)
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: LossParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        misses = [*violations(results), *(note for row in rows for note in _misses(row))]
        worst = {
            way: {_percent(loss): round(max(row["last"] for row in of), 6) for loss in parameters.losses if (of := _of(rows, way, loss))}
            for way in (PLAIN, ACKED)
        }
        measured: dict[str, Any] = {
            "largest error of plain, x": {
                _percent(loss): max(row["worst"] for row in of) for loss in parameters.losses if (of := _of(rows, PLAIN, loss))
            },
            "error 3 s after the change": worst,
            "seconds to 10 %": {
                _percent(loss): max(row["seconds to 10 %"] for row in of) for loss in parameters.losses if (of := _of(rows, ACKED, loss))
            },
            "lines": {f"{row['way']}, {_percent(row['loss'])}": row["line"] for row in rows if row["seed"] % SEEDS_MAX == 0},
        }
        expected = {
            "largest error of plain, x": "the paper: over 10 with any loss",
            "error 3 s after the change": "the paper: acknowledged converges even at 25 %",
        }
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        plots = figure.subplots(1, 2, sharey=True)
        for axes, way in zip(plots, (PLAIN, ACKED), strict=True):
            for label, line in finding.measured["lines"].items():
                if label.startswith(way):
                    axes.semilogy([at for at, _ in line], [max(1e-6, error) * 100 for _, error in line], label=label.partition(", ")[2])
            axes.axvline(CHANGED_AT, color="#7b8794", linestyle="--")
            axes.set_title("as published" if way == PLAIN else "acknowledged")
            axes.set_xlabel("seconds")
            axes.legend(fontsize=7, title="loss")
        plots[0].set_ylabel("mean relative error, %")


def _play(cell: Cell) -> Measured:
    plain = cell["way"] == PLAIN
    config = LimitsConfig(epoch=EPOCH, branching=1)
    group = SumGroup(cell["seed"], MEMBERS, config, link=Link(DELAY), plain=plain, checked=True)
    group.set_all(BEFORE)
    group.install()
    group.run(FORMED)
    group.world.network.set_link(Link(DELAY, loss=cell["loss"]))
    group.run(LOST_FOR if plain else 0.0)
    began = group.world.now
    line: list[tuple[float, float]] = []
    truth = MEMBERS * BEFORE
    while group.world.now < began + END - LOOK / 2:
        group.run(LOOK)
        at = group.world.now - began
        if truth == MEMBERS * BEFORE and at >= CHANGED_AT - LOOK / 2:
            truth = MEMBERS * AFTER
            group.set_all(AFTER)
        line.append((at, mean(group.errors(truth))))
    after = [(at, error) for at, error in line if at > CHANGED_AT]
    return {
        **cell,
        "worst": round(max(error for _, error in after), 4),
        "last": max(between(line, CHANGED_AT + WITHIN, END)),
        "seconds to 10 %": round(max((at for at, error in after if error > 0.1), default=CHANGED_AT) - CHANGED_AT, 2),
        "line": thinned(line),
    }


def _misses(row: Measured) -> list[str]:
    where = f"{row['way']}, loss {_percent(row['loss'])}, seed {row['seed']}"
    if row["way"] == ACKED and row["last"] >= NEAR:
        return [f"{where}: an error of {row['last']:.2%} {WITHIN:g} s after the change"]
    if row["way"] == PLAIN and row["loss"] >= 0.01 and row["worst"] < DIVERGED:
        return [f"{where}: no error above {row['worst']:.0%}"]
    return []


def _of(rows: Sequence[Measured], way: str, loss: float) -> list[Measured]:
    return [row for row in rows if (row["way"], row["loss"]) == (way, loss)]


def _percent(loss: float) -> str:
    return f"{loss:.0%}"


EXPERIMENT = Loss()
