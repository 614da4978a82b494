"""tickets/E6: is a ticket free, if processes fail all the time and tickets of the failed take a while to come back?

Spec: tickets 8 (E6); paper 001, section 4.2 (availability). The paper's model, not a protocol: a constant share alpha of n tickets is held
by processes that work; in each round each of them fails with probability p_f and is replaced; the ticket of a failed one comes back
after 1/alpha rounds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import comb, floor
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.lab.experiment import LIST_MAX, Cell, Count, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SURE = 0.999  # up to the paper's threshold
FALLEN_AT, FALLEN = 2.0, 0.75  # at twice the threshold fewer rounds than this have a free ticket
SOME = Meta(min_length=1, max_length=LIST_MAX)


class AvailabilityParameters(Parameters, frozen=True, kw_only=True):
    """Every round is a repetition."""

    tickets: Annotated[int, Meta(ge=4, le=10_000)] = 256  # n
    alphas: Annotated[tuple[Annotated[float, Meta(gt=0.0, lt=1.0)], ...], SOME] = (0.25, 0.5, 0.75)
    multiples: Annotated[tuple[Annotated[float, Meta(gt=0.0, le=2.5)], ...], SOME] = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5)
    rounds: Count = 4000


class Availability(Experiment[AvailabilityParameters]):
    """P(some ticket is free) over p_f, in multiples of the paper's threshold."""

    id = "tickets/E6"
    name = "tickets/availability"
    title = "Free tickets in spite of failures: the paper's model"
    source = "tickets 8, E6; paper 001, section 4.2"
    criterion = (
        "a ticket is free in at least 0.999 of the rounds up to p_f = (1 - alpha)/2, and in fewer than 0.75 of them from twice that on"
    )
    parameters = AvailabilityParameters
    seconds_per_cell = 0.0054
    repetitions = "rounds"
    quick: ClassVar[Mapping[str, str]] = {"rounds": "1000", "multiples": "[0.5,1.0,2.0,2.5]"}

    def cells(self, parameters: AvailabilityParameters, seed: int) -> Sequence[Cell]:
        return [
            {
                "tickets": parameters.tickets,
                "alpha": alpha,
                "multiple": multiple,
                "p_f": min(1.0, multiple * (1 - alpha) / 2),
                "rounds": parameters.rounds,
                "seed": seed,
            }
            for alpha in parameters.alphas
            for multiple in parameters.multiples
        ]

    def measure(self, cell: Cell) -> Measured:
        random = Random(f"{cell['seed']}/availability/{cell['alpha']}/{cell['multiple']}")
        free = _free(random, cell["tickets"], cell["alpha"], cell["p_f"], cell["rounds"])
        return {"alpha": cell["alpha"], "multiple": cell["multiple"], "p_f": round(cell["p_f"], 6), "free": free / cell["rounds"]}

    def judge(self, parameters: AvailabilityParameters, results: Sequence[Measured]) -> Finding:
        notes = [note for row in results for note in _misses(row)]
        rows: dict[str, dict[str, Any]] = {}
        for row in results:
            rows.setdefault(f"alpha={row['alpha']:g}", {})[f"{row['multiple']:g}x"] = round(row["free"], 4)
        expected = {"up to 1x": f">= {SURE}", "from 2x on": f"< {FALLEN}"}
        return Finding({"P(free)": rows, "points": [dict(row) for row in results]}, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        points = finding.measured["points"]
        for alpha in dict.fromkeys(point["alpha"] for point in points):
            line = [point for point in points if point["alpha"] == alpha]
            axes.plot([point["multiple"] for point in line], [point["free"] for point in line], marker="o", label=f"alpha = {alpha:g}")
        axes.axvline(1.0, color="#7b8794", linestyle="--", label="the paper's threshold")
        axes.set_xlabel("p_f in multiples of (1 - alpha)/2")
        axes.set_ylabel("share of rounds with a free ticket")
        axes.set_ylim(0, 1.02)
        axes.legend()


def _free(random: Random, n: int, alpha: float, p_f: float, rounds: int) -> int:
    """Rounds in which fewer than (1 - alpha) n tickets belong to failed processes. The first few, while failures pile up, do not count."""
    working = round(alpha * n)
    failures = _binomial(working, p_f)
    shortest = floor(1 / alpha)
    odd = 1 / alpha - shortest  # The share of failures that takes a round longer, so that the mean is 1/alpha.
    window: deque[tuple[int, int]] = deque(maxlen=shortest + 1)  # failures of the last rounds, and how many of them take longer
    free = 0
    for round_ in range(-shortest - 1, rounds):
        failed = bisect_left(failures, random.random())
        window.append((failed, sum(random.random() < odd for _ in range(failed)) if odd else 0))
        recent = list(window)
        held = sum(each for each, _ in recent[-shortest:]) + (recent[0][1] if len(recent) > shortest else 0)
        free += round_ >= 0 and working + held < n
    return free


def _binomial(trials: int, p: float) -> list[float]:
    """Cumulative probabilities of 0, 1, ... successes; the last is 1, whatever was rounded."""
    found = list(accumulate(comb(trials, each) * p**each * (1 - p) ** (trials - each) for each in range(trials + 1)))
    return [*found[:-1], 1.0]


def _misses(row: Measured) -> list[str]:
    setting = f"alpha={row['alpha']:g}, p_f={row['p_f']:g} ({row['multiple']:g} times the threshold)"
    if row["multiple"] <= 1.0 and row["free"] < SURE:
        return [f"{setting}: a ticket is free in {row['free']:.4f} of the rounds, expected at least {SURE}"]
    if row["multiple"] >= FALLEN_AT and row["free"] >= FALLEN:
        return [f"{setting}: a ticket is free in {row['free']:.4f} of the rounds, expected fewer than {FALLEN}"]
    return []


EXPERIMENT = Availability()
