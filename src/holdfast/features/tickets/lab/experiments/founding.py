"""tickets/E12: all want a ticket at once, and there is no coordinator yet.

Spec: tickets 8 (E12), D10, D13, D26; paper 001, section 5: many concurrent cjoins "should perform well".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.tickets.lab.groups import PATIENCE, TicketGroup
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import by_column
from holdfast.lab.violation import Violation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEATS = 3
SECONDS_MAX = 3.0
MESSAGES_MAX = 150
PROTOTYPE = {8: 1.1, 16: 1.3, 32: 1.35}
SLOWEST, MEDIAN, TALK, REST, BROKEN = "slowest run", "median run", "messages per join", "announcements per join", "violations"
SOME = Meta(min_length=1, max_length=LIST_MAX)


class FoundingParameters(Parameters, frozen=True, kw_only=True):
    """As many candidates as tickets."""

    seeds: Annotated[int, Meta(ge=1, le=10_000)] = 20
    sizes: Annotated[tuple[Annotated[int, Meta(ge=2, le=256)], ...], SOME] = (8, 16, 32)


class Founding(Experiment[FoundingParameters]):
    """Three seats, c candidates, c tickets, none is owned; at time 0 all ask."""

    id = "tickets/E12"
    name = "tickets/founding"
    title = "Everybody at once: c candidates found a pool of c tickets"
    source = "tickets 8, E12; paper 001, section 5"
    criterion = "in every run all own a ticket within 3 s, for fewer than 150 messages of tickets per join; no invariant violated"
    parameters = FoundingParameters
    seconds_per_cell = 0.071
    quick: ClassVar[Mapping[str, str]] = {"seeds": "2", "sizes": "[4,8]"}

    def cells(self, parameters: FoundingParameters, seed: int) -> Sequence[Cell]:
        return [{"size": size, "seed": seed * SEEDS_MAX + number} for size in parameters.sizes for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        size = cell["size"]
        try:
            return {"size": size, **_found(size, cell["seed"]), "violation": ""}
        except Violation as violation:
            return {"size": size, "times": [], "talk": 0, "rest": 0, "violation": f"seed {cell['seed']}: {violation}"}

    def judge(self, parameters: FoundingParameters, results: Sequence[Measured]) -> Finding:
        rows = {f"c={size}": _row(size, [row for row in results if row["size"] == size]) for size in parameters.sizes}
        notes = [f"{key}: {note}" for key, row in rows.items() for note in _misses(row)]
        measured: dict[str, Any] = by_column(
            {key: {what: row[what] for what in row if what not in ("missing", "curve")} for key, row in rows.items()}
        )
        measured["curves"] = [{"of": key, "values": row["curve"]} for key, row in rows.items()]
        expected: dict[str, Any] = {
            MEDIAN: {f"c={size}": f"{seconds} (prototype)" for size, seconds in PROTOTYPE.items() if size in parameters.sizes},
            SLOWEST: dict.fromkeys(rows, f"<= {SECONDS_MAX:g}"),
            TALK: dict.fromkeys(rows, f"< {MESSAGES_MAX}"),
        }
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for each in finding.measured["curves"]:
            count = len(each["values"])
            axes.step([0.0, *each["values"]], [i / max(1, count) for i in range(count + 1)], where="post", label=each["of"])
        axes.axvline(SECONDS_MAX, color="#7b8794", linestyle="--", label="limit")
        axes.set_xlabel("seconds since all asked; mean over the runs of the i-th owner's time")
        axes.set_ylabel("share that owns a ticket")
        axes.set_xlim(left=0)
        axes.legend(loc="lower center")


def _found(size: int, seed: int) -> dict[str, Any]:
    """Times of the grants since all asked, and what was sent until the last of them."""
    group = TicketGroup(seed, size, seats=SEATS, others=size, config=TicketConfig())
    began_at = group.world.now
    before, rest_before = group.sent()
    spent: list[tuple[int, int]] = []

    def look() -> None:
        if not spent and len(group.owning()) == size:
            talk, rest = group.sent()
            spent.append((sum(talk.values()) - sum(before.values()), rest - rest_before))

    group.when_granted(look)
    for name in group.others:
        group.wish(name)
    group.until(lambda: bool(spent), PATIENCE)
    talk, rest = spent[0] if spent else (0, 0)
    return {"times": [grant.since - began_at for grant in group.grants] if spent else [], "talk": talk, "rest": rest}


def _row(size: int, parts: Sequence[Measured]) -> dict[str, Any]:
    done = [part for part in parts if part["times"]]
    last = sorted(max(part["times"]) for part in done)
    columns = zip(*(sorted(part["times"])[:size] for part in done), strict=True)
    return {
        "runs": len(parts),
        "missing": len(parts) - len(done),
        MEDIAN: round(last[len(last) // 2], 4) if last else None,
        SLOWEST: round(last[-1], 4) if last else None,
        TALK: round(sum(part["talk"] for part in done) / max(1, len(done)) / size, 1),
        REST: round(sum(part["rest"] for part in done) / max(1, len(done)) / size, 1),
        BROKEN: [part["violation"] for part in parts if part["violation"]],
        "curve": [round(sum(column) / len(done), 4) for column in columns],
    }


def _misses(row: Mapping[str, Any]) -> list[str]:
    notes = list(row[BROKEN][:3])
    if row["missing"] > len(row[BROKEN]):
        notes.append(f"in {row['missing'] - len(row[BROKEN])} runs not everybody owned a ticket within {PATIENCE:g} s")
    if row[SLOWEST] is not None and row[SLOWEST] > SECONDS_MAX:
        notes.append(f"the slowest run took {row[SLOWEST]:.3f} s, accepted are {SECONDS_MAX:g}")
    if row[TALK] >= MESSAGES_MAX:
        notes.append(f"{row[TALK]:g} messages per join, accepted are fewer than {MESSAGES_MAX}")
    return notes


EXPERIMENT = Founding()
