"""Tickets with real agents: what PRODUCT promises a team with eight GPUs.  Spec: tickets 9, 10; foundation F12, F14."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast import sync
from holdfast.cli.demo.fleet import free_ports
from holdfast.client.clock import now
from holdfast.errors import AcquireTimeout, AgentLost, ConfigError, NoTicket, TicketCountMismatch, TicketLost
from holdfast.events import Granted, OwnerChanged, Published, Released
from holdfast.wire.keys import generate
from tests.client.spelling import Aio
from tests.support.agents import AgentProcess, Fleet, until

WAIT = 60.0  # seconds; only a broken machine reaches it
HOLDER = """
import sys
from holdfast import sync
with sync.join(agent=sys.argv[1]) as group, group.ticket(sys.argv[2], of=int(sys.argv[3]), timeout=60) as ticket:
    print(ticket.number, ticket.token, flush=True)
    sys.stdin.read()
"""


class HolderProcess:
    """A process that holds a ticket until it is killed."""

    def __init__(self, agent: str, pool: str, of: int) -> None:
        command = [sys.executable, "-c", HOLDER, agent, pool, str(of)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.number, self.token = map(int, self._process.stdout.readline().split())

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


class Seated:
    """Three agents that are the seats."""

    def __init__(self, fleet: Fleet, seeds: list[str], folder: Path) -> None:
        self.fleet, self._folder = fleet, folder
        with ThreadPoolExecutor(3) as pool:
            self.agents = list(pool.map(lambda n: self.start(f"a{n}", seeds[n]), range(3)))

    def start(self, name: str, bind: str) -> AgentProcess:
        return self.fleet.start(name=name, bind=bind, runtime=self._folder / name, state_dir=str(self._folder / f"{name}.state"))


@pytest.fixture(scope="module")
def seated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seated]:
    folder = tmp_path_factory.mktemp("seats")
    seeds = [f"127.0.0.1:{port}" for port in free_ports(3)]
    with Fleet(folder, key=generate(), seeds=seeds, group="orders") as fleet:
        yield Seated(fleet, seeds, folder)


@pytest.fixture
def agents(seated: Seated) -> list[AgentProcess]:
    return seated.agents


def test_alone_on_a_machine(runtime: Path) -> None:
    """F12: without seeds and key this machine's one agent is its own seat. Take, full, mismatch, wait, hand-over; both spellings."""
    with sync.join("alone", preset="local") as first, sync.join("alone") as second:
        assert (runtime / "alone.state" / "journal").exists()
        aio, events = Aio(), second.watch()
        third = aio.join("alone")
        with first.ticket("gpu", of=2, timeout=WAIT, metadata={"host": "n7"}) as one, second.ticket("gpu", of=2, timeout=WAIT) as two:
            assert {one.number, two.number} == {0, 1}
            assert 0 < one.left <= 1.0 - 0.25  # D less its margin
            with pytest.raises(NoTicket, match="every ticket of 'gpu' is held"):
                aio.enter(aio.run(third.ticket, "gpu", of=2, wait=False, timeout=WAIT))
            with pytest.raises(TicketCountMismatch, match="'gpu' has 2 tickets, and 3 were asked for") as other:
                aio.enter(aio.run(third.ticket, "gpu", of=3, timeout=WAIT))
            assert (other.value.expected, other.value.actual) == (3, 2)
            with pytest.raises(AcquireTimeout, match="it waited at position 1") as late:
                aio.enter(aio.run(third.ticket, "gpu", of=2, timeout=3.0))
            assert late.value.position == 1
            with pytest.raises(ConfigError, match="of: 100000; accepted is the number of tickets"):
                aio.enter(aio.run(third.ticket, "gpu", of=100000))
            pool = second.tickets("gpu")
            truth = pool.read()
            assert (truth.of, truth.free, truth.is_hint) == (2, (), False)
            assert truth.holders[one.number][:2] == (first.me.id, one.token)
            until(lambda: pool.hint().holders == pool.read().holders, "it is announced, with its metadata")
            assert pool.hint().holders[one.number].metadata == {"host": "n7"}
            waiting = aio.start(lambda: third.ticket("gpu", of=2, timeout=WAIT).__aenter__())
            one.release()
            later = waiting.result(WAIT)
            assert (later.number, later.valid, later.token > one.token) == (one.number, True, True)
            aio.exit(later)
        until(lambda: pool.read().free == (0, 1), "all are given back")
        news = [next(each for each in events if isinstance(each, kind)) for kind in (Granted, Released)]
        assert [event.grant.kind for event in news] == ["ticket", "ticket"]
        aio.run(third.leave)
        aio.close()


