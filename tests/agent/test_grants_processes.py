"""The whole way of a grant: real agents, real clients, kill -9, forks, SIGSTOP, and a recorder outside that sees who worked when.

Spec: foundation F14; docs/grants.md has the table of failures. Two agents share one lock that excludes, kept by a service in this
process (``fake_kind``). Clients write down each deed with the reading of the machine's clock that allowed it. Whatever happens to
clients and agents: no two of them work at the same time. LONG leases are for what must not wait for the deadline, SHORT ones for
what must.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial

import pytest

from holdfast.local.calls import Acquire, Info
from tests.agent.lock_body import DEEDS
from tests.agent.lock_fleet import Body, Locks
from tests.agent.raw_client import RawClient, Sent, now
from tests.support.agents import AgentProcess
from tests.support.realtime import repeated

SHORT, LONG = 1.0, 30.0
RENEWALS_SEEN = 5  # more than fit into one length
QUICK = 2.0  # seconds; milliseconds, on a machine that has time (docs/grants.md)
MARGIN = QUICK / 4  # of the two agents, this process and the client on the way each may be late by that
PROMPT = 10.0  # seconds; far below LONG, and far above what a busy machine needs for some milliseconds of work


@pytest.fixture(scope="module")
def locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locks]:
    """Two agents for all tests that leave them alive; every test has a lock of its own."""
    with Locks(tmp_path_factory.mktemp("locks")) as it:
        it.agent()
        it.agent()
        yield it


@pytest.fixture
def pair(locks: Locks) -> tuple[AgentProcess, AgentProcess]:
    return locks.agents[0], locks.agents[1]


def hold_and_wait(locks: Locks, pair: tuple[AgentProcess, AgentProcess], name: str, length: float, manner: str) -> tuple[Body, Body]:
    """The first one works, through the first agent; the second one waits, through the other."""
    first = locks.body(pair[0], name, length=length, manner=manner)
    first.until_works()
    return first, locks.body(pair[1], name, length=SHORT)


def finish(second: Body) -> None:
    """The second one gets its turn, ends, and nobody saw two at work."""
    second.until_works()
    second.stop()
    assert second.wait() == 0
    assert second.record.overlaps() == []


def test_acquire_extend_release(locks: Locks, pair: tuple[AgentProcess, AgentProcess]) -> None:
    """F14: a client works beyond its first deadline because it was extended, says that it stopped, and the next one need not wait."""

    def attempt(number: int) -> str:
        first = locks.body(pair[0], f"calm{number}", length=SHORT)
        first.until_works()
        locks.until(partial(extended_or_over, first), "it is extended")
        second = locks.body(pair[1], f"calm{number}", length=LONG)
        first.stop()
        assert first.wait() == 0
        finish(second)
        if first.record.lines("lost", first.pid) or len(first.record.lines("extended", first.pid)) <= RENEWALS_SEEN:
            return "it was not extended in time"
        assert first.record.terms()[0].ended_at > first.record.lines("deed")[0]["deadline"]
        return ""

    repeated(attempt, margin=SHORT / 4)  # A quarter of its length is between two extensions.


def extended_or_over(body: Body) -> bool:
    return body.process.poll() is not None or len(body.record.lines("extended")) > RENEWALS_SEEN


def test_client_killed(locks: Locks, pair: tuple[AgentProcess, AgentProcess]) -> None:
    """F14, PRODUCT: after kill -9 the kernel's word is enough; the next one works in milliseconds, long before the deadline."""

    def attempt(number: int) -> str:
        first, second = hold_and_wait(locks, pair, f"killed{number}", LONG, "polite")
        locks.until(lambda: waiting(pair[1]), "the second one has asked")
        killed_at = now()
        first.process.kill()
        finish(second)
        one, two = second.record.terms()
        took = two.began_at - killed_at
        assert took < PROMPT < one.deadline - killed_at
        return "" if took < QUICK else f"the next one began after {took:.3f} s"

    repeated(attempt, margin=MARGIN)


def waiting(agent: AgentProcess) -> bool:
    """Some client of this agent is there."""
    with RawClient(agent.socket) as client:
        return len(client.ask(Info)["clients"]) > 1


def test_client_disconnected_but_working(locks: Locks, pair: tuple[AgentProcess, AgentProcess]) -> None:
    """F14: a closed socket is not a death. The next one works only when the deadline that the first was told has passed."""
    first, second = hold_and_wait(locks, pair, "gone", SHORT, "gone")
    finish(second)
    assert first.wait() == 0
    one, two = second.record.terms()
    assert two.began_at >= one.deadline
    assert first.deeds > DEEDS, "it went on working without its socket"


def test_the_recorder_catches_a_careless_agent(locks: Locks) -> None:
    """Ablation: an agent that takes a closed socket for a death lets two work at once, and the recorder sees it."""
    careless, other = locks.agent(careless=True), locks.agents[1]
    first = locks.body(careless, "careless", length=LONG, manner="gone")
    first.until_works()
    second = locks.body(other, "careless", length=SHORT)
    second.until_works()
    locks.until(second.record.overlaps, "two work at once")
    first.process.kill()
    careless.kill()


