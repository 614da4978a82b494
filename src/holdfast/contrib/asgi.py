"""Limits for a web app on many hosts: go on, wait, or 429 with ``Retry-After``.  docs/howto-limit-fastapi.md.

``LimitMiddleware`` is for any ASGI app: Starlette, FastAPI, or a plain callable. A limit counts for the whole group, so
it does not matter which host a request reaches.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import ceil
from typing import Any, cast

from holdfast import ConfigError, Timeout, Unavailable
from holdfast.contrib.limiting import AsyncGroup, AsyncLimiter, check_positive, check_seconds, wait_for

__all__ = ["LimitMiddleware", "Rule", "client_host", "header", "state_group"]

LIMITS_MAX = 256  # of a group; a middleware with more of them would be refused by name while it serves
NAME_BYTES_MAX = 120  # of a rule: a limit has 128, and the number of a slot comes behind
KEPT_BYTES_MAX = 1 << 16  # of a body, while its request waits: a server stops reading about there as well
KEPT_MESSAGES_MAX = 64  # the same for a body that arrives byte by byte
BODY = b"Too Many Requests"

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def header(name: str) -> Callable[[Scope], str | None]:
    """A key: the value of this header, None without it."""
    wanted = name.lower().encode("latin-1")

    def key(scope: Scope) -> str | None:
        return next((value.decode("latin-1") for each, value in scope["headers"] if each == wanted), None)

    return key


def client_host(scope: Scope) -> str | None:
    """A key: the address that the server says the request comes from. Behind a proxy the server has to be told to read
    the proxy's header (``uvicorn --proxy-headers``), or all requests have one key."""
    client = scope.get("client")
    return None if client is None else str(client[0])


def state_group(scope: Scope) -> AsyncGroup:
    """The group that the lifespan of the app yielded: ``yield {"group": group}``."""
    group = scope.get("state", {}).get("group")
    if group is None:
        raise ConfigError("group: the lifespan of the app yielded none; accepted is `yield {'group': group}`, or group= of LimitMiddleware")
    return cast(AsyncGroup, group)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A limit for some of the requests; the first rule that fits counts.

    ``path`` is one path, or the beginning of paths and ``*``. With ``key`` there are ``keys`` limits of this rate, and a
    key has the one that its hash says, on every host the same: a client that invents keys makes no further limits, and two
    keys may share one. A request waits for at most ``max_wait`` seconds; 0: it is refused at once. ``options`` are those of
    ``group.limit``, as ``{"policy": "exact", "fleet": 6}``.
    """

    name: str
    rate: float
    burst: float
    path: str = "*"
    methods: Collection[str] | None = None
    key: Callable[[Scope], str | None] | None = None
    keys: int = 64
    cost: float | Callable[[Scope], float] = 1.0
    max_wait: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < len(self.name.encode()) <= NAME_BYTES_MAX:
            raise ConfigError(f"name: {len(self.name.encode())} bytes; accepted are 1 to {NAME_BYTES_MAX}")
        if not (self.path.startswith("/") or self.path == "*") or "*" in self.path[:-1]:
            raise ConfigError("path: it begins with / or is *; accepted are '/search', '/users/*' and '*'")
        if self.key is not None and not 1 <= self.keys <= LIMITS_MAX:
            raise ConfigError(f"keys: {self.keys}; accepted are 1 to {LIMITS_MAX}, the limits that a group may have")
        check_positive(self.rate, "rate")
        check_positive(self.burst, "burst")
        check_seconds(self.max_wait, "max_wait")
        if not callable(self.cost):
            check_positive(self.cost, "cost")

    @property
    def limits(self) -> int:
        return 1 if self.key is None else self.keys

    def fits(self, scope: Scope) -> bool:
        path: str = scope["path"]
        found = path.startswith(self.path[:-1]) if self.path.endswith("*") else path == self.path
        return found and (self.methods is None or scope["method"] in self.methods)

    def limit_of(self, scope: Scope) -> str:
        """The name of the limit that counts for this request."""
        if self.key is None:
            return self.name
        digest = blake2b((self.key(scope) or "").encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return f"{self.name}/{int.from_bytes(digest) % self.keys}"

    def cost_of(self, scope: Scope) -> float:
        return self.cost(scope) if callable(self.cost) else self.cost


class Line:
    """One limit, and the cost of this process' requests that wait for it."""

    def __init__(self, limiter: AsyncLimiter) -> None:
        self.limiter = limiter
        self.waiting_cost = 0.0


