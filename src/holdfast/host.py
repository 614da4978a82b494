"""The interfaces every protocol is written against; the most-read file.  Spec: foundation 1-3.

A protocol is a ``Machine``: a pure state machine that knows a ``Host`` and nothing else. The host brings it
messages and time, and carries away what it sends, saves and emits. ``lab.host`` and ``net.host`` are the two
hosts; the machines are the same objects in both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from random import Random
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from holdfast.bounds import Growing, Name, Number, Small
from holdfast.bounds import Host as HostName
from holdfast.errors import ConfigError, shown

if TYPE_CHECKING:
    from holdfast.events import Event, MembershipEvent, ViewEvent

T = TypeVar("T")
HealthSource = Literal["any", "own", "false_positives"]  # whose word makes a member unhealthy

DATAGRAM_BYTES_MAX = 1200  # sealed; below the smallest MTU of IPv6 (1280) with room for its headers
MESSAGE_BYTES_MAX = 1 << 20  # sealed; what one stream frame may hold
FANOUT_MAX = 64  # F17: peers that one callback may send to
SEEDS_MAX = 64  # F17: all of them are asked at once
AWAY_DATAGRAMS_MAX = 4096  # F10: datagrams read after a pause before the first late timer runs
CALM_DATAGRAMS_MAX = 64  # F10: datagrams read in calm before due timers get their turn
ROWS_MAX = 64  # that a member publishes; foundation 3
ROW_BYTES_MAX = 256
ROW_NAME_BYTES_MAX = 72  # "topic:" and the longest topic
ROWS_BYTES_MAX = 3072  # all rows of a member, where a table carries them: a value there stays below 4096 bytes
TAG_ROW = "tag:"  # rows that carry a user's tags
SLEEP_MAX = 1.0  # F10: poll timeouts do not count suspended time, so no host sleeps longer


class NodeId(NamedTuple):
    """One life of one agent process (F1). Code that compares identities compares both fields."""

    name: Name
    boot: Growing

    def __str__(self) -> str:
        return f"{self.name}#{self.boot}"


class Address(NamedTuple):
    """Where a process listens: a literal IP address (or a lab name) and a port, the same for UDP and TCP."""

    host: HostName
    port: Small

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Message(Struct, frozen=True, array_like=True, gc=False):
    """Base of everything that travels. Subclasses give ``tag=`` an integer of their folder's range (foundation 6).

    On the wire it is a MessagePack array: the tag, then the fields in order. It grows only at the end, by
    fields with defaults; a tag is never used again. Fields are immutable, because the lab passes references.
    """

    greeting: ClassVar[bool] = False  # F3: may be sent to an address whose life is not known yet
    carried: ClassVar[bool] = False  # views D30: may also come by the overlay, as if its sender had sent it directly


class Timer(Protocol):
    """A callback that will run once."""

    @property
    def due_at(self) -> float: ...
    def cancel(self) -> None: ...


class Storage(Protocol):
    """Small durable state. It never blocks the loop; in the lab it can tear, fill up and lose what was not confirmed."""

    @property
    def fresh(self) -> bool:
        """Nothing was ever saved under this name in this state directory."""

    def load(self) -> Mapping[str, bytes]:
        """Everything confirmed before; raises ``StorageDamaged`` instead of guessing."""

    def save(self, key: str, value: bytes | None, then: Callable[[], None]) -> None:
        """Durable, then ``then()``. Completes in call order, many per sync. What must not be forgotten is sent from
        ``then``. A failed disk never calls it: the machine falls silent and ``StorageFailed`` is emitted."""

    def part(self, name: str) -> Storage:
        """The corner of this storage that belongs to one machine: own keys, own ``fresh``."""


class Host(Protocol):
    """All that a machine knows of the world. Calls return at once; nothing here raises for what a peer does."""

    me: NodeId
    address: Address  # where peers reach this process
    random: Random  # the only source of chance
    storage: Storage

    @property
    def now(self) -> float:
        """Seconds on a clock that counts suspended time; meaningless on another machine (F7)."""

    @property
    def late(self) -> float:
        """Seconds the running timer callback is overdue; 0.0 in message handlers."""

    def wall(self) -> float:
        """Wall-clock seconds, for numbers that outlive a life (boot, first token) and for nothing else (F7)."""

    def at(self, due: float, callback: Callable[[], None]) -> Timer: ...
    def after(self, delay: float, callback: Callable[[], None]) -> Timer: ...

    def send(self, to: NodeId | Address, message: Message) -> None:
        """May be lost, doubled, reordered, late. Up to 1200 sealed bytes: a datagram; up to 1 MiB: the stream to that
        peer, as a whole or not at all. Queues per peer are bounded; the overflow is dropped and counted."""

    def meet(self, peer: NodeId, address: Address) -> None:
        """A peer said that this life listens there. Hearing from it directly has the same effect."""

    def emit(self, event: Event) -> None: ...


class Machine(Protocol):
    """One protocol, or one part of the kit: pure, single-threaded, runs to the end of each call."""

    @property
    def handles(self) -> Sequence[type[Message]]:
        """The message types it owns; each type has one owner per node."""

    @property
    def fingerprint(self) -> bytes:
        """F4: the numbers that must match at both ends, as ``fingerprint(...)`` writes them; b"" if none."""

    def start(self) -> None: ...
    def on_message(self, source: NodeId, message: Message) -> None: ...
    def on_away(self, seconds: float) -> None:
        """The process was stopped for at least so long; called before the datagrams that waited (F10)."""

    def stop(self) -> None: ...


class MemberStatus(IntEnum):
    """What one node believes of a member; who is gone is not listed."""

    ALIVE = 0
    SUSPECTED = 1
    DECIDED = 2


class Member(Struct, frozen=True):
    """One line of a member list."""

    id: NodeId
    address: Address
    rows: Mapping[str, bytes]  # what it publishes about itself: tags, topics, flags of other machines
    status: MemberStatus = MemberStatus.ALIVE

    @property
    def name(self) -> str:
        return self.id.name

    @property
    def tags(self) -> dict[str, str]:
        """What its users said about it. Bytes of a peer: whatever is no text is shown as replacement characters."""
        return {row[len(TAG_ROW) :]: value.decode("utf-8", "replace") for row, value in self.rows.items() if row.startswith(TAG_ROW)}

    def __repr__(self) -> str:
        """For logs and debuggers: who, where, in which state, with its tags; what machines publish beside them is counted."""
        tags = self.tags
        words = [f"{self.id} at {self.address}", self.status.name.lower(), *(f"{name}={text!r}" for name, text in sorted(tags.items()))]
        more = len(self.rows) - len(tags)
        return f"<Member {', '.join(words)}{f', {more} more rows' if more else ''}>"


class Grant(Struct, frozen=True):
    """What an agent gave to a client: it may act until the deadline, on this machine's clock; the resource compares tokens (F16)."""

    kind: str  # "owner", "lead", "ticket"
    name: str
    token: int
    deadline: float
    number: int = 0  # of a ticket


