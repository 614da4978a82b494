"""Tickets with real agents and real clients: kill -9, SIGSTOP, forks, closed sockets, a lost seat; a recorder outside sees who worked when.

Spec: tickets G1, G3, G5, G7, 5.5, 5.8, 9.2; foundation F9, F14; docs/tickets.md has the table of failures. Three agents are the seats,
others come and go. Whatever happens to clients and agents: no two of them use one ticket at the same time.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial

import pytest

from holdfast.local.calls import Acquire
from tests.agent.lock_body import DEEDS
from tests.agent.raw_client import RawClient, now
from tests.features.leadership.process.fleet import EXTENSIONS, after_the_deadline, finish, lead_and_wait
from tests.features.tickets.process.fleet import TicketFleet
from tests.support.agents import AgentProcess, until
from tests.support.realtime import repeated

QUICK = 1.0  # seconds; milliseconds on a machine that has time, and less than half of a lease on one that has not
MARGIN = QUICK / 5  # of the two agents, two seats and the client on the way each may be late by that


@pytest.fixture(scope="module")
def tickets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TicketFleet]:
    """Three seats for all tests; every test has a pool of its own."""
    with TicketFleet(tmp_path_factory.mktemp("tickets")) as it:
        yield it


@pytest.fixture
def doomed(tickets: TicketFleet, request: pytest.FixtureRequest) -> AgentProcess:
    """A member to which something will happen."""
    return tickets.agent(request.node.name.replace("_", "-")[:40])


def test_a_holding_client_is_killed(tickets: TicketFleet) -> None:
    """F14, 5.8: after kill -9 the kernel's word is enough; the waiter has the ticket in milliseconds, long before the deadline."""

    def attempt(number: int) -> str:
        first, second = lead_and_wait(tickets, tickets.seats[1], f"killed{number}")
        killed_at = now()
        first.process.kill()
        finish(second)
        one, two = second.record.terms()
        took, left = two.began_at - killed_at, one.deadline - killed_at
        return "" if took < min(QUICK, left) else f"the next one began after {took:.3f} s, and the deadline was after {left:.3f} s"

    repeated(attempt, margin=MARGIN)


def test_a_holding_client_is_stopped(tickets: TicketFleet) -> None:
    """F9, 9.2, H148: SIGSTOP beyond the deadline that it knows. Its agent renews for it no more than once, and the next one gets the
    ticket; who wakes up finds its own deadline passed, and does nothing more."""
    first, second = lead_and_wait(tickets, tickets.seats[1], "client-stopped")
    first.signal(signal.SIGSTOP)
    deeds = first.record.lines("deed", first.pid)
    second.until_works()
    first.signal(signal.SIGCONT)
    assert first.wait() == 0
    assert first.record.lines("deed", first.pid) == deeds
    finish(second)
    assert after_the_deadline(second)


def test_a_holding_agent_is_stopped(tickets: TicketFleet, doomed: AgentProcess) -> None:
    """D5, F9: its client stops by its own clock, another one gets the ticket; an agent that wakes up has lost it, and may have it later."""
    first, second = lead_and_wait(tickets, doomed, "agent-stopped")
    doomed.signal(signal.SIGSTOP)
    second.until_works()
    doomed.signal(signal.SIGCONT)
    assert first.wait() == 0
    third = tickets.body(doomed, "agent-stopped")
    finish(second)
    finish(third)
    tokens = [term.token for term in third.record.terms()]
    assert tokens == sorted({*tokens})
    one, two, _ = third.record.terms()
    assert one.ended_at < one.deadline <= two.began_at


def test_an_agent_is_killed_under_a_living_client(tickets: TicketFleet, doomed: AgentProcess) -> None:
    """F14, 9.2: kill -9 of the agent; its client works up to its deadline by its own clock, and the next one comes after it."""
    first, second = lead_and_wait(tickets, doomed, "agent-killed")
    doomed.kill()
    finish(second)
    assert first.wait() == 0
    assert after_the_deadline(second)


def test_agent_and_client_are_killed_together(tickets: TicketFleet) -> None:
    """G5, D20: nobody is left to give it back, and the holder's agent was a seat; two seats wait for the lease, the third comes back."""
    first, second = lead_and_wait(tickets, tickets.seats[2], "host-lost")
    tickets.seats[2].process.kill()
    first.process.kill()
    tickets.seats[2].wait()
    finish(second)
    assert after_the_deadline(second)
    tickets.seats[2] = tickets.seat(2)
    finish(tickets.body(tickets.seats[2], "host-lost"))


