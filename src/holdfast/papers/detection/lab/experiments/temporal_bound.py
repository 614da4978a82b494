"""detection/E1: how long does the temporal scheme need for a given accuracy?

Spec: fast-detection 8 (E1), D11; paper 002, Proposition 4.1: at least ``t_itv log P_m / log p_L``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import floor, log
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from holdfast.errors import ConfigError
from holdfast.events import Event
from holdfast.features.leadership.detector.detectors import Temporal, heartbeats_to_miss
from holdfast.host import Address, Host
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.links import Exponential, Link
from holdfast.lab.network import PORT
from holdfast.lab.world import World
from holdfast.papers.detection.protocol.heartbeat import HeartbeatDetector, Silenced

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DELAY = 0.01  # seconds, mean of an exponential distribution (section 8)
TOLERANCE = 0.01
TRAINING = 25  # heartbeats before the crash, some of them lost
MEAN, SHORTEST, LONGEST = "mean seconds to detect", "shortest", "longest"
SOME = Meta(min_length=1, max_length=LIST_MAX)
JUST_AFTER = 1e-6  # seconds after a heartbeat: the worst moment to die


class TemporalBoundParameters(Parameters, frozen=True, kw_only=True):
    """The grid of section 8, E1."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 1000  # crashes per cell
    interval: Annotated[float, Meta(ge=0.5, le=3600.0)] = 10.0  # t_itv
    latency: Annotated[float, Meta(ge=0.1, le=60.0)] = 0.1  # t_lat; the paper states none
    losses: Annotated[tuple[Annotated[float, Meta(ge=0.001, le=0.5)], ...], SOME] = (0.01, 0.05, 0.1, 0.2, 0.3)  # p_L
    accuracies: Annotated[tuple[Annotated[float, Meta(ge=1e-12, le=0.5)], ...], SOME] = (1e-3, 1e-5, 1e-7)  # P_m

    def __post_init__(self) -> None:
        if self.latency > self.interval / 2:
            raise ConfigError(f"latency {self.latency:g}: at most half the interval ({self.interval / 2:g}) is accepted")


class TemporalBound(Experiment[TemporalBoundParameters]):
    """A subject dies right after a heartbeat that arrived; a monitor that asks for accuracy P_m on a lossy link notices."""

    id = "detection/E1"
    name = "detection/temporal-bound"
    title = "Temporal multiple timeouts: accuracy costs time"
    source = "paper 002, Proposition 4.1; fast-detection 8, E1, D11"
    criterion = "every detection within 1 % of m t_itv + t_lat, and none below t_itv log P_m / log p_L"
    parameters = TemporalBoundParameters
    seconds_per_cell = 0.47
    quick: ClassVar[Mapping[str, str]] = {"seeds": "3"}

    def cells(self, parameters: TemporalBoundParameters, seed: int) -> Sequence[Cell]:
        grid = product(parameters.accuracies, parameters.losses)
        return [
            {
                "loss": loss,
                "accuracy": accuracy,
                "interval": parameters.interval,
                "latency": parameters.latency,
                "seed": (seed * 1000 + number) * 1_000_000,
                "seeds": parameters.seeds,
            }
            for number, (accuracy, loss) in enumerate(grid)
        ]

    def measure(self, cell: Cell) -> Measured:
        m = heartbeats_to_miss(cell["accuracy"], cell["loss"])
        times = [_detection_time(seed, m, cell) for seed in range(cell["seed"], cell["seed"] + cell["seeds"])]
        return {
            "loss": cell["loss"],
            "accuracy": cell["accuracy"],
            "m": m,
            MEAN: round(sum(times) / len(times), 6),
            SHORTEST: round(min(times), 6),
            LONGEST: round(max(times), 6),
        }

    def judge(self, parameters: TemporalBoundParameters, results: Sequence[Measured]) -> Finding:
        misses = [note for row in results for note in _misses(row, parameters)]
        measured = {which: {_key(row): row[which] for row in results} for which in (MEAN, SHORTEST, LONGEST)}
        promised = {_key(row): round(_promised(row, parameters), 6) for row in results}
        bound = {_key(row): round(_bound(row, parameters.interval), 6) for row in results}
        return Finding(measured, {MEAN: promised, SHORTEST: bound}, not misses, tuple(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        cells = {key: (_read(key, "p"), _read(key, "P_m")) for key in finding.measured[MEAN]}
        for accuracy in dict.fromkeys(accuracy for _, accuracy in cells.values()):
            line = {key: loss for key, (loss, each) in cells.items() if each == accuracy}
            measured = [finding.measured[MEAN][key] for key in line]
            (drawn,) = axes.plot(list(line.values()), measured, marker="o", label=f"measured, P_m = {accuracy:g}")
            bound = [finding.expected[SHORTEST][key] for key in line]
            axes.plot(list(line.values()), bound, linestyle="--", color=drawn.get_color(), alpha=0.6)
        axes.plot([], [], linestyle="--", color="#7b8794", label="Proposition 4.1, at least")
        axes.set_xlabel("p_L: share of lost messages")
        axes.set_ylabel("seconds from the worst crash to its detection")
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper left")


def _detection_time(seed: int, m: int, cell: Cell) -> float:
    """One crash. The heartbeat before it arrives: were it lost too, the crash would be found earlier, and the worst case is asked for."""
    world = _pair(seed, m, cell)
    interval = cell["interval"]
    world.run(TRAINING * interval)
    world.network.set_link(Link(Exponential(DELAY)))
    subject = world.nodes["subject"]
    world.run(world.now + (floor(subject.now / interval) + 1) * interval - subject.now + JUST_AFTER)
    crashed_at = world.now
    world.crash("subject")
    accused_at: list[float] = []

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, Silenced):
            accused_at.append(world.now)

    world.listeners.append(on_event)
    world.run(crashed_at + (m + 2) * interval)
    assert len(accused_at) == 1
    return accused_at[0] - crashed_at


def _pair(seed: int, m: int, cell: Cell) -> World:
    peers = {name: Address(name, PORT) for name in ("monitor", "subject")}
    interval, latency = cell["interval"], cell["latency"]

    def detector() -> Temporal:
        return Temporal(m, interval=interval, slack=latency - DELAY)  # The expected arrival holds the mean delay already.

    def build(host: Host) -> list[HeartbeatDetector]:
        return [HeartbeatDetector(host, peers, interval=interval, late_timeout=latency, make=detector)]

    return World(seed, build, names=peers, link=Link(Exponential(DELAY), loss=cell["loss"]))


def _bound(row: Measured, interval: float) -> float:
    return interval * log(row["accuracy"]) / log(row["loss"])


def _promised(row: Measured, parameters: TemporalBoundParameters) -> float:
    return float(row["m"] * parameters.interval + parameters.latency)


def _key(row: Measured) -> str:
    return f"p={row['loss']:g}, P_m={row['accuracy']:g}"


def _read(key: str, name: str) -> float:
    return float(dict(part.split("=") for part in key.split(", "))[name])


def _misses(row: Measured, parameters: TemporalBoundParameters) -> list[str]:
    promised, bound = _promised(row, parameters), _bound(row, parameters.interval)
    notes = [
        f"{_key(row)}: the {which} detection took {row[which]:.3f} s, expected {promised:.3f} s within 1 %"
        for which in (SHORTEST, LONGEST)
        if abs(row[which] - promised) > TOLERANCE * promised
    ]
    if row[SHORTEST] < bound:
        notes.append(f"{_key(row)}: {row[SHORTEST]:.3f} s is below the bound of {bound:.3f} s")
    return notes


EXPERIMENT = TemporalBound()