def test_a_program_that_does_not_touch_its_ticket_loses_it(agents: list[AgentProcess]) -> None:
    """9.2: the process lives and its agent could renew; a waiter elsewhere gets the ticket although nobody gave it back. Who touches it
    keeps it for longer than ``user_ttl``."""
    ttl = 1.0
    with sync.join(agent=agents[0].socket) as hanging, sync.join(agent=agents[1].socket) as waiting:
        held = hanging.ticket("touched", of=1, timeout=WAIT, user_ttl=ttl)
        with held:
            end_at = now() + 3 * ttl
            while now() < end_at:
                held.touch()
                assert not held.lost.wait(ttl / 10)
            with waiting.ticket("touched", of=1, timeout=WAIT) as next_one:
                assert (next_one.token > held.token, held.valid) == (True, False)
            assert "did not touch it for 1 s" in held.why
            with pytest.raises(TicketLost, match="did not touch it"):
                held.touch()


def test_publish_and_watch(agents: list[AgentProcess]) -> None:
    """5.9, 10: what a holder says reaches who watches the pool at another agent, and at its own, under its number and token; ownership
    comes and goes before and after it. Who holds nothing any more is told so, and nothing is said in its name."""
    aio = Aio()
    with sync.join(agent=agents[0].socket) as group, sync.join(agent=agents[0].socket) as here:
        there = aio.join(agent=agents[1].socket)

        def rows(group: sync.Group) -> Mapping[str, bytes]:
            """What a1 publishes, as a0 knows it: a rumour goes to those who are known to listen."""
            member = group.get("a1")
            return {} if member is None else member.rows

        streams = here.tickets("<b>pool</b>").watch(), aio.run(lambda: there.tickets("<b>pool</b>").watch())
        until(lambda: "topic:tickets:<b>pool</b>" in rows(group), "a0 knows that a1 listens")
        with group.ticket("<b>pool</b>", of=2, timeout=WAIT) as ticket:
            until(lambda: aio.run(there.tickets("<b>pool</b>").hint).holders, "it is announced")
            ticket.publish(b"half done")
        with pytest.raises(TicketLost, match="given back"):
            ticket.publish(b"too late")
        own, life = (ticket.number, ticket.token), group.me.id
        wanted = [OwnerChanged("<b>pool</b>", ticket.number, life, ticket.token), Published("<b>pool</b>", *own, b"half done")]
        wanted.append(OwnerChanged("<b>pool</b>", ticket.number, None, ticket.token))
        assert [streams[0].next(WAIT) for _ in wanted] == wanted
        heard = [aio.next(streams[1]) for _ in wanted]
        assert sorted(map(str, heard)) == sorted(map(str, wanted))  # Rumours of two topics may overtake each other.
        aio.run(streams[1].close)
        until(lambda: "topic:tickets:<b>pool</b>" not in rows(group), "nobody listens there any more")
        aio.run(there.leave)
    aio.close()


def test_a_client_that_is_killed(agents: list[AgentProcess]) -> None:
    """F14: the kernel confirms its death, so a waiter at another agent has the ticket long before the lease has ended."""
    holder = HolderProcess(agents[0].socket, "lock", 1)
    with sync.join(agent=agents[1].socket) as group, ThreadPoolExecutor(1) as pool:
        ticket = group.ticket("lock", of=1, timeout=WAIT)
        waiting = pool.submit(ticket.__enter__)
        with pytest.raises(NoTicket), group.ticket("lock", of=1, wait=False, timeout=WAIT):
            pass
        assert not waiting.done()
        holder.kill()
        assert waiting.result(WAIT).token > holder.token
        assert ticket.number == holder.number == 0
        ticket.__exit__(None, None, None)


