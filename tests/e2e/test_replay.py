"""Recorded packets, played back: to the life they were meant for, and to the next life of the same agent (F3, docs/wire.md).

Every datagram to one agent passes a forwarder that keeps a copy. Later all copies are sent again, from where they came. The receiver
counts them, and nothing else about it changes.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec

from holdfast.host import Address
from holdfast.local.calls import EventItem, GroupView, Info, Look, Watch
from tests.agent.raw_client import RawClient
from tests.support.agents import AgentProcess, Fleet
from tests.support.forwarder import Mesh
from tests.support.realtime import DEADLINE, eventually

NAMES = ("a", "b", "c")
BURST = 10
LEASE = 1.0  # seconds: nobody shall be put out because the machine under test is busy
RECORDED = 60  # datagrams: a join, and some seconds of leases, rumours and comparisons
# How a recorded packet may be counted: seen before; meant for another life; a greeting, which is answered and never acted upon.
COUNTED = ("replayed", "wrong_life", "unbound", "not_a_greeting")
GOINGS = {"Joined", "Suspected", "Decided", "Failed", "Left", "Expelled", "Updated"}


class RecordingMesh(Mesh):
    """Keeps what was delivered to one node, with its sender."""

    def __init__(self, keep: str) -> None:
        super().__init__(NAMES)
        self.kept: list[tuple[str, bytes]] = []
        self.keeps = True
        self._keep = keep

    def _pass_on(self, data: bytes, sender: str, receiver: str) -> None:
        if receiver == self._keep and self.keeps and receiver in self._real:  # What never arrived may still come, once.
            self.kept.append((sender, data))
        super()._pass_on(data, sender, receiver)

    async def play(self) -> int:
        """Everything again, in bursts that a socket's buffer holds; how much that was."""
        self.keeps = False
        for at, (sender, data) in enumerate(self.kept):
            super()._pass_on(data, sender, self._keep)
            if at % BURST == 0:
                await asyncio.sleep(0.01)
        return len(self.kept)


class Seen:
    """What an agent is, from outside."""

    def __init__(self, agent: AgentProcess) -> None:
        with RawClient(agent.socket) as client:
            self.view: GroupView = client.ask(Look)
            info = client.ask(Info)
        self.bound = str(info["bound"])
        self.counted = sum(info["drops"].get(name, 0) for name in COUNTED)
        self.departures = sum(value for name, value in info["metrics"].items() if "departed" in name)


class Scene:
    """Three agents whose every datagram passes the mesh."""

    def __init__(self, mesh: RecordingMesh, fleet: Fleet) -> None:
        self.mesh, self.fleet = mesh, fleet
        self.agents: dict[str, AgentProcess] = {}

    async def start(self, name: str) -> AgentProcess:
        mesh = self.mesh
        seeds = None if name == "a" else [str(mesh.address("a"))]
        where: dict[str, Any] = {
            "bind": str(mesh.bind(name)),
            "advertise": str(mesh.address(name)),
            "state_dir": str(self.fleet.folder / f"state-{name}"),
        }
        agent = self.agents[name] = await asyncio.to_thread(self.fleet.start, name=name, seeds=seeds, **where)
        host, _, port = (await self.look(name)).bound.rpartition(":")
        mesh.attach(name, Address(host, int(port)))
        return agent

    async def look(self, name: str) -> Seen:
        return await asyncio.to_thread(Seen, self.agents[name])

    async def complete(self) -> None:
        while {len((await self.look(name)).view.members) for name in NAMES} != {len(NAMES)}:
            await asyncio.sleep(0.05)

    async def counted(self, name: str, before: Seen, count: int) -> Seen:
        end_at = time.monotonic() + DEADLINE
        while (now := await self.look(name)).counted < before.counted + count:
            assert time.monotonic() < end_at, (
                f"{name} counted {now.counted - before.counted} of {count} packets: what did it do with the rest?"
            )
            await asyncio.sleep(0.05)
        return now


def test_nothing_recorded_is_believed_twice(tmp_path: Path) -> None:
    """F3: dozens of packets, all of them well made and once true, change a counter and nothing else, now and after a restart."""

    async def main() -> None:
        mesh = RecordingMesh(keep="b")
        async with mesh:
            with Fleet(tmp_path, log_level="warning", lease=LEASE) as fleet:
                await played(Scene(mesh, fleet))

    asyncio.run(asyncio.wait_for(main(), 110))


async def played(scene: Scene) -> None:
    for name in NAMES:
        await scene.start(name)
    await scene.complete()
    await eventually(lambda: len(scene.mesh.kept) >= RECORDED, "enough is recorded")

    with RawClient(scene.agents["b"].socket) as watch:
        stream = watch.say(Watch)
        before = await scene.look("b")
        now = await scene.counted("b", before, await scene.mesh.play())
        assert (now.view.members, now.departures) == (before.view.members, before.departures)
        heard = await asyncio.to_thread(_heard, watch, stream, scene.agents["b"])
    assert not GOINGS & set(heard), heard

    await scene.start("b")
    await scene.complete()
    before = await scene.look("b")
    assert before.view.me.id.boot > now.view.me.id.boot
    now = await scene.counted("b", before, await scene.mesh.play())
    assert (now.view.members, now.departures) == (before.view.members, before.departures)


def _heard(watch: RawClient, stream: int, agent: AgentProcess) -> list[str]:
    """The events of an agent up to its end, which is a kill."""
    watch.answer(Watch, stream)
    agent.kill()
    watch.ending()
    items = watch.pushed.get(stream, ())
    return [msgspec.msgpack.decode(item, type=EventItem).name for item in items]
