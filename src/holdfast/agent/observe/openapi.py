"""The routes of the HTTP API, as a table, and the OpenAPI 3.1 document made from it.  docs/http.md.

``http_app.every_route()`` is what it serves, those of the membership and of features included: a route that is not
documented cannot exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.agent.observe import http_answers as a

JSON = "application/json"
EVENTS_MAX = 512  # events in one answer of /v1/events
EVENTS_DEFAULT = 100


class Parameter(NamedTuple):
    """One parameter of a route."""

    name: str
    where: str  # "path", "query" or "header"
    text: str
    schema: dict[str, Any]
    required: bool = False


class Route(NamedTuple):
    """One route: its handler is the method of this name, of ``http_app.Handlers`` or of a feature's ``HttpPart``."""

    method: str
    path: str
    handler: str
    text: str
    answer: Any  # the type of the answer; None: no JSON
    media: str = JSON
    status: int = 200
    parameters: Sequence[Parameter] = ()
    body: Any = None
    errors: tuple[int, ...] = ()


NAME = Parameter("name", "path", "Name of a member.", {"type": "string"}, required=True)
KEY = Parameter("key", "query", "Any text.", {"type": "string", "minLength": 1, "maxLength": 1024}, required=True)
INTERNAL = Parameter("internal", "query", "Also the facts inside the protocols.", {"type": "boolean", "default": False})
LIMIT = Parameter("limit", "query", "At most so many.", {"type": "integer", "minimum": 1, "maximum": EVENTS_MAX, "default": EVENTS_DEFAULT})
PULSE = Parameter("pulse", "query", "Also the member list, leases and health, four times a second.", {"type": "boolean", "default": False})
LAST = Parameter("Last-Event-ID", "header", "Go on after this event.", {"type": "string"})

ROUTES = (
    Route("GET", "/v1/info", "info", "What this agent is: version, settings without secrets, counters.", dict[str, Any]),
    Route("GET", "/v1/members", "members", "Who is here, as this agent knows it.", a.MembersAnswer),
    Route("GET", "/v1/members/{name}", "member", "One member.", a.MemberAnswer, parameters=(NAME,), errors=(404,)),
    Route("GET", "/v1/owner", "owner", "The member closest to a key: a hint.", a.OwnerAnswer, parameters=(KEY,), errors=(400,)),
    Route("GET", "/v1/seats", "seats", "The seats, as this agent sees them.", a.SeatsAnswer),
    Route("GET", "/v1/grants", "grants", "What the clients of this agent hold.", a.GrantsAnswer),
    Route("GET", "/v1/events", "recent", "The latest events.", a.EventsAnswer, parameters=(INTERNAL, LIMIT), errors=(400,)),
    Route("GET", "/v1/openapi.json", "openapi", "This document.", dict[str, Any]),
    Route("GET", "/healthz", "healthz", "For a liveness probe: do the protocols have their turns?", a.Probe, errors=(503,)),
    Route(
        "GET", "/readyz", "readyz", "For a readiness probe: is this agent a member, and does its seat vote?", a.Probe, errors=(503,),
    ),
    Route("GET", "/metrics", "metrics", "Metrics for Prometheus, text format 0.0.4.", None, media="text/plain"),
    Route(
        "GET", "/events", "stream", "Events as they happen (server-sent events).", None,
        media="text/event-stream", parameters=(INTERNAL, PULSE, LAST), errors=(400, 503),
    ),
    Route("POST", "/v1/tags", "set_tags", "Change this agent's tags.", a.Accepted, body=a.TagsBody, errors=(400, 413, 503)),
    Route("POST", "/v1/leave", "leave", "Drain, leave the group and end.", a.Accepted, status=202, errors=(503,)),
)  # fmt: skip

ERRORS = {
    400: "A parameter or the body is wrong.",
    401: "The token is missing or wrong.",
    403: "A web page of another site sent it; or this agent has no token, and nothing can be changed over HTTP.",
    404: "There is no such thing.",
    413: "The body is too large.",
    421: "The request names another host.",
    503: "It cannot be done now, or more is asked than this agent has time for (Retry-After says how long to wait).",
    504: "The other agent did not answer.",
}


def document(version: str, routes: Sequence[Route]) -> dict[str, Any]:
    """The OpenAPI document of these routes."""
    types = [route.answer for route in routes] + [route.body for route in routes] + [a.Refusal]
    wanted = [each for each in dict.fromkeys(types) if each is not None and each is not dict[str, Any]]
    _, components = msgspec.json.schema_components([*wanted, a.EventAnswer], ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Holdfast agent", "version": version, "description": "What one agent knows of its group."},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(route: Route) -> dict[str, Any]:
    mutating = route.method != "GET"
    errors = sorted({*route.errors, 401, 403, 421, 503})
    operation: dict[str, Any] = {
        "operationId": route.handler,
        "summary": route.text,
        "security": [{"token": []}] if mutating else [{}, {"token": []}],
        "responses": {
            str(route.status): {"description": route.text, "content": {route.media: {"schema": _schema(route.answer)}}},
            **{str(each): {"description": ERRORS[each], "content": {JSON: {"schema": _schema(a.Refusal)}}} for each in errors},
        },
    }
    if route.parameters:
        operation["parameters"] = [_parameter(each) for each in route.parameters]
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": _schema(route.body)}}}
    return operation


def _parameter(each: Parameter) -> dict[str, Any]:
    return {"name": each.name, "in": each.where, "description": each.text, "required": each.required, "schema": each.schema}


def _schema(kind: Any) -> dict[str, Any]:
    if kind is None:
        return {"type": "string"}
    if kind == dict[str, Any]:
        return {"type": "object"}
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
