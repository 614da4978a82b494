"""The routes of the HTTP API on starlette, served by uvicorn on the agent's loop.  docs/http.md.

``openapi.ROUTES`` is the table of the agent's own routes; each names a method of ``Handlers``. Those of a feature name methods of its
``HttpPart``. This module needs the ``http`` extra.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute

from holdfast import errors
from holdfast.agent.feature import features
from holdfast.agent.membership import Kind, kind_of
from holdfast.agent.observe import http_answers as answers
from holdfast.agent.observe import http_views as views
from holdfast.agent.observe import metrics as numbers
from holdfast.agent.observe.agent_metrics import Lateness, of_agent, resident_bytes
from holdfast.agent.observe.http_guard import Guard, Receive
from holdfast.agent.observe.http_server import PROBES, Admission, Server
from holdfast.agent.observe.openapi import EVENTS_DEFAULT, EVENTS_MAX, ROUTES, Route, document
from holdfast.agent.observe.page_files import PageFiles
from holdfast.agent.observe.sse import PULSE_INTERVAL, EventStream, Feed, Lists, Pulse
from holdfast.agent.socket.budget import Line
from holdfast.events import Internal
from holdfast.host import Timer
from holdfast.local.news import name_of

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart
    from holdfast.agent.life.agent import Agent

T = TypeVar("T")

BODY_BYTES_MAX = 64 * 1024  # as on the local socket: 32 tags of 200 bytes fit many times
TURN_TIMEOUT = 10.0  # seconds until the protocols have taken a change
KEY_CHARS_MAX = 1024
FACTS_BATCH = 256  # taken from the hub at once
KEPT_SECONDS = 0.2  # for which an answer is given again as it is: a person sees no faster, and a crowd costs no more than one
ANSWERS_MAX = 64  # answers; those with parameters are few
BEAT_INTERVAL = 1.0  # seconds between two turns of the protocols that /healthz looks for
BEAT_MISSED = 5.0  # seconds without one: the loop turns, and the protocols on it do not

STATUSES: dict[type[errors.HoldfastError], int] = {
    errors.ConfigError: 400, errors.NotAMember: 404, errors.Timeout: 504, errors.Unavailable: 503,
}  # fmt: skip
CODES = {400: "BadRequest", 404: "NotFound", 405: "MethodNotAllowed", 413: "TooLarge"}


class Handlers:
    """One method per route of the table; and what the routes of features need (``feature.Web``)."""

    def __init__(self, agent: Agent, feed: Feed, lateness: Lateness, load: Load) -> None:
        self._agent, self._feed, self._lateness, self._load = agent, feed, lateness, load
        self._kept: dict[str, tuple[float, bytes]] = {}  # answers, until when
        self._beat_kept: tuple[float, dict[str, Any]] | None = None
        self.http = http = agent.side.http(self)
        beside = (each.http(self) for each in agent.features.values() if each is not agent.side)
        self._beside: tuple[HttpPart, ...] = tuple(part for part in beside if part is not None)
        self.parts = (http, *self._beside)
        self.page = PageFiles(part.page for part in self.parts if part.page is not None)
        self._lists = (
            Lists(lambda: agent.view().version, lambda: agent.view().members, partial(views.members_of, agent, http)),
            *(each for part in self.parts for each in part.lists),
        )
        self._version = str(agent.info().get("version", ""))
        self._document = msgspec.json.encode(document(self._version, every_route(kind_of(agent.config))))

    async def info(self, request: Request) -> Response:
        return self.again("info", self._agent.info)

    async def members(self, request: Request) -> Response:
        return self.again("members", partial(views.members_of, self._agent, self.http))

    async def member(self, request: Request) -> Response:
        return _json(views.member_of(self._agent, self.http, request.path_params["name"]))

    async def owner(self, request: Request) -> Response:
        key = request.query_params.get("key", "")
        if not 0 < len(key) <= KEY_CHARS_MAX:
            raise errors.ConfigError(f"key: {len(key)} characters; accepted are 1 to {KEY_CHARS_MAX}")
        return _json(views.owner_of(self._agent, self.http, key))

    async def seats(self, request: Request) -> Response:
        return self.again("seats", partial(views.seats_of, self._agent))

    async def grants(self, request: Request) -> Response:
        return self.again("grants", partial(views.grants_of, self._agent))

    async def recent(self, request: Request) -> Response:
        limit = _integer(request, "limit", EVENTS_DEFAULT, EVENTS_MAX)
        internal = _flag(request, "internal")
        feed = self._feed
        return self.again(
            f"events {limit} {internal}",
            lambda: answers.EventsAnswer(feed.life, feed.id_of(feed.last), feed.recent(limit, internal=internal)),
        )

    async def openapi(self, request: Request) -> Response:
        return Response(self._document, media_type="application/json")

    async def metrics(self, request: Request) -> Response:
        return Response(self._remembered("metrics", self._metrics), headers={"content-type": numbers.CONTENT_TYPE})

    async def healthz(self, request: Request) -> Response:
        """The loop turns, or this would not run; what is asked is whether the protocols have turns on it."""
        since = self._load.since_beat()
        if since > BEAT_MISSED:
            return _refused(503, "Stalled", f"the protocols of this agent have had no turn for {since:.1f} s")
        return _json(answers.Probe("ok"))

    async def readyz(self, request: Request) -> Response:
        reason = views.unready(self._agent)
        return _refused(503, "NotReady", reason) if reason else _json(answers.Probe("ready"))

    async def stream(self, request: Request) -> Any:
        pulse = Pulse(self._lists, self._beat, asyncio.get_running_loop().time) if _flag(request, "pulse") else None
        since = request.headers.get("last-event-id")
        return EventStream(self._feed, since=since, internal=_flag(request, "internal"), pulse=pulse, turn=self._load.line.turn)

    async def set_tags(self, request: Request) -> Response:
        try:
            body = msgspec.json.decode(await _body(request), type=answers.TagsBody)
        except msgspec.DecodeError as error:
            raise errors.ConfigError(f'body: {error}; accepted is {{"tags": {{"name": "text", "other": null}}}}') from None
        await self.in_turn(partial(self._agent.set_tags, body.tags))
        return _json(answers.Accepted(self._agent.state))

    async def leave(self, request: Request) -> Response:
        await self.in_turn(partial(self._agent.drain, _nothing))
        return _json(answers.Accepted(self._agent.state), 202)

    async def in_turn(self, work: Callable[[], Any]) -> None:
        """Everything that touches protocols enters them in their turn (F10)."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def run() -> None:
            try:
                work()
            except errors.HoldfastError as error:
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(None)

        self._agent.host.post(run)
        try:
            async with asyncio.timeout(TURN_TIMEOUT):
                await done
        except TimeoutError:
            raise errors.Unavailable("the agent is ending and takes no more changes") from None
        finally:
            self._kept.clear()  # Who changed something sees it.

    async def body(self, request: Request) -> bytes:
        return await _body(request)

    async def while_there(self, request: Request, awaited: asyncio.Future[T]) -> T:
        gone = asyncio.ensure_future(_hung_up(request.receive))
        try:
            await asyncio.wait((awaited, gone), return_when=asyncio.FIRST_COMPLETED)
            if not awaited.done():
                raise errors.Unavailable("the client hung up")  # No client reads it.
            return awaited.result()
        finally:
            awaited.cancel()
            gone.cancel()

    def again(self, name: str, make: Callable[[], Any]) -> Response:
        return Response(self._remembered(name, lambda: msgspec.json.encode(make())), media_type="application/json")

    def json(self, value: Any, status: int = 200) -> Response:
        return _json(value, status)

    def _remembered(self, name: str, make: Callable[[], bytes]) -> bytes:
        """Made anew at most every so often, however often it is asked for."""
        now = asyncio.get_running_loop().time()
        until, body = self._kept.get(name, (0.0, b""))
        if now >= until:
            if len(self._kept) >= ANSWERS_MAX:
                self._kept.clear()
            body = make()
            self._kept[name] = now + KEPT_SECONDS, body
        return body

    def _metrics(self) -> bytes:
        agent = self._agent
        from_agent = of_agent(agent, self.http.metrics(), self._feed, self._lateness, self._version)
        of_features = (metric for part in self._beside for metric in part.metrics())
        return numbers.render([*from_agent, *of_features, *self._load.metrics()]).encode()

    def _beat(self) -> dict[str, Any]:
        """Looked at once for all readers."""
        now = asyncio.get_running_loop().time()
        if self._beat_kept is None or now >= self._beat_kept[0]:
            beat = views.beat_of(self._agent, self.http, self._lateness, resident_bytes(), self._feed.readers)
            for part in self.parts:
                beat.update(part.beat())
            self._beat_kept = now + PULSE_INTERVAL / 2, beat
        return self._beat_kept[1]


