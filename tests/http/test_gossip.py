"""The routes and the stream of an agent whose membership is gossip, as its page and programs read them.  Issue 17, 5."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import quote

import pytest

from holdfast.agent.membership import kind_of
from holdfast.agent.observe.http_app import every_route
from holdfast.config import Config
from holdfast.features.gossip.protocol.messages import Status
from tests.http.test_routes import complaints
from tests.http.wire import Stream, ask
from tests.page.stub_gossip import Crowd, crowd
from tests.tidy.tree import ROOT

ROUTES = [route for route in every_route(kind_of(Config(membership="gossip"))) if route.path.startswith("/v1/gossip")]
ASKED = {"/v1/gossip/member": "/v1/gossip/member?name=web-3"}
HOSTILE = "<b>a/b?&c</b>"


@pytest.fixture(scope="module")
def group() -> Iterator[Crowd]:
    """Some members, one of them suspected, one dead, one that left; and a name that would like to be a path."""
    with crowd([*(f"web-{number}" for number in range(12)), HOSTILE]) as started:
        started.say(("web-3", Status.SUSPECT), ("web-4", Status.DEAD), ("web-5", Status.LEFT))
        yield started


@pytest.fixture(scope="module")
def document(group: Crowd) -> dict[str, Any]:
    found = ask(group.group.url, "/v1/openapi.json").json
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.handler)
def test_answers_are_as_documented(group: Crowd, document: dict[str, Any], route: Any) -> None:
    """OpenAPI 3.1: each route of gossip is in the document, and a real answer validates against its schema."""
    answer = ask(group.group.url, ASKED.get(route.path, route.path))
    assert answer.status == 200
    described = document["paths"][route.path]["get"]
    assert [each["name"] for each in described.get("parameters", ())] == [each.name for each in route.parameters]
    assert complaints(answer.json, described["responses"]["200"]["content"]["application/json"]["schema"], document) == []


def test_there_are_four() -> None:
    """Issue 17, 5: the routes of the page, with a handler each; docs/http.md has all of them."""
    text = (ROOT / "docs" / "http.md").read_text()
    assert [route.path for route in ROUTES] == ["/v1/gossip", "/v1/gossip/field", "/v1/gossip/member", "/v1/gossip/past"]
    assert [route.path for route in ROUTES if f"`GET {route.path}" not in text] == []


def test_the_field_in_pages(group: Crowd) -> None:
    """Issue 17, 5 (bounds and pages): places and statuses, so many from a place on."""
    page = ask(group.group.url, "/v1/gossip/field?start=4&limit=3").json
    assert [(each["name"], each["place"], each["status"]) for each in page["cells"]] == [
        ("web-2", 4, "alive"), ("web-3", 5, "suspected"), ("web-4", 6, "dead"),
    ]  # fmt: skip
    assert (page["places"], page["next"]) == (14, 7)
    assert ask(group.group.url, "/v1/gossip/field?start=7").json["next"] is None


def test_one_member(group: Crowd) -> None:
    """Gossip 5.4: any name can be asked for, whatever is in it."""
    found = ask(group.group.url, f"/v1/gossip/member?name={quote(HOSTILE, safe='')}").json
    assert (found["name"], found["status"], found["place"]) == (HOSTILE, "alive", 0)
    suspected = ask(group.group.url, "/v1/gossip/member?name=web-3").json
    assert suspected["suspicion"]["accusers"] == ["reef"]


@pytest.mark.parametrize(
    "path, status, text",
    [
        ("field?start=-1", 400, "start: '-1'; accepted are 0 to"), ("field?limit=0", 400, "limit: '0'; accepted are 1 to"),
        ("field?limit=99999999", 400, "limit: '99999999'; accepted are 1 to"), ("field?limit=two", 400, "limit: 'two'; accepted are"),
        ("member", 400, "name: 0 characters; accepted are 1 to 255"), ("member?name=" + "x" * 256, 400, "name: 256 characters"),
        ("member?name=nobody", 404, "'nobody' is neither in the list nor remembered"),
    ],
)  # fmt: skip
def test_what_bad_input_gets(group: Crowd, path: str, status: int, text: str) -> None:
    """docs/http.md (errors): the field, and what is accepted."""
    answer = ask(group.group.url, f"/v1/gossip/{path}")
    assert answer.status == status
    assert answer.json["text"].startswith(text)


def test_the_stream_brings_the_field_and_the_past() -> None:
    """Issue 17, 5: a page gets the field when it comes, and again when something changed; the beat has the counters."""
    with crowd(["b", "c"]) as group:
        stream = Stream(group.group.url, "?pulse=true")
        first = stream.until(lambda block: block.get("event") == "gossip/field")
        assert [each["name"] for each in json.loads(first["data"])["cells"]] == ["b", "c", "kelp"]
        past = stream.until(lambda block: block.get("event") == "gossip/past")
        assert json.loads(past["data"])["c"][0] == 0
        group.say(("b", Status.SUSPECT))
        again = stream.until(lambda block: block.get("event") == "gossip/field")
        assert [each["status"] for each in json.loads(again["data"])["cells"]] == ["suspected", "alive", "alive"]
        beat = stream.until(lambda block: block.get("event") == "pulse" and json.loads(block["data"])["gossip"]["suspects"] == 1)
        assert json.loads(beat["data"])["gossip"]["counters"]["suspicions"] == 1
        stream.close()


def test_the_field_of_a_large_group_is_small() -> None:
    """Issue 17, 5: what a page of 1000 members is sent when something changed has under 80 bytes for each, and comes once a second at
    most."""
    names = [f"web-{number:04}" for number in range(1000)]
    with crowd(names) as group:
        body = ask(group.group.url, "/v1/gossip/field").body
        assert len(body) < 80 * len(names)
        field, _ = group.agent.side.http(cast("Any", None)).lists
        assert len(field) == 1001  # of which a stream sends 1000 a second (``sse.LINES_PER_SECOND``)


def test_the_panel_is_in_the_page(group: Crowd) -> None:
    """H216: the panel of the membership, with its scripts and styles; that of the other membership is not there."""
    page = ask(group.group.url, "/").body.decode()
    assert 'data-panels="gossip/panel.js ' in page
    assert "ring/" not in page
    for name in ("panel.js", "field.js", "closeup.js", "past.js", "panel.css"):
        assert ask(group.group.url, f"/gossip/{name}").status == 200
    assert ask(group.group.url, "/ring/panel.js").status == 404
