"""The same Omega as in the lab, on real sockets and in real processes.  Spec: fast-detection 5 (Fig. 3), I9; foundation F10, F11.

Bounds come from the protocol; the margins on top of them are for the machine, which may stand still for a while.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from holdfast.cli.demo.fleet import free_ports
from holdfast.events import Event, Paused
from holdfast.host import Address, NodeId
from holdfast.net.host import NetHost
from holdfast.papers.detection.protocol.omega import PATIENCE, Omega, RoundEntered
from holdfast.wire.keys import Key, Keyring
from holdfast.wire.seal import Sealed
from tests.support.agents import until
from tests.support.forwarder import Mesh
from tests.support.realtime import DEADLINE, eventually, run

ALPHA = 0.3
# Two alphas of silence, then the successor's OK at once and the next one an alpha later.
TAKEOVER = (PATIENCE + 1) * ALPHA
MARGIN = 10.0
KEY = Key(b"omega" + bytes(27))


class Member:
    """One member on real sockets, and what it emitted."""

    def __init__(self, host: NetHost) -> None:
        self.host = host
        self.events: list[Event] = []
        host.on_event = self.events.append
        self.omega: Omega

    @property
    def view(self) -> tuple[NodeId | None, int]:
        return self.omega.leader, self.omega.round

    def rounds(self) -> list[RoundEntered]:
        return [event for event in self.events if isinstance(event, RoundEntered)]


async def opened(name: str, bind: Address, advertise: Address | None = None, *, boot: int = 1) -> Member:
    return Member(await NetHost.open(NodeId(name, boot), bind, Sealed("omega", Keyring(KEY)), advertise=advertise))


def start(members: Sequence[Member], *, patience: float = PATIENCE) -> None:
    addresses = {member.host.me.name: member.host.address for member in members}
    for member in members:
        member.omega = Omega(member.host, addresses, alpha=ALPHA, patience=patience)
        member.host.node.add(member.omega)
        member.host.start()


@asynccontextmanager
async def group(names: str) -> AsyncIterator[list[Member]]:
    """Members on loopback, all in this loop, sealed."""
    members = [await opened(name, Address("127.0.0.1", 0)) for name in names]
    start(members)
    try:
        yield members
    finally:
        for member in members:
            await member.host.close()


def agree(members: Sequence[Member]) -> bool:
    """All name one of them, in one round."""
    views = {member.view for member in members}
    return len(views) == 1 and next(iter(views))[0] in {member.host.me for member in members}


def test_five_members_agree_and_replace_their_leader() -> None:
    """I9 on loopback: one leader; when its host is gone without a word, another one within 3 alpha of the last OK."""

    async def main() -> None:
        async with group("abcde") as members:
            await eventually(lambda: agree(members), "five members agree")
            leader, number = members[0].view
            gone = next(member for member in members if member.host.me == leader)
            rest = [member for member in members if member is not gone]
            gone_at = time.monotonic()
            await gone.host.close()
            await eventually(lambda: agree(rest), "the others agree")
            took = time.monotonic() - gone_at
            assert rest[0].view[1] > number
            assert took <= TAKEOVER + MARGIN

    run(main())


def test_stalled_loop_demotes_nobody() -> None:
    """F10, F11: a process that stood still for four times the patience hears its peers out before it judges them."""

    async def main() -> None:
        async with group("abc") as members:
            await eventually(lambda: agree(members), "three members agree")
            before = [len(member.rounds()) for member in members]
            time.sleep(4 * PATIENCE * ALPHA)  # noqa: ASYNC251 - the stall is what is tested
            stalled = [len(member.events) for member in members]
            await eventually(
                lambda: all(any(isinstance(e, Paused) for e in m.events[n:]) for m, n in zip(members, stalled, strict=True)), "all noticed"
            )
            await asyncio.sleep(0.9 * PATIENCE * ALPHA)
            after = [member.rounds()[n:] for member, n in zip(members, before, strict=True)]
            assert [event for events in after for event in events if event.why == "silence"] == []
            await eventually(lambda: agree(members), "three members agree again")

    run(main())


def test_lossy_links_and_a_partition() -> None:
    """I9 over links that lose and delay: they agree; the leader is cut off and replaced; healed, the highest round wins."""

    async def main() -> None:
        names = "abcd"
        async with Mesh(names, seed=11) as mesh:
            members = [await opened(name, mesh.bind(name), mesh.address(name)) for name in names]
            for member in members:
                mesh.attach(member.host.me.name, member.host.bound)
                for other in names:
                    mesh.link(member.host.me.name, other).loss = 0.1
                    mesh.link(member.host.me.name, other).delay = (0.001, 0.02)
            start(members, patience=4.1)  # Four OKs missed in a row: at 10 % loss one mistake in 10,000 per follower.
            try:
                await eventually(lambda: agree(members), "four members agree")
                leader, number = members[0].view
                assert leader is not None
                rest = [member for member in members if member.host.me != leader]
                mesh.split([leader.name], [member.host.me.name for member in rest])
                await eventually(lambda: agree(rest), "those who are left agree")
                assert rest[0].view[1] > number
                mesh.heal()
                await eventually(lambda: agree(members), "all agree again")
                assert members[0].view[1] > number
            finally:
                for member in members:
                    await member.host.close()

    run(main())


class Child:
    """One ``holdfast lab node`` and the events it printed so far, each with the wall-clock second it happened."""

    def __init__(self, name: str, ports: dict[str, int], interval: float) -> None:
        peers = ",".join(f"{other}=127.0.0.1:{port}" for other, port in ports.items())
        words = ["--name", name, "--bind", f"127.0.0.1:{ports[name]}", "--peers", peers, "--insecure", "--interval", str(interval)]
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "lab", "node", *words],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.events: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def view(self) -> tuple[str | None, int]:
        """Whom it names, in which round, as far as it said."""
        changes = [event for event in list(self.events) if event["event"] == "LeaderChanged"]
        return (changes[-1]["leader"], changes[-1]["token"]) if changes else (None, -1)

    def of_kind(self, kind: str, since: float) -> list[dict[str, Any]]:
        return [event for event in list(self.events) if event["event"] == kind and event["at"] >= since]

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE)
        self._reader.join(DEADLINE)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))


@contextmanager
def children(names: str, interval: float) -> Iterator[dict[str, Child]]:
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    started: dict[str, Child] = {}
    try:
        for name in names:
            started[name] = Child(name, ports, interval)
        yield started
    finally:
        for child in started.values():
            child.end()


def one_mind(nodes: Sequence[Child]) -> bool:
    views = {node.view for node in nodes}
    leader = next(iter(views))[0]
    return len(views) == 1 and leader is not None and leader.partition("#")[0] in {node.name for node in nodes}


@pytest.mark.timeout(4 * DEADLINE)
def test_processes_pause_and_die() -> None:
    """F10, F11: a follower resumed after SIGSTOP of five intervals demotes nobody; I9: after kill -9 of the leader another one leads."""
    interval = 0.4
    with children("abc", interval) as nodes:
        until(lambda: one_mind(list(nodes.values())), "three processes agree")
        leader, number = nodes["a"].view
        assert leader is not None
        followers = [node for name, node in nodes.items() if name != leader.partition("#")[0]]
        paused = followers[0]

        paused.process.send_signal(signal.SIGSTOP)
        time.sleep(5 * interval)
        resumed_at = time.time()
        paused.process.send_signal(signal.SIGCONT)
        until(lambda: paused.of_kind("Paused", resumed_at - 0.01), "it noticed the pause")
        back_at = paused.of_kind("Paused", resumed_at - 0.01)[0]["at"]
        until(lambda: time.time() > back_at + PATIENCE * interval, "its patience is over")
        entered = paused.of_kind("RoundEntered", back_at)
        assert [event for event in entered if event["why"] == "silence" and event["at"] < back_at + 0.95 * PATIENCE * interval] == []
        until(lambda: one_mind(list(nodes.values())), "three processes agree after the pause")

        leader, number = nodes["a"].view
        assert leader is not None
        killed = nodes[leader.partition("#")[0]]
        rest = [node for node in nodes.values() if node is not killed]
        killed_at = time.monotonic()
        killed.process.kill()
        until(lambda: one_mind(rest), "the other two agree")
        assert time.monotonic() - killed_at <= (PATIENCE + 1) * interval + MARGIN
        assert rest[0].view[1] > number
