"""tickets/E9: neighbours on the ring die together: how long until their arcs have an owner again?

Spec: tickets 8 (E9), 5.6, G5; paper 001, section 4.2: the i-th of them is excluded after i rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.tickets.lab.groups import PATIENCE, TicketGroup
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.facts import Excluded
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import by_column, quantile, summary
from holdfast.lab.violation import Violation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIG = TicketConfig(k=2)
SEATS = 2 * CONFIG.k + 1
FIRST, FURTHER = CONFIG.lease + 0.4, 1.5  # seconds: the median for one, and what each further neighbour adds
ABOUT = 0.1  # so much more is still "about"
SAME = 0.15  # medians of different n differ by no more: those of 30 runs do, by chance
PROTOTYPE = {1: 2.3, 2: 3.8, 3: 5.35}
CALM = 5.0
NEVER, BROKEN = "never", "violations"
SOME = Meta(min_length=1, max_length=LIST_MAX)


class ExclusionParameters(Parameters, frozen=True, kw_only=True):
    """Runs per setting."""

    seeds: Annotated[int, Meta(ge=1, le=10_000)] = 30
    coordinators: Annotated[int, Meta(ge=4, le=60)] = 12
    tickets: Annotated[tuple[Annotated[int, Meta(ge=4, le=1000)], ...], SOME] = (12, 24, 96)  # n
    neighbours: Annotated[tuple[Annotated[int, Meta(ge=1, le=8)], ...], SOME] = (1, 2, 3)  # j

    def __post_init__(self) -> None:
        if min(self.tickets) < self.coordinators:
            raise ValueError(f"{self.coordinators} coordinators need as many tickets, and there are {min(self.tickets)}")
        if max(self.neighbours) > self.coordinators - 2:
            raise ValueError(f"of {self.coordinators} coordinators at most {self.coordinators - 2} may die: the anchor and one more stay")


class Exclusion(Experiment[ExclusionParameters]):
    """Twelve coordinators that are no seats, five seats; j that follow each other die at the same instant."""

    id = "tickets/E9"
    name = "tickets/exclusion"
    title = "Neighbours that die together"
    source = "tickets 8, E9; paper 001, section 4.2"
    criterion = (
        "median until the last of j is merged at most 10 % over D + 0.4 s + (j - 1) 1.5 s, for each n; medians of different n within 15 %"
        " of each other; no invariant violated"
    )
    parameters = ExclusionParameters
    seconds_per_cell = 2.4
    quick: ClassVar[Mapping[str, str]] = {"seeds": "3", "coordinators": "6", "tickets": "[12]", "neighbours": "[1,2]"}

    def cells(self, parameters: ExclusionParameters, seed: int) -> Sequence[Cell]:
        return [
            {"j": j, "n": n, "coordinators": parameters.coordinators, "runs": parameters.seeds, "seed": seed * SEEDS_MAX}
            for j in parameters.neighbours
            for n in parameters.tickets
        ]

    def measure(self, cell: Cell) -> Measured:
        times: list[float] = []
        violations: list[str] = []
        for number in range(cell["runs"]):
            try:
                found = _deaths(cell["seed"] + number, cell)
            except Violation as violation:
                violations.append(f"seed {cell['seed'] + number}: {violation}")
                continue
            if found is not None:
                times.append(round(found, 6))
        never = cell["runs"] - len(times) - len(violations)
        return {"j": cell["j"], "n": cell["n"], "times": times, NEVER: never, BROKEN: violations}

    def judge(self, parameters: ExclusionParameters, results: Sequence[Measured]) -> Finding:
        rows = {
            _label(row): {**(summary(row["times"]) if row["times"] else {}), NEVER: row[NEVER], BROKEN: len(row[BROKEN])} for row in results
        }
        notes = [f"{_label(row)}: {note}" for row in results for note in _misses(row)]
        for j in parameters.neighbours:
            medians = [quantile(row["times"], 0.5) for row in results if row["j"] == j and row["times"]]
            if medians and max(medians) > (1 + SAME) * min(medians):
                notes.append(f"j={j}: medians from {min(medians):.3f} to {max(medians):.3f} s, so it depends on n")
        measured: dict[str, Any] = {**by_column(rows), "rows": [dict(row) for row in results]}
        expected = {"p50": {_label(row): f"{PROTOTYPE.get(row['j'], _about(row['j']))} (prototype)" for row in results}}
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        rows = [row for row in finding.measured["rows"] if row["times"]]
        labels = [f"j={row['j']}\nn={row['n']}" for row in rows]
        axes.boxplot([row["times"] for row in rows], whis=(0, 100))
        axes.set_xticks(range(1, len(rows) + 1), labels)
        places = range(1, len(rows) + 1)
        axes.plot(
            places, [_about(row["j"]) for row in rows], linestyle="none", marker="x", color="#7b8794", label="D + 0.4 s + (j - 1) 1.5 s"
        )
        axes.set_ylabel("seconds from the deaths until the last arc is merged")
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper left")


def _deaths(seed: int, cell: Cell) -> float | None:
    """Seconds until all are merged; None: not within a minute."""
    group = TicketGroup(seed, cell["n"], seats=SEATS, others=cell["coordinators"], config=CONFIG)
    for name in group.others:
        group.wish(name)
    owned = group.until(lambda: len(group.owning()) == cell["coordinators"], PATIENCE)
    assert owned, "not all own a ticket"
    group.run(CALM + group.world.random.random())
    ring = group.coordinators()
    first = group.world.random.randint(1, len(ring) - cell["j"])  # The first on the list holds the anchor.
    victims = ring[first : first + cell["j"]]
    heads = {coordinator.head for _, coordinator in victims}
    group.note(Excluded)
    died_at = group.world.now
    for name, _ in victims:
        group.crash(name)
    return max(_merged(group).values()) - died_at if group.until(lambda: heads <= _merged(group).keys(), PATIENCE) else None


def _merged(group: TicketGroup) -> dict[int, float]:
    return {event.number: at for at, _, event in group.events if isinstance(event, Excluded)}


def _about(j: int) -> float:
    return FIRST + (j - 1) * FURTHER


def _misses(row: Measured) -> list[str]:
    notes = list(row[BROKEN][:3])
    if row[NEVER]:
        notes.append(f"in {row[NEVER]} runs not all were merged within {PATIENCE:g} s")
    if not row["times"]:
        return notes or ["nothing was measured"]
    median, limit = quantile(row["times"], 0.5), (1 + ABOUT) * _about(row["j"])
    if median > limit:
        notes.append(f"median {median:.3f} s, accepted are {limit:.2f}")
    return notes


def _label(row: Measured) -> str:
    return f"j={row['j']}, n={row['n']}"


EXPERIMENT = Exclusion()
