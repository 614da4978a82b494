"""Leadership over HTTP: ``GET /v1/leaders``, the panel of leaders, metrics.  docs/http.md."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
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
    from holdfast.features.leadership.metrics import LeadershipSource
    from holdfast.local.leaders import LeaderView


class LeaderAnswer(Struct, frozen=True):
    """Who leads one name: a hint. Only the leader's own deadline says that it may act."""

    name: str
    leader: str | None  # None: it was led, and no leader is known now
    boot: int | None
    me: bool  # the agent that answers
    token: int  # of that term, or of the last one
    since: float  # wall clock when this agent heard of it
    terms: int  # that this agent heard of
    vacant: float | None  # seconds for which no leader was known before this term; None: there was none before it
    candidates: tuple[str, ...]  # agents with a client that asks for it, in the order in which they are asked to lead


class LeadTiming(Struct, frozen=True):
    """The numbers of leadership, in seconds."""

    heartbeat: float
    term: float  # how long a term is promised at a time, without a grace
    bound: float | None  # from the death of a leader until the next one leads; None: there is no other member


class LeadersAnswer(Struct, frozen=True):
    """Who leads what, as this agent knows it; ``why`` says what is missing when nothing can be led."""

    version: int  # grows with every change
    leaders: tuple[LeaderAnswer, ...]
    timing: LeadTiming | None
    why: str


ROUTES = (Route("GET", "/v1/leaders", "leaders", "Who leads what, as this agent knows it: a hint.", LeadersAnswer),)


class LeadershipHttp(HttpPart):
    """Everything here only looks."""

    routes = ROUTES
    page = Path(__file__).parent / "page"

    def __init__(self, web: Web, running: LeadershipSource | None, why: str = "") -> None:
        """``running`` is None where leadership is missing; then ``why`` says which setting is."""
        self._web, self._running, self._why = web, running, why
        self.lists = (Lists(self._version, self._lines, self.answer, event="leaders"),)

    async def leaders(self, request: Request) -> Response:
        return self._web.again("leaders", self.answer)  # type: ignore[no-any-return]

    def metrics(self) -> Iterable[Metric]:
        if self._running is None:
            return ()
        from holdfast.features.leadership.metrics import of_leadership

        return of_leadership(self._running)

    def answer(self) -> LeadersAnswer:
        running = self._running
        if running is None:
            return LeadersAnswer(0, (), None, self._why)
        from holdfast.features.leadership.timing import takeover_bound

        config, board = running.config, running.leaders
        bound = takeover_bound(config, len(running.view().members))
        timing = LeadTiming(config.heartbeat, config.term_length(0.0), bound if isfinite(bound) else None)
        return LeadersAnswer(board.version, tuple(_leader(running, line) for line in board.views), timing, "")

    def _version(self) -> int:
        return 0 if self._running is None else self._running.leaders.version

    def _lines(self) -> tuple[LeaderView, ...]:
        return () if self._running is None else self._running.leaders.views


def _leader(running: LeadershipSource, line: LeaderView) -> LeaderAnswer:
    return LeaderAnswer(
        name=line.name,
        leader=None if line.leader is None else line.leader.name,
        boot=None if line.leader is None else line.leader.boot,
        me=line.leader == running.me,
        token=line.token,
        since=line.since,
        terms=running.leaders.terms(line.name),
        vacant=running.leaders.vacant(line.name),
        candidates=tuple(life.name for life in running.leadership.candidates(line.name)),
    )
