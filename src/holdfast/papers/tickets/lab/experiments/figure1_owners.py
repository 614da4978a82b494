"""tickets/E0: Figure 1, who owns and who coordinates which tickets.  Spec: tickets 8 (E0), 2, D24; paper 001, section 3, Figure 1.

The text of the paper gives one process of the figure: p2 owns ticket 4 and coordinates {2, 3} besides. The others are placed around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, pi, sin
from typing import TYPE_CHECKING

from holdfast.host import NodeId
from holdfast.lab.experiment import Cell, Experiment, Finding, Measured, Parameters
from holdfast.papers.tickets.lab.circle import core
from holdfast.papers.tickets.lab.failure_free_ring import FailureFreeRing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TICKETS = 8
OWNERS: Mapping[int, str] = {6: "p1", 4: "p2", 1: "p3", 0: "p0"}
FIGURE = {"p2": [4, 3, 2]}  # what the paper says of it
DEFINITION, PROTOCOL = "by the definition of S_p", "by Algorithms 1 and 2"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")


class FigureParameters(Parameters, frozen=True, kw_only=True):
    """Nothing to choose: the figure is what it is."""


class FigureOne(Experiment[FigureParameters]):
    """The same core twice: from the definition, and joined one by one."""

    id = "tickets/E0"
    name = "tickets/figure-1"
    title = "Figure 1: owned and coordinated tickets"
    source = "tickets 8, E0; paper 001, Figure 1"
    criterion = "p2 owns 4 and coordinates 3 and 2 besides; every ticket is coordinated by one process, in both ways the same"
    parameters = FigureParameters
    seconds_per_cell = 0.001
    repetitions = ""

    def cells(self, parameters: FigureParameters, seed: int) -> Sequence[Cell]:
        return [{"tickets": TICKETS, "owners": sorted(OWNERS.items(), reverse=True)}]

    def measure(self, cell: Cell) -> Measured:
        owners = dict(cell["owners"])
        defined = {name: list(tickets) for name, tickets in core(owners, cell["tickets"]).items()}
        return {DEFINITION: dict(sorted(defined.items())), PROTOCOL: _joined(owners, cell["tickets"])}

    def judge(self, parameters: FigureParameters, results: Sequence[Measured]) -> Finding:
        (found,) = results
        notes = [
            f"{way}: p2 coordinates {sets['p2']}, the figure says {FIGURE['p2']}" for way, sets in found.items() if sets["p2"] != [4, 3, 2]
        ]
        for way, sets in found.items():
            tickets = sorted(ticket for each in sets.values() for ticket in each)
            if tickets != list(range(TICKETS)):
                notes.append(f"{way}: the tickets {tickets} are coordinated")
        if found[DEFINITION] != found[PROTOCOL]:
            notes.append("the protocol and the definition disagree")
        return Finding(dict(found), {DEFINITION: FIGURE}, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        axes.set_aspect("equal")
        axes.axis("off")
        for colour, (name, tickets) in zip(COLOURS, finding.measured[DEFINITION].items(), strict=True):
            middle = tickets[0] - (len(tickets) - 1) / 2
            for ticket in tickets:
                x, y = _place(ticket, 1.0)
                owned = ticket == tickets[0]
                axes.plot(x, y, "o", markersize=34, color=colour, markerfacecolor=colour if owned else "white")
                axes.text(x, y, str(ticket), ha="center", va="center", color="white" if owned else colour, fontsize=13)
                axes.plot(*zip(_place(middle, 1.58), _place(ticket, 1.17), strict=True), color=colour, linewidth=1.0)
            x, y = _place(middle, 1.7)
            axes.text(x, y, name, ha="center", va="center", color=colour, fontsize=13, fontweight="bold")
        axes.text(0, 0, "filled: owned\nring: coordinated besides\nsuccessor of i is i - 1", ha="center", va="center", fontsize=8)
        axes.set_xlim(-2.0, 2.0)
        axes.set_ylim(-1.9, 1.9)


def _place(ticket: float, radius: float) -> tuple[float, float]:
    angle = 2 * pi * ticket / TICKETS
    return radius * sin(angle), radius * cos(angle)


def _joined(owners: Mapping[int, str], n: int) -> dict[str, list[int]]:
    """The founder has ticket 0; each of the others is given its ticket by the process that coordinates it then."""
    wanted: list[int] = []
    ring = FailureFreeRing(n, NodeId(owners[0], 1), lambda free: wanted[-1])
    for ticket, name in owners.items():
        if ticket == 0:
            continue
        wanted.append(ticket)
        known = next(p.me for p in ring.core if ticket in ring.tickets(p))
        ring.cjoin(NodeId(name, 1), known)
        while ring.channels:
            ring.deliver(*next(iter(ring.channels)))
    return {p.me.name: list(ring.tickets(p)) for p in sorted(ring.core, key=lambda p: p.me)}


EXPERIMENT = FigureOne()
