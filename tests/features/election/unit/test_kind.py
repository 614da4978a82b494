"""Clients of one agent that ask to lead by election; two ways to lead one name.  Spec: election 5.10, 10, D23; foundation F14, F16."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agent.grants.grants import Grants
from holdfast.agent.grants.kinds import RefusedKind
from holdfast.agent.grants.ways import Taken, Ways
from holdfast.config import Config
from holdfast.errors import ConfigError
from holdfast.features.election.agent import ElectionFeature
from holdfast.features.election.client_base import manner_of
from holdfast.features.election.kind import ElectKind
from holdfast.features.election.protocol.manner import Manner, manner
from holdfast.kit.hold import Holder
from holdfast.local.calls import Acquire
from tests.agent.law import FakeBody, FakeSession, TurnHost
from tests.features.election.stand import life
from tests.features.leadership.fake_leads import FakeLeads
from tests.support.parts import parts_of

HOLD = 0.4


class FakeElections(FakeLeads):
    """The same with a manner."""

    def campaign(self, name: str, length: float, holder: Holder, *, manner: Manner | None = None) -> None:
        assert manner is not None
        super().campaign(name, length, holder)
        self.done[-1] += f" {manner.variant_name}"


class Stand:
    """One law, elections, any number of clients."""

    def __init__(self) -> None:
        self.host = TurnHost()
        self.law = Grants(self.host)
        self.leads = FakeElections(lambda: self.host.now)
        self.ways = Ways()
        self.kind = ElectKind(self.leads, lambda: self.host.now, me="me#1", hold=HOLD, enter=lambda name: self.ways.enter(name, Own()))
        self.law.add(self.kind)
        self._sessions = 0

    def client(self) -> FakeSession:
        self._sessions += 1
        return FakeSession(self._sessions, FakeBody(self._sessions), self.law)

    def ask(self, name: str = "x", **options: Any) -> FakeSession:
        client = self.client()
        self.law.acquire(client, Acquire(1, "elect", name, options), lambda: None)
        return client


class Own:
    """This way to lead a name."""

    by = "election"

    def taken(self, name: str) -> Taken | None:
        return None

    def highest(self, name: str) -> int:
        return 0


class Seated(Own):
    """The other way, as a test says it is."""

    by = "seats"

    def __init__(self) -> None:
        self.holder: Taken | None = None

    def taken(self, name: str) -> Taken | None:
        return self.holder if name == "x" else None

    def highest(self, name: str) -> int:
        return 77 if name == "x" else 0


def test_the_deadline_is_hold_and_the_grace_ahead() -> None:
    """Election 5.10: deadline = now + hold; what the command needs to stop is on top of it."""
    stand = Stand()
    stand.ask("a")
    stand.ask("b", grace=2, variant="base")
    assert stand.leads.done == ["campaign a 0.4 hybrid", "campaign b 2.4 base"]


def test_clients_of_one_agent_take_turns() -> None:
    """Election 5.10, F14, F16: the next client stands when the former one has stopped, with a larger token."""
    stand = Stand()
    first, second = stand.ask(), stand.ask()
    assert stand.kind.waiting == {"x": 2}
    token = stand.leads.lead("x")
    stand.law.stopped(first, 1)
    assert stand.leads.done[1:] == ["resign x", "campaign x 0.4 hybrid"]
    assert stand.leads.lead("x") > token
    stand.law.client_died(second)
    assert stand.leads.done[3:] == []  # its body may act until the kernel says that it is dead


@pytest.mark.parametrize(
    "options, text",
    [
        ({"rank": "load"}, r"rank: 'load'; accepted are hash, tag:NAME, -tag:NAME"),
        ({"rank": 3}, r"rank: 3; accepted are hash, tag:NAME, -tag:NAME"),
        ({"rank": ["tag:a", 3]}, r"rank: 3; accepted are hash, tag:NAME, -tag:NAME"),
        ({"rank": ["tag:a"] * 6}, r"rank: 6 tags; accepted are at most 4"),
        ({"variant": "quick"}, r"variant: 'quick'; accepted are base, optimistic, preferred, hybrid"),
        ({"voters": None}, r"voters: None; accepted are none, seats, members"),
        ({"health": "load"}, r"health: 'load'; accepted are suspicions, own, false_positives, tag:NAME"),
        ({"grace": True}, r"grace: True; accepted are 0 to 3599.6 seconds"),
        ({"grace": float("nan")}, r"grace: nan; accepted are"),
        ({"speed": 1}, r"option 'speed': an election has none of that name; accepted are variant, voters, rank, health, grace"),
    ],
)
def test_what_cannot_be_asked_for(options: dict[str, Any], text: str) -> None:
    """Issue 18, bad input: a client may send anything; it hears the field and what is accepted, and nothing is left behind."""
    stand = Stand()
    with pytest.raises(ConfigError, match=f"^{text}"):
        stand.ask("x", **options)
    assert stand.kind.waiting == {}
    assert stand.kind.counts["refused"] == 1


def test_clients_of_one_agent_say_the_same() -> None:
    """Issue 18, bad input: a variant that differs from the other candidate's is refused with theirs, also behind it in the queue."""
    stand = Stand()
    stand.ask("x", variant="base")
    with pytest.raises(ConfigError, match=r"^variant: 'hybrid'; accepted is 'base', as me#1 has it, which stands for 'x'$"):
        stand.ask("x")


