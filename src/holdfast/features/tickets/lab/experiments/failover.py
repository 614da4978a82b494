"""tickets/E10: the holder of a lock dies: how long until another agent has it, and does that ever begin too early?

Spec: tickets 8 (E10), G1, G5; the paper has no lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.tickets.lab.groups import lock
from holdfast.features.tickets.lab.locks import Losses, by_loss, cells, label, played
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import by_column, curves, draw_curves, quantile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIG = TicketConfig()  # section 4
SLACK = 0.3  # seconds beyond D for the median
PROTOTYPE = {0.0: (2.02, 2.52), 0.05: (2.04, 2.62), 0.2: (2.18, 3.06)}  # median, p99
SMALLEST_GAP = 0.04
GAP = "smallest gap to the old deadline"


class FailoverParameters(Parameters, frozen=True, kw_only=True):
    """Deaths per loss."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 200
    losses: Losses = tuple(PROTOTYPE)


class Failover(Experiment[FailoverParameters]):
    """One ticket, three seats, three candidates, all with default settings; the one that has the ticket dies."""

    id = "tickets/E10"
    name = "tickets/failover"
    title = "A lock after the death of its holder"
    source = "tickets 8, E10 (the paper has no measurement)"
    criterion = "median at most D + 0.3 s, 99 % within 2 D; nobody has it before the old deadline has passed; no invariant violated"
    parameters = FailoverParameters
    seconds_per_cell = 0.14
    quick: ClassVar[Mapping[str, str]] = {"seeds": "5"}

    def cells(self, parameters: FailoverParameters, seed: int) -> Sequence[Cell]:
        return cells(parameters.losses, parameters.seeds, seed)

    def measure(self, cell: Cell) -> Measured:
        found, counted = played(cell, _death)
        return {"loss": cell["loss"], "times": [seconds for seconds, _ in found], "gaps": [gap for _, gap in found], **counted}

    def judge(self, parameters: FailoverParameters, results: Sequence[Measured]) -> Finding:
        found = by_loss(parameters.losses, results)
        gaps = {runs.label: min((gap for row in runs.rows for gap in row["gaps"]), default=0.0) for runs in found}
        notes = [note for runs in found for note in runs.misses(partial(_misses, gaps[runs.label]))]
        rows = {runs.label: runs.summed(**{GAP: round(gaps[runs.label], 6)}) for runs in found}
        measured = {**by_column(rows), "curves": curves({runs.label: runs.times for runs in found})}
        known = [loss for loss in parameters.losses if loss in PROTOTYPE]
        expected: dict[str, Any] = {
            "p50": {label(loss): f"{PROTOTYPE[loss][0]} (prototype)" for loss in known},
            "p99": {label(loss): f"{PROTOTYPE[loss][1]} (prototype)" for loss in known},
            GAP: {label(0.0): f"{SMALLEST_GAP} (prototype)"},
        }
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        draw_curves(axes, finding.measured["curves"])
        axes.axvline(CONFIG.lease + SLACK, color="#7b8794", linestyle=":", label="D + 0.3 s, for the median")
        axes.axvline(2 * CONFIG.lease, color="#7b8794", linestyle="--", label="2 D, for 99 %")
        axes.set_xlabel("seconds from the death until the next one owns the lock")
        axes.set_xlim(left=0)
        axes.legend(loc="lower right")


def _death(seed: int, loss: float) -> tuple[float, float] | None:
    """Seconds until the next one owns it, and by how many the old deadline had passed then."""
    group, holder = lock(seed, loss)
    died_at, deadline, before = group.world.now, group.owning()[0].until, len(group.grants)
    group.crash(holder)
    owned_at = group.next_grant(before)
    return None if owned_at is None else (owned_at - died_at, owned_at - deadline)


def _misses(gap: float, times: list[float]) -> list[str]:
    notes = []
    if quantile(times, 0.5) > CONFIG.lease + SLACK:
        notes.append(f"median {quantile(times, 0.5):.3f} s, accepted is D + {SLACK:g} = {CONFIG.lease + SLACK:g}")
    if quantile(times, 0.99) > 2 * CONFIG.lease:
        notes.append(f"99th percentile {quantile(times, 0.99):.3f} s, accepted is 2 D = {2 * CONFIG.lease:g}")
    if gap <= 0:
        notes.append(f"another had it {-gap:.6f} s before the old deadline")
    return notes


EXPERIMENT = Failover()
