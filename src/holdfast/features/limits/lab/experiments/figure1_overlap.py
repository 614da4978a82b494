"""limits/F1: what do members use together when each believes in its own view?

Spec: limits 8 (F1); paper 003, 2.2 and 3.1, Figure 1. Three members, and the link between a and b is cut; c, which is idle, sees both. With
views of its own, a counts c and so takes two thirds of the limit, and b as well. That is made here of two agents at c's place, one in each
view. With our views the same cut changes nothing: a and b reach each other over a server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.features.limits.lab.crews import Appetite
from holdfast.features.limits.lab.groups import LimitGroup
from holdfast.features.limits.lab.sums import LIMIT, RATE, SumGroup
from holdfast.features.limits.lab.terms import Terms
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FLEET = 3
WANT = 10 * RATE  # of a and b each: more than there is
SETTLED, CUT_FOR = 15.0, 20.0
LOOK = 0.25
LOCAL, BREAKER = WAYS = ("local views", "circuit breaker")
LOCAL_SUM = (1.30, 1.34)  # 4/3
BREAKER_MAX = 1.001


class OverlapParameters(Parameters, frozen=True, kw_only=True):
    """There is nothing to set but the number of runs."""


class Overlap(Experiment[OverlapParameters]):
    """The same cut, with views that overlap and with agreed ones."""

    id = "limits/F1"
    name = "limits/overlap"
    title = "Views that overlap give away more than there is"
    source = "paper 003, 2.2, 3.1, Figure 1; limits 8, F1"
    criterion = "local views: a and b two thirds each, 4/3 R in all; circuit breaker: at most R"
    parameters = OverlapParameters
    seconds_per_cell = 1.0
    quick: ClassVar[Mapping[str, str]] = {}

    def cells(self, parameters: OverlapParameters, seed: int) -> Sequence[Cell]:
        return [{"way": way, "seed": seed * SEEDS_MAX + number} for way in WAYS for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        return checked(_local if cell["way"] == LOCAL else _breaker, cell)

    def judge(self, parameters: OverlapParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        measured: dict[str, Any] = {
            "shares of R": {row["way"]: row["shares"] for row in rows},
            "sum of limits by R": {way: max((row["sum"] for row in rows if row["way"] == way), default=0.0) for way in WAYS},
        }
        expected = {"sum of limits by R": {LOCAL: "the paper: 4/3", BREAKER: "the paper: at most 1"}}
        sums = measured["sum of limits by R"]
        misses = violations(results)
        if not LOCAL_SUM[0] <= sums[LOCAL] <= LOCAL_SUM[1]:
            misses.append(f"{LOCAL}: the sum is {sums[LOCAL]:.3f} R, expected 4/3")
        if not 0 < sums[BREAKER] <= BREAKER_MAX:
            misses.append(f"{BREAKER}: the sum is {sums[BREAKER]:.3f} R, expected at most R")
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        bottoms = dict.fromkeys(WAYS, 0.0)
        for member in ("a", "b", "c"):
            heights = [finding.measured["shares of R"].get(way, {}).get(member, 0.0) for way in WAYS]
            axes.bar(list(WAYS), heights, bottom=[bottoms[way] for way in WAYS], label=member)
            bottoms = {way: bottoms[way] + height for way, height in zip(WAYS, heights, strict=True)}
        axes.axhline(1.0, color="#b42318", linestyle="--")
        axes.set_ylabel("limits, by R")
        axes.legend()


def _local(cell: Cell) -> Measured:
    """One view of a and c, another one of b and c."""
    group = SumGroup(cell["seed"], 4, LimitsConfig(), link=Link(Uniform(0.001, 0.005)), fleet=FLEET, reserve=0.0)
    a, b, c_of_a, c_of_b = group.names
    for name, value in ((a, WANT), (b, WANT), (c_of_a, 0.0), (c_of_b, 0.0)):
        group.set(name, value)
    group.install([a, c_of_a])
    group.install([b, c_of_b])
    group.run(SETTLED)
    used = {name: group.outlet(name, LIMIT).allotment.rate / RATE for name in group.names}
    shares = {"a": used[a], "b": used[b], "c": used[c_of_a] + used[c_of_b]}
    return {**cell, "shares": _rounded(shares), "sum": round(sum(shares.values()), 4)}


def _breaker(cell: Cell) -> Measured:
    """One view, whatever is cut between two of its members."""
    wants = {"c0": WANT, "c1": WANT, "c2": 0.0}
    terms = Terms(LIMIT, RATE, RATE / 2, "exact", "demand", FLEET, reserve=0.0)
    group = LimitGroup(cell["seed"], 3, 3, [terms], lambda name: [{LIMIT: Appetite(wants[name], declared=True)}])
    group.run(SETTLED)
    group.cut(["c0"], ["c1"])
    largest, end = 0.0, group.world.now + CUT_FOR
    while group.world.now < end:
        group.run(LOOK)
        largest = max(largest, sum(group.used(LIMIT).values()) / RATE)
    used = group.used(LIMIT)
    shares = {member: used[name] / RATE for member, name in (("a", "c0"), ("b", "c1"), ("c", "c2"))}
    return {**cell, "shares": _rounded(shares), "sum": round(largest, 4)}


def _rounded(shares: Mapping[str, float]) -> dict[str, float]:
    return {member: round(share, 4) for member, share in shares.items()}


EXPERIMENT = Overlap()
