"""``GET /v1/elections`` with something to say, as programs read it.  Spec: election 10; docs/http.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.test_routes import complaints
from tests.http.wire import ask
from tests.page.stub_agent import stub_group
from tests.page.test_elections_panel import HOSTILE, Member, election, last


@pytest.fixture
def member() -> Iterator[Member]:
    with stub_group() as group:
        yield Member(group)


def answered(member: Member) -> tuple[Any, list[str]]:
    """What it says, and where that is not as documented."""
    answer, document = ask(member.group.url, "/v1/elections"), ask(member.group.url, "/v1/openapi.json").json
    assert answer.status == 200
    described = document["paths"]["/v1/elections"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    return answer.json, complaints(answer.json, described, document)


def test_an_answer_with_elections_is_as_documented(member: Member) -> None:
    """OpenAPI 3.1: names with and without a leader, with and without an election that went, one that runs, and a hostile name."""
    running = last(outcome="", took=0.0, nominee=None, candidates=(), excluded={HOSTILE: 2.5}, asked={HOSTILE: 3})
    member.stand(
        election("scheduler"),
        election("cache", state="tentative", role="tentative", me=True, needed=2, acks=("kelp", "a"), last=None),
        election(HOSTILE, leader=None, boot=None, state="none", candidates=(), last=running),
    )
    found, wrong = answered(member)
    assert wrong == []
    assert (found["why"], found["hold"], [each["name"] for each in found["elections"]]) == ("", 2.0, ["scheduler", "cache", HOSTILE])
    first, second, third = found["elections"]
    assert (first["state"], first["token"], first["last"]["nominee"], first["last"]["asked"]) == (
        "active", 1795000000007, "a", {"a": 1, "b": 1, "d": 2},
    )  # fmt: skip
    assert [(each["member"], each["candidates"]) for each in first["last"]["answers"]] == [
        ("kelp", ["a", "b"]),
        ("a", ["a", "b"]),
        ("b", []),
    ]
    assert (second["role"], second["acks"], second["last"]) == ("tentative", ["kelp", "a"], None)
    assert (third["leader"], third["last"]["outcome"], third["last"]["excluded"]) == (None, "", {HOSTILE: 2.5})


def test_an_answer_that_is_not_as_documented_is_found(member: Member) -> None:
    """The test above can fail: a field of another type is a complaint."""
    member.stand(election("scheduler", c="2"))
    assert answered(member)[1] == ["$.elections[0].c: '2' is no integer"]
