"""tickets/E5: what does it cost to keep a ticket?

Spec: tickets 8 (E5), D22; paper 001, section 4.2: at most 2k + 1 ALIVE sent and received per round. Ours asks and is answered: 2k + 1
RENEW, 2k + 1 ALIVE, UPDATE and its acknowledgement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.tickets.lab.groups import PATIENCE, TicketGroup
from holdfast.features.tickets.protocol.config import K_MAX, Placement, TicketConfig
from holdfast.features.tickets.protocol.facts import GuardiansMoved
from holdfast.kit.slots import COUNTS
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import by_column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLACEMENTS: tuple[Placement, ...] = ("seats", "ring")
TOLERANCE = 0.05
PROTOTYPE = {1: 7.87, 2: 11.87, 3: 15.88}
CALM = 10.0  # seconds without a move of guardians: settled
RATE, REST = "messages per ticket and round", "everything else"
SOME = Meta(min_length=1, max_length=LIST_MAX)


class MessagesParameters(Parameters, frozen=True, kw_only=True):
    """The defaults are the spec's."""

    ks: Annotated[tuple[Annotated[int, Meta(ge=0, le=K_MAX)], ...], SOME] = (1, 2, 3)
    owners: Annotated[int, Meta(ge=8, le=200)] = 16  # more than 2k + 1, so that no owner guards itself
    tickets: Annotated[int, Meta(ge=8, le=400)] = 32  # n
    seconds: Annotated[float, Meta(ge=1.0, le=3600.0)] = 100.0

    def __post_init__(self) -> None:
        if self.tickets < self.owners:
            raise ValueError(f"{self.owners} owners need as many tickets, and there are {self.tickets}")


class Messages(Experiment[MessagesParameters]):
    """A settled ring in which nothing happens; who sends how much of what?"""

    id = "tickets/E5"
    name = "tickets/messages"
    title = "What a ticket costs while it is held"
    source = "tickets 8, E5, D22; paper 001, section 4.2"
    criterion = "messages sent per ticket and round within 5 % of 2 (2k + 1) + 2, with guardians on the seats and with the paper's"
    parameters = MessagesParameters
    seconds_per_cell = 0.88
    quick: ClassVar[Mapping[str, str]] = {"ks": "[1]", "seconds": "5", "owners": "8", "tickets": "16"}

    def cells(self, parameters: MessagesParameters, seed: int) -> Sequence[Cell]:
        shape = {name: getattr(parameters, name) for name in ("owners", "tickets", "seconds")}
        return [
            {"placement": placement, "k": k, **shape, "seed": seed * SEEDS_MAX + number}
            for placement in PLACEMENTS
            for k in parameters.ks
            if placement == "ring" or 2 * k + 1 in COUNTS
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        group = settled(cell)
        before, rest_before = group.sent()
        group.run(cell["seconds"])
        after, rest = group.sent()
        sent = {kind: count - before.get(kind, 0) for kind, count in after.items()}
        rounds = cell["seconds"] / group.config.period * cell["owners"]
        return {
            "placement": cell["placement"],
            "k": cell["k"],
            "sent": {kind: round(count / rounds, 4) for kind, count in sent.items() if count},
            REST: round((rest - rest_before) / rounds, 4),
            "owned": len(group.owning()) == cell["owners"],
        }

    def judge(self, parameters: MessagesParameters, results: Sequence[Measured]) -> Finding:
        rows = {}
        notes = []
        for placement, k in dict.fromkeys((row["placement"], row["k"]) for row in results):
            parts = [row for row in results if (row["placement"], row["k"]) == (placement, k)]
            row = rows[f"{placement}, k={k}"] = _row(k, parts)
            if abs(row[RATE] - expected_rate(k)) > TOLERANCE * expected_rate(k):
                notes.append(f"{placement}, k={k}: {row[RATE]:g} messages per ticket and round, 2 (2k + 1) + 2 = {expected_rate(k)}")
            if not all(part["owned"] for part in parts):
                notes.append(f"{placement}, k={k}: tickets were lost while nothing happened")
        measured: dict[str, Any] = by_column({key: {RATE: row[RATE], REST: row[REST]} for key, row in rows.items()})
        measured["rows"] = list(rows.values())
        expected: dict[str, Any] = {
            RATE: {key: f"{expected_rate(row['k'])}; {PROTOTYPE.get(row['k'], '-')} (prototype)" for key, row in rows.items()},
            "the paper": {f"k={k}": f"{2 * k + 1} ALIVE sent and received" for k in parameters.ks},
        }
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        rows, labels = finding.measured["rows"], list(finding.measured[RATE])
        kinds = sorted({kind for row in rows for kind in row["sent"]}, key=lambda kind: -max(row["sent"].get(kind, 0.0) for row in rows))
        floor = [0.0] * len(rows)
        for kind in kinds:
            heights = [row["sent"].get(kind, 0.0) for row in rows]
            axes.bar(labels, heights, bottom=floor, width=0.6, label=kind)
            floor = [a + b for a, b in zip(floor, heights, strict=True)]
        bounds = [expected_rate(row["k"]) for row in rows]
        axes.plot(labels, bounds, linestyle="none", marker="_", markersize=40, color="#1f2933", label="2 (2k + 1) + 2")
        axes.set_ylabel("messages sent per ticket and round")
        axes.legend(loc="upper left")


def expected_rate(k: int) -> int:
    return 2 * (2 * k + 1) + 2


def settled(cell: Cell) -> TicketGroup:
    """Each agent owns one ticket, and no guardians have moved for a while."""
    k: int = cell["k"]
    config = TicketConfig(k=k, guardians=cell["placement"])
    group = TicketGroup(cell["seed"], cell["tickets"], seats=min(2 * k + 1, max(COUNTS)), others=cell["owners"], config=config)
    group.note(GuardiansMoved)
    for name in group.others:
        group.wish(name)
    calm = group.until(lambda: len(group.owning()) == cell["owners"] and _calm(group), PATIENCE * 2)
    assert calm, "the ring does not settle"
    return group


def _calm(group: TicketGroup) -> bool:
    last = max([group.grants[-1].since, *(at for at, _, _ in group.events)])
    return group.world.now - last >= CALM


def _row(k: int, parts: Sequence[Measured]) -> dict[str, Any]:
    sent: Counter[str] = Counter()
    for part in parts:
        sent.update(part["sent"])
    means = {kind: round(count / len(parts), 4) for kind, count in sorted(sent.items())}
    return {"k": k, RATE: round(sum(means.values()), 4), REST: round(sum(part[REST] for part in parts) / len(parts), 4), "sent": means}


EXPERIMENT = Messages()
