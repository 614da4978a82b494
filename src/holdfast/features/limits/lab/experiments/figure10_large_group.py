"""limits/F10: 182 members, and hundreds of links that fail: does every member know the sum of all?

Spec: limits 8 (F10), 5.3, 5.4, 5.8; H308; paper 003, 7.2.2, Figure 10. There is no traffic: members declare a value, 38 of them
another one every 90 s. One member is removed from the view. The sum is gossiped, or added up by one member. Links fail as in the trace
of views F2, or in bursts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta

from holdfast.features.limits.lab.conserved import residue_of
from holdfast.features.limits.lab.failing_links import FailingLinks, bursts, window_of_trace
from holdfast.features.limits.lab.measures import thinned
from holdfast.features.limits.lab.sums import SumGroup
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GOSSIP: Final = "gossip"
CENTRAL: Final = "central"
TRACE: Final = "trace"
BURSTS: Final = "bursts"
LINK = Link(delay=Uniform(0.02, 0.15), loss=0.01)
SAMPLED, COUNTED = 0.25, 10.0  # seconds between two looks at estimates, and at what is conserved
VALUE = 10.0
MEAN_NEAR, SPREAD_NEAR = 0.05, 0.10
WITHIN = {GOSSIP: 5.0, CENTRAL: 1.0}  # seconds
PROTOTYPE = 2.0  # seconds of gossip, for each of two steps
COLOURS = {GOSSIP: "#0072b2", CENTRAL: "#d55e00"}


class LargeGroupParameters(Parameters, frozen=True, kw_only=True):
    """The setting of Figure 10."""

    members: Annotated[int, Meta(ge=8, le=400)] = 182
    branching: Annotated[int, Meta(ge=1, le=16)] = 8
    changed: Annotated[int, Meta(ge=1, le=100)] = 38  # members that change their value at a step
    every: Annotated[float, Meta(ge=5.0, le=600.0)] = 90.0
    seconds: Annotated[float, Meta(ge=10.0, le=3600.0)] = 360.0
    removed_at: Annotated[float, Meta(ge=1.0, le=3600.0)] = 175.0
    aggregates: Annotated[tuple[Literal["gossip", "central"], ...], Meta(min_length=1, max_length=LIST_MAX)] = (GOSSIP, CENTRAL)
    cuts: Annotated[tuple[Literal["trace", "bursts"], ...], Meta(min_length=1, max_length=LIST_MAX)] = (TRACE, BURSTS)


class LargeGroup(Experiment[LargeGroupParameters]):
    """Gossip and one collector, while links fail."""

    id = "limits/F10"
    name = "limits/large-group"
    title = "Among 182 members the aggregate follows every step, whatever links fail"
    source = "paper 003, 7.2.2, Figure 10; limits 8, F10"
    criterion = (
        "after each step, and after a member was removed, the mean of all estimates is within 5 % of the sum and their standard deviation "
        "below 10 %, for good: with gossip within 5 s and with a residue of 0 (RL1, RL2), with one collector within 1 s"
    )
    parameters = LargeGroupParameters
    seconds_per_cell = 60
    quick: ClassVar[Mapping[str, str]] = {
        "members": "24", "branching": "5", "changed": "5", "every": "12.0", "seconds": "36.0", "removed_at": "18.0"
    }  # fmt: skip

    def cells(self, parameters: LargeGroupParameters, seed: int) -> Sequence[Cell]:
        setting = {
            "members": parameters.members,
            "branching": parameters.branching,
            "changed": parameters.changed,
            "every": parameters.every,
            "seconds": parameters.seconds,
            "removed at": parameters.removed_at,
        }
        return [
            {**setting, "aggregate": aggregate, "cuts": cuts, "seed": seed * SEEDS_MAX + number}
            for aggregate in parameters.aggregates
            for cuts in parameters.cuts
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: LargeGroupParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        measured: dict[str, Any] = {
            "seconds until all know it, longest": {key: _longest(of) for key, of in _by_key(rows).items()},
            "each step": {key: of[0]["took"] for key, of in _by_key(rows).items()},
            "residue": max((row["residue"] for row in rows if row["aggregate"] == GOSSIP), default=0),
            "failed links, most at once": {key: max(row["most"] for row in of) for key, of in _by_key(rows).items()},
            "failed links, mean": {key: round(fmean(row["mean"] for row in of), 1) for key, of in _by_key(rows).items()},
            "lines": {key: of[0]["lines"] for key, of in _by_key(rows).items()},
        }
        expected = {
            "seconds until all know it, longest": {
                f"{GOSSIP}, paper": "a short instability", f"{CENTRAL}, paper": "almost at once", f"{GOSSIP}, prototype": PROTOTYPE
            },
            "residue": 0,
        }  # fmt: skip
        misses = [*violations(results), *(note for row in rows for note in _misses(row))]
        return Finding(measured, expected, bool(rows) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        lines = finding.measured["lines"]
        kinds = list(dict.fromkeys(key.partition(", ")[2] for key in lines))
        grid = figure.subplots(2, len(kinds), squeeze=False, sharex=True)
        for (sums, links), kind in zip(grid.T, kinds, strict=True):
            of_kind = {key.partition(", ")[0]: line for key, line in lines.items() if key.endswith(kind)}
            for aggregate, line in of_kind.items():
                sums.plot([at for at, _ in line["mean"]], [mean for _, mean in line["mean"]], color=COLOURS[aggregate], label=aggregate)
                sums.plot([at for at, _ in line["high"]], [high for _, high in line["high"]], color=COLOURS[aggregate], linewidth=0.6)
                sums.plot([at for at, _ in line["low"]], [low for _, low in line["low"]], color=COLOURS[aggregate], linewidth=0.6)
            truth = next(iter(of_kind.values()))
            sums.step([at for at, _ in truth["truth"]], [sum_ for _, sum_ in truth["truth"]], "k--", linewidth=0.8, label="sum")
            sums.set_title(f"cuts: {kind}", fontsize=9)
            sums.set_ylabel("aggregate, mean ± sd")
            sums.legend(fontsize=8)
            links.plot([at for at, _ in truth["failed"]], [count for _, count in truth["failed"]], color="#7b8794")
            links.set_ylabel("failed directed links")
            links.set_xlabel("seconds")


def _play(cell: Cell) -> Measured:
    config = LimitsConfig(epoch=0.5, branching=cell["branching"])
    group = SumGroup(cell["seed"], cell["members"], config, link=LINK, aggregate=cell["aggregate"])
    members, seconds, every = group.names, cell["seconds"], cell["every"]
    links = FailingLinks(group.world, members)
    links.plan((window_of_trace if cell["cuts"] == TRACE else bursts)(cell["seed"], members, seconds))
    group.install()
    begun_at = group.world.now
    steps = [every * number for number in range(1, int(seconds / every) + 1) if every * number < seconds]
    truth, residue = 0.0, 0
    samples: list[tuple[float, float, float, float, int]] = []  # at, truth, mean and spread of estimates, failed links
    raised = 0
    present = list(members)
    due = sorted([*((at, "step") for at in steps), (cell["removed at"], "removed")])
    counts = 0
    for number in range(1, int(seconds / SAMPLED) + 1):
        at = number * SAMPLED
        while due and due[0][0] < at:
            when, what = due.pop(0)
            group.run(begun_at + when - group.world.now)
            if what == "step":
                chosen = members[raised : raised + cell["changed"]]
                raised += len(chosen)
                for name in chosen:
                    group.set(name, VALUE)
                truth = VALUE * raised
            else:
                present = members[:-1]  # Its value is 0.
                group.install(present)
        group.run(begun_at + at - group.world.now)
        estimates = [group.estimate(name) for name in present]
        samples.append((at, truth, fmean(estimates), pstdev(estimates), len(links)))
        if cell["aggregate"] == GOSSIP and at >= (counts + 1) * COUNTED:
            counts += 1
            residue = max(residue, _residue(group, present))
    return {
        **cell,
        "took": {f"{what} at {when:g} s": _took(samples, when, end) for when, what, end in _windows(steps, cell["removed at"], seconds)},
        "residue": residue,
        "most": max(sample[4] for sample in samples),
        "mean": fmean(sample[4] for sample in samples),
        "lines": {
            "truth": thinned([(at, truth) for at, truth, _, _, _ in samples]),
            "mean": thinned([(at, mean) for at, _, mean, _, _ in samples]),
            "low": thinned([(at, mean - spread) for at, _, mean, spread, _ in samples]),
            "high": thinned([(at, mean + spread) for at, _, mean, spread, _ in samples]),
            "failed": thinned([(at, float(failed)) for at, _, _, _, failed in samples]),
        },
    }


def _residue(group: SumGroup, present: Sequence[str]) -> int:
    found = {group.world.nodes[name].me: sums for name in present if (sums := group.limiter(name).sums) is not None}
    assert len(found) == len(present)
    return residue_of(found)


def _windows(steps: Sequence[float], removed_at: float, seconds: float) -> list[tuple[float, str, float]]:
    """Each change, what it is, and when the next one comes."""
    changes = sorted([*((at, "step") for at in steps), (removed_at, "removal")])
    ends = [at for at, _ in changes[1:]] + [seconds]
    return [(at, what, end) for (at, what), end in zip(changes, ends, strict=True)]


def _took(samples: Sequence[tuple[float, float, float, float, int]], since: float, until: float) -> float | None:
    """Seconds until the mean and the spread were near for good; None if they were not when the next change came."""
    window = [(at, truth, mean, spread) for at, truth, mean, spread, _ in samples if since < at <= until and truth]
    if not window:
        return 0.0  # There was nothing to know yet.
    far = [at for at, truth, mean, spread in window if abs(mean - truth) > MEAN_NEAR * truth or spread >= SPREAD_NEAR * truth]
    if not far:
        return round(window[0][0] - since, 3)
    after = [at for at, _, _, _ in window if at > far[-1]]
    return round(after[0] - since, 3) if after else None


def _by_key(rows: Sequence[Measured]) -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = {}
    for row in rows:
        found.setdefault(f"{row['aggregate']}, {row['cuts']}", []).append(row)
    return found


def _longest(rows: Sequence[Measured]) -> float | None:
    times = [took for row in rows for took in row["took"].values()]
    return None if None in times else max(times)


def _misses(row: Measured) -> list[str]:
    where = f"{row['aggregate']}, {row['cuts']}, seed {row['seed']}"
    most = WITHIN[row["aggregate"]]
    notes = []
    for change, took in row["took"].items():
        if took is None or took > most:
            after = "never" if took is None else f"after {took:g} s"
            notes.append(f"{where}: {change} is known to all {after}, accepted are {most:g} s")
    if row["residue"]:
        notes.append(f"{where}: a residue of {row['residue']}")
    return notes


EXPERIMENT = LargeGroup()
