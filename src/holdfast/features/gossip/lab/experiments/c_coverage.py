"""gossip/S7: does the measured c cover how wrong lists were?  Spec: gossip 8 (S7), G12, 5.11, D4; paper 004 (c).

32, 49 and 64 members in a field (S4), with much loss on each hop. Every half minute each member's measured c is compared with the largest c
that there was in the past window, in buckets of the same length. What a member says before news of it can have come is not judged: an
observation is compared one bucket after the end of the time that it is about. The second half of G12, the election's c for the minute to
come, is measured by the election.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.features.gossip.lab.radio import RadioGroup
from holdfast.features.gossip.lab.true_c import TrueC
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 1.0
SHARE_MIN = 0.95
PAPER, LAN = "paper", "lan"
BUCKET, WINDOW = 30.0, 120.0  # seconds; a shorter window than the default shows more of them
WARM_UP, EVERY = 10.0, 30.0


class CoverageParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, S7."""

    seeds: Annotated[int, Meta(ge=1, le=1000)] = 2
    members: Annotated[tuple[Annotated[int, Meta(ge=8, le=500)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (32, 49, 64)
    losses: Annotated[tuple[Annotated[float, Meta(ge=0, le=0.5)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (0.05, 0.1, 0.2)
    seconds: Annotated[float, Meta(ge=60, le=36_000)] = 300.0


class CCoverage(Experiment[CoverageParameters]):
    """A field in which messages get lost."""

    id = "gossip/S7"
    name = "gossip/c-coverage"
    title = "The measured c is at least what lists really lacked"
    source = "paper 004 (c); gossip 8, S7, G12; prototype 18 of 18"
    criterion = "c_measured >= the true windowed c of the past window in at least 95 % of the samples"
    parameters = CoverageParameters
    seconds_per_cell = 15
    quick: ClassVar[Mapping[str, str]] = {"members": "[32]", "losses": "[0.1]", "seconds": "120", "seeds": "1"}

    def cells(self, parameters: CoverageParameters, seed: int) -> Sequence[Cell]:
        return [
            {"profile": kind, "members": members, "loss": loss, "seconds": parameters.seconds, "seed": seed * SEEDS_MAX + number}
            for kind in (PAPER, LAN)
            for members in parameters.members
            for loss in parameters.losses
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        found = profiles.PROFILES[cell["profile"]]()
        config = replace(found.config, period=PERIOD, bucket=BUCKET, window=WINDOW)
        group = RadioGroup(cell["seed"], Profile(config, found.rules), cell["members"], cell["loss"])
        group.run(WARM_UP)
        true = TrueC(group, BUCKET)
        begin, end = group.world.now, group.world.now + cell["seconds"]
        samples: list[tuple[int, int]] = []
        while group.world.now < end:
            group.run(EVERY)
            until = group.world.now - BUCKET
            if until > begin:
                wanted = true.windowed(max(begin, group.world.now - WINDOW + BUCKET), until)
                samples.append((wanted, int(median(group.node(name).c_measured() for name in group.alive))))
        return {**cell, "samples": samples}

    def judge(self, parameters: CoverageParameters, results: Sequence[Measured]) -> Finding:
        rows = [_row(row) for row in results]
        samples = [sample for row in results for sample in row["samples"]]
        covered = sum(measured >= true for true, measured in samples)
        share = round(covered / max(1, len(samples)), 4)
        measured: dict[str, Any] = {
            "share": share,
            "samples": len(samples),
            "with c above 0": sum(true > 0 for true, _ in samples),
            "rows": rows,
            "points": [list(sample) for sample in samples],
        }
        misses = [f"covered in {covered} of {len(samples)} samples"] if share < SHARE_MIN else []
        if misses:
            misses += [f"{row['of']}: {row['covered']} of {row['count']}" for row in rows if row["covered"] < row["count"]]
        return Finding(measured, {"share": f">= {SHARE_MIN}"}, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        points = finding.measured["points"]
        most = max([1, *(value for point in points for value in point)])
        axes.plot([0, most], [0, most], color="#7b8794", linestyle="--", linewidth=1, label="measured = true")
        axes.plot([true for true, _ in points], [measured for _, measured in points], marker="o", linestyle="", alpha=0.5)
        axes.set_xlabel("true windowed c")
        axes.set_ylabel("measured c (median over members)")
        axes.legend()


def _row(row: Measured) -> dict[str, Any]:
    samples = row["samples"]
    return {
        "of": f"{row['profile']}, {row['members']}, {row['loss']:g}, seed {row['seed']}",
        "count": len(samples),
        "covered": sum(measured >= true for true, measured in samples),
        "true": max([0, *(true for true, _ in samples)]),
        "measured": max([0, *(measured for _, measured in samples)]),
    }


EXPERIMENT = CCoverage()