class LimitMiddleware:
    """Lets HTTP requests through at the rates of the rules. What is no HTTP request, and what no rule fits, goes through at once.

    ``group`` is a group that was joined, or a function of the scope that finds it when a request needs it.
    """

    def __init__(self, app: App, *, rules: Sequence[Rule], group: AsyncGroup | Callable[[Scope], AsyncGroup] = state_group) -> None:
        names = [rule.name for rule in rules]
        if len({*names}) < len(names):
            raise ConfigError("rules: two of them have one name; accepted is a name for each")
        if (limits := sum(rule.limits for rule in rules)) > LIMITS_MAX:
            raise ConfigError(f"rules: {limits} limits, counted with their keys; accepted are {LIMITS_MAX}, as many as a group may have")
        self._app, self._rules, self._given = app, (*rules,), group
        self._group: AsyncGroup | None = None
        self._lines: dict[str, Line] = {}  # at most LIMITS_MAX

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rule = next((rule for rule in self._rules if rule.fits(scope)), None) if scope["type"] == "http" else None
        if rule is None:
            return await self._app(scope, receive, send)
        line, cost = self._line(rule, scope), rule.cost_of(scope)
        if rule.max_wait:
            return await self._wait(line, cost, rule.max_wait, scope, receive, send)
        if line.limiter.try_acquire(cost):
            return await self._app(scope, receive, send)
        return await refuse(send, line, cost)

    async def _wait(self, line: Line, cost: float, max_wait: float, scope: Scope, receive: Receive, send: Send) -> None:
        inbox = Inbox(receive)
        try:
            if await admitted(line, cost, max_wait, inbox):
                await self._app(scope, inbox, send)
            elif not inbox.gone:
                await refuse(send, line, cost)
        finally:
            inbox.close()

    def _line(self, rule: Rule, scope: Scope) -> Line:
        group = self._given(scope) if callable(self._given) else self._given
        if group is not self._group:  # Another lifespan: what was made of the former group has ended with it.
            self._group, self._lines = group, {}
        name = rule.limit_of(scope)
        if name not in self._lines:
            self._lines[name] = Line(group.limit(name, rate=rule.rate, burst=rule.burst, **rule.options))
        return self._lines[name]


class Inbox:
    """``receive`` of a request, read while the request waits: so a client that hangs up is seen. What it sent is kept for the app."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept: deque[Message] = deque()
        self._bytes = 0
        self._next: asyncio.Future[Message] | None = None
        self.gone = False

    async def __call__(self) -> Message:
        if self._kept:
            return self._kept.popleft()
        return await (self._receive() if self._next is None else self._read())

    async def until_gone(self) -> None:
        """Returns when the client hung up. A longer body than is kept is left to the server; then a hang-up is seen later, by the app."""
        while self._bytes < KEPT_BYTES_MAX and len(self._kept) < KEPT_MESSAGES_MAX:
            message = await self._read()
            self._kept.append(message)
            self._bytes += len(message.get("body", b""))
            if message["type"] == "http.disconnect":
                self.gone = True
                return
        await asyncio.get_running_loop().create_future()

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()

    async def _read(self) -> Message:
        """One read at a time. A caller that is cancelled leaves it to the next one, so no message is lost."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._receive())
        message = await asyncio.shield(self._next)
        self._next = None
        return message


async def admitted(line: Line, cost: float, max_wait: float, inbox: Inbox) -> bool:
    """False: not in time, no room in the queue, or the client hung up."""
    tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(line.limiter.acquire(cost, timeout=max_wait))]
    line.waiting_cost += cost
    try:
        await asyncio.sleep(0)  # What may go at once has gone then, without a look for a client that hangs up.
        if not tasks[0].done():
            tasks.append(asyncio.ensure_future(inbox.until_gone()))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            tasks[0].result()
            return True
        tasks[1].result()
        return False
    except (Timeout, Unavailable):
        return False
    finally:
        line.waiting_cost -= cost
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def refuse(send: Send, line: Line, cost: float) -> None:
    seconds = ceil(wait_for(line.limiter.share, line.waiting_cost + cost))
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(BODY)).encode()),
        (b"retry-after", str(seconds).encode()),
    ]
    await send({"type": "http.response.start", "status": 429, "headers": headers})
    await send({"type": "http.response.body", "body": BODY})
