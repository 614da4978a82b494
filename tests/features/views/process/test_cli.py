"""``holdfast views``, against an agent by script: what it asks, what it prints, and with which exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.features.views import calls as view_calls
from holdfast.features.views.calls import SeatOfViews, ViewItem, ViewsReport
from holdfast.features.views.streams import difference
from holdfast.host import Address, NodeId, ViewMember, ViewState
from tests.cli.command import Run
from tests.cli.fake_agent import Client, FakeAgent
from tests.features.views.fake_views import SERVER, view

VIEW = view(17, "a", "b")
NONE = ViewsReport("seats", None)
SEAT = replace(
    NONE, slot=0, takes_part=True, users=1, state=int(ViewState.STABLE), view=difference(None, VIEW), leased_for=1.25,
    settled=True, settles_in=0.0, installed_ago=12.5, server=SERVER, attach=2, serves=True, number=17, clients=2,
    seats=(SeatOfViews(1, "127.0.0.1:7001", NodeId("s1", 4), "up", 3.5, 2),
           SeatOfViews(2, "127.0.0.1:7002", None, "down", 2.0, 1, "silent\x1b")),
    graph=((0, 1, True), (0, 2, False), (1, 2, False)), rtt_p99=0.0042,
)  # fmt: skip
TOLD = (
    ViewItem("now", ViewState.LOST, None, None),
    ViewItem("view", ViewState.STABLE, 1e9, 0.0, difference(None, VIEW)),
    ViewItem("lease", ViewState.STABLE, 1e9, 0.0),
    ViewItem("changing", ViewState.CHANGING, 1e9, 0.0, number=17),
    ViewItem("lost", ViewState.LOST, None, None, why="no view server \x1b[31manswers"),
)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAgent]:
    with FakeAgent(tmp_path / "agent.sock") as agent:
        monkeypatch.setenv("HOLDFAST_AGENT", agent.path)
        yield agent


def test_a_view(holdfast: Run, agent: FakeAgent) -> None:
    """Views 10: id, number, state, members by their server, servers and links, time since installed, settled."""
    agent.answers[view_calls.SurveyViews] = SEAT
    ended = holdfast("views")
    assert (ended.code, ended.err) == (0, "")
    assert [line.split() for line in ended.out.splitlines()] == [
        ["view", "17/s0#1,", "2", "members"],
        ["state", "stable,", "leased", "for", "another", "1.2", "s,", "settled"],
        ["installed", "12.5", "s", "ago"],
        ["server", "s0#1,", "attachment", "2"],
        ["seat", "0,", "serves", "views:", "2", "clients", "are", "attached,", "its", "last", "number", "is", "17"],
        ["round", "trip", "4.2", "ms", "at", "most,", "99", "of", "100"],
        ["SERVER", "MEMBER", "ADDRESS", "ATTACHED"],
        ["s0#1", "a#1", "127.0.0.1:7100", "1"],
        ["s0#1", "b#1", "127.0.0.1:7100", "1"],
        ["SEAT", "ADDRESS", "WHO", "LINK", "SINCE", "DOWN", "WHY"],
        ["1", "127.0.0.1:7001", "s1#4", "up", "3.5", "s", "2", "times"],
        ["2", "127.0.0.1:7002", "down", "2.0", "s", "1", "times", "silent\\x1b"],
    ]


def test_a_view_as_json(holdfast: Run, agent: FakeAgent) -> None:
    """The shape in docs/cli.md."""
    agent.answers[view_calls.SurveyViews] = SEAT
    found = holdfast("views", "--json").json
    assert (found["state"], found["users"], found["slot"], found["serves"], found["back_end"]) == ("stable", 1, 0, True, "seats")
    member = {"name": "a", "boot": 1, "address": "127.0.0.1:7100", "attach": 1, "server": {"name": "s0", "boot": 1}}
    assert (found["view"]["number"], found["view"]["id"], found["view"]["members"][0]) == (17, "17/s0#1", member)
    assert found["view"]["servers"] == [{"name": "s0", "boot": 1}]
    assert found["seats"][0] == {
        "slot": 1, "address": "127.0.0.1:7001", "life": {"name": "s1", "boot": 4}, "link": "up", "since": 3.5, "flaps": 2, "why": "",
    }  # fmt: skip
    assert found["graph"][1] == {"between": [0, 2], "up": False}


def test_no_view(holdfast: Run, agent: FakeAgent) -> None:
    """Exit code 1: no client of this agent asked, or the view is lost; a seat says what it does for others."""
    agent.answers[view_calls.SurveyViews] = replace(NONE, slot=1)
    ended = holdfast("views")
    assert ended.code == 1
    assert [line.split(None, 1) for line in ended.out.splitlines()] == [
        ["view", "none"],
        ["state", "takes no part"],
        ["seat", "1, serves no views now: no client in the group asked for them"],
    ]
    assert "no client of this agent asked for views" in ended.err
    lost = replace(NONE, takes_part=True, users=1, lost_for=3.25, lost_why="no view server answers")
    agent.answers[view_calls.SurveyViews] = lost
    ended = holdfast("views")
    assert (ended.code, ended.out.splitlines()[1].split(None, 1)[1]) == (1, "lost for 3.2 s: no view server answers")
    assert holdfast("views", "--json").json["view"] is None


def test_a_change(holdfast: Run, agent: FakeAgent) -> None:
    """Views 10: what is under way, when it will be settled, and clients that are not let in."""
    changing = replace(SEAT, state=int(ViewState.CHANGING), changing_for=0.5, settled=False, settles_in=2.0, quarantined=1)
    agent.answers[view_calls.SurveyViews] = changing
    out = holdfast("views").out
    assert "changing, a change is under way for 0.5 s, leased for another 1.2 s, settled in 2.0 s" in out
    assert "2 clients are attached, 1 in quarantine" in out
    agent.answers[view_calls.SurveyViews] = replace(SEAT, back_end="zookeeper")
    assert "views come from ZooKeeper" in holdfast("views").out


def test_text_of_peers_is_escaped(holdfast: Run, agent: FakeAgent) -> None:
    """Views 9: names come from others."""
    evil = ViewMember(NodeId("a\x1b[31m\nb", 1), Address("x", 1), 1, SERVER)
    agent.answers[view_calls.SurveyViews] = replace(SEAT, view=difference(None, replace(VIEW, members=(evil,))))
    out = holdfast("views").out
    assert "\x1b" not in out
    assert "a\\x1b[31m\\nb#1" in out


def test_watch(holdfast: Run, agent: FakeAgent) -> None:
    """Views 10: takes part as long as it runs, and prints a line for each event."""

    def tell(client: Client, call: view_calls.WatchViews) -> None:
        client.done(call.serial)
        for item in TOLD:
            client.push(call.serial, item)

    agent.on[view_calls.WatchViews] = tell
    lines = [line.split(None, 2)[1:] for line in holdfast("views", "--watch", "--count", "3").out.splitlines()]
    assert lines == [
        ["ViewChanged", "view 17/s0#1 of 2; new: a#1, b#1"],
        ["Changing", "another view than 17 will come"],
        ["ViewLost", "no view server \\x1b[31manswers"],
    ]
    found = [json.loads(line) for line in holdfast("views", "--watch", "--json", "--count", "3").out.splitlines()]
    assert [(each["event"], each["state"], each["settled"]) for each in found] == [
        ("ViewChanged", "stable", True), ("Changing", "changing", False), ("ViewLost", "lost", False),
    ]  # fmt: skip
    assert (found[0]["view"]["number"], found[0]["added"], found[1]["number"]) == (
        17,
        [{"name": "a", "boot": 1}, {"name": "b", "boot": 1}],
        17,
    )


def test_trip(holdfast: Run, agent: FakeAgent) -> None:
    """Views 10: 3 when it was done too lately, or no client asked for views."""
    assert holdfast("views", "trip", "b is silent").code == 0
    assert agent.asked(view_calls.TripView)[0].why == "b is silent"
    agent.on[view_calls.TripView] = lambda client, call: client.refuse(call.serial, "Unavailable", "views: it tripped too lately")
    holdfast("views", "trip", "again").refused(3, "tripped too lately")


@pytest.mark.parametrize(
    "words, told",
    [
        (("views", "--count", "1"), "--count, --for: accepted together with --watch"),
        (("views", "--watch", "--count", "-1"), "--count -1"),
        (("views", "trip", ""), "reason: ''"),
        (("views", "trip", "a\nb"), "reason: "),
    ],
)
def test_bad_words(holdfast: Run, agent: FakeAgent, words: tuple[str, ...], told: str) -> None:
    """Exit code 2 and what is accepted; nothing is asked."""
    holdfast(*words).refused(2, told)
    assert agent.asked(view_calls.TripView) == []


def test_help(holdfast: Run) -> None:
    """docs/cli.md: `views --watch` is `views show --watch`, and who asks for help with `views` is led there."""
    told = " ".join(holdfast("views", "--help").out.split())
    assert "Without a command: show, with its options; see `holdfast views show --help`." in told
    assert {"--watch", "--json", "--count", "--for"} <= set(holdfast("views", "show", "--help").out.split())


def test_no_servers(holdfast: Run, agent: FakeAgent) -> None:
    """Exit code 2 and the missing setting, as `holdfast seats` has it."""
    agent.on[view_calls.SurveyViews] = lambda client, call: client.refuse(call.serial, "ConfigError", "seats: who are the seats?")
    holdfast("views").refused(2, "seats: who are the seats?")
