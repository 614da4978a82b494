"""detection/E4: how often does the temporal scheme accuse the living?

Spec: fast-detection 8 (E4), D11; paper 002, section 3: accuracy .99999 at p_L = .1 needs m of at least 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.events import Event
from holdfast.features.leadership.detector.detectors import Temporal
from holdfast.host import FANOUT_MAX, Address, Host
from holdfast.lab.experiment import LIST_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.links import Exponential, Link
from holdfast.lab.network import PORT
from holdfast.lab.rates import rate_interval
from holdfast.lab.world import World
from holdfast.papers.detection.protocol.heartbeat import HeartbeatDetector, Silenced
from holdfast.papers.detection.protocol.messages import Heartbeat

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERVAL, LATENCY, DELAY = 1.0, 0.05, 0.01  # section 8: t_itv, t_lat, mean of the exponential delays
FACTOR = 2.0
RATE, LOW, HIGH = "mistakes per heartbeat", "95 % from", "95 % to"
PARTS = 8  # pieces of the work per m, so that other processes can help
Missed = Annotated[int, Meta(ge=1, le=20)]  # m
Heartbeats = Annotated[int, Meta(ge=1000, le=100_000_000)]  # below, a part may end before its members know each other; above, it takes days


class TemporalAccuracyParameters(Parameters, frozen=True, kw_only=True):
    """``judged`` is the m of the criterion; the others show how mistakes become rare. Every heartbeat is a repetition."""

    loss: Annotated[float, Meta(ge=0.001, le=0.5)] = 0.1  # p_L
    judged: Missed = 5
    shown: Annotated[tuple[Missed, ...], Meta(max_length=LIST_MAX)] = (1, 2, 3, 4)
    heartbeats: Heartbeats = 2_000_000  # for ``judged``
    heartbeats_shown: Heartbeats = 100_000  # for each of ``shown``
    members: Annotated[int, Meta(ge=2, le=FANOUT_MAX)] = 24  # all watch all: 552 independent pairs share one clockwork


class TemporalAccuracy(Experiment[TemporalAccuracyParameters]):
    """No process dies, messages get lost; every accusation is a mistake."""

    id = "detection/E4"
    name = "detection/temporal-accuracy"
    title = "Temporal multiple timeouts: mistakes about the living"
    source = "paper 002, section 3; fast-detection 8, E4, D11"
    criterion = "mistakes per heartbeat of the judged m (5) within a factor of 2 of p^m (1 - p)"
    parameters = TemporalAccuracyParameters
    seconds_per_cell = 0.16
    repetitions = "heartbeats"
    quick: ClassVar[Mapping[str, str]] = {"judged": "3", "shown": "[1,2]", "heartbeats": "50000", "heartbeats_shown": "20000"}

    def cells(self, parameters: TemporalAccuracyParameters, seed: int) -> Sequence[Cell]:
        sizes = {**dict.fromkeys(parameters.shown, parameters.heartbeats_shown), parameters.judged: parameters.heartbeats}
        return [
            {
                "m": m,
                "loss": parameters.loss,
                "members": parameters.members,
                "heartbeats": ceil(heartbeats / PARTS),
                "seed": seed * 1_000_000 + m * 1000 + part,
            }
            for m, heartbeats in sizes.items()
            for part in range(PARTS)
        ]

    def measure(self, cell: Cell) -> Measured:
        world, mistakes = _group(cell)
        members = cell["members"]
        # Two intervals to be known to each other; then one heartbeat per pair and interval, counted as they leave.
        world.run((2 + ceil(cell["heartbeats"] / (members * (members - 1)))) * INTERVAL)
        heartbeats = sum(endpoint.sent[Heartbeat] for endpoint in world.network.endpoints.values())
        return {"m": cell["m"], "heartbeats": heartbeats, "mistakes": len(mistakes)}

    def judge(self, parameters: TemporalAccuracyParameters, results: Sequence[Measured]) -> Finding:
        rows = {m: _summed(m, results) for m in sorted({row["m"] for row in results})}
        expected = {m: expected_rate(m, parameters.loss) for m in rows}
        judged, right = rows[parameters.judged], expected[parameters.judged]
        measured = {what: {f"m={m}": row[what] for m, row in rows.items()} for what in judged}
        passed = right / FACTOR <= judged[RATE] <= right * FACTOR
        note = (
            f"m = {parameters.judged}: {judged['mistakes']} mistakes in {judged['heartbeats']} heartbeats"
            f" (95 %: {judged[LOW]:.3g} to {judged[HIGH]:.3g} per heartbeat); heartbeats later than t_lat count as lost and add some"
        )
        return Finding(measured, {RATE: {f"m={m}": rate for m, rate in expected.items()}}, passed, (note,))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        numbers = [int(key.removeprefix("m=")) for key in finding.measured[RATE]]
        rate, low, high = (list(finding.measured[what].values()) for what in (RATE, LOW, HIGH))
        errors = [[a - b for a, b in zip(rate, low, strict=True)], [b - a for a, b in zip(rate, high, strict=True)]]
        axes.errorbar(numbers, rate, yerr=errors, marker="o", linestyle="none", capsize=4, label="measured, 95 % interval")
        axes.plot(numbers, list(finding.expected[RATE].values()), linestyle="--", color="#7b8794", label="p^m (1 - p)")
        axes.set_yscale("log")
        axes.set_xticks(numbers)
        axes.set_xlabel("m: heartbeats missed in a row before the subject is accused")
        axes.set_ylabel("mistakes per heartbeat")
        axes.legend(loc="upper right")


def expected_rate(m: int, loss: float) -> float:
    """A mistake begins with a heartbeat that arrived and m that did not."""
    return loss**m * (1 - loss)


def _group(cell: Cell) -> tuple[World, list[float]]:
    peers = {f"n{i:02}": Address(f"n{i:02}", PORT) for i in range(cell["members"])}

    def detector() -> Temporal:
        return Temporal(cell["m"], interval=INTERVAL, slack=LATENCY - DELAY)

    def build(host: Host) -> list[HeartbeatDetector]:
        return [HeartbeatDetector(host, peers, interval=INTERVAL, late_timeout=LATENCY, make=detector)]

    world = World(cell["seed"], build, names=peers, link=Link(Exponential(DELAY), loss=cell["loss"]))
    mistakes: list[float] = []

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, Silenced):
            mistakes.append(world.now)

    world.listeners.append(on_event)
    return world, mistakes


def _summed(m: int, results: Sequence[Measured]) -> dict[str, Any]:
    parts = [row for row in results if row["m"] == m]
    heartbeats, mistakes = sum(row["heartbeats"] for row in parts), sum(row["mistakes"] for row in parts)
    low, high = rate_interval(mistakes, heartbeats)
    return {RATE: mistakes / heartbeats, LOW: low, HIGH: high, "mistakes": mistakes, "heartbeats": heartbeats}


EXPERIMENT = TemporalAccuracy()
