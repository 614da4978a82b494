"""Machines that come and go while a real host runs: over UDP and over a stream (H203)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.drops import Drop
from holdfast.host import Host, Message, NodeId
from tests.net.machines import Talker, talker

PATIENCE = 30.0  # seconds; only a broken host reaches it


class Late(Message, frozen=True, tag=243):
    """A word of a machine that comes later."""

    data: bytes


class Later:
    """Handles it."""

    handles = (Late,)
    fingerprint = b""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.heard: list[int] = []
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def on_away(self, seconds: float) -> None:
        """Nothing depends on time here."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Late)
        self.heard.append(len(message.data))


async def until(there: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not there():
            await asyncio.sleep(0.01)


async def both_know(a: Talker, b: Talker) -> None:
    a.ping(b.host.address, 1)
    await until(lambda: bool(b.heard))


def test_a_machine_comes_and_goes_on_sockets() -> None:
    """Added in a turn, its datagrams and its large messages by stream are read from then on; after it was removed, they are counted
    drops, and the other machine goes on."""

    async def scenario() -> None:
        (a, first), (b, second) = await talker("a"), await talker("b")
        await both_know(first, second)
        ours, theirs = Later(a), Later(b)
        a.post(lambda: a.node.add(ours))
        a.post(lambda: a.send(b.me, Late(b"x")))
        await until(lambda: b.drops[Drop.UNKNOWN_TAG] == 1)
        b.post(lambda: b.node.add(theirs))
        await until(lambda: theirs.calls == ["start"])
        a.post(lambda: a.send(b.me, Late(b"xx")))
        a.post(lambda: a.send(b.me, Late(bytes(5000))))
        await until(lambda: sorted(theirs.heard) == [2, 5000])
        b.post(lambda: b.node.remove(theirs))
        await until(lambda: theirs.calls == ["start", "stop"])
        a.post(lambda: a.send(b.me, Late(b"xxx")))
        await until(lambda: b.drops[Drop.UNKNOWN_TAG] == 2)
        first.ping(b.me, 2)
        await until(lambda: len(second.heard) == 2)
        assert sorted(theirs.heard) == [2, 5000]
        assert not a.failed.done()
        assert not b.failed.done()
        await a.close()
        await b.close()
        assert ours.calls == ["start", "stop"]

    asyncio.run(scenario())
