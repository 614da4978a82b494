"""ring/E5: how long does a monitor need to suspect a neighbour that crashed?

Spec: ring 8 (E5), D2, G4; paper 000, Theorem 2 and section VII-E, Figure 11. The crash falls anywhere into a session, so T_FD is spread
evenly over [T_l, 2 T_l), less the time the last lease request was under way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.events import Event
from holdfast.features.ring.lab.measures import DELAY, draw_members, formed, mean, quartiles
from holdfast.features.ring.protocol.config import K_MAX, LEASE_MAX, LEASE_MIN, RingConfig
from holdfast.features.ring.protocol.facts import Suspicion
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEAN, MEAN_TOLERANCE = 1.5, 0.05  # in T_l
QUARTILES, QUARTILE_TOLERANCE = (1.25, 1.5, 1.75), 0.1
LATEST = 2.0  # in T_l: Theorem 2, never reached
ROUNDING = 1e-6  # timers of the lab fire a nanosecond late
WATCHED = 2.5  # in T_l after the crash


class DetectionTimeParameters(Parameters, frozen=True, kw_only=True):
    """The setting of Figure 11. Every run is a crash, seen by 2k monitors."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 200  # crashes per lease period
    members: Annotated[int, Meta(ge=4, le=1000)] = 64
    k: Annotated[int, Meta(ge=1, le=K_MAX)] = 3
    leases: Annotated[tuple[Annotated[float, Meta(ge=LEASE_MIN, le=LEASE_MAX)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (
        0.032,
        0.064,
        0.128,
        0.256,
        0.512,
        1.024,
    )


class DetectionTime(Experiment[DetectionTimeParameters]):
    """One random member crashes at a random instant; when does each of its monitors suspect it?"""

    id = "ring/E5"
    name = "ring/detection-time"
    title = "Failure detection takes one to two lease periods, whatever their length"
    source = "paper 000, Theorem 2 and Figure 11; ring 8, E5"
    criterion = "all of T_FD in [T_l - delay, 2 T_l); for every T_l mean 1.5 +- 0.05 T_l and quartiles 1.25, 1.5, 1.75 +- 0.1 T_l"
    parameters = DetectionTimeParameters
    seconds_per_cell = 12
    quick: ClassVar[Mapping[str, str]] = {"seeds": "40", "members": "10", "leases": "[0.064,0.512]"}

    def cells(self, parameters: DetectionTimeParameters, seed: int) -> Sequence[Cell]:
        setting = {"members": parameters.members, "k": parameters.k, "seeds": parameters.seeds}
        return [
            {"lease": lease, "seed": (seed * LIST_MAX + number) * SEEDS_MAX, **setting} for number, lease in enumerate(parameters.leases)
        ]

    def measure(self, cell: Cell) -> Measured:
        times = [time for number in range(cell["seeds"]) for time in _detection_times(cell, cell["seed"] + number)]
        return {"lease": cell["lease"], "times": times, "missing": cell["seeds"] * _monitors(cell["members"], cell["k"]) - len(times)}

    def judge(self, parameters: DetectionTimeParameters, results: Sequence[Measured]) -> Finding:
        rows = [_row(result) for result in results]
        notes = [note for row in rows for note in _misses(row)]
        measured: dict[str, Any] = {which: {_label(row): row[which] for row in rows} for which in ("mean", "quartiles", "least", "most")}
        measured["leases"] = rows
        expected = {
            "mean": {_label(row): MEAN for row in rows},
            "quartiles": {_label(row): list(QUARTILES) for row in rows},
            "least": {_label(row): f">= {_earliest(row['lease']):.4f}" for row in rows},
            "most": {_label(row): f"< {LATEST:g}" for row in rows},
        }
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        rows = finding.measured["leases"]
        boxes = [
            {"q1": low, "med": middle, "q3": high, "whislo": row["least"], "whishi": row["most"], "mean": row["mean"], "fliers": []}
            for row in rows
            for low, middle, high in [row["quartiles"]]
        ]
        mark: dict[str, Any] = {"marker": "x", "markeredgecolor": "#d55e00", "markersize": 8}
        axes.bxp(boxes, showmeans=True, showfliers=False, meanprops=mark, medianprops={"color": "#0072b2"})
        axes.set_xticks(range(1, len(rows) + 1), [f"{row['lease'] * 1000:g}" for row in rows])
        for bound in (1.0, LATEST):
            axes.axhline(bound, color="#7b8794", linestyle="--", linewidth=1, label="Theorem 2: [T_l, 2 T_l)" if bound == LATEST else None)
        axes.plot([], [], linestyle="", label="mean (paper: about 1.5)", **mark)
        axes.set_xlabel("T_l in milliseconds")
        axes.set_ylabel("time to suspicion / T_l (quartiles, least, most)")
        axes.set_ylim(0.8, 2.2)
        axes.legend(loc="lower right")


def _detection_times(cell: Cell, seed: int) -> list[float]:
    """In T_l, of all monitors of one member that crashes at a random instant of its session."""
    lease = cell["lease"]
    rings = formed(seed, cell["members"], RingConfig(lease=lease, k=cell["k"]))
    world = rings.world
    (subject,) = draw_members(rings, 1)
    world.run(world.now + world.random.random() * lease)
    crashed_at, dead = world.now, rings.members[subject].id
    world.crash(subject)
    suspected_at: list[float] = []

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, Suspicion) and event.peer == dead:
            suspected_at.append(world.now)

    world.listeners.append(on_event)
    world.run(crashed_at + WATCHED * lease)
    return [round((at - crashed_at) / lease, 6) for at in suspected_at]


def _monitors(members: int, k: int) -> int:
    return min(2 * k, members - 1)


def _earliest(lease: float) -> float:
    """D2: the crash may overtake a lease request that is under way."""
    return 1 - DELAY.high / lease


def _label(row: Mapping[str, Any]) -> str:
    return f"T_l = {row['lease'] * 1000:g} ms"


def _row(result: Measured) -> dict[str, Any]:
    times = result["times"] or [WATCHED]
    return {
        "lease": result["lease"],
        "times": len(result["times"]),
        "missing": result["missing"],
        "mean": round(mean(times), 4),
        "quartiles": [round(each, 4) for each in quartiles(times)],
        "least": min(times),
        "most": max(times),
    }


def _misses(row: Mapping[str, Any]) -> list[str]:
    label = _label(row)
    notes = []
    if row["missing"]:
        notes.append(f"{label}: {row['missing']} monitors had not suspected after {WATCHED} T_l")
    if row["least"] < _earliest(row["lease"]) - ROUNDING:
        notes.append(f"{label}: a suspicion after {row['least']:.4f} T_l, none is expected before {_earliest(row['lease']):.4f}")
    if row["most"] >= LATEST:
        notes.append(f"{label}: a suspicion after {row['most']:.4f} T_l, all are expected before {LATEST}")
    if abs(row["mean"] - MEAN) > MEAN_TOLERANCE:
        notes.append(f"{label}: mean {row['mean']:.4f} T_l, expected {MEAN} +- {MEAN_TOLERANCE}")
    for number, (ours, theirs) in enumerate(zip(row["quartiles"], QUARTILES, strict=True), 1):
        if abs(ours - theirs) > QUARTILE_TOLERANCE:
            notes.append(f"{label}: quartile {number} is {ours:.4f} T_l, expected {theirs} +- {QUARTILE_TOLERANCE}")
    return notes


EXPERIMENT = DetectionTime()
