"""Streams: as a whole or not at all, bounded everywhere, rubbish costs its connection.  Spec: foundation 3 (Host.send)."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

import pytest

from holdfast.drops import Drop
from holdfast.host import MESSAGE_BYTES_MAX, Address, NodeId
from holdfast.net import incoming, tcp
from holdfast.net.host import NetHost
from holdfast.wire.frame import frame
from holdfast.wire.seal import Channel
from tests.net.machines import Blob, Ping, Talker, closed_by_peer, connect, envelope, plain, sealed, talker
from tests.support.realtime import eventually, run

BIG = Blob(b"x" * 50_000)


async def pair() -> tuple[NetHost, Talker, NetHost, Talker]:
    a, of_a = await talker("a")
    b, of_b = await talker("b")
    a.meet(b.me, b.address)
    return a, of_a, b, of_b


@pytest.mark.parametrize(
    "data, why",
    [
        (frame(b"rubbish"), Drop.UNKNOWN_VERSION),
        (frame(b""), Drop.TRUNCATED),
        (struct.pack(">I", MESSAGE_BYTES_MAX + 1), Drop.OVERSIZED),
        (b"GET / HTTP/1.1\r\n\r\n", Drop.OVERSIZED),
        (frame(plain().seal(b"")), Drop.PLAINTEXT),
        (frame(sealed().seal(b"payload", Channel.DATAGRAM)), Drop.FORGED),
    ],
    ids=["rubbish", "empty", "oversized", "http", "plaintext", "a datagram"],
)
def test_rubbish_costs_the_connection_and_a_counter(data: bytes, why: Drop) -> None:
    """Everything a peer can get wrong is dropped and counted under its own name; the next connection is served."""

    async def main() -> None:
        host, machine = await talker("a", sealed())
        reader, writer = await connect(host)
        writer.write(data)
        assert await closed_by_peer(reader)
        assert host.drops == {why: 1}
        writer.close()
        b, _ = await talker("b", sealed())
        b.meet(host.me, host.address)
        b.send(host.me, BIG)
        await eventually(lambda: machine.heard == [(b.me, BIG)])
        await b.close()
        await host.close()

    run(main())


def test_a_message_nobody_here_knows_does_not_cost_the_connection() -> None:
    """Messages grow and new ones come: a newer peer is no attacker, its other messages are heard."""

    async def main() -> None:
        host, machine = await talker("a", boot=4)
        _, writer = await connect(host)
        unknown = plain().seal(b"\x94\x92\xa1p\x07\x04\xc4\x00\x91\xcd\x03\xe7")  # [["p", 7], 4, b"", [999]]
        writer.write(frame(unknown) + frame(envelope(NodeId("p", 7), NodeId("a", 4), Blob(b"known"))))
        await eventually(lambda: machine.heard == [(NodeId("p", 7), Blob(b"known"))])
        assert host.drops == {Drop.UNKNOWN_TAG: 1}
        writer.close()
        await host.close()

    run(main())


def test_a_frame_that_ends_early_did_not_arrive() -> None:
    """As a whole or not at all."""

    async def main() -> None:
        host, machine = await talker("a", boot=4)
        _, writer = await connect(host)
        whole = frame(envelope(NodeId("p", 7), NodeId("a", 4), BIG, Channel.STREAM))
        writer.write(whole + whole[:-1])
        writer.close()
        await eventually(lambda: host.drops[Drop.TRUNCATED])
        await eventually(lambda: machine.heard)
        assert machine.heard == [(NodeId("p", 7), BIG)]
        assert host.streams.unfinished == 0
        await host.close()

    run(main())


def test_a_frame_may_arrive_in_any_pieces() -> None:
    """A stream has no borders of its own."""

    async def main() -> None:
        host, machine = await talker("a", boot=4)
        _, writer = await connect(host)
        for byte in frame(envelope(NodeId("p", 7), NodeId("a", 4), Blob(b"slow"))):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        await eventually(lambda: machine.heard == [(NodeId("p", 7), Blob(b"slow"))])
        writer.close()
        await host.close()

    run(main())


def test_a_stream_comes_in_turns_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """F10: a share of messages, then due timers; the inbox between socket and turn is bounded and counted."""
    monkeypatch.setattr(incoming, "INBOX_MAX", 100)

    async def main() -> None:
        host, machine = await talker("a", boot=4)
        _, writer = await connect(host)
        writer.write(frame(envelope(NodeId("p", 7), NodeId("a", 4), Blob(b"1"))) * 1000)
        await eventually(lambda: host.drops[Drop.QUEUE_FULL] and len(machine.heard) + host.drops[Drop.QUEUE_FULL] == 1000)
        assert len(machine.heard) >= 100
        writer.close()
        await host.close()

    run(main())


def test_a_stream_is_heard_for_as_long_as_it_is_read() -> None:
    """The inbox bounds what waits, not what ever came: more than its bytes in total arrive, one after the other."""

    async def main() -> None:
        a, _, b, of_b = await pair()
        large = Blob(b"x" * 900_000)
        messages = incoming.INBOX_BYTES_MAX // len(large.data) + 2
        for count in range(1, messages + 1):
            a.send(b.me, large)
            await eventually(lambda count=count: len(of_b.heard) == count)  # type: ignore[misc]
        assert (a.drops, b.drops) == ({}, {})
        await a.close()
        await b.close()

    run(main())


def test_nobody_there_is_counted() -> None:
    """A peer that cannot be connected to costs what was queued for it, and no more."""

    async def main() -> None:
        a, _ = await talker("a")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            nobody = Address("127.0.0.1", taken.getsockname()[1])
            a.meet(NodeId("n", 1), nobody)
            a.send(NodeId("n", 1), BIG)
            a.send(NodeId("n", 1), BIG)
            await eventually(lambda: a.drops[Drop.UNREACHABLE] == 2)
        assert a.streams._outgoing == {}
        await a.close()

    run(main())


def test_a_peer_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connecting has an end: a black hole is counted as unreachable."""
    monkeypatch.setattr(tcp, "CONNECT_TIMEOUT", 0.05)

    async def never(*_: object, **__: object) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(asyncio, "open_connection", never)

    async def main() -> None:
        a, _, b, _ = await pair()
        a.send(b.me, BIG)
        await eventually(lambda: a.drops[Drop.UNREACHABLE] == 1)
        await a.close()
        await b.close()

    run(main())


