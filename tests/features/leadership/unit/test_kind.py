"""Clients of one agent that ask to lead: between the law of grants and the machine.  Spec: foundation F14, F16; fast-detection D26."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agent.grants.grants import Grants
from holdfast.agent.grants.kinds import RefusedKind
from holdfast.config import Config
from holdfast.errors import ConfigError, Unavailable
from holdfast.features.leadership.kind import LeadKind
from holdfast.kit.hold import Lapsed
from holdfast.local.calls import Acquire
from tests.agent.law import FakeBody, FakeSession, TurnHost
from tests.features.leadership.fake_leads import FakeLeads

CONFIG = Config(preset="local")
LENGTH = 0.45  # 1.5 heartbeats of 0.3 s


class Stand:
    """One law, leadership, any number of clients."""

    def __init__(self) -> None:
        self.host = TurnHost()
        self.law = Grants(self.host)
        self.leads = FakeLeads(lambda: self.host.now)
        self.kind = LeadKind.of(self.leads, lambda: self.host.now, CONFIG)
        self.law.add(self.kind)
        self._sessions = 0

    def client(self) -> FakeSession:
        self._sessions += 1
        return FakeSession(self._sessions, FakeBody(self._sessions), self.law)

    def ask(self, client: FakeSession, name: str = "x", serial: int = 1, **options: Any) -> None:
        self.law.acquire(client, Acquire(serial, "lead", name, options), lambda: None)

    def asking(self, count: int, name: str = "x") -> list[FakeSession]:
        clients = [self.client() for _ in range(count)]
        for client in clients:
            self.ask(client, name)
        return clients


def test_a_term_is_asked_for_one_and_a_half_heartbeats_and_the_grace() -> None:
    """D26: L is 1.5 t_itv; the grace is on top of it."""
    stand = Stand()
    stand.ask(stand.client(), "a")
    stand.ask(stand.client(), "b", grace=2)
    assert stand.leads.done == ["campaign a 0.45", "campaign b 2.45"]


def test_one_candidate_for_many_clients() -> None:
    """D17b: the agent stands for a name once, however many of its clients want it, and as long as one does."""
    stand = Stand()
    first, second, third = stand.asking(3)
    assert stand.kind.waiting == {"x": 3}
    stand.law.stopped(second, 1)
    stand.law.stopped(first, 1)
    stand.law.stopped(third, 1)
    assert stand.leads.done == ["campaign x 0.45", "withdraw x", "campaign x 0.45", "withdraw x"]
    assert stand.kind.waiting == {}


def test_a_new_holder_is_a_new_term() -> None:
    """F16: the next client of the same agent leads under a larger token, and hears nothing of the former term."""
    stand = Stand()
    first, second = stand.asking(2)
    token = stand.leads.lead("x")
    stand.leads.extend("x")
    assert (first.said, second.said) == (["granted"], [])  # Extended to the same instant: that is no news.
    stand.law.stopped(first, 1)
    assert stand.kind.margin_least == pytest.approx(LENGTH)
    assert stand.leads.done == ["campaign x 0.45", "resign x", "campaign x 0.45"]
    assert stand.leads.lead("x") > token
    assert (first.said, second.said) == (["granted", "released"], ["granted"])


def test_the_next_client_waits_for_the_published_deadline_of_a_lost_term() -> None:
    """F14: to the seats both clients are one holder, so only this agent can keep the second from leading while the first may act."""
    stand = Stand()
    first, second = stand.asking(2)
    stand.leads.lead("x")
    stand.host.pass_time(LENGTH / 3)
    stand.leads.lose("x")
    assert first.said == ["granted", "lost"]
    stand.host.pass_time(LENGTH / 3)
    assert stand.leads.done == ["campaign x 0.45"]
    stand.host.pass_time(LENGTH)
    assert stand.leads.done == ["campaign x 0.45", "withdraw x", "campaign x 0.45"]
    stand.leads.lead("x")
    assert second.said == ["granted"]


def test_a_lost_term_of_a_client_that_stopped_is_free_at_once() -> None:
    """F14: its own word is enough."""
    stand = Stand()
    first, _ = stand.asking(2)
    stand.leads.lead("x")
    stand.leads.lose("x")
    stand.law.stopped(first, 1)
    assert stand.leads.done[-1] == "campaign x 0.45"


def test_a_dead_client_gives_up_at_once() -> None:
    """F14: the kernel's word. The machine resigns, so that the next one need not wait for a deadline."""
    stand = Stand()
    (client,) = stand.asking(1)
    stand.leads.lead("x")
    assert client.client is not None
    client.client.die()
    stand.law.client_died(client)
    assert stand.leads.done == ["campaign x 0.45", "resign x"]


