"""detection/E9: how much sooner is there a new leader with fast detection?

Spec: fast-detection 8 (E9), D13, D26; paper 002, section 5: "a new leader is elected much faster".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.leadership.detector.config import ElectionConfig
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import MEAN, by_column, curves, draw_curves, mean_interval, summary
from holdfast.papers.detection.lab.elections import Elections, Make, WithoutFfd, settings
from holdfast.papers.detection.protocol.election import LeaderElection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMBERS = 7
OMEGA, OMEGA_FFD, QUORUM_2, QUORUM_15, QUORUM_SLOW = "Omega", "Omega + FFD", "quorum, L = 2", "quorum, L = 1.5", "quorum, L = 1.5, no FFD"
VARIANTS: Mapping[str, tuple[Make, ElectionConfig]] = {
    OMEGA: (WithoutFfd, settings("paper")),
    OMEGA_FFD: (LeaderElection, settings("paper")),
    QUORUM_2: (LeaderElection, settings("quorum", length=2.0)),
    QUORUM_15: (LeaderElection, settings("quorum", length=1.5)),
    QUORUM_SLOW: (WithoutFfd, settings("quorum", length=1.5)),
}
PROTOTYPE = {
    OMEGA: {0.0: 5.56, 0.01: 5.46, 0.1: 5.45},
    OMEGA_FFD: {0.0: 0.62, 0.01: 0.66, 0.1: 1.21},
    QUORUM_2: {0.0: 1.55, 0.01: 1.55, 0.1: 1.88},
    QUORUM_15: {0.0: 1.04, 0.01: 1.05, 0.1: 1.56},
    QUORUM_SLOW: {0.0: 4.6, 0.01: 4.6, 0.1: 4.6},
}
FASTER = 4.0  # times
ROOM = 0.3  # seconds beyond L
PARTS = 4  # groups per cell
REST = 12.0  # seconds between a restart and the next crash: arrival times are known again (8 heartbeats)
PATIENCE = 60.0  # seconds for a new leader


class ElectionSpeedParameters(Parameters, frozen=True, kw_only=True):
    """Omega's patience and the evidence of a miss count with p = .1, whatever is lost."""

    seeds: Annotated[int, Meta(ge=8, le=SEEDS_MAX)] = 1000  # crashes per cell
    losses: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.1)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (0.0, 0.01, 0.1)


class ElectionSpeed(Experiment[ElectionSpeedParameters]):
    """The leader of seven dies at any moment; time until all who live name the same live leader, which leads."""

    id = "detection/E9"
    name = "detection/election-speed"
    title = "A new leader, with and without fast detection"
    source = "paper 002, section 5; fast-detection 8, E9"
    criterion = "Omega with FFD at least 4 times as fast as without, at every p; quorum with FFD on average within L + 0.3 s"
    parameters = ElectionSpeedParameters
    seconds_per_cell = 1.1
    quick: ClassVar[Mapping[str, str]] = {"seeds": "12", "losses": "[0.01]"}

    def cells(self, parameters: ElectionSpeedParameters, seed: int) -> Sequence[Cell]:
        crashes = -(-parameters.seeds // PARTS)
        return [
            {"variant": variant, "p": p, "crashes": crashes, "seed": seed * 100 + part}
            for variant in VARIANTS
            for p in parameters.losses
            for part in range(PARTS)
        ]

    def measure(self, cell: Cell) -> Measured:
        make, config = VARIANTS[cell["variant"]]
        group = Elections(cell["seed"], MEMBERS, config, loss=cell["p"], make=make)
        random = group.world.random  # Crashes at any moment of an interval, evenly spread.
        found = [_failover(group, (number + random.random()) / cell["crashes"]) for number in range(cell["crashes"])]
        return {"variant": cell["variant"], "p": cell["p"], "times": [t for t in found if t is not None], "never": found.count(None)}

    def judge(self, parameters: ElectionSpeedParameters, results: Sequence[Measured]) -> Finding:
        times = {
            (variant, p): [seconds for row in results if (row["variant"], row["p"]) == (variant, p) for seconds in row["times"]]
            for variant in VARIANTS
            for p in parameters.losses
        }
        never = sum(row["never"] for row in results)
        notes = [f"{never} times there was no leader within {PATIENCE:g} s"] if never else []
        means = {key: mean_interval(values)[0] for key, values in times.items()}
        ratios = {f"p={p:g}": round(means[OMEGA, p] / means[OMEGA_FFD, p], 3) for p in parameters.losses}
        notes += [f"{p}: {ratio:.2f} times as fast, expected at least {FASTER:g}" for p, ratio in ratios.items() if ratio < FASTER]
        for variant, length in ((QUORUM_2, 2.0), (QUORUM_15, 1.5)):
            slow = [(p, means[variant, p]) for p in parameters.losses if means[variant, p] > length + ROOM]
            notes += [f"{variant}, p={p:g}: {mean:.3f} s on average, expected at most {length + ROOM:g}" for p, mean in slow]
        measured: dict[str, Any] = by_column({_key(*key): summary(values) for key, values in times.items()})
        measured["times as fast"] = ratios
        measured["curves"] = curves({_key(*key): values for key, values in times.items()})
        expected = {
            MEAN: {_key(variant, p): PROTOTYPE[variant][p] for variant, p in times if p in PROTOTYPE[variant]},
            "times as fast": dict.fromkeys(ratios, FASTER),
        }
        told = 'the paper says "much faster" and gives no numbers: the means beside ours are those of the prototype in the specification'
        return Finding(measured, expected, not notes, (*notes, told))

    def draw(self, figure: Figure, finding: Finding) -> None:
        drawn = finding.measured["curves"]
        losses = list(dict.fromkeys(each["of"].rpartition(", p=")[2] for each in drawn))
        panels = figure.subplots(1, len(losses), sharey=True, squeeze=False)[0]
        for axes, p in zip(panels, losses, strict=True):
            draw_curves(axes, [{**each, "of": each["of"].rpartition(", p=")[0]} for each in drawn if each["of"].endswith(f", p={p}")])
            axes.set_xlabel(f"seconds, p = {p}")
            axes.set_xlim(0, 8)
        for axes in panels[1:]:
            axes.set_ylabel("")
        panels[0].legend(loc="lower right", fontsize=8)


def _failover(group: Elections, share: float) -> float | None:
    leader = group.ready(REST, share)
    group.crash([leader])
    seconds = group.until(lambda: group.agreed() is not None, PATIENCE)
    group.start(leader)
    return seconds


def _key(variant: str, p: float) -> str:
    return f"{variant}, p={p:g}"


EXPERIMENT = ElectionSpeed()
