"""Limits with real agents and processes: who gets what, and what happens when one of them dies or hangs.  Spec: limits 1, 5.1, 10, D22."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self

import pytest

import holdfast.sync
from holdfast.errors import AgentLost, ConfigError
from holdfast.features.limits.calls import AttachLimit, LimitsReport, SurveyLimits
from tests.agent.raw_client import RawClient, Sent
from tests.support.agents import AgentProcess, Fleet, until

RATE, BURST = 300.0, 30.0
WAIT = 40.0
SEATS = 3
PROGRAM = """
import sys, holdfast.sync
with holdfast.sync.join(agent=sys.argv[1]) as group:
    limit = group.limit(sys.argv[2], rate=float(sys.argv[3]), burst=float(sys.argv[4]))
    print("ready", flush=True)
    while True:
        limit.acquire()
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Group:
    """Three agents, which are the seats of the group unless there are none; and programs that take all they can."""

    def __init__(self, folder: Path, *, size: int = SEATS) -> None:
        self.fleet = Fleet(folder)
        ports = free_ports(size)
        self.addresses = [f"127.0.0.1:{port}" for port in ports]
        self.fleet.settings["seeds"] = self.addresses[:SEATS]
        self.agents: list[AgentProcess] = []
        self._programs: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.agents = [self.fleet.start(name=f"s{number}", bind=address) for number, address in enumerate(self.addresses)]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for each in self._programs:
            each.kill()
            each.communicate()
        self.fleet.__exit__(kind, error, trace)

    def hungry(self, agent: AgentProcess, name: str) -> subprocess.Popen[bytes]:
        """A process that takes whatever it is given."""
        words = [sys.executable, "-c", PROGRAM, agent.socket, name, str(RATE), str(BURST)]
        program = subprocess.Popen(words, stdout=subprocess.PIPE)
        self._programs.append(program)
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        return program

    def report(self, agent: AgentProcess, name: str = "") -> LimitsReport:
        with RawClient(agent.socket) as client:
            answer: LimitsReport = client.ask(SurveyLimits, name)
            return answer


class Load:
    """A thread that takes all it can, and how much that was."""

    def __init__(self, limit: Any) -> None:
        self.limit, self.taken, self._over = limit, 0, False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def per_second(self, seconds: float = 2.0) -> float:
        before, began = self.taken, time.monotonic()
        time.sleep(seconds)
        return (self.taken - before) / (time.monotonic() - began)

    def stop(self) -> None:
        self._over = True
        self._thread.join()

    def _run(self) -> None:
        while not self._over:
            try:
                self.limit.acquire(timeout=0.5)
                self.taken += 1
            except TimeoutError:
                continue


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    with Group(tmp_path_factory.mktemp("limits")) as group:
        yield group


def taken_in(loads: Sequence[Load], seconds: float) -> tuple[int, float]:
    """What they took, and in how many seconds."""
    began, before = time.monotonic(), sum(load.taken for load in loads)
    time.sleep(seconds)
    return sum(load.taken for load in loads) - before, time.monotonic() - began


def settle(loads: Sequence[Load], least: float) -> None:
    """Together they take at least so much per second."""
    until(lambda: sum(load.limit.share for load in loads) >= least, "the whole limit is used", WAIT)


@pytest.mark.parametrize("policy", ["fair", "exact"])
def test_busy_processes_share_the_limit_and_an_idle_one_keeps_next_to_nothing(group: Group, policy: str) -> None:
    """Limits 1: one limit for all, shares follow demand, and the sum of what went is below R T + B + m."""
    clients = [holdfast.sync.join(agent=agent.socket) for agent in group.agents]
    terms: dict[str, Any] = {"policy": policy, "fleet": SEATS} if policy != "fair" else {}
    limits = [client.limit(f"share-{policy}", rate=RATE, burst=BURST, **terms) for client in clients]
    for limit in limits:
        limit.ready(timeout=WAIT)
    loads = [Load(limit) for limit in limits[:2]]
    settle(loads, 0.9 * RATE)
    until(lambda: taken_in(loads, 2.0)[0] >= 0.85 * RATE * 2.0, "the estimates have settled", WAIT)
    took, seconds = taken_in(loads, 2.0)
    for load in loads:
        load.stop()
    if policy == "exact":
        assert took <= limits[0].bound(seconds, processes=SEATS)
    assert limits[2].share <= 0.2 * RATE
    for client in clients:
        client.leave()


def test_a_killed_process_gives_its_part_back(group: Group) -> None:
    """Issue 16: when the kernel confirms its death. Two processes of one agent; the other one gets it all."""
    agent = group.agents[0]
    client = holdfast.sync.join(agent=agent.socket)
    limit = client.limit("killed", rate=RATE, burst=BURST)
    limit.ready(timeout=WAIT)
    program = group.hungry(agent, "killed")
    load = Load(limit)
    until(lambda: 0 < limit.share < 0.8 * RATE and len(workers(group, agent, "killed")) == 2, "they share", WAIT)
    program.kill()
    program.wait()
    until(lambda: len(workers(group, agent, "killed")) == 1, "its death is confirmed", WAIT)
    settle([load], 0.85 * RATE)
    load.stop()
    client.leave()


