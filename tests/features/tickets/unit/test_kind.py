"""Clients of one agent that ask for tickets: between the law of grants and the machine.  Spec: tickets 9.2; foundation F14, F16."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.agent.grants.grants import Grants
from holdfast.client.holding import not_granted
from holdfast.config import Config, load
from holdfast.errors import ConfigError, Unavailable
from holdfast.features.tickets.client_base import TicketHeld as ClientTicket
from holdfast.features.tickets.kind import TicketHeld, TicketKind
from holdfast.features.tickets.protocol.line import late_text
from holdfast.features.tickets.protocol.reasons import Crowded, Full, Late, Mismatch, Refusal, SeatsSilent, TooManyPools
from holdfast.kit.hold import Lapsed
from holdfast.local.calls import Acquire, GrantItem
from tests.agent.law import FakeBody, FakeSession, TurnHost
from tests.features.tickets.fake_pools import LEASE, FakeAttempt, FakePools

MARGIN = 0.25


class Stand:
    """One law, tickets, any number of clients."""

    def __init__(self) -> None:
        self.host = TurnHost()
        self.law = Grants(self.host)
        self.pools = FakePools(lambda: self.host.now)
        self.kind = TicketKind(self.pools, self.host, MARGIN)
        self.law.add(self.kind)
        self._sessions = 0

    def client(self) -> FakeSession:
        self._sessions += 1
        return FakeSession(self._sessions, FakeBody(self._sessions), self.law)

    def ask(self, client: FakeSession, **options: Any) -> FakeAttempt:
        self.law.acquire(client, Acquire(1, "ticket", "gpu", {"of": 8, **options}), lambda: None)
        return self.pools.attempts[-1]

    def holding(self, number: int = 3) -> tuple[FakeSession, FakeAttempt]:
        client = self.client()
        attempt = self.ask(client)
        attempt.own(number)
        return client, attempt


def test_a_client_is_told_to_stop_before_the_agent_has_to() -> None:
    """9.2: the client's deadline < this agent's own < anybody else. Number and token are the machine's."""
    stand = Stand()
    client, attempt = stand.holding()
    assert (client.last.number, client.last.token) == (3, attempt.token)
    assert client.last.deadline == pytest.approx(stand.host.now + LEASE - MARGIN)
    stand.host.pass_time(0.5)
    attempt.extend()
    assert client.said == ["granted", "extended"]
    assert client.last.deadline == pytest.approx(stand.host.now + LEASE - MARGIN)
    assert stand.kind.margin_least == pytest.approx(LEASE - 0.5)


def test_each_asking_is_an_attempt_of_its_own() -> None:
    """An agent may hold several tickets of a pool; its clients compete as those of two agents do."""
    stand = Stand()
    first, second = stand.client(), stand.client()
    attempts = stand.ask(first, metadata={"host": "n7"}), stand.ask(second, wait=False)
    assert [each.asked for each in attempts] == [("gpu", 8, True, {"host": "n7"}), ("gpu", 8, False, {})]
    assert stand.kind.wishes == {"gpu": 2}
    attempts[1].own(5)
    assert (first.said, second.said) == ([], ["granted"])
    stand.law.stopped(second, 1)
    stand.law.stopped(first, 1)
    assert (stand.pools.done, stand.kind.wishes) == (["release 5", "cancel"], {})


def test_a_first_deadline_without_time_is_not_told() -> None:
    """F9: a grant that came too late to be used waits for the next round; if there is none the client hears that it is lost."""
    stand = Stand()
    client = stand.client()
    attempt = stand.ask(client)
    attempt.own(3, lease=MARGIN / 2)
    attempt.holder.on_at_risk()
    assert client.said == []
    attempt.extend()
    assert (client.said, client.last.number, client.last.token) == (["granted"], 3, attempt.token)
    other = stand.client()
    late = stand.ask(other)
    late.own(4, lease=MARGIN / 2)
    late.holder.on_lost(Lapsed())
    assert other.said == ["lost"]


@pytest.mark.parametrize(
    "reason, error, told",
    [
        (Full("gpu"), "NoTicket", "full: every ticket of 'gpu' is held"),
        (SeatsSilent("gpu", 2, 1), "Unavailable", "unavailable: too few seats answer"),
        (Mismatch("gpu", 5, 4), "TicketCountMismatch", "mismatch: 'gpu' has 4"),
        (Full("{gpu} {0"), "NoTicket", "full: every ticket of '{gpu} {0' is held"),  # A pool may be called like that.
        (Crowded("gpu"), "Unavailable", "unavailable: tickets of 'gpu' are free, but the seats have no room"),
        (TooManyPools("gpu"), "Unavailable", "unavailable: 'gpu' would be a new pool, and the seats keep as many as they can"),
    ],
)
def test_why_there_is_none(reason: Refusal, error: str, told: str) -> None:
    """10, H133: NoTicket, Unavailable, TicketCountMismatch by the type of the reason; nothing stays behind."""
    stand = Stand()
    client = stand.client()
    stand.ask(client).holder.on_lost(reason)
    assert (client.said, client.last.why[: len(told)], client.last.error) == (["lost"], told, error)
    assert client.last.numbers == reason.numbers
    assert (len(stand.law), stand.kind.wishes, stand.pools.done) == (0, {}, [])


