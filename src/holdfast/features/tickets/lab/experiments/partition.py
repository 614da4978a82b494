"""tickets/E14: the smaller half is cut off: do its owners stop, does the larger half get everything, and is all well afterwards?

Spec: tickets 8 (E14), 1 (Partition), G1, G4; paper 001, section 4: "no two processes even under partition".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.tickets.lab.groups import PATIENCE, TicketGroup
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.lab.samples import quantile, summary
from holdfast.lab.violation import Violation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIG = TicketConfig()  # section 4
SEATS, OTHERS, TICKETS, WISHES = 3, 2, 4, 2
CALM, CUT, HEALED = 5.0, 20.0, 20.0  # seconds
MEDIAN_MAX, LONGEST_MAX = CONFIG.lease + 1.5, 4 * CONFIG.lease
PROTOTYPE = {"stops": 2.00, "p50": 2.78, "max": 7.6}
RUNS_PER_CELL = 10
STOPS, ALL, NEVER, HARM = "the cut off stop after at most", "the others own all", "never", "conflicts"
JUDGED_MIN = 100  # cuts below which median and slowest run are not judged: the median of twenty is beyond the limit or below it by chance


class PartitionParameters(Parameters, frozen=True, kw_only=True):
    """Cuts."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 100


class Partition(Experiment[PartitionParameters]):
    """Five agents, three of them seats, four tickets, each agent wants two. One seat and one other, which own something, are cut off."""

    id = "tickets/E14"
    name = "tickets/partition"
    title = "Cut off with a minority of the seats"
    source = "tickets 8, E14; paper 001, section 4"
    criterion = (
        "owners who are cut off stop within D; the others own all n, median within D + 1.5 s and always within 4 D; no ticket has two"
        " users, and after the cut all are owned again"
    )
    parameters = PartitionParameters
    seconds_per_cell = 1.2
    quick: ClassVar[Mapping[str, str]] = {"seeds": "20"}

    def cells(self, parameters: PartitionParameters, seed: int) -> Sequence[Cell]:
        return in_batches({}, parameters.seeds, RUNS_PER_CELL, seed * SEEDS_MAX)

    def measure(self, cell: Cell) -> Measured:
        runs = [_run(cell["seed"] + number) for number in range(cell["runs"])]
        return {
            "stops": [seconds for run in runs for seconds in run["stops"]],
            "all": [run["all"] for run in runs if run["all"] is not None],
            NEVER: sum(run["all"] is None for run in runs),
            HARM: [each for run in runs for each in run[HARM]],
            "timeline": runs[0]["timeline"],
        }

    def judge(self, parameters: PartitionParameters, results: Sequence[Measured]) -> Finding:
        stops = [seconds for row in results for seconds in row["stops"]]
        times = [seconds for row in results for seconds in row["all"]]
        never = sum(row[NEVER] for row in results)
        harm = [each for row in results for each in row[HARM]]
        notes = [*harm[:3], *_misses(stops, times, never, judged=parameters.seeds >= JUDGED_MIN)]
        measured: dict[str, Any] = {
            STOPS: round(max(stops, default=0.0), 6),
            "owners cut off": len(stops),
            ALL: summary(times) if times else {},
            NEVER: never,
            HARM: len(harm),
            "timeline": results[0]["timeline"],
        }
        expected: dict[str, Any] = {
            STOPS: f"<= {CONFIG.lease:g}; {PROTOTYPE['stops']} (prototype)",
            ALL: {
                "p50": f"<= {MEDIAN_MAX:g}; {PROTOTYPE['p50']} (prototype)",
                "max": f"<= {LONGEST_MAX:g}; {PROTOTYPE['max']} (prototype)",
            },
            HARM: 0,
        }
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        colours = {True: "#d55e00", False: "#0072b2"}
        for bar in finding.measured["timeline"]:
            axes.barh([bar["number"]], [bar["to"] - bar["from"]], left=[bar["from"]], height=0.6, color=colours[bar["cut off"]], alpha=0.75)
            axes.text(bar["from"], bar["number"], f" {bar['name']}", va="center", fontsize=8, color="#ffffff")
        for cut_off, label in ((True, "user is on the side with one seat"), (False, "user is on the side with two seats")):
            axes.barh([0], [0], color=colours[cut_off], label=label)
        axes.axvspan(0, CUT, color="#7b8794", alpha=0.15, label="the cut")
        axes.axvline(CONFIG.lease, color="#7b8794", linestyle=":", label="D")
        axes.set_yticks(range(TICKETS), [f"ticket {number}" for number in range(TICKETS)])
        axes.set_ylim(-0.6, TICKETS + 0.6)
        axes.set_xlabel("seconds since the cut, in the first run")
        axes.legend(loc="upper right", ncols=2)


