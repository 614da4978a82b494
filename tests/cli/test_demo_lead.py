"""The clients of the demo that ask to lead."""

from __future__ import annotations

from pathlib import Path

from holdfast.cli.demo.lead import Candidates
from holdfast.local.calls import Acquire
from tests.cli.fake_agent import FakeAgent
from tests.support.agents import until


def test_whoever_lost_its_term_stands_again(tmp_path: Path) -> None:
    """Detection G6: a term that was not renewed in time ends for good; its client asks for another one, which has a larger token."""
    with FakeAgent(tmp_path / "a.sock") as agent:
        agent.on[Acquire] = lambda client, call: client.grant(call, token=7 + len(agent.asked(Acquire)), seconds=60.0)
        candidates = Candidates()
        candidates.ask("a", agent.path)

        def heard(token: int) -> bool:
            candidates.listen()
            return token in candidates.reigns

        until(lambda: heard(8), "it leads")
        agent.clients[0].tell(agent.wait_for(Acquire)[1].serial, "lost", "not renewed")
        until(lambda: heard(9), "it leads again")
        assert candidates.last is not None
        assert candidates.last.token == 9
        candidates.close()
