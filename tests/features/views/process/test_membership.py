"""Real agents whose member list is a view: three seats and another one.  Spec: views D31, 9; foundation 5, F15."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import holdfast
import holdfast.sync
from holdfast.cli.demo.fleet import free_ports
from holdfast.client.buffers import EVENTS_MAX
from holdfast.errors import ConfigError, Unavailable
from holdfast.events import Event, EventsLost, Expelled, Failed, Joined, Left, ViewChanged
from holdfast.features.keys.calls import Keys, MemberReport
from holdfast.host import NodeId, View, ViewId
from holdfast.sync import Group
from holdfast.wire.keys import generate, parse_key
from tests.agent.live import Live
from tests.agent.raw_client import RawClient
from tests.support.agents import AgentProcess, Fleet, until

SEATS = 3
WAIT = 40.0  # seconds


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


def waiting(watch: Any) -> list[Event]:
    """What is there to read now."""
    found = []
    try:
        while True:
            found.append(watch.next(timeout=0))
    except holdfast.Timeout:
        return found


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


def test_keys_are_changed(views: Views, group: Group) -> None:
    """Views D31, docs/keys.md: install, use, remove. Every member of the view reports, none goes, and what they say to each other is sealed
    with the new key alone."""
    old, new = views.fleet.settings["key"], generate()
    first, second = parse_key(old).id.hex(), parse_key(new).id.hex()
    goings = group.watch()
    with RawClient(views.agents["a3"].socket) as client:
        for action, key, held in (
            ("list", "", (first,)),
            ("install", new, (first, second)),
            ("use", second, (second, first)),
            ("remove", first, (second,)),
        ):
            reports: tuple[MemberReport, ...] = client.ask(Keys, action, key, WAIT)
            assert {each.member: (each.done, each.keys) for each in reports} == dict.fromkeys(views.agents, (True, held)), action
    views.fleet.settings["key"] = new  # for the lives that other tests start
    with holdfast.sync.join(agent=views.agents["a1"].socket) as other:
        letters = other.messages()
        group.send("a1", b"sealed anew", timeout=WAIT)
        assert next(letters).data == b"sealed anew"
    until(lambda: sorted(group.members.names) == sorted(views.agents), "all are listed")
    assert [event for event in waiting(goings) if isinstance(event, Failed | Left | Expelled)] == []


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
    """Foundation 5: a member that leaves in good order is Left. It says so if it knows that it is one, which others may hear first."""
    events = group.watch()
    extra = views.fleet.start(name="z9", membership="views", seats=views.seats, seeds=[views.agents["a0"].address])
    next(event for event in events if isinstance(event, Joined) and event.member.name == "z9")
    until(lambda: "z9" in views.list_of(extra), "z9 is in its own list")
    assert extra.stop() == 0
    gone = next(event for event in events if isinstance(event, Left | Failed) and event.member.name == "z9")
    assert isinstance(gone, Left)


def test_a_watcher_that_stands_still(tmp_path: Path) -> None:
    """Views 10, foundation 5: while it reads nothing more views come than are kept for it. It reads ``EventsLost(n)`` with the number that
    it missed, and goes on with what comes then."""
    with Live(tmp_path, name="solo", membership="views") as live, holdfast.sync.join(agent=live.path) as group:
        views = group.views()
        views.ready(timeout=WAIT)
        watch, me, many = group.watch(), live.agent.me, EVENTS_MAX + 500

        def change(numbers: range) -> None:
            for number in numbers:
                live.agent.host.emit(ViewChanged(View(ViewId(number, me.name, me.boot), (me,), (), 1), (NodeId("b", number),), ()))

        for start in range(1, many + 1, 100):
            live.turn(partial(change, range(start, min(start + 100, many + 1))))
        until(lambda: len(watch._items) > EVENTS_MAX, "more has come than is kept")
        seen: list[Event] = []

        def all_counted() -> bool:
            seen.extend(waiting(watch))
            return counted(seen) >= many

        until(all_counted, "every view is read, or counted as lost")
        assert counted(seen) < many + 100  # what is lost may be another event: that this agent was late
        assert [event.view.number for event in seen if isinstance(event, ViewChanged)][:EVENTS_MAX] == [*range(1, EVENTS_MAX + 1)]
        assert any(isinstance(event, EventsLost) for event in seen)
        views.trip("to see that it goes on")
        changed = next(event for event in watch if isinstance(event, ViewChanged))
        assert [member.id for member in changed.view.members] == [me]
        views.close()


def counted(events: list[Event]) -> int:
    """Views that were told, and that were told to be missing."""
    return sum(event.count if isinstance(event, EventsLost) else isinstance(event, ViewChanged) for event in events)


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
