"""The lab's network: delay, loss, duplication, cuts, partitions, multi-hop paths, and a count of all that was sent.

Two roads. In calm (one kind of link, nothing cut, nobody listening in) a message costs one draw and one push.
Everything else takes the long road through ``Network.carry``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING, Any

from holdfast.host import Address, Message, NodeId
from holdfast.lab.agenda import Push
from holdfast.lab.links import Link
from holdfast.lab.topology import Topology

if TYPE_CHECKING:
    from holdfast.lab.host import Packet
    from holdfast.lab.trace import Trace
    from holdfast.lab.world import Clock
    from holdfast.node import Node

PORT = 7946  # every lab address has it; the host part is the node's name
SOCKET_PACKETS_MAX = 8192  # what a stopped process's socket keeps: the oldest (F10)

Receive = Callable[..., None]
Filter = Callable[[str, str, Message], bool]  # True: this message is lost


class Endpoint:
    """One address. Lives come and go behind it; ``receive`` always does what is right for the present one."""

    __slots__ = ("_held", "_network", "_node", "address", "me", "name", "receive", "sent", "sent_bytes", "up")

    def __init__(self, network: Network, name: str) -> None:
        self._network = network
        self.name = name
        self.address = Address(name, PORT)
        self.me = NodeId(name, 0)
        self.up = False
        self.receive: Receive = self._lose
        self.sent: dict[type[Message], int] = defaultdict(int)
        self.sent_bytes: dict[type[Message], int] = defaultdict(int)  # only where the network measures sizes
        self._held: list[Packet] = []
        self._node: Node | None = None

    def open(self, node: Node) -> None:
        self.me, self.up, self.receive, self._node = node.me, True, node.receive, node
        self.refresh()

    def close(self) -> None:
        self.up, self.receive, self._node = False, self._lose, None
        self._held = []

    def hold(self) -> None:
        self.receive = self._keep

    def release(self, node: Node) -> list[Packet]:
        self.receive = node.receive
        held, self._held = self._held, []
        return held

    def long_road(self, address: Address, boot: int, fingerprint: bytes, message: Message) -> None:
        """Everything that can happen to a message."""
        self.sent[type(message)] += 1
        self._network.carry(self, address, boot, fingerprint, message)

    def short_road(self, address: Address, boot: int, fingerprint: bytes, message: Message) -> None:
        """In calm. A method and not a closure per node, because the interpreter's call cache knows functions, not closures."""
        network = self._network
        self.sent[type(message)] += 1
        if network.loss and network.chance() < network.loss:
            return
        target = network.endpoints.get(address)
        if target is not None:
            network.push((network.clock.now + network.draw(), target, (self.address, self.me, boot, fingerprint, message)))

    def refresh(self) -> None:
        """The network went from calm to trouble or back: give the node the right road."""
        if self._node is not None:
            self._node.transmit = self.short_road if self._network.calm else self.long_road

    def _keep(self, *packet: object) -> None:
        if len(self._held) < SOCKET_PACKETS_MAX:
            self._held.append(packet)

    def _lose(self, *packet: object) -> None:
        """Nobody listens here."""


