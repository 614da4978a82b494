"""election/T1: how large is c?  Paper 004, Table I.  Spec: election 8 (T1), 5.1, D2; gossip D4.

Members gossip for five minutes in the ten settings of Table I; none of them fails. c is the largest number of lists that lack one member,
sampled every half second. The paper's small maxima are not expected: where the news of a failure spreads as in SWIM, one false verdict
reaches all, so the maximum over minutes is near 0 or near N-1. The sweep over the suspicion timeout shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.features.election.lab.paper import TABLE_I, Setting
from holdfast.features.election.lab.traces import STEP, FieldGroup
from holdfast.features.gossip.lab.groups import names_of
from holdfast.features.gossip.lab.true_c import TrueC
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import shortened
from holdfast.lab.samples import quantile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER, LAN = "paper", "lan"
SHARE_MAX = 0.1  # of N
AT_LOSS = 0.05  # at which the 99th percentile is judged
PERCENTILE = 0.99
WINDOW = 30.0  # seconds of the windowed c: an election and more
WARM_UP = 10.0
SWEEP_SETTINGS = (TABLE_I[2], TABLE_I[4])  # random 49 at .05 and .15


class TableCParameters(Parameters, frozen=True, kw_only=True):
    """The ten settings."""

    seeds: Annotated[int, Meta(ge=1, le=1000)] = 10
    seconds: Annotated[float, Meta(ge=30, le=36_000)] = 300.0
    largest: Annotated[int, Meta(ge=8, le=500)] = 256  # settings with more members are left out
    patience: Annotated[tuple[Annotated[float, Meta(ge=2, le=20)], ...], Meta(max_length=8)] = (2.0, 3.0, 5.0, 8.0)  # of the sweep
    sweep_seeds: Annotated[int, Meta(ge=0, le=1000)] = 3


class TableC(Experiment[TableCParameters]):
    """Members that only gossip."""

    id = "election/T1"
    name = "election/table-c"
    title = "How many lists lack a live member (Table I)"
    source = "paper 004, Table I; election 8, T1"
    criterion = (
        "lan: maximum <= 10 % of N in all settings; paper: 99th percentile over time <= 10 % of N at loss 0.05, the average rises with loss"
    )
    parameters = TableCParameters
    seconds_per_cell = 12
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1", "seconds": "60", "largest": "49", "sweep_seeds": "0"}

    def cells(self, parameters: TableCParameters, seed: int) -> Sequence[Cell]:
        settings = [each for each in TABLE_I if each.members <= parameters.largest]
        runs = [(kind, each, None) for kind in (PAPER, LAN) for each in settings for _ in range(parameters.seeds)]
        sweep = [(PAPER, each, wait) for wait in parameters.patience for each in SWEEP_SETTINGS for _ in range(parameters.sweep_seeds)]
        numbers: dict[Any, int] = {}
        cells = []
        for kind, each, wait in [*runs, *sweep]:
            number = numbers[kind, each, wait] = numbers.get((kind, each, wait), -1) + 1
            cell = {"profile": kind, "setting": list(each), "patience": wait, "seconds": parameters.seconds}
            cells.append({**cell, "seed": seed * SEEDS_MAX + number})
        return cells

    def measure(self, cell: Cell) -> Measured:
        setting = Setting(*cell["setting"])
        found = profiles.PROFILES[cell["profile"]]()
        config = found.config if cell["patience"] is None else replace(found.config, patience=cell["patience"])
        names = names_of(setting.members)
        group = FieldGroup(cell["seed"], setting.kind, setting.members, setting.drop, names, Profile(config, found.rules))
        group.run(WARM_UP)
        true, samples = TrueC(group, WINDOW), []
        begin = group.world.now
        while group.world.now < begin + cell["seconds"]:
            group.run(STEP)
            samples.append(true.now())
        estimated = int(median(group.node(name).c_measured() for name in names))
        return {
            **cell,
            "max": max(samples),
            "p99": quantile([float(each) for each in samples], PERCENTILE),
            "mean": round(fmean(samples), 4),
            "windowed": true.windowed(begin, group.world.now),
            "estimated": estimated,
        }

    def judge(self, parameters: TableCParameters, results: Sequence[Measured]) -> Finding:
        rows = [_row(kind, each, _of(results, kind, each, None)) for kind in (PAPER, LAN) for each in TABLE_I]
        rows = [row for row in rows if row["runs"]]
        sweep = [
            {"patience": wait, **_row(PAPER, each, _of(results, PAPER, each, wait))}
            for wait in parameters.patience
            for each in SWEEP_SETTINGS
            if _of(results, PAPER, each, wait)
        ]
        misses = [
            f"lan, {row['of']}: c came to {row['max']} of {row['members']}"
            for row in rows
            if row["profile"] == LAN and row["max"] > SHARE_MAX * row["members"]
        ]
        misses += [
            f"paper, {row['of']}: the 99th percentile is {row['p99']:g} of {row['members']}"
            for row in rows
            if row["profile"] == PAPER and row["drop"] == AT_LOSS and row["p99"] > SHARE_MAX * row["members"]
        ]
        means = [row["mean"] for row in rows if row["profile"] == PAPER and row["kind"] == "random" and row["members"] == 49]
        if means != sorted(means):
            misses.append(f"paper: the average does not rise with loss: {means}")
        beyond = [row["of"] for row in rows if row["profile"] == PAPER and row["max"] > row["paper"]]
        notes = misses
        if beyond:
            notes = [*misses, f"beyond the paper's maximum, as expected where verdicts spread: {', '.join(beyond)}"]
        measured: dict[str, Any] = {"c": rows, "sweep over the suspicion timeout": sweep}
        return Finding(measured, {"c": {str(each): each.c for each in TABLE_I}}, not misses, shortened(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, middle, right = figure.subplots(1, 3)
        for axes, fixed, value, key in ((left, "members", 49, "drop"), (middle, "drop", AT_LOSS, "members")):
            rows = [row for row in finding.measured["c"] if row["kind"] == "random" and row[fixed] == value]
            for kind in (PAPER, LAN):
                chosen = sorted((row for row in rows if row["profile"] == kind), key=lambda row: row[key])
                axes.plot([row[key] for row in chosen], [row["max"] for row in chosen], marker="o", label=f"{kind}, maximum")
                axes.plot([row[key] for row in chosen], [row["p99"] for row in chosen], marker=".", linestyle="--", label=f"{kind}, p99")
            chosen = sorted((row for row in rows if row["profile"] == PAPER), key=lambda row: row[key])
            axes.plot([row[key] for row in chosen], [row["paper"] for row in chosen], color="#7b8794", linestyle=":", label="Table I")
            axes.set_xlabel(key)
            axes.set_ylabel("c")
        left.legend(fontsize=6)
        for of in sorted({row["of"] for row in finding.measured["sweep over the suspicion timeout"]}):
            chosen = [row for row in finding.measured["sweep over the suspicion timeout"] if row["of"] == of]
            right.plot([row["patience"] for row in chosen], [row["max"] for row in chosen], marker="o", label=of)
        right.set_xlabel("suspicion, in T (patience)")


def _of(results: Sequence[Measured], kind: str, setting: Setting, wait: float | None) -> list[Measured]:
    wanted = [kind, list(setting), wait]
    return [row for row in results if [row["profile"], list(row["setting"]), row["patience"]] == wanted]


def _row(kind: str, setting: Setting, found: Sequence[Measured]) -> dict[str, Any]:
    return {
        "profile": kind,
        "of": str(setting),
        "kind": setting.kind,
        "members": setting.members,
        "drop": setting.drop,
        "paper": setting.c,
        "runs": len(found),
        "max": max((row["max"] for row in found), default=0),
        "p99": max((row["p99"] for row in found), default=0.0),
        "mean": round(fmean(row["mean"] for row in found), 4) if found else 0.0,
        "windowed": max((row["windowed"] for row in found), default=0),
        "estimated": max((row["estimated"] for row in found), default=0),
        "estimate covers": sum(row["estimated"] >= row["windowed"] for row in found),
    }


EXPERIMENT = TableC()
