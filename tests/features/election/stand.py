"""One member, or a few, with lists that a test writes; and what they say to each other.

``Stand`` is one machine on a fake host. ``Town`` is several, with one table of rows, lists that may lack members, and a network that a
test can cut; time passes in steps of a hundredth of a second, and a message takes one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from random import Random
from typing import Any

from holdfast.events import Failed, Joined, MembershipEvent, Updated
from holdfast.features.election.protocol.config import ElectionConfig
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.facts import ElectionFact
from holdfast.features.election.protocol.manner import Manner, manner
from holdfast.features.election.protocol.messages import NotifyLeader, Query, Response, Standing, Unhealthy
from holdfast.features.election.protocol.ranks import Post, encode, hash_of, rank_key, row_of
from holdfast.features.election.protocol.rules import Rules
from holdfast.features.election.protocol.shown import Role
from holdfast.host import Address, HealthSource, Machine, Member, MemberStatus, Message, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.hold import LossReason
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot
from holdfast.lab.fake_host import FakeHost, FakeStorage

NAME = "n"
TIMEOUT = 0.2
STEP = 0.01
BASE, OPTIMISTIC, PREFERRED, HYBRID = (manner(variant) for variant in ("base", "optimistic", "preferred", "hybrid"))


def life(name: str, boot: int = 1) -> NodeId:
    return NodeId(name, boot)


def post(made: Manner, inc: int = 1, tags: dict[str, str] | None = None, health: float = 0.0) -> bytes:
    return encode(Post(made, inc, rank_key(made, tags or {}), health))


def standing(name: str, rank: bytes = b"", inc: int = 1) -> Standing:
    return Standing(life(name), rank, inc, Address(name, 1))


def by_hash(name: str, members: Iterable[str]) -> list[str]:
    """Members in the order of their rank for this name."""
    return sorted(members, key=lambda member: hash_of(name, member))


def ranked_names(n: int, name: str = NAME) -> list[str]:
    """Names of ``n`` members; the first ranks first for the name."""
    return by_hash(name, (f"m{number}" for number in range(n)))


def seats_at(host: FakeHost, names: Sequence[str]) -> Seats:
    """Three slots, or one; this host may sit in one of them."""
    slots = [Slot(number, name, Address(name, 1)) for number, name in enumerate(names)]
    own = names.index(host.me.name) if host.me.name in names else None
    return Seats(host, slots, own, machine=host.me.name, rho=1e-3, length_max=0.5)


class Rows:
    """Who there is, and what each publishes: the same for all lists."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.version = 1

    def add(self, member: NodeId, rows: dict[str, bytes] | None = None) -> Member:
        self.members[member.name] = made = Member(member, Address(member.name, 1), rows or {})
        self.version += 1
        return made

    def publish(self, member: NodeId, row: str, value: bytes | None) -> None:
        known = self.members.get(member.name)
        if known is None or known.id != member:
            return
        rows = {key: kept for key, kept in known.rows.items() if key != row}
        if value is not None:
            rows[row] = value
        self.members[member.name] = Member(known.id, known.address, rows, known.status)
        self.version += 1


class FakeLists:
    """Implements ``holdfast.host.Lists``: the rows of all, without those that a test hides from this member."""

    def __init__(self, me: NodeId, rows: Rows) -> None:
        self.me, self.rows = me, rows
        self.lacks: dict[str, None] = {}
        self.suspects: dict[str, None] = {}
        self.unsettled: dict[str, None] = {}
        self.forgotten: dict[str, None] = {}
        self.dead: dict[str, None] = {}  # names that failed and are remembered
        self.health: dict[str, float] = {}
        self.probed: list[NodeId] = []
        self.sick = False
        self.c, self.restless, self.observed, self.rtt = 0, False, 1000.0, 0.0
        self.bumps = 0
        self._listeners: list[Callable[[MembershipEvent], None]] = []

    @property
    def version(self) -> int:
        return self.rows.version + self.bumps

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        found = (each for name, each in sorted(self.rows.members.items()) if name not in self.lacks)
        shown = (Member(each.id, each.address, each.rows, MemberStatus.SUSPECTED) if each.name in self.suspects else each for each in found)
        return tuple(each for each in shown if topic is None or f"topic:{topic}" in each.rows)

    def get(self, name: str) -> Member | None:
        return next((each for each in self.members() if each.name == name), None)

    def publish(self, row: str, value: bytes | None) -> None:
        self.rows.publish(self.me, row, value)

    def subscribe(self, listener: Callable[[MembershipEvent], None]) -> None:
        self._listeners.append(listener)

    def usable_until(self) -> float:
        return inf

    def known_names(self) -> frozenset[str]:
        return frozenset(each.name for each in self.members()) | frozenset(self.dead) | {self.me.name}

    def settled(self, member: NodeId) -> bool:
        return member.name not in self.unsettled

    def unhealthy(self, member: NodeId, source: HealthSource = "any") -> float:
        return self.health.get(member.name, 0.0)

    def c_measured(self) -> int:
        return self.c

    def turbulent(self) -> bool:
        return self.restless

    def observed_for(self) -> float:
        return self.observed

    def rtt_p99(self) -> float:
        return self.rtt

    def probe_now(self, member: NodeId) -> None:
        self.probed.append(member)

    # What only tests call.

    def lose(self, name: str, *, dead: bool = True) -> None:
        """This list drops a member."""
        member = self.get(name)
        self.lacks[name] = None
        if dead:
            self.dead[name] = None
        self.bumps += 1
        if member is not None:
            self.say(Failed(member, certain=False))

    def find(self, name: str) -> None:
        """This list has the member again."""
        self.lacks.pop(name, None)
        self.dead.pop(name, None)
        self.bumps += 1
        member = self.get(name)
        if member is not None:
            self.say(Joined(member))

    def updated(self, name: str) -> None:
        member = self.get(name)
        assert member is not None
        self.say(Updated(member))

    def say(self, event: MembershipEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)


