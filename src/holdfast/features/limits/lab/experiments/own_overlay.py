"""limits/N4: an overlay of the limiters' own does not share the fate of the views, and the breaker's does.

Spec: limits 8 (N4), 5.4; paper 003, 6.2.2 (the alternate design that it argues against). The direct link of one pair is cut, and so is the
way round. With an overlay of their own the members stay in their view, and what is stranded on the link stays there. With the breaker's the
link between the two servers is the way round, and two views come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.crews import Appetite
from holdfast.features.limits.lab.groups import LimitGroup
from holdfast.features.limits.lab.sums import SumGroup
from holdfast.features.limits.lab.terms import Terms
from holdfast.features.limits.protocol.config import LimitsConfig, key_of
from holdfast.features.views.protocol.views import ViewNode
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OWN, BREAKER = "an overlay of their own", "the breaker's overlay"
LIMIT, RATE, MEMBERS, SERVERS = "api", 100.0, 6, 2
CONFIG = LimitsConfig(branching=1)
FORMED_BY, CUT_AT = 30.0, 10.0  # seconds
PERIOD = 20.0  # between two changes of all values; the first one comes with the cut
FIRST, GROWS = 10.0, 20.0  # the value of each member, and by how much it changes
SAMPLED = 0.25
NEAR = 0.05
WITHIN = 5.0  # seconds beyond ``ov_deadline``


class OverlayParameters(Parameters, frozen=True, kw_only=True):
    """How often values change while the paths are cut."""

    changes: Annotated[int, Meta(ge=2, le=32)] = 4


class Overlays(Experiment[OverlayParameters]):
    """Both designs, with the same cut."""

    id = "limits/N4"
    name = "limits/own-overlay"
    title = "When both paths of a pair are cut, the sum is lost unless the view changes with them"
    source = "paper 003, 6.2.2; limits 8, N4 (argued)"
    criterion = (
        "an overlay of their own: after each change but that which came with the cut the mean error is above 5 % at the end of the period, "
        "and grows; the breaker's: a new view, and a mean error below 5 % from ov_deadline + 5 s after the cut on, and at the end of each "
        "period; RL1 to RL3 hold"
    )
    parameters = OverlayParameters
    seconds_per_cell = 5
    quick: ClassVar[Mapping[str, str]] = {"changes": "2"}

    def cells(self, parameters: OverlayParameters, seed: int) -> Sequence[Cell]:
        return [
            {"way": way, "changes": parameters.changes, "seed": seed * SEEDS_MAX + number}
            for way in (OWN, BREAKER)
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play_own if cell["way"] == OWN else _play_breaker, cell)

    def judge(self, parameters: OverlayParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        first = {row["way"]: row for row in reversed(rows)}
        measured: dict[str, Any] = {
            "error at the end of each period": {way: row["ends"] for way, row in first.items()},
            "seconds until it is below 5 % for good": {way: row["took"] for way, row in first.items()},
            "views at the end": {way: row["views"] for way, row in first.items()},
            "lines": {way: row["line"] for way, row in first.items()},
        }
        expected = {
            "error at the end of each period": {OWN: "above 5 % from the second one on", BREAKER: "below 5 %"},
            "seconds until it is below 5 % for good": {BREAKER: f"ov_deadline + {WITHIN:g}"},
        }
        misses = [*violations(results), *(note for row in rows for note in misses_of(row))]
        return Finding(measured, expected, len(first) == 2 and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for way, line in finding.measured["lines"].items():
            axes.plot([at for at, _ in line], [max(error, 1e-5) for _, error in line], label=way)
        axes.axvline(CUT_AT, color="#b42318", linestyle="--", linewidth=0.8, label="cut")
        axes.axhline(NEAR, color="#7b8794", linestyle=":", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_xlabel("seconds")
        axes.set_ylabel("mean error of the aggregate, each member in its view")
        axes.legend()


def _play_own(cell: Cell) -> Measured:
    group = SumGroup(cell["seed"], MEMBERS, CONFIG, link=Link(), checked=True)
    group.install()
    group.set_all(FIRST)

    def cut() -> None:
        group.overlay.works = False  # No member but these two needs it.
        group.world.network.cut("there", group.names[:1], group.names[1:2])
        group.world.network.cut("back", group.names[1:2], group.names[:1])

    def error() -> float:
        truth = sum(group.outlet(name).value for name in group.names)
        return fmean(group.errors(truth))

    return {**cell, **_follow(cell["changes"], group.run, cut, group.set_all, error), "views": 1, "deadline": None}


def _play_breaker(cell: Cell) -> Measured:
    values = [Appetite(FIRST, declared=True) for _ in range(MEMBERS)]

    def appetites(name: str) -> list[Mapping[str, Appetite]]:
        return [{LIMIT: values[int(name[1:])]}] if name.startswith("c") else []

    terms = Terms(LIMIT, RATE, RATE, "fair", "demand", MEMBERS, constant=False)
    group = LimitGroup(cell["seed"], SERVERS, MEMBERS, [terms], appetites, config=CONFIG, homes=True)
    assert group.until(group.is_one, FORMED_BY), "there is no view of all"

    def cut() -> None:
        group.cut(["c0"], ["c1"])  # c0 is at s0, c1 at s1.
        group.cut(["s0"], ["s1"])

    def set_all(value: float) -> None:
        for each in values:
            each.rate = value

    def error() -> float:
        errors = []
        for name in group.clients:
            view = group.world.nodes[name].node.use(ViewNode).view
            known = group.limiter(name).allocator.limits[LIMIT].aggregates.get(key_of(LIMIT), 0.0)
            truth = sum(values[int(member.id.name[1:])].rate for member in view.members) if view else 0.0
            errors.append(abs(known - truth) / truth if truth else 1.0)
        return fmean(errors)

    found = _follow(cell["changes"], group.run, cut, set_all, error)
    views = {view.id for name in group.clients if (view := group.leased(name)) is not None}
    return {**cell, **found, "views": len(views), "deadline": group.config.ov_deadline}


def _follow(
    changes: int, run: Callable[[float], None], cut: Callable[[], None], set_all: Callable[[float], None], error: Callable[[], float]
) -> dict[str, Any]:
    """The cut, and the error from then on."""
    run(CUT_AT)
    cut()
    line, ends, took = [], [], 0.0
    for number in range(1, changes + 1):
        set_all(FIRST + GROWS * number)
        for sample in range(1, int(PERIOD / SAMPLED) + 1):
            run(SAMPLED)
            line.append((round(CUT_AT + (number - 1) * PERIOD + sample * SAMPLED, 3), float(f"{error():.4g}")))
            if number == 1 and line[-1][1] >= NEAR:
                took = sample * SAMPLED
        ends.append(line[-1][1])
    return {"line": line, "ends": ends, "took": None if took == PERIOD else took}


def misses_of(row: Measured) -> list[str]:
    where = f"{row['way']}, seed {row['seed']}"
    if row["way"] == OWN:
        notes = [f"{where}: an error of {end:.1%} at the end of a period, expected more than 5 %" for end in row["ends"][1:] if end <= NEAR]
        return notes if row["ends"] == sorted(row["ends"]) else [*notes, f"{where}: the error does not grow: {row['ends']}"]
    notes = [f"{where}: an error of {end:.1%} at the end of a period, accepted is 5 %" for end in row["ends"] if end >= NEAR]
    if row["views"] < 2:
        notes.append(f"{where}: there is no new view")
    if row["took"] is None or row["took"] > row["deadline"] + WITHIN:
        notes.append(f"{where}: below 5 % after {row['took']} s, accepted are {row['deadline'] + WITHIN:g}")
    return notes


EXPERIMENT = Overlays()
