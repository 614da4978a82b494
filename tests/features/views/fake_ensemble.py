"""ZooKeeper as a table in memory, with virtual time: znodes, sessions, watches, and all that can go wrong between a client and a server.

It behaves as ZooKeeper 3.8 does: one sequence of changes, zxids, ephemeral and sequential znodes, watches that fire once, reads that are
local to a server. A test can cut a client off, freeze the state of its server (a deposed leader), and end a session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf, nextafter
from random import Random
from typing import NamedTuple

from holdfast.drops import Drops
from holdfast.events import Event
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.zookeeper.views import ZooKeeperViews
from holdfast.features.views.zookeeper.znodes import Failure, Listener, Reply, Standing, Stat, Then
from holdfast.host import Address, Message, NodeId, Storage
from holdfast.kit.parcels import Parcels
from tests.support.fake_host import FakeStorage

ASKED = 4.0
STALE = 2.0
GROUP = "g"
CONFIG = ViewsConfig()


class Note(Message, frozen=True, tag=9121):
    """The type that is carried."""

    carried = True
    text: str


class Clockwork:
    """One clock for all, and what is due."""

    def __init__(self, seed: int = 0) -> None:
        self.now = 1000.0
        self.random = Random(seed)
        self._due: list[tuple[float, int, Timer]] = []
        self._serial = 0
        self.after_each: Callable[[], None] = lambda: None

    def at(self, due: float, callback: Callable[[], None]) -> Timer:
        self._serial += 1
        timer = Timer(max(due, self.now), callback)
        heappush(self._due, (timer.due_at, self._serial, timer))
        return timer

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self._due and self._due[0][0] <= end:
            due, _, timer = heappop(self._due)
            self.now = due
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()
                self.after_each()
        self.now = end


class Timer:
    """As a host's."""

    def __init__(self, due_at: float, callback: Callable[[], None]) -> None:
        self.due_at = due_at
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class SharedHost:
    """A host on that clock, which it reads too fast or too slowly by ``drift``."""

    def __init__(self, clockwork: Clockwork, me: NodeId, drift: float = 0.0) -> None:
        self._clockwork, self.me, self._rate = clockwork, me, 1.0 + drift
        self.address = Address(me.name, 1)
        self.random = clockwork.random
        self.storage: Storage = FakeStorage(auto=True)
        self.late = 0.0
        self.emitted: list[Event] = []
        self.met: dict[NodeId, Address] = {}

    @property
    def now(self) -> float:
        return self._clockwork.now * self._rate

    def wall(self) -> float:
        return 1_700_000_000.0 + self._clockwork.now

    def at(self, due: float, callback: Callable[[], None]) -> Timer:
        true = due / self._rate
        while true * self._rate < due:
            true = nextafter(true, inf)  # No timer runs before its time.
        return self._clockwork.at(true, callback)

    def after(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self.at(self.now + delay, callback)

    def send(self, to: NodeId | Address, message: Message) -> None:
        raise AssertionError("ZooKeeper carries everything")

    def meet(self, peer: NodeId, address: Address) -> None:
        self.met[peer] = address

    def emit(self, event: Event) -> None:
        self.emitted.append(event)


class Znode:
    """One of them."""

    def __init__(self, data: bytes, zxid: int, owner: int) -> None:
        self.data, self.owner = data, owner
        self.czxid = self.pzxid = zxid
        self.cversion = self.version = self.created = 0
        self.children: dict[str, None] = {}

    @property
    def stat(self) -> Stat:
        return Stat(self.czxid, self.pzxid, self.cversion, self.version, self.owner)


class Held(NamedTuple):
    """The state of a server when it was cut off from its peers."""

    tree: dict[str, tuple[bytes, Stat, tuple[str, ...]]]


class FakeEnsemble:
    """The znodes, and the sessions that own some of them."""

    def __init__(self, clockwork: Clockwork) -> None:
        self.clockwork = clockwork
        self.zxid = 1 << 32
        self.tree: dict[str, Znode] = {"/": Znode(b"", 0, 0)}
        self.watches: dict[str, dict[FakeSession, None]] = {}
        self.sessions: dict[int, FakeSession] = {}  # alive, by their ids
        self.log: list[str] = []  # changes, as "delete /path"
        self.refused: set[str] = set()  # paths under which nothing may be created
        self._last = 0

    def begin_session(self, session: FakeSession) -> int:
        self._last += 1
        self.sessions[self._last] = session
        return self._last

    def end_session(self, owner: int) -> None:
        self.sessions.pop(owner, None)
        for path in [path for path, znode in self.tree.items() if znode.owner == owner]:
            self.delete(path)

    def create(self, path: str, data: bytes, owner: int, sequence: bool) -> Reply:
        parent = self.tree.get(parent_of(path))
        if any(path.startswith(each) for each in self.refused):
            return Reply(Failure.REFUSED, "NoAuthError")
        if parent is None or parent.owner:
            return Reply(Failure.NO_NODE)
        if sequence:
            path += f"{parent.created:010d}"
        if path in self.tree:
            return Reply(Failure.NODE_EXISTS)
        self.zxid += 1
        self.tree[path] = Znode(data, self.zxid, owner)
        self._changed(parent, path)
        parent.children[path.rpartition("/")[2]] = None
        parent.created += 1
        self.log.append(f"create {path}")
        return Reply(path=path)

    def delete(self, path: str) -> Reply:
        znode = self.tree.get(path)
        if znode is None:
            return Reply(Failure.NO_NODE)
        if znode.children:
            return Reply(Failure.NOT_EMPTY)
        self.zxid += 1
        del self.tree[path]
        parent = self.tree[parent_of(path)]
        del parent.children[path.rpartition("/")[2]]
        self._changed(parent, path)
        self._fire(path, deleted=True)
        self.log.append(f"delete {path}")
        return Reply()

    def set(self, path: str, data: bytes) -> None:
        self.zxid += 1
        self.tree[path].data = data
        self.tree[path].version += 1

    def state(self) -> Held:
        return Held({path: (znode.data, znode.stat, tuple(znode.children)) for path, znode in self.tree.items()})

    def letters(self, name: str) -> list[str]:
        return sorted(self.tree[f"/holdfast/{GROUP}/mail/{name}"].children)

    def _changed(self, parent: Znode, path: str) -> None:
        parent.pzxid = self.zxid
        parent.cversion += 1
        self._fire(parent_of(path), deleted=False)

    def _fire(self, path: str, *, deleted: bool) -> None:
        for session in self.watches.pop(path, {}):
            session.fire(path, deleted)


class FakeSession:
    """A client of the ensemble, as kazoo is one: it connects again by itself, and says late what the server decided long ago."""

    def __init__(self, ensemble: FakeEnsemble, listener: Listener, sessions: FakeSessions) -> None:
        self._ensemble, self._listener, self._sessions = ensemble, listener, sessions
        self._clockwork = ensemble.clockwork
        self.complaint = ""
        self.closed = self.connected = self.cut = False
        self.owner = 0  # the session; 0: none yet, or it is known to be over
        self.frozen: Held | None = None
        self.asked: Counter[str] = Counter()
        self._done_at = self._told_at = 0.0
        self._line = self._whole = 0  # of the connection, and the last that stood: what is sent over a broken one is lost
        self._expiry: Timer | None = None
        self._later(self._connect)

    # What a Session offers.

    def create(self, path: str, data: bytes, then: Then, *, ephemeral: bool = False, sequence: bool = False) -> None:
        self._ask("create", True, then, lambda: self._ensemble.create(path, data, self.owner if ephemeral else 0, sequence))

    def delete(self, path: str, then: Then) -> None:
        self._ask("delete", True, then, lambda: self._ensemble.delete(path))

    def get(self, path: str, then: Then) -> None:
        self._ask("get", False, then, lambda: self._read(path))

    def exists(self, path: str, then: Then) -> None:
        self._ask("exists", False, then, lambda: self._read(path)._replace(data=b""))

    def children(self, path: str, then: Then, *, watch: bool = False) -> None:
        def listed() -> Reply:
            reply = self._read(path)
            if watch and reply.failure is None:
                self._ensemble.watches.setdefault(path, {})[self] = None
            names = list(reply.names)
            self._clockwork.random.shuffle(names)
            return reply._replace(data=b"", names=tuple(names))

        self._ask("children", False, then, listed)

    def sync(self, path: str, then: Then) -> None:
        self._ask("sync", False, then, Reply)

    def close(self) -> None:
        self.closed = True
        if self.connected and self._line == self._whole:
            owner, line = self.owner, self._line
            self._later(lambda: self._ensemble.end_session(owner) if line == self._line else None)
        elif self.owner in self._ensemble.sessions:
            self._forsake()

    # What a test does.

    def break_off(self, noticed_after: float = 0.0) -> None:
        """The connection breaks, and stays broken until ``join``. Kazoo notices when it notices."""
        self.cut = True
        self._line += 1
        self._drop_watches()
        if self.owner:
            self._forsake()
        self._clockwork.at(self._clockwork.now + noticed_after, self._suspend)

    def join(self) -> None:
        self.cut = False
        self.frozen = None
        if not self.connected:
            self._later(self._connect)
        elif self._line != self._whole:
            self._suspend()  # A server answers again, and knows nothing of this connection.

    def freeze(self) -> None:
        """Its server is cut off from the others and answers reads all the same, ``sync`` included, if it was the leader."""
        self.frozen = self._ensemble.state()
        self._drop_watches()
        self._forsake()

    def blip(self) -> None:
        """The connection breaks, and is there again at once."""
        self.break_off()
        self._clockwork.at(self._clockwork.now + 0.05, self.join)

    def fire(self, path: str, deleted: bool) -> None:
        if self.frozen is None:
            self._tell(lambda: self._listener.on_watch(path, deleted), ordered=False)

    # How it works.

    def _ask(self, kind: str, is_write: bool, then: Then, do: Callable[[], Reply]) -> None:
        self.asked[kind] += 1
        line = self._line
        if not self.connected or self.closed:
            return  # kazoo keeps it for the next connection; that answers a question of which nothing is known any more

        def done() -> None:
            if self.cut or line != self._whole or (is_write and self.frozen is not None):
                return
            reply = do()
            self._tell(lambda: then(reply))

        self._done_at = max(self._done_at, self._clockwork.now + self._sessions.delay())
        self._clockwork.at(self._done_at, done)

    def _read(self, path: str) -> Reply:
        if self.frozen is not None:
            found = self.frozen.tree.get(path)
            return Reply(Failure.NO_NODE) if found is None else Reply(data=found[0], stat=found[1], names=found[2])
        znode = self._ensemble.tree.get(path)
        return Reply(Failure.NO_NODE) if znode is None else Reply(data=znode.data, stat=znode.stat, names=tuple(znode.children))

    def _tell(self, callback: Callable[[], None], *, ordered: bool = True) -> None:
        """Into a turn of the host. Watches may overtake answers, and the other way round: kazoo has a thread for each."""
        line, at = self._line, self._clockwork.now + self._sessions.delay()
        if ordered:
            at = self._told_at = max(self._told_at, at)
        self._clockwork.at(at, lambda: None if self.closed or (line != self._line and not self._sessions.late) else callback())

    def _later(self, callback: Callable[[], None]) -> None:
        self._clockwork.at(self._clockwork.now + self._sessions.delay(), callback)

    def _connect(self) -> None:
        if self.cut or self.closed or self.connected:
            return
        self._line += 1
        self._whole = self._line
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self.owner and self.owner not in self._ensemble.sessions:
            self._listener.on_standing(Standing.LOST, 0)
            self.owner = 0
        if not self.owner:
            self.owner = self._ensemble.begin_session(self)
        self.connected = True
        self._listener.on_standing(Standing.CONNECTED, self.owner)

    def _suspend(self) -> None:
        if self.connected and not self.closed:
            self.connected = False
            self._listener.on_standing(Standing.SUSPENDED, 0)
            if not self.cut:
                self._later(self._connect)

    def _forsake(self) -> None:
        """The servers hear nothing of it from now on."""
        owner = self.owner
        if self._expiry is None:
            self._expiry = self._clockwork.at(self._clockwork.now + ASKED, lambda: self._ensemble.end_session(owner))

    def _drop_watches(self) -> None:
        for sessions in self._ensemble.watches.values():
            sessions.pop(self, None)


class FakeSessions:
    """Of one client."""

    def __init__(self, ensemble: FakeEnsemble) -> None:
        self._ensemble = ensemble
        self.asked = ASKED
        self.granted: float | None = ASKED
        self.opened: list[FakeSession] = []
        self.delay: Callable[[], float] = lambda: 0.001
        self.late = False  # what a former connection was told may come after the next one has begun
        self.absent = False  # no server answers

    def open(self, listener: Listener) -> FakeSession:
        session = FakeSession(self._ensemble, listener, self)
        session.cut = self.absent
        self.opened.append(session)
        return session


class FakeRouter:
    """The part of a node that parcels need."""

    def __init__(self) -> None:
        self.drops: Drops = Drops()
        self.types: tuple[type[Message], ...] = (Note,)
        self.digests: dict[type[Message], bytes] = {}
        self.handed: list[tuple[NodeId, Message]] = []

    def hand_on(self, sender: NodeId, fingerprint: bytes, message: Message) -> None:
        self.handed.append((sender, message))


class Seat:
    """One member: its views, and what came of them."""

    def __init__(self, stand: Stand, me: NodeId, config: ViewsConfig = CONFIG, drift: float = 0.0) -> None:
        self.me = me
        self.host = SharedHost(stand.clockwork, me, drift)
        self.router = FakeRouter()
        self.sessions = FakeSessions(stand.ensemble)
        self.views = ZooKeeperViews(self.host, config, GROUP, self.sessions, Parcels(self.router, self.host.wall), stale=STALE)
        self.views.start()
        self.results: list[object] = []

    @property
    def session(self) -> FakeSession:
        return self.sessions.opened[-1]

    @property
    def names(self) -> str:
        view = self.views.view
        return "" if view is None else "".join(member.id.name for member in view.members)

    @property
    def number(self) -> int:
        view = self.views.view
        return 0 if view is None else view.number

    @property
    def told(self) -> list[str]:
        """Names of the view events since the last look, and forget them."""
        found = [type(event).__name__ for event in self.host.emitted if type(event).__name__.startswith(("View", "Chang"))]
        self.forget()
        return found

    def forget(self) -> None:
        self.host.emitted.clear()

    def carry(self, to: Seat | NodeId, text: str = "hello") -> None:
        self.views.carry(to.me if isinstance(to, Seat) else to, Note(text), self.results.append)

    @property
    def heard(self) -> list[str]:
        return [message.text for _, message in self.router.handed if isinstance(message, Note)]


class Stand:
    """An ensemble and some members."""

    def __init__(self, names: str = "a", *, seed: int = 0, settle: float = 0.3) -> None:
        self.clockwork = Clockwork(seed)
        self.ensemble = FakeEnsemble(self.clockwork)
        self.seats = [self.add(name) for name in names]
        if settle:
            self.run(settle)

    def add(self, name: str, boot: int = 1, config: ViewsConfig = CONFIG) -> Seat:
        seat = Seat(self, NodeId(name, boot), config)
        seat.views.take_part()
        return seat

    def run(self, seconds: float) -> None:
        self.clockwork.run(seconds)

    def until(self, holds: Callable[[], object], within: float = 60.0, step: float = 0.001) -> float:
        """How long it took."""
        began_at, end_at = self.clockwork.now, self.clockwork.now + within
        while not holds():
            assert self.clockwork.now < end_at, "never happened"
            self.run(step)
        return self.clockwork.now - began_at

    def ensemble_reply(self, path: str) -> Reply:
        """As to a question for its children."""
        znode = self.ensemble.tree[path]
        return Reply(names=tuple(znode.children), stat=znode.stat)

    @property
    def members(self) -> Znode:
        return self.ensemble.tree[f"/holdfast/{GROUP}/members"]


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"