class Client:
    """A client that asks to lead: it hears what a grant's holder hears."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.token = 0
        self.deadline = -inf
        self.granted: list[int] = []
        self.lost: list[str] = []
        self.extended = self.risks = 0

    def on_queued(self, position: int, why: str = "") -> None:
        """There is no queue in the machine."""

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        self.token, self.deadline = token, deadline
        self.granted.append(token)

    def on_extended(self, deadline: float) -> None:
        assert deadline >= self.deadline
        self.deadline = deadline
        self.extended += 1

    def on_at_risk(self) -> None:
        self.risks += 1

    def on_lost(self, reason: LossReason) -> None:
        self.deadline = -inf
        self.lost.append(reason.word)

    @property
    def valid(self) -> bool:
        return self.host.now < self.deadline


def settings(made: Manner, **changes: Any) -> ElectionConfig:
    """With the manner of a test, TIMEOUT 0.2 s, and c and f as it says."""
    fields = {
        "variant": made.variant_name, "voters": made.voters_name, "rank": made.rank_names, "health": made.health_name,
        "timeout": TIMEOUT, "c": 2, "f": 0,
    }  # fmt: skip
    return ElectionConfig(**{**fields, **changes})


class Stand:
    """One member called ``me``, a settled one, with others that a test speaks for."""

    def __init__(
        self, *others: str, me: str = "m0", made: Manner = HYBRID, rules: Rules | None = None, candidates: Iterable[str] | None = None,
        storage: FakeStorage | None = None, seats: Seats | None = None, boot: int = 1, **changes: Any,
    ) -> None:  # fmt: skip
        self.host = FakeHost(me, boot, storage=storage)
        self.manner, self.rows = made, Rows()
        self.rows.add(self.host.me)
        for name in others:
            self.rows.add(life(name), {row_of(NAME): post(made)} if candidates is None or name in candidates else {})
        self.lists = FakeLists(self.host.me, self.rows)
        self.broadcast = Broadcast(self.host, self.lists)
        self.exchange = Exchange(self.host, self.broadcast)
        if seats is None and made.by_seats:
            seats = seats_at(self.host, [*others[:2], me])
        self.seats = seats
        self.machine = Elections(self.host, self.lists, self.exchange, seats, settings(made, **changes), rules=rules)
        self.machine.start()
        self.client = Client(self.host)

    def stand(self) -> Stand:
        """A client asks to lead."""
        self.machine.campaign(NAME, 0.0, self.client)
        return self

    def quiet(self) -> Stand:
        """Forget what was sent and told so far."""
        self.host.pass_time(0.0)
        self.host.sent.clear()
        self.host.emitted.clear()
        return self

    def hear(self, source: str, message: Message, boot: int = 1) -> None:
        self.machine.on_message(life(source, boot), message)
        self.host.pass_time(0.0)

    def begin(self) -> int:
        """An election begins here, as ``group.elect`` begins one; its eid."""
        self.machine.elect(NAME)
        self.host.pass_time(0.0)
        last = self.machine.last(NAME)
        assert last is not None
        return last.eid

    def answer(
        self, source: str, candidates: Iterable[str] = (), excluded: dict[str, float] | None = None, *, eid: int = 0, **fields: object
    ) -> None:  # fmt: skip
        """A RESPONSE to the election that runs."""
        last = self.machine.last(NAME)
        assert last is not None
        rows = tuple(standing(each) for each in candidates)
        out = tuple(Unhealthy(life(each), value) for each, value in (excluded or {}).items())
        self.hear(source, Response(NAME, self.manner, eid or last.eid, rows, out, **fields))  # type: ignore[arg-type]

    def ask(self, source: str, x: int = 5, y: int = 5, **fields: object) -> Response | None:
        """What this member answers to a QUERY."""
        self.hear(source, Query(NAME, self.manner, 1, x, y, 0, **fields))  # type: ignore[arg-type]
        found = self.host.take(Response)
        return found[-1][1] if found else None

    def notified(self) -> list[tuple[str, int, bool]]:
        """Whom it named: (member, term, final), and forget it."""
        found = self.host.take(NotifyLeader)
        return [(to.name, message.term, message.final) for to, message in found if isinstance(to, NodeId)]

    def facts(self, kind: type[ElectionFact]) -> list[ElectionFact]:
        return [event for event in self.host.emitted if isinstance(event, kind)]

    def role(self) -> Role:
        state = self.machine.state(NAME)
        return Role.FOLLOWER if state is None else state.role


class Town:
    """Several members, each with a machine; all are candidates when ``stand`` says so."""

    def __init__(
        self, n: int, *, made: Manner = HYBRID, rules: Rules | None = None, seed: int = 0, **changes: Any
    ) -> None:  # fmt: skip
        self.names = ranked_names(n)
        self.random = Random(seed)
        self.rows = Rows()
        self.made, self.rules, self.changes = made, rules, changes
        self.hosts: dict[str, FakeHost] = {}
        self.lists: dict[str, FakeLists] = {}
        self.machines: dict[str, list[Machine]] = {}
        self.elections: dict[str, Elections] = {}
        self.clients: dict[str, Client] = {}
        self.down: dict[str, None] = {}
        self.lost: Callable[[str, str, Message], bool] = lambda source, target, message: False
        self.sent: list[tuple[str, str, Message]] = []
        self._flying: list[tuple[str, NodeId | str, Message]] = []
        self.clock = 0.0
        for name in self.names:
            self.rows.add(life(name))
        for name in self.names:
            self._build(name, 1, None)

    def _build(self, name: str, boot: int, storage: FakeStorage | None) -> None:
        host = self.hosts[name] = FakeHost(name, boot, storage=storage, seed=self.random.randrange(1 << 30))
        host.clock = 1000.0 + self.clock
        host.wall_clock += self.clock
        lists = self.lists[name] = FakeLists(host.me, self.rows)
        broadcast = Broadcast(host, lists)
        exchange = Exchange(host, broadcast)
        seats = seats_at(host, self.names[:3] if len(self.names) > 2 else self.names[:1]) if self.made.by_seats else None
        machine = self.elections[name] = Elections(host, lists, exchange, seats, settings(self.made, **self.changes), rules=self.rules)
        self.machines[name] = [machine, broadcast, exchange, *([] if seats is None else [seats])]
        self.clients[name] = Client(host)
        for each in self.machines[name]:
            each.start()

    def stand(self, *names: str) -> Town:
        for name in names or self.names:
            self.elections[name].campaign(NAME, 0.0, self.clients[name])
        return self

    def crash(self, name: str) -> None:
        self.down[name] = None

    def restart(self, name: str, *, keep: bool = False) -> None:
        """Its next life, with or without its disk; all lists have it at once."""
        former = self.hosts[name]
        self.down.pop(name, None)
        self.rows.add(life(name, former.me.boot + 1))
        self._build(name, former.me.boot + 1, former.disk if keep else None)

    def detect(self, name: str) -> None:
        """All lists drop it."""
        for other in self.living():
            if other != name:
                self.lists[other].lose(name)

    def living(self) -> list[str]:
        return [name for name in self.names if name not in self.down]

    def run(self, seconds: float) -> Town:
        for _ in range(round(seconds / STEP)):
            self._step()
        return self

    def run_until(self, done: Callable[[], bool], seconds: float = 30.0) -> float:
        """How long it took."""
        began = self.clock
        while not done():
            assert self.clock - began < seconds, "it does not happen"
            self._step()
        return self.clock - began

    def _step(self) -> None:
        self.clock += STEP
        flying, self._flying = self._flying, []
        for source, target, message in flying:
            self._receive(source, target, message)
        for name in self.living():
            self.hosts[name].pass_time(STEP)
            self.hosts[name].wall_clock += STEP
        for name in self.living():
            host = self.hosts[name]
            for to, message in host.sent:
                self.sent.append((name, to.name if isinstance(to, NodeId) else to.host, message))
                self._flying.append((name, to if isinstance(to, NodeId) else to.host, message))
            host.sent.clear()

    def _receive(self, source: str, target: NodeId | str, message: Message) -> None:
        name = target.name if isinstance(target, NodeId) else target
        if name not in self.hosts or name in self.down or source in self.down or self.lost(source, name, message):
            return
        if isinstance(target, NodeId) and self.hosts[name].me != target:
            return
        for machine in self.machines[name]:
            if type(message) in machine.handles:
                machine.on_message(self.hosts[source].me, message)

    def leaders(self) -> list[str]:
        """Those who are ACTIVE, among the living."""
        return [name for name in self.living() if self.role(name) is Role.ACTIVE]

    def role(self, name: str) -> Role:
        state = self.elections[name].state(NAME)
        return Role.FOLLOWER if state is None else state.role

    def believed(self) -> dict[str, str | None]:
        """Whom each living member takes for the leader."""
        found = {name: self.elections[name].leader(NAME) for name in self.living()}
        return {name: None if reign is None or not reign.active else reign.leader.name for name, reign in found.items()}

    def agreed(self) -> bool:
        leaders = self.leaders()
        return len(leaders) == 1 and set(self.believed().values()) == set(leaders)
