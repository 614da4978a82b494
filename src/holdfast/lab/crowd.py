"""Crowd: a membership for scenarios about identities and keys: a peer that is heard is listed, one that is silent for long is not.

Unlike a roster it lists lives by address, so it shows two processes of one name, as a real group does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import ClassVar

from holdfast.events import Failed, Joined, MembershipEvent
from holdfast.host import Address, Host, Member, Message, NodeId, Timer

BEAT_PERIOD = 0.5
READY_AFTER = 4 * BEAT_PERIOD  # until then a process is no member: it may not have heard all others yet


class CrowdHello(Message, frozen=True, tag=245):
    """I am here."""

    greeting: ClassVar[bool] = True
    address: Address


class Crowd:
    """The processes at a few addresses. ``gone_after`` seconds of silence take a process out of the list."""

    handles = (CrowdHello,)
    fingerprint = b""

    def __init__(self, host: Host, addresses: Iterable[Address], *, gone_after: float) -> None:
        self._host, self._gone_after = host, gone_after
        self._addresses = tuple(address for address in addresses if address != host.address)
        self._listed: dict[NodeId, Member] = {host.me: Member(host.me, host.address, {})}
        self._heard_at: dict[NodeId, float] = {}
        self._listeners: list[Callable[[MembershipEvent], None]] = []
        self._timer: Timer | None = None
        self._ready_at = host.now + READY_AFTER
        self.version = 1

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        if self._host.now < self._ready_at:
            return ()
        newest = {life.name: member for life, member in sorted(self._listed.items())}
        return tuple(member for _, member in sorted(newest.items()))

    def get(self, name: str) -> Member | None:
        return next((member for member in self.members() if member.id.name == name), None)

    def publish(self, row: str, value: bytes | None) -> None:
        """Rows are not read here."""

    def subscribe(self, listener: Callable[[MembershipEvent], None]) -> None:
        self._listeners.append(listener)

    def usable_until(self) -> float:
        return inf

    def start(self) -> None:
        self._on_beat()

    def on_away(self, seconds: float) -> None:
        """A process that was stopped heard no other: all begin anew (F11)."""
        self._heard_at = dict.fromkeys(self._heard_at, self._host.now)

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, CrowdHello)
        self._heard_at[source] = self._host.now
        if source not in self._listed:
            self._listed[source] = Member(source, message.address, {})
            self._say(Joined(self._listed[source]))

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _on_beat(self) -> None:
        self._timer = self._host.after(BEAT_PERIOD, self._on_beat)
        for life in [life for life, at in self._heard_at.items() if at < self._host.now - self._gone_after]:
            del self._heard_at[life]
            member = self._listed.pop(life, None)
            if member is not None:
                self._say(Failed(member, certain=False))
        for address in self._addresses:
            self._host.send(address, CrowdHello(self._host.address))

    def _say(self, event: MembershipEvent) -> None:
        self.version += 1
        for listener in self._listeners:
            listener(event)
