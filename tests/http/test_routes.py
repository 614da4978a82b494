"""Every route answers what its entry in the OpenAPI document says, and errors look alike."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.membership import kind_of
from holdfast.agent.observe.http_app import every_route
from holdfast.agent.observe.page_files import PAGE, PageFiles
from holdfast.config import Config
from tests.http.conftest import HOSTILE, TOKEN
from tests.http.wire import Answer, ask
from tests.page.stub_agent import StubGroup
from tests.tidy.tree import ROOT

EVERY_PANEL = sorted(PAGE.parents[2].glob("features/*/page"))
PANELS = [folder for folder in EVERY_PANEL if folder.parent.name != "gossip"]  # of this agent: the other membership brings its own
STYLED = ("ring", "leadership", "tickets", "views", "limits")  # panels with styles of their own, in the order of the page
ROUTES = every_route(kind_of(Config()))
READING = [route for route in ROUTES if route.method == "GET" and route.media == "application/json"]
ASKED = {"/v1/members/{name}": "/v1/members/b", "/v1/owner": "/v1/owner?key=cart:42", "/v1/events": "/v1/events?internal=true"}
KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None),
}  # fmt: skip


def complaints(value: Any, schema: dict[str, Any], document: dict[str, Any], where: str = "$") -> list[str]:
    """As much of JSON Schema as the document uses; an unknown word in a schema is a complaint too."""
    if "$ref" in schema:
        return complaints(value, document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], document, where)
    if "anyOf" in schema:
        every = [complaints(value, each, document, where) for each in schema["anyOf"]]
        return [] if any(not each for each in every) else every[0]
    unknown = schema.keys() - {"type", "title", "description", "properties", "required", "items", "enum", "additionalProperties"}
    found = [f"{where}: the schema says {word}" for word in unknown]
    if "enum" in schema and value not in schema["enum"]:
        return [*found, f"{where}: {value!r} is none of {schema['enum']}"]
    kind = schema.get("type")
    if kind is not None and (not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return [*found, f"{where}: {value!r} is no {kind}"]
    if isinstance(value, list) and "items" in schema:
        found += [each for i, item in enumerate(value) for each in complaints(item, schema["items"], document, f"{where}[{i}]")]
    if isinstance(value, dict):
        found += _of_object(value, schema, document, where)
    return found


def _of_object(value: dict[str, Any], schema: dict[str, Any], document: dict[str, Any], where: str) -> list[str]:
    properties, rest = schema.get("properties", {}), schema.get("additionalProperties", {})
    found = [f"{where}: {name} is missing" for name in schema.get("required", ()) if name not in value]
    if properties:
        found += [f"{where}: {name} is not in the document" for name in value.keys() - properties.keys()]
    for name, item in value.items():
        inner = properties.get(name, rest)
        found += complaints(item, inner if isinstance(inner, dict) else {}, document, f"{where}.{name}")
    return found


@pytest.fixture
def document(group: StubGroup) -> dict[str, Any]:
    found = ask(group.url, "/v1/openapi.json").json
    assert isinstance(found, dict)
    return found


def test_document_names_every_route(document: dict[str, Any]) -> None:
    """OpenAPI 3.1: every route of the table is in it, with its method, and nothing else is."""
    assert document["openapi"] == "3.1.0"
    listed = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert listed == {(route.method, route.path) for route in ROUTES}


def test_the_handbook_names_every_route() -> None:
    """docs/http.md has every route of the table."""
    text = (ROOT / "docs" / "http.md").read_text()
    assert [route.path for route in ROUTES if f"`{route.method} {route.path}" not in text] == []


@pytest.mark.parametrize("route", READING, ids=lambda route: route.handler)
def test_answers_are_as_documented(group: StubGroup, document: dict[str, Any], route: Any) -> None:
    """A real answer validates against the schema of its route."""
    answer = ask(group.url, ASKED.get(route.path, route.path))
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    described = document["paths"][route.path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert complaints(answer.json, described, document) == []


def test_the_validator_complains(document: dict[str, Any]) -> None:
    """A validator that accepts everything would prove nothing: a missing, a wrong and a surplus field are found."""
    right = {"error": "A", "text": "b"}
    schema = {"$ref": "#/components/schemas/Refusal"}
    assert complaints(right, schema, document) == []
    wrong: list[Any] = [{"error": "A"}, {"error": 1, "text": "b"}, {**right, "more": 1}, []]
    assert all(complaints(each, schema, document) for each in wrong)


def test_members_are_those_of_the_ring(group: StubGroup) -> None:
    """/v1/members: sorted by name, with tags as they are (escaping is the reader's affair), one of them this agent."""
    answer = ask(group.url, "/v1/members").json
    assert [member["name"] for member in answer["members"]] == ["a", "b", 'c "quoted" \\ back']
    assert [member["me"] for member in answer["members"]] == [True, False, False]
    assert answer["members"][1]["tags"]["note"] == HOSTILE
    assert all(0 <= member["turn"] < 1 for member in answer["members"])


def test_ring_shows_the_own_leases(group: StubGroup) -> None:
    """/v1/ring: one pair per neighbour, with its session, its age and its arbitrators."""
    answer = ask(group.url, "/v1/ring").json
    assert answer["status"] == "member"
    assert {pair["peer"] for pair in answer["pairs"]} == {place["name"] for place in answer["neighbours"]} == {"b", 'c "quoted" \\ back'}
    for pair in answer["pairs"]:
        assert pair["session"] >= 1
        assert "a" in pair["group"]
        assert 0 <= pair["age"] < 60
    assert answer["timing"]["bound"] == pytest.approx(answer["timing"]["arbitration"] + 4 * answer["timing"]["lease"])


def test_tickets_where_there_are_no_seats(group: StubGroup) -> None:
    """/v1/tickets: nothing can be held, and the missing setting is named (F12)."""
    assert ask(group.url, "/v1/tickets").json == {"pools": [], "timing": None, "why": "seats: none are configured"}


def test_leaders_where_there_are_no_seats(group: StubGroup) -> None:
    """/v1/leaders: nothing can be led, and the missing setting is named (F12)."""
    answer = ask(group.url, "/v1/leaders").json
    assert answer == {"version": 0, "leaders": [], "timing": None, "why": "seats: none are configured"}


def test_views_where_there_are_no_seats(group: StubGroup) -> None:
    """/v1/views: this agent has no part in views, and the missing setting is named (views 10)."""
    answer = ask(group.url, "/v1/views").json
    assert (answer["takes_part"], answer["serves"], answer["members"]) == (False, False, [])
    assert answer["why"] == "seats: none are configured"


def test_owner_is_the_hint_of_the_ring(group: StubGroup) -> None:
    """/v1/owner: the member that the ring itself names, and no promise is made by asking."""
    agent = group.agents["a"]
    owner = group.call(lambda: agent.ring.owner("cart:42"))
    assert owner is not None
    assert ask(group.url, "/v1/owner?key=cart:42").json["owner"]["name"] == owner.name
    assert group.call(lambda: agent.ring.fencing.published_until) == float("-inf")


def refused(answer: Answer, status: int, error: str) -> None:
    assert answer.status == status
    assert answer.json.keys() == {"error", "text"}
    assert answer.json["error"] == error
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path, status, error, text",
    [
        ("/v1/members/nobody", 404, "NotAMember", "'nobody'"),
        ("/v1/owner", 400, "ConfigError", "1 to 1024"),
        ("/v1/owner?key=" + "k" * 1025, 400, "ConfigError", "1 to 1024"),
        ("/v1/events?limit=0", 400, "ConfigError", "1 to 512"),
        ("/v1/events?limit=many", 400, "ConfigError", "'many'"),
        ("/v1/events?internal=perhaps", 400, "ConfigError", "true and false"),
        ("/v1/nothing", 404, "NotFound", ""),
        ("/v1/../../etc/passwd", 404, "NotFound", ""),
    ],
)
def test_errors_name_field_and_accepted_values(group: StubGroup, path: str, status: int, error: str, text: str) -> None:
    """Bad input: one clear error {error, text}, which names the field and what is accepted."""
    answer = ask(group.url, path)
    refused(answer, status, error)
    assert text in answer.json["text"]