@runtime_checkable
class Membership(Protocol):
    """Who is here, as known here. Hints: no safety rule may rest on it (F15)."""

    @property
    def version(self) -> int:
        """Grows with every change of the list or a row; local, comparable only with itself."""

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        """Sorted by id, self included."""

    def get(self, name: str) -> Member | None: ...
    def publish(self, row: str, value: bytes | None) -> None:
        """Own rows only; 256 bytes each, 64 rows."""

    def subscribe(self, listener: Callable[[MembershipEvent], None]) -> None: ...
    def usable_until(self) -> float:
        """ring: safe_until; views: lease end; gossip: infinity."""


@runtime_checkable
class Lists(Membership, Protocol):
    """Weak lists, which may differ between members at the same time, with a report on their quality: for an election among all (H5)."""

    @property
    def sick(self) -> bool: ...  # this process itself looks sick: its probes fail, and the helpers that it asked are silent, too
    def known_names(self) -> frozenset[str]: ...  # of members that are listed, and of those that failed and are still remembered
    def settled(self, member: NodeId) -> bool: ...  # a member for so long that all others list it, as it says itself
    def unhealthy(self, member: NodeId, source: HealthSource = "any") -> float: ...  # suspicions lately, decayed; 0.0 is healthy
    def c_measured(self) -> int: ...  # so many lists lacked a live, settled member at some time lately, as far as it was heard
    def turbulent(self) -> bool: ...  # that happened just now
    def observed_for(self) -> float: ...  # seconds since this process settled; what it measured covers no longer time
    def rtt_p99(self) -> float: ...  # of its own probes, seconds; 0.0 before the first was answered
    def probe_now(self, member: NodeId) -> None: ...  # next, and at once if no other probe is open