def test_one_name_one_way() -> None:
    """Election D23, F16: who asks the other way is refused with who has the name and how; the other numbers are exceeded."""
    stand, seated = Stand(), Seated()
    stand.ways.add(seated)
    seated.holder = Taken(life("web-2", 7), "leads")
    with pytest.raises(ConfigError, match=r"^by: 'election'; accepted for 'x' is seats, because web-2#7 leads that way, and a"):
        stand.ask("x")
    assert stand.kind.waiting == {}
    stand.ask("y")
    seated.holder = None
    stand.ask("x")
    assert stand.ways.enter("x", Own()) == 77
    assert stand.ways.enter("y", Own()) == 0


@pytest.mark.parametrize("membership", ["ring", "views"])
def test_over_another_membership_the_setting_is_named(membership: str) -> None:
    """Election 10: over the ring, or views, a ConfigError names the membership."""
    running = ElectionFeature().build(parts_of(Config(membership=membership)))
    assert isinstance(running.grant_kind, RefusedKind)
    with pytest.raises(ConfigError, match=f'^by: "election" needs membership = "gossip"; this agent runs {membership}$'):
        running.grant_kind.acquire("x", {}, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "said, text",
    [
        (("vote", None, None, None, None), "^by: 'vote'; accepted are seats, election$"),
        (("seats", "base", None, None, None), "^variant: 'base'; accepted is None without by=\"election\"$"),
        (("election", None, None, "load", None), "^rank: 'load'; accepted are hash, tag:NAME, -tag:NAME$"),
        (("election", None, "all", None, None), "^voters: 'all'; accepted are none, seats, members$"),
    ],
)
def test_a_client_refuses_before_it_asks(said: tuple[Any, ...], text: str) -> None:
    """Issue 18, bad input: arguments are checked before anything is sent."""
    with pytest.raises(ConfigError, match=text):
        manner_of(*said)


def test_what_a_client_asks_for() -> None:
    """Election 10: what is not said is the agent's default, and by the seats there is nothing to say."""
    assert manner_of("seats", None, None, None, None) is None
    assert manner_of("election", None, None, None, None) == {}
    assert manner_of("election", "base", None, ("-tag:data", "hash"), None) == {"variant": "base", "rank": ["-tag:data", "hash"]}
    assert manner("base", rank=("-tag:data", "hash")).rank == ("-tag:data",)
