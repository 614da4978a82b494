"""Programs that join one after the other, and beside each other: the agent they share may be ending just then.  F12, H193."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from holdfast.client.attempts import OWN_LOST_MAX, Attempts
from holdfast.client.options import Plan
from holdfast.errors import AgentLost, ConfigError, JoinTimeout
from holdfast.local import calls
from holdfast.net.clock import now
from tests.client.fake_agent import FakeAgent, view
from tests.client.spelling import Spelling

# Each program is a fork of one that has imported everything: it joins at once after the end of those before it, or when their agent
# has seen that end and drains. It asks for a key that it owns, so that draining takes up to half a lease.
FORKS = """
import os, sys, time, traceback
{imports}

def act():
    try:
        {act}
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)

for beside in map(int, sys.argv[2:]):
    pids = [pid for _ in range(beside) if (pid := os.fork()) or act()]
    failed = [pid for pid in pids if os.waitpid(pid, 0)[1]]
    assert not failed, f"{{len(failed)}} of {{beside}} programs failed"
    time.sleep({pause})
"""
BLOCKING = """
        with holdfast.sync.join(sys.argv[1], timeout=60) as group:
            assert group.state == "member", group.state
            while group.owns("cart:42") is None:
                pass
"""
AIO = """
        async def main():
            async with holdfast.join(sys.argv[1], timeout=60) as group:
                assert group.state == "member", group.state
                while await group.owns("cart:42") is None:
                    pass
        asyncio.run(main())
"""
PROGRAMS = {"blocking": ("import holdfast.sync", BLOCKING.strip()), "aio": ("import asyncio, holdfast", AIO.strip())}
WAVES = [1, 1, 1, 3, 3]  # programs beside each other, in waves one after the other


@pytest.mark.parametrize("pause", [0, 0.2])
@pytest.mark.parametrize("spelling", PROGRAMS)
def test_programs_that_join_one_after_the_other_and_beside_each_other(spelling: str, pause: float) -> None:
    """H193: the agent of the programs before is just ending, and the next ones become members all the same."""
    imports, act = PROGRAMS[spelling]
    words = [sys.executable, "-c", FORKS.format(imports=imports, act=act, pause=pause), "quick", *map(str, WAVES)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def closed_after(agent: FakeAgent, looks: int) -> None:
    """It ends when it was looked at so often."""
    agent.wait_for(calls.Look, looks)
    agent.close()


def test_a_shared_agent_that_leaves_is_waited_for(client: Spelling, runtime: Path) -> None:
    """H193: it says "leaving" for a while, then it is gone; join starts another one."""
    with FakeAgent(runtime / "orders.sock", view=view(1, state="leaving")) as leaving:
        ending = Thread(target=closed_after, args=(leaving, 2))
        ending.start()
        group = client.join("orders")
        ending.join()
        try:
            assert group.me.name != leaving.me.name
            assert group.state == "member"
        finally:
            client.run(group.leave)


def test_a_shared_agent_that_leaves_for_too_long(client: Spelling, runtime: Path) -> None:
    """H193: until the time is over, and the error says what was waited for."""
    with FakeAgent(runtime / "orders.sock", view=view(1, state="leaving")), pytest.raises(JoinTimeout, match="leaving the group"):
        client.join("orders", timeout=0.2)


@pytest.mark.parametrize("wait", [True, False])
def test_a_shared_agent_that_leaves_after_it_was_found(client: Spelling, runtime: Path, wait: bool) -> None:
    """H193, H248: a client that is attached already looks for another agent, too, also if it does not wait for a member."""
    with FakeAgent(runtime / "orders.sock") as agent:
        seen = [view(1, state="joining")] * (1 + wait) + [view(1, state="leaving")]
        agent.answers[calls.Look] = lambda call: seen.pop(0) if len(seen) > 1 else seen[0]
        with pytest.raises(JoinTimeout, match="leaving the group"):
            client.join("orders", timeout=0.5, wait=wait)


def test_an_agent_that_was_named_is_the_only_one(client: Spelling, agent: FakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """H193: with agent= or HOLDFAST_AGENT no other agent is tried, and the error says which one was lost and what named it."""

    def hang_up(call: calls.Look) -> calls.GroupView:
        agent.session_of(call).close()
        return view(1, state="leaving")

    for named_by, options in (("agent=", {"agent": agent.path}), ("HOLDFAST_AGENT", {})):
        monkeypatch.setenv("HOLDFAST_AGENT", agent.path)
        agent.answers[calls.Look] = hang_up
        with pytest.raises(AgentLost, match=f"{agent.path}: .*{named_by} names this agent"):
            client.join("orders", **options)


def test_a_shared_agent_of_another_name_may_be_ending(client: Spelling, runtime: Path) -> None:
    """H193: the program before had another name. Its agent ends when it sees that the program has ended; if it stays, it is an error."""
    with FakeAgent(runtime / "orders.sock") as agent:
        asked_at = now()
        with pytest.raises(ConfigError, match="name: 'bob'"):
            client.join("orders", name="bob")
        assert now() - asked_at >= 1.0
        ending = Thread(target=closed_after, args=(agent, len(agent.all(calls.Look)) + 1))
        ending.start()
        group = client.join("orders", name="bob")
        ending.join()
        try:
            assert group.me.name == "bob"
        finally:
            client.run(group.leave)


def test_own_agents_that_end_at_once() -> None:
    """H193: an agent of our own that ends before it is a member is started again a few times, not for ever; a private one never."""
    attempts, error, plan = Attempts(now() + 60), AgentLost("it ended"), Plan("x.sock", "orders", "", settings={})
    child = object()
    for _ in range(OWN_LOST_MAX - 1):
        attempts.lost(plan, child, error)  # type: ignore[arg-type]
    with pytest.raises(AgentLost, match="it ended"):
        attempts.lost(plan, child, error)  # type: ignore[arg-type]
    with pytest.raises(AgentLost, match="it ended"):
        Attempts(now() + 60).lost(Plan("x.sock", "orders", "", attach=False, settings={}), None, error)
    with pytest.raises(JoinTimeout, match="it ended"):
        Attempts(now() - 1).lost(plan, None, error)
