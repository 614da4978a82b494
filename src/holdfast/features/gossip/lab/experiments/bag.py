"""gossip/S5: does a bag bound how long a far member waits for its probe?  Spec: gossip 8 (S5), 5.3, G9; paper Medley (time-bounded).

The field and the profile of S4 with m = 3. Several members are killed, one after the other, and it is measured when the first of the others
suspects each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.features.gossip.lab.measures import Opinions
from holdfast.features.gossip.lab.radio import RadioGroup
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.config import Target
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.features.gossip.protocol.targets import Bag
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import shortened
from holdfast.lab.samples import curves, draw_curves, quantile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 1.0
KINDS: tuple[Target, ...] = ("bag", "spatial")
SHARE = 0.99
WARM_UP, LATEST, BETWEEN = 5.0, 120.0, 3.0


class BagParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, S5."""

    seeds: Annotated[int, Meta(ge=1, le=10_000)] = 40
    members: Annotated[int, Meta(ge=8, le=500)] = 49
    crashes: Annotated[int, Meta(ge=1, le=100)] = 10  # per run
    loss: Annotated[float, Meta(ge=0, le=0.5)] = 0.02
    gap_periods: Annotated[int, Meta(ge=0, le=100_000)] = 400  # of one run per kind in which the gaps between probes are watched


class BagExperiment(Experiment[BagParameters]):
    """Members are killed one after the other."""

    id = "gossip/S5"
    name = "gossip/bag"
    title = "A bag bounds the wait of the farthest member"
    source = "paper Medley, time-bounded variant; gossip 8, S5, G9"
    criterion = "no gap between two probes of a member beyond 2B-1 periods; the 99th percentile of first suspicions below that of spatial"
    parameters = BagParameters
    seconds_per_cell = 4
    quick: ClassVar[Mapping[str, str]] = {"seeds": "2", "crashes": "5", "gap_periods": "60"}

    def cells(self, parameters: BagParameters, seed: int) -> Sequence[Cell]:
        setting = {"members": parameters.members, "loss": parameters.loss, "crashes": parameters.crashes}
        return [
            {"target": kind, "seed": seed * SEEDS_MAX + number, "gaps": parameters.gap_periods if number == 0 else 0, **setting}
            for kind in KINDS
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        found = profiles.paper(PERIOD)
        group = RadioGroup(cell["seed"], Profile(replace(found.config, target=cell["target"]), found.rules), cell["members"], cell["loss"])
        group.run(WARM_UP)
        gaps = _gaps(group, cell["gaps"]) if cell["gaps"] else {"beyond": 0, "share": 0.0}
        opinions = Opinions(group)
        times = []
        for _ in range(cell["crashes"]):
            group.run(BETWEEN + group.world.random.random() * PERIOD)
            victim = group.world.random.choice(_trusted(group))
            life, at = group.host(victim).me, group.world.now
            opinions.forget()
            group.crash(victim)
            group.until(lambda life=life: opinions.first_suspicion(life) is not None, LATEST, PERIOD / 4)  # type: ignore[misc]
            first = opinions.first_suspicion(life)
            times.append(round((LATEST if first is None else first - at) / PERIOD, 4))
        return {**cell, **gaps, "times": times}

    def judge(self, parameters: BagParameters, results: Sequence[Measured]) -> Finding:
        times: dict[str, list[float]] = {
            kind: [time for row in results if row["target"] == kind for time in row["times"]] for kind in KINDS
        }
        late = {kind: quantile(found, SHARE) for kind, found in times.items()}
        beyond = sum(row["beyond"] for row in results if row["target"] == "bag")
        longest = max(row["share"] for row in results if row["target"] == "bag")
        measured: dict[str, Any] = {
            "first suspicion, p99 periods": late,
            "gaps beyond 2B-1": beyond,
            "longest gap, share of 2B-1": longest,
            "curves": curves(times),
        }
        expected = {"first suspicion, p99 periods": {"bag": "< that of spatial"}, "gaps beyond 2B-1": 0}
        misses = [f"{beyond} gaps beyond 2B-1"] if beyond else []
        if late["bag"] >= late["spatial"]:
            misses.append(f"p99 is {late['bag']:g} periods with a bag, {late['spatial']:g} with draws by distance")
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        draw_curves(axes, finding.measured["curves"])
        axes.set_xlabel("periods from the crash to the first suspicion")
        axes.legend()


def _trusted(group: RadioGroup) -> list[str]:
    """Those that no member suspects: links lose messages, so now and then one is suspected that lives."""
    doubted = {name for other in group.alive for name in group.node(other).suspicions}
    return [name for name in group.alive if name not in doubted]


class Gaps:
    """Who was probed by one member, and how many ticks ago."""

    def __init__(self, node: GossipNode) -> None:
        self.node, self.ticks = node, node.prober.ticks
        self.last: dict[str, int] = {}
        self.beyond, self.share, self.size = 0, 0.0, 0

    def look(self) -> None:
        prober, targets = self.node.prober, self.node.targets
        if prober.ticks == self.ticks or prober.probe is None:
            return
        self.ticks = prober.ticks
        self.size = max(self.size, targets.size if isinstance(targets, Bag) else 0)
        name = prober.probe.target.name
        gap, most = self.ticks - self.last.get(name, self.ticks), 2 * self.size - 1
        self.last[name] = self.ticks
        if self.size:
            self.beyond += gap > most
            self.share = max(self.share, gap / most)


def _gaps(group: RadioGroup, periods: int) -> dict[str, Any]:
    """Of all members, looked at ten times a period."""
    watched = [Gaps(group.node(name)) for name in group.alive]
    for _ in range(periods * 10):
        group.run(PERIOD / 10)
        for each in watched:
            each.look()
    return {"beyond": sum(each.beyond for each in watched), "share": round(max(each.share for each in watched), 3)}


EXPERIMENT = BagExperiment()
