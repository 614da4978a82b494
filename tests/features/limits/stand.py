"""Limiters on fake hosts: the test plays the views, the workers and, where there is one limiter alone, all peers.  Spec: limits 5."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import inf
from random import Random
from typing import Any, TypeVar

from msgspec import msgpack

from holdfast.events import Changing, ViewChanged, ViewEvent, ViewLost, ViewRestored, ViewTripped
from holdfast.features.limits.protocol.config import QUOTA, UNIT, WEIGHT, LimitsConfig, key_of
from holdfast.features.limits.protocol.limit import Limit
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.limits.protocol.messages import Ask, Give, GiveAck, Gossip, GossipAck
from holdfast.features.limits.protocol.outlet import NOTHING, Allotment, Wants
from holdfast.features.limits.protocol.pushsum import W_KEY
from holdfast.features.limits.protocol.quota import Holding
from holdfast.features.limits.protocol.specs import Spec, Specs, make
from holdfast.host import FANOUT_MAX, Address, Carried, Message, NodeId, View, ViewId, ViewMember, ViewState
from holdfast.kit.rows import Merge, Row, Rows, Test
from tests.support.fake_host import FakeHost, FakeTimer, Sent

M = TypeVar("M", bound=Message)

CONFIG = LimitsConfig()
EPOCH = CONFIG.epoch
SETTLE, LEASE = 5.4, 1.5
SERVER = NodeId("s0", 1)
API = "api"
KEY, MANY, SMALL = key_of(API), key_of(API, "n"), key_of(API, "u")
LIVES = tuple(NodeId(name, 1) for name in "abcdefgh")
A, B, C, D, E, F, G, H = LIVES


def view_of(number: int, lives: Iterable[NodeId], *, fleet: int = 0, attach: int = 1) -> View:
    members = tuple(ViewMember(life, Address(life.name, 1), attach, SERVER) for life in sorted(lives))
    return View(ViewId(number, SERVER.name, SERVER.boot), (SERVER,), members, max(fleet, len(members)))


class ScriptedViews:
    """Implements ``host.Views``; what has a name of its own is what the test says."""

    settle, lease = SETTLE, LEASE

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.last: View | None = None  # that was installed, also while it is lost
        self.leased_until = -inf
        self.settled_at = inf
        self.left_at: float | None = -inf
        self.changing = True
        self.refuses = False  # trips
        self.tells = True  # when a member left: ZooKeeper does not
        self.trips: list[tuple[str, int]] = []
        self.hurries = 0
        self.carried: list[tuple[NodeId, Message, Callable[[Carried], None]]] = []
        self.by_overlay: Callable[[NodeId, Message], None] | None = None
        self._listeners: list[Callable[[ViewEvent], None]] = []

    @property
    def view(self) -> View | None:
        return self.last if self.host.now < self.leased_until else None

    @property
    def state(self) -> ViewState:
        if self.view is None:
            return ViewState.LOST
        return ViewState.CHANGING if self.changing else ViewState.STABLE

    @property
    def settled(self) -> bool:
        return self.state is ViewState.STABLE and self.host.now >= self.settled_at

    def subscribe(self, listener: Callable[[ViewEvent], None]) -> None:
        self._listeners.append(listener)

    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        if self.by_overlay is not None:
            self.by_overlay(to, message)
            done(Carried.DELIVERED)
        else:
            self.carried.append((to, message, done))

    def trip(self, why: str, *, above: int = 0) -> bool:
        if self.refuses:
            return False
        self.trips.append((why, above))
        self.leased_until = -inf
        self.leave()
        self._tell(ViewTripped(None, why))
        self._tell(ViewLost(why))
        return True

    def hurry(self) -> None:
        self.hurries += 1

    # What the test says.

    def install(self, view: View, *, leased: float = 1e6) -> None:
        former = () if self.last is None else self.last.members
        self.last, self.left_at, self.changing = view, None, False
        self.leased_until, self.settled_at = self.host.now + leased, self.host.now + SETTLE
        lives, were = {member.id for member in view.members}, {member.id for member in former}
        self._tell(ViewChanged(view, tuple(sorted(lives - were)), tuple(sorted(were - lives))))

    def change(self) -> None:
        assert self.last is not None
        self.changing = True
        self._tell(Changing(self.last.number + 1))

    def lose(self, *, leave: bool = False) -> None:
        """The lease is over; ``leave``: because the member left its attachment."""
        self.leased_until = -inf
        if leave:
            self.leave()
        self._tell(ViewLost("the test says so"))

    def leave(self) -> None:
        if self.last is not None and self.left_at is None and self.tells:
            self.left_at = self.host.now

    def restore(self, *, leased: float = 1e6) -> None:
        assert self.last is not None
        self.leased_until, self.changing = self.host.now + leased, False
        self._tell(ViewRestored(self.last))

    def end(self, became: Carried) -> None:
        ended, self.carried = self.carried, []
        for _, _, done in ended:
            done(became)

    def _tell(self, event: ViewEvent) -> None:
        for listener in self._listeners:
            listener(event)


class Table:
    """The one table of an ``Exchange``, without other members."""

    def __init__(self, host: FakeHost) -> None:
        self._host = host
        self.made: Rows | None = None
        self.pushed: list[str] = []

    def rows(self, topic: str, merge: Merge, *, gone: Test, valid: Test, tombstone_ttl: float) -> Rows:
        self.made = Rows(
            self._host, topic, merge, lambda rows, keys: self.pushed.extend(keys), gone=gone, valid=valid, tombstone_ttl=tombstone_ttl
        )
        return self.made

    @property
    def table(self) -> Rows:
        assert self.made is not None
        return self.made


class Users:
    """An outlet: so much arrives, so much waits. ``slow``: what was told is held until the test confirms less."""

    def __init__(self, host: FakeHost, arrives: float = 0.0) -> None:
        self.host = host
        self.on_less: Callable[[], None] = lambda: None
        self.arrives = arrives  # cost per second
        self.waiting = 0.0
        self.user: float | None = None
        self.weight = 1.0
        self.slow = False
        self.allotted: Allotment = NOTHING
        self._held: list[Allotment] = []
        self._looked_at = host.now

    def wants(self) -> Wants:
        now = self.host.now
        elapsed, self._looked_at = now - self._looked_at, now
        return Wants(self.arrives * elapsed, self.waiting, self.user, self.weight)

    def allot(self, allotment: Allotment) -> None:
        if self.slow:
            self._held.append(self.allotted)
        self.allotted = allotment

    @property
    def told(self) -> float:
        return max(each.usable(self.host.now) for each in (self.allotted, *self._held))

    def confirm(self) -> None:
        """The workers go by what they were told last."""
        self._held.clear()
        self.on_less()

    @property
    def usable(self) -> float:
        return self.allotted.usable(self.host.now)


class Stand:
    """One limiter, whose peers the test plays."""

    def __init__(
        self,
        life: NodeId = A,
        *,
        config: LimitsConfig = CONFIG,
        host: FakeHost | None = None,
        agreed: bool = True,
        silent: bool = False,
    ) -> None:
        """``silent``: the views never say when a member left."""
        self.host = FakeHost(life.name, life.boot, seed=sum(life.name.encode())) if host is None else host
        self.me = self.host.me
        self.views = ScriptedViews(self.host)
        if silent:
            self.views.left_at, self.views.tells = None, False
        self.exchange = Table(self.host)
        self.specs = Specs(self.host, self.exchange)  # type: ignore[arg-type]  # one method of it is used
        self.limiter = Limiter(self.host, config, self.views, self.specs, agreed=agreed)
        self.users: dict[str, Users] = {}
        self.peers_answer = True
        self.silent: set[NodeId] = set()  # peers that do not
        self.kept: list[Sent] = []  # that peers have answered
        self.limiter.start()

    # Limits.

    def limit(self, rate: float = 600.0, *, name: str = API, arrives: float = 0.0, **more: Any) -> Users:
        """Set the limit and use it."""
        self.specs.set(name, make(rate, 10.0, **more))
        return self.use(name, arrives)

    def use(self, name: str = API, arrives: float = 0.0) -> Users:
        users = self.users[name] = Users(self.host, arrives)
        self.limiter.open(name, users)
        return users

    def learn(self, name: str, spec: Spec) -> None:
        """Another member set it."""
        self.exchange.table.learn([Row(name, msgpack.encode(spec), 0.0)])

    def of(self, name: str = API) -> Limit:
        return self.limiter.allocator.limits[name]

    @property
    def used(self) -> float:
        return self.of().used

    @property
    def holding(self) -> Holding:
        return self.limiter.quotas.holdings[KEY]

    @property
    def q(self) -> float:
        """Quota held, in parts of 1/n."""
        return self.holding.q / QUOTA

    # Time and peers.

    def epochs(self, count: float = 1) -> None:
        """Time passes, and the peers acknowledge what they are sent."""
        self.pass_time(count * EPOCH)

    def pass_time(self, seconds: float) -> None:
        end = self.host.now + seconds
        while self.host.now < end:
            self.host.pass_time(min(EPOCH / 5, end - self.host.now))
            if self.peers_answer:
                self._acknowledge()

    def settle(self) -> None:
        """Until nothing of former instances is in use, and an epoch has seen it."""
        self.pass_time(SETTLE + 1.01 * EPOCH)

    def know(self, *, busy: int, others: int = 2) -> None:
        """Gossip is mixed: of so many others so many want more than they get, and the rest wants nothing."""
        sums = self.limiter.sums
        assert sums is not None
        sums.w, sums.p = (others + 1) * WEIGHT, dict(sums.rep)
        if busy:
            sums.p[MANY] = sums.p.get(MANY, 0) + busy * UNIT

    def _acknowledge(self) -> None:
        for sent in self.host.sent:
            assert isinstance(sent.to, NodeId)
            if sent.to in self.silent:
                continue
            if isinstance(sent.message, Gossip):
                self.hear(sent.to, GossipAck(sent.message.inst, sent.message.seq))
            elif isinstance(sent.message, Give):
                self.hear(sent.to, GiveAck(sent.message.inst, sent.message.seq))
        self.kept.extend(self.host.sent)
        self.host.sent.clear()

    def sent(self, kind: type[M]) -> list[tuple[NodeId | Address, M]]:
        """Everything of this type that was sent since the last look."""
        sent = [*self.kept, *self.host.sent]
        self.kept = [each for each in sent if not isinstance(each.message, kind)]
        self.host.sent.clear()
        return [(to, message) for to, message in sent if isinstance(message, kind)]

    def hear(self, source: NodeId, message: Message) -> None:
        self.limiter.on_message(source, message)

    def gossip(self, number: int, source: NodeId = B, *, size: int = 3, w: int = 0, p: dict[int, int] | None = None, seq: int = 1) -> None:
        self.hear(source, Gossip(ViewId(number, SERVER.name, SERVER.boot), size, 0, seq, w, p or {}))

    def ask(self, source: NodeId, need: float, key: int = KEY) -> None:
        """For so many parts of 1/n."""
        assert self.limiter.standing.inst is not None
        self.hear(source, Ask(self.limiter.standing.inst, key, round(need * QUOTA)))

    def give(self, source: NodeId, amount: float, *, lb: int = 0, seq: int = 1, number: int | None = None) -> None:
        inst = self.limiter.standing.inst if number is None else ViewId(number, SERVER.name, SERVER.boot)
        assert inst is not None
        self.hear(source, Give(inst, lb, seq, {KEY: round(amount * QUOTA)}))

    def given(self) -> float:
        """What the peers were sent of quota, each number once, in parts of 1/n."""
        ledgers = self.limiter.quotas.ledgers.values()
        return sum(sum(ledger.outstanding.values()) for ledger in ledgers) / QUOTA

    def count(self, name: str) -> int:
        return self.limiter.counts[name]


class Group:
    """Several limiters on one clock; what they send travels, and may be lost. Views are delivered by the test."""

    def __init__(
        self,
        size: int,
        *,
        config: LimitsConfig = CONFIG,
        delay: float = 0.002,
        seed: int = 1,
        agreed: bool = True,
    ) -> None:
        self.random = Random(seed)
        self.delay = delay
        self.now = 1000.0
        self.cut: set[tuple[str, str]] = set()  # names, from and to
        self.loss = 0.0
        self.loses: Callable[[str, str, Message], bool] = lambda source, to, message: False
        self.sent: list[tuple[str, str, Message]] = []
        self.reached: set[NodeId] = set()  # by the running callback
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = 0
        self.stands: dict[str, Stand] = {}
        for number in range(size):
            life = NodeId(f"m{number:02}", 1)
            host = GroupHost(self, life, seed * 1000 + number)
            stand = self.stands[life.name] = Stand(life, config=config, host=host, agreed=agreed)
            stand.views.by_overlay = lambda to, message, source=life: self.post(source, to, message, direct=False)
        self.lives = tuple(stand.me for stand in self.stands.values())

    def __getitem__(self, number: int) -> Stand:
        return self.stands[f"m{number:02}"]

    def __iter__(self) -> Iterator[Stand]:
        return iter(list(self.stands.values()))

    def limit(self, rate: float = 600.0, *, arrives: Sequence[float] = (), name: str = API, **more: Any) -> None:
        """All know it, and those use it for which something arrives (None: they do not)."""
        spec = make(rate, 10.0, **more)
        for number, stand in enumerate(self.stands.values()):
            stand.learn(name, spec)
            if number < len(arrives):
                stand.use(name, arrives[number])

    def restart(self, number: int) -> Stand:
        """Its process dies, and another life begins, which knows nothing."""
        former = self[number]
        former.limiter.stop()
        life = NodeId(former.me.name, former.me.boot + 1)
        stand = Stand(life, host=GroupHost(self, life, self.random.randrange(1 << 30)))
        self.stands[life.name] = stand
        return stand

    def install(self, number: int, *members: int, fleet: int = 0) -> None:
        """These members, or all of them, are in this view now."""
        chosen = [self[at] for at in members] if members else list(self.stands.values())
        view = view_of(number, [stand.me for stand in chosen], fleet=fleet)
        for stand in chosen:
            stand.views.install(view)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self._agenda and self._agenda[0][0] <= end:
            self.now, _, callback = heappop(self._agenda)
            self.reached.clear()
            callback()
            assert len(self.reached) <= FANOUT_MAX, "F17"
        self.now = end

    def at(self, when: float, callback: Callable[[], None]) -> None:
        self._serial += 1
        heappush(self._agenda, (max(when, self.now), self._serial, callback))

    def post(self, source: NodeId, to: NodeId, message: Message, *, direct: bool = True) -> None:
        self.sent.append((source.name, to.name, message))
        if direct and ((source.name, to.name) in self.cut or self.random.random() < self.loss or self.loses(source.name, to.name, message)):
            return
        stand = self.stands.get(to.name)
        if stand is not None and stand.me == to:  # F3
            self.at(self.now + self.delay * self.random.uniform(0.5, 1.5), lambda: stand.hear(source, message))

    # What they hold.

    @property
    def total(self) -> float:
        """The sum of what all may use."""
        return sum(stand.used for stand in self.stands.values())

    @property
    def quota(self) -> float:
        """All quota that is held, in parts of 1/n."""
        return sum(stand.q for stand in self.stands.values())

    @property
    def shares(self) -> list[float]:
        return [stand.used for stand in self.stands.values()]


class GroupHost(FakeHost):
    """A fake host whose time is that of its group."""

    def __init__(self, group: Group, life: NodeId, seed: int) -> None:
        self._group = group
        super().__init__(life.name, life.boot, seed=seed)

    @property
    def now(self) -> float:
        return self._group.now

    def at(self, due: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(due, callback)
        self._group.at(due, lambda: self._fire(timer))
        return timer

    def after(self, delay: float, callback: Callable[[], None]) -> FakeTimer:
        return self.at(self.now + delay, callback)

    def send(self, to: NodeId | Address, message: Message) -> None:
        assert isinstance(to, NodeId)
        self._group.reached.add(to)
        self._group.post(self.me, to, message)


def residue(group: Group) -> tuple[int, int]:
    """RL1, RL2: weight and demand of one instance that are too much or missing, in what is held and what is not taken yet."""
    weight = portions = reported = 0

    def count(new: Mapping[int, int]) -> bool:
        nonlocal weight, portions
        weight += new.get(W_KEY, 0)
        portions += sum(amount for key, amount in new.items() if key != W_KEY)
        return False  # It is looked at, and not taken.

    for stand in group:
        sums = stand.limiter.sums
        assert sums is not None
        weight += sums.w
        portions += sum(sums.p.values())
        reported += sum(sums.rep.values())
        for peer, ledger in sums.ledgers.items():
            theirs = group.stands[peer.name].limiter.sums
            assert theirs is not None
            theirs.ledger(stand.me).take(ledger.message(), count)
    return weight - len(group.stands) * WEIGHT, portions - reported
