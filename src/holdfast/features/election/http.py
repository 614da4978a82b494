"""Elections over HTTP: ``GET /v1/elections``, the panel, metrics.  docs/http.md; spec: election 9, 10."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from holdfast.agent.feature import HttpPart
from holdfast.agent.observe.openapi import Route
from holdfast.agent.observe.sse import Lists
from holdfast.local.leaders import ACTIVE, ELECTION, LeaderView

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from holdfast.agent.feature import Web
    from holdfast.agent.observe.metrics import Metric
    from holdfast.features.election.metrics import ElectionSource
    from holdfast.features.election.protocol.shown import Account
    from holdfast.host import NodeId

SHOWN_MAX = 64  # members in one account: an election of a thousand members asks 150


class AnswerUsed(Struct, frozen=True):
    """One answer that an election used, in the order of arrival."""

    member: str
    after: float  # seconds since it began
    candidates: tuple[str, ...]  # best first
    excluded: dict[str, float]  # unhealthy members, with how much


class LastElection(Struct, frozen=True):
    """How the last election went that began at this agent; ``outcome`` is empty while it runs."""

    why: str
    at: float  # wall clock when it began
    took: float
    x: int
    y: int
    c: int
    f: int
    asked: dict[str, int]  # how often; at most 64
    answers: tuple[AnswerUsed, ...]  # at most 64
    excluded: dict[str, float]
    candidates: tuple[str, ...]  # those that were left, best first
    nominee: str | None
    term: int
    rounds: int
    retries: int
    outcome: str


class ElectionAnswer(Struct, frozen=True):
    """One name that is led by election, as this agent knows it: a hint."""

    name: str
    leader: str | None  # None: it was led, and no leader is known now
    boot: int | None
    me: bool  # the agent that answers leads
    state: str  # "active"; "tentative": it may not act yet; "none"
    token: int  # the term of that leader, or of the last one
    since: float  # wall clock when this agent heard of it
    listed: bool  # this agent lists the leader
    role: str  # of this agent: "follower", "tentative", "active"
    stands: bool  # a client of this agent asks for the name
    candidates: tuple[str, ...]  # as listed here, best first
    variant: str
    voters: str
    rank: tuple[str, ...]
    health: str
    c: int
    f: int
    needed: int  # acceptances that a term needs; 0: none
    acks: tuple[str, ...]  # that the own term has
    last: LastElection | None


class ElectionsAnswer(Struct, frozen=True):
    """All names; ``why`` says what is missing when nothing can be led by election."""

    version: int  # grows with every change
    elections: tuple[ElectionAnswer, ...]
    hold: float | None  # seconds that a client's deadline is ahead
    why: str


ROUTES = (
    Route("GET", "/v1/elections", "elections", "Names led by election, and how the last election of each went here.", ElectionsAnswer),
)


class ElectionHttp(HttpPart):
    """Everything here only looks."""

    routes = ROUTES
    page = Path(__file__).parent / "page"

    def __init__(self, web: Web, running: ElectionSource | None, why: str = "") -> None:
        """``running`` is None over another membership; then ``why`` says so."""
        self._web, self._running, self._why = web, running, why
        self.lists = (Lists(self._version, self._lines, self.answer, event="elections"),)

    async def elections(self, request: Request) -> Response:
        return self._web.again("elections", self.answer)  # type: ignore[no-any-return]

    def metrics(self) -> Iterable[Metric]:
        if self._running is None:
            return ()
        from holdfast.features.election.metrics import of_elections

        return of_elections(self._running)

    def answer(self) -> ElectionsAnswer:
        running = self._running
        if running is None:
            return ElectionsAnswer(0, (), None, self._why)
        board = running.board
        lines = {line.name: line for line in board.views}
        names = sorted({*lines, *running.elections.names()})
        found = tuple(_election(running, name, lines.get(name)) for name in names)
        return ElectionsAnswer(board.version, found, running.config.hold, "")

    def _version(self) -> int:
        """It grows with every change of a leader, and of how an election goes here."""
        return 0 if self._running is None else self._running.board.version + self._running.facts

    def _lines(self) -> tuple[LeaderView, ...]:
        return () if self._running is None else self._running.board.views


def _election(running: ElectionSource, name: str, line: LeaderView | None) -> ElectionAnswer:
    line = line or LeaderView(name, None, running.elections.highest(name), 0.0, ELECTION, ACTIVE)
    elections, state, manner = running.elections, running.elections.state(name), running.elections.manner(name)
    words = {} if manner is None else manner.words()
    reign, last = elections.leader(name), elections.last(name)
    return ElectionAnswer(
        name=name,
        leader=None if line.leader is None else line.leader.name,
        boot=None if line.leader is None else line.leader.boot,
        me=line.leader == running.host.me,
        state="none" if line.leader is None else line.state,
        token=line.token,
        since=line.since,
        listed=reign is not None and reign.listed,
        role="follower" if state is None else state.role.name.lower(),
        stands=state is not None and state.stands,
        candidates=tuple(life.name for life in elections.candidates(name)),
        variant=words.get("variant", ""),
        voters=words.get("voters", ""),
        rank=() if manner is None else manner.rank_names,
        health=words.get("health", ""),
        c=0 if state is None else state.c,
        f=0 if state is None else state.f,
        needed=0 if state is None else state.needed,
        acks=() if state is None else tuple(sorted(state.acks))[:SHOWN_MAX],
        last=None if last is None else _account(last, running.host.wall() - max(0.0, running.host.now - last.began_at)),
    )


def _account(last: Account, began_at: float) -> LastElection:
    answers = (
        AnswerUsed(life.name, max(0.0, used.at), tuple(each.name for each in used.candidates), _values(used.excluded))
        for life, used in list(last.answers.items())[:SHOWN_MAX]
    )
    return LastElection(
        why=last.why,
        at=began_at,
        took=last.took,
        x=last.x,
        y=last.y,
        c=last.c,
        f=last.f,
        asked={life.name: times for life, times in list(last.asked.items())[:SHOWN_MAX]},
        answers=tuple(answers),
        excluded=_values(last.excluded),
        candidates=tuple(each.name for each in last.candidates),
        nominee=None if last.nominee is None else last.nominee.name,
        term=last.term,
        rounds=last.rounds,
        retries=last.retries,
        outcome=last.outcome,
    )


def _values(excluded: Mapping[NodeId, float]) -> dict[str, float]:
    return {life.name: value for life, value in excluded.items()}
