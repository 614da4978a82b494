"""Tickets and ``while_leader`` in both spellings, against an agent by script.  Spec: tickets 9.2, 10."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec import Raw

from holdfast.errors import AcquireTimeout, ConfigError, HoldLost, NoTicket, TicketCountMismatch, TicketLost, Unavailable
from holdfast.events import EventsLost, OwnerChanged, Published
from holdfast.features.tickets import calls as ticket_calls
from holdfast.features.tickets.client_base import PUBLISH_BYTES_MAX
from holdfast.host import NodeId
from holdfast.local import calls
from holdfast.net.clock import now
from tests.client.fake_agent import FakeAgent, encode
from tests.client.spelling import Aio, Spelling
from tests.support.agents import until

WAIT = 30.0


@pytest.fixture
def group(client: Spelling, agent: FakeAgent) -> Iterator[Any]:
    group = client.join("orders", agent=agent.path)
    yield group
    client.run(group.leave)


def granting(agent: FakeAgent, seconds: float = 60.0) -> None:
    """Every asking is granted, each under a larger token."""

    def grant(call: calls.Call) -> None:
        agent.push(call, calls.GrantItem("granted", 6 + len(agent.all(calls.Acquire)), now() + seconds, 3))

    agent.answers[calls.Acquire] = grant


def refusing(agent: FakeAgent, why: str, error: str = "", numbers: Mapping[str, int] | None = None) -> None:
    agent.answers[calls.Acquire] = lambda call: agent.push(call, calls.GrantItem("lost", 0, 0.0, 0, why, numbers or {}, 0.0, error))


def test_a_ticket(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """10: number, token, deadline; what was asked for travels as options; the end of the block gives it back."""
    granting(agent)
    ticket = client.enter(client.run(group.ticket, "gpu", of=8, timeout=WAIT, metadata={"host": "n7"}))
    assert (ticket.number, ticket.token, ticket.valid) == (3, 7, True)
    assert 0 < ticket.left <= 60.0
    ticket.check()
    asked = agent.wait_for(calls.Acquire)
    assert (asked.kind, asked.name, asked.options) == ("ticket", "gpu", {"of": 8, "wait": True, "metadata": {"host": "n7"}})
    client.exit(ticket)
    assert agent.wait_for(calls.Stopped).grant == asked.serial
    with pytest.raises(TicketLost, match="ticket 'gpu': given back"):
        ticket.check()


@pytest.mark.parametrize(
    "why, error",
    [
        ("every ticket of 'gpu' is held", NoTicket),
        ("mismatch: 'gpu' has 4 tickets", TicketCountMismatch),
        ("unavailable: too few seats answer", Unavailable),
        ("lapsed", TicketLost),
    ],
)
def test_never_granted(client: Spelling, agent: FakeAgent, group: Any, why: str, error: type[Exception]) -> None:
    """10: NoTicket, TicketCountMismatch, Unavailable, TicketLost: the error that the agent names, whatever the text begins with."""
    refusing(agent, why, "" if error is TicketLost else error.__name__)
    with pytest.raises(error, match=f"ticket 'gpu': {why}") as caught:
        client.enter(client.run(group.ticket, "gpu", of=8, wait=False))
    assert type(caught.value) is error


def test_a_leadership_that_was_never_held_is_not_lost(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """H170: a client that waits to lead and is refused hears Unavailable; LeadershipLost is for what was held."""
    refusing(agent, "this agent stands for 256 names already", "Unavailable")
    with pytest.raises(Unavailable, match="lead 'boss': this agent stands for 256 names already") as caught:
        client.enter(client.run(group.lead, "boss"))
    assert type(caught.value) is Unavailable


def test_what_was_not_entered_has_not_lapsed(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """H170: one way to end has one text, and what has not begun has not ended."""
    for held in (client.run(group.lead, "boss"), client.run(group.ticket, "gpu", of=8)):
        with pytest.raises(HoldLost, match="it is not held yet"):
            held.check()


def test_errors_have_attributes(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """10: TicketCountMismatch(expected, actual) and Unavailable(needed, reachable) as the agent says; what an older one does not say, or a
    later one says besides, is left at 0."""
    refusing(agent, "mismatch: 'gpu' has 4 tickets", "TicketCountMismatch", {"expected": 8, "actual": 4})
    with pytest.raises(TicketCountMismatch) as mismatch:
        client.enter(client.run(group.ticket, "gpu", of=8))
    assert (mismatch.value.expected, mismatch.value.actual) == (8, 4)
    for numbers, told in (({"needed": 2, "reachable": 1, "later": 7}, (2, 1)), ({}, (0, 0))):
        refusing(agent, "too few seats answer", "Unavailable", numbers)
        with pytest.raises(Unavailable) as missing:
            client.enter(client.run(group.ticket, "gpu", of=8, wait=False))
        assert (missing.value.needed, missing.value.reachable) == told
    agent.answers[ticket_calls.ReadTickets] = ("Unavailable", "too few seats answer", {"needed": 3, "reachable": 1})
    with pytest.raises(Unavailable, match="too few") as unread:
        client.run(client.run(group.tickets, "gpu").read)
    assert (unread.value.needed, unread.value.reachable) == (3, 1)


def test_which_ticket_was_lost(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """10: TicketLost(ticket, token, reason) wherever a client raises it: by its own clock and word, by the agent's, and never granted."""
    granting(agent)
    ticket = client.enter(client.run(group.ticket, "gpu", of=8))
    agent.answers[ticket_calls.Publish] = agent.answers[ticket_calls.Touch] = ("TicketLost", "it is over")
    for refused in (lambda: ticket.publish(b"too late"), ticket.touch):
        with pytest.raises(TicketLost) as caught:
            client.run(refused)
        assert (caught.value.ticket, caught.value.token, caught.value.reason) == (3, 7, "it is over")
    client.exit(ticket)
    with pytest.raises(TicketLost) as caught:
        ticket.check()
    assert (caught.value.ticket, caught.value.token, caught.value.reason) == (3, 7, "given back")
    refusing(agent, "lapsed")
    with pytest.raises(TicketLost) as caught:
        client.enter(client.run(group.ticket, "gpu", of=8))
    assert (caught.value.ticket, caught.value.token, caught.value.reason) == (None, 0, "lapsed")


