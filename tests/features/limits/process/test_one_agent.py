"""One agent, and all that one program or many programs do with it at once.  Spec: limits 5.1, 10; docs/agent.md, "Memory"."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.cli.demo.fleet import free_ports
from holdfast.features.limits.calls import AttachLimit, LimitItem, LimitsReport, ReportLimit, SurveyLimits
from holdfast.features.limits.terms import Terms
from tests.agent.raw_client import RawClient
from tests.support.agents import AgentProcess, Fleet, until

WAIT = 60.0
SEATS = 3
CLIENTS = 200
KIB_PER_CLIENT = 64
CONNECTED = "03"  # of a socket in /proc/net/unix


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[AgentProcess]]:
    """Three seats on loopback."""
    folder = tmp_path_factory.mktemp("three")
    with Fleet(folder) as fleet:
        addresses = [f"127.0.0.1:{port}" for port in free_ports(SEATS)]
        fleet.settings["seeds"] = addresses
        yield [
            fleet.start(name=f"s{number}", bind=address, state_dir=str(folder / f"state{number}"))
            for number, address in enumerate(addresses)
        ]


def connections(agent: AgentProcess) -> int:
    """To its socket, by the kernel."""
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    return sum(line[-1] == agent.socket and line[5] == CONNECTED for line in lines)


def test_leadership_tickets_and_limits_share_a_connection(agents: list[AgentProcess]) -> None:
    """Limits 10: a program that leads, holds a ticket, takes part in views and uses three limits has one connection to one agent."""

    async def program() -> tuple[int, list[Any]]:
        async with holdfast.join(agent=agents[0].socket) as group:

            @group.while_leader("job", timeout=WAIT)
            async def lead(term: holdfast.Term) -> tuple[int, list[Any]]:
                async with group.ticket("gpu", of=2, timeout=WAIT) as ticket, group.views() as views:
                    limits = [group.limit(f"api{number}", rate=300, burst=30) for number in range(3)]
                    for limit in limits:
                        await limit.ready(timeout=WAIT)
                        await limit.acquire(5, timeout=WAIT)
                    await views.ready(timeout=WAIT)
                    held = [term.valid, ticket.valid, views.view is not None, *(limit.share > 0 for limit in limits)]
                    return connections(agents[0]), held

            return await lead()

    count, held = asyncio.run(program())
    assert held == [True] * 6
    assert count == 1
    until(lambda: connections(agents[0]) == 0, "it left")


def test_two_hundred_programs_with_a_limit_each(agents: list[AgentProcess]) -> None:
    """Limits 5.1, docs/agent.md: 200 programs with a limit each cost the agent at most 64 KiB each beside what it has once limits are
    loaded. Every program is given its share."""
    agent = agents[0]
    with ExitStack() as stack:
        first = stack.enter_context(RawClient(agent.socket))
        use(first, attach(first, "first"))
        before = agent.rss_mib
        clients = [stack.enter_context(RawClient(agent.socket)) for _ in range(CLIENTS)]
        streams = [attach(client, f"limit{number}") for number, client in enumerate(clients)]
        for client, stream in zip(clients, streams, strict=True):
            use(client, stream)
        report: LimitsReport = first.ask(SurveyLimits)
        assert sum(len(line.workers) for line in report.lines) == CLIENTS + 1
        after = agent.rss_mib
        each = (after - before) * 1024 / CLIENTS
        print(f"one client: {before:.1f} MiB, {CLIENTS} more: {after:.1f} MiB, {each:.1f} KiB each")  # noqa: T201 - told with -s
        assert each <= KIB_PER_CLIENT


def attach(client: RawClient, name: str) -> int:
    """It uses the limit from now on; its stream."""
    return client.say(AttachLimit, name, Terms(1000.0, 100.0))


def use(client: RawClient, stream: int) -> None:
    """It was given a share, says so, and uses some of it."""
    item: LimitItem = client.item(stream, LimitItem)
    while not item.serial:
        item = client.item(stream, LimitItem)
    assert item.rate > 0
    client.ask(ReportLimit, stream, item.serial, 5.0, 1.0)
