"""What all checkers of gossip stand on: which lives there are, what each says of itself, who was stopped.  Spec: gossip 7.

It sees all members after every event. Only the member that the event touched can have changed, so the checkers are told of that one: with
``changed`` if its table is another than before, and with ``acted`` in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from holdfast.events import Event
from holdfast.features.gossip.lab.members import Change, WatchedNode
from holdfast.features.gossip.protocol.messages import Status
from holdfast.features.gossip.protocol.table import Entry
from holdfast.host import NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

ROUNDING = 1e-6  # seconds; clocks with rates and offsets round, and every timer of the lab is 1e-9 s late


class Life:
    """What is kept of one life of one process."""

    def __init__(self, host: LabHost, node: WatchedNode) -> None:
        self.host, self.node, self.me = host, node, host.me
        self.inc = 0  # the highest that it ever said of itself
        self.published: dict[int, Mapping[str, bytes]] = {}  # by inc: its rows from then on
        self.left = False  # it said goodbye
        self.died_at = inf  # true time
        self.pauses: list[tuple[float, float]] = []  # on the own clock
        self.stopped_at = inf
        self.kept: dict[str, Any] = {}  # what a checker keeps of it, by the checker's name

    def __str__(self) -> str:
        return str(self.me)

    @property
    def now(self) -> float:
        return self.host.now

    @property
    def n_max(self) -> int:
        return self.node.n_max

    @property
    def running(self) -> bool:
        return self.host.running

    @property
    def member(self) -> bool:
        """It takes part, as far as it knows, and means to stay."""
        return self.running and self.node.is_member and not self.left

    def paused(self, since: float) -> float:
        """For how long it was stopped since then, on its own clock."""
        return sum(max(0.0, end - max(begin, since)) for begin, end in self.pauses)


class GossipChecker(Checker):
    """A checker that is told by the watch what happened."""

    def __init__(self, watch: GossipWatch) -> None:
        self.watch = watch
        watch.checkers.append(self)

    def began(self, world: World, life: Life) -> None:
        """A process has started."""

    def changed(self, world: World, life: Life, change: Change) -> None:
        """One entry of its table was written or forgotten in this event."""

    def acted(self, world: World, life: Life) -> None:
        """It served an event."""


class GossipWatch(Checker):
    """No invariant of its own. It stands before the checkers that ask it."""

    name = "gossip"

    def __init__(self) -> None:
        self.checkers: list[GossipChecker] = []
        self.lives: dict[LabHost, Life | None] = {}  # None: a process that is no member, or is not watched
        self.by_id: dict[NodeId, Life] = {}
        self.names: set[str] = set()
        self._by_kind: dict[str, list[Any]] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        self.life(world, host)

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None:
            self._look_at_processes(world)
            return
        life = self.life(world, host)
        if life is None:
            return
        node = life.node
        if life.stopped_at < inf and host.running:
            life.pauses.append((life.stopped_at, host.now))
            life.stopped_at = inf
        changes = node.changes
        if changes:
            for change in changes:
                self._note_own(life, change)
            for checker in self._that("changed"):
                for change in changes:
                    checker.changed(world, life, change)
        for checker in self._that("acted"):
            checker.acted(world, life)
        node.forget_event()

    def life(self, world: World, host: LabHost) -> Life | None:
        if host not in self.lives:
            node = next((machine for machine in host.node.machines if isinstance(machine, WatchedNode)), None)
            if node is None and not host.node.machines:
                return None  # Its machines are being made.
            self.lives[host] = None if node is None else self._begin(world, Life(host, node))
        return self.lives[host]

    def of(self, entry: Entry) -> Life | None:
        """Whose life it is."""
        return self.by_id.get(entry.id)

    def members(self) -> list[Life]:
        return [life for life in self.lives.values() if life is not None and life.member]

    def _begin(self, world: World, life: Life) -> Life:
        self.by_id[life.me] = life
        self.names.add(life.me.name)
        for entry in life.node.table.entries():
            self._note_own(life, Change(entry.id.name, None, entry))
        for checker in self._that("began"):
            checker.began(world, life)
        return life

    def _note_own(self, life: Life, change: Change) -> None:
        new = change.new
        if new is not None and new.id == life.me:
            life.inc = max(life.inc, new.inc)
            life.published[new.rows_at] = dict(new.rows)
            life.left = life.left or new.status is Status.LEFT

    def _look_at_processes(self, world: World) -> None:
        """A fault or a step of the scenario: a process may have been stopped or killed."""
        for host in world.nodes.values():
            life = self.life(world, host)
            if life is None or host.running:
                continue
            if host.dead:
                life.died_at = min(life.died_at, world.now)
            elif life.stopped_at == inf:
                life.stopped_at = host.now

    def _that(self, what: str) -> list[Any]:
        """The checkers that want to hear of this."""
        if what not in self._by_kind:
            base = getattr(GossipChecker, what)
            self._by_kind[what] = [checker for checker in self.checkers if getattr(type(checker), what) is not base]
        return self._by_kind[what]