def test_errors_survive_a_process_pool() -> None:
    """10: attributes are kept by pickle and copy, and a text alone is enough to make one."""
    for error in (
        TicketLost("a", ticket=3, token=7, reason="b"), TicketCountMismatch("a", expected=8, actual=4),
        NoTicket("a", needed=2, reachable=1), AcquireTimeout("a", 4),
        TicketLost("a"), TicketCountMismatch("a"), Unavailable("a"), AcquireTimeout("a"),
    ):  # fmt: skip
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), "a", vars(error))
    assert Unavailable("a", needed=2).numbers == {"needed": 2}


def test_lost_after_it_was_granted(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """9.2: whatever the reason, what was held is TicketLost."""
    granting(agent)
    ticket = client.enter(client.run(group.ticket, "gpu", of=8))
    agent.push(agent.wait_for(calls.Acquire), calls.GrantItem("lost", 7, 0.0, 0, "full: of surprises"))
    assert client.lost(ticket) == "full: of surprises"
    with pytest.raises(TicketLost):
        ticket.check()
    client.exit(ticket)


def test_not_in_time(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """10: AcquireTimeout(position): where it waited last; 0 if nobody held a place for it."""
    with pytest.raises(AcquireTimeout, match=r"ticket .gpu.: not granted within 0\.05 s; another client") as caught:
        client.enter(client.run(group.ticket, "gpu", of=8, timeout=0.05))
    assert caught.value.position == 0

    def queue(call: calls.Call) -> None:
        for position in (4, 2):
            agent.push(call, calls.GrantItem("queued", 0, 0.0, position))

    agent.answers[calls.Acquire] = queue
    with pytest.raises(AcquireTimeout, match=r"not granted within 0\.3 s; it waited at position 2") as caught:
        client.enter(client.run(group.ticket, "gpu", of=8, timeout=0.3))
    assert caught.value.position == 2


def test_publish(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """5.9, 10: an event under the ticket's number and token; TicketLost when it is not valid, here or at the agent, and nothing is sent."""
    granting(agent)
    ticket = client.enter(client.run(group.ticket, "gpu", of=8))
    client.run(ticket.publish, b"half done")
    asked = agent.wait_for(ticket_calls.Publish)
    assert (asked.grant, asked.payload) == (agent.wait_for(calls.Acquire).serial, b"half done")
    for data, told in ((b"x" * (PUBLISH_BYTES_MAX + 1), "data: 15361 bytes"), ("text", "data: a str")):
        with pytest.raises(ConfigError, match=told):
            client.run(ticket.publish, data)
    agent.answers[ticket_calls.Publish] = ("TicketLost", "it is over")
    with pytest.raises(TicketLost, match="it is over"):
        client.run(ticket.publish, b"too late")
    client.exit(ticket)
    with pytest.raises(TicketLost, match="given back"):
        client.run(ticket.publish, b"too late")
    assert len(agent.all(ticket_calls.Publish)) == 2


def test_touch(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """9.2: ``user_ttl`` goes to the agent, and so does every touch; TicketLost when it is over, here or there."""
    granting(agent)
    for ttl in (0, "soon"):
        with pytest.raises(ConfigError, match=r"user_ttl: .*; accepted is a positive number of seconds"):
            client.run(group.ticket, "gpu", of=8, user_ttl=ttl)
    ticket = client.enter(client.run(group.ticket, "gpu", of=8, user_ttl=timedelta(minutes=1)))
    asked = agent.wait_for(calls.Acquire)
    assert asked.options["user_ttl"] == 60.0
    client.run(ticket.touch)
    assert agent.wait_for(ticket_calls.Touch).grant == asked.serial
    agent.answers[ticket_calls.Touch] = ("TicketLost", "it is over")
    with pytest.raises(TicketLost, match="it is over"):
        client.run(ticket.touch)
    client.exit(ticket)
    with pytest.raises(TicketLost, match="given back"):
        client.run(ticket.touch)
    assert len(agent.all(ticket_calls.Touch)) == 2


def test_watch_a_pool(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """10: OwnerChanged and Published of one pool, in order; what a later agent says besides is left out; closed when asked."""
    stream = client.run(lambda: group.tickets("gpu").watch())
    opened = agent.wait_for(ticket_calls.WatchTickets)
    assert (opened.pool, stream.pool) == ("gpu", "gpu")
    told = [
        ("OwnerChanged", {"pool": "gpu", "number": 3, "owner": NodeId("b", 2), "token": 9}),
        ("Surprise", {"pool": "gpu"}),
        ("Published", {"pool": "gpu", "number": 3, "token": 9, "data": b"hello"}),
        ("OwnerChanged", {"pool": "gpu", "number": 3, "owner": None, "token": 9}),
        ("EventsLost", {"count": 4}),
    ]
    for name, fields in told:
        agent.push(opened, calls.EventItem(1, 0.0, name, Raw(encode(fields))))
    assert [client.next(stream) for _ in range(4)] == [
        OwnerChanged("gpu", 3, NodeId("b", 2), 9), Published("gpu", 3, 9, b"hello"), OwnerChanged("gpu", 3, None, 9), EventsLost(4),
    ]  # fmt: skip
    client.run(stream.close)
    assert agent.wait_for(calls.Close).stream == opened.serial


def test_watch_a_pool_that_cannot_be(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """F12: where there are no seats the missing setting is named."""
    agent.answers[ticket_calls.WatchTickets] = ("ConfigError", "seats: none are configured")
    with pytest.raises(ConfigError, match="seats: none"):
        client.next(client.run(lambda: group.tickets("gpu").watch()))


@pytest.mark.parametrize(
    "pool, options, told",
    [
        ("", {"of": 1}, "pool: ''"), ("x", {"of": 0}, "of: 0; accepted is the number"), ("x", {"of": True}, "of: True"),
        ("x", {"of": 1, "metadata": {"a": 1}}, "metadata: "), ("x", {"of": 1, "timeout": 0}, "timeout: 0"),
    ],
)  # fmt: skip
def test_bad_arguments(client: Spelling, group: Any, pool: str, options: dict[str, Any], told: str) -> None:
    """Bad input: one error that names the field."""
    with pytest.raises(ConfigError, match=told):
        client.run(group.ticket, pool, **options)


def test_who_holds_them(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """10: a hint by a word with the agent, the truth from majorities, each with the time it came; a pool that is not known is empty."""
    holder = ticket_calls.TicketHolder(1, NodeId("b", 2), 9, {"host": "n7"})
    agent.answers[ticket_calls.Tickets] = [ticket_calls.PoolView("gpu", 3, (holder,), True)]
    agent.answers[ticket_calls.ReadTickets] = ticket_calls.PoolView("gpu", 3, (holder,), False)
    pool = client.run(group.tickets, "gpu")
    before = now()
    hint, truth = client.run(pool.hint), client.run(pool.read)
    assert before <= hint.as_of <= truth.as_of <= now()
    assert (hint.is_hint, truth.is_hint, hint.holders) == (True, False, truth.holders)
    assert (hint.of, hint.free, hint.holders[1].name, hint.holders[1].token) == (3, (0, 2), "b", 9)
    agent.answers[ticket_calls.Tickets] = []
    empty = client.run(pool.hint)
    assert empty[:4] == ("gpu", 0, {}, True)
    assert truth.as_of <= empty.as_of <= now()


# while_leader.


def decorated(client: Spelling, group: Any, body: Any) -> Any:
    """The same function in both spellings: ``body`` says what it returns."""
    if isinstance(client, Aio):

        async def work(term: Any) -> Any:
            return await body(term)
    else:

        def work(term: Any) -> Any:  # type: ignore[misc]
            return body(term)

    return group.while_leader("scheduler", timeout=WAIT)(work)


def test_while_leader_returns_what_the_function_returns(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """It leads, runs, gives up; an error of the function is its caller's."""
    granting(agent)

    async def later(term: Any) -> int:
        return int(term.token)

    work = decorated(client, group, later if isinstance(client, Aio) else lambda term: term.token)
    assert work.__name__ == "work"
    assert (client.run(work), client.run(work)) == (7, 8)
    failing = decorated(client, group, lambda term: dict[str, int]()["no such key"])
    with pytest.raises(KeyError):
        client.run(failing)
    assert len(agent.all(calls.Stopped)) == 3


def test_while_leader_begins_anew(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """A term that ends stops the function (a thread stops by itself); it runs again under the next one."""
    granting(agent, seconds=0.3)
    tokens: list[int] = []

    async def patient(term: Any) -> str:
        tokens.append(term.token)
        while len(tokens) < 3:
            await term.lost  # and goes on, until it is cancelled
        return "done"

    def watchful(term: Any) -> str:
        tokens.append(term.token)
        if len(tokens) == 2:
            term.lost.wait(WAIT)
            term.check()
        if len(tokens) < 3:
            term.lost.wait(WAIT)
        else:
            granting(agent)
        return "done"

    assert client.run(decorated(client, group, patient if isinstance(client, Aio) else watchful)) == "done"
    assert len(tokens) >= 3  # more if this machine stood still for a whole term
    assert tokens == sorted(set(tokens))


def test_while_leader_that_is_cancelled(agent: FakeAgent) -> None:
    """Whoever cancels the caller cancels the function, and the leadership is given up after it has ended."""
    granting(agent)
    client = Aio()
    group = client.join("orders", agent=agent.path)
    seen: list[str] = []

    async def work(term: Any) -> None:
        seen.append("began")
        try:
            await term.lost
        finally:
            seen.append("valid" if term.valid else "too late")

    running = client.start(group.while_leader("scheduler")(work))
    until(lambda: seen, "it leads")
    running.cancel()
    agent.wait_for(calls.Stopped)
    assert seen == ["began", "valid"]
    client.run(group.leave)
    client.close()