def test_client_forks_and_exits(locks: Locks, pair: tuple[AgentProcess, AgentProcess]) -> None:
    """F14: a fork is not the body: it may do nothing, its open socket holds nothing, and its parent's death ends the grant at once."""
    first, second = hold_and_wait(locks, pair, "forking", LONG, "forking")
    assert first.wait() == 0
    finish(second)
    record = second.record
    one, two = record.terms()
    assert two.began_at < one.ended_at + PROMPT < one.deadline
    assert one.pids == {first.pid}
    locks.until(lambda: record.lines("child ends"), "the child hears that the connection is over")
    assert "child hears Closed" in {line["what"] for line in record.lines()}


def test_the_command_is_a_body_too(locks: Locks, pair: tuple[AgentProcess, AgentProcess]) -> None:
    """F14: the client is dead, the command that it registered works on; the next one waits for the command's death as well."""
    first = locks.body(pair[0], "command", length=LONG, manner="commanding")
    record = first.record
    locks.until(lambda: record.lines("commands"), "the command is registered")
    locks.until(lambda: record.lines("deed"), "the command works")
    second = locks.body(pair[1], "command", length=SHORT)
    locks.until(lambda: waiting(pair[1]), "the second one has asked")
    first.process.kill()
    first.wait()
    deeds = len(record.lines("deed"))
    locks.until(lambda: len(record.lines("deed")) > deeds + 20, "the command works on without its client")
    (worker,) = record.terms()[0].pids
    assert worker != first.pid
    os.kill(worker, signal.SIGKILL)
    killed_at = now()
    finish(second)
    one, two = record.terms()
    assert two.began_at < killed_at + PROMPT < one.deadline


def test_lost(locks: Locks, pair: tuple[AgentProcess, AgentProcess]) -> None:
    """F15: the protocol takes it away; the client hears "lost" and ends, and the next one comes after the lease."""
    first, second = hold_and_wait(locks, pair, "lost", SHORT, "stubborn")
    locks.service.take_away("lost")
    finish(second)
    assert first.wait() == 0
    assert len(first.record.lines("lost", first.pid)) <= 1


def test_bad_options(pair: tuple[AgentProcess, AgentProcess]) -> None:
    """Bad input: a kind's ConfigError reaches the client by name, and nothing was asked."""
    with RawClient(pair[0].socket) as client, pytest.raises(Sent, match="length") as refused:
        client.ask(Acquire, "lock", "x", {"length": "long"})
    assert refused.value.error == "ConfigError"


def test_agent_killed(locks: Locks, pair: tuple[AgentProcess, AgentProcess]) -> None:
    """F14: the agent is dead; its client stops by its own clock, and the next one comes after that, through another agent."""
    agent = locks.agent()
    first, second = hold_and_wait(locks, (agent, pair[1]), "agent-killed", SHORT, "polite")
    agent.kill()
    finish(second)
    assert first.wait() == 0
    one, two = second.record.terms()
    assert one.ended_at < one.deadline <= two.began_at


def test_agent_stopped(locks: Locks, pair: tuple[AgentProcess, AgentProcess]) -> None:
    """F9, F10: an agent that was stopped beyond the deadline revives nothing: its client has ended, and hears nothing else."""
    agent = locks.agent()
    first, second = hold_and_wait(locks, (agent, pair[1]), "agent-stopped", SHORT, "polite")
    agent.signal(signal.SIGSTOP)
    finish(second)
    agent.signal(signal.SIGCONT)
    assert first.wait() == 0
    third = locks.body(agent, "agent-stopped", length=SHORT)
    finish(third)
    assert agent.stop() == 0, agent.stderr


def test_drained_with_a_client_that_does_not_stop(locks: Locks, pair: tuple[AgentProcess, AgentProcess]) -> None:
    """F14: SIGTERM waits for the published deadline, extends nothing, and ends with 0; the next one comes after the deadline."""
    agent = locks.agent()
    first, second = hold_and_wait(locks, (agent, pair[1]), "stubborn", SHORT, "stubborn")
    assert agent.stop() == 0, agent.stderr
    ended_at = now()
    finish(second)
    assert first.wait() == 0
    one, two = second.record.terms()
    assert ended_at >= one.deadline
    assert two.began_at >= one.deadline
    assert len(first.record.lines("stop", first.pid)) == 1


def test_drained_with_a_client_that_stops(locks: Locks, pair: tuple[AgentProcess, AgentProcess]) -> None:
    """F14: a client that says that it stopped is not waited for."""
    agent = locks.agent()
    first, second = hold_and_wait(locks, (agent, pair[1]), "polite", LONG, "polite")
    asked_at = now()
    assert agent.stop() == 0, agent.stderr
    assert now() < asked_at + PROMPT
    assert first.wait() == 0
    finish(second)
    one, two = second.record.terms()
    assert two.began_at < one.deadline
