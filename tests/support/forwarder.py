"""A small internet on loopback: every datagram between two nodes passes a link that can lose, delay, double or cut it.

    async with Mesh(["a", "b"], seed=7) as mesh:
        host = await NetHost.open(NodeId("a", 1), mesh.bind("a"), sealer, advertise=mesh.address("a"))
        mesh.attach("a", host.bound)            # again after every restart: its port is new
        ...
        mesh.link("a", "b").loss = 0.2          # one direction: a's datagrams to b
        mesh.link("a", "b").delay = (0.01, 0.05)
        mesh.cut("a", "b")                      # one way; mesh.split(["a"], ["b", "c"]) both ways, for groups
        mesh.heal()                             # no cuts any more; loss, delay and duplication stay

Every node has one public address, ``mesh.address(name)``, the same for everybody: it can be configured, published and
gossiped. What arrives there is forwarded to the node behind it, *from the public address of its sender*. So the source
a receiver sees leads back to the sender, through the link of the other direction, and no path goes around the links.
Senders are told apart by their loopback address (Linux answers to all of 127/8), for TCP too, whose ports say nothing.

TCP passes while neither direction is cut and waits while one is, as its own repetition would have it. It is delayed, and never
loses anything. Decisions come from one Random per directed link, seeded by the mesh's seed and the two names.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from random import Random
from types import TracebackType

from holdfast.host import Address
from holdfast.net.bind import bind

Delay = float | tuple[float, float] | Callable[[Random], float]  # seconds: always so many, uniform between two, or drawn

DATAGRAM_BYTES = 65536
CHUNK_BYTES = 65536
NODES_MAX = 250  # one byte of a loopback address


class Link:
    """What happens from one node to another. Everything may be changed while it runs."""

    def __init__(self, random: Random) -> None:
        self.loss = 0.0
        self.duplication = 0.0
        self.delay: Delay = 0.0
        self.passed = 0  # datagrams, each copy counted
        self.lost = 0
        self._random = random
        self._open = asyncio.Event()
        self._open.set()

    @property
    def is_cut(self) -> bool:
        return not self._open.is_set()

    def cut(self) -> None:
        self._open.clear()

    def heal(self) -> None:
        self._open.set()

    async def passable(self) -> None:
        await self._open.wait()

    def draw(self) -> list[float]:
        """For one datagram: after how many seconds each copy of it arrives; none if it is lost."""
        if self.is_cut or self._random.random() < self.loss:
            self.lost += 1
            return []
        copies = 2 if self._random.random() < self.duplication else 1
        self.passed += copies
        return [self.draw_delay() for _ in range(copies)]

    def draw_delay(self) -> float:
        if callable(self.delay):
            return self.delay(self._random)
        if isinstance(self.delay, tuple):
            return self._random.uniform(*self.delay)
        return self.delay


class Mesh:
    """Links between all pairs of some nodes."""

    def __init__(self, names: Sequence[str], *, seed: int = 0) -> None:
        assert len(set(names)) == len(names) <= NODES_MAX
        self.names = tuple(names)
        self.strays = 0  # datagrams and connections from or to somebody who is not attached
        self._seed = seed
        self._links: dict[tuple[str, str], Link] = {}
        self._real: dict[str, Address] = {}
        self._public: dict[str, Public] = {}
        self._by_host = {self.bind(name).host: name for name in names}

    async def __aenter__(self) -> Mesh:
        for sender in self.names:
            self._public[sender] = await Public.open(self, sender, _loopback(2, self.names.index(sender)))
            for receiver in self.names:
                self._links[sender, receiver] = Link(Random(f"{self._seed}/{sender}->{receiver}"))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for public in self._public.values():
            await public.close()

    def bind(self, name: str) -> Address:
        """Where this node itself listens: an address of its own, any port."""
        return _loopback(1, self.names.index(name))

    def address(self, name: str) -> Address:
        """Where everybody reaches this node."""
        return self._public[name].address

    def attach(self, name: str, bound: Address) -> None:
        """This node listens there now; bound to ``bind(name)``, or it would not be told from the others."""
        assert bound.host == self.bind(name).host
        self._real[name] = bound

    def link(self, sender: str, receiver: str) -> Link:
        return self._links[sender, receiver]

    def cut(self, sender: str, receiver: str) -> None:
        """One way: nothing from this sender reaches this receiver."""
        self.link(sender, receiver).cut()

    def split(self, *groups: Iterable[str]) -> None:
        """Nothing passes between any two of these groups, in either direction."""
        sides = [list(group) for group in groups]
        for side in sides:
            for other in sides:
                if other is not side:
                    for sender in side:
                        for receiver in other:
                            self.cut(sender, receiver)

    def heal(self) -> None:
        for link in self._links.values():
            link.heal()

    def forward(self, data: bytes, source_host: str, receiver: str) -> None:
        """A datagram arrived at the public address of ``receiver``."""
        sender = self._by_host.get(source_host)
        if sender is None:
            self.strays += 1
            return
        loop = asyncio.get_running_loop()
        for delay in self.link(sender, receiver).draw():
            if delay > 0:
                loop.call_later(delay, self._pass_on, data, sender, receiver)
            else:
                self._pass_on(data, sender, receiver)

    def _pass_on(self, data: bytes, sender: str, receiver: str) -> None:
        real = self._real.get(receiver)  # looked up late: it may have restarted while this was on its way
        if real is None:
            self.strays += 1
            return
        self._public[sender].send(data, real)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, receiver: str) -> None:
        """A connection arrived at the public address of ``receiver``: carry it in both directions until one side ends."""
        sender = self._by_host.get(writer.get_extra_info("peername")[0])
        real = self._real.get(receiver)
        if sender is None or real is None:
            self.strays += 1
            return
        there, back = self.link(sender, receiver), self.link(receiver, sender)
        await there.passable()
        await back.passable()
        far_reader, far_writer = await asyncio.open_connection(real.host, real.port, local_addr=(self.address(sender).host, 0))
        pumps = {asyncio.create_task(_pump(reader, far_writer, there, back)), asyncio.create_task(_pump(far_reader, writer, back, there))}
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            far_writer.close()
            for pump in pumps:
                pump.cancel()
            await asyncio.wait(pumps)


class Public:
    """The public address of one node: a UDP and a TCP socket on one port."""

    def __init__(self, mesh: Mesh, name: str, udp: socket.socket, address: Address) -> None:
        self.address = address
        self._mesh = mesh
        self._name = name
        self._udp = udp
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, mesh: Mesh, name: str, where: Address) -> Public:
        bound = bind(where)
        public = cls(mesh, name, bound.udp, bound.address)
        asyncio.get_running_loop().add_reader(bound.udp, public._on_readable)
        public._server = await asyncio.start_server(public._on_connection, sock=bound.tcp)
        return public

    def send(self, data: bytes, to: Address) -> None:
        with suppress(OSError):  # Full or refused: a network would lose it too.
            self._udp.sendto(data, to)

    async def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._udp)
        self._udp.close()
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    def _on_readable(self) -> None:
        while True:
            try:
                data, source = self._udp.recvfrom(DATAGRAM_BYTES)
            except BlockingIOError:
                return
            except OSError:
                continue  # An ICMP answer to something passed on.
            self._mesh.forward(data, source[0], self._name)

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self._mesh.carry(reader, writer, self._name)
        finally:
            self._connections.discard(task)
            writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: Link, back: Link) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            await asyncio.sleep(link.draw_delay())
            await link.passable()
            await back.passable()
            writer.write(data)
            await writer.drain()


def _loopback(block: int, index: int) -> Address:
    return Address(f"127.0.{block}.{index + 1}", 0)


@contextmanager
def in_a_thread(names: Sequence[str], *, seed: int = 0) -> Iterator[tuple[Mesh, Callable[[Callable[[], None]], None]]]:
    """A mesh whose links work while the test waits, and how to call it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    mesh = Mesh(names, seed=seed)

    async def call(act: Callable[[], None]) -> None:
        act()

    try:
        asyncio.run_coroutine_threadsafe(mesh.__aenter__(), loop).result()
        yield mesh, lambda act: asyncio.run_coroutine_threadsafe(call(act), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(mesh.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def somewhere(mesh: Mesh, name: str) -> str:
    """A free port at the address by which the mesh knows this node."""
    host = mesh.bind(name).host
    with socket.socket() as each:
        each.bind((host, 0))
        return f"{host}:{each.getsockname()[1]}"
