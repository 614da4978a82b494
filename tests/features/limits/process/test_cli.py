"""``holdfast limit`` and ``holdfast run --limit``: with an agent by script, and with real ones.  Spec: limits 10; issue 16, 4."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.features.limits import calls as limit_calls
from holdfast.features.limits.calls import LimitLine, LimitsReport, Taken, WorkerLine
from holdfast.features.limits.terms import Change, Terms
from tests.cli.command import Run
from tests.cli.fake_agent import FakeAgent
from tests.support.agents import AgentProcess, Fleet, until

IDLE = LimitLine("mail", Terms(5.0, 10.0, "exact", "demand", 4), 2, "b")
BUSY = LimitLine(
    "api", Terms(500.0, 50.0), 3, "a", True, "stable", "views", "17/s0#1", 3, 3, 300.0, 290.0, 480.0, 300.0, 4.0,
    (WorkerLine(41, "worker[41]", 200.0, 3.0), WorkerLine(42, "web\x1b[31m", 100.0, 1.0, gone=True)), rate=500.0,
)  # fmt: skip
REPORT = LimitsReport(True, (BUSY, IDLE), ("c",))


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAgent]:
    with FakeAgent(tmp_path / "agent.sock") as agent:
        agent.answers[limit_calls.SurveyLimits] = REPORT
        monkeypatch.setenv("HOLDFAST_AGENT", agent.path)
        yield agent


def test_all_limits(holdfast: Run, agent: FakeAgent) -> None:
    """Issue 16: `holdfast limit ls`, which is also what `holdfast limit` says; a limit that this agent does not use has no share."""
    for words in (("limit",), ("limit", "ls")):
        ended = holdfast(*words)
        assert (ended.code, ended.err) == (0, "")
        assert [line.split() for line in ended.out.splitlines()] == [
            ["LIMIT", "RATE", "BURST", "POLICY", "MEMBERS", "SHARE", "WANTED", "WAITING", "STATE"],
            ["api", "500", "50", "fair", "3", "of", "3", "300", "480", "4", "stable"],
            ["mail", "5", "10", "exact", "not", "used", "by", "this", "agent"],
        ]
    said = json.loads(holdfast("limit", "ls", "--json").out)
    assert said["takes_part"] is True
    assert said["blacklisted"] == ["c"]
    assert [each["name"] for each in said["limits"]] == ["api", "mail"]


def test_one_limit(holdfast: Run, agent: FakeAgent) -> None:
    """Issue 16: `holdfast limit show NAME`: rate, share, what all want, the processes; nothing of a program's name is obeyed."""
    agent.answers[limit_calls.SurveyLimits] = LimitsReport(True, (BUSY,))
    ended = holdfast("limit", "show", "api")
    assert (ended.code, ended.err) == (0, "")
    assert "\x1b" not in ended.out
    said = [line.split() for line in ended.out.splitlines()]
    assert ["rate", "500", "per", "second,", "at", "most", "50", "at", "once"] in said
    assert ["stands", "on", "the", "agreed", "view:", "3", "members"] in said
    assert ["42", "web\\x1b[31m", "100", "1", "gone"] in said
    shown = json.loads(holdfast("limit", "show", "api", "--json").out)
    assert (shown["name"], shown["set_rate"], shown["rate"], shown["share"], shown["shared_by"]) == ("api", 500.0, 500.0, 300.0, "maxmin")
    assert [each["pid"] for each in shown["workers"]] == [41, 42]
    assert agent.asked(limit_calls.SurveyLimits)[-1].name == "api"


def test_a_limit_is_made_or_changed(holdfast: Run, agent: FakeAgent) -> None:
    """Issue 16: `set NAME --rate R [--burst B] [--fleet N]`; what is there keeps what is not named."""
    assert holdfast("limit", "set", "api", "--rate", "300").code == 0
    assert holdfast("limit", "set", "new", "--rate", "20", "--fleet", "6", "--policy", "exact").code == 0
    asked = [(each.name, each.terms, each.change) for each in agent.asked(limit_calls.SetLimit)]
    assert asked == [("api", None, Change(rate=300.0)), ("new", Terms(20.0, 20.0, "exact", fleet=6), None)]
    assert holdfast("limit", "set", "api", "--burst", "1", "--fleet", "auto").code == 0
    assert holdfast("limit", "set", "little", "--rate", "0.5", "--burst", "7").code == 0
    asked = [(each.name, each.terms, each.change) for each in agent.asked(limit_calls.SetLimit)]
    assert asked[2:] == [("api", None, Change(burst=1.0, fleet=0)), ("little", Terms(0.5, 7.0), None)]
    assert holdfast("limit", "remove", "api").code == 0
    assert agent.asked(limit_calls.RemoveLimit)[-1].name == "api"


@pytest.mark.parametrize(
    "words, named",
    [
        (("set", "api", "--rate", "0"), "rate"),
        (("set", "api", "--rate", "nan"), "rate"),
        (("set", "api", "--rate", "1e10"), "rate"),
        (("set", "api", "--burst", "0.5"), "burst"),
        (("set", "new", "--rate", "5", "--burst", "0.99"), "burst"),
        (("set", "api", "--fleet", "0"), "fleet"),
        (("set", "api", "--fleet", "many"), "fleet"),
        (("set", "api"), "--rate, --burst, --fleet"),
        (("set", "new", "--burst", "5"), "--rate"),
        (("set", "new", "--rate", "5", "--policy", "exact"), "fleet"),
        (("set", "x" * 200, "--rate", "5"), "name"),
        (("try", "api", "--cost", "0"), "cost"),
        (("try", "api", "--wait", "-1"), "--wait"),
    ],
)
def test_what_makes_no_sense_is_refused(holdfast: Run, agent: FakeAgent, words: tuple[str, ...], named: str) -> None:
    """Issue 16, what bad input gets: exit code 2 and the field, and nothing was asked for."""
    ended = holdfast("limit", *words)
    assert ended.code == 2
    assert ended.err.startswith(f"holdfast: {named}: ")
    assert "accepted" in ended.err
    assert agent.asked(limit_calls.SetLimit) == agent.asked(limit_calls.TakeLimit) == []


