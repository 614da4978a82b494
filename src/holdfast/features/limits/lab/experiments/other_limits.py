"""limits/P3: ours, a bucket in Redis, and a fixed part for each process, under the same load.

Spec: limits 8 (P3). The load is that of P2m: one process asks for 900 requests a second and seven for 50, of 1000. Ours and the fixed split
run in virtual time; Redis is a real server in real time, where it is installed. Then each loses what it depends on: an agent of ours is
killed, and Redis. The fixed split depends on nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta

from holdfast.features.limits.bucket import DEPTH_MIN, SECOND, Bucket, cost_micros, micros, nanos
from holdfast.features.limits.lab.experiments.requests_maxmin import (
    BURST,
    EDGE,
    FAIR,
    PROCESSES,
    RATE,
    RESTART_AFTER,
    SMALL_PACED,
    TOTAL,
    form,
    want_of,
)
from holdfast.features.limits.lab.programs import Load, Went, everywhere, most_in_a_second, per_second, rate, wait_p99
from holdfast.features.limits.lab.redis_bucket import RedisClient, RedisServer, missing, play
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS: Final = "holdfast"
FIXED: Final = "fixed"
REDIS: Final = "redis"
MISSING = "missing"
FAILED_FOR = 5.0  # seconds that are looked at from the failure on
LATE_MAX = 0.1  # seconds: a machine that wakes programs later than that says more about itself than about a server in real time
LOOK_INTERVAL = 0.02
LEAST_KEPT = 0.98  # of min(want, R/n): 1, but for the edges of a second
COLOURS = {OURS: "#0072b2", FIXED: "#7b8794", REDIS: "#b42318"}


class OtherParameters(Parameters, frozen=True, kw_only=True):
    """Which ways, and for how long."""

    ways: Annotated[tuple[Literal["holdfast", "fixed", "redis"], ...], Meta(min_length=1, max_length=LIST_MAX)] = (OURS, FIXED, REDIS)
    seconds: Annotated[float, Meta(ge=4.0, le=600.0)] = 40.0  # the second half is measured


class Others(Experiment[OtherParameters]):
    """Three ways to keep one limit."""

    id = "limits/P3"
    name = "limits/others"
    title = "Beside a bucket in Redis and a fixed split: what is used, who waits, and what a failure leaves"
    source = "limits 8, P3"
    criterion = (
        "throughput, waits, peaks and what a failure leaves are reported for each way that can be measured; ours: 990/s in all, 49/s for "
        "each small one, and 98 % of min(what it wants, R/n) in every second while an agent is killed"
    )
    parameters = OtherParameters
    seconds_per_cell = 20
    quick: ClassVar[dict[str, str]] = {"ways": '["holdfast","fixed"]', "seconds": "30.0"}

    def cells(self, parameters: OtherParameters, seed: int) -> Sequence[Cell]:
        return [
            {"way": way, "seconds": parameters.seconds, "seed": seed * SEEDS_MAX + number}
            for way in parameters.ways
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked({OURS: _play_ours, FIXED: _play_fixed, REDIS: _play_redis}[cell["way"]], cell)

    def judge(self, parameters: OtherParameters, results: Sequence[Measured]) -> Finding:
        rows = [row for row in completed(results) if MISSING not in row]
        first = {row["way"]: row for row in reversed(rows)}
        names = ("total", "large", "least small", "small wait p99", "most in a second", "kept while it fails")
        measured: dict[str, Any] = {name: {way: row[name] for way, row in first.items()} for name in names}
        expected = {"total": f"{OURS} at least {TOTAL:g}", "least small": f"{OURS} at least {SMALL_PACED:g}"}
        misses = [*violations(results), *(note for row in rows if row["way"] == OURS for note in misses_of(row))]
        busy = [f"{row['way']}: the machine was late by up to {row['late']:.2f} s" for row in rows if row.get("late", 0.0) > LATE_MAX]
        unmeasured = [f"{row['way']} is not measured: {row[MISSING]}" for row in results if MISSING in row]
        unasked = [f"{way} is not measured: it was not asked for" for way in (OURS, FIXED, REDIS) if way not in parameters.ways]
        return Finding(measured, expected, OURS in first and not misses, shortened([*misses, *busy, *unmeasured, *unasked]))

    def draw(self, figure: Figure, finding: Finding) -> None:
        bars = ("total", "least small", "small wait p99", "most in a second", "kept while it fails")
        for axes, name in zip(figure.subplots(1, len(bars)), bars, strict=True):
            values = finding.measured[name]
            axes.bar(range(len(values)), list(values.values()), color=[COLOURS[way] for way in values])
            axes.set_xticks(range(len(values)), list(values), rotation=60, fontsize=7)
            axes.set_title(name, fontsize=7)


def _play_ours(cell: Cell) -> Measured:
    run = form(cell["seed"], FAIR)
    group, callers = run.group, run.callers
    everywhere(callers, lambda number: Load("paced", want_of(number)))
    group.run(cell["seconds"])
    failed_at = group.world.now
    group.world.crash("c3")
    group.world.revive_after(RESTART_AFTER, "c3")
    group.run(FAILED_FOR)
    return {**cell, **_summary([caller.went for caller in callers], failed_at - cell["seconds"], failed_at)}


def _play_fixed(cell: Cell) -> Measured:
    """Each has R/n, whatever it wants. Nothing that it depends on can fail."""
    random = Random(f"{cell['seed']}/fixed")
    end = cell["seconds"] + FAILED_FOR
    return {**cell, **_summary([_alone(want_of(number), random.random(), end) for number in range(PROCESSES)], 0.0, cell["seconds"])}


def _alone(want: float, phase: float, end: float) -> list[Went]:
    bucket, cost = Bucket(0), cost_micros(1.0)
    bucket.set(0, micros(RATE / PROCESSES), max(DEPTH_MIN, micros(BURST / PROCESSES)))
    went, free_at, due = [], 0, phase / want
    while due < end:
        at = max(free_at, nanos(due))
        free_at = at + bucket.ready_in(at, cost)
        taken = bucket.take(free_at, cost)
        assert taken, "it was to be ready now"
        if free_at >= nanos(end):
            break
        went.append(Went(free_at / SECOND, max(0.0, free_at / SECOND - due)))
        due += 1 / want
    return went


def _play_redis(cell: Cell) -> Measured:
    """A real server in real time; or why that cannot be."""
    why = missing()
    if why:
        return {**cell, MISSING: why}
    with TemporaryDirectory() as folder, RedisServer(Path(folder)) as server:
        return asyncio.run(_on_redis(cell, server))


async def _on_redis(cell: Cell, server: RedisServer) -> Measured:
    clients = [await RedisClient.connect(server.path, RATE, BURST) for _ in range(PROCESSES)]
    clock = asyncio.get_running_loop().time
    begin = clock() + 0.1
    end = begin + cell["seconds"]
    went: list[list[Went]] = [[] for _ in clients]

    def note(number: int, at: float, waited: float) -> None:
        went[number].append(Went(at, waited))

    programs = [
        asyncio.create_task(play(client, 1 / want_of(number), begin, end + FAILED_FOR, partial(note, number)))
        for number, client in enumerate(clients)
    ]
    late = await _lateness(end)
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(FAILED_FOR)
    await asyncio.gather(*programs)
    for client in clients:
        client.close()
    return {**cell, **_summary(went, begin, end), "late": round(late, 3)}


async def _lateness(until: float) -> float:
    """By how much this program was woken too late, at most."""
    clock, latest = asyncio.get_running_loop().time, 0.0
    while (at := clock()) < until:
        await asyncio.sleep(LOOK_INTERVAL)
        latest = max(latest, clock() - at - LOOK_INTERVAL)
    return latest


def _summary(went: Sequence[Sequence[Went]], begin: float, failed_at: float) -> dict[str, Any]:
    middle = (begin + failed_at) / 2
    rates = [rate(each, middle, failed_at) for each in went]
    kept = [
        min(_kept(count, min(want_of(number), RATE / PROCESSES)) for count in per_second(each, failed_at, failed_at + FAILED_FOR))
        for number, each in enumerate(went)
    ]
    return {
        "total": round(sum(rates), 2),
        "large": round(rates[0], 2),
        "least small": round(min(rates[1:]), 2),
        "small wait p99": round(max(wait_p99(each, middle, failed_at) for each in went[1:]), 5),
        "most in a second": most_in_a_second([one for each in went for one in each if one.at < failed_at]),
        "kept while it fails": round(min(kept), 4),
    }


def _kept(count: int, owed: float) -> float:
    """What part of what it is owed a process got in a second, at whose edge one request may be missed."""
    return min(1.0, (count + EDGE) / owed) if count else 0.0


def misses_of(row: Measured) -> list[str]:
    accepted = (
        ("total", TOTAL, "/s in all"),
        ("least small", SMALL_PACED, "/s at a small one"),
        ("kept while it fails", LEAST_KEPT, " kept"),
    )
    return [f"{row['way']}: {row[name]:g}{what}, accepted are {least:g}" for name, least, what in accepted if row[name] < least]


EXPERIMENT = Others()
