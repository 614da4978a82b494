"""Real agents whose member list is a view from a real ensemble of ZooKeeper.  Spec: views 5Z, D31; H242; foundation 5."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast.sync
from holdfast.errors import ConfigError
from holdfast.events import Failed, Joined, Left
from holdfast.features.views.lab.ensemble import STALE, Ensemble, missing
from holdfast.features.views.lab.wires import Wires
from holdfast.wire.keys import generate
from tests.support.agents import AgentProcess, Fleet, until

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(bool(missing()), reason=missing())]

SESSION = 2.0  # seconds


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Wires() as wires, Ensemble(tmp_path_factory.mktemp("zookeeper"), wires) as ensemble:
        yield ",".join(str(ensemble.door(number).address) for number in range(3))


class Agents:
    """Of one group, by name."""

    def __init__(self, fleet: Fleet, servers: str, group: str) -> None:
        self.fleet, self._servers, self._group = fleet, servers, group

    def start(self, name: str, **more: Any) -> AgentProcess:
        return self.fleet.start(
            name=name, group=self._group, runtime=self.fleet.folder / name, membership="views", zookeeper=self._servers, zk_session=SESSION,
            zk_stale=STALE, **more,
        )  # fmt: skip


@pytest.fixture
def agents(tmp_path: Path, servers: str, request: pytest.FixtureRequest) -> Iterator[Agents]:
    with Fleet(tmp_path) as fleet:
        yield Agents(fleet, servers, request.node.name.replace("_", "-"))


def tags_of(agent: AgentProcess) -> dict[str, dict[str, str]]:
    """What this agent knows of each member."""
    with holdfast.sync.join(agent=agent.socket) as group:
        return {member.name: dict(member.tags) for member in group.members}


def test_a_group_works_on_zookeeper(agents: Agents) -> None:
    """Views D31, 5Z: the view from ZooKeeper is the member list, with tags, topics, mail and rumours; a death is uncertain, a goodbye is
    Left; what needs seats says so."""
    a = agents.start("a", tags={"zone": "eu"})
    b = agents.start("b", seeds=[a.address])
    until(lambda: tags_of(a) == tags_of(b) == {"a": {"zone": "eu"}, "b": {}}, "both list both, with their tags")
    with holdfast.sync.join(agent=a.socket) as one, holdfast.sync.join(agent=b.socket) as other:
        events = one.watch()
        other.set_tags(zone="us")
        until(lambda: tags_of(a)["b"] == {"zone": "us"}, "a change is heard")
        letters, rumours = other.messages(), other.messages(topic="news")
        until(lambda: "b" in [each.name for each in one.members if "topic:u:news" in each.rows], "a knows who listens")
        one.send("b", b"letter")
        one.cast(b"rumour", topic="news")
        assert next(letters).data == b"letter"
        assert next(rumours).data == b"rumour"
        with pytest.raises(ConfigError, match="seats"), one.ticket("gpu", of=2, timeout=5):
            raise AssertionError("there are no seats to ask")
        c = agents.start("c", seeds=[a.address])
        next(event for event in events if isinstance(event, Joined) and event.member.name == "c")
        c.kill()
        gone = next(event for event in events if isinstance(event, Left | Failed) and event.member.name == "c")
        assert isinstance(gone, Failed)
        assert not gone.certain
    assert b.stop() == 0
    until(lambda: list(tags_of(a)) == ["a"], "a is alone")
    assert a.said("Left") is not None


def test_tags_are_in_the_ensemble(agents: Agents) -> None:
    """H242: an agent whose messages reach no other one (it has another key) knows the tags of all, as they were when each came."""
    a = agents.start("a", tags={"zone": "eu"})
    until(lambda: tags_of(a) == {"a": {"zone": "eu"}}, "a has its view")
    stranger = agents.start("b", key=generate(), tags={"zone": "us"})
    both = {"a": {"zone": "eu"}, "b": {"zone": "us"}}
    until(lambda: tags_of(a) == tags_of(stranger) == both, "each has the tags of the other")
