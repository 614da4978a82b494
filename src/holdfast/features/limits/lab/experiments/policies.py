"""limits/P1: how far above the limit does each policy go, under faults?

Spec: limits 1, 7 (RL4, RL5), 8 (P1), D10, D13. The runs of limits/mixed, where one limit of each policy stands beside the others under
the same faults and the same wants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.fleet import ROUNDING, STRICT_MOST, Fleet
from holdfast.features.limits.lab.scenarios.limits import POLICIES, LimitScenario
from holdfast.features.limits.lab.settled import LimitsSettled
from holdfast.lab.checker import Checker
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.lab.measured import shortened
from holdfast.lab.scenario import Setup, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCH = 20
STEADY, MEASURED, MOVING = KINDS = ("what members want is steady", "steady, and measured", "what members want changes")
STRICT_SHARE = 0.03  # RL5


class PoliciesParameters(Parameters, frozen=True, kw_only=True):
    """How many runs."""

    runs: Annotated[int, Meta(ge=1, le=100_000)] = 400


class Policies(Experiment[PoliciesParameters]):
    """Peaks of the sum of limits, by policy."""

    id = "limits/P1"
    name = "limits/policies"
    title = "Peaks of the sum of limits under faults: fair, strict, exact"
    source = "limits 8, P1"
    criterion = "exact: never above R; strict with steady wants: above 1.001 R in at most 3 % of the runs; RL1 to RL9 hold"
    parameters = PoliciesParameters
    seconds_per_cell = 15.0
    repetitions: ClassVar[str] = "runs"
    quick: ClassVar[Mapping[str, str]] = {"runs": "5"}

    def cells(self, parameters: PoliciesParameters, seed: int) -> Sequence[Cell]:
        return in_batches({}, parameters.runs, BATCH, seed * SEEDS_MAX)

    def measure(self, cell: Cell) -> Measured:
        peaks: list[dict[str, Any]] = []
        broken: list[str] = []
        for seed in range(cell["seed"], cell["seed"] + cell["runs"]):
            scenario = _Kept()
            outcome = run(scenario, seed)
            if not outcome.ok:
                broken.append(f"{outcome.violation}: {outcome.replay}")
            peaks.append(scenario.found())
        return {**cell, "peaks": peaks, "broken": broken}

    def judge(self, parameters: PoliciesParameters, results: Sequence[Measured]) -> Finding:
        peaks = [each for row in results for each in row["peaks"]]
        misses = [each for row in results for each in row["broken"]]
        of = {
            f"{policy}, {kind}": sorted(each[policy] for each in peaks if each["kinds"][policy] == kind)
            for policy in POLICIES
            for kind in KINDS
        }
        errors = sorted(each["error"] for each in peaks)
        measured: dict[str, Any] = {
            "runs": {key: len(values) for key, values in of.items()},
            "median peak": {key: _at(values, 0.5) for key, values in of.items()},
            "worst peak": {key: _at(values, 1.0) for key, values in of.items()},
            "runs above 1.001 R": {key: sum(value > STRICT_MOST for value in values) for key, values in of.items()},
            "p99 of the last error of a share, by R": _at(errors, 0.99),
            "peaks": of,
        }
        expected = {
            "median peak": {f"fair, {STEADY}": 1.19, f"strict, {STEADY}": 1.0, f"exact, {STEADY}": 1.0, f"fair, {MOVING}": 1.23},
            "worst peak": {f"fair, {STEADY}": 1.64, f"strict, {STEADY}": 1.12, f"exact, {STEADY}": 1.0, f"fair, {MOVING}": 1.66},
        }
        exact = {kind: measured["worst peak"][f"exact, {kind}"] for kind in KINDS}
        misses += [f"exact, {kind}: the sum was {peak:.6f} R" for kind, peak in exact.items() if peak > 1 + ROUNDING]
        steady = of[f"strict, {STEADY}"]
        above = measured["runs above 1.001 R"][f"strict, {STEADY}"]
        if above > STRICT_SHARE * len(steady):
            misses.append(f"strict, {STEADY}: above 1.001 R in {above} of {len(steady)} runs, accepted are {STRICT_SHARE:.0%}")
        return Finding(measured, expected, bool(peaks) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        plots = figure.subplots(1, len(KINDS), sharey=True)
        for axes, kind in zip(plots, KINDS, strict=True):
            for policy in POLICIES:
                values = finding.measured["peaks"][f"{policy}, {kind}"]
                axes.step(values, [(number + 1) / len(values) for number in range(len(values))], where="post", label=policy)
            axes.axvline(1.0, color="#7b8794", linestyle="--")
            axes.set_title(kind, fontsize=9)
            axes.set_xlabel("peak of the sum of limits, by R")
        plots[0].set_ylabel("share of the runs")
        plots[0].legend()


class _Kept(LimitScenario):
    """Keeps what the checkers of one run have seen."""

    def __init__(self) -> None:
        self._seen: Sequence[Checker] = ()

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        self._seen = super().checkers(setup)
        return self._seen

    def found(self) -> dict[str, Any]:
        fleet = next(each for each in self._seen if isinstance(each, Fleet))
        settled = next(each for each in self._seen if isinstance(each, LimitsSettled))
        kinds = {policy: STEADY if terms.rests else MEASURED if terms.steady else MOVING for policy, terms in fleet.terms.items()}
        peaks = {policy: round(peak, 9) for policy, peak in fleet.peaks.items()}
        return {**peaks, "kinds": kinds, "error": round(settled.worst, 6)}


def _at(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


EXPERIMENT = Policies()
