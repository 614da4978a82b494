"""``holdfast members`` of a large group: what is listed, what is counted, and what a value that means nothing gets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.cli import show
from holdfast.host import Address, Member, MemberStatus, NodeId
from holdfast.local import calls
from tests.cli.command import Run
from tests.cli.fake_agent import GROUP_VIEW, FakeAgent
from tests.cli.test_completion import completed

SUSPECTED = 3  # of the members below, the last ones


def crowd(count: int) -> calls.GroupView:
    """Members with a tag of two values, in turns."""
    members = tuple(
        Member(
            NodeId(f"web-{at:03}", 1),
            Address("10.0.0.5", 7946),
            {"tag:zone": b"eu" if at % 2 else b"us"},
            MemberStatus.SUSPECTED if at >= count - SUSPECTED else MemberStatus.ALIVE,
        )
        for at in range(count)
    )
    return replace(GROUP_VIEW, me=members[0], members=members, positions=tuple(range(count)))


@pytest.fixture(autouse=True)
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    with FakeAgent(tmp_path / "a.sock") as agent:
        agent.answers[calls.Look] = crowd(100)
        monkeypatch.setenv("HOLDFAST_AGENT", agent.path)
        yield agent


@pytest.mark.parametrize(
    "flags, names, summary",
    [
        ([], range(100), "100 members: 97 alive, 3 suspected"),
        (["--limit", "0"], range(100), "100 members: 97 alive, 3 suspected"),
        (["--limit", "1000"], range(100), "100 members: 97 alive, 3 suspected"),
        (["--limit", "2"], range(2), "100 members: 97 alive, 3 suspected; 98 not shown"),
        (["--status", "suspected"], range(97, 100), "100 members: 97 alive, 3 suspected; 97 not shown"),
        (["--tag", "zone=eu", "--limit", "3"], range(1, 7, 2), "100 members: 97 alive, 3 suspected; 97 not shown"),
        (["--tag", "zone=eu", "--status", "suspected"], [97, 99], "100 members: 97 alive, 3 suspected; 98 not shown"),
    ],
)
def test_what_is_listed_and_what_is_counted(holdfast: Run, flags: list[str], names: range | list[int], summary: str) -> None:
    """H341: filters choose, the limit cuts, and the last line says how many members there are by status and how many it left out."""
    ended = holdfast("members", *flags)
    lines = ended.out.splitlines()
    assert ended.code == 0
    assert [line.split()[0] for line in lines[1:-1]] == [f"web-{at:03}" for at in names]
    assert lines[-1] == summary


def test_json_has_its_shape(holdfast: Run) -> None:
    """docs/cli.md: filters and limit choose ``members``; nothing is added to the object."""
    found = holdfast("members", "--json", "--tag", "zone=us", "--limit", "2").json
    assert found.keys() == {"state", "version", "me", "members"}
    assert [member["name"] for member in found["members"]] == ["web-000", "web-002"]
    assert found["members"][1].keys() == {"name", "boot", "address", "status", "tags", "version", "position"}


def test_one_member_is_counted(holdfast: Run, agent: FakeAgent) -> None:
    """H341: the line about a group of one; where the filters let no member pass there is the sentence that says so, and no count."""
    agent.answers[calls.Look] = replace(GROUP_VIEW, members=(GROUP_VIEW.me,))
    assert holdfast("members").out.splitlines()[-1] == "1 member: 1 alive"
    ended = holdfast("members", "--status", "decided")
    assert (ended.code, ended.out.split(), ended.err) == (
        1,
        ["NAME", "ADDRESS", "STATUS", "VERSION", "TAGS"],
        "holdfast: members: none of the 1 members passes the filters\n",
    )


@pytest.mark.parametrize(
    "flags, told",
    [
        (["--limit", "-1"], ["--limit -1", "accepted are whole numbers from 0"]),
        (["--limit", "few"], ["--limit", "a valid integer"]),
        (["--limit", "1.5"], ["--limit", "a valid integer"]),
        (["--tag", ""], ["--tag ''", "accepted are NAME and NAME=VALUE"]),
        (["--tag", "=eu"], ["--tag '=eu'", "accepted are NAME and NAME=VALUE"]),
        (["--status", "dead"], ["--status 'dead'", "alive, suspected, decided"]),
        (["--status", ""], ["--status ''", "alive, suspected, decided"]),
    ],
)
def test_values_that_mean_nothing(holdfast: Run, agent: FakeAgent, flags: list[str], told: list[str]) -> None:
    """Exit code 2, one line that names the flag and what is accepted; the agent is not asked."""
    holdfast("members", *flags).refused(2, *told)
    assert agent.asked(calls.Look) == []


def test_values_of_status_are_completed() -> None:
    """A shell offers what is accepted."""
    assert completed("holdfast members --status ", words=3) == ["alive", "suspected", "decided"]
    assert completed("holdfast members --status s", words=3) == ["suspected"]
    assert completed("holdfast members --li", words=2) == ["--limit"]


def test_a_long_table_is_not_drawn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """H341: drawing a thousand rows takes longer than a command may, so on a terminal a long table is printed in columns."""
    drawn: list[int] = []
    monkeypatch.setattr(show, "_print_drawn", lambda columns, rows: drawn.append(len(rows)))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for rows in (show.DRAWN_MAX, show.DRAWN_MAX + 1):
        show.print_table(("A", "B"), [("x", "y")] * rows)
    assert drawn == [show.DRAWN_MAX]
    assert len(capsys.readouterr().out.splitlines()) == show.DRAWN_MAX + 2
