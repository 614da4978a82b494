"""Members that gossip, as the lab runs them: watched ones for checkers, plain ones for what is measured by the thousand.  Spec: gossip 7.

A watched member is the one that ships with its doors open: it notes the message that it serves, what it sends, every change of its table,
and what its subscribers hear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple

from holdfast.bounds import MEMBERS_MAX
from holdfast.events import MembershipEvent
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.features.gossip.protocol.table import EMPTY, Base, Entry, Tombstone
from holdfast.host import Address, Host, Machine, Message, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.lab.network import PORT


class Change(NamedTuple):
    """One entry of a table, before and after; None: there was none, or it was forgotten."""

    name: str
    former: Entry | None
    new: Entry | None


class WatchedNode(GossipNode):
    """Keeps what happened since the checkers looked last."""

    message: tuple[NodeId, Message] | None
    away: tuple[float, float]
    n_max: int

    def __init__(self, host: Host, *arguments: Any, **options: Any) -> None:
        super().__init__(host, *arguments, **options)
        self.message = None  # the one that is served in this event
        self.changes: list[Change] = []
        self.sends: list[tuple[str, Message]] = []  # to whom, by name
        self.told: list[MembershipEvent] = []  # what subscribers heard
        self.n_max = self.table.n  # the most members that it ever listed, also in the midst of an event
        self.away = (-inf, 0.0)  # the last pause: when it was over on the own clock, and how long it was
        self._clock = host
        self._open_doors()
        self.subscribe(self.told.append)

    def on_message(self, source: NodeId, message: Message) -> None:
        self.message = (source, message)
        super().on_message(source, message)

    def on_away(self, seconds: float) -> None:
        if self.core.active:  # One that takes no part yet holds no opinion that has grown old.
            self.away = (self._clock.now, seconds)
        super().on_away(seconds)

    def forget_event(self) -> None:
        """The checkers have looked."""
        self.message = None
        self.changes.clear()
        self.sends.clear()
        self.told.clear()

    def _open_doors(self) -> None:
        table, core = self.core.table, self.core
        put, drop = table.put, table.drop

        def noted_put(new: Entry, tombstone: Tombstone | None = None) -> None:
            name = new.id.name
            self.changes.append(Change(name, table.get(name), new))
            put(new, tombstone)
            self.n_max = max(self.n_max, table.n)

        def noted_drop(name: str) -> None:
            self.changes.append(Change(name, table.get(name), None))
            drop(name)

        table.put, table.drop = noted_put, noted_drop  # type: ignore[method-assign]
        for door in ("send", "answer", "put"):
            setattr(core, door, partial(self._on_send, getattr(core, door)))

    def _on_send(self, send: Callable[[Any, Message], None], to: Any, message: Message) -> None:
        self.sends.append((_name_of(to), message))
        send(to, message)


def _name_of(to: Any) -> str:
    if isinstance(to, Address):
        return to.host
    return str(to.name)


def address_of(name: str) -> Address:
    return Address(name, PORT)


def machines(
    host: Host, profile: Profile, *, kind: type[GossipNode] = WatchedNode, base: Base = EMPTY, members_max: int = MEMBERS_MAX
) -> list[Machine]:
    """The machines of one life."""
    config = profile.config
    broadcast = Broadcast(host)
    exchange = Exchange(host, broadcast, ae_period=config.ae_period)
    node = kind(host, config, broadcast, exchange, rules=profile.rules, base=base, members_max=members_max)
    broadcast.over(node)
    return [node, broadcast, exchange]


class Joiner:
    """Lets a member join as soon as its process runs. It stands behind it in the list of machines."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""

    def __init__(self, node: GossipNode) -> None:
        self._node = node

    def start(self) -> None:
        self._node.join()

    def on_message(self, source: NodeId, message: Message) -> None:
        raise AssertionError("it handles nothing")

    def on_away(self, seconds: float) -> None:
        """It has done its work."""

    def stop(self) -> None:
        """It has done its work."""
