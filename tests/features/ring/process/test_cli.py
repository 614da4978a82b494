"""``holdfast owner`` against an agent by script, and ``holdfast --version``.  docs/cli.md"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.features.ring.protocol.ids import position_of
from holdfast.local import calls
from holdfast.net.clock import now
from tests.cli.command import Run
from tests.cli.fake_agent import GROUP_VIEW, FakeAgent

VIEW = replace(GROUP_VIEW, members=(GROUP_VIEW.me,), positions=(position_of("me"),))


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAgent]:
    with FakeAgent(tmp_path / "agent.sock") as agent:
        agent.answers[calls.Look] = VIEW
        agent.answers[calls.Owns] = None
        monkeypatch.setenv("HOLDFAST_AGENT", agent.path)
        yield agent


def test_a_key_of_this_agent(holdfast: Run, agent: FakeAgent) -> None:
    """Exit code 0: it may act, under a token, until a deadline."""
    agent.answers[calls.Owns] = calls.Owned(7, now() + 60.0)
    ended = holdfast("owner", "cart:42")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.strip() == VIEW.me.name
    told = holdfast("owner", "cart:42", "--json").json
    assert (told["key"], told["owner"], told["grant"]["token"]) == ("cart:42", ended.out.strip(), 7)
    assert 0 < told["grant"]["left"] <= 60


@pytest.mark.parametrize("past", [None, -1.0], ids=["another member's", "deadline passed"])
def test_a_key_that_this_agent_may_not_act_for(holdfast: Run, agent: FakeAgent, past: float | None) -> None:
    """Exit code 1, and the owner all the same; a deadline that has passed is no permission."""
    agent.answers[calls.Owns] = None if past is None else calls.Owned(7, now() + past)
    ended = holdfast("owner", "cart:42")
    assert (ended.code, bool(ended.out.strip())) == (1, True)
    assert holdfast("owner", "cart:42", "--json").json["grant"] is None


def test_an_agent_in_no_group(holdfast: Run, agent: FakeAgent) -> None:
    """Exit code 1: it knows no owner of anything."""
    agent.answers[calls.Look] = replace(GROUP_VIEW, state="left", members=(), positions=())
    holdfast("owner", "cart:42").refused(1, "in no group", "'left'")


def test_the_version_as_a_flag(holdfast: Run) -> None:
    """The same line as the verb prints."""
    assert holdfast("--version") == holdfast("version")
