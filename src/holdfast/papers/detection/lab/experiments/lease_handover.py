"""detection/E17: how long is there no leader: after a resignation, a crash, and a crash that takes the next candidates along?

Spec: fast-detection 8 (E17), 9 (resign), D23, D26; the paper has no lease.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import by_column, quantile_interval, summary
from holdfast.papers.detection.lab.elections import Elections, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMBERS, LENGTH, LOSS = 7, 2.0, 0.01
RESIGN = "resign"
DEAD = {RESIGN: 0, "crash": 0, "crash, next candidate dead": 1, "crash, next two dead": 2}
PROTOTYPE = {RESIGN: 0.08, "crash": 1.5, "crash, next candidate dead": 1.6, "crash, next two dead": 3.4}
LIMIT = 0.2  # seconds, of the median after a resignation
PARTS = 4  # groups per way
REST = 45.0  # seconds between a restart and the next end: the loss of the links from the leader is measured (40 heartbeats)
PATIENCE = 60.0
LOW_50, HIGH_50 = "p50, 95 % from", "p50, 95 % to"


class HandoverParameters(Parameters, frozen=True, kw_only=True):
    """Ends of a leadership, per way of ending."""

    seeds: Annotated[int, Meta(ge=8, le=SEEDS_MAX)] = 1000


class Handover(Experiment[HandoverParameters]):
    """Quorum mode, seven members, L = 2 s, p = .01; time from the end until another leads."""

    id = "detection/E17"
    name = "detection/hand-over"
    title = "The next leader: after a word, and after a death"
    source = "fast-detection 8, E17, D23 (the paper has no lease)"
    criterion = "median after a resignation below 0.2 s"
    parameters = HandoverParameters
    seconds_per_cell = 3.4
    quick: ClassVar[Mapping[str, str]] = {"seeds": "8"}

    def cells(self, parameters: HandoverParameters, seed: int) -> Sequence[Cell]:
        ends = -(-parameters.seeds // PARTS)
        return [{"way": way, "ends": ends, "seed": seed * 100 + part} for way in DEAD for part in range(PARTS)]

    def measure(self, cell: Cell) -> Measured:
        group = Elections(cell["seed"], MEMBERS, settings("quorum", length=LENGTH, known=False), loss=LOSS)
        random, ends = group.world.random, cell["ends"]
        found = [_end(group, cell["way"], (number + random.random()) / ends) for number in range(ends)]
        return {"way": cell["way"], "times": [seconds for seconds in found if seconds is not None], "never": found.count(None)}

    def judge(self, parameters: HandoverParameters, results: Sequence[Measured]) -> Finding:
        times = {way: [seconds for row in results if row["way"] == way for seconds in row["times"]] for way in DEAD}
        rows = {way: _row(values) for way, values in times.items()}
        never = sum(row["never"] for row in results)
        notes = [f"{never} times nobody led within {PATIENCE:g} s"] if never else []
        median = rows[RESIGN]["p50"]
        if median >= LIMIT:
            notes.append(f"resign: median {median:.3f} s, expected below {LIMIT:g}")
        measured: dict[str, Any] = by_column(rows)
        told = "the values beside ours are those of the prototype in the specification"
        return Finding(measured, {"p50": dict(PROTOTYPE)}, not notes, (*notes, told))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        ways = list(finding.measured["p50"])
        p50, p99 = ([finding.measured[what][way] for way in ways] for what in ("p50", "p99"))
        places = range(len(ways))
        axes.bar(places, p50, width=0.5, label="median")
        axes.plot(places, p99, linestyle="none", marker="_", markersize=30, label="99th percentile")
        axes.plot(places, [finding.expected["p50"][way] for way in ways], linestyle="none", marker="x", color="#7b8794", label="prototype")
        axes.axhline(LENGTH, color="#7b8794", linestyle=":", label="L")
        axes.set_xticks(places, [way.replace(", ", ",\n") for way in ways])
        axes.set_ylabel("seconds until somebody else leads")
        axes.legend(loc="upper left")


def _end(group: Elections, way: str, share: float) -> float | None:
    leader = group.ready(REST, share)
    before = len(group.reigns)
    victims = [] if way == RESIGN else [leader, *group.next_candidates(leader, DEAD[way])]
    if victims:
        group.crash(victims)
    else:
        group.world.step(group.world.nodes[leader], group.election(leader).resign)
    seconds = group.until(lambda: len(group.reigns) > before, PATIENCE)
    for name in victims:
        group.start(name)
    return seconds


def _row(values: Sequence[float]) -> dict[str, float]:
    low, high = quantile_interval(values, 0.5)
    return {**summary(values), LOW_50: round(low, 6), HIGH_50: round(high, 6)}


EXPERIMENT = Handover()