def test_who_waits_hears_its_position() -> None:
    """9.3: QUEUED, every time it is another one, until it is granted; a client that does not read hears the next one."""
    stand = Stand()
    client = stand.client()
    attempt = stand.ask(client)
    attempt.holder.on_queued(3)
    client.paused = True
    attempt.holder.on_queued(2)
    client.paused = False
    attempt.holder.on_queued(1)
    assert [(item.what, item.number, item.token, item.deadline) for _, item in client.items] == [
        ("queued", 3, 0, 0.0),
        ("queued", 1, 0, 0.0),
    ]
    attempt.own(5)
    attempt.holder.on_queued(1)
    assert client.said == ["queued", "queued", "granted"]
    stand.law.stopped(client, 1)
    attempt.holder.on_queued(1)
    assert client.said == ["queued", "queued", "granted", "released"]


def test_only_who_holds_it_now_may_publish() -> None:
    """5.9, F9: by what the client was told and by the clock; not before the grant, and not after its deadline although the agent has it."""
    stand = Stand()
    client = stand.client()
    attempt = stand.ask(client)
    assert stand.law.claim(client, 1) is None
    attempt.own(3)
    held = stand.law.claim(client, 1)
    assert isinstance(held, TicketHeld)
    held.publish(b"hello")
    assert stand.pools.done == ["publish 3 b'hello'"]
    assert stand.law.claim(client, 2) is None
    assert stand.law.claim(stand.client(), 1) is None
    stand.host.clock += LEASE - MARGIN  # No timer has run: the clock alone says so.
    assert stand.law.claim(client, 1) is None


def test_a_program_that_hangs_keeps_its_ticket_for_user_ttl() -> None:
    """9.2: with ``user_ttl`` it is renewed while the program touches it so often; else it is lost, with a reason, and the law gives it back
    when what was told has passed. Without, nobody asks."""
    stand = Stand()
    client, careless = stand.client(), stand.client()
    attempt, other = stand.ask(client, user_ttl=3), stand.ask(careless)
    stand.host.pass_time(10)  # It counts from the grant, not from the asking.
    for each, number in ((attempt, 3), (other, 4)):
        each.own(number)
    for second in range(8):
        stand.host.pass_time(0.5)
        held = stand.law.claim(client, 1)
        assert isinstance(held, TicketHeld)
        if second == 1:
            held.touch()
        for each in (attempt, other):
            each.extend()
    assert (client.said[-1], attempt.allowed) == ("lost", False)
    assert client.said.count("extended") == 7
    assert "did not touch it for 3 s (user_ttl)" in client.last.why
    assert (careless.said[-1], stand.kind.counts["silent"], stand.pools.done) == ("extended", 1, [])
    stand.host.pass_time(LEASE - MARGIN - 0.5 - 0.01)
    assert stand.pools.done == []
    stand.host.pass_time(0.02)
    assert stand.pools.done == ["release 3"]


@pytest.mark.parametrize("ttl", [0, -1, True, "soon", float("nan")])
def test_a_user_ttl_that_is_none(ttl: object) -> None:
    """9.2: refused with what is accepted."""
    stand = Stand()
    with pytest.raises(ConfigError, match=r"user_ttl: .*; accepted is a positive number of seconds"):
        stand.ask(stand.client(), user_ttl=ttl)
    assert stand.kind.counts["refused"] == 1


def test_a_client_that_only_disconnects_keeps_its_ticket_until_its_deadline() -> None:
    """F14: a closed socket is no death. It is not extended, and given back when what was told has passed."""
    stand = Stand()
    client, attempt = stand.holding()
    client.connected = False
    stand.law.disconnected(client)
    attempt.extend()
    stand.host.pass_time(0.7)
    assert (attempt.allowed, stand.pools.done) == (False, [])
    stand.host.pass_time(0.1)
    assert stand.pools.done == ["release 3"]


def test_a_dead_client_gives_it_back_at_once() -> None:
    """F14: the kernel's word."""
    stand = Stand()
    client, _ = stand.holding()
    assert client.client is not None
    client.client.die()
    stand.law.client_died(client)
    assert stand.pools.done == ["release 3"]


def test_a_lost_ticket_stays_the_clients_until_its_deadline() -> None:
    """F14, F15: the machine's word shortens nothing."""
    stand = Stand()
    client, attempt = stand.holding()
    stand.host.pass_time(0.3)
    attempt.holder.on_lost(Lapsed())
    attempt.holder.on_extended(9.0)
    assert client.said == ["granted", "lost"]
    stand.host.pass_time(0.4)
    assert len(stand.law) == 1
    stand.host.pass_time(0.1)
    assert len(stand.law) == 0


