"""limits/F10: 182 members over three continents, links that fail all the time, and a sum in steps.

Spec: limits 5.4, 5.8, 8 (F10); paper 003, 7.2.2, Figure 10. No traffic: every 90 s 38 more members report 10 instead of 0. One member is
taken out of the view at 175 s. By gossip, and by a collector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from statistics import pstdev
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta

from holdfast.features.limits.lab.given_views import SLOW
from holdfast.features.limits.lab.measures import checked, completed, mean, shortened, thinned, violations
from holdfast.features.limits.lab.sums import SumGroup
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Way = Literal["gossip", "central"]
VALUE, PER_STEP = 10.0, 38
REMOVED_AT, FORMED, LOOK = 175.0, 10.0, 0.25
CUTS_PER_SECOND, CUT_MEAN, SPIKE, SPIKE_EVERY = 2.0, 40.0, 60, 60.0  # cuts of directed links; a spike takes one member's links
NEAR, SPREAD = 0.05, 0.10
WITHIN: Mapping[Way, float] = {"gossip": 5.0, "central": 1.0}


class WideAreaParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 7.2.2."""

    members: Annotated[int, Meta(ge=6, le=500)] = 182
    steps: Annotated[int, Meta(ge=1, le=4)] = 3
    step_seconds: Annotated[float, Meta(ge=20.0, le=120.0)] = 90.0
    ways: Annotated[tuple[Way, ...], Meta(min_length=1, max_length=2)] = ("gossip", "central")


class WideArea(Experiment[WideAreaParameters]):
    """The same steps and the same cuts in both ways of aggregation."""

    id = "limits/F10"
    name = "limits/wide-area"
    title = "Aggregates of 182 members while links fail: stair steps"
    source = "paper 003, 7.2.2, Figure 10; limits 8, F10"
    criterion = "each step: mean within 5 % and deviation below 10 % in at most 5 s by gossip and 1 s by a collector"
    parameters = WideAreaParameters
    seconds_per_cell = 200.0
    quick: ClassVar[Mapping[str, str]] = {"members": "24", "steps": "1", "step_seconds": "20.0"}

    def cells(self, parameters: WideAreaParameters, seed: int) -> Sequence[Cell]:
        base = {"members": parameters.members, "steps": parameters.steps, "step": parameters.step_seconds}
        return [{**base, "way": way, "seed": seed * SEEDS_MAX + number} for way in parameters.ways for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: WideAreaParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        measured: dict[str, Any] = {
            "seconds to each step": {row["way"]: row["seconds"] for row in rows},
            "failed links, most": {row["way"]: row["most failed"] for row in rows},
            "lines": {row["way"]: row["lines"] for row in rows if row["seed"] % SEEDS_MAX == 0},
        }
        expected = {"seconds to each step": {"gossip": "the paper: a short instability", "central": "the paper: almost at once"}}
        misses = [*violations(results)]
        for row in rows:
            late = [each for each in row["seconds"] if each is None or each > WITHIN[row["way"]]]
            if late:
                misses.append(f"{row['way']}, seed {row['seed']}: steps after {row['seconds']} s")
        return Finding(measured, expected, bool(rows) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        lines = finding.measured["lines"]
        plots = figure.subplots(len(lines) + 1, 1, sharex=True, squeeze=False)[:, 0]
        for axes, (way, of) in zip(plots, lines.items(), strict=False):
            axes.plot([at for at, _ in of["mean"]], [value for _, value in of["mean"]], label=f"{way}: mean of the aggregates")
            axes.plot([at for at, _ in of["truth"]], [value for _, value in of["truth"]], linestyle="--", label="true sum")
            axes.legend(fontsize=7)
            plots[-1].plot([at for at, _ in of["failed"]], [value for _, value in of["failed"]], label=way)
        plots[-1].set_ylabel("failed links")
        plots[-1].set_xlabel("seconds")


class _Failing:
    """Directed links that fail and heal."""

    def __init__(self, group: SumGroup, random: Random) -> None:
        self._group, self._random, self.now = group, random, 0
        self._number = 0

    def begin(self, seconds: float) -> None:
        world = self._group.world
        at = 0.0
        while (at := at + self._random.expovariate(CUTS_PER_SECOND)) < seconds:
            one, other = self._random.sample(self._group.names, 2)
            world.at(world.now + at, lambda one=one, other=other: self._cut((one,), (other,)))  # type: ignore[misc]
        at = 0.0
        while (at := at + SPIKE_EVERY) < seconds:
            one, *others = self._random.sample(self._group.names, min(SPIKE, len(self._group.names) - 1) + 1)
            world.at(world.now + at, lambda one=one, others=tuple(others): self._cut((one,), others))  # type: ignore[misc]

    def _cut(self, sources: tuple[str, ...], targets: tuple[str, ...]) -> None:
        world = self._group.world
        self._number += 1
        key = self._number
        self.now += len(sources) * len(targets)
        world.network.cut(key, sources, targets)
        world.at(world.now + self._random.expovariate(1 / CUT_MEAN), lambda: self._heal(key, len(sources) * len(targets)))

    def _heal(self, key: int, links: int) -> None:
        self.now -= links
        self._group.world.network.heal(key)


def _play(cell: Cell) -> Measured:
    group = SumGroup(cell["seed"], cell["members"], LimitsConfig(), link=Link(Uniform(0.02, 0.15), loss=0.01), aggregate=cell["way"])
    group.overlay.delay = SLOW
    random = Random(f"{cell['seed']}/links")
    group.install()
    group.run(FORMED)
    began, seconds = group.world.now, cell["step"] * (cell["steps"] + 1)
    failing = _Failing(group, random)
    failing.begin(seconds)
    order = random.sample(group.names, len(group.names))
    names, truth, changed_at = list(group.names), 0.0, -1.0
    lines: dict[str, list[tuple[float, float]]] = {"mean": [], "truth": [], "failed": []}
    reached: list[float | None] = []
    bad_at, most = 0.0, 0
    per_step = max(1, PER_STEP * cell["members"] // 182)
    for look in range(1, int(seconds / LOOK) + 1):
        group.run(LOOK)
        at = group.world.now - began
        step = int((at + LOOK / 2) / cell["step"])
        if step > len(reached) and step <= cell["steps"]:
            for name in order[(step - 1) * per_step : step * per_step]:
                group.set(name, VALUE)
            truth = VALUE * sum(name in names for name in order[: step * per_step])
            changed_at = bad_at = at
            reached.append(None)
        if len(names) == len(group.names) and at >= REMOVED_AT:
            gone = order[-1]
            names.remove(gone)
            group.install(names)
        estimates = [group.raw_or_central(name) for name in names]
        if truth and changed_at < at:
            off = abs(mean(estimates) - truth) / truth
            if off > NEAR or pstdev(estimates) / truth > SPREAD:
                bad_at = at
            elif reached[-1] is None and at - bad_at >= 2.0:
                reached[-1] = round(bad_at + LOOK - changed_at, 2)
        most = max(most, failing.now)
        if look % 4 == 0:
            for key, value in (("mean", mean(estimates)), ("truth", truth), ("failed", float(failing.now))):
                lines[key].append((at, value))
    return {**cell, "seconds": reached, "most failed": most, "lines": {key: thinned(line) for key, line in lines.items()}}


EXPERIMENT = WideArea()
