"""election/L1: how many messages does an election need?  Paper 004, Lemma 1, Theorem 3.  Spec: election 8 (L1), A6, D3, E8.

Base without failures and loss: counts for many c, f and N. And the proof's own schedule: f of those that are asked are silent, and c lists
lack the best-ranked node. With c+f questions, of which c answers are enough, a worse leader is elected; with c+f+1 it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.features.election.lab.groups import NAME, ElectionGroup, names_of
from holdfast.features.election.lab.lists import Holes
from holdfast.features.election.lab.ranking import by_rank
from holdfast.features.election.protocol import profiles
from holdfast.features.election.protocol.messages import NotifyLeader, Query, Response
from holdfast.features.election.protocol.profiles import Profile
from holdfast.host import Message
from holdfast.lab.accounting import total
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (5, 7, 16, 32, 64)
C_MAX, F_MAX = 13, 3
UNICASTS: tuple[type[Message], ...] = (Query, Response, NotifyLeader)
OURS, PAPERS = "ours", "paper"
SCHEDULES = ((1, 0), (1, 1), (2, 1), (3, 2), (5, 3))  # c and f
FEW, ENOUGH = "c+f", "c+f+1"


class CountParameters(Parameters, frozen=True, kw_only=True):
    """c 0 to 13, f 0 to 3."""

    sizes: Annotated[tuple[Annotated[int, Meta(ge=3, le=500)], ...], Meta(min_length=1, max_length=32)] = SIZES
    seeds: Annotated[int, Meta(ge=1, le=10_000)] = 40  # of the proof's schedule


class MessageCounts(Experiment[CountParameters]):
    """One election each."""

    id = "election/L1"
    name = "election/message-counts"
    title = "Base needs 2(c+f)+1 unicasts and one multicast, and fewer questions are unsafe"
    source = "paper 004, Lemma 1, Theorem 3; election 8, L1, E8"
    criterion = "counts exact, in ours and in the paper's way; the schedule elects a wrong leader with c+f questions, and never with c+f+1"
    parameters = CountParameters
    seconds_per_cell = 0.05
    quick: ClassVar[Mapping[str, str]] = {"sizes": "[5,16]", "seeds": "10"}

    def cells(self, parameters: CountParameters, seed: int) -> Sequence[Cell]:
        counts = [
            {"what": "count", "way": way, "members": members, "c": c, "f": f, "seed": seed * SEEDS_MAX + c * 100 + f}
            for way in (OURS, PAPERS)
            for members in parameters.sizes
            for c in range(C_MAX + 1)
            for f in range(F_MAX + 1)
            if c + f + 1 < members
        ]
        schedules = [
            {"what": "schedule", "way": way, "members": c + f + 2, "c": c, "f": f, "seed": seed * SEEDS_MAX + number}
            for way in (FEW, ENOUGH)
            for c, f in SCHEDULES
            for number in range(parameters.seeds)
        ]
        return [*counts, *schedules]

    def measure(self, cell: Cell) -> Measured:
        return count(cell) if cell["what"] == "count" else schedule(cell)

    def judge(self, parameters: CountParameters, results: Sequence[Measured]) -> Finding:
        counts = [row for row in results if row["what"] == "count"]
        wrong_counts = [row for row in counts if row["unicasts"] != row["expected"] or row["multicasts"] != 1]
        misses = [
            f"{row['way']}, N={row['members']}, c={row['c']}, f={row['f']}: {row['unicasts']} unicasts, {row['multicasts']} multicasts; "
            f"expected are {row['expected']} and 1"
            for row in wrong_counts
        ]
        table = []
        for c, f in SCHEDULES:
            rows = {
                way: [r for r in results if r["what"] == "schedule" and (r["way"], r["c"], r["f"]) == (way, c, f)] for way in (FEW, ENOUGH)
            }
            wrong = {way: sum(not row["right"] for row in found) for way, found in rows.items()}
            table.append({"c": c, "f": f, "runs": len(rows[FEW]), f"wrong with {FEW}": wrong[FEW], f"wrong with {ENOUGH}": wrong[ENOUGH]})
            if not wrong[FEW]:
                misses.append(f"c={c}, f={f}: {FEW} questions always found the best-ranked")
            if wrong[ENOUGH]:
                misses.append(f"c={c}, f={f}: a worse leader in {wrong[ENOUGH]} runs with {ENOUGH} questions")
        examples = [row for row in counts if (row["c"], row["f"]) == (2, 1)]
        example = {row["way"]: row["unicasts"] for row in reversed(examples)}
        measured: dict[str, Any] = {
            "elections counted": len(counts),
            "exact": len(counts) - len(wrong_counts),
            "unicasts at c=2, f=1": example,
            "schedules": table,
        }
        expected = {"exact": len(counts), "unicasts at c=2, f=1": {OURS: 7, PAPERS: 9}}
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        rows = finding.measured["schedules"]
        places = range(len(rows))
        for shift, way in ((-0.2, FEW), (0.2, ENOUGH)):
            axes.bar([place + shift for place in places], [row[f"wrong with {way}"] for row in rows], width=0.4, label=f"{way} questions")
        axes.set_xticks(list(places), [f"c={row['c']}, f={row['f']}" for row in rows])
        axes.set_ylabel(f"wrong leaders of {rows[0]['runs']} runs")
        axes.legend()


def group_of(cell: Cell, profile: Profile, holes: frozenset[tuple[str, str]] = frozenset()) -> ElectionGroup:
    return ElectionGroup(
        cell["seed"], names_of(cell["members"]), profile, lambda world, board: Holes(world, board, lambda now: holes, down=True)
    )


def count(cell: Cell) -> Measured:
    """One election without failures: what was sent."""
    profile = profiles.paper("base", c=cell["c"], f=cell["f"])
    if cell["way"] == OURS:
        profile = Profile(replace(profile.config, sticky=True), replace(profile.rules, self_response=True, clock_terms=True, confirm=True))
    group = group_of(cell, profile)
    initiator = by_rank(NAME, group.names)[1]  # not the leader, which would need no message to itself
    group.elect(initiator)
    assert group.until(lambda: group.settled(initiator), 60.0)
    group.run(1.0)
    sent = {name: each.messages for name, each in total(group.world).items()}
    unicasts = sum(sent.get(kind.__name__, 0) for kind in UNICASTS)
    asked = cell["c"] + cell["f"] + (0 if cell["way"] == OURS else 1)
    leaders = sent.get("Leader", 0)
    return {**cell, "unicasts": unicasts, "expected": 2 * asked + 1, "multicasts": leaders / (cell["members"] - 1)}


def schedule(cell: Cell) -> Measured:
    """The proof of Theorem 3: an initiator, the best-ranked, c that lack it, f that are silent."""
    c, f = cell["c"], cell["f"]
    profile = profiles.paper("base", c=c, f=f)
    profile = Profile(profile.config, replace(profile.rules, extra=cell["way"] == ENOUGH))
    names = by_rank(NAME, names_of(cell["members"]))
    best, initiator, lackers, silent = names[0], names[-1], names[1 : 1 + c], names[1 + c : 1 + c + f]
    group = group_of(cell, profile, frozenset((viewer, best) for viewer in lackers))
    for name in silent:
        group.crash(name)
    group.elect(initiator)
    group.until(lambda: any(event.final for _, event in group.nominated), 10.0)
    final = [event.nominee.name for _, event in group.nominated if event.final]
    return {**cell, "right": bool(final) and final[0] == best}


EXPERIMENT = MessageCounts()
