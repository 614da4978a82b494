"""A command that has nothing to print says a sentence on stderr; stdout and the exit code stay as they are for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.features.tickets import calls as ticket_calls
from holdfast.features.tickets.calls import PoolView
from holdfast.local import calls
from tests.cli.command import Run
from tests.cli.fake_agent import GROUP_VIEW, FakeAgent


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAgent]:
    with FakeAgent(tmp_path / "agent.sock") as agent:
        waits_for = "no seed answers; it asks again within 3 s"
        agent.answers[calls.Look] = replace(GROUP_VIEW, state="joining", members=(), positions=(), waits_for=waits_for)
        agent.answers[calls.Info] = {}
        agent.answers[ticket_calls.Tickets] = ()
        agent.answers[ticket_calls.ReadTickets] = PoolView("gpu", 8, (), hint=False)
        monkeypatch.setenv("HOLDFAST_AGENT", agent.path)
        yield agent


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize(
    "words, told",
    [
        (["members"], "this agent is in no group, its state is 'joining': no seed answers; it asks again within 3 s;"),
        (["leader"], "no name has a leader"),
        (["leader", "nosuch"], "'nosuch' has no leader: no client has led it, as far as this agent heard"),
        (["ticket", "ls"], "no ticket is held, as far as this agent heard"),
        (["ticket", "ls", "gpu"], "no ticket of 'gpu' is held, as far as this agent heard"),
        (["ticket", "ls", "gpu", "--read"], "no ticket of 'gpu' is held, as far as majorities of the seats know"),
    ],
)
def test_a_sentence_on_stderr(holdfast: Run, words: list[str], told: str) -> None:
    """Exit code 1 as documented, one line that says why there is nothing."""
    ended = holdfast(*words)
    assert (ended.code, told in ended.err, ended.err.count("\n")) == (1, True, 1), ended
    assert "Traceback" not in ended.err


@pytest.mark.usefixtures("agent")
def test_members_that_no_filter_lets_pass(holdfast: Run, agent: FakeAgent) -> None:
    """A filter that matches none is told apart from a group that is empty."""
    agent.answers[calls.Look] = GROUP_VIEW
    ended = holdfast("members", "--tag", "zone=nowhere")
    assert ended.code == 1
    assert f"none of the {len(GROUP_VIEW.members)} members passes the filters" in ended.err
