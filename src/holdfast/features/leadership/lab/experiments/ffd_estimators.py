"""detection/E16: are the loss of a link and the common cause measurable?

Spec: fast-detection 8 (E16), 4 (p_i, c), D8, D10; paper 002, section 6.2: "likely to be measurable". The estimators alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.leadership.detector.common import CommonCause
from holdfast.features.leadership.detector.config import FfdConfig
from holdfast.features.leadership.detector.loss import Loss
from holdfast.lab.experiment import LIST_MAX, Cell, Count, Experiment, Finding, Measured, Parameters
from holdfast.lab.rates import wilson_interval
from holdfast.lab.samples import HIGH, LOW, mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COVERAGE, ESTIMATE = "share of runs with p_i at least p", "c, mean of the runs"
COVERED = 0.95
NAMES = tuple(f"n{i}" for i in range(7))  # the monitors of E11
LINK_LOSS = 0.1  # beside the common cause; reports are lost as often
BITS = (1 << 32) - 1
PROTOTYPE = {"c=0.01, 1000": 0.0095, "c=0.01, 5000": 0.0103}
SOME = Meta(min_length=1, max_length=LIST_MAX)


class EstimatorsParameters(Parameters, frozen=True, kw_only=True):
    """``runs`` judge the coverage of p; the common cause has fewer, each of which is as long as its window."""

    losses: Annotated[tuple[Annotated[float, Meta(ge=0.0005, le=0.5)], ...], SOME] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3)
    heartbeats: Annotated[tuple[Annotated[int, Meta(ge=40, le=1000)], ...], SOME] = (50, 300, 1000)
    runs: Count = 4000  # per loss and number of heartbeats
    commons: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.5)], ...], SOME] = (0.0, 0.001, 0.01, 0.05)
    common_heartbeats: Annotated[tuple[Annotated[int, Meta(ge=100, le=100_000)], ...], SOME] = (500, 1000, 2000, 5000)
    common_runs: Annotated[int, Meta(ge=2, le=100_000)] = 300  # per c


class Estimators(Experiment[EstimatorsParameters]):
    """Loss: coin tosses until the estimate is asked for. Common cause: seven monitors whose reports get lost as heartbeats do."""

    id = "detection/E16"
    name = "detection/estimators"
    title = "Loss and common cause can be measured"
    source = "paper 002, section 6.2; fast-detection 8, E16, D8, D10"
    criterion = "the upper limit p_i is at least the true p in 95 % of the runs, in every cell"
    parameters = EstimatorsParameters
    seconds_per_cell = 0.062
    repetitions = "runs"
    quick: ClassVar[Mapping[str, str]] = {
        "losses": "[0.003,0.1,0.3]",
        "heartbeats": "[50,300]",
        "runs": "400",
        "commons": "[0.0,0.05]",
        "common_heartbeats": "[200,400]",
        "common_runs": "3",
    }

    def cells(self, parameters: EstimatorsParameters, seed: int) -> Sequence[Cell]:
        losses: list[Cell] = [
            {"p": p, "heartbeats": n, "runs": parameters.runs, "seed": f"{seed}/{p}/{n}"}
            for p in parameters.losses
            for n in parameters.heartbeats
        ]
        commons: list[Cell] = [
            {"c": c, "looks": list(parameters.common_heartbeats), "seed": f"{seed}/{c}/{run}"}
            for c in parameters.commons
            for run in range(parameters.common_runs)
        ]
        return losses + commons

    def measure(self, cell: Cell) -> Measured:
        random = Random(cell["seed"])
        if "c" in cell:
            return {"c": cell["c"], "estimates": estimates(random, cell["c"], cell["looks"])}
        covered = sum(upper(random, cell["p"], cell["heartbeats"]) >= cell["p"] for _ in range(cell["runs"]))
        return {"p": cell["p"], "heartbeats": cell["heartbeats"], "covered": covered, "runs": cell["runs"]}

    def judge(self, parameters: EstimatorsParameters, results: Sequence[Measured]) -> Finding:
        covered = {f"p={row['p']:g}, {row['heartbeats']}": (row["covered"], row["runs"]) for row in results if "p" in row}
        shares = {key: count / runs for key, (count, runs) in covered.items()}
        notes = [f"{key} heartbeats: {share:.3f} of the runs, expected {COVERED}" for key, share in shares.items() if share < COVERED]
        ends = {key: wilson_interval(*counts) for key, counts in covered.items()}
        rows = {c: _curve(c, parameters, results) for c in parameters.commons}
        flat = {f"c={c:g}, {n}": row for c, line in rows.items() for n, row in line.items()}
        measured: dict[str, Any] = {
            COVERAGE: shares,
            f"{COVERAGE}, {LOW}": {key: round(low, 5) for key, (low, _) in ends.items()},
            ESTIMATE: {key: row[0] for key, row in flat.items()},
            f"{ESTIMATE}, {LOW}": {key: row[1] for key, row in flat.items()},
            f"{ESTIMATE}, {HIGH}": {key: row[2] for key, row in flat.items()},
        }
        exact = {f"p={p:g}, {n}": round(exact_coverage(p, n), 5) for p in parameters.losses for n in parameters.heartbeats}
        expected = {COVERAGE: exact, ESTIMATE: {key: value for key, value in PROTOTYPE.items() if key in flat}}
        told = (
            f"beside the coverage: what the binomial distribution says; c is the mean of {parameters.common_runs} runs, and is not judged"
        )
        return Finding(measured, expected, not notes, (*notes, told))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2)
        lines: dict[str, list[tuple[float, float]]] = {}
        for key, share in finding.measured[COVERAGE].items():
            p, heartbeats = key.removeprefix("p=").split(", ")
            lines.setdefault(heartbeats, []).append((float(p), share))
        for heartbeats, points in lines.items():
            left.plot([p for p, _ in points], [share for _, share in points], marker="o", label=f"{heartbeats} heartbeats")
        left.axhline(COVERED, color="#7b8794", linestyle="--", label="demanded")
        left.set_xscale("log")
        left.set_ylim(0.9, 1.005)
        left.set_xlabel("p: true loss of the link")
        left.set_ylabel("share of runs with p_i of at least p")
        left.legend(loc="lower left")
        curves: dict[str, list[str]] = {}
        for key in finding.measured[ESTIMATE]:
            curves.setdefault(key.split(", ")[0], []).append(key)
        for c, keys in curves.items():
            places = [int(key.split(", ")[1]) for key in keys]
            middle, low, high = (
                [finding.measured[what][key] for key in keys] for what in (ESTIMATE, f"{ESTIMATE}, {LOW}", f"{ESTIMATE}, {HIGH}")
            )
            (drawn,) = right.plot(places, middle, marker="o", label=c)
            right.fill_between(places, low, high, color=drawn.get_color(), alpha=0.2)
            right.axhline(float(c.removeprefix("c=")), color=drawn.get_color(), linestyle="--", linewidth=0.8)
        right.set_yscale("symlog", linthresh=1e-4)
        right.set_ylim(0, 4 * max(finding.measured[ESTIMATE].values()))
        right.set_xlabel("heartbeats")
        right.set_ylabel("estimate of c, mean and its 95 % interval (dashed: true)")
        right.legend(loc="center right")


def upper(random: Random, p: float, heartbeats: int) -> float:
    """What a link would use for its loss after so many heartbeats."""
    loss, draw = Loss(FfdConfig()), random.random
    for _ in range(heartbeats):
        loss.add(draw() < p)
    return loss.p


def exact_coverage(p: float, heartbeats: int) -> float:
    """The same share, from the binomial distribution."""
    return sum(comb(heartbeats, k) * p**k * (1 - p) ** (heartbeats - k) for k in range(heartbeats + 1) if _upper_of(k, heartbeats) >= p)


def estimates(random: Random, common: float, looks: Sequence[int]) -> list[float]:
    """The estimate of c after each of so many heartbeats."""
    estimator, draw = CommonCause(FfdConfig()), random.random
    missed = dict.fromkeys(NAMES, 0)  # per monitor, bit j: the j-th heartbeat before the present one did not come
    found: list[float] = []
    for seq in range(1, max(looks) + 1):
        estimator.sent(seq, NAMES)
        nobody = draw() < common
        for name in NAMES:
            lost = nobody or draw() < LINK_LOSS
            if draw() >= LINK_LOSS:  # MONITOR-OK, which is said at a missed freshness point as well
                estimator.report(name, 1, seq, missed[name])
            missed[name] = (missed[name] << 1 | lost) & BITS
        if seq in looks:
            found.append(estimator.c)
    return found


def _upper_of(missed: int, heartbeats: int) -> float:
    loss = Loss(FfdConfig())
    loss.add(True, missed)
    loss.add(False, heartbeats - missed)
    return loss.p


def _curve(c: float, parameters: EstimatorsParameters, results: Sequence[Measured]) -> dict[int, tuple[float, float, float]]:
    runs = [row["estimates"] for row in results if row.get("c") == c]
    looks = parameters.common_heartbeats
    found = {n: mean_interval([run[i] for run in runs]) for i, n in enumerate(looks)}
    return {n: (mean, max(0.0, low), high) for n, (mean, low, high) in found.items()}


EXPERIMENT = Estimators()