def _run(seed: int) -> dict[str, Any]:
    """What happened until something was violated, and that."""
    found: dict[str, Any] = {"stops": [], "all": None, HARM: [], "timeline": []}
    try:
        _play(seed, found)
    except Violation as violation:
        found[HARM].append(f"seed {seed}: {violation}")
    return found


def _play(seed: int, found: dict[str, Any]) -> None:
    group = TicketGroup(seed, TICKETS, seats=SEATS, others=OTHERS, config=CONFIG)
    names = list(group.world.nodes)
    for name in [each for each in names for _ in range(WISHES)]:
        group.wish(name)
    assert group.until(lambda: len(group.owning()) == TICKETS, PATIENCE), "the tickets are not even taken"
    group.run(CALM + group.world.random.random())
    small, large = _sides(group, names)
    cut_at = group.world.now

    def look() -> None:
        if found["all"] is None and len(group.owning(large)) == TICKETS:
            found["all"] = group.world.now - cut_at

    group.when_granted(look)
    group.world.network.partition("cut", [small, large])
    group.run(CUT)
    found["stops"] = [grant.until - cut_at for grant in group.grants if grant.name in small and grant.until > cut_at]
    group.world.network.heal("cut")
    group.run(HEALED)
    found["timeline"] = _timeline(group, small, cut_at)
    found[HARM] += [f"seed {seed}: {each}" for each in group.overlaps()]
    if len(group.owning()) < TICKETS:
        found[HARM].append(f"seed {seed}: {len(group.owning())} of {TICKETS} tickets are owned {HEALED:g} s after the cut")


def _sides(group: TicketGroup, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """One seat and one other that own something between them, and all others."""
    pairs = [[seat, other] for seat in names[:SEATS] for other in names[SEATS:] if group.owning([seat, other])]
    small = group.world.random.choice(pairs)
    return small, [name for name in names if name not in small]


def _timeline(group: TicketGroup, small: Sequence[str], cut_at: float) -> list[dict[str, Any]]:
    return [
        {
            "name": grant.name,
            "number": grant.number,
            "cut off": grant.name in small,
            "from": round(max(-CALM, grant.since - cut_at), 4),
            "to": round(min(CUT + HEALED, grant.until - cut_at), 4),
        }
        for grant in group.grants
        if grant.until > max(grant.since, cut_at - CALM)
    ]


def _misses(stops: Sequence[float], times: Sequence[float], never: int, *, judged: bool) -> list[str]:
    notes = []
    if not stops or max(stops) > CONFIG.lease:
        notes.append(f"an owner that was cut off stopped after {max(stops, default=0.0):.3f} s, accepted is D = {CONFIG.lease:g}")
    if never:
        notes.append(f"in {never} runs the larger half never owned all tickets")
    if not times or not judged:
        return notes
    if quantile(times, 0.5) > MEDIAN_MAX:
        notes.append(f"the larger half owned all after {quantile(times, 0.5):.3f} s in the median, accepted is D + 1.5 = {MEDIAN_MAX:g}")
    if max(times) > LONGEST_MAX:
        notes.append(f"the larger half owned all after {max(times):.3f} s in the slowest run, accepted is 4 D = {LONGEST_MAX:g}")
    return notes


EXPERIMENT = Partition()
