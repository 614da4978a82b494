"""Views in an agent: when it takes part, which machine its node has, and what its calls answer."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from holdfast.agent.feature import Missing
from holdfast.errors import ConfigError, ExtraMissing, Unavailable
from holdfast.features.views import backend, calls
from holdfast.features.views.agent import ViewFeature
from holdfast.features.views.doorbell import Doorbell
from holdfast.features.views.missing import NoViews
from holdfast.features.views.protocol.facts import ServerRetired
from holdfast.features.views.protocol.messages import ClientPing, LinkPing
from holdfast.features.views.protocol.survey import LinkLook
from holdfast.features.views.protocol.views import ViewNode
from holdfast.features.views.running import ViewAgent
from holdfast.host import Address, NodeId, ViewState
from holdfast.kit.overlay import Overlay
from holdfast.local.calls import Call
from tests.features.views.fake_views import SERVER, FakeClient, FakeTurns, FakeViews, parts, view

PING = ClientPing(1, 1, 0, 0.0, 0)
IDLE, USED = LinkPing(1, 1, used=False), LinkPing(2, 1, used=True)
PEER = NodeId("s1", 1)


class Agent:
    """One agent whose back end is a script."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, own: int | None = None) -> None:
        self.host, self.client = FakeTurns(), FakeClient()
        self.views = FakeViews(own=own)
        monkeypatch.setattr(backend, "back_end", lambda *parts: self.views)
        self.parts = parts(self.host, own=own)
        built = ViewFeature().build(self.parts)
        assert isinstance(built, ViewAgent)
        self.feature = built
        for machine in built.machines:
            self.host.node.add(machine)
        self.handlers = built.calls().in_turn
        self._serial = 0

    def ask(self, kind: type[Call], *fields: Any) -> int:
        self._serial += 1
        self.handlers[kind](self.client, kind(self._serial, *fields))  # type: ignore[arg-type]
        return self._serial

    def survey(self) -> calls.ViewsReport:
        return msgspec.msgpack.decode(self.client.answers[self.ask(calls.SurveyViews)], type=calls.ViewsReport)

    def close(self, serial: int) -> None:
        self.client.streams[serial].close()
        self.host.turn()

    def part(self) -> tuple[bool, object]:
        """Whether the machine is told to take part, and what the overlay has."""
        return self.views.takes_part, self.parts.overlay.views

    @property
    def machines(self) -> list[str]:
        return [type(machine).__name__ for machine in self.host.node.machines]


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Agent:
    return Agent(monkeypatch)


@pytest.fixture
def seat(monkeypatch: pytest.MonkeyPatch) -> Agent:
    return Agent(monkeypatch, own=0)


def test_takes_part_while_a_client_wants_it(agent: Agent) -> None:
    """Views D31: from the first client that asks until the last one closes; the overlay is there for as long."""
    assert (agent.machines, agent.parts.overlay.views) == ([], None)
    first, second = agent.ask(calls.WatchViews), agent.ask(calls.WatchViews)
    assert agent.part() == (True, agent.views)
    assert (agent.machines, set(agent.client.woken)) == (["FakeViews"], {first, second})
    agent.close(first)
    assert agent.part() == (True, agent.views)
    agent.close(second)
    assert agent.part() == (False, None)
    agent.ask(calls.WatchViews)
    assert agent.part() == (True, agent.views)
    assert (agent.machines, len(agent.views.listeners)) == (["FakeViews"], 1)


def test_a_client_that_comes_as_the_last_one_goes(agent: Agent) -> None:
    """Views D31: a stream is closed outside of a turn; what came meanwhile keeps this agent in."""
    first = agent.ask(calls.WatchViews)
    agent.client.streams[first].close()
    agent.ask(calls.WatchViews)
    agent.host.turn()
    assert agent.views.takes_part


def test_an_agent_that_leaves_its_group(agent: Agent) -> None:
    """Views 9: a graceful leave; a client that still wants views has them again when the agent joins again."""
    agent.ask(calls.WatchViews)
    agent.feature.drain()
    assert agent.part() == (False, None)
    agent.ask(calls.WatchViews)
    assert agent.part() == (False, None)
    agent.feature.drain(draining=False)
    assert agent.part() == (True, agent.views)


def test_a_seat_has_a_doorbell(seat: Agent) -> None:
    """Views D1: the first client anywhere, or a server that knows of one, makes this seat serve; who asks idly does not."""
    assert seat.machines == ["Doorbell"]
    bell = seat.host.node.machines[0]
    bell.on_message(PEER, IDLE)
    assert (seat.machines, seat.feature.serves) == (["Doorbell"], False)
    bell.on_message(PEER, USED)
    assert (seat.machines, seat.views.said) == (["FakeViews"], [USED])
    assert (seat.part(), seat.feature.serves) == ((False, None), True)


