"""ring/E16: processes start together; how long until every list is complete?

Spec: ring D20, D27; decision H160. What a process costs to start is not in it: the starts are spread over a given time, in random order,
and the time counts from the last of them. ``python -m benchmarks forming`` measures the same with real agents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.ring.lab.observer import Observed, names_of
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEASES = {"lan": 1.0, "local": 0.4}
LIMITS = {3: 2.0, 5: 2.0, 16: 3.0, 64: 10.0}  # seconds after the last start; others: that of the next larger size
PATIENCE = 60.0  # seconds
SEEDS = 3
STEP = 0.01  # seconds: how exactly the time is seen
SOME = Meta(min_length=1, max_length=LIST_MAX)


class FormingParameters(Parameters, frozen=True, kw_only=True):
    """Fifty starts of each size."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 50
    sizes: Annotated[tuple[Annotated[int, Meta(ge=2, le=200)], ...], SOME] = (3, 5, 16, 64)
    spread: Annotated[float, Meta(ge=0.0, le=60.0)] = 0.1  # seconds between two starts, in the mean: what a start costs two cores


class Forming(Experiment[FormingParameters]):
    """So many processes start within a short time, three of them are seeds; there is no ring yet."""

    id = "ring/E16"
    name = "ring/forming"
    title = "Processes that start together are soon one ring"
    source = "ring D20, D27; ours (H160)"
    criterion = (
        "I1 to I14 hold; every list is complete within 2 s of the last start (3 and 5 processes), 3 s (16), 10 s (64), in all starts"
    )
    parameters = FormingParameters
    seconds_per_cell = 0.5
    quick: ClassVar[Mapping[str, str]] = {"seeds": "3", "sizes": "[3,8]"}

    def cells(self, parameters: FormingParameters, seed: int) -> Sequence[Cell]:
        return [
            {"preset": preset, "members": size, "spread": parameters.spread, "seed": seed * SEEDS_MAX + number}
            for preset in LEASES
            for size in sorted(parameters.sizes)
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: FormingParameters, results: Sequence[Measured]) -> Finding:
        rows = [_row(preset, size, completed(results)) for preset in LEASES for size in sorted(parameters.sizes)]
        misses = violations(results)
        misses += [f"{_label(row)}: {row['late']} of {row['starts']} took longer than {row['limit']:g} s" for row in rows if row["late"]]
        measured: dict[str, Any] = {
            "median s": {_label(row): row["median"] for row in rows},
            "worst s": {_label(row): row["worst"] for row in rows},
            "violations": len(violations(results)),
            "settings": rows,
        }
        expected = {"worst s": {_label(row): f"<= {row['limit']:g}" for row in rows}, "violations": 0}
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        for axes, preset in zip(figure.subplots(1, len(LEASES)), LEASES, strict=True):
            for row in finding.measured["settings"]:
                if row["preset"] == preset and row["all"]:
                    share = [(number + 1) / len(row["all"]) for number in range(len(row["all"]))]
                    axes.step(row["all"], share, where="post", label=f"{row['members']} processes")
            axes.set_title(f"{preset}: T_l = {LEASES[preset]:g} s")
            axes.set_xlabel("seconds after the last start")
            axes.set_ylabel("share of the starts with all lists complete")
            axes.set_xlim(left=0)
            axes.legend()


def _play(cell: Cell) -> Measured:
    names = names_of(cell["members"])
    rings = Observed(cell["seed"], names, RingConfig(lease=LEASES[cell["preset"]]), seeds=names[:SEEDS])
    world = rings.world
    for name in world.random.sample(names, len(names)):
        rings.start(name)
        world.run(world.now + world.random.uniform(0.0, 2 * cell["spread"]))
    last = world.now
    while not all(len(rings.members[name].members()) == len(names) for name in names) and world.now < last + PATIENCE:
        world.run(world.now + STEP)
    return {**cell, "took": round(world.now - last, 3)}


def _row(preset: str, size: int, results: Sequence[Measured]) -> dict[str, Any]:
    took = sorted(row["took"] for row in results if (row["preset"], row["members"]) == (preset, size))
    limit = next((limit for members, limit in LIMITS.items() if members >= size), max(LIMITS.values()))
    return {
        "preset": preset,
        "members": size,
        "limit": limit,
        "starts": len(took),
        "late": sum(each > limit for each in took),
        "median": took[len(took) // 2] if took else PATIENCE,
        "worst": took[-1] if took else PATIENCE,
        "all": took,
    }


def _label(row: Mapping[str, Any]) -> str:
    return f"{row['preset']}, {row['members']}"


EXPERIMENT = Forming()
