"""gossip/S4: what does it save to probe near members more often, and what does it cost?  Spec: gossip 8 (S4), 5.3; paper Medley.

49 members in a square of 15 m reach 4 m far, and relay for each other; each hop takes up to 50 ms and loses 2 %. Profile ``paper``: targets
by 1/d^m, rumours on probes alone. One member is killed per run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.features.gossip.lab.measures import Opinions, until_all_know
from holdfast.features.gossip.lab.radio import RadioGroup
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 1.0
BEST, NONE = 3.0, 0.0
TRAFFIC_MAX, DEATH_MAX = 0.7, 1.4  # of m = 0
WARM_UP, CALM, LATEST = 10.0, 30.0, 60.0  # seconds


class ExponentParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, S4."""

    seeds: Annotated[int, Meta(ge=1, le=10_000)] = 20
    members: Annotated[int, Meta(ge=8, le=500)] = 49
    exponents: Annotated[tuple[Annotated[float, Meta(ge=0, le=6)], ...], Meta(min_length=2, max_length=LIST_MAX)] = (0.0, 2.0, 3.0, 4.0)
    loss: Annotated[float, Meta(ge=0, le=0.5)] = 0.02


class MedleyExponent(Experiment[ExponentParameters]):
    """One member is killed."""

    id = "gossip/S4"
    name = "gossip/medley-exponent"
    title = "Probing near members more often saves traffic, and detection is hardly later"
    source = "paper Medley; gossip 8, S4; prototype: 177 and 302 B/s per member at m = 3 and 0, last DEAD after 12.0 and 10.2 s"
    criterion = "at m = 3 bytes times hops at most 0.7 of those at m = 0, and the last DEAD at most 1.4 times as late"
    parameters = ExponentParameters
    seconds_per_cell = 2
    quick: ClassVar[Mapping[str, str]] = {"seeds": "2", "exponents": "[0.0,3.0]"}

    def cells(self, parameters: ExponentParameters, seed: int) -> Sequence[Cell]:
        setting = {"members": parameters.members, "loss": parameters.loss}
        return [
            {"exponent": exponent, "seed": seed * SEEDS_MAX + number, **setting}
            for exponent in parameters.exponents
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        found = profiles.paper(PERIOD)
        profile = Profile(replace(found.config, exponent=cell["exponent"]), found.rules)
        group = RadioGroup(cell["seed"], profile, cell["members"], cell["loss"])
        group.run(WARM_UP)
        group.count_hop_bytes()
        group.run(CALM)
        traffic = group.hop_bytes / CALM / cell["members"]
        opinions = Opinions(group)
        victim = group.world.random.choice(group.alive)
        life, at = group.host(victim).me, group.world.now
        group.crash(victim)
        until_all_know(group, opinions, life, LATEST, PERIOD / 4)
        first, last = opinions.first_suspicion(life), opinions.last_death(life)
        return {
            **cell,
            "traffic": round(traffic, 2),
            "suspected": None if first is None else round(first - at, 3),
            "last": None if last is None else round(last - at, 3),
        }

    def judge(self, parameters: ExponentParameters, results: Sequence[Measured]) -> Finding:
        of = {exponent: [row for row in results if row["exponent"] == exponent] for exponent in parameters.exponents}
        traffic = {f"{m:g}": round(fmean(row["traffic"] for row in rows), 1) for m, rows in of.items()}
        last = {f"{m:g}": round(fmean(row["last"] or LATEST for row in rows), 2) for m, rows in of.items()}
        misses = [
            f"m = {row['exponent']:g}, seed {row['seed']}: not known to all after {LATEST:g} s" for row in results if row["last"] is None
        ]
        measured: dict[str, Any] = {"B/s times hops per member": traffic, "last DEAD, mean s": last}
        expected: dict[str, Any] = {}
        if {BEST, NONE} <= set(parameters.exponents):
            ratios = {"traffic": round(traffic["3"] / traffic["0"], 3), "last DEAD": round(last["3"] / last["0"], 3)}
            measured["m = 3 over m = 0"] = ratios
            expected["m = 3 over m = 0"] = {"traffic": f"<= {TRAFFIC_MAX}", "last DEAD": f"<= {DEATH_MAX}"}
            misses += [f"traffic is {ratios['traffic']} of that at m = 0"] if ratios["traffic"] > TRAFFIC_MAX else []
            misses += [f"the last DEAD comes {ratios['last DEAD']} times as late"] if ratios["last DEAD"] > DEATH_MAX else []
        else:
            misses.append("m = 0 and m = 3 were not both measured")
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2)
        for axes, what in ((left, "B/s times hops per member"), (right, "last DEAD, mean s")):
            found = finding.measured[what]
            axes.plot([float(m) for m in found], list(found.values()), marker="o")
            axes.set_xlabel("exponent m")
            axes.set_ylabel(what)
            axes.set_ylim(bottom=0)


EXPERIMENT = MedleyExponent()
