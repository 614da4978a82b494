"""kit/F8: does a holder always end before the process that counts for it, at every rate the clocks may have?

Spec: foundation F8; ring 4 ("1 + 2 rho is not enough"), tickets D5. Each rule is measured by its worst overlap: true seconds, per second
of lease, in which the holder is still sure of itself and the other side no longer is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from holdfast.kit.deadline import RHO_MAX, holder_length, wait_length
from holdfast.lab.experiment import LIST_MAX, Cell, Count, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDING = 1e-9  # the formulas are tight, floats are not exact

# Each takes rho, the rate of the holder's clock, the rate of the other's, and the delay of the answer; a lease is one second long.
Overlap = Callable[[float, float, float, float], float]
RULES: Mapping[str, Overlap] = {
    "holder_length": lambda rho, holder, other, delay: holder_length(1, rho) / holder - 1 / other,
    "wait_length": lambda rho, holder, other, delay: 1 / holder - wait_length(1, rho, 0) / other,
    "naive: hold what was granted": lambda rho, holder, other, delay: 1 / holder - 1 / other,
    "naive: wait 1 + 2 rho": lambda rho, holder, other, delay: 1 / holder - (1 + 2 * rho) / other,
    "naive: count from the receipt": lambda rho, holder, other, delay: delay + holder_length(1, rho) / holder - 1 / other,
}
SOUND = ("holder_length", "wait_length")
RHO_MIN = 1e-4  # waiting 1 + 2 rho is wrong by 2 rho^2, which must be more than ``ROUNDING``
Rho = Annotated[float, Meta(ge=RHO_MIN, le=RHO_MAX)]


class DeadlineParameters(Parameters, frozen=True, kw_only=True):
    """Every draw is a repetition. A rho below ``RHO_MIN`` is an overlap that drowns in rounding."""

    rhos: Annotated[tuple[Rho, ...], Meta(min_length=1, max_length=LIST_MAX)] = (1e-4, 1e-3, 1e-2, 5e-2)
    draws: Count = 50_000  # of rates and delays, per rho
    delay_max: Annotated[float, Meta(ge=0.001, le=1.0)] = 0.1  # lease lengths that the answer is on the road


class DeadlineBounds(Experiment[DeadlineParameters]):
    """Random rates within 1 +- rho, the extremes among them, and random delays."""

    id = "kit/F8"
    name = "kit/deadline"
    title = "Two clocks, one lease: who ends first"
    source = "foundation F8; ring 4; tickets D5"
    criterion = "worst overlap of holder_length and wait_length at most 0 for every rho; every naive rule overlaps at every rho"
    parameters = DeadlineParameters
    seconds_per_cell = 0.099
    repetitions = "draws"
    quick: ClassVar[Mapping[str, str]] = {"draws": "1000"}

    def cells(self, parameters: DeadlineParameters, seed: int) -> Sequence[Cell]:
        shared = {"draws": parameters.draws, "delay_max": parameters.delay_max}
        return [{"rho": rho, "seed": f"{seed}/{rho}", **shared} for rho in parameters.rhos]

    def measure(self, cell: Cell) -> Measured:
        random, rho = Random(cell["seed"]), cell["rho"]
        worst = dict.fromkeys(RULES, float("-inf"))
        for _ in range(cell["draws"]):
            holder, other, delay = _rate(random, rho), _rate(random, rho), random.uniform(0, cell["delay_max"])
            for rule, overlap in RULES.items():
                worst[rule] = max(worst[rule], overlap(rho, holder, other, delay))
        return {"rho": rho, "worst": worst}

    def judge(self, parameters: DeadlineParameters, results: Sequence[Measured]) -> Finding:
        worst = {rule: [result["worst"][rule] for result in results] for rule in RULES}
        notes = [f"{rule} overlaps: {max(worst[rule])}" for rule in SOUND if max(worst[rule]) > ROUNDING]
        notes += [f"{rule} does not overlap: {min(found)}" for rule, found in worst.items() if rule not in SOUND and min(found) <= ROUNDING]
        measured = {"rho": [result["rho"] for result in results], "worst_overlap": worst}
        return Finding(measured, {"worst_overlap": dict.fromkeys(SOUND, 0.0)}, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for rule, found in finding.measured["worst_overlap"].items():
            axes.plot(finding.measured["rho"], [max(value, ROUNDING) for value in found], marker="o", label=rule)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("rho")
        axes.set_ylabel("worst overlap, share of the lease (at the bottom: none)")
        axes.legend()


def _rate(random: Random, rho: float) -> float:
    """A third of the draws are the extremes: that is where formulas break."""
    return 1 + rho * random.choice((-1.0, 1.0, random.uniform(-1, 1)))


EXPERIMENT = DeadlineBounds()
