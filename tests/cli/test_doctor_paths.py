"""``holdfast doctor`` about the network between agents: every datagram and connection passes a link that tests can narrow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from holdfast.cli.agent_call import AgentCall
from holdfast.host import Address
from holdfast.local.calls import Info
from tests.cli.command import Run
from tests.cli.diagnosis import diagnosed
from tests.support.agents import AgentProcess, Fleet, until
from tests.support.forwarder import Mesh

NAMES = ("a", "b", "c")
NARROW = 850  # bytes: 800 pass, 1000 do not


class Narrow(Mesh):
    """A mesh in a thread of its own that can lose large datagrams and refuse connections."""

    bytes_max = 65536
    no_streams = False

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._carried: set[asyncio.StreamWriter] = set()

    def close_tcp(self) -> None:
        """From now on there are no streams, those that were there included."""
        self.no_streams = True
        for writer in self._carried:
            writer.transport.abort()

    def forward(self, data: bytes, source_host: str, receiver: str) -> None:
        if len(data) <= self.bytes_max:
            super().forward(data, source_host, receiver)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, receiver: str) -> None:
        if self.no_streams:
            return
        self._carried.add(writer)
        try:
            await super().carry(reader, writer, receiver)
        finally:
            self._carried.discard(writer)


class Stage:
    """Three agents of one group with the mesh between them."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.mesh = Narrow(NAMES)
        self.fleet = Fleet(folder)
        self.agents: dict[str, AgentProcess] = {}
        self._thread = Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> Stage:
        self._thread.start()
        self._await(self.mesh.__aenter__())
        for name in NAMES:
            seeds = [str(self.mesh.address("a"))] if name != "a" else []
            self.agents[name] = agent = self.fleet.start(
                name=name, bind=str(self.mesh.bind(name)), advertise=str(self.mesh.address(name)), seeds=seeds
            )
            self.do(partial(self.mesh.attach, name, bound(agent)))
        until(self._together, "all are members")
        return self

    def __exit__(self, *exc: object) -> None:
        self.fleet.__exit__(None, None, None)
        self._await(self.mesh.__aexit__(None, None, None))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def do(self, step: Callable[[], None]) -> None:
        """In the mesh's own thread."""
        done: Future[None] = Future()

        def work() -> None:
            step()
            done.set_result(None)

        self.loop.call_soon_threadsafe(work)
        done.result(30)

    def _await(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def _together(self) -> bool:
        agents = self.agents.values()
        return all(each.said("Joined", member=other.id) for each in agents for other in agents)


def bound(agent: AgentProcess) -> Address:
    """Where it really listens, behind the address that it tells others."""
    with AgentCall(agent.socket) as call:
        host, _, port = call.ask(Info)["bound"].rpartition(":")
    return Address(host, int(port))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("paths")) as stage:
        yield stage


def test_a_small_mtu(holdfast: Run, stage: Stage) -> None:
    """Small datagrams pass and large ones do not: the finding says up to which size."""
    stage.mesh.bytes_max = NARROW
    try:
        found = diagnosed(holdfast, stage.agents["a"], "small_mtu", about="b")
    finally:
        stage.mesh.bytes_max = Narrow.bytes_max
    assert found["severity"] == "error"
    assert "only up to 800 bytes" in found["text"]


def test_closed_tcp(holdfast: Run, stage: Stage) -> None:
    """Datagrams pass and streams do not: somebody opened the port for UDP alone."""
    stage.do(stage.mesh.close_tcp)
    try:
        assert diagnosed(holdfast, stage.agents["c"], "closed_tcp")["severity"] == "error"
    finally:
        stage.mesh.no_streams = False


def test_a_member_out_of_reach(holdfast: Run, stage: Stage) -> None:
    """A member that others keep alive and that does not answer here: the path between the two is broken."""
    stage.do(lambda: stage.mesh.split("b", "c"))
    try:
        assert diagnosed(holdfast, stage.agents["b"], "unreachable", about="c")["severity"] == "error"
    finally:
        stage.do(stage.mesh.heal)