class Standing(Membership, Protocol):
    """A membership as the agent that runs it uses it: enter and leave the group, and say how it stands there.

    Every kind of membership offers it. The agent does not ask which kind it is.
    """

    sole_life: bool  # F6: every former life of this name is over, because the caller holds the lock of the state directory
    former_until: float | None  # nothing that a former life told its clients is used after that; None: not known (F6)

    @property
    def is_member(self) -> bool: ...
    @property
    def is_joining(self) -> bool:
        """An attempt to join is under way."""

    @property
    def wanted(self) -> bool:
        """Joining was asked for, and leaving was not: it tries until it is a member, and again when it was removed."""

    @property
    def left(self) -> bool:
        """It is no member, and nothing remains to be said: the process may end."""

    @property
    def is_over(self) -> bool:
        """This life has left for good: only another one can enter the group."""

    @property
    def waits_for(self) -> str:
        """What keeps a process out that wants to be a member, in a sentence; "" if it is a member, or does not want to be one."""

    @property
    def rows(self) -> Mapping[str, bytes]:
        """What this process publishes, member or not. Another object after every change."""

    @property
    def known(self) -> tuple[Address, ...]:
        """Where members were last known, in this life or a former one."""

    def seeds(self, addresses: tuple[Address, ...]) -> None:
        """Where to ask for the group from now on."""

    def join(self) -> None:
        """Enter the group, and enter it again after a removal."""

    def leave(self) -> None:
        """Leave in good order; ``left`` says when it is done."""

    def positions(self) -> Mapping[NodeId, int]:
        """Where members are among the keys, 64 bits; empty if this membership has no positions."""

    def metrics(self) -> Mapping[str, float]:
        """Numbers by name. Counters never fall in a life; the rest is as of now."""


class Ownership(NamedTuple):
    """This member may act for a key until then, on its own clock; the resource compares tokens."""

    token: int
    until: float


class Keyed(Protocol):
    """A membership in which keys have owners. A membership without owners does not offer it."""

    def owner(self, key: str | bytes) -> Member | None:
        """A hint, from the own list."""

    def owns(self, key: str | bytes) -> Ownership | None:
        """This process may act for the key. None: it may not, or not yet. Told to a client it is binding (F14)."""

    def withdrawn(self) -> None:
        """The clients have stopped: no answer of ``owns`` is used any more."""


class ViewId(NamedTuple):
    """Names one view, everywhere and for ever (views G1). Ids compare as tuples; the later of two views of one agent is larger."""

    number: Growing
    name: Name  # of the smallest server in the view
    boot: Growing

    def __str__(self) -> str:
        return f"{self.number}/{self.name}#{self.boot}" if self.boot else str(self.number)


class ViewMember(NamedTuple):
    """One client of a view: a life that was attached to a server when the view was agreed."""

    id: NodeId
    address: Address
    attach: Number  # grows with every attachment of this life to a server
    server: NodeId


class View(Struct, frozen=True):
    """An agreed list: the same id means the same servers and members, everywhere."""

    id: ViewId
    servers: tuple[NodeId, ...]  # sorted
    members: tuple[ViewMember, ...]  # sorted by id
    fleet: int = 0  # members of the largest view that its servers delivered lately, this one included

    @property
    def number(self) -> int:
        return self.id.number

    @property
    def size(self) -> int:
        return len(self.members)

    def find(self, name: str) -> ViewMember | None:
        """The member of this name."""
        at = bisect_left(self.members, name, key=_name_of)
        found = self.members[at] if at < len(self.members) else None
        return found if found is not None and found.id.name == name else None


class ViewState(IntEnum):
    """How an agent stands with its view."""

    STABLE = 0  # the lease runs, and no change is known to be under way
    CHANGING = 1  # the lease runs, and another view will come
    LOST = 2  # no lease: this agent believes in no view


