"""tickets/E8: the paper's bound on too many failures at once has the wrong exponent.

Spec: tickets 8 (E8), D25; paper 001, section 4.2. With mean mu = p_f n, Chernoff bounds the probability of more than 2 mu failures by
(e/4)^mu. The paper says (e/4)^(2 mu). Both are compared with the exact binomial tail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import e, exp, lgamma, log
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.lab.experiment import LIST_MAX, Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOME = Meta(min_length=1, max_length=LIST_MAX)
PROCESSES = (50, 100, 200, 400, 800, 1600, 3200)


class ChernoffParameters(Parameters, frozen=True, kw_only=True):
    """Nothing is drawn."""

    processes: Annotated[tuple[Annotated[int, Meta(ge=2, le=100_000)], ...], SOME] = PROCESSES  # n
    rates: Annotated[tuple[Annotated[float, Meta(gt=0.0, lt=0.5)], ...], SOME] = (0.01, 0.02, 0.05)  # p_f


class Chernoff(Experiment[ChernoffParameters]):
    """The tail, the bound that holds, the bound that was printed."""

    id = "tickets/E8"
    name = "tickets/chernoff"
    title = "More than twice the expected failures: bound and truth"
    source = "tickets 8, E8, D25; paper 001, section 4.2"
    criterion = (
        "the tail exceeds (e/4)^(2 p_f n) in some setting, n = 800 and p_f = 0.01 among them if asked for, and (e/4)^(p_f n) in none"
    )
    parameters = ChernoffParameters
    seconds_per_cell = 0.001
    repetitions = ""
    quick: ClassVar[Mapping[str, str]] = {"processes": "[100,400,800]"}

    def cells(self, parameters: ChernoffParameters, seed: int) -> Sequence[Cell]:
        return [{"n": n, "p_f": p_f} for p_f in parameters.rates for n in parameters.processes]

    def measure(self, cell: Cell) -> Measured:
        n, p_f = cell["n"], cell["p_f"]
        return {**cell, "tail": tail(n, p_f), "paper": (e / 4) ** (2 * p_f * n), "right": (e / 4) ** (p_f * n)}

    def judge(self, parameters: ChernoffParameters, results: Sequence[Measured]) -> Finding:
        notes = [
            f"n={row['n']}, p_f={row['p_f']:g}: {row['tail']:.3g} is over (e/4)^(p_f n) = {row['right']:.3g}"
            for row in results
            if row["tail"] > row["right"]
        ]
        beyond = [row for row in results if row["tail"] > row["paper"]]
        example = [row for row in results if (row["n"], row["p_f"]) == (800, 0.01)]
        if not beyond or any(row not in beyond for row in example):
            notes.append("the paper's bound holds where D25 says that it does not")
        measured = {
            "settings": len(results),
            "beyond the paper's bound": len(beyond),
            "beyond the right bound": sum(row["tail"] > row["right"] for row in results),
            "n=800, p_f=0.01": {key: round(example[0][key], 6) for key in ("tail", "paper", "right")} if example else None,
            "rows": [dict(row) for row in results],
        }
        expected: dict[str, Any] = {
            "beyond the paper's bound": "> 0",
            "beyond the right bound": 0,
            "n=800, p_f=0.01": {"tail": 0.0035, "paper": 0.0021},
        }
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        rows = finding.measured["rows"]
        rates = dict.fromkeys(row["p_f"] for row in rows)
        for axes, p_f in zip(figure.subplots(1, len(rates), squeeze=False)[0], rates, strict=True):
            line = [row for row in rows if row["p_f"] == p_f]
            sizes = [row["n"] for row in line]
            axes.semilogy(sizes, [row["tail"] for row in line], marker="o", label="exact")
            axes.semilogy(sizes, [row["right"] for row in line], linestyle="--", label="(e/4)^(p_f n)")
            axes.semilogy(sizes, [row["paper"] for row in line], linestyle=":", label="the paper: (e/4)^(2 p_f n)")
            axes.set_title(f"p_f = {p_f:g}")
            axes.set_xlabel("n")
            axes.set_ylim(bottom=1e-12)
        figure.axes[0].set_ylabel("P(more than 2 p_f n fail)")
        figure.axes[0].legend(loc="lower left")


def tail(n: int, p: float) -> float:
    """P(X > 2 p n) for a binomial X."""
    first = int(2 * p * n + 1e-9) + 1  # 2 p n is often whole, and then it does not count itself
    return sum(exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * log(p) + (n - i) * log(1 - p)) for i in range(first, n + 1))


EXPERIMENT = Chernoff()
