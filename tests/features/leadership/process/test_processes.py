"""Leadership with real agents and real clients: kill -9, SIGSTOP, forks, closed sockets; a recorder outside sees who worked when.

Spec: foundation F9, F14; fast-detection G5, D19; docs/leadership.md has the table of failures. Three agents are the seats, others come
and go. Clients write down each deed with the reading of the machine's clock that allowed it. Whatever happens to clients and agents: no
two of them work at the same time. The grace makes terms of some seconds, so that nobody loses one because the machine under test is busy.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial

import pytest

from tests.agent.lock_body import DEEDS
from tests.agent.raw_client import now
from tests.features.leadership.process.fleet import GRACE, Leads, after_the_deadline, finish, lead_and_wait
from tests.support.agents import AgentProcess
from tests.support.realtime import repeated

QUICK = 1.0  # seconds; milliseconds on a machine that has time, and less than half of a term on one that has not
MARGIN = QUICK / 5  # of the two agents, two seats and the client on the way each may be late by that


@pytest.fixture(scope="module")
def leads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leads]:
    """Three seats for all tests; every test has a name of its own to lead."""
    with Leads(tmp_path_factory.mktemp("leads")) as it:
        yield it


@pytest.fixture
def doomed(leads: Leads, request: pytest.FixtureRequest) -> AgentProcess:
    """A member to which something will happen."""
    return leads.agent(request.node.name.replace("_", "-")[:40])


def test_a_leading_client_is_killed(leads: Leads) -> None:
    """F14, PRODUCT: after kill -9 the kernel's word is enough; the next one leads in milliseconds, long before the deadline."""

    def attempt(number: int) -> str:
        first, second = lead_and_wait(leads, leads.seats[1], f"killed{number}")
        killed_at = now()
        first.process.kill()
        finish(second)
        one, two = second.record.terms()
        took, left = two.began_at - killed_at, one.deadline - killed_at
        return "" if took < min(QUICK, left) else f"the next one began after {took:.3f} s, and the deadline was after {left:.3f} s"

    repeated(attempt, margin=MARGIN)


def test_a_leading_client_is_stopped(leads: Leads) -> None:
    """F9, D19, H76, H148: SIGSTOP beyond the deadline that it knows. Its agent renews for it no more than once, and the next one leads; who
    wakes up finds its own deadline passed, and does nothing more."""
    first, second = lead_and_wait(leads, leads.seats[1], "client-stopped")
    first.signal(signal.SIGSTOP)
    deeds = first.record.lines("deed", first.pid)
    second.until_works()
    first.signal(signal.SIGCONT)
    assert first.wait() == 0
    assert first.record.lines("deed", first.pid) == deeds
    finish(second)
    assert after_the_deadline(second)


def test_a_leading_agent_is_stopped(leads: Leads, doomed: AgentProcess) -> None:
    """F9, F10, D19: its client stops by its own clock, another agent leads; who wakes up has lost it, and may lead again later."""
    first, second = lead_and_wait(leads, doomed, "agent-stopped")
    doomed.signal(signal.SIGSTOP)
    second.until_works()
    doomed.signal(signal.SIGCONT)
    assert first.wait() == 0
    third = leads.body(doomed, "agent-stopped", grace=GRACE)
    finish(second)
    finish(third)
    tokens = [term.token for term in third.record.terms()]
    assert tokens == sorted({*tokens})
    one, two, _ = third.record.terms()
    assert one.ended_at < one.deadline <= two.began_at


def test_an_agent_is_killed_under_a_living_client(leads: Leads, doomed: AgentProcess) -> None:
    """F14: kill -9 of the agent; its client works up to its deadline by its own clock, and the next one comes after it."""
    first, second = lead_and_wait(leads, doomed, "agent-killed")
    doomed.kill()
    finish(second)
    assert first.wait() == 0
    assert after_the_deadline(second)


def test_agent_and_client_are_killed_together(leads: Leads) -> None:
    """The worst case: nobody is left to give it up, and the leader was a seat; two seats find it dead and the third comes back."""
    first, second = lead_and_wait(leads, leads.seats[2], "host-lost")
    leads.seats[2].process.kill()
    first.process.kill()
    leads.seats[2].wait()
    finish(second)
    assert after_the_deadline(second)
    leads.seats[2] = leads.seat(2)
    third = leads.body(leads.seats[2], "host-lost", grace=GRACE)
    finish(third)


def test_a_client_closes_its_socket_and_works_on(leads: Leads) -> None:
    """F14: a closed socket is not a death. The next one leads only when the deadline that the first was told has passed."""
    first, second = lead_and_wait(leads, leads.seats[1], "gone", "gone")
    finish(second)
    assert first.wait() == 0
    assert after_the_deadline(second)
    assert first.deeds > DEEDS, "it went on working without its socket"


def test_a_client_forks_and_exits(leads: Leads) -> None:
    """F14: the child is not the body: it may do nothing, its open socket holds nothing, its parent's death ends the term."""
    first, second = lead_and_wait(leads, leads.seats[1], "forking", "forking")
    assert first.wait() == 0
    finish(second)
    record = second.record
    one, _ = record.terms()
    assert one.pids == {first.pid}
    leads.until(partial(record.lines, "child ends"), "the child hears that the connection is over")


def test_an_agent_is_drained(leads: Leads, doomed: AgentProcess) -> None:
    """F14: SIGTERM asks the client to stop; it does, and the next one leads after a round trip, not after a timeout."""
    first, second = lead_and_wait(leads, doomed, "drained")
    assert doomed.stop() == 0, doomed.stderr
    assert first.wait() == 0
    finish(second)
    one, two = second.record.terms()
    assert two.began_at < one.deadline


def test_the_recorder_catches_a_careless_client(leads: Leads, doomed: AgentProcess) -> None:
    """Ablation: a client that does not look at its deadline works beside the next one when its agent dies, and the recorder sees it."""
    first, second = lead_and_wait(leads, doomed, "careless-client", "careless")
    doomed.kill()
    second.until_works()
    leads.until(second.record.overlaps, "two work at once")
    first.process.kill()


def test_the_recorder_catches_a_careless_agent(leads: Leads) -> None:
    """Ablation: an agent that takes a closed socket for a death gives the term up too early, and the recorder sees it."""
    careless = leads.agent("careless-agent", module="tests.features.leadership.process.careless_agent")
    _, second = lead_and_wait(leads, careless, "careless-agent", "gone")
    leads.until(second.record.overlaps, "two work at once")
