"""A tiny machine for real sockets: it greets, answers, counts and writes down the order in which things happened to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar

from holdfast.host import Address, Host, Message, NodeId
from holdfast.net.host import NetHost
from holdfast.node import life_of
from holdfast.wire.codec import Codec
from holdfast.wire.keys import Key, Keyring
from holdfast.wire.seal import Channel, Plain, Sealed, Sealer

GROUP = "tests"
KEY = Key(b"k" * 32)


class Ping(Message, frozen=True, tag=240):
    """Are you there? May be sent to an address."""

    greeting: ClassVar[bool] = True
    serial: int


class Pong(Message, frozen=True, tag=241):
    """Here I am."""

    serial: int


class Blob(Message, frozen=True, tag=242):
    """Something of any size."""

    data: bytes


class Talker:
    """Answers every Ping with a Pong, and keeps a diary."""

    handles: Sequence[type[Message]] = (Ping, Pong, Blob)

    def __init__(self, host: Host) -> None:
        self.host = host
        self.fingerprint = b""
        self.heard: list[tuple[NodeId, Message]] = []
        self.diary: list[tuple[str, float]] = []  # what happened, and a number that says more
        self.on_heard: Callable[[Message], None] = lambda message: None

    def start(self) -> None:
        self.diary.append(("start", 0.0))

    def stop(self) -> None:
        self.diary.append(("stop", 0.0))

    def on_away(self, seconds: float) -> None:
        self.diary.append(("away", seconds))

    def on_message(self, source: NodeId, message: Message) -> None:
        self.heard.append((source, message))
        self.diary.append((type(message).__name__, self.host.late))
        self.on_heard(message)
        if isinstance(message, Ping):
            self.host.send(source, Pong(message.serial))

    def ping(self, to: NodeId | Address, serial: int = 0) -> None:
        self.host.send(to, Ping(serial))

    def write_down(self, what: str) -> None:
        """As a timer callback: note how late it is."""
        self.diary.append((what, self.host.late))

    def names(self, kind: type[Message]) -> list[str]:
        """Whom a kind of message came from, in order."""
        return [source.name for source, message in self.heard if isinstance(message, kind)]


def sealed(key: Key = KEY, group: str = GROUP) -> Sealed:
    return Sealed(group, Keyring(key))


def plain() -> Plain:
    return Plain(GROUP)


async def talker(
    name: str, sealer: Sealer | None = None, *, boot: int = 1, host: str = "127.0.0.1", port: int = 0
) -> tuple[NetHost, Talker]:
    """One host with one Talker, running."""
    opened = await NetHost.open(NodeId(name, boot), Address(host, port), sealer or plain(), seed=1)
    machine = Talker(opened)
    opened.node.add(machine)
    opened.start()
    return opened, machine


def envelope(sender: NodeId, to: NodeId, message: Message, channel: Channel = Channel.DATAGRAM) -> bytes:
    """Plain bytes as a peer would send them, for tests that have a socket and no host at the far end."""
    return plain().seal(Codec(Talker.handles).encode(sender, life_of(to), b"", message), channel)


class FakeClock:
    """A clock that stands still until a test moves it: a pause takes no time to test."""

    def __init__(self) -> None:
        self.reading = 1000.0

    def __call__(self) -> float:
        return self.reading


def port_of(host: NetHost) -> tuple[str, int]:
    return (host.bound.host, host.bound.port)


async def connect(host: NetHost) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A stream to a host, without a host at this end."""
    return await asyncio.open_connection(*port_of(host))


async def closed_by_peer(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), 30) == b""
    except ConnectionResetError:
        return True
