"""Real agents whose member list is a view: three seats and another one.  Spec: views D31, 9; foundation 5, F15."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast.sync
from holdfast.cli.demo.fleet import free_ports
from holdfast.errors import ConfigError, Unavailable
from holdfast.events import Event, Failed, Joined, Left
from holdfast.sync import Group
from tests.support.agents import AgentProcess, Fleet, until

SEATS = 3


class Views:
    """A group whose membership is views: three seats, and one that is none."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._ports = free_ports(SEATS)
        self.seats = [f"a{number}@127.0.0.1:{port}" for number, port in enumerate(self._ports)]
        self.agents = {f"a{number}": self.start(f"a{number}") for number in range(SEATS + 1)}
        for agent in self.agents.values():
            until(lambda agent=agent: self.list_of(agent) == sorted(self.agents), f"{agent.name} lists all")  # type: ignore[misc]

    def start(self, name: str) -> AgentProcess:
        """This member, or its next life."""
        number = int(name[1:])
        bind = f"127.0.0.1:{self._ports[number]}" if number < SEATS else "127.0.0.1:0"
        runtime = self.fleet.folder / f"home-{name}"
        return self.fleet.start(
            name=name, bind=bind, membership="views", seats=self.seats, seeds=[f"127.0.0.1:{self._ports[0]}"], runtime=runtime,
            state_dir=str(runtime / "state"),
        )  # fmt: skip

    def list_of(self, agent: AgentProcess) -> list[str]:
        with holdfast.sync.join(agent=agent.socket) as group:
            return sorted(group.members.names)


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Views]:
    with Fleet(tmp_path_factory.mktemp("views")) as fleet:
        yield Views(fleet)


@pytest.fixture
def group(views: Views) -> Iterator[Group]:
    with holdfast.sync.join(agent=views.agents["a3"].socket) as group:
        yield group


def hear(group: Group, kind: type[Event], name: str) -> Event:
    """The next event of this kind about this member."""
    return next(event for event in group.watch() if isinstance(event, kind) and event.member.name == name)  # type: ignore[attr-defined]


def test_a_group_works_on_views(views: Views, group: Group) -> None:
    """Views D31: tags, mail, rumours, leadership and tickets work over a view as over the ring."""
    with holdfast.sync.join(agent=views.agents["a1"].socket) as other:
        other.set_tags(zone="eu")
        until(lambda: (member := group.members.get("a1")) is not None and member.tags == {"zone": "eu"}, "a3 knows the tag of a1")
        letters, rumours = other.messages(), other.messages(topic="news")
        until(lambda: "a1" in [each.name for each in group.members if "topic:u:news" in each.rows], "a3 knows who listens")
        group.send("a1", b"letter")
        group.cast(b"rumour", topic="news")
        assert next(letters).data == b"letter"
        assert next(rumours).data == b"rumour"
        with group.lead("job", timeout=60) as term, other.ticket("gpu", of=2, timeout=60) as ticket:
            assert term.valid
            assert ticket.valid


def test_keys_have_no_owner(group: Group) -> None:
    """Views D31: ``owner`` and ``owns`` say why, instead of naming a member that may not act."""
    with pytest.raises(Unavailable, match="keys have no owners"):
        group.owner("cart:42")
    with pytest.raises(Unavailable, match='"views" has no owners of keys'):
        group.owns("cart:42")


def test_a_death_ends_no_grant(views: Views, group: Group) -> None:
    """Foundation 5, F15: a member that is killed is Failed, never certain; what is held elsewhere stays held. Its next life joins."""
    with group.lead("kept", timeout=60) as term:
        views.agents["a2"].kill()
        failed = hear(group, Failed, "a2")
        assert isinstance(failed, Failed)
        assert not failed.certain
        assert term.valid
        views.agents["a2"] = views.start("a2")
        joined = hear(group, Joined, "a2")
        assert isinstance(joined, Joined)
        assert joined.member.id.boot > failed.member.id.boot
        assert term.valid


def test_a_goodbye(views: Views, group: Group) -> None:
    """Foundation 5: a member that leaves in good order is Left."""
    events = group.watch()
    extra = views.fleet.start(name="z9", membership="views", seats=views.seats, seeds=[views.agents["a0"].address])
    next(event for event in events if isinstance(event, Joined) and event.member.name == "z9")
    assert extra.stop() == 0
    gone = next(event for event in events if isinstance(event, Left | Failed) and event.member.name == "z9")
    assert isinstance(gone, Left)


def test_without_servers(tmp_path: Path) -> None:
    """F12: views need slots, and an agent that has none says which setting is missing before it joins anything."""
    with Fleet(tmp_path) as fleet:
        agent = fleet.start(membership="views", expect_ready=False)
        assert agent.wait() != 0
        assert "membership" in agent.stderr
        assert "seats" in agent.stderr


def test_by_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``holdfast.join(membership=...)`` starts an agent with it; alone on its machine it is its own seat (F12)."""
    monkeypatch.setenv("HOLDFAST_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    tmp_path.chmod(0o700)
    with holdfast.sync.join("shop", membership="views", preset="local") as group:
        until(lambda: len(group.members) == 1, "a view of one")
    with pytest.raises(ConfigError, match="membership"):
        holdfast.sync.join("shop", membership="view")
