"""Broadcast: rumours that reach all listeners of a topic, with high probability.  Spec: tickets 5.9; foundation 4.

The paper (001, section 2) asks for "any lightweight probabilistic" multicast and calls it PrCast. Ours is
infect-and-die: a member that hears a rumour for the first time delivers it and passes it on once, to a few members of
the topic drawn at random. With an effective fanout of ln N + c all are reached with probability about
exp(-e^-c). What is missed stays missed here; ``kit.rows`` closes the gap for state that must arrive.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from math import ceil, log
from typing import Annotated, NamedTuple

from msgspec import Meta

from holdfast.bounds import MEMBERS_MAX, Number, Small
from holdfast.errors import ConfigError, shown
from holdfast.host import FANOUT_MAX, Host, Member, Membership, Message, NodeId, Timer
from holdfast.kit.outbox import Outbox

TOPIC_BYTES_MAX = 64
PAYLOAD_BYTES_MAX = 16 * 1024  # each member sends it ``fanout`` times: by datagram up to about 1000 bytes, then by stream
FANOUT_MIN = 3  # tickets 4
SPREAD = 4.0  # c: all members with probability exp(-e^-4) = 0.98
LOSS = 0.05  # assumed until it is measured
HOPS_MAX = 32  # what a peer may ask of us: e^29 members
WINDOW_MAX = 1024  # sequence numbers remembered above the contiguous ones, per life and topic (tickets 5.9)
TOPICS_MAX = 4096  # topics whose last number and members are kept; users may cast to a new one every time
WINDOWS_MAX = 2 * MEMBERS_MAX  # lives times topics remembered; a full table drops rumours, it never delivers one twice
FORGET_AFTER = 600.0  # seconds after the member left: no datagram lives that long (tickets 4, tombstone_ttl)
SWEEP_PERIOD = 60.0

Topic = Annotated[str, Meta(max_length=TOPIC_BYTES_MAX)]
RumourBytes = Annotated[bytes, Meta(max_length=PAYLOAD_BYTES_MAX)]


class RumourId(NamedTuple):
    """One rumour: which life began it, for whom, and its how-manieth it was."""

    origin: NodeId
    topic: str
    seq: int


class Rumour(Message, frozen=True, tag=3):
    """News on its way."""

    origin: NodeId
    topic: Topic
    seq: Number  # from 1, per origin's life and topic
    hops: Small  # how often it may still be passed on
    payload: RumourBytes


Listener = Callable[[RumourId, bytes], None]


def fanout(members: int, *, spread: float = SPREAD, loss: float = LOSS) -> int:
    """Peers to whom each member passes a rumour on: (ln N + c) must arrive (tickets 4)."""
    assert members >= 1
    assert 0 <= loss < 1
    return min(FANOUT_MAX, max(FANOUT_MIN, ceil((log(members) + spread) / (1 - loss))))


def hops(members: int) -> int:
    """How far a rumour may travel (tickets 4)."""
    assert members >= 1
    return min(HOPS_MAX, ceil(log(members)) + 3)


class Window:
    """Which sequence numbers of one life and topic were seen: all up to ``floor``, and ``above``."""

    __slots__ = ("above", "floor")

    def __init__(self) -> None:
        self.floor = 0
        self.above: set[int] = set()

    def first_sight(self, seq: int) -> bool:
        """True once per number. Numbers that fall out of the window count as seen: at most once comes before at least once."""
        if seq <= self.floor or seq in self.above:
            return False
        self.above.add(seq)
        if len(self.above) > WINDOW_MAX:
            self.floor = min(self.above)
            self.above.discard(self.floor)
        while self.floor + 1 in self.above:
            self.floor += 1
            self.above.discard(self.floor)
        return True


class Broadcast:
    """PrCast over the topics of a membership. A rumour is delivered at most once per life, and not to its origin."""

    handles = (Rumour,)
    fingerprint = b""

    _membership: Membership  # whose members and topics it uses

    def __init__(self, host: Host, membership: Membership | None = None, *, spread: float = SPREAD, loss: float = LOSS) -> None:
        """Without ``membership`` it waits for ``over``: a membership that keeps its own list by rumours is built after it."""
        self._host = host
        if membership is not None:
            self._membership = membership
        self._spread, self._loss = spread, loss
        self._listeners: dict[str, list[Listener]] = {}
        self._last_seq: Counter[str] = Counter()
        self._forgotten = 0  # no topic that is not in it had a higher one
        self._windows: dict[tuple[NodeId, str], Window] = {}
        self._gone_at: dict[NodeId, float] = {}  # origins with a window that the membership does not list
        self._peers: dict[str, tuple[int, tuple[Member, ...]]] = {}  # per topic, with the version it was read at
        self._outbox = Outbox(host)
        self._sweep: Timer | None = None
        self.counts: Counter[str] = Counter()  # cast, delivered, duplicate, not_joined, malformed, table_full

    def over(self, membership: Membership) -> None:
        """Use this membership. Called once, before the node starts."""
        assert not hasattr(self, "_membership"), "a broadcast has one membership"
        self._membership = membership

    def cast(self, topic: str, payload: bytes) -> RumourId:
        """Begin a rumour. It is not delivered to the listeners of this node: they know."""
        self._check(topic, payload)
        self.counts["cast"] += 1
        peers = self.peers(topic)
        # One hop is the sending itself.
        rumour = Rumour(self._host.me, topic, self._next_seq(topic), hops(len(peers) + 1) - 1, payload)
        self._pass_on(rumour, peers)
        return RumourId(rumour.origin, topic, rumour.seq)

    def on_rumour(self, topic: str, listener: Listener) -> None:
        """Join a topic: the membership tells others, rumours come to ``listener``, and this node passes them on."""
        self._check(topic, b"")
        if topic not in self._listeners:
            self._membership.publish(f"topic:{topic}", b"")
        self._listeners.setdefault(topic, []).append(listener)

    def leave(self, topic: str) -> None:
        if self._listeners.pop(topic, None):
            self._membership.publish(f"topic:{topic}", None)

    def peers(self, topic: str) -> tuple[Member, ...]:
        """The others in a topic, sorted by id."""
        version = self._membership.version
        cached = self._peers.get(topic)
        if cached is None or cached[0] != version:
            members, me = self._membership.members(topic), self._host.me.name
            # Sorted by id, so all lives of one name stand together; a large group does this once per member for every crash.
            at = bisect_left(members, me, key=_name_of)
            after = bisect_right(members, me, at, key=_name_of)
            cached = version, (*members[:at], *members[after:])
            if len(self._peers) >= TOPICS_MAX:
                self._peers.clear()
            self._peers[topic] = cached
        return cached[1]

    def start(self) -> None:
        self._sweep = self._host.after(SWEEP_PERIOD, self._on_sweep)

    def stop(self) -> None:
        self._outbox.clear()
        if self._sweep is not None:
            self._sweep.cancel()

    def on_away(self, seconds: float) -> None:
        """A pause changes nothing: rumours have no deadlines."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Rumour)
        if message.origin.name == self._host.me.name:
            return  # Our own, or that of a former life: a rumour is not told to its origin.
        if len(message.payload) > PAYLOAD_BYTES_MAX or not 1 <= len(message.topic.encode()) <= TOPIC_BYTES_MAX:
            self.counts["malformed"] += 1
            return
        if message.topic not in self._listeners:
            self.counts["not_joined"] += 1  # The sender's list is older than our leaving.
            return
        if not self._first_sight(message):
            return
        self.counts["delivered"] += 1
        rumour_id = RumourId(message.origin, message.topic, message.seq)
        for listener in tuple(self._listeners[message.topic]):
            listener(rumour_id, message.payload)
        self._forward(message)

    def _next_seq(self, topic: str) -> int:
        """Never one that this life gave the topic before."""
        if topic not in self._last_seq and len(self._last_seq) >= TOPICS_MAX:
            self._forgotten = max(self._forgotten, *self._last_seq.values())
            self._last_seq.clear()
        self._last_seq[topic] = seq = max(self._last_seq[topic], self._forgotten) + 1
        return seq

    def _first_sight(self, rumour: Rumour) -> bool:
        key = (rumour.origin, rumour.topic)
        window = self._windows.get(key)
        if window is None:
            if len(self._windows) >= WINDOWS_MAX:
                self.counts["table_full"] += 1
                return False
            window = self._windows[key] = Window()
        first = window.first_sight(rumour.seq)
        if not first:
            self.counts["duplicate"] += 1
        return first

    def _forward(self, rumour: Rumour) -> None:
        left = min(rumour.hops, HOPS_MAX)
        if left > 0:
            onward = Rumour(rumour.origin, rumour.topic, rumour.seq, left - 1, rumour.payload)
            self._pass_on(onward, self.peers(rumour.topic))

    def _pass_on(self, rumour: Rumour, peers: tuple[Member, ...]) -> None:
        wanted = fanout(len(peers) + 1, spread=self._spread, loss=self._loss)
        for peer in self._host.random.sample(peers, min(wanted, len(peers))):
            self._outbox.put_member(peer, rumour)

    def _check(self, topic: str, payload: bytes) -> None:
        if not 1 <= len(topic.encode()) <= TOPIC_BYTES_MAX:
            raise ConfigError(f"topic: {shown(topic)} has {len(topic.encode())} bytes; accepted are 1 to {TOPIC_BYTES_MAX}")
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise ConfigError(f"payload: {len(payload)} bytes; accepted are at most {PAYLOAD_BYTES_MAX}")

    def _on_sweep(self) -> None:
        """Forget the windows of lives that have been gone for so long that none of their rumours is still travelling."""
        now = self._host.now
        listed = {member.id for member in self._membership.members()}
        origins = dict.fromkeys(origin for origin, _ in self._windows)
        self._gone_at = {origin: self._gone_at.get(origin, now) for origin in origins if origin not in listed}
        over = {origin for origin, gone_at in self._gone_at.items() if now - gone_at >= FORGET_AFTER}
        self._windows = {key: window for key, window in self._windows.items() if key[0] not in over}
        self._sweep = self._host.after(SWEEP_PERIOD, self._on_sweep)


def _name_of(member: Member) -> str:
    return member.id.name
