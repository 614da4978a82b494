"""A server of views alone against peers, clients and a clock that do all that is allowed.  Spec: views 7, G1, G3, D3, D24, D26; F16, F17.

Peers tell the truth, late, in any order and again; the oracle knows since and until when it was true. Strangers may say anything. In some
runs a peer lies too: then only what needs no truth is looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from fuzz.view_host import BOOT, Menu, Note, slots_of
from fuzz.view_peers import FuzzClient, Peer, Peers
from fuzz.view_vouched import Vouched
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.messages import (
    DELIVERED,
    TYPES,
    ClientPing,
    ClientPong,
    HopAck,
    LinkPing,
    Listed,
    Lsa,
    LsaWant,
    OvData,
    OvResult,
    Propose,
)
from holdfast.host import Address, Message, NodeId, ViewId

POOL_MAX = 200  # messages under way; the oldest are lost
LIARS = 0.15  # of all runs
CROWDS = 0.02  # of all runs: with more clients than one callback may reach
STRANGER = NodeId("stranger", 3)
FOREIGN = (LinkPing, Lsa, LsaWant, Propose, OvData, OvResult, HopAck)  # each costs a counter if a stranger sends it
HEALTHY = 0.85  # of what a beat brings arrives


class ServerRun(Vouched):
    """One server, one environment."""

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, trace)
        random = self.random
        self.lies = random.random() < LIARS
        crowd = random.random() < CROWDS
        slots = slots_of(random.choice((1, 2, 2, 3, 3, 3, 5, 7)), named=True)
        own = random.randrange(len(slots))
        me = NodeId(slots[own].name, BOOT)
        names = [f"c{number}" for number in range(random.randint(65, 100) if crowd else random.randint(1, 6))]
        self.steps = random.randint(30, 60) if crowd else random.randint(60, 260)
        self.clients = [FuzzClient(name, random) for name in names]
        self.named = {client.name: client for client in self.clients}
        self.pool: list[tuple[NodeId, Message]] = []
        self.wants: list[tuple[Peer, LsaWant]] = []
        self.proposed: dict[int, Propose] = {}  # the newest to each slot
        self.hops: list[tuple[NodeId, OvData]] = []
        self.agrees = random.choice((0.9, 0.9, 0.5))
        self.mids = 0
        config = ViewsConfig(heartbeat=random.choice((0.1, 0.25, 1.0)), rho=random.choice((0.0, 0.001, 0.05)))
        self.peers = Peers(random, slots, own, me, 1000.0)
        self.set_up(me, config, slots, own)

    def play(self) -> None:
        menu = Menu(self.random, {
            self._beat: 40, self._pass: 12, self._late_pong: 8, self._arrive: 14, self._change: 4, self._diverge: 5, self._agree: 8,
            self._restart: 0.6, self._move: 2, self._attach_anew: 2, self._leave: 0.5, self._toggle: 5, self._ask: 6, self._speak: 6,
            self._pause: 0.6, self._jump: 1.0, self._carry: 3, self._hop: 3, self._strange: 5, self._lie: 8 if self.lies else 0,
        })  # fmt: skip
        for peer in self.peers.now.values():
            self._publish(peer)
        menu.play(self.steps)
        self.wake()
        self.host.turn(self.node.stop)

    # What the environment does.

    def _beat(self) -> None:
        """A heartbeat as in calm, for all that is not cut off."""
        self.pass_time(self.hb * self.random.uniform(0.7, 1.0))
        self.peers.talk(self.host.now)
        for peer in self.peers.now.values():
            if peer.asked and not peer.mute_pongs:
                arrives = self._give if self.random.random() < HEALTHY else self._put
                arrives(peer.life, self.peers.pong(peer, peer.asked[-1], self.host.now))
            if self.random.random() < 0.3:
                self._give(peer.life, LinkPing(1, peer.slot.number))
        self._answer_wants()
        for client in self.clients:
            if client.away is None and not client.mute and self.random.random() < HEALTHY:
                if not client.deaf and client.stamps and self.random.random() < HEALTHY:
                    client.stamp = client.stamps[-1]
                self._give(client.life, self._ping(client, client.stamp))
        for peer in list(self.peers.now.values()):
            if not peer.mute_proposals and self.random.random() < self.agrees:
                self._follow(peer)

    def _answer_wants(self) -> None:
        wants, self.wants = self.wants, []
        for peer, want in wants:
            for slot in want.slots:
                held = self.peers.now.get(slot)
                if held is not None and peer.alive and not peer.mute_states:
                    self._give(peer.life, held.lsas[-1])

    def _follow(self, peer: Peer) -> None:
        """It proposes what the server under test proposed to it, under that number or a higher one."""
        proposal = self.proposed.get(peer.slot.number)
        if proposal is None or proposal.dst != peer.life:
            return
        if peer.keys.get(peer.num) != proposal.key:
            number = proposal.num if peer.num < proposal.num else peer.num + self.random.choice((1, 1, 2, 30))
            peer.begin(number, proposal.key, self.host.now)
        elif peer.num < proposal.num:
            peer.begin(proposal.num, proposal.key, self.host.now)
        peer.done = self.random.random() < 0.5
        self._give(peer.life, self._proposal(peer))

    def _agree(self) -> None:
        if self.peers.now:
            self._follow(self.random.choice(list(self.peers.now.values())))

    def _diverge(self) -> None:
        """A peer has another view in mind: a number and a key of its own."""
        if self.peers.now:
            peer = self.random.choice(list(self.peers.now.values()))
            peer.begin(peer.num + self.random.choice((1, 1, 2, 50)), self.peers.some_key(), self.host.now)
            self._put(peer.life, self._proposal(peer))
            if self.random.random() < 0.5:
                peer.mute_proposals = True  # It does not agree with the server under test for a while.

    def _proposal(self, peer: Peer) -> Propose:
        """The newest, or one of its former ones."""
        number = peer.num if self.random.random() < 0.9 else self.random.choice(list(peer.keys))
        dst = self.host.me if self.random.random() < 0.95 else self.random.choice(list(self.peers.lives))
        return peer.proposal(dst, number, self.random.choice((1, 2, 3)))

    def _change(self) -> None:
        if self.peers.now:
            self._publish(self.random.choice(list(self.peers.now.values())))

    def _publish(self, peer: Peer) -> None:
        up = [other.life for other in self.peers.now.values() if other is not peer and self.random.random() < 0.9]
        if self.random.random() < 0.93:
            up.append(self.host.me)
        clients = [client.listed for client in self.clients if client.away == peer.slot.number and self.random.random() < 0.95]
        clients.extend(listed for listed in peer.lsas[-1].clients if listed.life.name not in self.named)
        if self.random.random() < 0.3:
            stay = self.random.random() < 0.5
            clients = [listed for listed in clients if stay or listed.life.name in self.named]
            name = f"d{peer.slot.number}"
            clients.extend(self._guest(name, len(peer.lsas)) for _ in range(not any(each.life.name == name for each in clients)))
        peer.publish(tuple(up), tuple(sorted(clients)), self.host.now)
        self._put(peer.life, peer.lsas[-1])

    def _guest(self, name: str, attach: int) -> Listed:
        return Listed(NodeId(name, 1), attach, Address(name, 1))

    def _restart(self) -> None:
        if self.peers.now:
            peer = self.peers.restart(self.random.choice(list(self.peers.now)), self.host.now)
            self.note(f"{peer.life} begins")
            self._publish(peer)

    def _late_pong(self) -> None:
        """Any ping is answered now, once more, or its answer is under way."""
        if self.peers.now:
            peer = self.random.choice(list(self.peers.now.values()))
            if peer.asked:
                self._put(peer.life, self.peers.pong(peer, self.random.choice(peer.asked[-12:]), self.host.now))

    def _ask(self) -> None:
        """A peer asks, or lacks link states: the answer shows what the server under test believes of others."""
        if self.peers.now:
            peer = self.random.choice(list(self.peers.now.values()))
            self._give(peer.life, LinkPing(self.random.randint(1, 99), peer.slot.number, self.random.random() < 0.5))
            if self.random.random() < 0.2:
                self._give(peer.life, LsaWant(tuple(self.random.randrange(len(self.slots)) for _ in range(2))))

    def _toggle(self) -> None:
        """A kind of message passes no more, or again."""
        random = self.random
        if self.peers.now and random.random() < 0.6:
            peer = random.choice(list(self.peers.now.values()))
            if random.random() < 0.3:
                self.peers.toggle_cut()
                return
            name = random.choice(("mute_pongs", "mute_states", "mute_proposals"))
            setattr(peer, name, not getattr(peer, name) and random.random() < 0.7)
        else:
            client = random.choice(self.clients)
            client.deaf = not client.deaf and random.random() < 0.7
            client.mute = not client.mute and random.random() < 0.5

    def _pass(self) -> None:
        self.pass_time(self.hb * self.random.choice((0.01, 0.1, 0.5, 1.0, 1.0, 4.0)))

    def _pause(self) -> None:
        self.pause(self.hb * self.random.choice((1.0, 3.0, 8.0, 40.0)) * self.random.random())

    def _jump(self) -> None:
        self.jump(self.hb * self.random.choice((1.0, 3.0, 7.0, 9.0, 40.0)) * self.random.random())

    # Clients.

    def _ping(self, client: FuzzClient, stamp: float, *, leave: bool = False) -> ClientPing:
        client.seq += 1
        boot = self.host.me.boot if stamp else 0
        address = client.address if self.random.random() < 0.9 else None
        return ClientPing(client.attach, client.seq, boot, stamp, client.last_num, leave, self.random.random() < 0.02, address)

    def _speak(self) -> None:
        """A client pings with any answer that it ever had, and the ping may come again."""
        client = self.random.choice(self.clients)
        stamp = self.random.choice(client.stamps) if client.stamps and self.random.random() < 0.6 else client.stamp
        if self.random.random() < 0.03:
            client.last_num += self.random.choice((1, 20, 1000))
        ping = self._ping(client, stamp)
        if self.random.random() < 0.1 and self.peers.lives:  # with what a server said that is not this one, or is one no more
            boot = self.random.choice((self.host.me.boot - 1, self.random.choice(list(self.peers.lives)).boot))
            ping = replace(ping, server=boot, stamp=self.host.now + self.random.uniform(-900.0, 900.0))
        self._put(client.life, ping)
        self._give(client.life, ping)

    def _move(self) -> None:
        """It attaches to a peer, which says so; or it comes back."""
        client = self.random.choice(self.clients)
        away = self.random.choice(list(self.peers.now)) if client.away is None and self.peers.now else None
        if away is None and client.away is None:
            return
        client.attach_anew(away)
        self.counts["moved"] += 1
        if away is not None:
            self._publish(self.peers.now[away])

    def _attach_anew(self) -> None:
        client = self.random.choice(self.clients)
        if self.random.random() < 0.2:
            client.restart()
        else:
            client.attach_anew(client.away)

    def _leave(self) -> None:
        client = self.random.choice(self.clients)
        self._give(client.life, self._ping(client, client.stamp, leave=True))

    # The overlay.

    def _carry(self) -> None:
        source, to = self.random.choice(self.clients), self.random.choice(self.clients)
        self.mids += 1
        mid = self.mids if self.random.random() < 0.8 else self.random.randint(1, self.mids)
        parcel = self.node._parcels.pack(Note(mid))
        assert parcel is not None
        sender = source.life if self.random.random() < 0.7 or not self.peers.now else self.random.choice(list(self.peers.now.values())).life
        self._give(sender, OvData(source.life, mid, to.life, ViewId(1, "s0", 1), parcel, self.random.choice((0, 1, 3, 3)), mid))

    def _hop(self) -> None:
        """A hop is acknowledged, or something is said about a message."""
        if self.hops and self.random.random() < 0.8:
            to, data = self.random.choice(self.hops[-8:])
            self.acknowledged[data.src, data.mid] = None
            self._give(to, HopAck(data.hop))
        elif self.peers.now and self.hops:
            data = self.random.choice(self.hops)[1]
            why = self.random.choice((DELIVERED, 1, 2, 3))
            if why == DELIVERED:
                self.acknowledged[data.src, data.mid] = None
            peer = self.random.choice(list(self.peers.now.values()))
            self._give(peer.life, OvResult(data.src, data.mid, why == DELIVERED, why, self.random.choice((0, 1, 3)), 3))

    # Strangers and liars.

    def _strange(self) -> None:
        """A process that is no server and no client says something that only those may say: it costs a counter."""
        source, message = STRANGER, self.lie(self.random.choice(FOREIGN))
        if self.random.random() < 0.2:  # A client with a reading of a clock that did not say so yet.
            client = self.random.choice(self.clients)
            source, message = client.life, self._ping(client, self.host.now + self.random.choice((0.001, 1.0, 1e9)))
            self.pinged[source, client.attach, client.seq] = None
        if message is None or self._is_own_word(message):
            return
        before = sum(self.node.counts.values())
        self.counts["strange"] += 1
        self.deliver(source, message)
        if sum(self.node.counts.values()) == before:
            self.fail(f"a stranger's message costs no counter: {message!r}")

    def _is_own_word(self, message: Message) -> bool:
        """What the server itself said may come back by any way."""
        return isinstance(message, Lsa | Propose) and message.origin == self.host.me

    def _lie(self) -> None:
        client = self.random.choice(self.clients)
        lives = [*self.peers.lives, client.life, client.life, STRANGER]
        server = self.node.server
        assert server is not None
        me, numbers = self.host.me, (client.attach, client.seq, server.agreement.num, self.host.now)
        self.shapes.hot = [*numbers, me.boot, me.name, client.name]
        message = self.lie(self.random.choice(TYPES))
        if message is not None:
            self.counts["lies"] += 1
            self._give(self.random.choice(lives), message)

    # The network.

    def _put(self, source: NodeId, message: Message) -> None:
        self.pool.append((source, message))
        if len(self.pool) > POOL_MAX:
            del self.pool[0]

    def _arrive(self) -> None:
        if not self.pool:
            return
        newest = self.random.random() < 0.6
        at = max(0, len(self.pool) - 1 - int(self.random.expovariate(0.4))) if newest else self.random.randrange(len(self.pool))
        source, message = self.pool[at]
        if self.random.random() < 0.5:
            del self.pool[at]
        self._give(source, message)

    def _give(self, source: NodeId, message: Message) -> None:
        if isinstance(message, ClientPing):
            self.expect_ping(source, message)
        if self.lies:
            self.harvest.note(message)
        self.deliver(source, message)

    # What the server says, after the oracle looked at it.

    def on_said(self, to: NodeId | Address, message: Message) -> None:
        if isinstance(message, LinkPing):
            slot = next(slot.number for slot in self.slots if slot.address == to)
            self.peers.now[slot].asked.append(message.seq)
        elif isinstance(message, LsaWant):
            peer = self.peers.lives.get(to) if isinstance(to, NodeId) else None
            if peer is not None:
                self.wants.append((peer, message))
        elif isinstance(message, Propose) and message.slot == self.node.own:
            self.proposed[self.peers.lives[message.dst].slot.number] = message
        elif isinstance(message, ClientPong) and isinstance(to, NodeId):
            client = self.named.get(to.name)
            if client is not None and (client.life, client.attach) == (to, message.attach):
                client.stamps.append(message.stamp)
        elif isinstance(message, OvData) and isinstance(to, NodeId):
            self.hops.append((to, message))