class Network:
    """All links of one world."""

    def __init__(self, random: Random, clock: Clock, push: Push, link: Link) -> None:
        self.clock, self.push = clock, push
        self.chance = random.random
        self.endpoints: dict[Address, Endpoint] = {}
        self.topology: Topology | None = None
        self.trace: Trace | None = None
        self.measure: Callable[[NodeId, int, bytes, Message], int] | None = None  # size in bytes, if sizes are wanted
        self.through: Callable[[Endpoint, Endpoint, Packet], tuple[Any, Packet]] | None = None  # the real wire, see lab/wire.py
        self._random = random
        self._link = link
        self._weather: dict[object, Link] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._cuts: dict[object, Callable[[str, str], bool]] = {}
        self._filters: list[Filter] = []
        self._draws: dict[Link, Callable[[], float]] = {}
        self._refresh()

    @property
    def disturbed(self) -> bool:
        """A fault lies over some links now: a cut, a spell of weather, a hand-made rule."""
        return bool(self._cuts or self._weather or self._filters)

    def endpoint(self, name: str) -> Endpoint:
        address = Address(name, PORT)
        if address not in self.endpoints:
            self.endpoints[address] = Endpoint(self, name)
        return self.endpoints[address]

    def set_link(self, link: Link, source: str | None = None, target: str | None = None) -> None:
        """For one direction, or for all links that have no setting of their own."""
        if source is None or target is None:
            self._link = link
        else:
            self._links[source, target] = link
        self._refresh()

    def set_weather(self, key: object, link: Link | None) -> None:
        """A spell that lies over all links without a setting of their own; the latest one counts, None ends it."""
        self._weather.pop(key, None)
        if link is not None:
            self._weather[key] = link
        self._refresh()

    def cut(self, key: object, source: Iterable[str], target: Iterable[str]) -> None:
        """Nothing from any of ``source`` reaches any of ``target`` until ``heal(key)``."""
        sources, targets = frozenset(source), frozenset(target)
        self._cuts[key] = lambda a, b: a in sources and b in targets
        self._refresh()

    def partition(self, key: object, sides: Iterable[Iterable[str]]) -> None:
        """Nothing passes between sides; whoever is named nowhere reaches everybody."""
        side_of = {name: number for number, side in enumerate(sides) for name in side}
        self._cuts[key] = lambda a, b: a in side_of and b in side_of and side_of[a] != side_of[b]
        self._refresh()

    def heal(self, key: object | None = None) -> None:
        """End one cut, or all."""
        if key is None:
            self._cuts.clear()
        else:
            self._cuts.pop(key, None)
        self._refresh()

    def clear(self) -> None:
        """End everything that a fault brought."""
        self._weather.clear()
        self._filters.clear()
        self.heal()

    def lose_if(self, lost: Filter) -> None:
        """A hand-made rule, for directed schedules."""
        self._filters.append(lost)
        self._refresh()

    def watch(self) -> None:
        """Leave the short road: somebody traces, measures or sends through the wire."""
        self._refresh()

    def carry(self, source: Endpoint, address: Address, boot: int, fingerprint: bytes, message: Message) -> None:
        if self.measure is not None:
            source.sent_bytes[type(message)] += self.measure(source.me, boot, fingerprint, message)
        target = self.endpoints.get(address)
        if target is None:
            self._lost(source.name, address.host, message, "no such address")
            return
        link = self._links.get((source.name, target.name)) or (next(reversed(self._weather.values())) if self._weather else self._link)
        delay, why = self._cross(source.name, target.name, link, message)
        if why:
            self._lost(source.name, target.name, message, why)
            return
        end: Any = target
        packet: Packet = (source.address, source.me, boot, fingerprint, message)
        if self.through is not None:
            end, packet = self.through(source, target, packet)
        self._push(delay, end, packet)
        if link.duplicate and self.chance() < link.duplicate:
            self._push(self._delay(link), end, packet)

    def _cross(self, source: str, target: str, link: Link, message: Message) -> tuple[float, str]:
        """The time a message takes, or why it is lost."""
        if any(cut(source, target) for cut in self._cuts.values()):
            return 0.0, "cut"
        if any(lost(source, target, message) for lost in self._filters):
            return 0.0, "dropped by the script"
        if self.topology is None:
            return self._delay(link), "lost" if link.loss and self.chance() < link.loss else ""
        path = self.topology.path(source, target)
        if path is None:
            return 0.0, "no path"
        delay = 0.0
        for hop in path:
            delay += self._delay(link)
            if link.loss and self.chance() < link.loss:
                return 0.0, f"lost before {hop}"
            if hop != target and not self.endpoints[Address(hop, PORT)].up:
                return 0.0, f"relay {hop} is down"
        return delay, ""

    def _push(self, delay: float, target: Any, packet: Packet) -> None:
        self.push((self.clock.now + delay, target, packet))

    def _delay(self, link: Link) -> float:
        draw = self._draws.get(link)
        if draw is None:
            draw = self._draws[link] = link.delay.draw(self._random)
        delay = draw()
        if link.tail and self.chance() < link.tail:
            delay += link.tail_seconds * self.chance()
        return delay

    def _lost(self, source: str, target: str, message: Message, why: str) -> None:
        if self.trace is not None:
            self.trace.record(self.clock.now, "{} -x {}  {}  ({})", source, target, message, why)

    def _refresh(self) -> None:
        link = self._link
        special = self._links or self._weather or self._cuts or self._filters or self.topology or self.trace or self.measure or self.through
        self.calm = not special and not link.duplicate and not link.tail
        self.loss = link.loss
        self.draw = link.delay.draw(self._random)
        for endpoint in self.endpoints.values():
            endpoint.refresh()
