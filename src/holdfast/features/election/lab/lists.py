"""Lists that a script writes: what an election reads, with a c that is known.  Spec: election 1 (c), 7, 8 (L2); foundation 3 (Lists), H5.

A ``Board`` is what all members of a world publish. ``ScriptedLists`` is one member's list, which shows whatever it is told to show. Who
tells it is a director: of holes in lists that never fail anything (``Holes``), of a failure detector that follows the lab's faults
(``Detector``), or of a recorded trace of gossip (``traces``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from random import Random

from holdfast.events import Failed, Joined, MembershipEvent, Updated
from holdfast.host import HealthSource, Host, Member, Message, NodeId
from holdfast.lab.host import Around, LabHost
from holdfast.lab.world import World

LOOK_PERIOD = 0.2  # true seconds between two looks at who should be listed
Rows = Mapping[str, bytes]


class Board:
    """What each life publishes about itself, and since when it is settled."""

    def __init__(self) -> None:
        self.rows: dict[NodeId, dict[str, bytes]] = {}
        self.settled: set[NodeId] = set()
        self.version = 0
        self.on_change: list[Callable[[NodeId], None]] = []

    def publish(self, life: NodeId, row: str, value: bytes | None) -> None:
        rows = dict(self.rows.get(life, {}))
        if value is None:
            rows.pop(row, None)
        else:
            rows[row] = value
        self.rows[life] = rows
        self.version += 1
        for listener in self.on_change:
            listener(life)


def board_of(world: Around) -> Board:
    """The one of this world."""
    board: Board = world.shared.setdefault(Board, Board())
    return board


class ScriptedLists:
    """One member's list. Implements ``Lists``; it fails nothing and probes nothing by itself."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""

    def __init__(self, host: Host, board: Board) -> None:
        self._host, self.board = host, board
        self._listed: dict[str, Member] = {}
        self._members: tuple[Member, ...] = ()
        self._listeners: list[Callable[[MembershipEvent], None]] = []
        self._known: set[str] = {host.me.name}
        self._began_at = host.now
        self.version = 1
        self.sick = False
        self.health: dict[NodeId, float] = {}  # how unhealthy others look here
        self.c, self.is_turbulent, self.rtt = 0, False, 0.0
        self.probed: list[NodeId] = []
        self._write({})

    # Membership.

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        return self._members

    def get(self, name: str) -> Member | None:
        return self._listed.get(name)

    def publish(self, row: str, value: bytes | None) -> None:
        self.board.publish(self._host.me, row, value)
        self._write({name: each for name, each in self._listed.items() if name != self._host.me.name})

    def subscribe(self, listener: Callable[[MembershipEvent], None]) -> None:
        self._listeners.append(listener)

    def usable_until(self) -> float:
        return inf

    # Lists.

    def known_names(self) -> frozenset[str]:
        return frozenset(self._known)

    def settled(self, member: NodeId) -> bool:
        found = self._listed.get(member.name)
        return found is not None and found.id == member and member in self.board.settled

    def unhealthy(self, member: NodeId, source: HealthSource = "any") -> float:
        return self.health.get(member, 0.0)

    def c_measured(self) -> int:
        return self.c

    def turbulent(self) -> bool:
        return self.is_turbulent

    def observed_for(self) -> float:
        return self._host.now - self._began_at

    def rtt_p99(self) -> float:
        return self.rtt

    def probe_now(self, member: NodeId) -> None:
        self.probed.append(member)

    # Machine.

    def start(self) -> None:
        """Nothing runs here."""

    def stop(self) -> None:
        """Nothing runs here."""

    def on_away(self, seconds: float) -> None:
        """No member is judged here."""

    def on_message(self, source: NodeId, message: Message) -> None:
        raise AssertionError("it handles nothing")

    # What directors do.

    def lists(self, life: NodeId) -> bool:
        found = self._listed.get(life.name)
        return found is not None and found.id == life

    def show(self, others: Mapping[str, Member]) -> None:
        """From now on these are listed beside this member itself; a listener hears what changed."""
        before = self._listed
        self._write(others)
        self._known |= self._listed.keys()
        after = self._listed
        gone = [each for name, each in before.items() if name not in after or after[name].id != each.id]
        news = [each for name, each in after.items() if name not in before or before[name].id != each.id]
        changed = [each for name, each in after.items() if name in before and before[name].id == each.id and before[name].rows != each.rows]
        events: list[MembershipEvent] = [Failed(each, certain=False) for each in gone]
        events += [Joined(each) for each in news] + [Updated(each) for each in changed]
        for event in events:
            self._host.emit(event)
            for listener in self._listeners:
                listener(event)

    def remember(self, names: Iterable[str]) -> None:
        """A member told of these, which may be gone."""
        self._known |= set(names)

    def forget(self, names: Iterable[str]) -> None:
        """Of these no tombstone is kept any more."""
        self._known -= set(names) - self._listed.keys()

    def differs(self, others: Mapping[str, Member]) -> bool:
        mine = self._host.me.name
        if len(self._listed) != len(others) + (mine not in others):
            return True
        return any(self._listed.get(name) != member for name, member in others.items() if name != mine)

    def _write(self, others: Mapping[str, Member]) -> None:
        me = self._host.me
        mine = Member(me, self._host.address, dict(self.board.rows.get(me, {})))
        self._listed = dict(sorted({**others, me.name: mine}.items()))
        self._members = tuple(self._listed.values())
        self.version += 1