def test_a_client_rings(seat: Agent) -> None:
    """Views D1: its first ping is not lost, so it attaches a round trip later."""
    seat.host.node.machines[0].on_message(NodeId("x", 1), PING)
    assert (seat.machines, seat.views.said) == (["FakeViews"], [PING])


def test_a_server_that_no_client_needs(seat: Agent) -> None:
    """Views D1: it retires, and waits at the doorbell again; the machine is kept, because its numbers only grow (G2)."""
    seat.host.node.machines[0].on_message(PEER, USED)
    retired = ServerRetired()
    assert isinstance(retired, seat.feature.hears)
    seat.views.idle_since = 1000.0
    seat.feature.on_event(retired)
    assert seat.machines == ["FakeViews"]  # Not in the middle of its own callback.
    seat.host.turn()
    assert seat.machines == ["Doorbell"]
    seat.host.node.machines[0].on_message(PEER, USED)
    assert seat.host.node.machines == [seat.views]


def test_a_server_that_is_needed_does_not_retire(seat: Agent) -> None:
    """Views D1: a client of this agent, or one that came meanwhile, keeps it."""
    seat.ask(calls.WatchViews)
    seat.views.idle_since = 1000.0
    seat.feature.on_event(ServerRetired())
    seat.host.turn()
    assert seat.machines == ["FakeViews"]
    seat.close(1)
    seat.views.idle_since = None
    seat.feature.on_event(ServerRetired())
    seat.host.turn()
    assert seat.machines == ["FakeViews"]


def test_the_doorbell_counts_as_the_server_does() -> None:
    """F4: a peer that runs with other numbers is told so, whether this seat serves or not."""
    host = FakeTurns()
    given = parts(host, own=0, view_heartbeat=0.5)
    feature = ViewFeature().build(given)
    assert isinstance(feature, ViewAgent)
    (bell,) = feature.machines
    assert isinstance(bell, Doorbell)
    node = backend.back_end(given.host, given.config.group, feature.settings, given.slots)
    assert isinstance(node, ViewNode)
    assert bell.fingerprint == node.fingerprint
    assert set(bell.handles) <= set(node.handles)


def test_without_slots_the_setting_is_named() -> None:
    """Views 10: ConfigError names the setting if there are no seats; nothing is built."""
    feature = ViewFeature().build(parts(FakeTurns(), slots=False))
    assert isinstance(feature, NoViews)
    assert isinstance(feature, Missing)
    handlers = feature.calls().in_turn
    assert set(handlers) == {calls.WatchViews, calls.TripView, calls.SurveyViews}
    for kind, handler in handlers.items():
        with pytest.raises(ConfigError, match="seats: who are the seats"):
            handler(FakeClient(), kind(1, *(("x",) if kind is calls.TripView else ())))  # type: ignore[arg-type]


