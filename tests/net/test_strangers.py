"""Whoever has no key can connect and send bytes; that must not keep the members out.  Spec: foundation 3 (Host.send); docs/sockets.md."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.drops import Drop, Drops
from holdfast.host import Address, NodeId
from holdfast.net import tcp
from holdfast.wire.frame import frame
from holdfast.wire.seal import Channel
from tests.net.machines import Blob, closed_by_peer, connect, envelope, plain, sealed, talker
from tests.support.realtime import eventually, run

HOARD = frame(b"x" * 70_000)[:-1]  # a frame that is never finished
SMALL = frame(envelope(NodeId("p", 7), NodeId("a", 4), Blob(b"1")))  # what a plain host takes for a member's


def test_connections_are_bounded_and_the_silent_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has no key can open connections; they must not keep the members out."""
    monkeypatch.setattr(tcp, "INCOMING_MAX", 3)

    async def main() -> None:
        host, machine = await talker("a", boot=4)
        active_reader, active = await connect(host)
        message = frame(envelope(NodeId("p", 7), NodeId("a", 4), Blob(b"1")))
        silent = []
        for count in range(1, 10):
            silent.append(await connect(host))
            active.write(message)
            await eventually(lambda count=count: len(machine.heard) == count)  # type: ignore[misc]
            assert len(host.streams._incoming) <= 3
        assert await closed_by_peer(silent[0][0])
        assert not active_reader.at_eof()
        assert host.drops[Drop.QUEUE_FULL] == 7
        for _, writer in (*silent, (active_reader, active)):
            writer.close()
        await host.close()

    run(main())


def test_a_crowd_of_strangers_leaves_half_of_the_room_to_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many connect after it, and however long it says nothing: a peer that has shown a key keeps its connection."""
    monkeypatch.setattr(tcp, "INCOMING_MAX", 4)

    async def main() -> None:
        host, machine = await talker("a", boot=4)
        member, writer = await connect(host)
        writer.write(SMALL)
        await eventually(lambda: machine.heard)
        strangers = []
        for _ in range(20):
            strangers.append(await connect(host))
            strangers[-1][1].write(b"\0")
        await eventually(lambda: host.drops[Drop.QUEUE_FULL] == 17)
        assert not member.at_eof()
        writer.write(SMALL)
        await eventually(lambda: len(machine.heard) == 2)
        for _, each in (*strangers, (member, writer)):
            each.close()
        await host.close()

    run(main())


def test_bytes_that_open_nothing_keep_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eviction and idleness go by the last frame that opened: dripping bytes into a frame is silence."""
    monkeypatch.setattr(tcp, "INCOMING_IDLE_TIMEOUT", 0.3)

    async def main() -> None:
        host, _ = await talker("a")
        reader, writer = await connect(host)

        async def drip() -> None:
            writer.write(HOARD[:4])
            while not writer.transport.is_closing():
                writer.write(b"x")
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        assert await closed_by_peer(reader)
        await dripping
        assert host.streams.unfinished == 0
        await host.close()

    run(main())


def test_unfinished_frames_are_bounded_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The length of a frame is not authenticated: it can make us hold only so much, and nobody else pays for it."""
    monkeypatch.setattr(tcp, "UNFINISHED_BYTES_MAX", 100_000)

    async def main() -> None:
        host, _ = await talker("a")
        first_reader, first = await connect(host)
        second_reader, second = await connect(host)
        first.write(HOARD)
        await eventually(lambda: host.streams.unfinished == len(HOARD))
        second.write(HOARD)
        assert await closed_by_peer(first_reader)
        await eventually(lambda: host.streams.unfinished == len(HOARD))
        assert host.drops == {Drop.QUEUE_FULL: 1}
        assert not second_reader.at_eof()
        first.close()
        second.close()
        await eventually(lambda: host.streams.unfinished == 0)
        await host.close()

    run(main())


def test_a_member_in_the_middle_of_a_frame_outlasts_younger_hoarders(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that has shown a key goes last, also when its unfinished frame is the oldest."""
    monkeypatch.setattr(tcp, "UNFINISHED_BYTES_MAX", 150_000)

    async def main() -> None:
        host, machine = await talker("a", boot=4)
        large = frame(envelope(NodeId("p", 7), NodeId("a", 4), Blob(b"x" * 70_000), Channel.STREAM))
        _, member = await connect(host)
        member.write(SMALL + large[:-1])
        await eventually(lambda: host.streams.unfinished == len(large) - 1)
        hoarders = []
        for count in range(1, 6):
            hoarders.append(await connect(host))
            hoarders[-1][1].write(HOARD)
            await eventually(lambda count=count: host.drops[Drop.QUEUE_FULL] == count - 1)  # type: ignore[misc]
            await eventually(lambda: host.streams.unfinished == len(large) - 1 + len(HOARD))
        member.write(large[-1:])
        await eventually(lambda: len(machine.heard) == 2)
        for _, writer in (*hoarders, (None, member)):
            writer.close()
        await host.close()

    run(main())


