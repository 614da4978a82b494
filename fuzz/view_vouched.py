"""The oracle of one server of views: what it may vouch for, given what is true of its peers and was said by its clients.

Spec: views 5.4, 5.5, G1, G3, D3, D10, D24, D26.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from fuzz.view_host import EPSILON, Run
from fuzz.view_peers import Peers
from holdfast.events import Event
from holdfast.features.views.protocol.config import CLIENTS_MAX, HOPS_MAX, RECENT_MAX, TOMBS_MAX
from holdfast.features.views.protocol.facts import ClientAttached, ClientRemoved, Delivered, HopFailed, Proposed
from holdfast.features.views.protocol.messages import (
    CHANGING,
    STABLE,
    UNKNOWN,
    ClientPing,
    ClientPong,
    LinkPong,
    Lsa,
    OvResult,
    Propose,
    ViewMsg,
)
from holdfast.features.views.protocol.nsview import digest_of
from holdfast.host import Address, Message, NodeId, View, ViewMember

UNANSWERED_MAX = 32  # questions of a link that may be answered: it asks once per heartbeat, and forgets after four


class Vouched(Run):
    """A run of a server."""

    peers: Peers
    lies: bool

    def __init__(self, seed: int, trace: Callable[[str], None] | None) -> None:
        super().__init__(seed, trace)
        self.keys: dict[int, bytes] = {}  # number -> key, of all that it proposed
        self.num = self.seq = 0
        self.published: dict[int, Lsa] = {}  # by number
        self.view: View | None = None
        self.views: dict[object, View] = {}
        self.echoed: dict[NodeId, float] = {}  # client -> the newest stamp that came back
        self.pinged: dict[tuple[NodeId, int, int], None] = {}  # (client, attach, seq)
        self.ping: ClientPing | None = None  # the last one that came
        self.attached: dict[str, tuple[int, int]] = {}  # name -> the newest (boot, attach) that was ever attached here
        self.floors: dict[tuple[NodeId, int], int] = {}  # (client, attach) -> the number that it had when it attached
        self.acknowledged: dict[tuple[NodeId, int], None] = {}  # messages of which a peer said that they arrived

    def expect_ping(self, source: NodeId, ping: ClientPing) -> None:
        self.ping = ping
        self.pinged[source, ping.attach, ping.seq] = None
        if ping.server == self.host.me.boot and 0 < ping.stamp <= self.host.now:
            self.echoed[source] = max(self.echoed.get(source, -inf), ping.stamp)

    # What the server tells.

    def on_event(self, event: Event) -> None:
        if self.tracing:
            self.note(f"* {event!r}")
        if isinstance(event, Proposed):
            last = max(self.keys, default=0)
            self._one_key(event.number, event.key)
            if event.number <= last:
                self.fail(f"5.4: it proposes {event.number} after {last}")
        elif isinstance(event, Delivered):
            self._on_delivered(event.view)
        elif isinstance(event, ClientAttached):
            self.counts["attached"] += 1
            identity, former = (event.client.boot, event.attach), self.attached.get(event.client.name, (0, -1))
            if identity <= former:
                self.fail(f"D10: {event.client}, attachment {event.attach}, is attached again after {former}")
            self.attached[event.client.name] = identity
            if self.ping is not None:
                self.floors[event.client, event.attach] = self.ping.last_num
        elif isinstance(event, ClientRemoved):
            self.counts["removed" if event.why != "silent" else "silent"] += 1
        elif isinstance(event, HopFailed):
            self.counts["hops failed"] += 1

    def _on_delivered(self, view: View) -> None:
        self.counts["deliveries"] += 1
        if self.view is not None and view.number <= self.view.number:
            self.fail(f"CB2: it delivers {view.number} after {self.view.number}")
        if view.number != max(self.keys) or digest_of(view.servers, view.members) != self.keys[view.number]:
            self.fail(f"5.4: it delivers what it did not propose: {view!r}")
        if (view.id.name, view.id.boot) != min(view.servers) or self.host.me not in view.servers:
            self.fail(f"2: a view without its own server: {view!r}")
        for member in view.members:
            if member.server == self.host.me and view.number <= self.floors.get((member.id, member.attach), 0):
                self.fail(f"D20: it delivers {view.number} to {member.id}, which came with {self.floors[member.id, member.attach]}")
        self.view = self.views[view.id] = view
        self._check_truth(view)
        if self.lies:
            return
        for server in self._others(view):
            if self.peers.lives[server].keys.get(view.number) != self.keys[view.number]:
                self.fail(f"G3: it delivers {view.number}, and {server} did not propose the same")

    # What the server sends.

    def on_send(self, to: NodeId | Address, message: Message) -> None:
        if self.tracing:
            self.note(f"-> {to}: {message!r}")
        if isinstance(message, ClientPong):
            self._check_pong(to, message)
        elif isinstance(message, LinkPong):
            self._check_known(message)
        elif isinstance(message, Propose) and message.origin == self.host.me:
            self._one_key(message.num, message.key)
        elif isinstance(message, Lsa) and message.origin == self.host.me:
            if self.published.setdefault(message.seq, message) != message:
                self.fail(f"5.2: another link state under {message.seq}: {message!r}")
        elif isinstance(message, ViewMsg):
            self._check_view_message(to, message)
        elif isinstance(message, OvResult) and message.ok and (message.src, message.mid) not in self.acknowledged and not self.lies:
            self.fail(f"5.7: it says that a message arrived: {message!r}")
        self.on_said(to, message)

    def on_said(self, to: NodeId | Address, message: Message) -> None:
        """For the environment."""
        raise NotImplementedError

    def _one_key(self, number: int, key: bytes) -> None:
        if self.keys.setdefault(number, key) != key:
            self.fail(f"D3: two keys under number {number}")

    def _check_pong(self, to: NodeId | Address, pong: ClientPong) -> None:
        if not isinstance(to, NodeId) or (to, pong.attach, pong.seq) not in self.pinged or pong.stamp != self.host.now:
            self.fail(f"5.5: it answers {to} what was not asked: {pong!r}")
        self.counts["answers"] += 1
        if pong.state == UNKNOWN and pong.hint < pong.attach:
            self.fail(f"5.5: a hint that helps nothing: {pong!r}")
        if pong.state in (STABLE, CHANGING) and self.host.now - self.echoed.get(to, -inf) > self.client_timeout + EPSILON:
            self.fail(f"5.5: {to} echoed nothing since {self.echoed.get(to, -inf) - 1000.0:.3f}, and is answered {pong!r}")
        if pong.state == CHANGING:
            self.counts["refused to vouch"] += 1
        if pong.state != STABLE:
            return
        self.counts["vouched"] += 1
        if self.view is None or pong.view != self.view.id:
            self.fail(f"5.5: stable in {pong.view}, and the last view is {None if self.view is None else self.view.id}")
        self._check_member(to, pong.attach, self.view)
        self._check_truth(self.view)

    def _check_view_message(self, to: NodeId | Address, message: ViewMsg) -> None:
        view = self.view
        if view is None or message.id != view.id or not isinstance(to, NodeId) or (to, message.attach, message.echo) not in self.pinged:
            self.fail(f"5.4: it sends {to} {message!r}")
        base = () if message.base is None else self.views[message.base].members
        members: dict[str, ViewMember] = {member.id.name: member for member in base}
        for name in message.gone:
            members.pop(name)
        members.update((member.id.name, member) for member in message.members)
        if tuple(sorted(members.values())) != view.members or message.servers != view.servers:
            self.fail(f"D14: it sends another view than it delivered: {message!r}")
        self._check_member(to, message.attach, view)
        self._check_truth(view)

    def _check_member(self, client: NodeId, attach: int, view: View) -> None:
        member = view.find(client.name)
        if member is None or (member.id, member.attach, member.server) != (client, attach, self.host.me):
            self.fail(f"5.5: it vouches to {client}, attachment {attach}, for a view with {member}")

    def _check_truth(self, view: View) -> None:
        """D24, D26: every other server was at this number, and its clients are as listed, ``lsa_max_age`` ago or later."""
        server = self.node.server
        assert server is not None
        for member in view.members:
            attached = server.clients.get(member.id) if member.server == self.host.me else None
            if member.server != self.host.me:
                continue
            if attached is None or attached.attach != member.attach:
                self.fail(f"D5: it vouches for a view with {member}, which is not attached so")
            if self.host.now - self.echoed.get(member.id, -inf) > self.client_timeout + EPSILON:
                self.fail(f"D17: it vouches for a view with {member}, which echoed nothing for too long")
        if self.lies:
            return
        oldest = self.host.now - self.lsa_max_age - EPSILON
        for other in self._others(view):
            peer = self.peers.lives[other]
            if peer.number_until(view.number) < oldest:
                self.fail(f"D26: it vouches for {view.number}; {other} left it at {peer.number_until(view.number) - 1000.0:.3f}")
            listed = {(member.id, member.attach) for member in view.members if member.server == other}
            if not any(peer.state_until(lsa.seq) >= oldest and self._is_shown(lsa, listed, view) for lsa in reversed(peer.lsas)):
                self.fail(f"D24: it vouches for {listed} at {other}, which has listed other clients for too long")

    def _is_shown(self, lsa: Lsa, listed: set[tuple[NodeId, int]], view: View) -> bool:
        """The view has these clients at that server, and the others of its link state where they attached later (D9)."""
        known = {(each.life, each.attach) for each in lsa.clients}
        if not listed <= known:
            return False
        for each in lsa.clients:
            member = view.find(each.life.name)
            if member is None or (member.id.boot, member.attach) < (each.life.boot, each.attach):
                return False
        return True

    def _others(self, view: View) -> list[NodeId]:
        return [server for server in view.servers if server != self.host.me]

    def _check_known(self, pong: LinkPong) -> None:
        """D24: it makes nothing that it heard of others younger than it is."""
        mine, *others = pong.known
        if (mine.life, mine.age, mine.num_age) != (self.host.me, 0.0, 0.0) or mine.num < self.num or mine.seq < self.seq:
            self.fail(f"5.1: it says of itself {mine!r}, and said {self.num} and {self.seq} before")
        self.num, self.seq = mine.num, mine.seq
        if self.lies:
            return
        for known in others:
            peer = self.peers.lives[known.life]
            if known.seq and peer.state_until(known.seq) < self.host.now - known.age - EPSILON and known.age < inf:
                self.fail(f"D24: {known!r}; that link state ended at {peer.state_until(known.seq) - 1000.0:.3f}")
            if known.num and peer.number_until(known.num) < self.host.now - known.num_age - EPSILON:
                self.fail(f"D24: {known!r}; it left that number at {peer.number_until(known.num) - 1000.0:.3f}")

    # The rules.

    def after(self) -> None:
        """Clients that are silent are gone, and every table has its limit."""
        server = self.node.server
        assert server is not None
        if not self.stopped and self.host.late == 0.0:
            oldest = self.host.now - self.client_timeout - self.hb - EPSILON
            for client in server.clients.all.values():
                if self.echoed.get(client.life, -inf) < oldest:
                    self.fail(f"5.5: {client.life} echoed nothing since {self.echoed.get(client.life, -inf) - 1000.0:.3f}, and is attached")
        slots = len(self.slots)
        sizes = (
            (len(server.clients), CLIENTS_MAX),
            (len(server.clients._tombs), TOMBS_MAX),
            (len(self.node._hops), HOPS_MAX),
            (len(server.relay._recent), RECENT_MAX),
            (len(server.states.held), slots),
            (len(server.states._seen), slots),
            (len(server.agreement._proposals), slots),
            (len(server._notices._waiting), CLIENTS_MAX),
            (max((len(link.sent) for link in server.links.all.values()), default=0), UNANSWERED_MAX),
        )
        if any(size > most for size, most in sizes):
            self.fail(f"a table is too long: {sizes}")
