"""Liveness of the clients of one server: which are attached, which are gone, which are not let in.  Spec: views 5.5, D9-D11, D15, D24.

A client is alive as long as it echoes readings of this server's clock that are not older than ``client_timeout``. So a ping that was long
under way proves nothing new, and a client that cannot hear this server is not in its list.
"""

from __future__ import annotations

from collections import OrderedDict
from math import inf

from holdfast.features.views.protocol.config import TOMB_SECONDS, TOMBS_MAX, ViewsConfig
from holdfast.features.views.protocol.facts import ClientAttached, ClientRemoved
from holdfast.features.views.protocol.links import Quarantine
from holdfast.features.views.protocol.messages import ClientPing, Listed
from holdfast.host import Address, Host, NodeId

Identity = tuple[int, int]  # boot and attach number: of two the larger is the newer one


class Client:
    """One that is attached here."""

    __slots__ = ("address", "alive_at", "attach", "last_num", "life", "room", "room_at", "seq", "told", "told_at", "want_full")

    def __init__(self, life: NodeId, address: Address, attach: int, alive_at: float) -> None:
        self.life, self.address, self.attach = life, address, attach
        self.alive_at = alive_at  # on my clock, as the newest pong that it echoed carried it
        self.seq = 0  # of its newest ping
        self.last_num = 0  # of the last view it installed
        self.want_full = False
        self.told = 0  # number of the view it was sent last
        self.told_at = -inf
        self.room, self.room_at = 0.0, -inf  # for overlay messages: how many it may send now

    @property
    def identity(self) -> Identity:
        return self.life.boot, self.attach


class Clients:
    """All that are attached to one server, by name."""

    def __init__(self, host: Host, config: ViewsConfig) -> None:
        self._host, self._config = host, config
        self.all: dict[str, Client] = {}
        self.joined = self.left = False  # since they were published
        self._tombs: OrderedDict[str, tuple[Identity, float]] = OrderedDict()
        self._out: dict[NodeId, float] = {}  # lives that are in quarantine, and until when
        self._quarantine = Quarantine(config)
        self._oldest = -inf  # no client's proof of life is older
        self.quarantines = 0

    def __len__(self) -> int:
        return len(self.all)

    def get(self, life: NodeId) -> Client | None:
        """This life, if it is attached."""
        client = self.all.get(life.name)
        return client if client is not None and client.life == life else None

    def listed(self) -> tuple[Listed, ...]:
        """For an LSA."""
        self.joined = self.left = False
        return tuple(Listed(client.life, client.attach, client.address) for _, client in sorted(self.all.items()))

    def attach(self, life: NodeId, ping: ClientPing, address: Address) -> Client:
        former = self.all.get(life.name)
        if former is not None:
            self.remove(former, "attached anew")
        client = self.all[life.name] = Client(life, address, ping.attach, ping.stamp)
        self._oldest = min(self._oldest, ping.stamp)
        self.joined = True
        self._host.emit(ClientAttached(life, ping.attach))
        return client

    def remove(self, client: Client, why: str) -> None:
        del self.all[client.life.name]
        self.left = True
        self.bury(client.life.name, client.identity)
        self._host.emit(ClientRemoved(client.life, client.attach, why))

    def bury(self, name: str, identity: Identity) -> None:
        """No late ping of it, or of an older one, attaches any more (D10)."""
        identity = max(identity, self.last_of(name))
        self._tombs.pop(name, None)
        self._tombs[name] = identity, self._host.now
        if len(self._tombs) > TOMBS_MAX:  # Its late pings still bring stamps that are too old.
            self._tombs.popitem(last=False)

    def remove_silent(self) -> None:
        """Whose proof of life is too old. Whom all are younger than is looked at seldom."""
        oldest = self._host.now - self._config.client_timeout
        if self._oldest >= oldest:
            return
        for client in [client for client in self.all.values() if client.alive_at < oldest]:
            self.remove(client, "silent")
        self._oldest = min((client.alive_at for client in self.all.values()), default=inf)

    def fail(self, client: Client, why: str) -> None:
        """A message did not reach it (D13): out, and not let in for a while."""
        now = self._host.now
        self._out[client.life] = now + self._quarantine.length(client.life.name, now)
        self.quarantines += 1
        self.remove(client, why)

    def is_quarantined(self, life: NodeId) -> bool:
        """The next life of a client is let in: no message has failed to reach it."""
        until = self._out.get(life)
        if until is not None and until <= self._host.now:
            del self._out[life]
        return life in self._out

    @property
    def quarantined(self) -> int:
        return sum(until > self._host.now for until in self._out.values())

    def forget_old(self) -> None:
        """Once per heartbeat."""
        now = self._host.now
        while self._tombs and next(iter(self._tombs.values()))[1] < now - TOMB_SECONDS:
            self._tombs.popitem(last=False)
        for life in [life for life, until in self._out.items() if until <= now]:
            del self._out[life]

    def last_of(self, name: str) -> Identity:
        """The newest identity that was removed here; (0, -1): none is remembered."""
        return self._tombs[name][0] if name in self._tombs else (0, -1)
