"""Transports for httpx that keep to a limit of the group, and make all of it slower on a 429.  docs/howto-limit-api.md.

    httpx.AsyncClient(transport=AsyncLimitTransport(group.limit("openai", rate=500, burst=50)))

Each request that goes out waits for the limit, each hop of a redirect too. On a 429 the transport reads ``Retry-After``,
calls ``penalize``, waits, and sends the request again, all of it bounded.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count

from holdfast import AgentLost, ConfigError, ExtraMissing, Timeout, Unavailable
from holdfast.contrib.limiting import AsyncLimiter, Limiter, check_positive, check_seconds

try:
    import httpx
except ImportError as error:  # This file has the name of what it imports: without the extra the import fails here.
    raise ExtraMissing("holdfast.contrib.httpx needs httpx: pip install '.[httpx]' in a clone of Holdfast") from error

__all__ = ["AsyncLimitTransport", "LimitTransport", "retry_after"]

RETRIES_MAX = 10
BACKOFF = 1.0  # seconds before the first repetition where the server names none; twice as long each time
OVERLAP = 1.0  # seconds: a penalty that ends so little later than the one before is none worth telling the group

_log = logging.getLogger("holdfast.contrib.httpx")

Cost = float | Callable[[httpx.Request], float]


def retry_after(response: httpx.Response) -> float | None:
    """Seconds that the server asks to wait, None if it does not say. A date counts from the server's own ``Date``, as clocks differ."""
    text = response.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    until, at = _date(text), _date(response.headers.get("date", ""))
    if until is None:
        return None
    return max(0.0, (until - (at or datetime.now(UTC))).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


class _Plan:
    """What both transports decide alike: what a request costs, what a response asks for, whether the request is sent again."""

    def __init__(
        self, *, cost: Cost, max_wait: float | None, retries: int, wait_max: float, factor: float, statuses: Collection[int]
    ) -> None:
        if not 0 <= retries <= RETRIES_MAX:
            raise ConfigError(f"retries: {retries}; accepted are 0 to {RETRIES_MAX}")
        if not 0 < factor <= 1:
            raise ConfigError(f"factor: {factor}; accepted is a number above 0, and 1 at most")
        if max_wait is not None:
            check_seconds(max_wait, "max_wait")
        check_seconds(wait_max, "wait_max")
        if not callable(cost):
            check_positive(cost, "cost")
        self._cost, self._retries, self._wait_max, self._statuses = cost, retries, wait_max, frozenset(statuses)
        self.max_wait, self.factor = max_wait, factor
        self._penalized_until = 0.0

    def cost(self, request: httpx.Request) -> float:
        return self._cost(request) if callable(self._cost) else self._cost

    def asked(self, response: httpx.Response, attempt: int) -> float | None:
        """Seconds to wait before the next request; None: the server has no objection."""
        if response.status_code not in self._statuses:
            return None
        told = retry_after(response)
        return BACKOFF * 2**attempt if told is None else told

    def penalty(self, seconds: float) -> float:
        """Seconds for which the group shall be slower; 0: it is already. Of a hundred requests that are refused at once, one tells it."""
        until = time.monotonic() + min(seconds, self._wait_max)
        if until < self._penalized_until + OVERLAP:
            return 0.0
        self._penalized_until = until
        return min(seconds, self._wait_max)

    def again(self, request: httpx.Request, attempt: int, seconds: float) -> bool:
        """A body that is made while it is sent cannot be sent twice."""
        return attempt < self._retries and seconds <= self._wait_max and isinstance(request.stream, httpx.ByteStream)


class AsyncLimitTransport(httpx.AsyncBaseTransport):
    """For ``httpx.AsyncClient``. ``transport`` sends what may go; it is closed with this one, the limiter is not.

    ``cost`` of a request is a number or a function of it. A request waits ``max_wait`` seconds for the limit, None: as
    long as it takes; then ``LimitTimeout`` is raised. A response with one of ``statuses`` makes the whole group slower, by
    ``factor`` and for as long as the server says, and the request is sent again up to ``retries`` times. Where that would
    be after more than ``wait_max`` seconds, or the body cannot be sent twice, the response is returned as it is.
    """

    def __init__(
        self,
        limiter: AsyncLimiter,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        cost: Cost = 1.0,
        max_wait: float | None = None,
        retries: int = 2,
        wait_max: float = 60.0,
        factor: float = 0.5,
        statuses: Collection[int] = (429,),
    ) -> None:
        self._limiter = limiter
        self._plan = _Plan(cost=cost, max_wait=max_wait, retries=retries, wait_max=wait_max, factor=factor, statuses=statuses)
        self._transport = transport or httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        for attempt in count():
            await self._limiter.acquire(self._plan.cost(request), timeout=self._plan.max_wait)
            response = await self._transport.handle_async_request(request)
            seconds = self._plan.asked(response, attempt)
            if seconds is None:
                return response
            await self._penalize(seconds)
            if not self._plan.again(request, attempt, seconds):
                return response
            await response.aclose()
            await asyncio.sleep(seconds)
        raise AssertionError("count() does not end")

    async def _penalize(self, seconds: float) -> None:
        if penalty := self._plan.penalty(seconds):
            try:
                await self._limiter.penalize(penalty, factor=self._plan.factor)
            except (AgentLost, Timeout, Unavailable) as error:
                _log.warning("the group was not told to be slower: %s", error)

    async def aclose(self) -> None:
        await self._transport.aclose()


class LimitTransport(httpx.BaseTransport):
    """For ``httpx.Client``, with a limiter of ``holdfast.sync``: as ``AsyncLimitTransport``, and may be used by many threads."""

    def __init__(
        self,
        limiter: Limiter,
        transport: httpx.BaseTransport | None = None,
        *,
        cost: Cost = 1.0,
        max_wait: float | None = None,
        retries: int = 2,
        wait_max: float = 60.0,
        factor: float = 0.5,
        statuses: Collection[int] = (429,),
    ) -> None:
        self._limiter = limiter
        self._plan = _Plan(cost=cost, max_wait=max_wait, retries=retries, wait_max=wait_max, factor=factor, statuses=statuses)
        self._transport = transport or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for attempt in count():
            self._limiter.acquire(self._plan.cost(request), timeout=self._plan.max_wait)
            response = self._transport.handle_request(request)
            seconds = self._plan.asked(response, attempt)
            if seconds is None:
                return response
            self._penalize(seconds)
            if not self._plan.again(request, attempt, seconds):
                return response
            response.close()
            time.sleep(seconds)
        raise AssertionError("count() does not end")

    def _penalize(self, seconds: float) -> None:
        if penalty := self._plan.penalty(seconds):
            try:
                self._limiter.penalize(penalty, factor=self._plan.factor)
            except (AgentLost, Timeout, Unavailable) as error:
                _log.warning("the group was not told to be slower: %s", error)

    def close(self) -> None:
        self._transport.close()
