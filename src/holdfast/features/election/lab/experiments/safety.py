"""election/L2: is the leader always the best-ranked?  Paper 004, Theorem 1.  Spec: election 8 (L2), E3, D1, D2, D4.

Groups of 5 to 20 in which messages get lost, so that elections take several rounds. The best-ranked member is lacked by c lists: always the
same, the same in turn, or those that are asked first. It must be elected each time. Three controls show what Theorem 1 stands on: lists in
which any c lack it at an instant, others a moment later (D2); responders that do not name themselves (D1); news about members on
election messages (D4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.features.election.lab.groups import NAME, ElectionGroup, names_of
from holdfast.features.election.lab.lists import Holes
from holdfast.features.election.lab.ranking import by_rank
from holdfast.features.election.lab.schedules import TURN, Asked, open_holes, spread_rumours
from holdfast.features.election.protocol import profiles
from holdfast.features.election.protocol.profiles import Profile
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAFE = ("static", "windowed", "adversarial")
INSTANT, NO_SELF, RUMOURS = "instant (D2)", "no self-naming (D1)", "rumours on messages (D4)"
CONTROLS = (INSTANT, NO_SELF, RUMOURS)
VARIANTS = ("base", "optimistic")
BATCH = 50
LINK = Link(Uniform(0.001, 0.05), loss=0.15)
LATEST, AGAIN = 60.0, 12  # seconds, and how often it asks in them


class SafetyParameters(Parameters, frozen=True, kw_only=True):
    """1000 runs of each kind and variant."""

    runs: Annotated[int, Meta(ge=1, le=100_000)] = 1000


class Safety(Experiment[SafetyParameters]):
    """One election per run."""

    id = "election/L2"
    name = "election/safety"
    title = "Base and Optimistic elect the best-ranked, if c bounds what lists lack over the election"
    source = "paper 004, Theorem 1; election 8, L2, D1, D2, D4"
    criterion = "0 wrong leaders with a windowed c; more than 0 for each control"
    parameters = SafetyParameters
    seconds_per_cell = 1.5
    repetitions = "runs"
    quick: ClassVar[Mapping[str, str]] = {"runs": "50"}

    def cells(self, parameters: SafetyParameters, seed: int) -> Sequence[Cell]:
        return [
            cell
            for variant in VARIANTS
            for kind in (*SAFE, *CONTROLS)
            for cell in in_batches({"variant": variant, "kind": kind}, parameters.runs, BATCH, seed * SEEDS_MAX)
        ]

    def measure(self, cell: Cell) -> Measured:
        wrong, undecided, first = 0, 0, -1
        for seed in range(cell["seed"], cell["seed"] + cell["runs"]):
            right = elects_best(cell["variant"], cell["kind"], seed)
            if right is None:
                undecided += 1
            elif not right:
                wrong, first = wrong + 1, seed if first < 0 else first
        return {**cell, "wrong": wrong, "undecided": undecided, "first": first}

    def judge(self, parameters: SafetyParameters, results: Sequence[Measured]) -> Finding:
        table: dict[str, dict[str, int]] = {}
        misses, undecided = [], 0
        for kind in (*SAFE, *CONTROLS):
            for variant in VARIANTS:
                of = [row for row in results if (row["kind"], row["variant"]) == (kind, variant)]
                wrong = table.setdefault(kind, {})[variant] = sum(row["wrong"] for row in of)
                undecided += sum(row["undecided"] for row in of)
                if wrong and kind in SAFE:
                    first = next(row["first"] for row in of if row["wrong"])
                    misses.append(f"{variant}, {kind}: {wrong} wrong leaders, the first with seed {first}")
            if kind in CONTROLS and not any(table[kind].values()):
                misses.append(f"{kind}: no wrong leader in {parameters.runs} runs")
        if undecided:
            misses.append(f"{undecided} elections came to no end in {LATEST:g} s")
        measured: dict[str, Any] = {"wrong leaders": table, "runs of each": parameters.runs, "undecided": undecided}
        expected = {"wrong leaders": {**dict.fromkeys(SAFE, 0), **dict.fromkeys(CONTROLS, "> 0")}}
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        table = finding.measured["wrong leaders"]
        places = range(len(table))
        for shift, variant in ((-0.2, VARIANTS[0]), (0.2, VARIANTS[1])):
            axes.bar([place + shift for place in places], [row[variant] for row in table.values()], width=0.4, label=variant)
        axes.set_xticks(list(places), list(table), rotation=20, fontsize=7)
        axes.set_ylabel(f"wrong leaders in {finding.measured['runs of each']} runs")
        axes.legend()


def elects_best(variant: str, kind: str, seed: int) -> bool | None:
    """One run. None: it came to no end."""
    random = Random(f"{seed}/safety")
    c, f = random.randint(1, 4), random.randint(0, 1)
    names = by_rank(NAME, names_of(c + f + 3 if kind == NO_SELF else random.randint(c + f + 3, 20)))
    best, others = names[0], names[1:]
    profile = profiles.paper(variant, c=c, f=f)  # type: ignore[arg-type]
    profile = Profile(
        profile.config, replace(profile.rules, self_response=kind != NO_SELF and random.random() < 0.5, names_itself=kind != NO_SELF)
    )
    # The controls but that of D2 have the lists of the others. The initiator lists the best-ranked in that of D1, not in that of D4.
    lists = "instant" if kind == INSTANT else "static" if kind in CONTROLS else kind
    holes = open_holes(lists, best, others, c, seed)
    group = ElectionGroup(
        seed,
        names,
        profile,
        lambda world, board: Asked(world, board, best, c) if lists == "adversarial" else Holes(world, board, holes, period=TURN),
        link=LINK,
    )
    initiator = random.choice(others)
    if kind in (NO_SELF, RUMOURS):
        lackers = sorted(viewer for viewer, _ in holes(0.0))
        initiator = lackers[0] if kind == RUMOURS else next(name for name in others if name not in lackers)
    if kind == RUMOURS:
        spread_rumours(group.world)
    return names_best(group, initiator, best)


def names_best(group: ElectionGroup, initiator: str, best: str) -> bool | None:
    """An election that begins there. None: it came to no end."""
    group.elect(initiator)
    # A member whose list drops an early leader begins an election of its own: all that took c+1 answers are judged. Of two initiators
    # each may end the other's election before that, so the first one asks again.
    for _ in range(AGAIN):
        if group.until(lambda: any(group.nominee(name) is not None for name in group.names), LATEST / AGAIN):
            return all(group.nominee(name) in (None, best) for name in group.names)
        group.elect(initiator)
    return None


EXPERIMENT = Safety()
