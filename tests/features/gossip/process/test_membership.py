"""Real agents whose membership is gossip: three seats and another one.  Spec: gossip 10, 5.4, 5.8, D17, D21; foundation 5, F15."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
import holdfast.sync
from holdfast.cli.demo.fleet import free_ports
from holdfast.errors import ConfigError
from holdfast.events import Cleared, Decided, Event, Failed, Joined, Left, Suspected
from holdfast.features.gossip.calls import Forget
from holdfast.features.keys.calls import Keys, MemberReport
from holdfast.local.calls import Doctor, Finding, Join, Leave
from holdfast.sync import Group
from holdfast.wire.keys import generate, parse_key
from tests.agent.raw_client import RawClient, Sent
from tests.cli.command import Run
from tests.cli.diagnosis import diagnosed
from tests.support.agents import AgentProcess, Fleet, until

SEATS = 3
WAIT = 40.0  # seconds
PROBE = 0.2  # T of the preset ``local``
BURIED_MOST = 6 * 2.5 * PROBE  # Max of gossip 5.4 in a small group: so long a member may be suspected


class Gossips:
    """A group whose membership is gossip: three seats, and one that is none."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._ports = free_ports(SEATS)
        self.seats = [f"a{number}@127.0.0.1:{port}" for number, port in enumerate(self._ports)]
        self.agents = {f"a{number}": self.start(f"a{number}") for number in range(SEATS + 1)}
        for agent in self.agents.values():
            until(lambda agent=agent: self.list_of(agent) == sorted(self.agents), f"{agent.name} lists all")  # type: ignore[misc]

    def start(self, name: str, **settings: Any) -> AgentProcess:
        """This member, or its next life."""
        number = int(name[1:])
        bind = f"127.0.0.1:{self._ports[number]}" if number < SEATS else "127.0.0.1:0"
        runtime = self.fleet.folder / f"home-{name}"
        seeds = [f"127.0.0.1:{port}" for port in self._ports]
        return self.fleet.start(
            **{"name": name, "bind": bind, "membership": "gossip", "seats": self.seats, "seeds": seeds, **settings},
            runtime=runtime, state_dir=str(runtime / "state"),
        )  # fmt: skip

    def list_of(self, agent: AgentProcess) -> list[str]:
        with holdfast.sync.join(agent=agent.socket) as group:
            return sorted(group.members.names)


@pytest.fixture(scope="module")
def gossips(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gossips]:
    with Fleet(tmp_path_factory.mktemp("gossip")) as fleet:
        yield Gossips(fleet)


@pytest.fixture
def group(gossips: Gossips) -> Iterator[Group]:
    with holdfast.sync.join(agent=gossips.agents["a3"].socket) as group:
        yield group


def heard(events: Iterator[Event], name: str, last: type[Event]) -> list[type[Event]]:
    """Kinds of the events about this member, up to the first of kind ``last``."""
    found = []
    for event in events:
        if getattr(getattr(event, "member", None), "name", "") == name:
            found.append(type(event))
            if isinstance(event, last):
                return found
    raise AssertionError(f"no {last.__name__} of {name}: {found}")


def waiting(watch: Any) -> list[Event]:
    """What is there to read now."""
    found = []
    try:
        while True:
            found.append(watch.next(timeout=0))
    except holdfast.Timeout:
        return found


def test_a_group_works_on_gossip(gossips: Gossips, group: Group) -> None:
    """Gossip 10: tags, mail, rumours, leadership and tickets work over gossip as over the ring."""
    with holdfast.sync.join(agent=gossips.agents["a1"].socket) as other:
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


def test_the_owner_of_a_key_is_a_hint(gossips: Gossips, group: Group, holdfast: Run) -> None:
    """Gossip D21: equal lists name one owner; no member may act for a key, and the error names the setting."""
    with holdfast_sync_join(gossips.agents["a0"].socket) as other:
        owner = group.owner("cart:42")
        assert owner is not None
        assert other.owner("cart:42").name == owner.name
    with pytest.raises(ConfigError, match=r'^membership: "gossip" has no owners of keys'):
        group.owns("cart:42")
    said = holdfast("owner", "cart:42", "--agent", gossips.agents["a3"].socket)
    assert (said.out.strip(), said.code) == (owner.name, 1)


def holdfast_sync_join(socket: str) -> Any:
    """The fixture of the verbs is called as the package is."""
    from holdfast.sync import join

    return join(agent=socket)


def test_keys_are_changed(gossips: Gossips, group: Group) -> None:
    """Gossip 10, docs/keys.md: install, use, remove. Every listed member reports, and none goes."""
    old, new = gossips.fleet.settings["key"], generate()
    first, second = parse_key(old).id.hex(), parse_key(new).id.hex()
    goings = group.watch()
    with RawClient(gossips.agents["a3"].socket) as client:
        for action, key, held in (
            ("install", new, (first, second)),
            ("use", second, (second, first)),
            ("remove", first, (second,)),
        ):
            reports: tuple[MemberReport, ...] = client.ask(Keys, action, key, WAIT)
            assert {each.member: (each.done, each.keys) for each in reports} == dict.fromkeys(gossips.agents, (True, held)), action
    gossips.fleet.settings["key"] = new  # for the lives that other tests start
    assert [event for event in waiting(goings) if isinstance(event, Failed | Left)] == []


