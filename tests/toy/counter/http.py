"""Counters over HTTP: ``GET /v1/counters``, a panel and a metric."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from holdfast.agent.feature import HttpPart
from holdfast.agent.observe.metrics import Metric, labelled
from holdfast.agent.observe.openapi import Route
from holdfast.agent.observe.sse import Lists

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from holdfast.agent.feature import Web
    from tests.toy.counter.protocol.counters import Counters


class CountersAnswer(Struct, frozen=True):
    """All counters, as this agent knows them."""

    counters: dict[str, int]


ROUTES = (Route("GET", "/v1/counters", "counter_values", "All counters, as this agent knows them.", CountersAnswer),)


class CounterHttp(HttpPart):
    """It only looks."""

    routes = ROUTES
    page = Path(__file__).parent / "page"

    def __init__(self, web: Web, counters: Counters) -> None:
        self._web, self._counters = web, counters
        self.lists = (Lists(lambda: counters.version, lambda: tuple(counters.values), self._answer, event="counters"),)

    async def counter_values(self, request: Request) -> Response:
        del request
        return self._web.again("counters", self._answer)  # type: ignore[no-any-return]

    def metrics(self) -> Iterable[Metric]:
        values = {name: float(value) for name, value in self._counters.values.items()}
        yield labelled("counter_value", "gauge", "Value of each counter, as this agent knows it.", "name", values)

    def _answer(self) -> CountersAnswer:
        return CountersAnswer(dict(self._counters.values))