Hole = tuple[str, str]  # who lacks whom
Open = Callable[[float], frozenset[Hole]]  # which holes there are at an instant


class Director:
    """Writes the lists of a whole world: looks at who should be listed by each, every so often and when rows change."""

    def __init__(self, world: World, board: Board, *, period: float = LOOK_PERIOD) -> None:
        self.world, self.board, self._period = world, board, period
        self._looking = False
        board.on_change.append(lambda life: self.soon())
        world.at(world.now, self._tick)

    def wanted(self, viewer: LabHost) -> dict[str, Member]:
        raise NotImplementedError

    def before_look(self) -> None:
        """Once per look, before the lists are compared."""

    def soon(self) -> None:
        if not self._looking:
            self._looking = True
            self.world.soon(self.look)

    def look(self) -> None:
        self._looking = False
        self.before_look()
        for host in self.world.alive:
            if host.running and host.node.running:
                lists = host.node.use(ScriptedLists)
                wanted = self.wanted(host)
                if lists.differs(wanted):
                    self.world.step(host, partial(lists.show, wanted))

    def member(self, host: LabHost) -> Member:
        return Member(host.me, host.address, self.board.rows.get(host.me, {}))

    def _tick(self) -> None:
        self.look()
        self.world.at(self.world.now + self._period, self._tick)


class Holes(Director):
    """All list all that are up, but for holes: one viewer does not list one member. Nothing is ever failed."""

    def __init__(self, world: World, board: Board, holes: Open, *, period: float = LOOK_PERIOD, down: bool = False) -> None:
        """``down``: also those that are down stay in all lists, as nodes that failed and are not found out yet."""
        self.holes, self._down = holes, down
        self._present: frozenset[Hole] = frozenset()
        super().__init__(world, board, period=period)

    def before_look(self) -> None:
        self._present = self.holes(self.world.now)
        self.board.settled.update(host.me for host in self.world.nodes.values())

    def wanted(self, viewer: LabHost) -> dict[str, Member]:
        mine, holes = viewer.me.name, self._present
        return {
            host.me.name: self.member(host)
            for host in self.world.nodes.values()
            if host.me.name != mine and (self._down or not host.dead) and (mine, host.me.name) not in holes
        }


class Lag:
    """How long viewers take to see a change: drawn for each viewer and change."""

    def __init__(self, random: Random, up: float, down: float) -> None:
        self.random, self.up, self.down = random, up, down


