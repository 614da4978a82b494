"""Limits in an agent: what it loads, when it takes part, and what its calls answer.  Spec: limits 5.11, 10; issue 16, 3."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from holdfast.config import Config
from holdfast.errors import ConfigError
from holdfast.features.limits import calls
from holdfast.features.limits.agent import LimitsFeature
from holdfast.features.limits.participants import Participants
from holdfast.features.limits.protocol.messages import Gossip
from holdfast.features.limits.running import DRAIN_TIMEOUT, LimitsAgent
from holdfast.features.limits.terms import Change, Terms
from holdfast.host import Machine, NodeId, ViewId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.overlay import Overlay
from holdfast.local.calls import Call
from tests.features.views.fake_views import FakeClient, FakeNode, FakeTurns, FakeViews, view
from tests.support.fake_members import FakeMembers, member

PEER = NodeId("b", 1)
GOSSIP = Gossip(ViewId(3, "s0", 1), 2, 0, 1, 5, {})


class RunningNode(FakeNode):
    """What is added starts."""

    def add(self, machine: Machine) -> None:
        super().add(machine)
        machine.start()


class Listed(FakeMembers):
    """This agent and another one, which uses no limit."""

    def __init__(self, me: NodeId) -> None:
        super().__init__(me, PEER)
        self.me, self.rows = me, dict[str, bytes]()

    def publish(self, row: str, value: bytes | None) -> None:
        self.rows[row] = value or b""
        self.listed[self.me] = member(self.me, self.rows)
        self.version += 1


class Lender:
    """The feature of views of this agent."""

    modules = ()

    def __init__(self, overlay: Overlay, views: FakeViews) -> None:
        self.overlay, self.views = overlay, views
        self.users: list[object] = []

    def begin(self, user: object) -> FakeViews:
        self.users.append(user)
        self.overlay.views = self.views
        return self.views

    def end(self, user: object) -> None:
        self.users.remove(user)
        self.overlay.views = None


class Process(FakeClient):
    """A client process, by its connection."""

    pid, program, connected = 11, "p11", True

    def body(self) -> None:
        return None


class Agent:
    """One agent, with views to borrow or without."""

    def __init__(self, *, seats: bool = True) -> None:
        self.host, self.client = FakeTurns(), Process()
        self.host.node = RunningNode()
        self.membership = Listed(self.host.me)
        broadcast = Broadcast(self.host, self.membership)
        self.overlay, self.views = Overlay(), FakeViews()
        self.lender = Lender(self.overlay, self.views)
        if seats:
            self.overlay.lender = self.lender
        parts: Any = SimpleNamespace(
            host=self.host,
            config=Config(),
            overlay=self.overlay,
            membership=self.membership,
            broadcast=broadcast,
            exchange=Exchange(self.host, broadcast),
            slots=SimpleNamespace(missing="seats: who are the seats?"),
        )
        built = LimitsFeature().build(parts)
        assert isinstance(built, LimitsAgent)
        self.feature = built
        self.handlers = built.calls().in_turn
        self._serial = 0

    def ask(self, kind: type[Call], *fields: Any) -> int:
        self._serial += 1
        self.handlers[kind](self.client, kind(self._serial, *fields))  # type: ignore[arg-type]
        return self._serial

    def report(self, name: str = "") -> calls.LimitsReport:
        serial = self.ask(calls.SurveyLimits, name)
        self.host.pass_time(2.0)
        return msgspec.msgpack.decode(self.client.answers[serial], type=calls.LimitsReport)

    def attach(self, name: str = "api", **terms: Any) -> int:
        return self.ask(calls.AttachLimit, name, Terms(500.0, 50.0, **terms), 1.0, 1)

    def items(self, serial: int) -> list[calls.LimitItem]:
        return [msgspec.msgpack.decode(raw, type=calls.LimitItem) for raw in self.client.streams[serial].take(64)]

    def is_drained(self) -> bool:
        return self.feature.drained

    @property
    def machines(self) -> list[str]:
        return [type(machine).__name__ for machine in self.host.node.machines]


@pytest.fixture
def agent() -> Agent:
    return Agent()


def test_an_agent_that_uses_no_limit_loads_no_protocol_of_limits() -> None:
    """H221: memory grows with what is used; a group without limits pays nothing for them, and publishes nothing about them."""
    code = (
        "import sys, holdfast.agent.life.main\n"
        "from types import SimpleNamespace as N\n"
        "from holdfast.agent.feature import features\n"
        "from holdfast.config import Config\n"
        "from holdfast.kit.overlay import Overlay\n"
        "next(each for each in features() if each.name == 'limits').build(N(config=Config(), overlay=Overlay()))\n"
        "print(*sorted(name for name in sys.modules if 'features.limits' in name))\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    home = "holdfast.features.limits"
    assert said == [home, f"{home}.agent", f"{home}.running", f"{home}.settings"]


def test_the_first_use_borrows_views_and_runs_the_limiter(agent: Agent) -> None:
    """Limits 1: a limit stands on agreed views, where there are seats."""
    assert agent.machines == []
    serial = agent.attach()
    assert agent.machines == ["Limiter"]
    assert agent.lender.users == [agent.feature]
    (item,) = agent.items(serial)
    assert (item.serial, item.state, item.limit) == (0, "starting", 500.0)
    assert agent.report().lines[0].over == "views"


def test_without_seats_it_stands_on_those_of_the_list_that_take_part() -> None:
    """Limits 5.11, H278: a group without seats has limits all the same, with policy fair; agents that use no limit are no part of it."""
    agent = Agent(seats=False)
    agent.attach()
    assert agent.machines == ["Limiter"]
    assert agent.report().lines[0].over == "members"
    taking_part = Participants(agent.membership).members()
    assert [member.id for member in taking_part] == [agent.host.me]


@pytest.mark.parametrize("policy", ["strict", "exact"])
def test_what_needs_agreed_views_names_the_missing_seats(policy: str) -> None:
    """Limits 5.11: `ConfigError` names the setting; nothing is changed."""
    agent = Agent(seats=False)
    with pytest.raises(ConfigError, match=rf"policy: '{policy}' needs agreed views; accepted is .fair.*seats: who are the seats"):
        agent.attach(policy=policy, fleet=3)
    assert agent.machines == []
    assert agent.report().lines == ()


def test_a_member_of_a_view_that_uses_no_limit_hears_the_first_gossip(agent: Agent) -> None:
    """H278: all members of a view gossip; one that is there for another reason starts with the first word of another member."""
    agent.views.stand(view(3, "a", "b"), leased_until=agent.host.now + 5)
    agent.overlay.views = agent.views
    assert agent.machines == ["Doorbell"]
    agent.host.node.machines[0].on_message(PEER, GOSSIP)
    assert agent.machines == ["Limiter"]
    assert agent.lender.users == []
    assert agent.feature.limiter is not None
    assert agent.feature.limiter.sums is not None
    agent.attach()
    assert agent.lender.users == [agent.feature]
    assert agent.machines == ["Limiter"]


def test_asking_does_not_take_part(agent: Agent) -> None:
    """Issue 16: `holdfast limit ls` on an agent that uses no limit says what the group has, and changes nothing."""
    assert agent.report() == calls.LimitsReport(False)
    assert agent.machines == []


def test_a_limit_is_made_changed_penalized_and_removed(agent: Agent) -> None:
    """Limits 5.10, 9: by calls, without taking part."""
    agent.ask(calls.SetLimit, "api", Terms(500.0, 50.0), None)
    agent.ask(calls.SetLimit, "api", None, Change(rate=300.0))
    agent.ask(calls.PenalizeLimit, "api", 30.0, 0.5)
    (line,) = agent.report("api").lines
    assert (line.terms.rate, line.terms.burst, line.version, line.by) == (300.0, 50.0, 3, agent.host.me.name)
    assert 0 < line.penalty_for <= 30.0
    agent.ask(calls.RemoveLimit, "api")
    assert agent.report().lines == ()


def test_a_limit_that_is_not_there_is_waited_for_and_then_refused(agent: Agent) -> None:
    """Issue 16: `set_rate` of an unknown limit; a young agent first asks another one for the limits of the group."""
    refused: list[Any] = []
    agent.client.refuse = lambda serial, error: refused.append((serial, str(error)))  # type: ignore[attr-defined]
    serial = agent.ask(calls.SetLimit, "api", None, Change(rate=300.0))
    assert refused == []
    agent.host.pass_time(2.0)
    assert refused == [(serial, "limit 'api': there is none of that name; accepted is one that `holdfast limit ls` lists, or a rate")]


def test_the_257th_limit_is_refused_by_name(agent: Agent) -> None:
    """Issue 16: 256 limits per group, each further one refused by name."""
    for number in range(256):
        agent.ask(calls.SetLimit, f"l{number}", Terms(5.0, 5.0), None)
    with pytest.raises(ConfigError, match="limit 'one more' would be number 257; a group has at most 256"):
        agent.ask(calls.SetLimit, "one more", Terms(5.0, 5.0), None)
    with pytest.raises(ConfigError, match="limit 'one more' would be number 257"):
        agent.attach("one more")


def test_another_rate_does_not_replace_the_one_that_is_there(agent: Agent) -> None:
    """Limits 5.10: a program that starts names its rate; what an operator set meanwhile stays."""
    agent.ask(calls.SetLimit, "api", Terms(100.0, 10.0), None)
    agent.attach()
    assert agent.report("api").lines[0].terms.rate == 100.0


def test_a_drain_waits_for_the_workers_and_gives_the_views_back_last(agent: Agent) -> None:
    """Issue 16: drain gives the share up: what the workers were told is taken back before the view is left, for a bounded time."""
    agent.views.stand(view(3, "a"), leased_until=agent.host.now + 60)
    serial = agent.attach()
    agent.host.pass_time(1.0)
    told = agent.items(serial)[-1]
    assert told.rate > 0
    agent.ask(calls.ReportLimit, serial, told.serial, 1.0, 0.0, None)
    agent.feature.drain()
    assert not agent.is_drained()
    assert agent.lender.users == [agent.feature]
    agent.host.pass_time(0.1)
    nothing = agent.items(serial)[-1]
    assert nothing.rate == 0.0
    agent.ask(calls.ReportLimit, serial, nothing.serial, 0.0, 0.0, None)
    agent.host.pass_time(0.1)
    assert agent.is_drained()
    assert agent.lender.users == []


def test_a_worker_that_hangs_does_not_hold_up_a_drain(agent: Agent) -> None:
    """F17: what it was told has an end anyway."""
    agent.views.stand(view(3, "a"), leased_until=agent.host.now + 60)
    serial = agent.attach()
    agent.host.pass_time(1.0)
    assert agent.items(serial)[-1].rate > 0
    agent.feature.drain()
    agent.host.pass_time(DRAIN_TIMEOUT + 0.1)
    assert agent.is_drained()
    assert agent.lender.users == []


def test_numbers_are_counted(agent: Agent) -> None:
    """Limits 9: nothing before limits are used; then epochs, gossip, instances."""
    assert agent.feature.counts() == {}
    agent.attach()
    agent.host.pass_time(2.0)
    assert agent.feature.counts()["limits_epochs"] > 0