class Load:
    """What HTTP costs this agent, and whether the protocols have their turns."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.line = Line(asyncio.get_running_loop())
        self.admission: Admission | None = None
        self.server: Server | None = None
        self._beat_at = agent.host.now
        self._timer: Timer | None = None

    def start(self) -> None:
        self._agent.host.post(self._on_beat)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def since_beat(self) -> float:
        return self._agent.host.now - self._beat_at

    def metrics(self) -> Iterable[numbers.Metric]:
        assert self.admission is not None
        assert self.server is not None
        counts = {what: float(count) for what, count in self.admission.counts.items()}
        yield numbers.labelled("http_requests_total", "counter", "Requests over HTTP, by what became of them.", "what", counts)
        yield numbers.counter("http_seconds_total", "Seconds of the event loop that HTTP took.", self.line.spent)
        yield numbers.gauge("http_piece_seconds_max", "Longest time that HTTP kept the loop at once.", self.line.longest)
        yield numbers.gauge("http_connections", "Connections over HTTP.", self.server.connections)
        yield numbers.counter("http_evicted_total", "Idle connections that were closed for newer ones.", self.server.evicted)

    def _on_beat(self) -> None:
        self._beat_at = self._agent.host.now
        self._timer = self._agent.host.after(BEAT_INTERVAL, self._on_beat)


class Service:
    """The application, its server and what feeds them."""

    def __init__(self, agent: Agent, *, hosts: frozenset[str] | None, token: bytes | None) -> None:
        self._agent = agent
        self._frequent = tuple(kind for each in agent.features.values() for kind in each.frequent)
        self.feed = Feed(str(agent.me.boot))
        self.lateness = Lateness()
        self.load = Load(agent)
        handlers = Handlers(agent, self.feed, self.lateness, self.load)
        self._http = handlers.http
        app = Starlette(
            routes=list(_routes(handlers)),
            exception_handlers={HTTPException: _on_http_exception, errors.HoldfastError: _on_refused, Exception: _on_bug},  # type: ignore[dict-item]
        )
        self.load.admission = Admission(app, asyncio.get_running_loop().time)
        guarded = Guard(self.load.admission, hosts=hosts, token=token, is_data=lambda path: path not in handlers.page, free=PROBES)
        self._server = self.load.server = Server(guarded, self.load.line)
        self._serving: asyncio.Task[None] | None = None
        self._subscription = agent.events.subscribe(self._take, internal=True)

    async def start(self, listener: socket.socket) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # What a stranger sends to a port is not worth a line.
        self.lateness.start()
        self.load.start()
        self._serving = asyncio.ensure_future(self._server.serve([listener]))
        while not self._server.started:
            if self._serving.done():
                await self._serving
            await asyncio.sleep(0.001)

    async def close(self) -> None:
        self._subscription.close()
        self.lateness.stop()
        self.load.stop()
        self.feed.close()
        self._server.should_exit = True
        if self._serving is not None:
            await asyncio.wait([self._serving])

    def _take(self) -> None:
        """News in the hub: into the buffer that all readers of /events share."""
        while records := self._subscription.take(FACTS_BATCH):
            for record in records:
                event = record.event
                self.lateness.note(event)
                if isinstance(event, self._frequent):
                    continue
                fields = views.fields_of(event, self._http)
                self.feed.put(record.at, name_of(event), record.version, fields, internal=isinstance(event, Internal))


def _nothing() -> None:
    """There is nothing to tell: this server ends with the agent."""


def every_route(kind: Kind) -> tuple[Route, ...]:
    """Those of the agent, then those of its membership and its features."""
    return (*ROUTES, *kind.routes(), *(route for feature in features() for route in feature.routes()))


def _routes(handlers: Handlers) -> Generator[BaseRoute, None, None]:
    owned: list[tuple[Route, object]] = [(route, handlers) for route in ROUTES]
    owned += [(route, part) for part in handlers.parts for route in part.routes]
    for route, owner in owned:
        yield StarletteRoute(route.path, getattr(owner, route.handler), methods=[route.method], name=route.handler)
    for path in handlers.page:
        yield StarletteRoute(path, partial(_file, handlers.page, path), methods=["GET"])


async def _file(page: PageFiles, path: str, request: Request) -> Response:
    content, media = page.content(path)
    return Response(content, media_type=media, headers={"cache-control": "no-cache"})


def _refused(status: int, error: str, text: str) -> Response:
    return _json(answers.Refusal(error, text), status)


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise HTTPException(413, f"body: accepted are up to {BODY_BYTES_MAX} bytes")
    return body


def _flag(request: Request, name: str) -> bool:
    text = request.query_params.get(name, "false")
    if text not in ("true", "false"):
        raise errors.ConfigError(f"{name}: {errors.shown(text)}; accepted are true and false")
    return text == "true"


def _integer(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not 1 <= int(text) <= most:
        raise errors.ConfigError(f"{name}: {errors.shown(text)}; accepted are 1 to {most}")
    return int(text)


async def _on_http_exception(request: Request, error: HTTPException) -> Response:
    refusal = answers.Refusal(CODES.get(error.status_code, "Refused"), str(error.detail))
    return Response(msgspec.json.encode(refusal), error.status_code, headers=error.headers, media_type="application/json")


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        """The end of a body that was read."""


async def _on_refused(request: Request, error: errors.HoldfastError) -> Response:
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 409)
    return _json(answers.Refusal(type(error).__name__, str(error)), status)


async def _on_bug(request: Request, error: Exception) -> Response:
    """Starlette raises it again after this answer, so that it reaches the log with its traceback."""
    return _json(answers.Refusal("Bug", "this request met a bug of the agent; its log has the traceback"), 500)
