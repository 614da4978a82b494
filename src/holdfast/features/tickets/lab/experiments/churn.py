"""tickets/E7: agents die all the time and are replaced: is a ticket free, and which placement of guardians loses cells?

Spec: tickets 8 (E7), D27; paper 001, section 4.2. What E6 asks of the paper's model, asked of the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.tickets.lab.groups import PATIENCE, TicketGroup
from holdfast.features.tickets.protocol.config import Placement, TicketConfig
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import by_column
from holdfast.lab.violation import Violation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TICKETS, HOLDERS = 16, 8  # alpha = 0.5
PLACEMENTS: tuple[Placement, ...] = ("seats", "ring")
WORD = 5.0  # seconds until the membership says of a death: later than tickets find out by themselves
CALM = 5.0
CERTAIN_UP_TO, CERTAIN = 0.01, 0.995  # p_f; what is 1.00 when it is rounded
SAFE_K, SAFE_P = 2, 0.01  # ring: no cell is lost with so large a k and so few deaths
PROTOTYPE = {("seats", 1, 0.05): 0.89, ("seats", 2, 0.05): 0.63}
FREE, LOST, DEATHS, BROKEN = "P(free)", "cells lost", "deaths", "violations"
SOME = Meta(min_length=1, max_length=LIST_MAX)


class ChurnParameters(Parameters, frozen=True, kw_only=True):
    """Runs per setting."""

    seeds: Annotated[int, Meta(ge=1, le=10_000)] = 10
    ks: Annotated[tuple[Annotated[int, Meta(ge=1, le=3)], ...], SOME] = (1, 2)
    rates: Annotated[tuple[Annotated[float, Meta(gt=0.0, le=0.5)], ...], SOME] = (0.002, 0.01, 0.05)  # p_f, per round and agent
    seconds: Annotated[float, Meta(ge=5.0, le=3600.0)] = 50.0


class Churn(Experiment[ChurnParameters]):
    """Sixteen tickets, eight agents that hold one each; an agent that dies is replaced by a new one at once. Seats are spared."""

    id = "tickets/E7"
    name = "tickets/churn"
    title = "Free tickets in spite of deaths, and cells that are lost: the protocol"
    source = "tickets 8, E7, D27; paper 001, section 4.2"
    criterion = (
        "guardians on the seats: a coordinator has a free ticket in 1.00 of the rounds up to p_f = 1 %, in fewer at 5 %; no cell is lost;"
        " the paper's placement with k = 2 loses none at 1 %; no invariant violated"
    )
    parameters = ChurnParameters
    seconds_per_cell = 0.27
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1", "ks": "[1]", "rates": "[0.01]", "seconds": "12"}

    def cells(self, parameters: ChurnParameters, seed: int) -> Sequence[Cell]:
        return [
            {"placement": placement, "k": k, "p_f": p_f, "seconds": parameters.seconds, "seed": seed * SEEDS_MAX + number}
            for placement in PLACEMENTS
            for k in parameters.ks
            for p_f in parameters.rates
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        setting = {name: cell[name] for name in ("placement", "k", "p_f")}
        try:
            return {**setting, **_run(cell), "violation": ""}
        except Violation as violation:
            return {
                **setting,
                "free": 0,
                "rounds": 0,
                "deaths": 0,
                "lost": [],
                "owned": 0,
                "violation": f"seed {cell['seed']}: {violation}",
            }

    def judge(self, parameters: ChurnParameters, results: Sequence[Measured]) -> Finding:
        settings = dict.fromkeys((row["placement"], row["k"], row["p_f"]) for row in results)
        rows = [_row([row for row in results if (row["placement"], row["k"], row["p_f"]) == setting]) for setting in settings]
        notes = [f"{_label(row)}: {note}" for row in rows for note in _misses(row)]
        columns = (FREE, LOST, "tickets lost", "runs with a loss", DEATHS, "tickets owned, mean", BROKEN)
        measured: dict[str, Any] = by_column({_label(row): {what: row[what] for what in columns} for row in rows})
        measured["rows"] = rows
        expected = {FREE: {_label(row): _promised(row) for row in rows if row["placement"] == "seats"}}
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        rows = finding.measured["rows"]
        for placement, k in dict.fromkeys((row["placement"], row["k"]) for row in rows):
            line = [row for row in rows if (row["placement"], row["k"]) == (placement, k)]
            rates = [row["p_f"] for row in line]
            above.plot(rates, [row[FREE] for row in line], marker="o", linewidth=4 / k, label=f"{placement}, k = {k}")
            below.plot(rates, [row[LOST] / row["runs"] for row in line], marker="o", label=f"{placement}, k = {k}")
        for (placement, k, p_f), free in PROTOTYPE.items():
            above.plot([p_f], [free], marker="x", color="#7b8794", linestyle="none", label=f"prototype, {placement}, k = {k}")
        above.set_ylabel("rounds with a free ticket")
        above.set_ylim(0, 1.05)
        above.legend(loc="lower left")
        below.set_ylabel("cells lost per run")
        below.set_xlabel("p_f: an agent dies in a round with this probability")
        below.set_xscale("log")
        rates = sorted({row["p_f"] for row in rows})
        below.set_xticks(rates, [f"{rate:.1%}" for rate in rates])
        below.minorticks_off()


def _run(cell: Cell) -> dict[str, Any]:
    config = TicketConfig(k=cell["k"], guardians=cell["placement"])
    group = TicketGroup(cell["seed"], TICKETS, seats=2 * cell["k"] + 1, others=HOLDERS, config=config, word=WORD)
    for name in group.others:
        group.wish(name)
    owned = group.until(lambda: len(group.owning()) == HOLDERS, PATIENCE)
    assert owned, "not all own a ticket"
    group.run(CALM)
    random, working, deaths, free, owning = Random(f"{cell['seed']}/churn"), list(group.others), 0, 0, 0
    rounds = round(cell["seconds"] / config.period)
    for _ in range(rounds):
        for place, name in enumerate(working):
            if random.random() < cell["p_f"]:
                working[place] = f"c{HOLDERS + deaths}"
                deaths += 1
                group.crash(name)
                group.start(working[place])
                group.wish(working[place])
        group.run(config.period)
        free += any(coordinator.free > 0 for _, coordinator in group.coordinators())
        owning += len(group.owning())
    return {"free": free, "rounds": rounds, "deaths": deaths, "lost": [val.length for val in group.lost()], "owned": owning / rounds}


def _row(parts: Sequence[Measured]) -> dict[str, Any]:
    rounds = max(1, sum(part["rounds"] for part in parts))
    return {
        **{name: parts[0][name] for name in ("placement", "k", "p_f")},
        "runs": len(parts),
        FREE: round(sum(part["free"] for part in parts) / rounds, 4),
        LOST: sum(len(part["lost"]) for part in parts),
        "tickets lost": sum(sum(part["lost"]) for part in parts),
        "runs with a loss": sum(bool(part["lost"]) for part in parts),
        DEATHS: sum(part["deaths"] for part in parts),
        "tickets owned, mean": round(sum(part["owned"] for part in parts) / len(parts), 2),
        BROKEN: [part["violation"] for part in parts if part["violation"]],
    }


def _misses(row: Mapping[str, Any]) -> list[str]:
    notes = list(row[BROKEN][:3])
    if row["placement"] == "seats":
        if row[LOST]:
            notes.append(f"{row[LOST]} cells are lost, although no seat died")
        if row["p_f"] <= CERTAIN_UP_TO and row[FREE] < CERTAIN:
            notes.append(f"a ticket is free in {row[FREE]:.3f} of the rounds, accepted is 1.00")
        if row["p_f"] > CERTAIN_UP_TO and row[FREE] >= CERTAIN:
            notes.append(f"a ticket is free in {row[FREE]:.3f} of the rounds, and was expected to be so in fewer")
    elif row["k"] >= SAFE_K and row["p_f"] <= SAFE_P and row[LOST]:
        notes.append(f"{row[LOST]} cells are lost in {row['runs with a loss']} of {row['runs']} runs, accepted is none")
    return notes


def _promised(row: Mapping[str, Any]) -> str:
    if row["p_f"] <= CERTAIN_UP_TO:
        return "1.00"
    found = PROTOTYPE.get((row["placement"], row["k"], row["p_f"]))
    return "< 1" if found is None else f"< 1; {found} (prototype)"


def _label(row: Mapping[str, Any]) -> str:
    return f"{row['placement']}, k={row['k']}, p_f={row['p_f']:g}"


EXPERIMENT = Churn()
