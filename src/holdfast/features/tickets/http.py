"""Tickets over HTTP: ``GET /v1/tickets``, the panel of pools, metrics.  docs/http.md."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from holdfast.agent.feature import HttpPart
from holdfast.agent.observe.openapi import Route
from holdfast.agent.observe.sse import Lists

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from holdfast.agent.feature import Web
    from holdfast.agent.observe.metrics import Metric
    from holdfast.features.tickets.calls import PoolView
    from holdfast.features.tickets.metrics import TicketSource
    from holdfast.host import NodeId


class TicketAnswer(Struct, frozen=True):
    """Who holds one ticket: a hint. Only the holder's own deadline says that it may act."""

    number: int
    holder: str  # the agent whose client it is
    boot: int
    me: bool  # the agent that answers
    token: int
    metadata: dict[str, str]


class PoolAnswer(Struct, frozen=True):
    """One pool of tickets."""

    pool: str
    of: int  # tickets in it; 0: not known here
    tickets: tuple[TicketAnswer, ...]  # those that are held, by number
    here: int  # clients of this agent that hold one or ask for one
    waiting: int  # clients that are known here to wait: those, and the ones that queue at a ticket that is held here


class TicketTiming(Struct, frozen=True):
    """The numbers of tickets, in seconds."""

    lease: float
    period: float  # between two renewals
    told: float  # how long a client is told that it holds a ticket, right after a renewal


class TicketsAnswer(Struct, frozen=True):
    """Who holds which ticket, as this agent heard it; ``why`` says what is missing when nothing can be held."""

    pools: tuple[PoolAnswer, ...]
    timing: TicketTiming | None
    why: str


ROUTES = (Route("GET", "/v1/tickets", "tickets", "Who holds which ticket, as this agent heard it: a hint.", TicketsAnswer),)


class TicketHttp(HttpPart):
    """Everything here only looks."""

    routes = ROUTES
    page = Path(__file__).parent / "page"

    def __init__(self, web: Web, running: TicketSource | None, why: str = "") -> None:
        """``running`` is None where tickets are missing; then ``why`` says which setting is."""
        self._web, self._running, self._why = web, running, why
        self._number = 0
        self._seen: tuple[int, dict[str, int]] = 0, {}
        self.lists = (Lists(self._version, self._held, self.answer, event="tickets"),)

    async def tickets(self, request: Request) -> Response:
        return self._web.again("tickets", self.answer)  # type: ignore[no-any-return]

    def metrics(self) -> Iterable[Metric]:
        if self._running is None:
            return ()
        from holdfast.features.tickets.metrics import of_tickets

        return of_tickets(self._running)

    def answer(self) -> TicketsAnswer:
        running = self._running
        if running is None:
            return TicketsAnswer((), None, self._why)
        numbers = running.tickets.config
        timing = TicketTiming(numbers.lease, numbers.period, numbers.hold - numbers.margin)
        return TicketsAnswer(tuple(_pool(pool, running.me) for pool in running.pools.views()), timing, "")

    def _version(self) -> int:
        """Grows when ``answer`` has changed."""
        if self._running is not None:
            tickets = self._running.tickets
            now = tickets.cview.version, tickets.waiting
            if now != self._seen:
                self._seen, self._number = now, self._number + 1
        return self._number

    def _held(self) -> range:
        """As many lines as there are tickets that are held."""
        return range(0 if self._running is None else sum(map(len, self._running.tickets.cview.pools.values())))


def _pool(pool: PoolView, me: NodeId) -> PoolAnswer:
    tickets = (
        TicketAnswer(each.number, each.agent.name, each.agent.boot, each.agent == me, each.token, dict(each.metadata))
        for each in pool.holders
    )
    return PoolAnswer(pool.pool, pool.of, tuple(tickets), pool.here, pool.waiting)
