"""gossip/S2: what does a member send, and how often is it called, in groups of 16 to 10,000?  Spec: gossip 8 (S2), 1 (load), D22.

T is 1 s, nothing is lost and no member comes or goes. Handler calls are messages delivered and timers run.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.gossip.lab.groups import GossipGroup, names_of
from holdfast.features.gossip.lab.measures import datagrams
from holdfast.features.gossip.protocol import profiles
from holdfast.lab.accounting import count_bytes, total
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 1.0
LEAST, MOST, RATIO_MAX, GIB_MAX = 2.0, 2.2, 1.15, 4
WARM_UP = 20.0  # periods, in which each has told others that it is there
WHAT = ("datagrams", "bytes", "calls")


class LoadParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, S2."""

    members: Annotated[tuple[Annotated[int, Meta(ge=3, le=30_000)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (16, 128, 1024, 10_000)
    periods: Annotated[int, Meta(ge=1, le=10_000)] = 60


class LoadBySize(Experiment[LoadParameters]):
    """A calm group."""

    id = "gossip/S2"
    name = "gossip/load-by-size"
    title = "What a member sends does not depend on the size of the group"
    source = "paper SWIM, section 3; gossip 8, S2; prototype 2.06 to 2.08 datagrams"
    criterion = "2.0 to 2.2 datagrams per member and period; largest group over smallest <= 1.15 for each count; <= 4 GiB"
    parameters = LoadParameters
    seconds_per_cell = 25
    quick: ClassVar[Mapping[str, str]] = {"members": "[16,128]", "periods": "30"}

    def cells(self, parameters: LoadParameters, seed: int) -> Sequence[Cell]:
        return [
            {"members": members, "periods": parameters.periods, "seed": seed * SEEDS_MAX + number}
            for members in parameters.members
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        group = GossipGroup(cell["seed"], profiles.default(PERIOD))
        group.form(names_of(cell["members"]))
        group.run(WARM_UP)
        count_bytes(group.world)
        messages, size, events = datagrams(group), _bytes(group), group.world.events
        group.run(cell["periods"] * PERIOD)
        shares = cell["members"] * cell["periods"]
        return {
            **cell,
            "datagrams": round((datagrams(group) - messages) / shares, 4),
            "bytes": round((_bytes(group) - size) / shares, 2),
            "calls": round((group.world.events - events) / shares, 4),
            "gib": ceil(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20),  # of the process that measured, rounded up
        }

    def judge(self, parameters: LoadParameters, results: Sequence[Measured]) -> Finding:
        measured: dict[str, Any] = {what: {_label(row): row[what] for row in results} for what in WHAT}
        measured["GiB"] = max(row["gib"] for row in results)
        small, large = min(parameters.members), max(parameters.members)
        ratios = {what: round(_mean(results, large, what) / _mean(results, small, what), 3) for what in WHAT}
        measured["ratios"] = ratios
        expected = {
            "datagrams": {_label(row): f"{LEAST} to {MOST}" for row in results},
            "ratios": dict.fromkeys(WHAT, f"<= {RATIO_MAX}"),
            "GiB": f"<= {GIB_MAX}",
        }
        misses = [f"{_label(row)}: {row['datagrams']} datagrams per period" for row in results if not LEAST <= row["datagrams"] <= MOST]
        misses += [
            f"{what}: {ratio} times as much with {large} members as with {small}" for what, ratio in ratios.items() if ratio > RATIO_MAX
        ]
        if measured["GiB"] > GIB_MAX:
            misses.append(f"{measured['GiB']} GiB")
        measured["rows"] = [dict(row) for row in results]
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        rows = finding.measured["rows"]
        for axes, what in zip(figure.subplots(1, 3), WHAT, strict=True):
            axes.plot([row["members"] for row in rows], [row[what] for row in rows], marker="o")
            axes.set_xscale("log")
            axes.set_xlabel("members")
            axes.set_ylabel(f"{what} per member and period")
            axes.set_ylim(bottom=0)


def _bytes(group: GossipGroup) -> int:
    return sum(each.size for each in total(group.world).values())


def _label(row: Mapping[str, Any]) -> str:
    return str(row["members"])


def _mean(results: Sequence[Measured], members: int, what: str) -> float:
    found = [row[what] for row in results if row["members"] == members]
    return float(sum(found) / len(found))


EXPERIMENT = LoadBySize()
