"""What one permit costs the caller, for `limits`: ours in CPU time of one thread, those of others until they answer.

    try_acquire_us, try_acquire_sync_us   a permit is there: the process takes it
    ..._refused_us                        none is there: it is said at once, and counted as wanted
    acquire_us                            ``await limit.acquire()`` of a permit that is there, in an event loop
    redis_lua_us, redis_lua_async_us      one look at the token bucket on Redis, permits there: p50 of wall-clock
    limits_us, pyrate_redis_us            the same look of these libraries at Redis, blocking
    pyrate_memory_us, aiolimiter_us       a permit of theirs that is there, CPU time

Contestants take turns, and each keeps its best round.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.agent_fleet import lone_agent
from benchmarks.harness import show_progress
from benchmarks.limits_fleet import Redis
from benchmarks.limits_ways import KEY, asynchronous_client, blocking_client, lua
from benchmarks.ring_fleet import NeverHappened, now

RATE = 20_000.0  # per second: what comes in during a round is little beside what is taken
BURST = 1e6
SPARE = 1.25  # times the permits of a round, that come in before it
GROUP = "bench"
PLENTY = 100_000_000  # per second, for libraries without a burst


class Calls(NamedTuple):
    """How much of it."""

    ways: tuple[str, ...] = ()  # of others
    rounds: int = 7
    permits: int = 20_000  # of ours, per round
    looks: int = 500  # at Redis, per round


Contestant = Callable[[], float]  # microseconds of one round


def measure(size: Calls, folder: Path) -> dict[str, Any]:
    """The rounds of each contestant; numbers are made of them where they are judged."""
    with ExitStack() as stack:
        contestants: dict[str, Contestant] = {}
        contestants |= stack.enter_context(ours(size, folder / "agent"))
        if {"redis_lua", "limits", "pyrate_redis"} & {*size.ways}:
            contestants |= stack.enter_context(on_redis(size, folder))
        contestants |= stack.enter_context(in_memory(size))
        found: dict[str, list[float]] = {name: [] for name in contestants}
        for number in range(size.rounds):
            for name, contestant in contestants.items():
                show_progress(f"round {number + 1} of {size.rounds}: {name}")
                found[name].append(contestant())
    return found


@contextmanager
def ours(size: Calls, folder: Path) -> Iterator[dict[str, Contestant]]:
    """Both clients at one agent."""
    from holdfast import sync

    loop = asyncio.new_event_loop()
    with ExitStack() as stack:
        agent = stack.enter_context(lone_agent(folder))
        agent.until_it_answers()
        group = stack.enter_context(sync.join(GROUP, agent=agent.socket))
        blocking = group.limit("blocking", rate=RATE, burst=BURST)
        other, asynchronous = loop.run_until_complete(_asynchronous(agent.socket))
        blocking.ready(60.0)

        fill = SPARE * size.permits / RATE

        def asynchronous_round() -> float:
            loop.run_until_complete(asyncio.sleep(fill))
            return _tried(asynchronous.try_acquire, size.permits, taken=True)

        def blocking_round() -> float:
            time.sleep(fill)
            return _tried(blocking.try_acquire, size.permits, taken=True)

        def acquire_round() -> float:
            loop.run_until_complete(asyncio.sleep(fill))
            return loop.run_until_complete(_acquired(asynchronous.acquire, size.permits))

        def refused_round() -> float:
            while asynchronous.try_acquire():
                pass
            return _tried(asynchronous.try_acquire, size.permits, taken=False)

        try:
            yield {
                "try_acquire_us": asynchronous_round,
                "try_acquire_sync_us": blocking_round,
                "acquire_us": acquire_round,
                "try_acquire_refused_us": refused_round,
            }
        finally:
            loop.run_until_complete(other.leave())
            loop.close()


@contextmanager
def on_redis(size: Calls, folder: Path) -> Iterator[dict[str, Contestant]]:
    """One server, asked by blocking clients and by one for asyncio."""
    redis, loop = Redis(folder), asyncio.new_event_loop()
    try:
        redis.begin()
        with blocking_client(redis.port) as client:
            given: dict[str, Any] = {"keys": [KEY], "args": [PLENTY, PLENTY]}
            found: dict[str, Contestant] = {}
            if "redis_lua" in size.ways:
                script, other = lua(client), asynchronous_client(redis.port)
                again = lua(other)
                found["redis_lua_us"] = lambda: _looked(lambda: script(**given), size.looks)
                found["redis_lua_async_us"] = lambda: loop.run_until_complete(_looked_in_loop(lambda: again(**given), size.looks))
            if "limits" in size.ways:
                hit = _limits(redis.port)
                found["limits_us"] = lambda: _looked(hit, size.looks)
            if "pyrate_redis" in size.ways:
                tried = _pyrate(client)
                found["pyrate_redis_us"] = lambda: _looked(tried, size.looks)
            yield found
    finally:
        loop.close()
        redis.end()


@contextmanager
def in_memory(size: Calls) -> Iterator[dict[str, Contestant]]:
    loop = asyncio.new_event_loop()
    found: dict[str, Contestant] = {}
    if "pyrate_memory" in size.ways:
        from pyrate_limiter import Duration, InMemoryBucket, Limiter, Rate

        limiter: Any = Limiter(InMemoryBucket([Rate(PLENTY, Duration.SECOND)]))
        found["pyrate_memory_us"] = lambda: _tried(lambda: limiter.try_acquire(KEY, blocking=False), size.looks, taken=True)
    if "aiolimiter" in size.ways:
        from aiolimiter import AsyncLimiter

        found["aiolimiter_us"] = lambda: loop.run_until_complete(_acquired(AsyncLimiter(PLENTY, 1.0).acquire, size.looks))
    try:
        yield found
    finally:
        loop.close()


async def _asynchronous(socket: str) -> tuple[Any, Any]:
    import holdfast

    group = await holdfast.join(GROUP, agent=socket)
    limit = group.limit("asynchronous", rate=RATE, burst=BURST)
    await limit.ready(60.0)
    return group, limit


def _limits(port: int) -> Callable[[], Any]:
    from limits import RateLimitItemPerSecond
    from limits.storage import storage_from_string
    from limits.strategies import MovingWindowRateLimiter

    limiter: Any = MovingWindowRateLimiter(storage_from_string(f"redis://127.0.0.1:{port}"))
    item = RateLimitItemPerSecond(1000)  # a window keeps as many instants
    return lambda: limiter.hit(item, KEY)


def _pyrate(client: Any) -> Callable[[], Any]:
    from pyrate_limiter import Duration, Limiter, Rate, RedisBucket

    limiter: Any = Limiter(RedisBucket.init([Rate(1000, Duration.SECOND)], client, f"{KEY}-pyrate"))
    return lambda: limiter.try_acquire(KEY, blocking=False)


def _tried(take: Callable[[], bool], count: int, *, taken: bool) -> float:
    """CPU microseconds of one; all of them must have gone, or none."""
    rounds = range(count)
    began, went = time.process_time(), 0
    for _ in rounds:
        went += take()
    took = time.process_time() - began
    if went != count if taken else went > count / 4:
        raise NeverHappened(f"{went} of {count} permits were there")
    return took / count * 1e6


async def _acquired(acquire: Callable[[], Awaitable[None]], count: int) -> float:
    began = time.process_time()
    for _ in range(count):
        await acquire()
    return (time.process_time() - began) / count * 1e6


def _looked(look: Callable[[], Any], count: int) -> float:
    """The median, in microseconds of wall-clock: what a caller waits."""
    took = []
    for _ in range(count):
        began = now()
        look()
        took.append(now() - began)
    return median(took) * 1e6


async def _looked_in_loop(look: Callable[[], Awaitable[Any]], count: int) -> float:
    took = []
    for _ in range(count):
        began = now()
        await look()
        took.append(now() - began)
    return median(took) * 1e6