def test_an_agent_that_is_killed(seated: Seated) -> None:
    """G5, F14: its client stops by its own clock, before another member is told the same number."""
    doomed = seated.start("doomed", "127.0.0.1:0")
    group = sync.join(agent=doomed.socket).__enter__()
    other = sync.join(agent=seated.agents[1].socket).__enter__()
    held = group.ticket("migrate", of=1, timeout=WAIT).__enter__()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other.ticket("migrate", of=1, timeout=WAIT).__enter__)
        doomed.kill()
        assert held.lost.wait(WAIT)
        ended = now()
        with pytest.raises(TicketLost):
            held.check()
        later = waiting.result(WAIT)
        assert (later.valid, later.token > held.token, now() >= held.deadline, ended >= held.deadline) == (True, True, True, True)
        later.release()
    other.leave()
    group.leave()


def test_run_and_release(agents: list[AgentProcess], tmp_path: Path) -> None:
    """`run --ticket`: the command knows its number; `ticket release` at its agent ends it in time, elsewhere it says where to ask."""
    out = tmp_path / "out"
    script = f'echo "$HOLDFAST_TICKET $HOLDFAST_TOKEN" >{out}; exec sleep 600'
    environ = {**os.environ, "HOLDFAST_AGENT": agents[0].socket}
    holdfast = [sys.executable, "-m", "holdfast"]
    process = subprocess.Popen([*holdfast, "run", "--ticket", "gpu:4", "--", "sh", "-c", script], env=environ, stderr=subprocess.PIPE)
    until(lambda: out.exists() and out.read_text().endswith("\n"), "it runs")
    number, token = map(int, out.read_text().split())
    with sync.join(agent=agents[1].socket) as group:
        assert group.tickets("gpu").read().holders[number].token == token
        until(lambda: number in group.tickets("gpu").hint().holders, "it is announced")
    elsewhere = [*holdfast, "ticket", "release", "gpu", str(number), "--agent", agents[1].socket]
    told = subprocess.run(elsewhere, stderr=subprocess.PIPE, timeout=WAIT, check=False)
    assert (told.returncode, b"is held at a0#" in told.stderr) == (2, True)
    assert subprocess.run([*holdfast, "ticket", "release", "gpu", str(number)], env=environ, timeout=WAIT, check=False).returncode == 0
    _, text = process.communicate(timeout=WAIT)
    assert (process.returncode, b"an operator asked for it" in text) == (124, True)
    again = subprocess.run(
        [*holdfast, "ticket", "release", "gpu", str(number)], env=environ, stderr=subprocess.PIPE, timeout=WAIT, check=False
    )
    assert (again.returncode, b"is not held" in again.stderr) == (1, True)
    abandon = [*holdfast, "ticket", "abandon", "gpu", "0", "--holder-is-dead"]
    refused = subprocess.run(abandon, env=environ, stderr=subprocess.PIPE, timeout=WAIT, check=False)
    assert (refused.returncode, b"every cell of the pool answers" in refused.stderr) == (3, True)


def test_an_agent_that_leaves_gives_its_tickets_back_first(seated: Seated) -> None:
    """9.6: what its clients held is written as free before it ends; nobody has to wait for a lease that is renewed by nobody."""
    leaving = seated.start("leaving", "127.0.0.1:0")
    with sync.join(agent=seated.agents[1].socket) as other, ThreadPoolExecutor(1) as pool:
        group = sync.join(agent=leaving.socket)
        held = [group.ticket("drained", of=4, timeout=WAIT).__enter__() for _ in range(4)]
        ended = pool.submit(leaving.stop)
        for ticket in held:
            assert ticket.lost.wait(WAIT)
            ticket.release()
        assert ended.result(WAIT) == 0
        assert other.tickets("drained").read().holders == {}
        with suppress(AgentLost):
            group.leave()
