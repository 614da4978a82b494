"""The one seat of a machine grants at once, and never while what it granted before can still run.  Foundation F12, F13; H154."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from holdfast import sync
from holdfast.client.clock import now
from tests.support.agents import AgentProcess, Fleet

LONGEST = 120.0  # seconds that a seat would wait which does not know; nothing here takes so long
PATIENCE = 30.0
GRACE = 5.0


@pytest.fixture
def fleet(tmp_path: Path) -> Any:
    with Fleet(tmp_path, key="", preset="lan", longest_grant=LONGEST, name="ada") as fleet:
        yield fleet


def start(fleet: Fleet) -> AgentProcess:
    return fleet.start(runtime=fleet.folder / "run")


def group_of(agent: AgentProcess) -> Any:
    return sync.join(agent=agent.socket, timeout=PATIENCE)


def wait_of(agent: AgentProcess) -> float:
    return float(agent.until_said("SeatOpened")["wait"])


def test_the_first_leader_and_the_first_ticket_do_not_wait(fleet: Fleet) -> None:
    """H154: nothing was ever promised on this machine; after an agent that left in good order nothing runs any more."""
    agent = start(fleet)
    with group_of(agent) as group, group.lead("x", timeout=PATIENCE) as first, group.ticket("p", of=2, timeout=PATIENCE):
        pass
    assert wait_of(agent) == 0.0
    assert agent.stop() == 0
    again = start(fleet)
    assert wait_of(again) == 0.0
    with group_of(again) as group, group.lead("x", timeout=PATIENCE) as second:
        assert second.token > first.token


@pytest.mark.parametrize("lost", ["nothing", "state", "runtime"])
def test_the_next_leader_waits_for_the_deadline_of_the_former(fleet: Fleet, lost: str) -> None:
    """H154, F14: the agent was killed while a client holds a long term; with its state directory gone as well, or the record."""
    agent = start(fleet)
    former = group_of(agent)
    term = former.lead("x", grace=GRACE, timeout=PATIENCE)
    term.__enter__()
    agent.kill()
    deadline = term.deadline
    assert deadline > now() + 1, "this machine is too slow for this test"
    runtime = fleet.folder / "run"
    if lost == "state":
        shutil.rmtree(runtime / "test.state")
    elif lost == "runtime":
        (runtime / "test.until").unlink()
    again = start(fleet)
    with group_of(again) as group, group.lead("x", timeout=PATIENCE):
        assert now() >= deadline
        assert not term.valid
    assert 0 < wait_of(again) < LONGEST / 2  # The journal alone says F13's wait, of the longest that was granted.
