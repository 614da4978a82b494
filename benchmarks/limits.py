"""`limits`: one rate for many processes, beside Redis 7 and the libraries that people use, in one run.

    try_acquire_us, try_acquire_sync_us   CPU of a permit that is there: asyncio client, blocking client; best round
    ..._refused_us, acquire_us            of one that is refused; of ``await limit.acquire()`` that need not wait
    redis_lua_us, redis_lua_async_us      the same look at a token bucket on Redis (Lua, redis-py): p50 of wall-clock
    redis_times                           redis_lua_async_us / try_acquire_us: both are of an event loop (H295)
    redis_sync_times                      redis_lua_us / try_acquire_sync_us
    shared_total, shared_small_min        permits per second of eight processes together, and of the least of seven small
                                          ones: one wants 900/s, seven want 50/s each, of 1000/s
    shared_peak_1s                        the most permits in any second
    kept_after_kill                       while the agent of a process, a seat, or an agent with its process is killed:
                                          of min(want, R/n) the least share that a living process has in any second
    redis_lua_..., limits_..., pyrate_redis_..., pyrate_memory_..., aiolimiter_...
                                          the same of the others; of those on Redis while Redis is killed. Those in
                                          memory know one process, so each process has the eighth part of the rate
    idle_core_share                       CPU seconds per second of an agent with one idle limit: ring, views and limit
    idle_packets_s                        UDP packets per second, sent and received, that views and limit add to it
    idle_added_core_share                 what views and limit add to the CPU
    rss_kib_per_limit                     resident memory of an agent for each of 64 more limits
    machine_late_p999_ms                  how late this machine woke up a process while the rate was shared
    epoch_us                              CPU of one epoch of one member: 182 members, 16 limits, in the lab

All agents are processes of their own with a key and state directories, at the preset ``lan``; limits are as they come (policy
``fair``). The libraries are no dependencies of Holdfast: ``pip install redis limits pyrate-limiter aiolimiter``, and Redis by
``apt-get install redis-server``. What is not installed, and what broke off, is null, and a goal without a number is missed (H241).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.agent_fleet import compile_package
from benchmarks.harness import Report, at_least, at_most, show_progress
from benchmarks.leadership import Lateness
from benchmarks.limits_calls import Calls
from benchmarks.limits_epoch import Epoch
from benchmarks.limits_fleet import redis_missing
from benchmarks.limits_idle import Idle
from benchmarks.limits_shared import Shared
from benchmarks.limits_side import apart
from benchmarks.limits_ways import ON_REDIS, OURS, PEERS, missing
from benchmarks.ring_fleet import NeverHappened

BURST = 100.0
PROCESSES = 8
GOALS = {
    "try_acquire_us": at_most(0.6),
    "try_acquire_sync_us": at_most(1.2),
    "redis_times": at_least(200),
    "shared_total": at_least(990),
    "shared_small_min": at_least(49),
    "shared_peak_1s": at_most(1000 + BURST + PROCESSES),
    "kept_after_kill": at_least(0.98),
    "idle_core_share": at_most(0.008),
    "idle_packets_s": at_most(14),
    "epoch_us": at_most(2000),
}
ROUNDS = 7  # of the calls
CALLS = (
    "try_acquire_us", "try_acquire_sync_us", "acquire_us", "try_acquire_refused_us", "redis_lua_us", "redis_lua_async_us", "limits_us",
    "pyrate_redis_us", "pyrate_memory_us", "aiolimiter_us",
)  # fmt: skip
SHARES = {"shared_total": "total", "shared_small_min": "small_min", "shared_peak_1s": "peak_1s"}

Found = Mapping[str, Any]


class Size(NamedTuple):
    """How much of it."""

    ways: tuple[str, ...] = PEERS  # beside ours
    calls: Calls = Calls()
    shared: Shared = Shared(burst=BURST)
    idle: Idle = Idle()
    epoch: Epoch = Epoch()


SIZE = Size()
QUICK = Size(
    calls=Calls(permits=5_000, looks=100),
    shared=Shared(burst=BURST, warm=6.0, seconds=5.0, after=4.0),
    idle=Idle(members=4, turns=1, settle_seconds=8.0, seconds=8.0),
    epoch=Epoch(members=48, seconds=5.0),
)


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    compile_package()
    absent = not_here(size.ways)
    ways = tuple(way for way in size.ways if way not in absent)
    problems = [f"{way}: {why}" for way, why in absent.items()]
    calls = measured("calls", size.calls._replace(ways=ways, rounds=rounds), problems)
    shared: dict[str, Any] = {}
    with Lateness() as lateness:
        for way in (OURS, *ways):
            shared |= measured("shared", size.shared._replace(ways=(way,)), problems, of=way)
    late = lateness.found()
    idle = measured("idle", size.idle, problems)
    epoch = measured("epoch", size.epoch, problems)
    ratios = {**of_calls(calls), **of_shares(shared), **of_idle(idle), "epoch_us": epoch.get("epoch_us")}
    ratios["machine_late_p999_ms"] = late["p99.9"]
    raw = {"lateness_ms": late, "rounds": rounds, "size": size._asdict(), "calls": calls, "shared": shared, "idle": idle, "epoch": epoch}
    return Report("limits", GOALS, ratios, raw, problems)


def not_here(ways: tuple[str, ...]) -> dict[str, str]:
    """Ways that cannot be measured, and what to install."""
    server = redis_missing()
    return {**({way: server for way in ways if way in ON_REDIS} if server else {}), **missing(ways)}


def measured(part: str, size: Any, problems: list[str], *, of: str = "") -> Found:
    """Nothing if it broke off; the others may be good all the same."""
    show_progress(f"{part} {of}")
    try:
        return apart(part, size)
    except NeverHappened as error:
        problems.append(f"{of}: {error}" if of else str(error))
        return {}


def of_calls(found: Mapping[str, Sequence[float]]) -> dict[str, float | None]:
    best: dict[str, float | None] = {name: min(found[name]) if found.get(name) else None for name in CALLS}
    return {
        **best,
        "redis_times": _times(best["redis_lua_async_us"], best["try_acquire_us"]),
        "redis_sync_times": _times(best["redis_lua_us"], best["try_acquire_sync_us"]),
    }


def _times(theirs: float | None, ours: float | None) -> float | None:
    return None if ours is None or theirs is None else theirs / ours


def of_shares(found: Mapping[str, Found]) -> dict[str, float | None]:
    """Ours without a word before it. Where nothing can be killed, nothing was kept."""
    numbers: dict[str, float | None] = {}
    for way in (OURS, *PEERS):
        of_way, before = found.get(way, {}), "" if way == OURS else f"{way}_"
        numbers |= {f"{before}{name}": of_way.get(key) for name, key in SHARES.items()}
        if way in (OURS, *ON_REDIS):
            numbers[f"{before}kept_after_kill"] = min((kill["kept"] for kill in of_way.get("kills", {}).values()), default=None)
    return numbers


def of_idle(found: Found) -> dict[str, float | None]:
    return {
        "idle_core_share": found.get("core_share"),
        "idle_added_core_share": found.get("added_core_share"),
        "idle_packets_s": found.get("packets_s"),
        "rss_kib_per_limit": found.get("rss_kib_per_limit"),
    }
