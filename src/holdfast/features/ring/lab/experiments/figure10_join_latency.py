"""ring/E4: how long does it take to join, depending on the size of the ring, on k, and on how many join at once?

Spec: ring 8 (E4), 5.6, D27; paper 000, section VII-D, Figure 10. Paced, each of the four phases takes a whole T_l as in the paper's
simulator; fast, a phase ends with its last answer, and a join costs round trips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.events import Event
from holdfast.features.ring.lab.measures import DELAY, mean
from holdfast.features.ring.lab.rings import PAPER_RULES, Rings, paper_config
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import BecameMember, JoinRetry
from holdfast.features.ring.protocol.ids import CIRCLE
from holdfast.host import SEEDS_MAX as KNOWN_MAX
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACED, FAST = PACES = ("paced", "fast")
SETTINGS = ((1, 5), (3, 1), (3, 5), (3, 10), (5, 5))  # (k, j): neighbours per side, joiners at once
LATENCY_MIN, LATENCY_TOLERANCE = 4.0, 0.05  # in T_l: four phases
LARGE, LARGE_MEAN, LARGE_JOINERS = 1024, 4.5, 5  # in a ring of this size the mean, in T_l, if at most so many join
SLACK = 1.1  # within 10 %: what still counts as monotone
FAST_DELAYS = 20  # mean one-way delays that a fast join takes at most, if no other joins
PATIENCE = 500.0  # in T_l; the slowest of 10 paced joiners of a ring of 8 takes about 40
STEP = 0.5  # in T_l: how often it is looked whether all are in
WARM_UP = 3.0  # in T_l


class JoinLatencyParameters(Parameters, frozen=True, kw_only=True):
    """The setting of Figure 10; which (k, j) it shows is ours."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 10
    sizes: Annotated[tuple[Annotated[int, Meta(ge=2, le=5000)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (
        8,
        16,
        32,
        64,
        128,
        256,
        512,
        1024,
    )


class JoinLatency(Experiment[JoinLatencyParameters]):
    """So many knock at the same instant; when is each of them in?"""

    id = "ring/E4"
    name = "ring/join-latency"
    title = "Joining takes four lease periods, or a few round trips"
    source = "paper 000, Figure 10; ring 8, E4"
    criterion = (
        "paced: the fastest join takes 4.0 +- 0.05 T_l; at 1024 members the mean is at most 4.5 T_l for j <= 5; means fall with size, rise "
        "with k and with j (within 10 %); fast: a join that nobody contends with takes less than 20 one-way delays"
    )
    parameters = JoinLatencyParameters
    seconds_per_cell = 1.6
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1", "sizes": "[8,32]"}

    def cells(self, parameters: JoinLatencyParameters, seed: int) -> Sequence[Cell]:
        return [
            {"size": size, "k": k, "j": j, "pace": pace, "seed": seed * SEEDS_MAX + number}
            for size in sorted(parameters.sizes)
            for k, j in SETTINGS
            for pace in PACES
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        config = paper_config(k=cell["k"], join_pace=cell["pace"] == PACED)
        chance = Random(f"{cell['seed']}/positions")
        places = {f"j{i}": chance.randrange(CIRCLE) for i in range(cell["j"])}
        rings = _ring(cell["seed"], cell["size"], config, places)
        world = rings.world
        world.run((WARM_UP + chance.random()) * config.lease)
        began_at, joined_at, retries = world.now, dict[str, float](), 0

        def on_event(host: LabHost, event: Event) -> None:
            nonlocal retries
            if isinstance(event, BecameMember):
                joined_at[host.me.name] = world.now
            retries += isinstance(event, JoinRetry)

        world.listeners.append(on_event)
        for name in places:
            rings.start(name)
        while len(joined_at) < len(places) and world.now < began_at + PATIENCE * config.lease:
            world.run(world.now + STEP * config.lease)
        latencies = [round((at - began_at) / config.lease, 6) for at in joined_at.values()]
        return {**cell, "latencies": latencies, "retries": retries}

    def judge(self, parameters: JoinLatencyParameters, results: Sequence[Measured]) -> Finding:
        rows = [_row(size, *setting, pace, results) for pace in PACES for setting in SETTINGS for size in sorted(parameters.sizes)]
        means = {(row["pace"], row["k"], row["j"], row["size"]): row["mean"] for row in rows}
        paced = {key[1:]: value for key, value in means.items() if key[0] == PACED}
        fastest = min(row["min"] for row in rows if row["pace"] == PACED)
        alone = max(row["max"] for row in rows if row["pace"] == FAST and row["j"] == 1) / _mean_delay()
        notes = [f"{_label(row)}: {row['missing']} joiners were not in after {PATIENCE:g} T_l" for row in rows if row["missing"]]
        if abs(fastest - LATENCY_MIN) > LATENCY_TOLERANCE:
            notes.append(f"the fastest paced join took {fastest:.3f} T_l, expected {LATENCY_MIN} +- {LATENCY_TOLERANCE}")
        if alone >= FAST_DELAYS:
            notes.append(f"a fast join that nobody contended with took {alone:.1f} one-way delays, accepted are less than {FAST_DELAYS}")
        large = {f"k={k}, j={j}": value for (k, j, size), value in paced.items() if size == LARGE and j <= LARGE_JOINERS}
        notes += [f"{which}: {value:.2f} T_l at {LARGE} members" for which, value in large.items() if value > LARGE_MEAN]
        notes += _not_monotone(paced)
        measured = {
            "fastest paced join, T_l": fastest,
            "fast join alone, one-way delays at most": round(alone, 2),
            f"mean at {LARGE} members, T_l": large,
            "mean latency, T_l": {
                pace: {f"k={k}, j={j}": [means[pace, k, j, size] for size in sorted(parameters.sizes)] for k, j in SETTINGS}
                for pace in PACES
            },
            "settings": rows,
        }
        expected: dict[str, Any] = {
            "fastest paced join, T_l": LATENCY_MIN,
            "fast join alone, one-way delays at most": f"< {FAST_DELAYS}",
            f"mean at {LARGE} members, T_l": dict.fromkeys(large, f"<= {LARGE_MEAN}"),
        }
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        for axes, pace in zip(figure.subplots(1, 2), PACES, strict=True):
            for (k, j), marker in zip(SETTINGS, "os^vD", strict=True):
                rows = [row for row in finding.measured["settings"] if (row["pace"], row["k"], row["j"]) == (pace, k, j)]
                axes.plot([row["size"] for row in rows], [row["mean"] for row in rows], marker=marker, label=f"k = {k}, j = {j}")
            sizes = sorted({row["size"] for row in finding.measured["settings"]})
            axes.set_xscale("log", base=2)
            axes.set_xticks(sizes, [str(size) for size in sizes])
            axes.set_xlabel("members of the ring")
            axes.set_title("paced: a phase takes T_l" if pace == PACED else "fast: a phase takes a round trip")
        paced, fast = figure.axes
        paced.axhline(LATENCY_MIN, color="#7b8794", linestyle="--", linewidth=1, label="paper: minimum 4 T_l")
        paced.set_ylabel("mean time to join / T_l")
        paced.set_ylim(bottom=0)
        paced.legend()
        limit = fast.axhline(
            FAST_DELAYS * _mean_delay(), color="#7b8794", linestyle="--", linewidth=1, label=f"{FAST_DELAYS} one-way delays"
        )
        fast.set_yscale("log")
        fast.legend(handles=[limit])


def _ring(seed: int, size: int, config: RingConfig, places: Mapping[str, int]) -> Rings:
    """A ring of ``size``, and a process that starts later sits at its place and knows some of its members."""

    def configure(name: str, config: RingConfig) -> RingConfig:
        return replace(config, position=places[name]) if name in places else config

    names = [f"n{i}" for i in range(size)]
    rings = Rings(seed, config, rules=PAPER_RULES, seeds=names[:KNOWN_MAX], configure=configure)
    rings.form(names)
    return rings


def _mean_delay() -> float:
    """In T_l, which is a second here."""
    return (DELAY.low + DELAY.high) / 2


def _row(size: int, k: int, j: int, pace: str, results: Sequence[Measured]) -> dict[str, Any]:
    here = [result for result in results if (result["size"], result["k"], result["j"], result["pace"]) == (size, k, j, pace)]
    latencies = [latency for result in here for latency in result["latencies"]] or [PATIENCE]
    return {
        "pace": pace,
        "k": k,
        "j": j,
        "size": size,
        "mean": round(mean(latencies), 4),
        "min": min(latencies),
        "max": max(latencies),
        "retries per join": round(sum(result["retries"] for result in here) / (j * len(here)), 3),
        "missing": sum(j - len(result["latencies"]) for result in here),
    }


def _label(row: Mapping[str, Any]) -> str:
    return f"{row['pace']}, {row['size']} members, k={row['k']}, j={row['j']}"


def _not_monotone(means: Mapping[tuple[int, int, int], float]) -> list[str]:
    """Where a mean goes the wrong way by more than the slack: (what should be smaller, what should be larger)."""
    sizes = sorted({size for _, _, size in means})
    ordered = [((k, j, larger), (k, j, smaller)) for k, j in SETTINGS for smaller, larger in pairwise(sizes)]
    ordered += [((k, j, size), (more, j, size)) for k, j in SETTINGS for more, same in SETTINGS if same == j and more > k for size in sizes]
    ordered += [((k, j, size), (k, more, size)) for k, j in SETTINGS for same, more in SETTINGS if same == k and more > j for size in sizes]
    return [
        f"(k, j, size) = {small}: {means[small]:.2f} T_l is above the {means[large]:.2f} T_l of {large} by more than 10 %"
        for small, large in ordered
        if means[small] > SLACK * means[large]
    ]


EXPERIMENT = JoinLatency()
