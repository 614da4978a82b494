"""gossip/S9: what does steady churn cost, and how wrong are lists under it?  Spec: gossip 8 (S9).

256 members; each is killed once in ten minutes and replaced by a process with a new name. Links lose 1 %. A list is wrong by the living
members that it lacks and the dead that it has, as a share of n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.gossip.lab.groups import GossipGroup, names_of
from holdfast.features.gossip.lab.measures import datagrams
from holdfast.features.gossip.protocol import profiles
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 1.0
ERROR_MAX, COST_MAX = 0.02, 3.0
LOSS = 0.01
SEEDS = 3
WARM_UP, CALM, LOOK = 20.0, 30.0, 2.0  # seconds


class ChurnParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, S9."""

    members: Annotated[int, Meta(ge=8, le=2000)] = 256
    seconds: Annotated[float, Meta(ge=10, le=36_000)] = 600.0  # in which each is replaced once
    share: Annotated[float, Meta(gt=0, le=1)] = 1.0  # of these seconds that are played


class Churn(Experiment[ChurnParameters]):
    """One member after the other is killed, and another process comes."""

    id = "gossip/S9"
    name = "gossip/churn"
    title = "The price of steady churn, and how wrong lists are under it"
    source = "gossip 8, S9"
    criterion = "list error at most 2 % of n on average over time; at most 3 times as many datagrams per member as in calm"
    parameters = ChurnParameters
    seconds_per_cell = 90
    quick: ClassVar[Mapping[str, str]] = {"members": "32", "seconds": "120"}

    def cells(self, parameters: ChurnParameters, seed: int) -> Sequence[Cell]:
        setting = {"members": parameters.members, "seconds": parameters.seconds, "share": parameters.share}
        return [{"seed": seed * SEEDS_MAX + number, **setting} for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        names = names_of(cell["members"])
        group = GossipGroup(cell["seed"], profiles.default(PERIOD), link=Link(Uniform(0.0005, 0.005), loss=LOSS), seeds=names[:SEEDS])
        group.form(names)
        group.run(WARM_UP)
        before = datagrams(group)
        group.run(CALM)
        calm = (datagrams(group) - before) / CALM / cell["members"]
        before, begin = datagrams(group), group.world.now
        errors = _churn(group, names, cell)
        seconds = group.world.now - begin
        rate = (datagrams(group) - before) / seconds / cell["members"]
        return {
            **cell,
            "calm": round(calm, 3),
            "rate": round(rate, 3),
            "missing": round(fmean(missing for missing, _ in errors), 5),
            "stale": round(fmean(stale for _, stale in errors), 5),
            "worst": round(max(missing + stale for missing, stale in errors), 5),
        }

    def judge(self, parameters: ChurnParameters, results: Sequence[Measured]) -> Finding:
        error = round(fmean(row["missing"] + row["stale"] for row in results), 5)
        cost = round(fmean(row["rate"] / row["calm"] for row in results), 3)
        measured: dict[str, Any] = {
            "list error": error,
            "datagrams over calm": cost,
            "of it missing": round(fmean(row["missing"] for row in results), 5),
            "of it stale": round(fmean(row["stale"] for row in results), 5),
            "worst instant": max(row["worst"] for row in results),
            "datagrams per member and second": {"calm": results[0]["calm"], "churn": results[0]["rate"]},
        }
        expected = {"list error": f"<= {ERROR_MAX}", "datagrams over calm": f"<= {COST_MAX:g}"}
        misses = [f"lists are wrong by {error} of n on average"] if error > ERROR_MAX else []
        misses += [f"{cost} times as many datagrams as in calm"] if cost > COST_MAX else []
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2)
        found = finding.measured
        left.bar(["missing", "stale"], [100 * found["of it missing"], 100 * found["of it stale"]])
        left.axhline(100 * ERROR_MAX, color="#7b8794", linestyle="--", linewidth=1)
        left.set_ylabel("list error, % of n")
        rates = found["datagrams per member and second"]
        right.bar(list(rates), list(rates.values()))
        right.set_ylabel("datagrams per member and second")


def _churn(group: GossipGroup, names: Sequence[str], cell: Cell) -> list[tuple[float, float]]:
    """Missing and stale entries, as shares of n, looked at every two seconds. The seeds go, too: their addresses are taken again."""
    order = group.world.random.sample(names, len(names))
    every, until = cell["seconds"] / len(names), group.world.now + cell["seconds"] * cell["share"]
    due, look, number = group.world.now + every, group.world.now + LOOK, 0
    errors: list[tuple[float, float]] = []
    while group.world.now < until:
        group.world.run(min(due, look, until))
        if group.world.now >= due and number < len(order):
            group.crash(order[number])
            group.world.bury(order[number])
            group.start(f"r{number:05}")
            due, number = due + every, number + 1
        elif group.world.now >= look:
            errors.append(_error(group))
            look += LOOK
        elif number >= len(order):
            due = until + every
    return errors


def _error(group: GossipGroup) -> tuple[float, float]:
    """Of the lists of all that are members now."""
    alive = group.alive
    lives = {group.host(name).me for name in alive if group.node(name).is_member}
    missing = stale = 0
    for life in lives:
        listed = {member.id for member in group.node(life.name).members()}
        missing += len(lives - listed)
        stale += sum(group.host(each.name).dead or group.host(each.name).me != each for each in listed - lives)
    return missing / len(lives) ** 2, stale / len(lives) ** 2


EXPERIMENT = Churn()