def test_exit_codes_of_a_try(holdfast: Run, agent: FakeAgent) -> None:
    """Issue 16: exit 0 go, 1 not now, 4 not in time."""
    agent.answers[limit_calls.TakeLimit] = Taken(True, 0.0)
    assert holdfast("limit", "try", "api", "--cost", "3").code == 0
    assert agent.asked(limit_calls.TakeLimit)[-1].cost == 3.0
    agent.answers[limit_calls.TakeLimit] = Taken(False, 1.5)
    ended = holdfast("limit", "try", "api", "--json")
    assert (ended.code, json.loads(ended.out)) == (1, {"went": False, "retry_after": 1.5})
    ended = holdfast("limit", "try", "api", "--wait", "0.1")
    assert (ended.code, ended.err) == (4, "holdfast: limit 'api': no room for a cost of 1 within 0.1 s\n")


def test_without_an_agent(holdfast: Run, tmp_path: Path) -> None:
    """Issue 16: `holdfast limit try` without an agent: exit code 3, and what to do."""
    none = ("--agent", str(tmp_path / "none.sock"))
    for words in (("try", "api"), ("ls",), ("show", "api"), ("set", "api", "--rate", "5"), ("remove", "api"), ("watch", "api")):
        ended = holdfast("limit", *words, *none)
        assert ended.code == 3
        assert "start one with `holdfast agent`" in ended.err
    ended = holdfast("run", "--limit", "api", *none, "--", "touch", "ran")
    assert (ended.code, Path("ran").exists()) == (125, False)


def test_watching_ends_after_so_many(holdfast: Run, agent: FakeAgent) -> None:
    """Issue 16: `watch NAME`, one line a second."""
    agent.answers[limit_calls.SurveyLimits] = LimitsReport(True, (BUSY,))
    ended = holdfast("limit", "watch", "api", "--count", "1")
    assert ended.out.rstrip().endswith("share 300 of 500, told 300, wants 290, all want 480, 4 waits, stable")
    said = json.loads(holdfast("limit", "watch", "api", "--count", "1", "--json").out)
    assert said["share"] == 300.0


def test_a_command_waits_for_its_limit(holdfast: Run, agent: FakeAgent) -> None:
    """Issue 16: `holdfast run --limit NAME -- CMD` takes one unit first; not in time: 125, and the command did not run."""
    agent.answers[limit_calls.TakeLimit] = Taken(False, 0.5)
    ended = holdfast("run", "--limit", "api", "--timeout", "0.05", "--", "touch", "ran")
    assert ended.code == 125
    assert ended.err == "holdfast: limit 'api': no room for a cost of 1 within 0.05 s\n"
    assert not Path("ran").exists()
    ended = holdfast("run", "--limit", "", "--", "touch", "ran")
    assert (ended.code, Path("ran").exists()) == (125, False)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """One agent, which is its own group and has no seats."""
    with Fleet(tmp_path_factory.mktemp("alone")) as fleet:
        yield fleet.start(name="a")


def test_from_the_first_verb_to_the_last(holdfast: Run, alone: AgentProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16: the verbs with a real agent: a limit over a member list, a script that takes its cost, and 200 ms for a try."""
    monkeypatch.setenv("HOLDFAST_AGENT", alone.socket)

    def line() -> dict[str, Any]:
        said: dict[str, Any] = json.loads(holdfast("limit", "show", "api", "--json").out)
        return said

    assert holdfast("limit", "try", "api").code == 2
    assert holdfast("limit", "set", "api", "--rate", "50", "--burst", "5").code == 0
    assert holdfast("limit", "ls").out.splitlines()[1].split()[:4] == ["api", "50", "5", "fair"]
    assert holdfast("limit", "try", "api", "--wait", "20").code == 0
    assert (line()["over"], line()["workers"][0]["program"]) == ("members", "agent")
    time.sleep(0.2)
    began = time.monotonic()
    codes = [holdfast("limit", "try", "api").code for _ in range(20)]
    assert codes[0] == 0
    assert set(codes) <= {0, 1}
    assert (time.monotonic() - began) / 20 < 0.2
    assert holdfast("limit", "try", "api", "--cost", "200", "--wait", "0.1").code == 0  # A cost above the depth is paid afterwards.
    assert holdfast("limit", "try", "api").code == 1
    assert holdfast("limit", "try", "api", "--wait", "0.1").code == 4
    assert holdfast("limit", "set", "api", "--rate", "5000").code == 0
    until(lambda: holdfast("limit", "try", "api").code == 0, "it went on")
    assert holdfast("run", "--limit", "api", "--", "touch", "ran").code == 0
    assert Path("ran").exists()
    assert holdfast("limit", "remove", "api").code == 0
    for words in (("try", "api"), ("show", "api"), ("watch", "api"), ("remove", "api"), ("set", "api", "--burst", "5")):
        ended = holdfast("limit", *words)
        assert (ended.code, ended.out) == (2, "")
    assert holdfast("run", "--limit", "api", "--", "touch", "again").code == 125
    assert not Path("again").exists()
    assert holdfast("limit", "set", "strict", "--rate", "5", "--policy", "strict", "--fleet", "3").code == 2
