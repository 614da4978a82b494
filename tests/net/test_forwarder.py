"""The forwarder that other tests stand on: it loses, delays, doubles and cuts what it is told to, and nothing else."""

from __future__ import annotations

import asyncio
from random import Random

from holdfast.drops import Drop
from holdfast.host import NodeId
from holdfast.net.host import NetHost
from tests.net.machines import Blob, Ping, Pong, Talker, sealed
from tests.support.forwarder import Link, Mesh
from tests.support.realtime import eventually, run


async def join(mesh: Mesh, name: str, boot: int = 1) -> tuple[NetHost, Talker]:
    host = await NetHost.open(NodeId(name, boot), mesh.bind(name), sealed(), advertise=mesh.address(name), seed=1)
    mesh.attach(name, host.bound)
    machine = Talker(host)
    host.node.add(machine)
    host.start()
    return host, machine


def test_the_source_leads_back_through_the_links() -> None:
    """Replies travel through the link of their own direction: what a receiver sees as source is the sender's public address."""

    async def main() -> None:
        async with Mesh(["a", "b"]) as mesh:
            a, of_a = await join(mesh, "a")
            b, _ = await join(mesh, "b")
            of_a.ping(mesh.address("b"))
            await eventually(lambda: of_a.names(Pong) == ["b"])
            assert b.node._addresses[a.me] == a.address == mesh.address("a")
            assert a.node._addresses[b.me] == b.address == mesh.address("b")
            # Greeting, greeting to the life; WrongLife, Pong.
            assert (mesh.link("a", "b").passed, mesh.link("b", "a").passed) == (2, 2)
            assert mesh.strays == 0
            await a.close()
            await b.close()

    run(main())


def test_a_cut_is_one_way_and_heals() -> None:
    """One-way cuts: the other direction goes on."""

    async def main() -> None:
        async with Mesh(["a", "b"]) as mesh:
            a, of_a = await join(mesh, "a")
            b, of_b = await join(mesh, "b")
            of_a.ping(mesh.address("b"))
            await eventually(lambda: of_a.names(Pong))
            mesh.cut("b", "a")
            a.send(b.me, Ping(1))
            await eventually(lambda: len(of_b.heard) == 2)
            await eventually(lambda: mesh.link("b", "a").lost == 1)
            assert len(of_a.heard) == 1
            mesh.heal()
            a.send(b.me, Ping(2))
            await eventually(lambda: len(of_a.heard) == 2)
            await a.close()
            await b.close()

    run(main())


def test_a_split_cuts_both_ways_between_groups_only() -> None:
    """A partition: nothing between the groups, everything inside them."""

    async def main() -> None:
        async with Mesh(["a", "b", "c"]) as mesh:
            mesh.split(["a"], ["b", "c"])
            cut = {(x, y) for x in "abc" for y in "abc" if mesh.link(x, y).is_cut}
            assert cut == {("a", "b"), ("a", "c"), ("b", "a"), ("c", "a")}

    run(main())


def test_streams_wait_while_a_direction_is_cut() -> None:
    """TCP is subject to cuts, repairs what was lost, and arrives from the sender's public address."""

    async def main() -> None:
        async with Mesh(["a", "b"]) as mesh:
            a, _ = await join(mesh, "a")
            b, of_b = await join(mesh, "b")
            a.meet(b.me, b.address)
            a.send(b.me, Blob(b"1" * 100_000))
            await eventually(lambda: len(of_b.heard) == 1)
            mesh.cut("b", "a")
            a.send(b.me, Blob(b"2" * 100_000))
            await asyncio.sleep(0.1)
            assert len(of_b.heard) == 1
            mesh.heal()
            await eventually(lambda: len(of_b.heard) == 2)
            await a.close()
            await b.close()

    run(main())


def test_a_restarted_node_is_found_at_its_public_address() -> None:
    """A restart changes the port behind the public address, not the public address."""

    async def main() -> None:
        async with Mesh(["a", "b"]) as mesh:
            a, of_a = await join(mesh, "a")
            b, _ = await join(mesh, "b")
            of_a.ping(mesh.address("b"))
            await eventually(lambda: of_a.names(Pong))
            await b.close()
            b, _ = await join(mesh, "b", boot=2)
            of_a.ping(mesh.address("b"))
            await eventually(lambda: (b.me, Pong(0)) in of_a.heard)
            await a.close()
            await b.close()

    run(main())


def test_doubled_datagrams_are_refused_by_the_seal() -> None:
    """Duplication happens on the wire: the seal counts the second copy as replayed."""

    async def main() -> None:
        async with Mesh(["a", "b"]) as mesh:
            a, of_a = await join(mesh, "a")
            b, of_b = await join(mesh, "b")
            mesh.link("a", "b").duplication = 1.0
            of_a.ping(mesh.address("b"))
            await eventually(lambda: of_a.names(Pong) and b.drops[Drop.REPLAYED] == 2)
            assert len(of_b.heard) == 1
            await a.close()
            await b.close()

    run(main())


def test_decisions_come_from_the_seed() -> None:
    """Loss, duplication and delay are drawn per link from a seeded Random, at the rates that were asked for."""

    async def drawn(seed: int) -> list[list[float]]:
        link = Link(Random(seed))
        link.loss, link.duplication, link.delay = 0.3, 0.2, (0.01, 0.02)
        return [link.draw() for _ in range(2000)]

    first, again, other = run(drawn(1)), run(drawn(1)), run(drawn(2))
    assert first == again != other
    # Three standard deviations of a binomial with n = 2000: 0.03 for p = 0.3, 0.03 for p = 0.7 * 0.2.
    assert abs(sum(not copies for copies in first) / 2000 - 0.3) < 0.03
    assert abs(sum(len(copies) == 2 for copies in first) / 2000 - 0.14) < 0.03
    assert all(0.01 <= delay <= 0.02 for copies in first for delay in copies)


def test_delays_pass_time_and_may_be_drawn_by_a_function() -> None:
    """A delay is a number, a range or any distribution; a later datagram may overtake an earlier one."""

    async def main() -> None:
        async with Mesh(["a", "b"]) as mesh:
            a, of_a = await join(mesh, "a")
            b, of_b = await join(mesh, "b")
            of_a.ping(mesh.address("b"))
            await eventually(lambda: of_a.names(Pong))
            delays = iter([0.2, 0.0])
            mesh.link("a", "b").delay = lambda random: next(delays)
            a.send(b.me, Pong(1))
            a.send(b.me, Pong(2))
            await eventually(lambda: len(of_b.heard) == 3)
            assert [m.serial for _, m in of_b.heard if isinstance(m, Pong)] == [2, 1]
            await a.close()
            await b.close()

    run(main())
