"""Both spellings and an agent that is in no group: `join` with `wait=False` returns when the agent answers.  docs/client.md."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.errors import JoinFailed, JoinTimeout
from holdfast.host import Address, Member, NodeId
from holdfast.local import calls
from tests.client.fake_agent import FakeAgent, member, view
from tests.client.spelling import Spelling
from tests.support.agents import until

SEED = "10.0.0.5:7946"
OUTSIDE = replace(view(3, state="joining"), members=(), positions=(), waits_for="no seed answers")


def test_join_without_waiting(client: Spelling, agent: FakeAgent) -> None:
    """H248: the state says that it is no member, the list is empty, tags are set; once it is a member, the same object has the list."""
    agent.view = OUTSIDE
    group = client.join("orders", agent=agent.path, wait=False, tags={"zone": "eu"})
    assert (group.state, group.members.names, group.me.id, group.name) == ("joining", (), NodeId("a", 1), "orders")
    assert group.owner("key") is None
    assert agent.wait_for(calls.SetTags).tags == {"zone": "eu"}
    agent.view = view(4, member("a"), member("b"))
    agent.happened("Joined", 4, member=Member(NodeId("b", 1), Address("127.0.0.1", 7000), {}))
    until(lambda: group.state == "member", "it is a member")
    assert group.members.names == ("a", "b")
    client.run(group.leave)


def test_an_agent_that_left_knocks(client: Spelling, agent: FakeAgent) -> None:
    """H248: seeds are knocked at, and the agent goes on after the call; what it refuses is raised all the same."""
    agent.view = replace(OUTSIDE, state="left")

    def knock(call: calls.Call) -> tuple[str, str]:
        agent.view = OUTSIDE
        return "JoinTimeout", "not a member after 0.001 s; the agent goes on"

    agent.answers[calls.Join] = knock
    group = client.join("orders", agent=agent.path, seeds=[SEED], wait=False)
    assert agent.wait_for(calls.Join).seeds == (SEED,)
    assert group.state == "joining"
    client.run(group.leave)
    agent.view = replace(OUTSIDE, state="left")
    agent.answers[calls.Join] = ("JoinFailed", "this agent is leaving its group")
    with pytest.raises(JoinFailed, match="leaving its group"):
        client.join("orders", agent=agent.path, seeds=[SEED], wait=False)


def test_a_join_that_waits_ends_as_before(client: Spelling, agent: FakeAgent) -> None:
    """H164, H248: without `wait=False` the agent's "not in time" is the caller's."""
    agent.view = replace(OUTSIDE, state="left")
    agent.answers[calls.Join] = ("JoinTimeout", "not a member after 20 s")
    with pytest.raises(JoinTimeout, match="after 20 s"):
        client.join("orders", agent=agent.path, seeds=[SEED], timeout=20.0)
    assert agent.wait_for(calls.Join).timeout > 1.0