def test_a_client_that_only_disconnects_keeps_its_term_until_its_deadline() -> None:
    """F14: a closed socket is no death. It is not extended, and given back when what was told has passed."""
    stand = Stand()
    (client,) = stand.asking(1)
    stand.leads.lead("x")
    client.connected = False
    stand.law.disconnected(client)
    assert stand.leads.allowed["x"] is False
    stand.host.pass_time(LENGTH / 2)
    assert stand.leads.done == ["campaign x 0.45"]
    stand.host.pass_time(LENGTH)
    assert stand.leads.done == ["campaign x 0.45", "resign x"]


def test_a_client_that_leaves_while_it_waits() -> None:
    """Nobody was told anything: the wish is gone, and with the last one the candidacy."""
    stand = Stand()
    first, second = stand.asking(2)
    for client in (second, first):
        client.connected = False
        stand.law.disconnected(client)
    assert stand.leads.done == ["campaign x 0.45", "withdraw x"]


def test_led_in_the_moment_in_which_nobody_wants_it() -> None:
    """The seats' answer and the client's goodbye may cross; then it is resigned, and nobody hears of it."""
    stand = Stand()
    (client,) = stand.asking(1)
    _, candidacy = stand.leads.candidacies["x"]
    stand.law.stopped(client, 1)
    candidacy.on_granted(1, 2.0)
    candidacy.on_extended(3.0)
    candidacy.on_at_risk()
    candidacy.on_lost(Lapsed())
    assert client.said == []
    assert stand.leads.done == ["campaign x 0.45", "withdraw x"]


def test_granted_before_the_question_was_answered() -> None:
    """A machine may lead within ``campaign``. The client hears the answer to its call first; what is cancelled then is given back."""
    stand = Stand()
    campaign = stand.leads.campaign

    def at_once(name: str, length: float, holder: Any) -> None:
        campaign(name, length, holder)
        stand.leads.lead(name)

    stand.leads.campaign = at_once  # type: ignore[method-assign]
    first, second = stand.client(), stand.client()
    stand.ask(first)
    assert first.said == []
    stand.law.stopped(first, 1)
    stand.ask(second)
    stand.host.settle()
    assert (first.said, second.said) == ([], ["granted"])
    assert stand.leads.done == ["campaign x 0.45", "resign x", "campaign x 0.45"]


def test_draining_extends_nothing() -> None:
    """F14: a drain asks the leader to stop and cancels whoever waits; the term is given back when the client stopped."""
    stand = Stand()
    first, second = stand.asking(2)
    stand.leads.lead("x")
    drained: list[str] = []
    stand.law.drain(lambda: drained.append("drained"))
    assert (first.said, second.ended) == (["granted", "stop"], [(1, "Unavailable")])
    assert (stand.leads.allowed["x"], drained) == (False, [])
    stand.law.stopped(first, 1)
    assert drained == ["drained"]
    assert stand.leads.done == ["campaign x 0.45", "resign x"]


def test_at_risk_is_told() -> None:
    """Foundation 5: AtRisk, once per missed renewal."""
    stand = Stand()
    (client,) = stand.asking(1)
    stand.leads.lead("x")
    _, candidacy = stand.leads.candidacies["x"]
    candidacy.on_at_risk()
    assert client.said == ["granted", "at_risk"]