def test_hoarders_shut_nobody_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key and with as many unfinished frames as there is room for: every large message of a member arrives."""
    monkeypatch.setattr(tcp, "UNFINISHED_BYTES_MAX", 1_000_000)

    async def main() -> None:
        a, of_a = await talker("a", sealed())
        b, _ = await talker("b", sealed())
        b.meet(a.me, a.address)
        hoarders = [await connect(a) for _ in range(20)]
        for _, writer in hoarders:
            writer.write(HOARD)
        await eventually(lambda: a.drops[Drop.QUEUE_FULL] == 6)
        for count in range(1, 11):
            b.send(a.me, Blob(b"x" * 900_000))
            await eventually(lambda count=count: len(of_a.heard) == count)  # type: ignore[misc]
        assert b.drops == {}
        for _, writer in hoarders:
            writer.close()
        await b.close()
        await a.close()

    run(main())


class Line(asyncio.Transport):
    """One connection without a socket, so that a test says in which order the pieces come."""

    def __init__(self, streams: tcp.Streams) -> None:
        super().__init__()
        self.open = True
        self._end = tcp.Incoming(streams)
        self._end.connection_made(self)

    def say(self, data: bytes) -> None:
        self._end.data_received(data)

    def is_closing(self) -> bool:
        return not self.open

    def abort(self) -> None:
        self.open = False


def no_bug(error: BaseException) -> None:
    raise error


def streams_to(heard: list[bytes]) -> tcp.Streams:
    return tcp.Streams(Address("127.0.0.1", 1), plain(), Drops(), heard.append, no_bug)


def test_a_frame_is_as_old_as_its_first_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """More bytes of an unfinished frame make it no younger; the next frame of a member is a new one."""
    monkeypatch.setattr(tcp, "UNFINISHED_BYTES_MAX", 100_000)

    async def main() -> None:
        streams = streams_to([])
        old, young = Line(streams), Line(streams)
        old.say(HOARD[:50_000])
        young.say(HOARD[:49_000])
        old.say(HOARD[50_000:])
        assert (old.open, young.open) == (False, True)

        streams = streams_to([])
        busy, slow = Line(streams), Line(streams)
        busy.say(SMALL + SMALL[:-1])
        slow.say(SMALL + HOARD[:60_000])
        busy.say(SMALL[-1:] + HOARD[:60_000])
        assert (busy.open, slow.open) == (True, False)

    run(main())


def test_as_many_go_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest may hold next to nothing: the limit holds after every piece all the same."""
    monkeypatch.setattr(tcp, "UNFINISHED_BYTES_MAX", 100_000)

    async def main() -> None:
        streams = streams_to([])
        tiny = [Line(streams) for _ in range(10)]
        for line in tiny:
            line.say(HOARD[:5])
        first, second = Line(streams), Line(streams)
        first.say(HOARD)
        second.say(HOARD)
        assert not any(line.open for line in (*tiny, first))
        assert second.open
        assert (streams.unfinished, streams.drops) == (len(HOARD), {Drop.QUEUE_FULL: 11})

    run(main())


def test_the_oldest_goes_and_bytes_make_nobody_younger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eviction goes by the last frame that opened. A newcomer in a house full of members gets its chance to show a key."""
    monkeypatch.setattr(tcp, "INCOMING_MAX", 3)

    async def main() -> None:
        streams = streams_to([])
        dripping, silent, newest = (Line(streams) for _ in range(3))
        dripping.say(HOARD[:10])
        last = Line(streams)
        assert [line.open for line in (dripping, silent, newest, last)] == [False, True, True, True]

        streams = streams_to([])
        members = [Line(streams) for _ in range(2)]
        for line in (*members, members[0]):
            line.say(SMALL)
        newcomer, next_one = Line(streams), Line(streams)
        assert [line.open for line in (*members, newcomer, next_one)] == [True, False, True, True]

    run(main())


def test_a_member_that_speaks_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every frame that opens begins the idle time anew."""
    monkeypatch.setattr(tcp, "INCOMING_IDLE_TIMEOUT", 0.5)

    async def main() -> None:
        streams = streams_to([])
        line, loop = Line(streams), asyncio.get_running_loop()
        began_at = loop.time()
        while loop.time() < began_at + 2 * tcp.INCOMING_IDLE_TIMEOUT:
            await asyncio.sleep(0.01)
        line.say(SMALL)
        streams._on_sweep()
        assert line.open
        streams.abort()

    run(main())
