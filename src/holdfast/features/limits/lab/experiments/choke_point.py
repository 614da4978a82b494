"""limits/N3: two halves of a group with few direct links between them. Who notices, and what does it cost?

Spec: limits 8 (N3), 5.9, H271; paper 003, 6.3 ("choke point detection", a conjecture). The overlay works all the time, so no view changes.
Every demand moves a little in every epoch, so that no member is quiet, and links are tried. Then one half wants three times as much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.events import ChokePoint, Event
from holdfast.features.limits.lab.sums import SumGroup
from holdfast.features.limits.protocol.choke import threshold
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.host import Message
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMING = 10.0
NEAR = 0.05  # of the sum
VALUE, MOVED, STEP = 10.0, 10.5, 30.0
CONVERGING = 60.0  # seconds from the step on
SAMPLED = 0.25
SMALLER = 11 / 24  # part of the members: halves of the same size would leave open which one is named


class ChokeParameters(Parameters, frozen=True, kw_only=True):
    """How many links are left."""

    members: Annotated[int, Meta(ge=8, le=100)] = 24
    links: Annotated[tuple[Annotated[int, Meta(ge=1, le=10_000)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (1, 2, 4, 8, 143)
    seconds: Annotated[float, Meta(ge=35.0, le=600.0)] = 100.0  # from the cut to the step


class ChokePoints(Experiment[ChokeParameters]):
    """Halves that are held together by few links."""

    id = "limits/N3"
    name = "limits/choke-point"
    title = "A choke point is named when the links between two halves are fewer than t"
    source = "paper 003, 6.3; limits 8, N3 (conjectured)"
    criterion = (
        "ChokePoint names the smaller half exactly when fewer than t = max(1, b/2) links are left; error and time to converge are "
        "reported; RL1 to RL3 hold"
    )
    parameters = ChokeParameters
    seconds_per_cell = 20
    quick: ClassVar[Mapping[str, str]] = {"members": "12", "links": "[1,4]", "seconds": "65.0"}

    def cells(self, parameters: ChokeParameters, seed: int) -> Sequence[Cell]:
        return [
            {"members": parameters.members, "links": links, "seconds": parameters.seconds, "seed": seed * SEEDS_MAX + number}
            for links in parameters.links
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: ChokeParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        limit = threshold(LimitsConfig().fanout(parameters.members))
        measured: dict[str, Any] = {
            "named": {str(row["links"]): row["named"] for row in rows},
            "links that were named": {str(row["links"]): row["cut"] for row in rows},
            "mean error 5 s after the step": {str(row["links"]): row["after 5 s"] for row in rows},
            "seconds to a mean error below 5 %": {str(row["links"]): row["took"] for row in rows},
            "lines": {str(row["links"]): row["line"] for row in rows},
        }
        expected = {"named": {str(row["links"]): "the smaller half" if row["links"] < limit else "nothing" for row in rows}}
        misses = [*violations(results), *(note for row in rows for note in _misses(row, limit))]
        return Finding(measured, expected, bool(rows) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for links, line in finding.measured["lines"].items():
            axes.plot([at for at, _ in line], [max(error, 1e-6) for _, error in line], label=f"{links} links")
        axes.axhline(NEAR, color="#7b8794", linestyle="--", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_xlabel("seconds from the step of one half")
        axes.set_ylabel("mean error of the aggregate")
        axes.legend()


def _play(cell: Cell) -> Measured:
    config = LimitsConfig()
    group = SumGroup(cell["seed"], cell["members"], config, link=Link(), checked=True)
    names = group.names
    smaller = set(names[: round(SMALLER * len(names))])
    larger = [name for name in names if name not in smaller]
    left = set(_between(sorted(smaller), larger)[: cell["links"]])
    told: list[ChokePoint] = []

    def listen(host: LabHost, event: Event) -> None:
        if isinstance(event, ChokePoint):
            told.append(event)

    group.world.listeners.append(listen)
    group.install()
    _stir(group, FORMING, config.epoch)
    group.world.network.lose_if(lambda source, target, message: _is_cut(source, target, message, smaller, left))
    _stir(group, cell["seconds"], config.epoch)
    group.set_all(VALUE)
    for name in sorted(smaller):
        group.set(name, STEP)
    truth = STEP * len(smaller) + VALUE * len(larger)
    line = []
    for number in range(1, int(CONVERGING / SAMPLED) + 1):
        group.run(SAMPLED)
        line.append((number * SAMPLED, fmean(group.errors(truth))))
    far = [at for at, error in line if error > NEAR]
    sides = {tuple(life.name for life in event.smaller_side) for event in told}
    named = "nothing" if not sides else "the smaller half" if sides == {tuple(sorted(smaller))} else "something else"
    return {
        **cell,
        "named": named,
        "cut": told[-1].cut if told else None,
        "after 5 s": round(dict(line)[5.0], 4),
        "took": None if far and far[-1] == line[-1][0] else round(far[-1] + SAMPLED, 2) if far else 0.0,
        "line": [(at, float(f"{error:.4g}")) for at, error in line],
    }


def _between(ones: Sequence[str], others: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs; the first ones share no member."""
    return [(one, others[(at + shift) % len(others)]) for shift in range(len(others)) for at, one in enumerate(ones)]


def _is_cut(source: str, target: str, message: Message, smaller: set[str], left: set[tuple[str, str]]) -> bool:
    if (source in smaller) == (target in smaller):
        return False
    return ((source, target) if source in smaller else (target, source)) not in left


def _stir(group: SumGroup, seconds: float, epoch: float) -> None:
    """All demands move a little in every epoch."""
    for number in range(int(seconds / epoch)):
        group.set_all(MOVED if number % 2 else VALUE)
        group.run(epoch)


def _misses(row: Measured, limit: float) -> list[str]:
    where = f"{row['links']} links, seed {row['seed']}"
    wanted = "the smaller half" if row["links"] < limit else "nothing"
    notes = [] if row["named"] == wanted else [f"{where}: {row['named']} is named, expected {wanted}"]
    if row["named"] != "nothing" and row["cut"] != row["links"]:
        notes.append(f"{where}: {row['cut']} links are named")
    return notes


EXPERIMENT = ChokePoints()