def test_owned_in_the_moment_in_which_nobody_wants_it() -> None:
    """9.3: a late grant is returned; nobody hears of it."""
    stand = Stand()
    client = stand.client()
    attempt = stand.ask(client)
    stand.law.stopped(client, 1)
    attempt.own(3)
    attempt.extend()
    attempt.holder.on_at_risk()
    attempt.holder.on_lost(Late("gpu"))
    assert (client.said, stand.pools.done) == ([], ["cancel"])


def test_asked_to_stop() -> None:
    """F14: an operator may ask; the holder's word or its deadline frees the ticket, and nothing extends it meanwhile."""
    stand = Stand()
    (client, attempt), (other, _) = stand.holding(3), stand.holding(4)
    assert stand.law.ask_to_stop("ticket", "gpu", 3, "because")
    assert stand.law.ask_to_stop("ticket", "gpu", 3, "again")
    assert (client.said, client.last.why, other.said) == (["granted", "stop"], "because", ["granted"])
    attempt.extend()
    stand.law.on_extended(stand.law.all[0], stand.host.now + 9)
    assert (client.said, attempt.allowed) == (["granted", "stop"], False)
    stand.host.pass_time(0.8)
    assert stand.pools.done[0] == "release 3"
    assert not stand.law.ask_to_stop("ticket", "gpu", 3, "because")
    assert not stand.law.ask_to_stop("ticket", "gpu", 7, "because")


@pytest.mark.parametrize(
    "options, told",
    [
        ({"of": None}, "of: None; accepted is the number of tickets"),
        ({"of": True}, "of: True"),
        ({"of": "8"}, "of: 8"),
        ({"of": 101}, "of: too many"),
        ({"wait": 1}, "wait: 1; accepted are true and false"),
        ({"metadata": {"a": 1}}, "metadata: {'a': 1}; accepted is a table of texts"),
        ({"metadata": "a"}, "metadata: a"),
        ({"grace": 1}, "option 'grace': tickets have none of that name; accepted are of, wait, metadata"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_for(options: dict[str, Any], told: str) -> None:
    """Bad input of a user is one error that names the field and what is accepted; nothing is begun."""
    stand = Stand()
    with pytest.raises(ConfigError) as caught:
        stand.ask(stand.client(), **options)
    assert str(caught.value).startswith(told)
    assert (stand.pools.attempts, stand.kind.wishes, stand.kind.counts["refused"]) == ([], {}, 1)


@pytest.mark.parametrize("preset", ["lan", "wan", "local"])
def test_every_preset_gives_numbers_that_tickets_take(preset: str) -> None:
    """Tickets 4: T <= D/4, and what follows from T; also for leases that are as short or long as the ring allows."""
    for lease in (0.0, 0.04, 30.0):
        config = load(overrides={"preset": preset, "lease": lease})
        for seats, k in ((1, 0), (3, 1), (5, 2)):
            numbers = config.ticket_config(seats)
            assert (numbers.k, numbers.lease, numbers.period) == (k, config.ticket_lease, config.ticket_round)
            assert numbers.margin < numbers.hold
            assert numbers.guardians == "seats"
    lan = Config().ticket_config(3)
    assert (lan.rtx, lan.phase_timeout, lan.poll) == pytest.approx((0.2, 1.5, 1.0))


@pytest.mark.parametrize("given, k", [({}, 2), ({"ticket_k": 0}, 0), ({"ticket_k": 3}, 3)], ids=str)
def test_the_ring_is_asked_for_by_the_settings(given: dict[str, Any], k: int) -> None:
    """H140, tickets 4: placement and k of the settings reach the machine; the number of seats says nothing about k then."""
    for seats in (1, 5):
        numbers = load(overrides={"ticket_guardians": "ring", **given}).ticket_config(seats)
        assert (numbers.guardians, numbers.k) == ("ring", k)


def test_an_agent_that_is_late_says_so_to_its_clients() -> None:
    """H168: who waits is told what for, and the error after its timeout says it; who does not wait is refused with the reason."""
    stand = Stand()
    client = stand.client()
    attempt = stand.ask(client)
    attempt.holder.on_queued(0, late_text(0.7))
    assert (client.said, client.last.number) == (["queued"], 0)
    held = Waiting()
    held.push(encoded(client.last))
    error = not_granted(held, 3.0)
    assert "within 3 s; this agent is 0.7 s late" in str(error)
    assert "seats" not in str(error)
    attempt.holder.on_queued(4)  # It is on time again.
    held.push(encoded(client.last))
    assert str(not_granted(held, 3.0)).endswith("within 3 s; it waited at position 4")
    attempt.holder.on_lost(Late("gpu"))
    assert client.last.why.startswith("unavailable: this agent")
    held.push(encoded(client.last))
    with pytest.raises(Unavailable, match="so that none is lost"):
        held.check()


class Waiting(ClientTicket):
    """The client's side of it, without a connection."""

    def __init__(self) -> None:
        super().__init__("ticket", "gpu")

    def _changed(self) -> None:
        """No thread waits."""


def encoded(item: GrantItem) -> Any:
    """As it comes over the socket."""
    return msgspec.msgpack.encode(item)
