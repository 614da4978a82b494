"""Views as a membership: the view is the member list.  Spec: views D31, 9; foundation 3 (Membership, Standing), 5 (events).

Who is here is agreed; what members say about themselves is a table that they share beside it, as on the ring. A member that leaves marks
its own row first, so the others can tell a goodbye from a death.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from holdfast.bounds import Label, Payload
from holdfast.events import (
    Decided,
    Event,
    Expelled,
    Failed,
    Joined,
    Left,
    MembershipEvent,
    Updated,
    ViewChanged,
    ViewEvent,
    ViewLost,
    ViewRestored,
)
from holdfast.features.views.protocol.survey import ViewSurvey
from holdfast.host import (
    ROWS_BYTES_MAX,
    ROWS_MAX,
    Address,
    Host,
    Member,
    Message,
    NodeId,
    Timer,
    View,
    Views,
    changed_rows,
    rows_bytes,
)
from holdfast.kit import versioned
from holdfast.kit.exchange import Exchange
from holdfast.kit.rows import KEYS_MAX, Row, Rows

TOPIC = "views:rows"
OWN_TOPIC = f"topic:{TOPIC}"
KNOWN_MAX = 64  # addresses that are remembered of members: as many as there may be seeds
GOODBYE_HEARTBEATS = 2  # between the word of leaving and the leaving: a rumour is through by then
SWEEP_SECONDS = 60.0
VERSION_MAX = 1 << 40  # of the rows of one life: no honest one gets near it
FORGOTTEN_AFTER = 600.0  # seconds outside of the view after which a life's rows are given up

RowsOf = Annotated[dict[Label, Payload], Meta(max_length=ROWS_MAX)]
_DECODE = msgspec.msgpack.Decoder(RowsOf).decode


class TakesPart(Views, Protocol):
    """Views that this process can enter and leave: those of the seats, or of ZooKeeper."""

    def take_part(self) -> None: ...
    def withdraw(self) -> None: ...
    def survey(self) -> ViewSurvey: ...
    def metrics(self) -> dict[str, float]: ...


class RowsBeside(Protocol):
    """A list of members that has their rows as they were when each came, for those that come later."""

    def publish(self, version: int, rows: Mapping[str, bytes]) -> None: ...
    def on_rows(self, listener: Callable[[NodeId, int, Mapping[str, bytes]], None]) -> None: ...


class ViewMembership:
    """Offers ``Standing`` over views. Keys have no owners, members no positions."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""
    sole_life = False  # not needed: servers take a higher boot of a name for the end of the former life (F1)
    former_until: float | None = None

    def __init__(self, host: Host, views: TakesPart, exchange: Exchange, *, heartbeat: float, beside: RowsBeside | None = None) -> None:
        self.views, self._beside = views, beside
        self._host, self._exchange, self._heartbeat = host, exchange, heartbeat
        self.rows: Mapping[str, bytes] = {}  # what this process publishes; another object after every change
        self._listed: dict[str, Member] = {}  # by name, while this process is a member
        self._sorted: tuple[Member, ...] = ()
        self._version = 1
        self._known: tuple[Address, ...] = ()
        self._subscribers: list[Callable[[MembershipEvent], None]] = []
        self._outside_since: dict[str, float] = {}  # keys of the table whose lives are not in the view
        self.wanted = False
        self._leaving: Timer | None = None
        self._sweep: Timer | None = None
        self.is_member = False
        self._shared: Rows | None = None
        views.subscribe(self._on_view_event)
        if beside is not None:
            beside.on_rows(self._on_rows_beside)

    @property
    def _table(self) -> Rows:
        assert self._shared is not None, "it is shared from the start on"
        return self._shared

    # Membership.

    @property
    def version(self) -> int:
        return self._version

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        if topic is None or topic == TOPIC:
            return self._sorted
        row = f"topic:{topic}"
        return tuple(member for member in self._sorted if row in member.rows)

    def get(self, name: str) -> Member | None:
        return self._listed.get(name)

    def publish(self, row: str, value: bytes | None) -> None:
        if row == OWN_TOPIC:
            return
        rows = changed_rows(self.rows, row, value)
        if rows is not None:
            self.rows = rows
            self._version += 1
            if self.is_member:
                self._tell()

    def subscribe(self, listener: Callable[[MembershipEvent], None]) -> None:
        self._subscribers.append(listener)

    def usable_until(self) -> float:
        return self.views.leased_until if self.is_member else -inf

    # Standing.

    @property
    def is_joining(self) -> bool:
        return self.wanted and not self.is_member

    @property
    def left(self) -> bool:
        return not self.is_member and not self.wanted and self._leaving is None

    @property
    def is_over(self) -> bool:
        return False

    @property
    def waits_for(self) -> str:
        return self.views.survey().lost_why if self.is_joining else ""

    @property
    def known(self) -> tuple[Address, ...]:
        return self._known

    def seeds(self, addresses: tuple[Address, ...]) -> None:
        """Views are entered at the seats, so nothing is asked there; other machines know the seeds from the settings."""

    def join(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        self.wanted = True
        if self._beside is not None:
            self._put(msgspec.msgpack.encode(self.rows))  # It enters with them.
        self.views.take_part()

    def leave(self) -> None:
        """Say so, let it spread, then go."""
        if not self.wanted:
            return
        self.wanted = False
        if not self.is_member:
            self.views.withdraw()
            return
        self._put(None)
        self._leaving = self._host.after(GOODBYE_HEARTBEATS * self._heartbeat, self._on_said)

    def positions(self) -> Mapping[NodeId, int]:
        return {}

    def metrics(self) -> Mapping[str, float]:
        """Asked for before ``start``, too: the HTTP server is made first."""
        return {"members": float(len(self._sorted)), "rows": 0.0 if self._shared is None else float(len(self._shared))}

    # Machine.

    def start(self) -> None:
        self._shared = self._exchange.rows(TOPIC, versioned.newest, gone=versioned.gone, valid=_valid)
        self._shared.on_change(self._on_row)
        self._sweep = self._host.after(SWEEP_SECONDS, self._on_sweep)

    def on_message(self, source: NodeId, message: Message) -> None:
        raise AssertionError("it owns no messages: views and the exchange of rows do")

    def on_away(self, seconds: float) -> None:
        """The client of the views looks at its lease."""

    def stop(self) -> None:
        for timer in (self._sweep, self._leaving):
            if timer is not None:
                timer.cancel()

    # Views.

    def _on_view_event(self, event: ViewEvent) -> None:
        if isinstance(event, ViewChanged | ViewRestored):
            self._enter(event.view)
        elif isinstance(event, ViewLost) and self.is_member:
            self._go_out()
            if self.wanted:
                self._announce(Expelled(event.why))

    def _enter(self, view: View) -> None:
        """The list is this view now."""
        begins, self.is_member = not self.is_member, True
        listed = {member.id.name: self._member(member.id, member.address) for member in view.members}
        gone = [former for name, former in self._listed.items() if name not in listed or listed[name].id != former.id]
        came = [member for name, member in listed.items() if name not in self._listed or self._listed[name].id != member.id]
        self._set(listed)
        self._known = tuple(member.address for member in view.members if member.id != self._host.me)[:KNOWN_MAX] or self._known
        if begins:
            self._tell()
            self._compare()
        for member in gone:
            self._announce_gone(member)
        for member in came:
            self._announce(Joined(member))

    def _go_out(self) -> None:
        self.is_member = False
        self._set({})

    def _announce_gone(self, member: Member) -> None:
        if self._is_gone(str(member.id)):
            self._announce(Left(member))
            return
        self._announce(Decided(member))
        self._announce(Failed(member, certain=False))

    # Rows.

    def _tell(self) -> None:
        """All members shall know what this one publishes."""
        self._put(msgspec.msgpack.encode(self.rows))
        if (me := self._listed.get(self._host.me.name)) is not None and me.rows != self.rows:
            self._change(self._member(me.id, me.address))

    def _put(self, body: bytes | None) -> None:
        """Above whatever the table says of this life: another member may have given it up while it was away."""
        key = str(self._host.me)
        kept = self._table.raw(key)
        former = None if kept is None else versioned.read(kept)
        if former is not None and (former.author, former.body) == (self._host.me.name, body):
            return
        version = 1 if former is None else former.version + 1
        if version <= VERSION_MAX:  # Beyond it a peer lied, and this row is lost until the life is over.
            self._table.set(key, versioned.Versioned(version, self._host.me.name, body).encode())
            if self._beside is not None and body is not None:
                self._beside.publish(version, self.rows)

    def _on_rows_beside(self, life: NodeId, version: int, rows: Mapping[str, bytes]) -> None:
        """As if that life had sent them: the table takes the newest."""
        body = msgspec.msgpack.encode(rows)
        self._table.learn([Row(str(life), versioned.Versioned(version, life.name, body).encode(), 0.0)])

    def _on_row(self, key: str, before: bytes | None, now: bytes) -> None:
        del before, now
        if key == str(self._host.me):
            if self.is_member and self.wanted:
                self._host.after(0.0, self._tell_again)
            return
        name = key.rpartition("#")[0]
        member = self._listed.get(name)
        if member is not None and str(member.id) == key and not self._is_gone(key):
            self._change(self._member(member.id, member.address))

    def _tell_again(self) -> None:
        """It is here, and says so, whatever another member wrote."""
        if self.is_member and self.wanted:
            self._tell()

    def _member(self, life: NodeId, address: Address) -> Member:
        if life == self._host.me:
            return Member(life, address, dict(self.rows))
        value = self._table.get(str(life))
        return Member(life, address, {} if value is None else _read(value))

    def _change(self, member: Member) -> None:
        former = self._listed[member.id.name]
        if former.rows != member.rows:
            self._set({**self._listed, member.id.name: member})
            self._announce(Updated(member))

    def _is_gone(self, key: str) -> bool:
        return self._table.is_gone(key)

    def _set(self, listed: dict[str, Member]) -> None:
        self._listed = listed
        self._sorted = tuple(sorted(listed.values(), key=_id_of))
        self._version += 1

    def _compare(self) -> None:
        """What was published before it came: with one member at once, instead of at the next period of the exchange."""
        others = [member.id for member in self._sorted if member.id != self._host.me]
        if others:
            self._exchange.compare(TOPIC, self._host.random.choice(others))

    def _on_sweep(self) -> None:
        """The first of the members gives up the rows of lives that have been gone for long; a table of all lives ever would fill up."""
        self._sweep = self._host.after(SWEEP_SECONDS, self._on_sweep)
        now = self._host.now
        lives = {str(member.id) for member in self._sorted}
        outside = [key for key, _ in self._table.items() if key not in lives]
        self._outside_since = {key: self._outside_since.get(key, now) for key in outside} if self.is_member else {}
        if not self.is_member or self._sorted[0].id != self._host.me:
            return
        over = [key for key, since in self._outside_since.items() if now - since >= FORGOTTEN_AFTER or len(outside) > KEYS_MAX // 2]
        items = []
        for key in over:
            value = self._table.get(key)
            if value is not None:
                version = versioned.read(value).version + 1
                items.append((key, versioned.Versioned(version, self._host.me.name, None).encode()))
        self._table.update(items)

    def _on_said(self) -> None:
        self._leaving = None
        self._go_out()
        self.views.withdraw()

    def _announce(self, event: Event) -> None:
        self._host.emit(event)
        if isinstance(event, MembershipEvent):
            for subscriber in tuple(self._subscribers):
                subscriber(event)


def _valid(value: bytes) -> bool:
    """A peer sent it: is it a version of rows, within their limits?"""
    if not versioned.valid(value):
        return False
    found = versioned.read(value)
    body = found.body
    try:
        return found.version <= VERSION_MAX and (body is None or rows_bytes(_DECODE(body)) <= ROWS_BYTES_MAX)
    except versioned.UNREADABLE:
        return False


def _read(value: bytes) -> dict[str, bytes]:
    body = versioned.read(value).body
    return {} if body is None else _DECODE(body)


def _id_of(member: Member) -> NodeId:
    return member.id