@pytest.mark.parametrize(
    "name, options, told",
    [
        ("x", {"grace": 2.56}, "grace: 2.56; accepted are 0 to 2.55 seconds: a term lasts 0.45 s and the grace, and no grant is longer"),
        ("x", {"grace": -0.1}, "grace: -0.1; accepted are 0 to 2.55"),
        ("x", {"grace": float("nan")}, "grace: nan"),
        ("x", {"grace": "long"}, "grace: long"),
        ("x", {"grace": True}, "grace: True"),
        ("x", {"of": 8}, "option 'of': leadership has none of that name; accepted is grace"),
        ("x" * 101, {}, "name: 'xxxx"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_for(name: str, options: dict[str, Any], told: str) -> None:
    """Bad input of a user is one error that names the field and what is accepted; nothing is begun."""
    stand = Stand()
    with pytest.raises(ConfigError) as caught:
        stand.ask(stand.client(), name, **options)
    assert str(caught.value).startswith(told)
    assert (stand.leads.done, stand.kind.waiting, stand.kind.counts["refused"]) == ([], {}, 1)


def test_a_machine_that_refuses_leaves_nothing_behind() -> None:
    """Too many candidacies: the client is told so, and the next one asks anew."""
    stand = Stand()
    stand.leads.refuse = Unavailable("256 names")
    with pytest.raises(Unavailable, match="256 names"):
        stand.ask(stand.client())
    stand.leads.refuse = None
    stand.ask(stand.client())
    assert stand.leads.done == ["campaign x 0.45"]


def test_a_machine_that_refuses_the_next_one() -> None:
    """H170: it is told so, as a refusal and not as a loss, and the agent goes on: what a client does must never end it."""
    stand = Stand()
    first, second = stand.asking(2)
    stand.leads.lead("x")
    stand.leads.refuse = Unavailable("the table is full")
    stand.law.stopped(first, 1)
    assert (second.said, second.last.why, second.last.error) == (["lost"], "the table is full", "Unavailable")
    assert (stand.kind.waiting, len(stand.law)) == ({}, 0)


def test_without_seats_the_missing_setting_is_named() -> None:
    """F12: exclusive calls say who the seats could be."""
    stand = Stand()
    law = Grants(stand.host)
    law.add(RefusedKind("lead", "seats: who are the seats?"))
    with pytest.raises(ConfigError, match="who are the seats"):
        law.acquire(stand.client(), Acquire(1, "lead", "x", {}), lambda: None)


def test_the_longest_grant_can_be_had() -> None:
    """The largest grace that is accepted makes no promise that the seats refuse."""
    stand = Stand()
    stand.ask(stand.client(), grace=CONFIG.longest_grant - LENGTH)
    ((length, _),) = stand.leads.candidacies.values()
    assert length == CONFIG.longest_grant


def test_tokens_of_another_way_to_lead_are_exceeded() -> None:
    """F16, election D23: a name that was led by election keeps its tokens; one that is led so is refused, and nothing is left behind."""
    host = TurnHost()
    leads = FakeLeads(lambda: host.now)
    asked: list[str] = []

    def enter(name: str) -> int:
        asked.append(name)
        if name == "taken":
            raise ConfigError("by: 'seats'; accepted for 'taken' is election")
        return 77 if name == "x" else 0

    kind = LeadKind.of(leads, lambda: host.now, CONFIG, enter)
    holder: Any = None
    kind.acquire("x", {}, holder)
    kind.acquire("y", {}, holder)
    with pytest.raises(ConfigError, match="accepted for 'taken' is election"):
        kind.acquire("taken", {}, holder)
    assert asked == ["x", "y", "taken"]
    assert leads.done == ["exceed x 77", f"campaign x {LENGTH:g}", f"campaign y {LENGTH:g}"]
    assert kind.waiting == {"x": 1, "y": 1}
