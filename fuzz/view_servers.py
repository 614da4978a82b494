"""Correct servers of views as one client meets them: every history that agreement allows, and every answer that belongs to it.

They keep the rules of views 5.4 and 5.5 and none of their times: which servers agree, when one of them delivers, forgets its client,
refuses it or restarts is drawn. Written from the specification, not from the server, so that both are not wrong alike.
"""

from __future__ import annotations

from random import Random

from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.messages import (
    ATTACHING,
    CHANGING,
    REFUSED,
    STABLE,
    UNKNOWN,
    ClientPing,
    ClientPong,
    StartChange,
    ViewMsg,
)
from holdfast.features.views.protocol.nsview import digest_of
from holdfast.host import Address, Message, NodeId, View, ViewId, ViewMember
from holdfast.kit.slots import Slot

OTHERS_MAX = 6  # clients beside the one under test
NONE = -1  # below every attach number


class Server:
    """One life of a server, and what it knows of the client under test."""

    def __init__(self, slot: Slot, life: NodeId, offset: float) -> None:
        self.slot, self.life = slot, life
        self.offset = offset  # of its clock against that of the client
        self.num = self.floor = self.sc = 0
        self.stable = False
        self.pending: View | None = None  # agreed under its number, and not delivered here
        self.view: View | None = None
        self.former: View | None = None
        self.attached = NONE
        self.tomb = NONE
        self.alive_at = self.seq = self.last_num = 0.0
        self.want_full = False