@pytest.mark.parametrize("unchecked", [False, True])
@pytest.mark.parametrize("scope", ["a" * 80, "a..b", "\ud800", "nosuch0"])
def test_text_that_is_no_scope_is_counted(monkeypatch: pytest.MonkeyPatch, scope: str, unchecked: bool) -> None:
    """Nothing in a host raises for an address somebody told it, also if our own idea of a literal lets too much pass."""
    if unchecked:
        monkeypatch.setattr(tcp, "literal", str)

    async def main() -> None:
        a, _ = await talker("a", host="::1")
        a.meet(NodeId("n", 1), Address(f"fe80::1%{scope}", 7))
        a.send(NodeId("n", 1), BIG)
        await eventually(lambda: a.drops[Drop.UNREACHABLE] == 1)
        assert not a.failed.done()
        await a.close()

    run(main())


@pytest.mark.parametrize("to", ["example.org", "localhost", "fe80::1%nosuch0", "::1", "127.0.0.1"])
def test_no_word_of_a_peer_becomes_a_question_to_the_dns(monkeypatch: pytest.MonkeyPatch, to: str) -> None:
    """Send never looks up a name: whatever a peer gives as its address, the resolver is asked to read numbers at most."""
    asked, ask = list[int](), socket.getaddrinfo

    def spy(host: str, port: int, family: int, kind: int, protocol: int, flags: int) -> object:
        asked.append(flags)
        return ask(host, port, family, kind, protocol, flags)

    async def main() -> None:
        a, _ = await talker("a", host="::1")
        monkeypatch.setattr(socket, "getaddrinfo", spy)
        a.meet(NodeId("n", 1), Address(to, 7))
        a.send(NodeId("n", 1), Ping(1))
        a.send(NodeId("n", 1), BIG)
        await eventually(lambda: a.drops[Drop.UNREACHABLE] >= 1 and not a.streams._outgoing)
        assert all(flags & socket.AI_NUMERICHOST for flags in asked)
        await a.close()

    run(main())