def test_zookeeper_instead_of_seats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 5Z: no slots are needed, a seat hangs up no doorbell, and an extra that is not installed is named."""
    monkeypatch.setattr("holdfast.features.views.zookeeper.servers.find_spec", lambda name: None)
    for own, slots in ((None, False), (0, True)):
        feature = ViewFeature().build(parts(FakeTurns(), own=own, slots=slots, zookeeper="zk1:2181"))
        assert isinstance(feature, ViewAgent)
        assert feature.machines == ()
        with pytest.raises(ExtraMissing, match=r"zookeeper: .* is not installed"):
            feature.begin(object())
        assert (feature.users, feature.views) == ({}, None)


def test_trip(agent: Agent) -> None:
    """Views 10: not without a view, not too often, and the text says when it may be done again; a reason is printable text."""
    with pytest.raises(Unavailable, match="no client of this agent asked for views"):
        agent.ask(calls.TripView, "x")
    agent.ask(calls.WatchViews)
    with pytest.raises(Unavailable, match="no view to give up"):
        agent.ask(calls.TripView, "x")
    agent.views.stand(view(5, "a", "b"), agent.host.now + 1.0)
    for bad in ("", "two\nlines", "x" * 201):
        with pytest.raises(ConfigError, match=r"reason: .*; accepted are 1 to 200 characters"):
            agent.ask(calls.TripView, bad)
    assert agent.ask(calls.TripView, "b is silent") in agent.client.answers
    assert agent.views.said == ["b is silent"]
    agent.views.trips_again_in = 7.25
    with pytest.raises(Unavailable, match=r"it may again in 7\.2 s"):
        agent.ask(calls.TripView, "b is silent")


def test_survey_of_an_agent_that_takes_no_part(seat: Agent) -> None:
    """Views 10: looking does not make an agent take part; a seat says that it serves no views now."""
    report = seat.survey()
    assert (report.takes_part, report.slot, report.serves, report.view, report.back_end) == (False, 0, False, None, "seats")
    assert seat.machines == ["Doorbell"]


def test_survey(seat: Agent) -> None:
    """Views 10: the view, how long it is leased, the servers and links; ages count back from now."""
    seat.ask(calls.WatchViews)
    seat.views.links = (LinkLook(1, Address("127.0.0.1", 7001), PEER, "up", 4.0, 2, "silent"),)
    seat.views.stand(view(5, "a", "b"), seat.host.now + 1.25, ViewState.CHANGING)
    report = seat.survey()
    assert (report.takes_part, report.users, report.slot, report.serves, report.server, report.attach) == (True, 1, 0, True, SERVER, 3)
    assert (report.state, report.leased_for, report.settles_in, report.installed_ago) == (ViewState.CHANGING, 1.25, 2.25, 1.5)
    assert report.view is not None
    assert [member.id.name for member in report.view.members] == ["a", "b"]
    assert report.seats == (calls.SeatOfViews(1, "127.0.0.1:7001", PEER, "up", 4.0, 2, "silent"),)
    assert (report.graph, report.clients, report.number, report.rtt_p99) == (((0, 1, True),), 2, 9, 0.004)


def test_counts(agent: Agent) -> None:
    """Views 9: numbers of the machine under a prefix; the users in any case."""
    assert agent.feature.counts() == {"views_users": 0.0}
    agent.ask(calls.WatchViews)
    agent.views.stand(view(5, "a", "b"), 1.0)
    assert agent.feature.counts() == {"views_size": 2.0, "views_users": 1.0}
    assert agent.feature.lost() == {"view_events_lost": 0}


def test_an_agent_that_uses_no_views_loads_no_protocol_of_them() -> None:
    """H221: memory grows with what is used. A seat loads what it needs to hear the bell, any other agent nothing."""
    code = (
        "import sys, holdfast.agent.life.main\n"
        "from types import SimpleNamespace as N\n"
        "from holdfast.agent.feature import features\n"
        "from holdfast.config import Config\n"
        "from holdfast.host import Address\n"
        "from holdfast.kit.overlay import Overlay\n"
        "from holdfast.kit.slots import OwnSlots, Slot\n"
        "slots = (Slot(0, 's0', Address('127.0.0.1', 7000)),)\n"
        "feature = next(each for each in features() if each.name == 'views')\n"
        "host = N(me=None)\n"
        "for known, own in (((), None), (slots, None), (slots, 0)):\n"
        "    feature.build(N(slots=OwnSlots(known, own, 'none'), config=Config(), host=host, overlay=Overlay()))\n"
        "    print(*sorted(name for name in sys.modules if 'features.views' in name))\n"
    )
    without, alone, seat = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    home = "holdfast.features.views"
    assert without.split() == [home, f"{home}.agent", f"{home}.missing", f"{home}.settings"]
    assert set(alone.split()) - set(without.split()) == {f"{home}.running"}
    loaded = {f"{home}.doorbell", f"{home}.protocol", *(f"{home}.protocol.{name}" for name in ("config", "facts", "messages"))}
    assert set(seat.split()) - set(alone.split()) == loaded


def test_another_feature_is_lent_views_and_ends_them_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits 1: a limit stands on views; features do not import each other. An agent that leaves gives its share up in the view first."""
    agent, user = Agent(monkeypatch), object()
    heard = []
    agent.parts.overlay.on_views.append(lambda: heard.append(agent.parts.overlay.views))
    assert agent.parts.overlay.begin(user) is agent.views
    assert agent.part() == (True, agent.views)
    agent.feature.drain()
    assert agent.part() == (True, agent.views)
    assert not agent.feature.drained
    agent.parts.overlay.end(user)
    assert agent.part() == (False, None)
    assert heard == [agent.views, None]


def test_where_no_server_is_known_no_views_are_lent() -> None:
    """Limits 5.11: a group without seats has limits all the same, over its member list."""
    overlay = Overlay()
    assert overlay.begin(overlay) is None
    overlay.end(overlay)