def test_a_process_that_hangs_keeps_what_it_was_told_and_no_more(group: Group) -> None:
    """Issue 16, D22: until its time has passed it is counted with its rate, then with its part of R/n; then others are given more."""
    agent = group.agents[1]
    client = holdfast.sync.join(agent=agent.socket)
    limit = client.limit("hangs", rate=RATE, burst=BURST)
    limit.ready(timeout=WAIT)
    program = group.hungry(agent, "hangs")
    load = Load(limit)
    until(lambda: 0 < limit.share < 0.8 * RATE and len(workers(group, agent, "hangs")) == 2, "they share", WAIT)
    program.send_signal(signal.SIGSTOP)
    settle([load], 0.6 * RATE)
    report = group.report(agent, "hangs").lines[0]
    assert len(report.workers) == 2
    assert sum(worker.rate for worker in report.workers) <= 1.01 * max(report.share, report.told)
    program.send_signal(signal.SIGCONT)
    until(lambda: limit.share < 0.7 * RATE, "it is given its part again", WAIT)
    load.stop()
    program.kill()
    program.wait()
    client.leave()


def test_the_share_survives_a_stopped_agent(group: Group) -> None:
    """Issue 16: state is "alone", and the process goes on with at least R/n; it is back when its agent is."""
    agent = group.agents[2]
    client = holdfast.sync.join(agent=agent.socket, reconnect=True)
    limit = client.limit("stopped", rate=RATE, burst=BURST)
    limit.ready(timeout=WAIT)
    load = Load(limit)
    settle([load], 0.8 * RATE)
    agent.signal(signal.SIGSTOP)
    until(lambda: limit.state == "alone", "its agent does not answer", WAIT)
    assert load.per_second() >= 0.8 * RATE / SEATS
    agent.signal(signal.SIGCONT)
    until(lambda: limit.state == "stable", "its agent answers again", WAIT)
    settle([load], 0.8 * RATE)
    load.stop()
    client.leave()


def test_a_rate_is_changed_for_all_and_a_penalty_ends(group: Group) -> None:
    """Limits 5.10, 9: what one process says counts for all members; a penalty ends by itself."""
    clients = [holdfast.sync.join(agent=agent.socket) for agent in group.agents[:2]]
    limits = [client.limit("changed", rate=RATE, burst=BURST) for client in clients]
    for limit in limits:
        limit.ready(timeout=WAIT)
    limits[0].set_rate(100.0)
    until(lambda: all(limit.share <= 100.0 for limit in limits), "both are slower", WAIT)
    limits[1].penalize(2.0, factor=0.1)
    until(lambda: all(limit.share <= 10.0 for limit in limits), "both are much slower", WAIT)
    load = Load(limits[0])
    settle([load], 80.0)
    load.stop()
    with pytest.raises(ConfigError, match="fleet"):
        limits[0].set_fleet(0)
    for client in clients:
        client.leave()


def test_what_an_agent_refuses_names_the_limit(group: Group) -> None:
    """Issue 16: a limit that is not there; more than 256 of them; a call that makes no sense."""
    client = holdfast.sync.join(agent=group.agents[0].socket)
    with pytest.raises(ConfigError, match="limit 'nothing': there is none of that name"):
        client.limit("nothing")
    with RawClient(group.agents[0].socket) as raw, pytest.raises(Sent, match=r"ConfigError: rate: .*accepted"):
        raw.ask(AttachLimit, "x", [0.0, 1.0])
    client.leave()


def test_an_agent_that_leaves_gives_its_share_up(tmp_path: Path) -> None:
    """Issue 16: drain gives the share up; the others use the whole limit."""
    with Group(tmp_path, size=SEATS + 1) as group:
        leaving, staying = (holdfast.sync.join(agent=agent.socket) for agent in (group.agents[3], group.agents[0]))
        limits = [client.limit("drain", rate=RATE, burst=BURST, policy="exact", fleet=2) for client in (leaving, staying)]
        for limit in limits:
            limit.ready(timeout=WAIT)
        loads = [Load(limit) for limit in limits]
        settle(loads, 0.8 * RATE)
        loads[0].stop()
        group.agents[3].signal(signal.SIGTERM)
        assert group.agents[3].wait() == 0
        loads[1].stop()
        until(lambda: limits[0].share == 0.0, "what it was told has ended", WAIT)
        with pytest.raises(AgentLost):
            limits[0].acquire(timeout=WAIT)
        staying.leave()


def workers(group: Group, agent: AgentProcess, name: str) -> Sequence[Any]:
    lines = group.report(agent, name).lines
    return lines[0].workers if lines else ()


def test_a_group_without_seats_shares_a_limit_over_its_member_list(tmp_path: Path) -> None:
    """Limits 5.11: chosen by itself where no seats are known, with policy fair; an agent that uses no limit is no part of it."""
    with Fleet(tmp_path) as fleet:
        first = fleet.start(name="a")
        seed = first.address.replace("127.0.0.1", "localhost")  # A name says nothing of who the seats are.
        agents = [first, *(fleet.start(name=name, seeds=[seed]) for name in ("b", "c"))]
        clients = [holdfast.sync.join(agent=agent.socket) for agent in agents[:2]]
        with pytest.raises(ConfigError, match="policy: 'exact' needs agreed views"):
            clients[0].limit("list", rate=RATE, policy="exact", fleet=3)
        limits = [client.limit("list", rate=RATE, burst=BURST) for client in clients]
        for limit in limits:
            limit.ready(timeout=WAIT)
        loads = [Load(limit) for limit in limits]
        until(lambda: all(0.4 * RATE <= limit.share <= 0.6 * RATE for limit in limits), "each has a half", WAIT)
        for load in loads:
            load.stop()
        for client in clients:
            client.leave()
