"""ring/E17: one member hears almost nothing and can still speak; who has to leave, with the rule of H162 and without it?

Spec: ring 5.2 (first come, first served), 12 (a sick accuser should lose); decision H162. A flood at a socket does this to an agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.events import Event
from holdfast.features.ring.lab.observer import Observed, names_of
from holdfast.features.ring.lab.rings import PAPER_LINK
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Departed
from holdfast.features.ring.protocol.rules import Rules
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITH, WITHOUT = RULES = ("H162", "paper")
HEALTHY_SHARE = 0.05  # of the runs in which a healthy member may have to leave
DEAF_SHARE = 0.95  # of the runs in which the deaf one leaves within SICK; at 90 % of loss it may be lucky for so long
CALM, SICK = 3.0, 12.0  # in T_l: before the deafness, and with it
SOME = Meta(min_length=1, max_length=LIST_MAX)


class HalfDeafParameters(Parameters, frozen=True, kw_only=True):
    """Small groups, in which one accuser more or less decides."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 40
    sizes: Annotated[tuple[Annotated[int, Meta(ge=3, le=100)], ...], SOME] = (3, 5, 8)
    losses: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=1.0)], ...], SOME] = (0.9, 0.97, 1.0)  # of what is said to it


class HalfDeaf(Experiment[HalfDeafParameters]):
    """Messages to one member get lost, its own arrive."""

    id = "ring/E17"
    name = "ring/half-deaf"
    title = "Who hears nobody suspects itself"
    source = "ours (H162); ring 5.2, 12"
    criterion = (
        "I1 to I14 hold; with H162 healthy members have to leave in at most 5 % of the runs of each size, and the deaf one leaves in at "
        "least 95 %; without the rule healthy members have to leave in more"
    )
    parameters = HalfDeafParameters
    seconds_per_cell = 0.1
    quick: ClassVar[Mapping[str, str]] = {"seeds": "6", "sizes": "[3]", "losses": "[0.97]"}

    def cells(self, parameters: HalfDeafParameters, seed: int) -> Sequence[Cell]:
        return [
            {"rule": rule, "members": size, "loss": loss, "seed": seed * SEEDS_MAX + number}
            for rule in RULES
            for size in parameters.sizes
            for loss in parameters.losses
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: HalfDeafParameters, results: Sequence[Measured]) -> Finding:
        done = completed(results)
        rows = [_row(rule, size, done) for rule in RULES for size in parameters.sizes]
        misses = violations(results)
        for row in rows:
            if row["rule"] == WITH and row["healthy runs"] > HEALTHY_SHARE * row["runs"]:
                misses.append(f"{_label(row)}: healthy members left in {row['healthy runs']} of {row['runs']} runs")
            if row["rule"] == WITH and row["deaf runs"] < DEAF_SHARE * row["runs"]:
                misses.append(f"{_label(row)}: the deaf member stayed in {row['runs'] - row['deaf runs']} of {row['runs']} runs")
        total = {rule: sum(row["healthy runs"] for row in rows if row["rule"] == rule) for rule in RULES}
        if total[WITHOUT] <= total[WITH]:
            misses.append(f"without the rule healthy members left in {total[WITHOUT]} runs, with it in {total[WITH]}")
        measured: dict[str, Any] = {
            "runs in which healthy members left": {_label(row): row["healthy runs"] for row in rows},
            "violations": len(violations(results)),
            "settings": rows,
        }
        expected = {
            "runs in which healthy members left": {
                _label(row): f"<= {HEALTHY_SHARE * row['runs']:g} of {row['runs']}" for row in rows if row["rule"] == WITH
            },
            "violations": 0,
        }
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        rows = finding.measured["settings"]
        sizes = sorted({row["members"] for row in rows})
        for number, rule in enumerate(RULES):
            share = [100 * row["healthy runs"] / max(1, row["runs"]) for row in rows if row["rule"] == rule]
            axes.bar([place + 0.4 * number for place in range(len(sizes))], share, width=0.4, label=rule)
        axes.set_xticks([place + 0.2 for place in range(len(sizes))], [str(size) for size in sizes])
        axes.set_xlabel("members, one of them deaf")
        axes.set_ylabel("% of the runs in which healthy members left")
        axes.legend()


def _play(cell: Cell) -> Measured:
    names = names_of(cell["members"])
    config = RingConfig()
    rings = Observed(cell["seed"], names, config, rules=Rules(deaf=cell["rule"] == WITH), lossless=False)
    rings.form(names)
    world = rings.world
    gone = set[str]()

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, Departed) and event.was_member:
            gone.add(host.me.name)

    world.run((CALM + world.random.random()) * config.lease)
    world.listeners.append(on_event)
    deaf = world.random.choice(names)
    for name in names:
        if name != deaf:
            world.network.set_link(replace(PAPER_LINK, loss=cell["loss"]), name, deaf)
    world.run(world.now + SICK * config.lease)
    return {**cell, "healthy": len(gone - {deaf}), "deaf": deaf in gone}


def _row(rule: str, size: int, results: Sequence[Measured]) -> dict[str, Any]:
    here = [row for row in results if (row["rule"], row["members"]) == (rule, size)]
    return {
        "rule": rule,
        "members": size,
        "runs": len(here),
        "healthy runs": sum(row["healthy"] > 0 for row in here),
        "healthy departures": sum(row["healthy"] for row in here),
        "deaf runs": sum(row["deaf"] for row in here),
    }


def _label(row: Mapping[str, Any]) -> str:
    return f"{row['rule']}, {row['members']}"


EXPERIMENT = HalfDeaf()