class Servers:
    """All slots, and every view that was ever agreed."""

    def __init__(self, random: Random, config: ViewsConfig, slots: tuple[Slot, ...], me: NodeId, address: Address) -> None:
        self._random, self._config, self._me, self._address = random, config, me, address
        self.refuses = random.choice((0.0, 0.02, 0.2))  # share of attachments that are refused
        self.vouches = random.choice((1.0, 0.95, 0.5))
        self.views: dict[ViewId, View] = {}
        self.skipped: dict[ViewId, None] = {}  # those with the client in them that it did not install
        self._boot = 1
        self.now: list[Server] = [self._born(slot) for slot in slots]  # by slot
        self.lives: dict[NodeId, Server] = {server.life: server for server in self.now}
        self._others = [f"c{number}" for number in range(random.randint(0, OTHERS_MAX))]
        self._attached: dict[str, tuple[int, int]] = dict.fromkeys(self._others, (1, 1))  # boot and attach number

    # What happens to servers.

    def restart(self, at: int) -> Server:
        server = self.now[at] = self._born(self.now[at].slot)
        self.lives[server.life] = server
        return server

    def agree(self, group: list[Server]) -> list[Message | None]:
        """These servers propose one key under one number. What each of them tells the client, or None."""
        random = self._random
        number = 1 + max(max(server.num, server.floor) for server in group) + random.choice((0, 0, 0, 0, 0, 0, 1, 3, 100))
        servers = tuple(sorted(server.life for server in group))
        view_id = ViewId(number, servers[0].name, servers[0].boot)
        members = self._members(group)
        view = self.views[view_id] = View(view_id, servers, members, len(members) + random.choice((0, 0, 2)))
        if view.find(self._me.name) is not None:
            self.skipped[view_id] = None
        return [self._begin(server, number, view) for server in group]

    def settle(self, server: Server) -> Message | None:
        """It delivers what was agreed, if it still holds."""
        if server.pending is None:
            return None
        server.former, server.view, server.pending = server.view, server.pending, None
        server.stable = True
        return self._view_for(server) if self._stands_for(server) and server.last_num < server.view.number else None

    def forget(self, server: Server) -> Message | None:
        """The client is silent, or moved, or an overlay message did not reach it."""
        if server.attached == NONE:
            return None
        server.tomb = max(server.tomb, server.attached)
        server.attached = NONE
        return self._begin(server, max(server.num, server.floor) + 1, None)

    # What they answer.

    def answer(self, server: Server, ping: ClientPing, now: float) -> list[Message]:
        """5.5, to a ping that reaches this server now."""
        clock = now + server.offset
        if ping.attach < server.attached:
            return []
        if ping.leave:
            self.forget(server)
            server.tomb = max(server.tomb, ping.attach)
            return []
        if ping.attach != server.attached:
            refused = self._attach(server, ping, clock)
            if refused is not None:
                return [refused]
        if ping.server == server.life.boot:
            server.alive_at = max(server.alive_at, ping.stamp)
        if ping.seq >= server.seq:
            server.seq, server.last_num, server.want_full = ping.seq, ping.last_num, ping.want_full
        if clock - server.alive_at > self._config.client_timeout:
            self.forget(server)
            return []
        if not self._stands_for(server) or self._random.random() > self.vouches:
            return [self._pong(server, ping, CHANGING, clock)]
        assert server.view is not None
        found: list[Message] = [self._pong(server, ping, STABLE, clock)]
        if server.last_num < server.view.number or server.want_full:
            found.append(self._view_for(server))
        return found

    def _attach(self, server: Server, ping: ClientPing, clock: float) -> ClientPong | None:
        """The answer to a ping that does not attach; None: it does."""
        known = max([server.tomb, *(other.attached for other in self.now if other is not server and self._random.random() < 0.7)])
        if ping.attach <= known:
            return self._pong(server, ping, UNKNOWN, clock, hint=known)
        if self._random.random() < self.refuses:
            return self._pong(server, ping, REFUSED, clock)
        proved = ping.server == server.life.boot and clock - ping.stamp <= self._config.client_timeout
        if not proved or ping.address is None:
            return self._pong(server, ping, ATTACHING, clock)
        server.tomb = max(server.tomb, server.attached)
        server.attached, server.alive_at, server.seq = ping.attach, ping.stamp, 0
        server.floor = max(server.floor, ping.last_num)
        if self._random.random() < 0.7:  # Otherwise the join waits for others (D15), and an older view stands a little longer.
            self._begin(server, max(server.num, server.floor) + 1, None)
        return None

    def _pong(self, server: Server, ping: ClientPing, state: int, clock: float, *, hint: int = 0) -> ClientPong:
        view_id = server.view.id if state == STABLE and server.view is not None else None
        return ClientPong(ping.attach, ping.seq, state, view_id, server.sc, max(0, hint), clock)

    def _stands_for(self, server: Server) -> bool:
        """It is stable in a view that lists the present attachment of the client to this server."""
        if not server.stable or server.view is None or server.attached == NONE:
            return False
        member = server.view.find(self._me.name)
        return member is not None and (member.id, member.attach, member.server) == (self._me, server.attached, server.life)

    def _view_for(self, server: Server) -> ViewMsg:
        """Whole, or what differs from the view that the client has, as far as its pings say (D14)."""
        view, base = server.view, server.former
        assert view is not None
        digest, seq = digest_of(view.servers, view.members), int(server.seq)
        if base is not None and server.last_num == base.number and not server.want_full and self._random.random() < 0.8:
            changed = tuple(member for member in view.members if member not in base.members)
            names = [member.id.name for member in view.members]
            gone = tuple(member.id.name for member in base.members if member.id.name not in names)
            return ViewMsg(server.attached, seq, view.id, view.servers, base.id, changed, gone, view.size, digest, view.fleet)
        return ViewMsg(server.attached, seq, view.id, view.servers, None, view.members, (), view.size, digest, view.fleet)

    def _begin(self, server: Server, number: int, pending: View | None) -> StartChange | None:
        server.num, server.pending, server.stable = number, pending, False
        server.sc += 1
        return None if server.attached == NONE else StartChange(server.attached, server.sc, number)

    def _members(self, group: list[Server]) -> tuple[ViewMember, ...]:
        random = self._random
        found = []
        for name in self._others:
            boot, attach = self._attached[name]
            if random.random() < 0.2:
                boot, attach = random.choice(((boot + 1, 1), (boot, attach + 1)))
                self._attached[name] = boot, attach
            home = group[(attach + len(name)) % len(group)]
            if random.random() < 0.85:
                found.append(ViewMember(NodeId(name, boot), Address(name, 1), attach, home.life))
        home = max(group, key=lambda server: server.attached)
        if home.attached != NONE:
            found.append(ViewMember(self._me, self._address, home.attached, home.life))
        return tuple(sorted(found))

    def _born(self, slot: Slot) -> Server:
        self._boot += self._random.randint(1, 5)
        name = slot.name if slot.named else f"agent{slot.number}"
        return Server(slot, NodeId(name, self._boot), self._random.uniform(-900.0, 900.0))