@pytest.mark.parametrize("size", [900_000, 60_000], ids=["large", "below asyncio's own buffer"])
def test_a_frame_that_was_not_taken_is_counted(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """What goes wrong is a counter: also for the one message that was on its way when its peer stopped reading."""
    monkeypatch.setattr(tcp, "WRITE_TIMEOUT", 0.05)
    connect_as_ever = asyncio.open_connection

    async def narrow(*args: Any, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await connect_as_ever(*args, **options)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return reader, writer

    monkeypatch.setattr(asyncio, "open_connection", narrow)

    async def main() -> None:
        a, _ = await talker("a")
        with socket.socket() as deaf:  # It listens and never reads, and the kernel holds little for it.
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.bind(("127.0.0.1", 0))
            deaf.listen()
            a.meet(NodeId("d", 1), Address(*deaf.getsockname()))
            a.send(NodeId("d", 1), Blob(b"x" * size))
            await eventually(lambda: not a.streams._outgoing)
            assert a.drops == {Drop.UNREACHABLE: 1}
            await a.close()

    run(main())


@pytest.mark.parametrize("limit", ["messages", "bytes"])
def test_a_slow_peer_fills_its_own_queue_only(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """Queues per peer are bounded, the overflow is dropped and counted; nobody else waits for a slow one."""
    if limit == "messages":
        monkeypatch.setattr(tcp, "QUEUE_MESSAGES_MAX", 4)
    else:
        monkeypatch.setattr(tcp, "QUEUE_BYTES_MAX", 2_000_000)

    async def main() -> None:
        a, _, b, of_b = await pair()
        with socket.socket() as slow:  # It listens and never reads, so TCP's own buffers fill up too.
            slow.bind(("127.0.0.1", 0))
            slow.listen()
            a.meet(NodeId("s", 1), Address(*slow.getsockname()))
            for _ in range(30):
                a.send(NodeId("s", 1), Blob(b"x" * 900_000))
                await asyncio.sleep(0)
            assert a.drops[Drop.QUEUE_FULL] > 15
            a.send(b.me, BIG)
            await eventually(lambda: of_b.heard)
            await a.close()
        await b.close()

    run(main())


def test_peers_with_open_streams_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table has a limit: large messages to more peers at once are dropped and counted."""
    monkeypatch.setattr(tcp, "OUTGOING_MAX", 1)

    async def main() -> None:
        a, _, b, of_b = await pair()
        c, of_c = await talker("c")
        a.meet(c.me, c.address)
        a.send(b.me, BIG)
        a.send(c.me, BIG)
        assert a.drops == {Drop.QUEUE_FULL: 1}
        await eventually(lambda: of_b.heard)
        assert of_c.heard == []
        for host in (a, b, c):
            await host.close()

    run(main())


def test_an_idle_stream_closes_and_opens_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is kept while it is used, no longer."""
    monkeypatch.setattr(tcp, "OUTGOING_IDLE_TIMEOUT", 0.02)

    async def main() -> None:
        a, _, b, of_b = await pair()
        for count in (1, 2):
            a.send(b.me, BIG)
            await eventually(lambda count=count: len(of_b.heard) == count)  # type: ignore[misc]
            await eventually(lambda: not a.streams._outgoing and not b.streams._incoming)
        assert (a.drops, b.drops) == ({}, {})
        await a.close()
        await b.close()

    run(main())


def test_a_silent_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever connects and says nothing does not stay."""
    monkeypatch.setattr(tcp, "INCOMING_IDLE_TIMEOUT", 0.05)

    async def main() -> None:
        host, _ = await talker("a")
        reader, writer = await connect(host)
        assert await closed_by_peer(reader)
        writer.close()
        await host.close()

    run(main())


def test_a_peer_that_came_back_gets_what_is_sent_to_it() -> None:
    """An idle connection whose far end restarted is opened anew before something is written into the void."""

    async def main() -> None:
        a, _, b, of_b = await pair()
        a.send(b.me, BIG)
        await eventually(lambda: of_b.heard)
        await b.close()
        b, of_b = await talker("b", boot=9, port=b.bound.port)
        await asyncio.sleep(0.05)  # until the loop has seen the old connection's end, which takes no time on loopback
        a.meet(b.me, b.address)
        a.send(b.me, BIG)
        await eventually(lambda: of_b.heard == [(a.me, BIG)])
        await a.close()
        await b.close()

    run(main())


def test_large_and_small_messages_do_not_disturb_each_other() -> None:
    """A queued frame is sealed when it leaves, so a thousand datagrams that overtake it do not make it look replayed."""

    async def main() -> None:
        a, _ = await talker("a", sealed())
        b, of_b = await talker("b", sealed())
        a.meet(b.me, b.address)
        for _ in range(20):
            a.send(b.me, Blob(b"x" * 300_000))
            for serial in range(100):
                a.send(b.me, Ping(serial))
            await asyncio.sleep(0)
        await eventually(lambda: of_b.names(Blob).count("a") + a.drops[Drop.QUEUE_FULL] == 20)
        assert b.drops[Drop.REPLAYED] == 0
        await a.close()
        await b.close()

    run(main())
