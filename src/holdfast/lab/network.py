"""The lab's network: delay, loss, duplication, cuts, partitions, multi-hop paths, and a count of all that was sent.

Two roads. In calm (one kind of link, nothing cut, no listener) a message takes the short one: a ``Line`` between two
lives that have met costs a draw and a push. Everything else takes the long road through ``Network.carry``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.host import Address, Message, NodeId
from holdfast.lab.agenda import Clock, Push
from holdfast.lab.links import LOST, Link
from holdfast.lab.topology import Topology
from holdfast.node import Handler, life_of

if TYPE_CHECKING:
    from holdfast.lab.trace import Trace
    from holdfast.node import Node

PORT = 7946  # every lab address has it; the host part is the node's name
SOCKET_PACKETS_MAX = 8192  # what a stopped process's socket keeps: the oldest (F10)

BLOCK = 256  # fates drawn at once in calm

Packet = tuple[object, ...]  # what a node receives: its arguments
Receive = Callable[..., None]
Handlers = Mapping[type[Message], Handler]
CLOSED: Handlers = {}
Filter = Callable[[str, str, Message], bool]  # True: this message is lost
Through = Callable[["Endpoint", "Endpoint", "Packet"], tuple[Any, "Packet"] | None]  # None: the sender keeps it to itself


class Line:
    """From one life to another, in calm. What the receiving node once admitted from this life it admits again while both live
    (``Node.admits``), so its handlers are called without asking; when it stops or dies, messages go through its front door."""

    __slots__ = ("_admitted", "_digests", "_end", "_life", "_peer", "_source", "handlers", "name", "sender")

    def __init__(self, source: Endpoint, end: Endpoint, peer: NodeId, digests: Mapping[type[Message], bytes], admitted: Handlers) -> None:
        self.name = end.name
        self.sender = source.me
        self.handlers: Handlers = admitted
        self._source, self._end, self._digests, self._admitted = source, end, digests, admitted
        self._peer, self._life = peer, life_of(peer)

    def close(self) -> None:
        self.handlers = CLOSED

    def end(self) -> None:
        """One of the two lives is over. A node may forget it when it meets the next one, so from now on it is asked every time."""
        self.handlers = self._admitted = CLOSED
        self._source.lines.pop(self._peer, None)

    def reopen(self) -> None:
        self.handlers = self._admitted

    def deliver(self, message: Message) -> None:
        self._end.receive(self._source.address, self.sender, self._life, self._digests.get(type(message), b""), message)


class Endpoint:
    """One address. Lives come and go behind it; ``receive`` always does what is right for the present one."""

    __slots__ = ("_held", "_inbound", "_network", "address", "lines", "me", "name", "node", "receive", "sent", "sent_bytes")
    handlers: ClassVar[Handlers] = CLOSED  # what comes here other than by a line comes in an envelope

    def __init__(self, network: Network, name: str) -> None:
        self._network = network
        self.name = name
        self.address = Address(name, PORT)
        self.me = NodeId(name, 0)
        self.node: Node | None = None  # None: down
        self.receive: Receive = self._lose
        self.sent: dict[type[Message], int] = defaultdict(int)
        self.sent_bytes: dict[type[Message], int] = defaultdict(int)  # only where the network measures sizes
        self._held: list[Packet] = []
        self.lines: dict[NodeId | Address, Line] = {}  # of the present life, to others
        self._inbound: list[Line] = []

    @property
    def up(self) -> bool:
        return self.node is not None

    def open(self, node: Node) -> None:
        self.me, self.receive, self.node = node.me, node.receive, node

    def close(self) -> None:
        for line in [*self._inbound, *self.lines.values()]:
            line.end()
        self._inbound.clear()
        self.receive, self.node = self._lose, None
        self._held, self.lines = [], {}

    def hold(self) -> None:
        self.receive = self._keep
        for line in self._inbound:
            line.close()

    def release(self, node: Node) -> list[Packet]:
        self.receive = node.receive
        for line in self._inbound:
            line.reopen()
        held, self._held = self._held, []
        return held

    def deliver(self, packet: Packet) -> None:
        self.receive(*packet)

    def renew_lines(self) -> None:
        """The machines of the present life have changed: the next message to or from it finds out what is admitted now."""
        for line in [*self._inbound, *self.lines.values()]:
            line.end()
        self._inbound.clear()
        self.lines.clear()

    def void_lines(self) -> None:
        """The weather changed: the next message takes the long road, and what is under way arrives at the front door."""
        for line in self._inbound:
            line.close()
        self.lines.clear()
        self._inbound.clear()

    def line_to(self, peer: NodeId, address: Address | None, digests: Mapping[type[Message], bytes]) -> Line | None:
        """A line to this life, if the network is calm and it has met us; None: keep to the long road."""
        end = self._network.endpoints.get(address) if self._network.calm and address is not None else None
        if end is None or end.node is None or end.me != peer or end.receive != end.node.receive:
            return None
        admitted = end.node.admits(self.address, self.me, digests)
        if not admitted:
            return None
        line = Line(self, end, peer, digests, admitted)
        end._inbound.append(line)
        return line

    def transmit(self, address: Address, life: int, fingerprint: bytes, message: Message) -> None:
        """The long road: everything that can happen to a message."""
        self.sent[type(message)] += 1
        self._network.carry(self, address, life, fingerprint, message)

    def _keep(self, *packet: object) -> None:
        if len(self._held) < SOCKET_PACKETS_MAX:
            self._held.append(packet)

    def _lose(self, *packet: object) -> None:
        """There is no listener here."""


class Network:
    """All links of one world."""

    def __init__(self, seed: int, clock: Clock, push: Push, link: Link) -> None:
        self.clock, self.push = clock, push
        self.chance = Random(f"{seed}/network").random
        self._delays = Random(f"{seed}/delays")
        self.endpoints: dict[Address, Endpoint] = {}
        self.fates: list[float] = []  # on plain links: delays of the next messages, or LOST, drawn ahead, next one last
        self.topology: Topology | None = None
        self.trace: Trace | None = None
        self.measure: Callable[[NodeId, int, bytes, Message], int] | None = None  # size in bytes, if sizes are wanted
        self.through: Through | None = None  # the real wire, see lab/wire.py
        self._link = link
        self._weather: dict[object, Link] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._cuts: dict[object, Callable[[str, str], bool]] = {}
        self._filters: dict[object, Filter] = {}
        self._draws: dict[Link, Callable[[], float]] = {}
        self._drawn: Link | None = None  # the link of the last draw, which is mostly that of the next one
        self._draw: Callable[[], float] = float
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
        """Nothing passes between sides; a node that is named nowhere reaches all."""
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

    def lose_if(self, lost: Filter, key: object = None) -> None:
        """A rule about single messages, for directed schedules and for faults; ``let_pass(key)`` ends it."""
        self._filters[object() if key is None else key] = lost
        self._refresh()

    def let_pass(self, key: object) -> None:
        """End one rule."""
        self._filters.pop(key, None)
        self._refresh()

    def watch(self) -> None:
        """Leave the short road: the run is traced, measured or sent through the wire."""
        self._refresh()

    def carry(self, source: Endpoint, address: Address, life: int, fingerprint: bytes, message: Message) -> None:
        if self.measure is not None:
            source.sent_bytes[type(message)] += self.measure(source.me, life, fingerprint, message)
        target = self.endpoints.get(address)
        if target is None:
            self._lost(source.name, address.host, message, "no such address")
            return
        before, delay, link, why = self._cross(source.name, target.name, message)
        if why:
            self._lost(source.name, target.name, message, why)
            return
        end: Any = target
        packet: Packet = (source.address, source.me, life, fingerprint, message)
        if self.through is not None:
            sealed = self.through(source, target, packet)
            if sealed is None:
                self._lost(source.name, target.name, message, "too large")
                return
            end, packet = sealed
        self._push(before + delay, end, packet)
        if link.duplicate and self.chance() < link.duplicate:
            self._push(before + self._delay(link), end, packet)

    def _cross(self, source: str, target: str, message: Message) -> tuple[float, float, Link, str]:
        """The time a message takes to the last link, the time it takes there, that link; or why it is lost."""
        link = self._link
        if self.plain:
            fate = self.fates.pop() if self.fates else self.draw_fates()
            return (0.0, 0.0, link, "lost") if fate == LOST else (0.0, fate, link, "")
        if self._cuts and self._is_cut(source, target):
            return 0.0, 0.0, link, "cut"
        if self._filters and any(lost(source, target, message) for lost in self._filters.values()):
            return 0.0, 0.0, link, "dropped by the script"
        if self.topology is None:
            link = self._link_of(source, target)
            if link.loss and self.chance() < link.loss:
                return 0.0, 0.0, link, "lost"
            return 0.0, self._delay(link), link, ""
        path = self.topology.path(source, target)
        if path is None:
            return 0.0, 0.0, link, "no path"
        before = delay = 0.0
        here = source
        for hop in path:
            link = self._link_of(here, hop)
            if why := self._hop_fails(here, hop, link, target):
                return 0.0, 0.0, link, why
            before, delay, here = before + delay, self._delay(link), hop
        return before, delay, link, ""

    def _hop_fails(self, here: str, hop: str, link: Link, target: str) -> str:
        """Why one link, or the relay at its end, does not pass a message on; "" if it does."""
        if self._is_cut(here, hop):
            return f"cut before {hop}"
        if link.loss and self.chance() < link.loss:
            return f"lost before {hop}"
        relay = self.endpoints.get(Address(hop, PORT))
        return "" if hop == target or (relay is not None and relay.up) else f"relay {hop} is down"

    def _is_cut(self, source: str, target: str) -> bool:
        return any(cut(source, target) for cut in self._cuts.values())

    def _link_of(self, source: str, target: str) -> Link:
        return self._links.get((source, target)) or (next(reversed(self._weather.values())) if self._weather else self._link)

    def _push(self, delay: float, target: Any, packet: Packet) -> None:
        self.push((self.clock.now + delay, target, packet))

    def _delay(self, link: Link) -> float:
        if link is not self._drawn:
            self._drawn, self._draw = link, self._draw_of(link)
        delay = self._draw()
        if link.tail and self.chance() < link.tail:
            delay += link.tail_seconds * self.chance()
        return delay

    def _lost(self, source: str, target: str, message: Message, why: str) -> None:
        if self.trace is not None:
            self.trace.record(self.clock.now, "{} -x {}  {}  ({})", source, target, message, why)

    def _refresh(self) -> None:
        link = self._link
        troubled = self._links or self._weather or self._cuts or self._filters or self.topology or link.duplicate or link.tail
        self.plain = not troubled  # All messages have the same kind of fate. Looking on must not change it, or no run could be replayed.
        self.calm = self.plain and not (self.trace or self.measure or self.through)
        self.fates.clear()
        for endpoint in self.endpoints.values():
            endpoint.void_lines()

    def draw_fates(self) -> float:
        """Draw what happens to the next messages on plain links; a block costs less than so many calls. Returns the first."""
        loss, chance, draw = self._link.loss, self.chance, self._draw_of(self._link)
        self.fates.extend([LOST if loss and chance() < loss else draw() for _ in range(BLOCK)])
        self.fates.reverse()
        return self.fates.pop()

    def _draw_of(self, link: Link) -> Callable[[], float]:
        if link not in self._draws:
            self._draws[link] = link.delay.draw(self._delays)
        return self._draws[link]
