"""Roster: a membership over a fixed list of names and addresses.  Spec: foundation 3 (Membership).

For the lab, for tests and for small groups whose members never change. It detects nothing: a member that was heard once
stays listed until a newer life of the same name is heard. A member tells its rows to all others itself, when they
change and every ``hello_period`` to one peer at random, so a lost message is made good a little later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.bounds import Label, Number
from holdfast.events import Failed, Joined, MembershipEvent, Updated
from holdfast.host import (
    FANOUT_MAX,
    ROW_BYTES_MAX,
    ROW_NAME_BYTES_MAX,
    ROWS_MAX,
    Address,
    Host,
    Member,
    Message,
    NodeId,
    Timer,
    changed_rows,
)
from holdfast.kit.outbox import Outbox

UNKNOWN_LIFE = 0  # boot of a listed name that was not heard yet

RowValue = Annotated[bytes, Meta(max_length=ROW_BYTES_MAX)]


class RosterHello(Message, frozen=True, tag=4):
    """I am here, and this is what I publish."""

    greeting: ClassVar[bool] = True
    version: Number  # grows with every change of the rows, within a life
    rows: Annotated[tuple[tuple[Label, RowValue], ...], Meta(max_length=ROWS_MAX)]
    wants: bool  # tell me yours


def listed(addresses: Mapping[str, Address], *, topics: Iterable[str] = ()) -> tuple[Member, ...]:
    """A list for ``Roster`` of names whose lives are not known yet; ``topics`` are those that all are known to join."""
    rows = {f"topic:{topic}": b"" for topic in topics}
    return tuple(Member(NodeId(name, UNKNOWN_LIFE), address, rows) for name, address in sorted(addresses.items()))


class Roster:
    """The members of a fixed list, as heard here. ``hello_period`` 0 says nothing and knows what it was given."""

    handles = (RosterHello,)
    fingerprint = b""

    def __init__(self, host: Host, members: Iterable[Member], *, hello_period: float = 1.0) -> None:
        self._host = host
        self._hello_period = hello_period
        self._list = {member.id.name: member for member in members}
        mine = self._list.get(host.me.name)
        self._list[host.me.name] = Member(host.me, host.address, {} if mine is None else mine.rows)
        self._version_of = dict.fromkeys(self._list, 0)  # of the rows of each present life
        self._unheard = [member for member in self._list.values() if member.id.boot == UNKNOWN_LIFE]
        self._version = 1
        self._cached: dict[str | None, tuple[int, tuple[Member, ...]]] = {}
        self._subscribers: list[Callable[[MembershipEvent], None]] = []
        self._outbox = Outbox(host)
        self._timer: Timer | None = None
        self.counts: Counter[str] = Counter()  # stranger, old_life, malformed

    @property
    def version(self) -> int:
        return self._version

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        cached = self._cached.get(topic)
        if cached is None or cached[0] != self._version:
            row = f"topic:{topic}"
            found = (m for m in self._list.values() if m.id.boot != UNKNOWN_LIFE and (topic is None or row in m.rows))
            cached = self._cached[topic] = self._version, tuple(sorted(found, key=lambda member: member.id))
        return cached[1]

    def get(self, name: str) -> Member | None:
        member = self._list.get(name)
        return None if member is None or member.id.boot == UNKNOWN_LIFE else member

    def publish(self, row: str, value: bytes | None) -> None:
        me = self._list[self._host.me.name]
        rows = changed_rows(me.rows, row, value)
        if rows is None:
            return
        self._version_of[me.id.name] += 1
        self._list[me.id.name] = replace(me, rows=rows)
        self._announce(Updated(self._list[me.id.name]))
        for member in self.members():
            self._tell(member, wants=False)

    def subscribe(self, listener: Callable[[MembershipEvent], None]) -> None:
        self._subscribers.append(listener)

    def usable_until(self) -> float:
        return inf

    def start(self) -> None:
        if self._hello_period > 0:
            for member in self.members():
                self._tell(member, wants=True)
            self._on_hello()

    def stop(self) -> None:
        self._outbox.clear()
        if self._timer is not None:
            self._timer.cancel()

    def on_away(self, seconds: float) -> None:
        """A pause changes nothing: no member is judged here."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, RosterHello)
        member = self._list.get(source.name)
        if member is None or source.name == self._host.me.name:
            self.counts["stranger"] += 1
            return
        if source.boot < member.id.boot:
            self.counts["old_life"] += 1
            return
        if len(message.rows) > ROWS_MAX or not all(_fits(row, value) for row, value in message.rows):
            self.counts["malformed"] += 1
            return
        self._learn(member, source, message)
        if message.wants:
            self._tell(self._list[source.name], wants=False)

    def _learn(self, member: Member, source: NodeId, hello: RosterHello) -> None:
        name, rows = source.name, dict(hello.rows)
        if source.boot > member.id.boot:
            if member.id.boot != UNKNOWN_LIFE:
                self._list[name] = replace(member, id=NodeId(name, UNKNOWN_LIFE))
                self._announce(Failed(member, certain=False))
            self._unheard = [other for other in self._unheard if other.id.name != name]
        elif hello.version <= self._version_of[name]:
            return
        self._version_of[name] = hello.version
        self._list[name] = Member(source, member.address, rows)
        self._announce(Updated(self._list[name]) if source == member.id else Joined(self._list[name]))

    def _announce(self, event: MembershipEvent) -> None:
        self._version += 1
        self._host.emit(event)
        for subscriber in tuple(self._subscribers):
            subscriber(event)

    def _tell(self, to: Member, *, wants: bool) -> None:
        """Always by address: the life we know may be over, and only a greeting finds the next one (F3)."""
        if self._hello_period > 0 and to.id.name != self._host.me.name:
            self._outbox.put(to.address, self._hello(wants=wants))

    def _hello(self, *, wants: bool) -> RosterHello:
        me = self._host.me.name
        return RosterHello(self._version_of[me], tuple(sorted(self._list[me].rows.items())), wants)

    def _on_hello(self) -> None:
        # Names that never answered are asked again for ever, 64 in turn: the group is small and they may start any day.
        asked = self._unheard[:FANOUT_MAX]
        self._unheard = self._unheard[FANOUT_MAX:] + asked
        known = [member for member in self.members() if member.id.name != self._host.me.name]
        for member in asked + self._host.random.sample(known, min(1, len(known))):
            self._tell(member, wants=True)
        self._timer = self._host.after(self._hello_period, self._on_hello)


def _fits(row: str, value: bytes) -> bool:
    return 1 <= len(row.encode()) <= ROW_NAME_BYTES_MAX and len(value) <= ROW_BYTES_MAX
