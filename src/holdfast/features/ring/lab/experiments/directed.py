"""ring/E13: each decision, on a schedule made for it: with it nothing breaks, without it that breaks which it is for.

Spec: ring 8 (E13), 6, 11. The schedules: ``holdfast.features.ring.lab.schedules``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from holdfast.features.ring.lab.schedules import BY_NAME, SCHEDULES
from holdfast.features.ring.protocol.rules import Rules
from holdfast.lab.experiment import Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HARM = ("I1", "I2", "I7", "I8", "I10", "healthy")  # what is looked for, in the order of the picture


class DirectedParameters(Parameters, frozen=True, kw_only=True):
    """A seed draws where in their sessions the members are, and how clocks are set."""

    seeds: Annotated[int, Meta(ge=1, le=10_000)] = 20


class DirectedTraces(Experiment[DirectedParameters]):
    """Every schedule with every seed, by the protocol and without its decision."""

    id = "ring/E13"
    name = "ring/directed"
    title = "What each decision is for"
    source = "ring 8 (E13), 6 (D6, D8, D9, D10, D12, D14, D28, D29), foundation F4"
    criterion = (
        "each of HALF, guard, join check, joins beside the condemned and the declaration's start shows its violation when switched off"
        " (I2+I8, I8, I10, I10, I7), in every run, and none when on; so do the young ring, the skewed upgrade, another T_l, the gap"
    )
    parameters = DirectedParameters
    seconds_per_cell = 0.7
    quick: ClassVar[Mapping[str, str]] = {"seeds": "2"}

    def cells(self, parameters: DirectedParameters, seed: int) -> Sequence[Cell]:
        seeds = range(seed, seed + parameters.seeds)
        return [{"schedule": each.name, "on": on, "seeds": list(seeds)} for each in SCHEDULES for on in (True, False)]

    def measure(self, cell: Cell) -> Measured:
        schedule = BY_NAME[cell["schedule"]]
        rules = Rules() if cell["on"] else schedule.off
        found = dict.fromkeys(HARM, 0)
        first: dict[str, str] = {}
        for seed in cell["seeds"]:
            for harm, what in schedule.play(rules, seed).breaches.items():
                found[harm] += 1
                first.setdefault(harm, f"seed {seed}, {what}")
        return {"schedule": cell["schedule"], "on": cell["on"], "runs": len(cell["seeds"]), "found": found, "first": first}

    def judge(self, parameters: DirectedParameters, results: Sequence[Measured]) -> Finding:
        notes: list[str] = []
        runs: dict[str, dict[str, object]] = {}
        for result in results:
            schedule, found = BY_NAME[result["schedule"]], result["found"]
            row = runs.setdefault(schedule.name, {"decision": schedule.decision, "runs": result["runs"]})
            row["on" if result["on"] else "off"] = {harm: count for harm, count in found.items() if count}
            row["first" if not result["on"] else "first with it on"] = result["first"]
            if result["on"]:
                notes += [f"{schedule.name}: {harm} although {schedule.decision} is on: {what}" for harm, what in result["first"].items()]
            else:
                missing = sorted(harm for harm in schedule.expected if found[harm] < result["runs"])
                notes += [
                    f"{schedule.name}: {harm} in {found[harm]} of {result['runs']} runs without {schedule.decision}" for harm in missing
                ]
        expected = {each.name: {"on": {}, "off, in every run": sorted(each.expected)} for each in SCHEDULES}
        return Finding({"schedules": runs}, {"schedules": expected}, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        schedules = finding.measured["schedules"]
        labels = [f"{row['decision']} {name}" for name, row in schedules.items()]
        for axes, side in zip(figure.subplots(1, 2, sharey=True), ("on", "off"), strict=True):
            shares = [[row[side].get(harm, 0) / row["runs"] for harm in HARM] for row in schedules.values()]
            axes.imshow(shares, vmin=0, vmax=1, cmap="Reds", aspect="auto")
            axes.set_title(f"decision {side}")
            axes.grid(visible=False)
            axes.set_xticks(range(len(HARM)), HARM)
            axes.set_yticks(range(len(labels)), labels)
            for y, row in enumerate(shares):
                for x, share in enumerate(row):
                    axes.text(x, y, f"{share:.0%}" if share else "", ha="center", va="center", color="white" if share > 0.5 else "black")


EXPERIMENT = DirectedTraces()
