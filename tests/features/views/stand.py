"""Machines of views alone on fake hosts: the test plays all other processes.  Spec: views 3, 5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.bounds import Number
from holdfast.drops import Drops
from holdfast.events import ViewEvent
from holdfast.features.views.protocol.agreement import Agreement
from holdfast.features.views.protocol.client import ViewClient
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.hops import Hops
from holdfast.features.views.protocol.messages import (
    ATTACHING,
    STABLE,
    Attach,
    ClientPing,
    ClientPong,
    Known,
    LinkPing,
    LinkPong,
    Listed,
    Lsa,
    OvData,
    Propose,
    ViewMsg,
)
from holdfast.features.views.protocol.nsview import digest_of
from holdfast.features.views.protocol.server import ViewServer
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import Address, Message, NodeId, View, ViewId, ViewMember, ViewState
from holdfast.kit.parcels import Parcel, Parcels
from holdfast.kit.slots import Slot
from tests.support.fake_host import FakeHost

CONFIG = ViewsConfig()
HB = CONFIG.heartbeat
S0, S1, S2, S3 = (NodeId(f"s{i}", 100 + i) for i in range(4))
A, B, C = (NodeId(name, 1) for name in ("ca", "cb", "cc"))
PARCEL = Parcel(b"", b"\x92\xcc\xf0\x01")


class Note(Message, frozen=True, tag=240):
    """Declared for the overlay."""

    carried: ClassVar[bool] = True
    number: Number
    padding: Annotated[bytes, Meta(max_length=64 * 1024)] = b""


def slots_of(servers: int) -> tuple[Slot, ...]:
    return tuple(Slot(i, f"s{i}", Address(f"s{i}", 1)) for i in range(servers))


def at(life: NodeId) -> Address:
    return Address(life.name, 1)


def member(life: NodeId, attach: int = 1, server: NodeId = S0) -> ViewMember:
    return ViewMember(life, at(life), attach, server)


def view_of(number: int, *members: ViewMember, servers: Sequence[NodeId] = (S0,)) -> View:
    smallest = min(servers)
    return View(ViewId(number, smallest.name, smallest.boot), tuple(sorted(servers)), tuple(sorted(members)), len(members))


class Peer:
    """Another server, as the test plays it."""

    def __init__(self, life: NodeId, slot: int) -> None:
        self.life, self.slot = life, slot
        self.seq, self.num = 1, 0
        self.up: tuple[NodeId, ...] = ()
        self.clients: tuple[Listed, ...] = ()

    def known(self, *, age: float = 0.0, num_age: float = 0.0) -> Known:
        return Known(self.slot, self.life, self.seq, age, self.num, num_age)

    def lsa(self, *, up: Iterable[NodeId] | None = None, clients: Iterable[Listed] | None = None) -> Lsa:
        """Its next one, if something is given."""
        if up is not None or clients is not None:
            self.seq += 1
            self.up = self.up if up is None else tuple(up)
            self.clients = self.clients if clients is None else tuple(clients)
        return Lsa(self.slot, self.life, self.seq, self.up, self.clients)


class ServerStand:
    """Server s0 of some slots."""

    def __init__(self, servers: int = 3, *, config: ViewsConfig = CONFIG) -> None:
        self.config = config
        self.host = FakeHost(*S0)
        self.counts: Counter[str] = Counter()
        self.hops = Hops(self.host, config, self.host.send, self.counts)
        self.server = ViewServer(self.host, config, slots_of(servers), 0, self.hops, self.host.send, self.counts)
        self.peers = {i: Peer(life, i) for i, life in enumerate((S0, S1, S2, S3)[:servers]) if i}
        self.server.start()

    @property
    def agreement(self) -> Agreement:
        return self.server.agreement

    # Time.

    def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.host.pass_time(HB)
            self.server.on_tick()

    def beat(self, *peers: Peer, times: int = 1) -> None:
        """Heartbeats in which these peers answer at once."""
        for _ in range(times):
            self.host.take(LinkPing)
            self.tick()
            for peer in peers:
                self.answer(peer)

    # Other servers.

    def answer(self, peer: Peer, *others: Known, after: float = 0.0) -> None:
        """The newest question to this peer."""
        seq = [ping.seq for to, ping in self.asked() if to == at(peer.life)][-1]
        self.host.pass_time(after)
        self.server.on_link_pong(peer.life, LinkPong(seq, peer.slot, (peer.known(), *others)))

    def answer_next(self, peer: Peer) -> None:
        """A question between two heartbeats, and its answer."""
        self.server.links.ask()
        self.answer(peer)

    def asked(self) -> list[tuple[NodeId | Address, LinkPing]]:
        return [(sent.to, sent.message) for sent in self.host.sent if isinstance(sent.message, LinkPing)]

    def link(self, *peers: Peer) -> None:
        """Links with all of them, and fresh link states in which they are linked with us and with one another."""
        self.beat(*peers, times=2)
        for peer in peers:
            others = (other.life for other in peers if other is not peer)
            self.server.on_lsa(peer.life, peer.lsa(up=sorted((S0, *others))))
        self.beat(*peers)

    def propose(self, peer: Peer, num: int | None = None, key: bytes | None = None, *, done: bool = False) -> None:
        """By default just what this server proposes."""
        peer.num = self.agreement.num if num is None else num
        assert self.agreement.ns is not None
        digest = self.agreement.ns.digest if key is None else key
        self.server.on_propose(peer.life, Propose(peer.slot, peer.life, peer.num, digest, 0, done, 3, S0))

    def agree(self, *peers: Peer) -> View:
        """All of them propose what this server proposes, and say so in their next answer."""
        for peer in peers:
            self.propose(peer)
        self.beat(*peers)
        assert self.agreement.stable
        assert self.agreement.view is not None
        return self.agreement.view

    # Clients.

    def ping(self, life: NodeId, attach: int = 1, seq: int = 1, stamp: float | None = None, **fields: Any) -> ClientPong | None:
        """What the server answers."""
        by = 0 if stamp is None else S0.boot
        values: dict[str, Any] = {"last_num": 0, "address": at(life)} | fields
        self.host.take(ClientPong)
        self.server.on_client_ping(life, ClientPing(attach, seq, by, stamp or 0.0, **values))
        found = [pong for to, pong in self.host.take(ClientPong) if to == life]
        assert len(found) <= 1
        return found[0] if found else None

    def attach(self, life: NodeId, attach: int = 1, **fields: Any) -> ClientPong:
        first = self.ping(life, attach, 1, **fields)
        assert first is not None
        assert first.state == ATTACHING
        second = self.ping(life, attach, 2, first.stamp, **fields)
        assert second is not None
        return second


class ClientStand:
    """Client ca of some slots; ``told`` is what it tells."""

    def __init__(self, servers: int = 3, *, former: ViewClient | None = None, host: FakeHost | None = None) -> None:
        self.host = FakeHost(*A) if host is None else host
        self.told: list[ViewEvent] = []
        self.counts: Counter[str] = Counter()
        self.client = ViewClient(self.host, CONFIG, slots_of(servers), None, self.host.send, self.told.append, self.counts, former=former)
        self._newest: ClientPing | None = None
        self.client.start()

    def state(self) -> ViewState:
        """A method: the type checker would think that it stays as it was compared last."""
        return self.client.state

    @property
    def server(self) -> NodeId:
        """The one that it asks at present."""
        return (S0, S1, S2, S3)[self.client.servers[self.client.at].number]

    def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.host.pass_time(HB)
            self.client.on_tick()

    def pings(self) -> list[ClientPing]:
        """Since the last look."""
        self.last_ping()
        return [ping for _, ping in self.host.take(ClientPing)]

    def last_ping(self) -> ClientPing:
        found = [sent.message for sent in self.host.sent if isinstance(sent.message, ClientPing)]
        self._newest = found[-1] if found else self._newest
        assert self._newest is not None
        return self._newest

    def pong(
        self, state: int, *, seq: int | None = None, view: View | None = None, source: NodeId | None = None, sc: int = 0, hint: int = 0
    ) -> None:
        """By default an answer to the newest ping."""
        ping = self.last_ping()
        view_id = None if view is None else view.id
        answered = ClientPong(ping.attach, ping.seq if seq is None else seq, state, view_id, sc, hint, self.host.now)
        self.client.on_pong(self.server if source is None else source, answered)

    def view(self, view: View, *, echo: int | None = None, attach: int | None = None, source: NodeId | None = None) -> None:
        self.client.on_view(
            self.server if source is None else source,
            whole(view, self.client.attach if attach is None else attach, self.last_ping().seq if echo is None else echo),
        )

    def mine(self, number: int, *others: ViewMember) -> View:
        """A view of its server with its present attachment."""
        return view_of(number, member(A, self.client.attach, self.server), *others, servers=(self.server,))

    def install(self, number: int = 1, *others: ViewMember) -> View:
        """Attach, and install a view."""
        self.pong(ATTACHING)
        view = self.mine(number, *others)
        self.view(view)
        self.pong(STABLE, view=view)
        assert self.client.view == view
        return view


def whole(view: View, attach: Attach, echo: int) -> ViewMsg:
    digest = digest_of(view.servers, view.members)
    return ViewMsg(attach, echo, view.id, view.servers, None, view.members, (), view.size, digest, view.fleet)


class FakeRouter:
    """What parcels need of a node: what came out of them is in ``handed``."""

    def __init__(self, *kinds: type[Message]) -> None:
        self.drops = Drops()
        self.types: tuple[type[Message], ...] = kinds or (Note,)
        self.digests: Mapping[type[Message], bytes] = {}
        self.handed: list[tuple[NodeId, Message]] = []
        self.on_message: Callable[[Message], None] = lambda message: None

    def hand_on(self, sender: NodeId, fingerprint: bytes, message: Message) -> None:
        self.handed.append((sender, message))
        self.on_message(message)


class NodeStand:
    """A whole ``ViewNode``; what it says to itself arrives after ``settle``."""

    def __init__(self, servers: int = 1, own: int | None = 0, name: NodeId = S0) -> None:
        self.host = FakeHost(*name)
        self.router = FakeRouter()
        self.node = ViewNode(self.host, CONFIG, slots_of(servers), own, Parcels(self.router, self.host.wall))

    def run(self, heartbeats: float) -> None:
        self.host.pass_time(heartbeats * HB)

    def data(self, src: NodeId, mid: int, dst: NodeId, *, hop: int = 1, last: bool = True) -> OvData:
        return OvData(src, mid, dst, ViewId(1, *S0), parcel_of(mid), 2, hop, last)


def parcel_of(number: int) -> Parcel:
    packed = Parcels(FakeRouter(), lambda: 0.0).pack(Note(number))
    assert packed is not None
    return packed