def test_a_death_ends_no_grant(gossips: Gossips, group: Group) -> None:
    """Foundation 5, F15, gossip 5.1: a member that is killed is Suspected, Decided and Failed, in this order and never certain; what is
    held elsewhere stays held. Its next life joins."""
    with group.lead("kept", timeout=60) as term:
        events = group.watch()
        gossips.agents["a2"].kill()
        assert heard(events, "a2", Failed) == [Suspected, Decided, Failed]
        assert term.valid
        former = gossips.agents["a2"].ready["boot"]
        gossips.agents["a2"] = gossips.start("a2")
        assert heard(events, "a2", Joined) == [Joined]
        found = group.members.get("a2")
        assert found is not None
        assert found.id.boot > former
        assert term.valid


def test_a_pause_is_forgiven(gossips: Gossips, group: Group) -> None:
    """Gossip D16: a member that stands still for less than a shortest suspicion is not buried, and clears itself."""
    events = group.watch()
    agent = gossips.agents["a1"]
    began = time.monotonic()
    agent.signal(signal.SIGSTOP)
    heard(events, "a1", Suspected)
    agent.signal(signal.SIGCONT)
    stood = time.monotonic() - began
    found = heard(events, "a1", Cleared)
    # On a machine that is so late that the wait was over before it went on, its return is a Joined.
    assert found == [Cleared] or stood > 2.5 * PROBE, (found, stood)


def test_a_goodbye_is_final_for_a_life(gossips: Gossips, group: Group) -> None:
    """Gossip G7, D2: who leaves is Left. The same process does not come back, and is told what to do."""
    events = group.watch()
    extra = gossips.start("a7")
    heard(events, "a7", Joined)
    with RawClient(extra.socket) as own:
        own.ask(Leave, False)
        assert heard(events, "a7", Left)[-1] is Left
        with pytest.raises(Sent, match=r"JoinFailed: .*restart the agent"):
            own.ask(Join, (), WAIT)
    assert extra.stop() == 0


def test_forget(gossips: Gossips, group: Group, holdfast: Run) -> None:
    """Gossip 10: a dead member is given up, a listed one is not, an unknown one neither."""
    events = group.watch()
    extra = gossips.start("a8")
    heard(events, "a8", Joined)
    socket = gossips.agents["a3"].socket
    assert holdfast("forget", "a8", "--agent", socket).code != 0
    extra.kill()
    heard(events, "a8", Failed)
    said = holdfast("forget", "a8", "--agent", socket)
    assert (said.code, said.out.strip()) == (0, "a8 is forgotten")
    assert holdfast("forget", "unknown", "--agent", socket).code != 0


def test_the_other_membership_is_told_so(gossips: Gossips, tmp_path: Path) -> None:
    """Gossip D17: agents of two memberships hear it at both ends, and doctor says which setting differs."""
    ring = gossips.start("a9", membership="ring", expect_ready=False)
    line = ring.until_said("ConfigMismatch", field="membership")
    assert {line["ours"], line["theirs"]} == {"'ring'", "'gossip'"}
    gossips.agents["a0"].until_said("ConfigMismatch", field="membership")
    with RawClient(gossips.agents["a0"].socket) as client:
        found: tuple[Finding, ...] = client.ask(Doctor, 3.0, 600.0)
    assert "membership_mismatch" in [each.code for each in found]
    ring.kill()


def test_alone(holdfast: Run, tmp_path: Path) -> None:
    """Gossip 10 (`alone`), D9: its seed was never started, and it lists no other member; doctor says so until the seed is there."""
    (port,) = free_ports(1)
    with Fleet(tmp_path, membership="gossip") as fleet:
        lonely = fleet.start(name="lonely", seeds=[f"127.0.0.1:{port}"])
        found = diagnosed(holdfast, lonely, "alone")
        assert (found["severity"], found["about"]) == ("warning", "lonely")
        assert "Start a seed" in found["advice"]
        fleet.start(name="late", bind=f"127.0.0.1:{port}")
        lonely.until_said("Joined", member=fleet.agents[-1].id)
        ended = holdfast("doctor", "--agent", lonely.socket, "--timeout", "1", "--json")
        assert "alone" not in [each["code"] for each in ended.json["findings"]]


def test_forget_on_a_ring(tmp_path: Path) -> None:
    """Gossip 10: a ring remembers no dead member; the refusal names the setting."""
    with Fleet(tmp_path) as fleet, RawClient(fleet.start(name="a").socket) as client:
        with pytest.raises(Sent, match='membership: "ring" remembers no dead member'):
            client.ask(Forget, "b")


def test_by_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``holdfast.join(membership=...)`` starts an agent with it; alone on its machine it is its own seat (F12)."""
    monkeypatch.setenv("HOLDFAST_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    tmp_path.chmod(0o700)
    with holdfast.sync.join("shop", membership="gossip", preset="local") as group:
        until(lambda: len(group.members) == 1, "a group of one")
        with group.lead("job", timeout=60) as term:
            assert term.valid
