"""gossip/S1: how soon does some member suspect one that was killed, and does that depend on the size of the group?

Spec: gossip 8 (S1), 1; paper SWIM, section 3 (the expected time to the first detection does not depend on n). T is 1 s, nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.gossip.lab.groups import GossipGroup, names_of
from holdfast.features.gossip.lab.measures import Opinions
from holdfast.features.gossip.protocol import profiles
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import shortened
from holdfast.lab.samples import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 1.0
LEAST, MOST, SPREAD = 1.2, 2.8, 1.0  # in T
VICTIMS_SHARE = 4  # of a group of n, at most n/4 are killed, one after the other
WARM_UP, LATEST, BETWEEN = 3.0, 12.0, 3.0


class SizeParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, S1."""

    members: Annotated[tuple[Annotated[int, Meta(ge=4, le=10_000)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (8, 32, 96, 512, 2048)
    crashes: Annotated[int, Meta(ge=1, le=10_000)] = 50


class DetectionBySize(Experiment[SizeParameters]):
    """One member after the other is killed; when does the first of the others suspect it?"""

    id = "gossip/S1"
    name = "gossip/detection-by-size"
    title = "The first suspicion of a dead member does not depend on the size of the group"
    source = "paper SWIM, section 3; gossip 8, S1; prototype 1.4, 2.4, 2.0 periods"
    criterion = "mean first suspicion 1.2 to 2.8 periods at every size, spread over the sizes below 1 period"
    parameters = SizeParameters
    seconds_per_cell = 20
    quick: ClassVar[Mapping[str, str]] = {"members": "[8,32,96]", "crashes": "20"}

    def cells(self, parameters: SizeParameters, seed: int) -> Sequence[Cell]:
        return [
            {"members": members, "crashes": parameters.crashes, "seed": seed * SEEDS_MAX + number}
            for members in parameters.members
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        each = max(1, min(cell["crashes"], cell["members"] // VICTIMS_SHARE))
        times = [time for number in range(ceil(cell["crashes"] / each)) for time in _times(cell, cell["seed"] + number, each)]
        return {**cell, "times": times[: cell["crashes"]]}

    def judge(self, parameters: SizeParameters, results: Sequence[Measured]) -> Finding:
        rows = {members: _merged(results, members) for members in parameters.members}
        means = {str(members): row["mean"] for members, row in rows.items()}
        spread = round(max(means.values()) - min(means.values()), 3)
        misses = [f"{members} members: {row['unheard']} were never suspected" for members, row in rows.items() if row["unheard"]]
        misses += [
            f"{members} members: mean {mean} T, accepted are {LEAST} to {MOST}"
            for members, mean in means.items()
            if not LEAST <= mean <= MOST
        ]
        if spread >= SPREAD:
            misses.append(f"the means differ by {spread} T, accepted is less than {SPREAD}")
        measured: dict[str, Any] = {"mean": means, "spread": spread, "rows": [{"members": members, **row} for members, row in rows.items()]}
        expected = {"mean": dict.fromkeys(means, f"{LEAST} to {MOST}"), "spread": f"< {SPREAD}"}
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        rows = finding.measured["rows"]
        sizes = [row["members"] for row in rows]
        error = [[row["mean"] - row["low"] for row in rows], [row["high"] - row["mean"] for row in rows]]
        axes.errorbar(sizes, [row["mean"] for row in rows], yerr=error, marker="o", label="mean, 95 %")
        axes.plot(sizes, [row["most"] for row in rows], marker=".", linestyle=":", label="longest")
        for bound in (LEAST, MOST):
            axes.axhline(bound, color="#7b8794", linestyle="--", linewidth=1)
        axes.set_xscale("log")
        axes.set_xlabel("members")
        axes.set_ylabel("periods to the first suspicion")
        axes.set_ylim(bottom=0)
        axes.legend()


def _times(cell: Cell, seed: int, crashes: int) -> list[float | None]:
    group = GossipGroup(seed, profiles.default(PERIOD))
    group.form(names_of(cell["members"]))
    group.run(WARM_UP)
    opinions = Opinions(group)
    found: list[float | None] = []
    for _ in range(crashes):
        group.run(BETWEEN + group.world.random.random() * PERIOD)
        victim = group.world.random.choice(group.alive)
        life, at = group.host(victim).me, group.world.now
        group.crash(victim)
        group.until(lambda life=life: opinions.first_suspicion(life) is not None, LATEST, PERIOD / 4)  # type: ignore[misc]
        first = opinions.first_suspicion(life)
        found.append(None if first is None else round((first - at) / PERIOD, 4))
        opinions.forget()
    return found


def _merged(results: Sequence[Measured], members: int) -> dict[str, Any]:
    times = [time for row in results if row["members"] == members for time in row["times"]]
    heard = [time for time in times if time is not None] or [LATEST]
    mean, low, high = mean_interval(heard)
    return {
        "crashes": len(times), "unheard": times.count(None), "mean": round(mean, 3), "low": round(low, 3), "high": round(high, 3),
        "least": min(heard), "most": max(heard),
    }  # fmt: skip


EXPERIMENT = DetectionBySize()
