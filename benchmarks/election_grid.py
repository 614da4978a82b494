"""`election-grid`: elections among 16 real processes on an emulated grid of radios; the record that F12 to F14 are judged by.

    optimistic_saves   of the time until the last member has the leader, what Optimistic saves of Base at drop .05 and .1
    hybrid_saves       the same, Hybrid of Preferred
    leaders_...        distinct LEADER multicasts per election, by variant, over all drops

Each of the four drops has two groups: 16 processes with gossip as it ships, T = 1 s, and a field process that every datagram passes. All
groups are there at the same time; in each one election runs at a time. ``raw.run`` is the record: with --json,
``holdfast lab run election/F13 --set run=FILE`` judges it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from benchmarks.election_grid_group import Places, alike, formed, placed
from benchmarks.harness import Report, at_least
from benchmarks.leadership import Lateness
from benchmarks.ring_fleet import NeverHappened, now
from holdfast.features.election.lab.completion import savings
from holdfast.features.election.lab.figures import HYBRID, OPTIMISTIC, Table, means, percentiles, unfinished
from holdfast.features.election.lab.paper import DEVICES, RANGE, RUNS, Setting
from holdfast.features.election.lab.recorded import Loss, Point, Recorded, rows, too_few
from holdfast.features.election.lab.runs import F
from holdfast.features.election.protocol.manner import VARIANTS

GOALS = {"optimistic_saves": at_least(0.25), "hybrid_saves": at_least(0.25)}
JUDGED = (0.05, 0.1)  # drops at which savings are judged


class Size(NamedTuple):
    """How much of it."""

    settings: tuple[Setting, ...] = DEVICES
    runs: int = RUNS  # elections of each variant at each drop
    groups: int = 2  # among which they are divided
    f: int = F
    period: float = 1.0  # T of gossip
    warm_up: float = 60.0  # seconds
    within: float = 3600.0  # seconds after which no further election begins


SIZE = Size()
QUICK = Size(settings=DEVICES[:2], runs=5, groups=1, warm_up=20.0)


def run(rounds: int = 0, size: Size = SIZE) -> Report:
    """``rounds``: elections of each variant and drop; 0: as the size has it."""
    size = size._replace(runs=rounds or size.runs)
    problems: list[str] = []
    places = placed(alike(size.settings[0].members))
    loads = [os.getloadavg()[0]]
    parts = [(setting, range(group, size.runs, size.groups)) for setting in size.settings for group in range(size.groups)]
    with Lateness() as lateness, ThreadPoolExecutor(len(parts)) as pool:
        found = [part for part in pool.map(partial(_measured, size, places, problems), parts) if part is not None]
    points = [whole for setting in size.settings if (whole := _together([part for part in found if part.setting == setting])) is not None]
    loads.append(os.getloadavg()[0])
    record = msgspec.to_builtins(Recorded(places, RANGE, size.f, points))
    results = rows(msgspec.convert(record, Recorded))
    problems += [*too_few(results, RUNS), *unfinished(results)]
    raw = {
        "size": msgspec.to_builtins(size._asdict()),
        "cores": os.cpu_count(),
        "load_average": loads,
        "lateness_ms": lateness.found(),
        "seconds": _table(record, "seconds"),
        "leaders": _table(record, "changes"),
        "run": record,
    }
    return Report("election-grid", GOALS, {**saves(record), **_leaders(record)}, raw, problems)


def saves(record: Mapping[str, Any]) -> dict[str, float | None]:
    """Of a record (``raw.run`` of what this prints with --json): the means of what is saved at drop .05 and .1. None: one of them was not
    measured."""
    seconds = {name: row for name, row in _means(record, "seconds").items() if None not in row.values()}
    if len(seconds) < len(JUDGED):
        return dict.fromkeys(GOALS)
    found = savings(seconds)
    return {f"{variant}_saves": fmean(found[variant].values()) for variant in (OPTIMISTIC, HYBRID)}


def _means(record: Mapping[str, Any], key: str, drops: tuple[float, ...] = JUDGED) -> Table:
    results = rows(msgspec.convert(record, Recorded))
    settings = [Setting(*row["setting"]) for row in results]
    return means(results, [setting for setting in settings if setting.drop in drops], key)


def _table(record: Mapping[str, Any], key: str) -> dict[str, Any]:
    """For people: means, and of seconds the 95th percentile."""
    results = rows(msgspec.convert(record, Recorded))
    settings = [Setting(*row["setting"]) for row in results]
    found: dict[str, Any] = {"mean": means(results, settings, key)}
    if key == "seconds":
        found |= {"median": percentiles(results, settings, key, 0.5), "p95": percentiles(results, settings, key)}
    return found


def _leaders(record: Mapping[str, Any]) -> dict[str, float | None]:
    table = _means(record, "changes", tuple(point["setting"][2] for point in record["points"]))
    whole = [row for row in table.values() if None not in row.values()]
    return {f"leaders_{variant}": fmean(row[variant] for row in whole) if whole else None for variant in VARIANTS}


def _measured(size: Size, places: Places, problems: list[str], part: tuple[Setting, range]) -> Point | None:
    """What one group found. Nothing if it broke off; the others may be good all the same."""
    setting, numbers = part
    try:
        with formed(setting, places, f=size.f, period=size.period, warm_up=size.warm_up) as group:
            return group.hold(numbers, now() + size.within)
    except NeverHappened as error:
        problems.append(f"{setting}: {error}")
        return None


def _together(parts: list[Point]) -> Point | None:
    """All groups of one drop."""
    datagrams = sum(part.loss.datagrams for part in parts)
    if not datagrams:
        return None
    asked, found = (sum(getattr(part.loss, of) * part.loss.datagrams for part in parts) / datagrams for of in ("asked", "found"))
    return Point(parts[0].setting, [each for part in parts for each in part.elections], Loss(asked, found, datagrams))
