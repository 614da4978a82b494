"""The node that `datagrams` measures: one machine that answers every question, on our sockets and on asyncio's own transport.

Both do the same work with the same code: open, decode, route, handle, encode, seal. Only what reads and writes differs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from resource import RUSAGE_SELF, getrusage
from time import process_time
from typing import Any, NamedTuple, Protocol

from holdfast.disk.journal import Volatile
from holdfast.drops import Rejected
from holdfast.events import Event
from holdfast.host import Address, Host, Message, NodeId, Storage
from holdfast.net.clock import now, wall
from holdfast.net.host import NetHost
from holdfast.node import Node
from holdfast.wire import Codec, Key, Keyring, Plain, Sealed, Sealer

GROUP = "benchmark"
LOOPBACK = Address("127.0.0.1", 0)


class Question(Message, frozen=True, tag=242):
    """What a busy node hears all day: two numbers and a few bytes."""

    number: int
    sent_at: float
    note: bytes


class Answer(Message, frozen=True, tag=243):
    """The same, back."""

    number: int
    sent_at: float
    note: bytes


class Cost(NamedTuple):
    """What some messages took of this process."""

    seconds: float  # CPU
    faults: int  # pages that were not there: the trace of memory that comes and goes with every read

    @classmethod
    def so_far(cls) -> Cost:
        return cls(process_time(), getrusage(RUSAGE_SELF).ru_minflt)

    def since(self, earlier: Cost) -> Cost:
        return Cost(self.seconds - earlier.seconds, self.faults - earlier.faults)


class NodeHost(Host, Protocol):
    """A host that shows its node."""

    node: Node


class Echo:
    """Answers, and looks at the clock twice: when the first messages are through, and at the last one."""

    handles = (Question,)
    fingerprint = b""

    def __init__(self, host: NodeHost) -> None:
        self.host = host
        self._left = 0
        self._counted = 0
        self._began = Cost(0.0, 0)
        self._done: Callable[[Cost], None] = lambda _: None

    def expect(self, warm: int, counted: int, done: Callable[[Cost], None]) -> None:
        """Call ``done`` with what ``counted`` messages took, after ``warm`` others."""
        self._left, self._counted, self._done = warm + counted, counted, done

    def start(self) -> None:
        """Nothing to begin."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Question)
        self.host.send(source, Answer(message.number, message.sent_at, message.note))
        self._left -= 1
        if self._left == self._counted:
            self._began = Cost.so_far()
        elif self._left == 0:
            self._done(Cost.so_far().since(self._began))

    def on_away(self, seconds: float) -> None:
        """Nothing depends on time here."""

    def stop(self) -> None:
        """Nothing to hand over."""


class StockHost(asyncio.DatagramProtocol):
    """A host as one writes it on ``create_datagram_endpoint``: same node, same wire, asyncio's transport. No timers: none are needed."""

    def __init__(self, me: NodeId, sealer: Sealer) -> None:
        self.me = me
        self.address = LOOPBACK
        self.random = Random(0)
        self.storage: Storage = Volatile()
        self.late = 0.0
        self.node = Node(self, self._transmit)
        self.send = self.node.send
        self.meet = self.node.meet
        self._sealer = sealer
        self._codec: Codec | None = None
        self._transport: asyncio.DatagramTransport | None = None

    @property
    def now(self) -> float:
        return now()

    def wall(self) -> float:
        return wall()

    def at(self, due: float, callback: Callable[[], None]) -> Any:
        raise NotImplementedError

    def after(self, delay: float, callback: Callable[[], None]) -> Any:
        raise NotImplementedError

    def emit(self, event: Event) -> None:
        """There is no listener."""

    async def open(self) -> None:
        self._codec = Codec(self.node.types)
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, local_addr=LOOPBACK)
        self.node.start()

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport
        self.address = Address(*transport.get_extra_info("sockname"))

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert self._codec is not None
        try:
            envelope = self._codec.decode(self._sealer.open(data))
        except Rejected as rejected:
            self.node.drops[rejected.why] += 1
            return
        self.node.receive(Address(*addr), envelope.sender, envelope.to_life, envelope.fingerprint, envelope.message)

    def _transmit(self, address: Address, boot: int, fingerprint: bytes, message: Message) -> None:
        assert self._codec is not None
        assert self._transport is not None
        self._transport.sendto(self._sealer.seal(self._codec.encode(self.me, boot, fingerprint, message)), address)


async def open_ours(me: NodeId, sealer: Sealer) -> Echo:
    host = await NetHost.open(me, LOOPBACK, sealer)
    echo = Echo(host)
    host.node.add(echo)
    host.start()
    return echo


async def open_stock(me: NodeId, sealer: Sealer) -> Echo:
    host = StockHost(me, sealer)
    echo = Echo(host)
    host.node.add(echo)
    await host.open()
    return echo


def sealer_for(key: str) -> Sealer:
    """Sealed with a key (hexadecimal), plain without."""
    return Sealed(GROUP, Keyring(Key(bytes.fromhex(key)))) if key else Plain(GROUP)
