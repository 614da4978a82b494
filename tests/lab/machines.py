"""Small machines that make what the lab does visible, and worlds to put them in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from holdfast.events import Internal
from holdfast.host import Address, Host, Machine, Message, NodeId
from holdfast.lab.links import Fixed, Link
from holdfast.lab.network import PORT
from holdfast.lab.world import World


class Ping(Message, frozen=True, tag=200):
    """A numbered word; may be said to whoever is there."""

    greeting: ClassVar[bool] = True
    number: int


class Note(Message, frozen=True, tag=201):
    """Anything; only to a life that is known."""

    body: Any


class Noted(Internal, frozen=True):
    """A fact for the trace."""

    what: str


class Quiet:
    """Handles everything above, does nothing, and remembers what it was told and when."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.heard: list[tuple[float, NodeId, Message]] = []
        self.away: list[float] = []
        self.log: list[str] = []

    @property
    def handles(self) -> Sequence[type[Message]]:
        return (Ping, Note)

    @property
    def fingerprint(self) -> bytes:
        return b""

    def start(self) -> None:
        self.log.append("start")

    def on_message(self, source: NodeId, message: Message) -> None:
        self.heard.append((self.host.now, source, message))
        self.log.append(f"message {message.number if isinstance(message, Ping) else 'note'}")

    def on_away(self, seconds: float) -> None:
        self.away.append(seconds)
        self.log.append("away")

    def stop(self) -> None:
        self.log.append("stop")


class Caller(Quiet):
    """Calls ``on_start`` with itself when its life starts: a test's own few lines of protocol."""

    def __init__(self, host: Host, on_start: Callable[[Caller], None]) -> None:
        super().__init__(host)
        self._on_start = on_start

    def start(self) -> None:
        super().start()
        self._on_start(self)


def quiet(host: Host) -> Iterable[Machine]:
    return [Quiet(host)]


def quiet_world(seed: int, names: str, link: Link | None = None, **more: Any) -> World:
    """Members that do nothing by themselves and know each other's lives."""
    world = World(seed, quiet, names=names.split(), link=link or Link(Fixed(0.01)), **more)
    introduce(world)
    return world


def introduce(world: World) -> None:
    for host in world.alive:
        for other in world.alive:
            host.meet(other.me, other.address)


def machine(world: World, name: str) -> Quiet:
    return world.nodes[name].node.use(Quiet)


def say(world: World, source: str, target: str, number: int = 0) -> None:
    """One ping from one present life to another."""
    world.nodes[source].node.begin_turn()
    world.nodes[source].send(world.nodes[target].me, Ping(number))


def numbers(world: World, name: str) -> list[int]:
    """The pings that a member heard, in the order in which it heard them."""
    return [message.number for _, _, message in machine(world, name).heard if isinstance(message, Ping)]


def address(name: str) -> Address:
    return Address(name, PORT)
