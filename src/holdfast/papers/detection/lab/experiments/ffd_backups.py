"""detection/E12: what if the monitor that should ask is dead as well?

Spec: fast-detection 8 (E12), D15; the paper is silent: the primary monitor alone asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import HIGH, LOW, MEAN, by_column, errors, mean_interval, summary
from holdfast.papers.detection.lab.elections import Elections, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMBERS = 9
DEAD_MAX = 3
BACKUPS = (0, 2)
LOWEST, HIGHEST = "lowest", "highest"  # ranks that die with the leader; the highest never ask, so they show what their silence alone costs
ADDED = "seconds added by dead askers"
TOLERANCE = 0.25  # of w: delays differ from run to run
PROTOTYPE = {
    "backups 2, 0 dead": 0.65,
    "backups 0, 1 dead": 5.6,
    "backups 2, 1 dead": 0.99,
    "backups 0, 2 dead": 5.6,
    "backups 2, 2 dead": 1.19,
}
PARTS = 4  # groups per cell
REST = 12.0  # seconds between a restart and the next crash
PATIENCE = 30.0


class BackupsParameters(Parameters, frozen=True, kw_only=True):
    """Deaths per bar."""

    seeds: Annotated[int, Meta(ge=8, le=SEEDS_MAX)] = 1000


class Backups(Experiment[BackupsParameters]):
    """The leader of nine and its lowest-ranked monitors die in the same instant; time until a monitor starts the next round."""

    id = "detection/E12"
    name = "detection/backups"
    title = "The asker is dead: backups take over"
    source = "fast-detection 8, E12, D15 (the paper is silent)"
    criterion = "each dead rank up to `backups` adds one w (within a quarter), beside as many dead monitors that never ask"
    parameters = BackupsParameters
    seconds_per_cell = 1.1
    quick: ClassVar[Mapping[str, str]] = {"seeds": "8"}

    def cells(self, parameters: BackupsParameters, seed: int) -> Sequence[Cell]:
        deaths = -(-parameters.seeds // PARTS)
        return [
            {"backups": backups, "dead": dead, "ranks": ranks, "deaths": deaths, "seed": seed * 100 + part}
            for backups in BACKUPS
            for ranks in (LOWEST, HIGHEST)
            for dead in range(DEAD_MAX + 1)
            for part in range(PARTS)
            if ranks == LOWEST or (backups and dead)
        ]

    def measure(self, cell: Cell) -> Measured:
        group = Elections(cell["seed"], MEMBERS, settings("paper", backups=cell["backups"]))
        deaths = cell["deaths"]  # Evenly spread over an interval, at the same moments in all cells: only what differs is compared.
        times = [_deaths(group, cell["dead"], cell["ranks"], (number + 0.5) / deaths) for number in range(deaths)]
        return {**{what: cell[what] for what in ("backups", "dead", "ranks")}, "times": times}

    def judge(self, parameters: BackupsParameters, results: Sequence[Measured]) -> Finding:
        cells = dict.fromkeys((row["backups"], row["dead"], row["ranks"]) for row in results)
        times = {key: [t for row in results if (row["backups"], row["dead"], row["ranks"]) == key for t in row["times"]] for key in cells}
        rows = {_key(*key): summary(values) for key, values in times.items()}
        w, backups = settings("paper").w, max(BACKUPS)
        added = {
            dead: mean_interval(times[backups, dead, LOWEST])[0] - mean_interval(times[backups, dead, HIGHEST])[0]
            for dead in range(1, DEAD_MAX + 1)
        }
        notes = [
            f"{dead} dead: {seconds:.3f} s more than with as many others dead, expected {dead * w:.3f} within {TOLERANCE * w:.3f}"
            for dead, seconds in added.items()
            if dead <= backups and abs(seconds - dead * w) > TOLERANCE * w
        ]
        measured: dict[str, Any] = by_column(rows)
        measured[ADDED] = {f"{dead} dead": round(seconds, 4) for dead, seconds in added.items()}
        expected = {
            MEAN: {key: value for key, value in PROTOTYPE.items() if key in rows},
            ADDED: {f"{dead} dead": round(dead * w, 4) for dead in added if dead <= backups},
        }
        told = "a dead monitor is silent, so a ballot waits for it to its end: this is in both columns, and not what dead askers add"
        return Finding(measured, expected, not notes, (*notes, told))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        bars = {f"backups {backups}": [_key(backups, dead, LOWEST) for dead in range(DEAD_MAX + 1)] for backups in BACKUPS}
        bars["backups 2, others dead"] = [_key(max(BACKUPS), dead, HIGHEST) for dead in range(DEAD_MAX + 1)]
        for number, (label, keys) in enumerate(bars.items()):
            there = [(place, key) for place, key in enumerate(keys) if key in finding.measured[MEAN]]
            middle, low, high = ([finding.measured[what][key] for _, key in there] for what in (MEAN, LOW, HIGH))
            places = [place + (number - 1) * 0.27 for place, _ in there]
            axes.bar(places, middle, width=0.25, yerr=errors(middle, low, high), capsize=3, label=label)
        axes.set_xticks(range(DEAD_MAX + 1), [f"{dead} dead" for dead in range(DEAD_MAX + 1)])
        axes.set_xlabel("monitors that die with the leader, lowest rank first")
        axes.set_ylabel("seconds until the next round, 95 % interval")
        axes.legend(loc="upper left")


def _deaths(group: Elections, dead: int, ranks: str, share: float) -> float:
    leader = group.ready(REST, share)
    monitors = [name for name in group.names if name != leader]
    victims = [leader, *(monitors[:dead] if ranks == LOWEST else monitors[len(monitors) - dead :])]
    group.crash(victims)
    group.entered.clear()
    seconds = group.until(lambda: bool(group.entered), PATIENCE)
    assert seconds is not None
    for name in victims:
        group.start(name)
    return seconds


def _key(backups: int, dead: int, ranks: str) -> str:
    return f"backups {backups}, {dead} dead" + ("" if ranks == LOWEST or not dead else " of the highest")


EXPERIMENT = Backups()
