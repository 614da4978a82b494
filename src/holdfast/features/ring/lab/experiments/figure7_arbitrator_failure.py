"""ring/E1: what does the death of arbitrators cost, where they are few and fixed, and where every pair has its own?

Spec: ring 8 (E1), D13; paper 000, section VII-A, Figure 7. CA has five arbitrators and loses one of them with every member that
dies; DA loses two members instead. The third line is ours: CA whose members say that they leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.ring.lab.measures import draw_members, formed, mean
from holdfast.features.ring.lab.rings import PAPER_RULES, arbitrators, paper_config
from holdfast.features.ring.protocol.config import ARBITRATORS_MAX, K_MAX
from holdfast.features.ring.protocol.rules import Rules
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CA, NOTICES, DA = "CA", "CA with leave notices", "DA"
LINES = (CA, NOTICES, DA)
DA_SHARE = 0.95  # of the runs must be exact
DA_LEAST = 4  # members; below, collapse is allowed
DECAY = (30, 23, 17, 10, 3, 0)  # sizes with notices from the second event on: the prototype's (11), for 32 members and 5 arbitrators
DECAY_FROM, DECAY_TOLERANCE = 2, 2
DECAY_SETTING = (32, 3, 5)  # members, k, arbitrators


class ArbitratorFailureParameters(Parameters, frozen=True, kw_only=True):
    """The setting of Figure 7; the time between events is ours."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 20
    members: Annotated[int, Meta(ge=8, le=1000)] = 32
    k: Annotated[int, Meta(ge=1, le=K_MAX)] = 3
    arbitrators: Annotated[int, Meta(ge=1, le=ARBITRATORS_MAX)] = 5  # CA
    events: Annotated[int, Meta(ge=1, le=100)] = 15
    apart: Annotated[float, Meta(ge=8.0, le=1000.0)] = 14.0  # in T_l


class ArbitratorFailure(Experiment[ArbitratorFailureParameters]):
    """Kill, wait until it is over, count."""

    id = "ring/E1"
    name = "ring/arbitrator-failure"
    title = "Arbitrators die: fixed ones take the ring with them, pairwise ones do not"
    source = "paper 000, Figure 7; ring 8, E1"
    criterion = (
        "CA loses exactly the dead while a majority of arbitrators lives and is empty by the event after that, in every run; DA loses "
        "exactly the dead down to 4 members in 95 % of the runs; CA with leave notices decays 30, 23, 17, 10, 3, 0 +- 2 (mean)"
    )
    parameters = ArbitratorFailureParameters
    seconds_per_cell = 0.2
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1"}

    def cells(self, parameters: ArbitratorFailureParameters, seed: int) -> Sequence[Cell]:
        setting = {field: getattr(parameters, field) for field in ("members", "k", "arbitrators", "events", "apart")}
        return [{"line": line, "seed": seed * SEEDS_MAX + number, **setting} for line in LINES for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        """Ring sizes: at first, and just before the event after each."""
        central, events = cell["line"] != DA, cell["events"]
        config = paper_config(k=cell["k"])
        if central:
            config = paper_config(k=cell["k"], mode="central", arbitrators=arbitrators(cell["arbitrators"]))
        rings = formed(cell["seed"], cell["members"], config, Rules() if cell["line"] == NOTICES else PAPER_RULES)
        world, sizes = rings.world, [rings.size]
        dying = world.random.sample(list(rings.arbitrators), len(rings.arbitrators))
        for _ in range(events):
            for name in [*draw_members(rings, 1 if central else 2), *dying[:1]]:
                world.crash(name)
            del dying[:1]
            world.run(world.now + cell["apart"] * config.lease)
            sizes.append(rings.size)
        return {"line": cell["line"], "seed": cell["seed"], "sizes": sizes}

    def judge(self, parameters: ArbitratorFailureParameters, results: Sequence[Measured]) -> Finding:
        expected = _expected(parameters)
        runs = {line: [result["sizes"] for result in results if result["line"] == line] for line in LINES}
        means = {line: [round(mean(sizes), 2) for sizes in zip(*runs[line], strict=True)] for line in LINES}
        counted = {CA: range(parameters.events + 1), DA: [e for e, size in enumerate(expected[DA]) if size >= DA_LEAST]}
        exact = {
            line: round(mean([all(sizes[e] == expected[line][e] for e in events) for sizes in runs[line]]), 4)
            for line, events in counted.items()
        }
        notes = [f"{CA}: {sizes}, expected {expected[CA]}" for sizes in runs[CA] if sizes != expected[CA]][:3]
        if exact[DA] < DA_SHARE:
            wrong = next(sizes for sizes in runs[DA] if any(sizes[e] != expected[DA][e] for e in counted[DA]))
            notes.append(f"{DA}: exact in {exact[DA]:.0%} of the runs, one of the others is {wrong}")
        notes += _decay_misses(parameters, means[NOTICES])
        measured = {
            "sizes": means,
            "share of exact runs": exact,
            "lowest": {line: [min(sizes) for sizes in zip(*runs[line], strict=True)] for line in LINES},
            "highest": {line: [max(sizes) for sizes in zip(*runs[line], strict=True)] for line in LINES},
        }
        wanted: dict[str, Any] = {"sizes": expected, "share of exact runs": {CA: 1.0, DA: f">= {DA_SHARE}"}}
        return Finding(measured, wanted, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for line, marker in zip(LINES, "^so", strict=True):
            sizes = finding.measured["sizes"][line]
            (drawn,) = axes.plot(sizes, marker=marker, label=line)
            low, high = finding.measured["lowest"][line], finding.measured["highest"][line]
            axes.fill_between(range(len(sizes)), low, high, color=drawn.get_color(), alpha=0.15, linewidth=0)
        for line in (CA, DA):
            axes.plot(finding.expected["sizes"][line], color="#7b8794", linestyle="--", linewidth=1, label="paper" if line == DA else None)
        axes.set_xlabel("kill event: a member and an arbitrator (CA), two members (DA)")
        axes.set_ylabel("members left (mean; shaded: all runs)")
        axes.set_ylim(bottom=0)
        axes.legend()


def _expected(parameters: ArbitratorFailureParameters) -> dict[str, list[int]]:
    events, members = range(parameters.events + 1), parameters.members
    tolerated = (parameters.arbitrators - 1) // 2
    expected = {
        CA: [members - e if e <= tolerated else 0 for e in events],
        DA: [max(0, members - 2 * e) for e in events],
    }
    if _is_of_the_prototype(parameters):
        expected[NOTICES] = [DECAY[min(e - DECAY_FROM, len(DECAY) - 1)] if e >= DECAY_FROM else members - e for e in events]
    return expected


def _is_of_the_prototype(parameters: ArbitratorFailureParameters) -> bool:
    return (parameters.members, parameters.k, parameters.arbitrators) == DECAY_SETTING


def _decay_misses(parameters: ArbitratorFailureParameters, sizes: Sequence[float]) -> list[str]:
    """How fast it decays has no formula: it is judged in the one setting it was measured in before."""
    if not _is_of_the_prototype(parameters):
        return []
    expected = _expected(parameters)[NOTICES]
    return [
        f"{NOTICES}: {size:g} members after event {e}, expected {expected[e]} +- {DECAY_TOLERANCE}"
        for e, size in enumerate(sizes)
        if abs(size - expected[e]) > DECAY_TOLERANCE
    ]


EXPERIMENT = ArbitratorFailure()