def test_a_client_closes_its_socket_and_works_on(tickets: TicketFleet) -> None:
    """F14: a closed socket is not a death. The next one gets the ticket only when the deadline that the first was told has passed."""
    first, second = lead_and_wait(tickets, tickets.seats[1], "gone", "gone")
    finish(second)
    assert first.wait() == 0
    assert after_the_deadline(second)
    assert first.deeds > DEEDS, "it went on working without its socket"


def test_a_client_forks_and_exits(tickets: TicketFleet) -> None:
    """F14: the child is not the body: it may do nothing, its open socket holds nothing, its parent's death gives the ticket back."""
    first, second = lead_and_wait(tickets, tickets.seats[1], "forking", "forking")
    assert first.wait() == 0
    finish(second)
    record = second.record
    one, _ = record.terms()
    assert one.pids == {first.pid}
    until(partial(record.lines, "child ends"), "the child hears that the connection is over")


def test_an_agent_is_drained(tickets: TicketFleet, doomed: AgentProcess) -> None:
    """F14, 9.6: SIGTERM asks the client to stop; it does, and the waiter has the ticket after a round trip, not after a lease."""
    first, second = lead_and_wait(tickets, doomed, "drained")
    assert doomed.stop() == 0, doomed.stderr
    assert first.wait() == 0
    finish(second)
    one, two = second.record.terms()
    assert two.began_at < one.deadline


def test_as_many_as_there_are_tickets(tickets: TicketFleet) -> None:
    """G1, G7: two tickets, three clients on three agents: two work at once with different numbers, the third gets what is given back."""
    bodies = [tickets.body(seat, "two", of=2) for seat in tickets.seats]
    until(lambda: sum(body.deeds > 0 for body in bodies) >= 2, "two of them work")
    working = [body for body in bodies if body.deeds > 0]
    assert sorted(body.number for body in working) == [0, 1]
    (waiting,) = (body for body in bodies if body not in working)
    working[0].stop()
    assert working[0].wait() == 0
    waiting.until_works()
    for body in (working[1], waiting):
        body.stop()
        assert body.wait() == 0
        assert body.record.overlaps() == []


def test_a_pool_has_one_number_of_tickets(tickets: TicketFleet) -> None:
    """D10: whoever asks for another number is told so, at once and with both numbers; nobody else is disturbed."""
    first = tickets.body(tickets.seats[0], "sized")
    first.until_works()
    other = RawClient(tickets.seats[1].socket)
    lost = other.grant(other.say(Acquire, "ticket", "sized", {"of": 3}), "lost")
    other.sock.close()
    assert "'sized' has 1 ticket" in lost.why
    assert "3 were asked for" in lost.why
    first.stop()
    assert first.wait() == 0


def test_a_seat_dies_under_holder_and_waiter(tickets: TicketFleet) -> None:
    """G4: a majority is left: the holder goes on, and gives back to the waiter without waiting for anybody's lease."""
    first, second = lead_and_wait(tickets, tickets.seats[1], "seat-lost")
    tickets.seats[2].kill()
    extended = len(first.record.lines("extended", first.pid))
    until(lambda: len(first.record.lines("extended", first.pid)) >= extended + EXTENSIONS, "it is extended by two seats")
    first.stop()
    assert first.wait() == 0
    finish(second)
    one, two = second.record.terms()
    assert two.began_at < one.deadline
    tickets.seats[2] = tickets.seat(2)


def test_the_recorder_catches_a_careless_client(tickets: TicketFleet, doomed: AgentProcess) -> None:
    """Ablation: a client that does not look at its deadline works beside the next one when its agent dies, and the recorder sees it."""
    first, second = lead_and_wait(tickets, doomed, "careless-client", "careless")
    doomed.kill()
    second.until_works()
    until(second.record.overlaps, "two work at once")
    first.process.kill()


def test_the_recorder_catches_a_careless_agent(tickets: TicketFleet) -> None:
    """Ablation: an agent that takes a closed socket for a death gives the ticket back too early, and the recorder sees it."""
    careless = tickets.agent("careless-agent", module="tests.features.leadership.process.careless_agent")
    _, second = lead_and_wait(tickets, careless, "careless-agent", "gone")
    until(second.record.overlaps, "two work at once")