class Detector(Director):
    """A failure detector as an oracle: whom a viewer can reach, over others if need be, it lists a little later; whom it cannot reach, or
    who is down or stopped, it drops after some time.

    Each viewer sees each change at a time of its own, so lists differ for seconds. A life is settled ``settling`` seconds after its start.
    Holes are false verdicts: a viewer lacks a member for a while that it can reach.
    """

    def __init__(
        self,
        world: World,
        board: Board,
        *,
        up: float = 0.5,
        down: float = 3.0,
        settling: float = 1.5,
        remembered: float = 60.0,
        holes: Open = lambda now: frozenset(),
    ) -> None:
        self._lag = Lag(Random(f"{world.seed}/lists"), up, down)
        self._settling, self._remembered, self._holes = settling, remembered, holes
        self._turn: dict[tuple[NodeId, NodeId], tuple[bool, float]] = {}  # viewer and member: what it will see, and from when on
        self._shown: dict[tuple[NodeId, NodeId], bool] = {}
        self._born: dict[NodeId, float] = {}
        self._gone: dict[NodeId, dict[str, float]] = {}  # by viewer: since when a name is not listed any more
        self._component: dict[str, int] = {}
        super().__init__(world, board)

    def before_look(self) -> None:
        now = self.world.now
        self._component = components(self.world)
        for host in self.world.nodes.values():
            if host.running and host.me not in self.board.settled and now - self._born.setdefault(host.me, now) >= self._settling:
                self._settle(host)
        self._present = self._holes(now)

    def wanted(self, viewer: LabHost) -> dict[str, Member]:
        found: dict[str, Member] = {}
        for host in self.world.nodes.values():
            name = host.me.name
            if host is viewer:
                continue
            reached = host.running and self._component.get(name) == self._component.get(viewer.me.name)
            if self._sees(viewer.me, host.me, reached) and (viewer.me.name, name) not in self._present:
                found[name] = self.member(host)
        self._forget(viewer, found)
        return found

    def _settle(self, host: LabHost) -> None:
        """D19: a life that came later is a member only when it has met one, which tells it the names that are remembered; or if there is
        no member left, and nothing parts those that run, who tell each other who they are. Alone it waits (gossip 5.7)."""
        running = [each for each in self.world.nodes.values() if each.running]
        near = [each for each in running if self._component.get(each.me.name) == self._component.get(host.me.name)]
        members = [each for each in near if each.me in self.board.settled and each is not host]
        told = {each.me.name for each in near}
        for each in members:
            told |= each.node.use(ScriptedLists).known_names()
        if self._born[host.me] > 0.0:
            host.node.use(ScriptedLists).remember(told)
        alone = len(near) == len(running) > 1 and not self.board.settled & {each.me for each in running}
        if members or self._born[host.me] == 0.0 or alone:
            self.board.settled.add(host.me)

    def _sees(self, viewer: NodeId, member: NodeId, reached: bool) -> bool:
        key = viewer, member
        shown = self._shown.setdefault(key, False)
        planned = self._turn.get(key)
        if reached == shown:
            self._turn.pop(key, None)
            return shown
        if planned is None or planned[0] != reached:
            lag = self._lag.random.uniform(0.0, self._lag.up) if reached else self._lag.random.uniform(0.3, 1.0) * self._lag.down
            planned = self._turn[key] = (reached, self.world.now + lag)
        if self.world.now >= planned[1]:
            self._shown[key] = reached
            del self._turn[key]
        return self._shown[key]

    def _forget(self, viewer: LabHost, found: Mapping[str, Member]) -> None:
        lists, gone, now = viewer.node.use(ScriptedLists), self._gone.setdefault(viewer.me, {}), self.world.now
        for name in lists.known_names():
            if name in found or name == viewer.me.name:
                gone.pop(name, None)
            elif now - gone.setdefault(name, now) > self._remembered:
                lists.forget([name])
                del gone[name]


def components(world: World) -> dict[str, int]:
    """Which of those that run reach each other both ways, directly or over others, by name."""
    running = [host.me.name for host in world.nodes.values() if host.running]
    blocked = world.network.is_cut
    found: dict[str, int] = {}
    for number, first in enumerate(running):
        if first in found:
            continue
        found[first], todo = number, [first]
        while todo:
            here = todo.pop()
            for there in running:
                if there not in found and not blocked(here, there) and not blocked(there, here):
                    found[there] = number
                    todo.append(there)
    return found
