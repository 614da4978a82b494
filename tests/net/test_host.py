"""The real Host on real sockets: two nodes, seven nodes, lives, sizes, keys, bugs.  Spec: foundation 3 (Host), F3."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.disk.state_directory import State
from holdfast.drops import Drop
from holdfast.events import StorageFailed
from holdfast.host import FANOUT_MAX, MESSAGE_BYTES_MAX, Address, Message, NodeId
from holdfast.net.bind import bind
from holdfast.net.host import NetHost
from holdfast.node import life_of
from holdfast.wire.keys import Key
from holdfast.wire.seal import Sealer
from tests.net.machines import Blob, Ping, Pong, Talker, plain, sealed, talker
from tests.support.realtime import eventually, run

SEALERS = pytest.mark.parametrize("make", [plain, sealed], ids=["plain", "sealed"])


def new_uvloop() -> asyncio.AbstractEventLoop:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is optional and not installed")
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_uvloop], ids=["asyncio", "uvloop"])


@LOOPS
@SEALERS
@pytest.mark.parametrize("where", ["127.0.0.1", "::1"])
def test_two_hosts_talk(loop: Callable[[], asyncio.AbstractEventLoop], make: Callable[[], Sealer], where: str) -> None:
    """Host.send over datagrams and, for 100 KB, over the stream; sealed and plain, IPv4 and IPv6, with and without uvloop."""

    async def main() -> None:
        a, of_a = await talker("a", make(), host=where)
        b, of_b = await talker("b", make(), host=where)
        of_a.ping(b.address, serial=5)
        await eventually(lambda: of_a.heard)
        assert of_b.heard == [(a.me, Ping(5))]
        assert of_a.heard == [(b.me, Pong(5))]
        blob = Blob(bytes(range(256)) * 400)
        a.send(b.me, blob)
        await eventually(lambda: len(of_b.heard) == 2)
        assert of_b.heard[1] == (a.me, blob)
        # The far port of a stream says nothing: b still knows where a listens.
        b.send(a.me, Pong(6))
        await eventually(lambda: of_a.heard[1:] == [(b.me, Pong(6))])
        assert (a.drops, b.drops) == ({}, {Drop.UNBOUND: 1})
        await a.close()
        await b.close()
        assert (a.failed.result(), of_a.diary[-1]) == (None, ("stop", 0.0))

    run(main(), loop_factory=loop)


def test_seven_hosts_talk() -> None:
    """Several hosts live in one loop; every pair finds each other."""

    async def main() -> None:
        nodes = [await talker(f"n{i}", sealed()) for i in range(7)]
        for _, one in nodes:
            for host, other in nodes:
                if one is not other:
                    one.ping(host.address)
        everybody = {host.me.name for host, _ in nodes}
        for host, one in nodes:
            await eventually(lambda one=one, host=host: set(one.names(Pong)) == everybody - {host.me.name})  # type: ignore[misc]
        for host, _ in nodes:
            await host.close()

    run(main())


def test_a_greeting_is_acted_upon_only_by_the_life_it_names() -> None:
    """F3: to an address goes a greeting to whoever is there; the answer names the life, and the greeting is sent again to it."""

    async def main() -> None:
        a, of_a = await talker("a")
        b, of_b = await talker("b", boot=77)
        of_a.ping(b.address, serial=1)
        await eventually(lambda: of_a.names(Pong) == ["b"])
        assert b.drops == {Drop.UNBOUND: 1}
        of_a.ping(b.address, serial=2)
        await eventually(lambda: of_a.names(Pong) == ["b", "b"])
        assert b.drops == {Drop.UNBOUND: 1}, "the life behind the address is known by now"
        assert [message for _, message in of_b.heard] == [Ping(1), Ping(2)]
        await a.close()
        await b.close()

    run(main())


def test_a_restarted_peer_is_another_life() -> None:
    """F1, F3: what is meant for the former life is dropped and counted; the new one is learnt by its WrongLife."""

    async def main() -> None:
        a, of_a = await talker("a")
        b, _ = await talker("b", boot=10)
        of_a.ping(b.address, serial=1)
        await eventually(lambda: of_a.heard == [(NodeId("b", 10), Pong(1))])
        await b.close()
        b, of_b = await talker("b", boot=11, port=b.bound.port)
        a.send(NodeId("b", 10), Ping(2))
        await eventually(lambda: b.drops[Drop.WRONG_LIFE] == 1)
        assert of_b.heard == []
        of_a.ping(b.address, serial=3)
        await eventually(lambda: of_a.heard[1:] == [(NodeId("b", 11), Pong(3))])
        await a.close()
        await b.close()

    run(main())


@pytest.mark.parametrize(
    "theirs, why",
    [
        (lambda: sealed(Key(b"x" * 32)), Drop.WRONG_KEY),
        (lambda: sealed(group="others"), Drop.WRONG_GROUP),
        (plain, Drop.PLAINTEXT),
    ],
    ids=["key", "group", "plaintext"],
)
def test_a_stranger_is_counted_and_not_heard(theirs: Callable[[], Sealer], why: Drop) -> None:
    """Everything a peer can get wrong is dropped and counted under its own name, on datagrams and on streams."""

    async def main() -> None:
        a, of_a = await talker("a", theirs())
        b, of_b = await talker("b", sealed(), boot=2)
        of_a.ping(b.address)
        await eventually(lambda: b.drops[why] == 1)
        a.meet(b.me, b.address)
        a.send(b.me, Blob(b"x" * 5000))
        await eventually(lambda: b.drops[why] == 2)
        assert of_b.heard == []
        await a.close()
        await b.close()

    run(main())


@SEALERS
def test_sizes_decide_the_way(make: Callable[[], Sealer]) -> None:
    """Host.send: up to 1200 sealed bytes a datagram, up to 1 MiB the stream, more is dropped and counted."""

    async def main() -> None:
        a, _ = await talker("a", make())
        b, of_b = await talker("b", make())
        a.meet(b.me, b.address)
        around = a._codec.encode(a.me, life_of(b.me), b"", Blob(b"x" * 1000)) if a._codec else b""
        frame = len(around) - 1000 + a._sealer.overhead
        fits = 1200 - frame
        a.send(b.me, Blob(b"x" * fits))
        assert (a.datagrams.sent, len(a.streams._outgoing)) == (1, 0)
        a.send(b.me, Blob(b"x" * (fits + 1)))
        assert (a.datagrams.sent, len(a.streams._outgoing)) == (1, 1)
        largest = MESSAGE_BYTES_MAX - frame - 2  # the length of the bytes takes two bytes more
        a.send(b.me, Blob(b"x" * largest))
        assert a.drops == {}
        a.send(b.me, Blob(b"x" * (largest + 1)))
        assert a.drops == {Drop.TOO_LARGE: 1}
        await eventually(lambda: len(of_b.heard) == 3)
        assert sorted(len(m.data) for _, m in of_b.heard if isinstance(m, Blob)) == [fits, fits + 1, largest]
        await a.close()
        await b.close()

    run(main())


def test_a_handler_that_raises_stops_the_host() -> None:
    """A bug is fail-stop: sockets closed, timers dead, the exception in ``failed``; its peers see a crash."""

    async def main() -> None:
        a, of_a = await talker("a")
        b, of_b = await talker("b")

        def boom() -> None:
            raise ZeroDivisionError

        b.after(0.01, boom)
        b.after(0.01, lambda: of_b.write_down("after the bug"))
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(asyncio.shield(b.failed), 30)
        b.send(a.address, Ping(1))
        b.after(0.0, lambda: of_b.write_down("a timer of a dead host"))
        b.post(lambda: of_b.write_down("a post to a dead host"))
        taken = bind(b.bound)
        taken.udp.close()
        taken.tcp.close()
        await asyncio.sleep(0.05)
        assert [what for what, _ in of_b.diary] == ["start"], "not even stop: nobody knows what state it is in"
        assert (of_a.heard, b.drops) == ([], {})
        await b.close()
        await a.close()

    run(main())


class Raising(Talker):
    """Has a bug in one place."""

    def __init__(self, host: NetHost, where: str) -> None:
        super().__init__(host)
        setattr(self, where, self._boom)

    def _boom(self, *_: object) -> None:
        raise ZeroDivisionError


@pytest.mark.parametrize("where", ["start", "on_message", "stop"])
@pytest.mark.parametrize("size", [1, 5000])
def test_a_bug_anywhere_stops_the_host(where: str, size: int) -> None:
    """A bug is fail-stop wherever it is: in start, in stop, in what came as datagram or by stream."""

    async def main() -> None:
        b = await NetHost.open(NodeId("b", 1), Address("127.0.0.1", 0), plain())
        b.node.add(Raising(b, where))
        a, _ = await talker("a")
        b.start()
        a.meet(b.me, b.address)
        a.send(b.me, Blob(b"x" * size))
        if where == "stop":
            await b.close()
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(asyncio.shield(b.failed), 30)
        await b.close()
        await a.close()

    run(main())


def test_fan_out_is_counted_per_callback() -> None:
    """F17: no callback sends to more than 64 peers; each timer callback starts anew."""

    async def main() -> None:
        a, _ = await talker("a")

        def spray() -> None:
            for port in range(1, FANOUT_MAX + 11):
                a.send(Address("127.0.0.1", port), Ping(0))

        a.post(spray)
        await eventually(lambda: a.drops[Drop.FANOUT] == 10)
        a.after(0.0, spray)
        await eventually(lambda: a.drops[Drop.FANOUT] == 20)
        await a.close()

    run(main())


def test_the_journal_confirms_in_a_turn_and_its_failure_is_an_event(tmp_path: Path) -> None:
    """Storage on a real disk: completions reach the machine, StorageFailed reaches the user."""

    async def main() -> None:
        state, events = State.open(tmp_path / "state"), list[object]()
        host = await NetHost.open(NodeId("a", state.boot), Address("127.0.0.1", 0), plain(), storage=state.journal, on_event=events.append)
        of_a = Talker(host)
        host.node.add(of_a)
        host.start()
        host.storage.part("p").save("key", b"value", lambda: of_a.write_down("saved"))
        await eventually(lambda: ("saved", 0.0) in of_a.diary)
        assert state.journal.part("p").load() == {"key": b"value"}
        state.journal._fail("pulled out")
        await eventually(lambda: events)
        assert events == [StorageFailed("pulled out")]
        await host.close()
        state.close()

    run(main())


def test_chance_comes_from_the_seed() -> None:
    """Every random choice comes from a seed that can be printed; without one, hosts differ."""

    async def main() -> None:
        a, _ = await talker("a")
        b, _ = await talker("b")
        assert a.random.random() == b.random.random()
        c = await NetHost.open(NodeId("c", 1), Address("127.0.0.1", 0), plain())
        d = await NetHost.open(NodeId("d", 1), Address("127.0.0.1", 0), plain())
        assert c.seed != d.seed
        for host in (a, b, c, d):
            await host.close()

    run(main())


class Leaving(Talker):
    """Says goodbye when it is stopped, at length."""

    def stop(self) -> None:
        self.host.send(NodeId("b", 1), Pong(9))
        self.host.send(NodeId("b", 1), Blob(b"bye" * 10_000))


def test_what_is_said_in_stop_still_leaves() -> None:
    """Machines stop in good order: what they send then goes out, also by stream, before the sockets close."""

    async def main() -> None:
        b, of_b = await talker("b")
        a = await NetHost.open(NodeId("a", 1), Address("127.0.0.1", 0), plain())
        a.node.add(Leaving(a))
        a.start()
        a.meet(b.me, b.address)
        await a.close()
        await eventually(lambda: len(of_b.heard) == 2)
        kinds: list[type[Message]] = [type(message) for _, message in of_b.heard]
        assert set(kinds) == {Pong, Blob}
        await b.close()

    run(main())
