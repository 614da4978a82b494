"""Ways to keep eight processes below one rate, for `limits`, each used as its own documentation says.

    holdfast        ``group.limit`` of the client for asyncio, as it comes
    redis_lua       a token bucket as a Lua script on one Redis, over redis-py for asyncio; it is told how long to sleep
    limits          the moving window of ``limits`` on Redis, over redis-py for asyncio; refused callers ask again
    pyrate_redis    pyrate-limiter with its Redis bucket, which waits by itself
    pyrate_memory   pyrate-limiter in the process: it knows no other process, so each gets the n-th part
    aiolimiter      the same

Callers of one process take turns where the library does not do that itself: so they are served in their order, as ours are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Protocol

KEY = "api"
POLL_INTERVAL = 0.005  # seconds: ``limits`` does not say when to ask again
ASK_TIMEOUT = 2.0  # seconds, of redis-py
NEEDED: Mapping[str, tuple[str, str]] = {  # way: module, and what pip calls it
    "redis_lua": ("redis", "redis"),
    "limits": ("limits", "limits"),
    "pyrate_redis": ("pyrate_limiter", "pyrate-limiter"),
    "pyrate_memory": ("pyrate_limiter", "pyrate-limiter"),
    "aiolimiter": ("aiolimiter", "aiolimiter"),
}
ON_REDIS = ("redis_lua", "limits", "pyrate_redis")
PEERS = (*NEEDED,)
OURS = "holdfast"
BUCKET = """
local at = redis.call('TIME')
local now = at[1] + at[2] / 1000000
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local tokens = math.min(burst, (tonumber(kept[1]) or burst) + (now - (tonumber(kept[2]) or now)) * rate)
if tokens < 1 then
    return tostring((1 - tokens) / rate)
end
redis.call('HSET', KEYS[1], 'tokens', tokens - 1, 'at', now)
redis.call('EXPIRE', KEYS[1], 60)
return '0'
"""


class Way(Protocol):
    """A limit of one process. ``start`` once, in the loop that uses it."""

    async def start(self) -> None: ...
    async def acquire(self) -> None: ...


class Holdfast:
    """A client of an agent on this machine."""

    def __init__(self, *, agent: str, group: str, rate: float, burst: float) -> None:
        self._agent, self._group_name, self._rate, self._burst = agent, group, rate, burst

    async def start(self) -> None:
        import holdfast

        self._group = await holdfast.join(self._group_name, agent=self._agent)
        self._limit = self._group.limit(KEY, rate=self._rate, burst=self._burst)
        await self._limit.ready(60.0)

    async def acquire(self) -> None:
        await self._limit.acquire()


class RedisLua:
    """One script, one round trip per look."""

    def __init__(self, *, port: int, rate: float, burst: float) -> None:
        self._port, self._given = port, [rate, burst]
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        self._script = lua(asynchronous_client(self._port))

    async def acquire(self) -> None:
        async with self._turn:
            while wait := float(await self._script(keys=[KEY], args=self._given)):  # noqa: ASYNC110 - another process has them
                await asyncio.sleep(wait)


class Limits:
    """The moving window, which is the strictest of its three."""

    def __init__(self, *, port: int, rate: float, burst: float) -> None:
        del burst  # It has none.
        self._port, self._rate = port, rate
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        from limits import RateLimitItemPerSecond
        from limits.aio.strategies import MovingWindowRateLimiter
        from limits.storage import storage_from_string

        storage = storage_from_string(f"async+redis://127.0.0.1:{self._port}", implementation="redispy")
        self._limiter: Any = MovingWindowRateLimiter(storage)
        self._item = RateLimitItemPerSecond(round(self._rate))

    async def acquire(self) -> None:
        async with self._turn:
            while not await self._limiter.hit(self._item, KEY):  # noqa: ASYNC110 - as above
                await asyncio.sleep(POLL_INTERVAL)


class PyrateRedis:
    """It waits by itself."""

    def __init__(self, *, port: int, rate: float, burst: float) -> None:
        del burst
        self._port, self._rate = port, rate

    async def start(self) -> None:
        from pyrate_limiter import Duration, Limiter, Rate, RedisBucket

        made: Any = RedisBucket.init([Rate(round(self._rate), Duration.SECOND)], asynchronous_client(self._port), KEY)
        self._limiter: Any = Limiter(await made)

    async def acquire(self) -> None:
        while not await self._limiter.try_acquire_async(KEY):  # noqa: ASYNC110 - as above
            await asyncio.sleep(POLL_INTERVAL)


class PyrateMemory:
    """The n-th part of the rate."""

    def __init__(self, *, rate: float, burst: float, processes: int) -> None:
        del burst
        self._rate = rate / processes

    async def start(self) -> None:
        from pyrate_limiter import Duration, InMemoryBucket, Limiter, Rate

        self._limiter: Any = Limiter(InMemoryBucket([Rate(round(self._rate), Duration.SECOND)]))

    async def acquire(self) -> None:
        while not await self._limiter.try_acquire_async(KEY):  # noqa: ASYNC110 - as above
            await asyncio.sleep(POLL_INTERVAL)


class AioLimiter:
    """As above."""

    def __init__(self, *, rate: float, burst: float, processes: int) -> None:
        self._rate, self._burst = rate / processes, burst / processes

    async def start(self) -> None:
        from aiolimiter import AsyncLimiter

        self._limiter: Any = AsyncLimiter(max(1.0, self._burst), max(1.0, self._burst) / self._rate)

    async def acquire(self) -> None:
        await self._limiter.acquire()


WAYS: Mapping[str, type[Any]] = {
    OURS: Holdfast,
    "redis_lua": RedisLua,
    "limits": Limits,
    "pyrate_redis": PyrateRedis,
    "pyrate_memory": PyrateMemory,
    "aiolimiter": AioLimiter,
}


def asynchronous_client(port: int) -> Any:
    """It does not repeat what fails: a caller that is told of it may do something else."""
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    return Redis(host="127.0.0.1", port=port, socket_timeout=ASK_TIMEOUT, retry=Retry(NoBackoff(), 0))


def blocking_client(port: int) -> Any:
    from redis import Redis

    return Redis(host="127.0.0.1", port=port, socket_timeout=ASK_TIMEOUT)


def lua(client: Any) -> Any:
    """The token bucket, callable; of a blocking client or of one for asyncio."""
    return client.register_script(BUCKET)


def missing(ways: tuple[str, ...]) -> dict[str, str]:
    """Ways that cannot be measured here, and what to install."""
    found = {way: f"{name} is not here: pip install {name}" for way in ways for module, name in [NEEDED[way]] if find_spec(module) is None}
    on_redis = {way: "its client redis-py is not here: pip install redis" for way in ways if way in ON_REDIS and find_spec("redis") is None}
    return {**on_redis, **found}