def test_other_methods_are_refused(group: StubGroup) -> None:
    """A route has the methods of its entry; another one is an error like all others."""
    refused(ask(group.url, "/v1/members", "DELETE", headers={"Authorization": f"Bearer {TOKEN}"}), 405, "MethodNotAllowed")


def test_the_page_and_its_parts_are_served(group: StubGroup) -> None:
    """H216: / is the page, with the panels of the membership and of features; every file beside it is served with its type, and nothing
    above the folder is."""
    page = ask(group.url, "/")
    sections = ("ring", "leaders", "pools", "views", "limits")
    assert [name for name in sections if f'<section class="card {name}'.encode() not in page.body] == []
    assert b'data-panels="ring/panel.js leadership/panel.js tickets/panel.js views/panel.js limits/panel.js"' in page.body
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    for folder, below in ((PAGE, ""), *((panel, f"/{panel.parent.name}") for panel in PANELS)):
        for path in folder.iterdir():
            if path.suffix in (".js", ".css", ".svg"):
                answer = ask(group.url, f"{below}/{path.name}")
                assert (answer.status, answer.body) == (200, path.read_bytes())
    assert ask(group.url, "/../http.py").status == 404
    assert ask(group.url, "/ring/panel.html").status == 404


def test_the_styles_of_a_panel_are_served_as_its_script(group: StubGroup) -> None:
    """H216: the page asks for them behind its own. They are free as all files of the page are, the policy of the page holds for them, and
    a browser asks again whether they changed."""
    page = ask(group.url, "/").body.decode()
    assert re.findall(r'<link rel="stylesheet" href="(.+?)">', page) == ["page.css", *(f"{name}/panel.css" for name in STYLED)]
    for name in STYLED:
        styles, script = ask(group.url, f"/{name}/panel.css"), ask(group.url, f"/{name}/panel.js")
        assert styles.headers["content-type"].startswith("text/css")
        assert styles.headers["cache-control"] == "no-cache"
        assert "default-src 'self'" in styles.headers["content-security-policy"]
        differ = {"content-type", "content-length", "date"}
        assert {name: styles.headers[name] for name in styles.headers.keys() - differ} == {
            name: script.headers[name] for name in script.headers.keys() - differ
        }