class Carried(IntEnum):
    """What became of a message that was given to ``Views.carry``."""

    DELIVERED = 0
    NOT_IN_VIEW = 1  # the receiver is not in the present view, or there is none; nothing was sent
    TRIPPED = 2  # not delivered in time; a newer view, ``Changing`` or ``ViewLost`` comes or came (views G5). It may have arrived
    BUSY = 3  # too many messages are under way here or at a server; nothing was delivered
    TOO_LARGE = 4


@runtime_checkable
class Views(Protocol):
    """Agreed views (views 1): every member of a view can reach every other one, directly or by ``carry``, or another view comes."""

    @property
    def view(self) -> View | None:
        """The last one that was installed; None before the first and while it is lost."""

    @property
    def state(self) -> ViewState: ...
    @property
    def leased_until(self) -> float:
        """Until then, on this clock, this agent may count on its view; compared at every use (F9). -inf: there was never a lease."""

    @property
    def settled_at(self) -> float:
        """From then on, while leased and not changing, all that this view left out have stopped (views G6). inf: no view."""

    @property
    def settle(self) -> float:
        """Seconds from the installation of a view to ``settled_at``, and from ``left_at`` to the end of the last lease on that view."""

    @property
    def lease(self) -> float:
        """The longest time for which a lease runs on without word from the server, in seconds."""

    @property
    def left_at(self) -> float | None:
        """When it first left the attachment that its view lists; -inf: no view was ever installed; None: it is still attached so, or these
        views never say (views 5Z)."""

    @property
    def settled(self) -> bool:
        """Leased, stable, and installed long enough ago."""

    def subscribe(self, listener: Callable[[ViewEvent], None]) -> None: ...
    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        """Bring a message of a ``carried`` type to a member of the present view, round whatever is cut. ``done`` runs once."""

    def trip(self, why: str, *, above: int = 0) -> bool:
        """Believe the view no more, and force another one, whose number is also greater than ``above``. False: it was done too lately.

        A number that is further ahead of the clock than an honest one can be is left out: ``above`` may be the word of a peer."""

    def hurry(self) -> None:
        """A peer knows a newer view: ask for it now instead of with the next tick. Costs one message, and twice in a tick none."""


def only(listener: Callable[[MembershipEvent], None], *kinds: type[MembershipEvent]) -> Callable[[MembershipEvent], None]:
    """For ``Membership.subscribe``: a listener that hears events of these kinds. A change of rows is no affair of most machines."""

    def hear(event: MembershipEvent) -> None:
        if isinstance(event, kinds):
            listener(event)

    return hear


def changed_rows(rows: Mapping[str, bytes], row: str, value: bytes | None) -> dict[str, bytes] | None:
    """A member's rows with this value of one row, or without it. None: they stay the same. Raises ``ConfigError`` for what is too much."""
    changed = {**{name: kept for name, kept in rows.items() if name != row}, **({} if value is None else {row: value})}
    if value is not None and not 1 <= len(row.encode()) <= ROW_NAME_BYTES_MAX:
        raise ConfigError(f"row: {shown(row)} has {len(row.encode())} bytes; accepted are 1 to {ROW_NAME_BYTES_MAX}")
    if value is not None and len(value) > ROW_BYTES_MAX:
        raise ConfigError(f"row {shown(row)}: {len(value)} bytes; accepted are at most {ROW_BYTES_MAX}")
    if len(changed) > ROWS_MAX:
        raise ConfigError(f"row {shown(row)}: would be row {len(changed)}; a member publishes at most {ROWS_MAX}")
    if rows_bytes(changed) > ROWS_BYTES_MAX:
        raise ConfigError(f"row {shown(row)}: all rows of a member together may have {ROWS_BYTES_MAX} bytes")
    return None if changed == rows else changed


def rows_bytes(rows: Mapping[str, bytes]) -> int:
    return sum(len(name.encode()) + len(value) for name, value in rows.items())


def _name_of(member: ViewMember) -> str:
    return member.id.name


def fingerprint(**numbers: float | str) -> bytes:
    """The bytes two ends compare (F4). Readable, so that a mismatch can name the field and both values."""
    return ";".join(f"{name}={value!r}" for name, value in sorted(numbers.items())).encode()