def test_a_panel_may_have_no_styles(tmp_path: Path) -> None:
    """H216: two files make a panel; the page asks for no styles of it."""
    folder = tmp_path / "counter" / "page"
    folder.mkdir(parents=True)
    (folder / "panel.html").write_text('<!-- before members -->\n    <section class="card counts wide" id="counts"></section>\n')
    (folder / "panel.js").write_text("export default class Panel {}\n")
    page = PageFiles([folder])
    content = page.content("/")[0].decode()
    assert content.index('id="counts"') < content.index('id="members"')
    assert content.count('rel="stylesheet"') == 1
    assert [path for path in page if "counter" in path] == ["/counter/panel.js"]
    (folder / "panel.css").write_text(".counts { order: -1; }\n")
    assert '<link rel="stylesheet" href="counter/panel.css">' in PageFiles([folder]).content("/")[0].decode()
    assert PageFiles([folder]).content("/counter/panel.css") == (b".counts { order: -1; }\n", "text/css")


def test_a_page_without_panels() -> None:
    """H216: another membership, and an agent without some feature: the page has the sections of the agent, and asks for no panel."""
    content, media = PageFiles(()).content("/")
    assert (media, b'data-panels=""' in content, b'id="ring"' in content) == ("text/html", True, False)
    assert "/ring/panel.js" not in PageFiles(())


def test_the_page_asks_nobody_else() -> None:
    """Nothing vendored, nothing fetched from elsewhere: the only addresses in the page are names of XML vocabularies."""
    for path in (path for folder in (PAGE, *EVERY_PANEL) for path in folder.iterdir()):
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, path.name
        assert "https://" not in text, path.name
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, f"{path.name}: {word} takes text of peers for markup"
