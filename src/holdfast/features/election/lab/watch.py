"""What all checkers of elections stand on: the state of each name at each member, before and after an event.  Spec: election 7."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from holdfast.events import Event
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.manner import Manner
from holdfast.features.election.protocol.shown import Account, State
from holdfast.host import NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World


class Life:
    """What is kept of one life of one process."""

    def __init__(self, host: LabHost, elections: Elections) -> None:
        self.host, self.elections, self.me = host, elections, host.me
        self.states: dict[str, State] = {}
        self.kept: dict[str, Any] = {}  # what a checker keeps of it, by the checker's name

    def __str__(self) -> str:
        return str(self.me)

    def finished(self, name: str) -> Account | None:
        """The last election of that name that ended here, also while another one runs."""
        contest = self.elections._core.contests.get(name)
        return None if contest is None else contest.last


class ElectionChecker(Checker):
    """A checker that is told by the watch what happened."""

    def __init__(self, watch: ElectionWatch) -> None:
        self.watch = watch
        watch.checkers.append(self)

    def changed(self, world: World, life: Life, before: State | None, now: State) -> None:
        """What a member holds of one name is another than before."""

    def heard(self, world: World, life: Life, event: Event) -> None:
        """It emitted a fact. Its state may be in the midst of an event."""


class ElectionWatch(Checker):
    """No invariant of its own. It stands before the checkers that ask it."""

    name = "election"

    def __init__(self, manners: Mapping[str, Manner], liars: Collection[NodeId] = ()) -> None:
        self.manners = dict(manners)  # of the names that are led
        self.liars = frozenset(liars)  # lives whose words no rule binds
        self.checkers: list[ElectionChecker] = []
        self.lives: dict[LabHost, Life] = {}

    def fencing(self, name: str) -> bool:
        found = self.manners.get(name)
        return found is not None and found.fencing

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        life = self.life(host)
        if life is not None:
            for checker in self.checkers:
                checker.heard(world, life, event)

    def after(self, world: World, host: LabHost | None) -> None:
        life = None if host is None or not host.running else self.life(host)
        if life is None:
            return
        for name in self.manners:
            now = life.elections.state(name)
            before = life.states.get(name)
            if now is None or now == before:
                continue
            life.states[name] = now
            for checker in self.checkers:
                checker.changed(world, life, before, now)

    def life(self, host: LabHost) -> Life | None:
        if host not in self.lives:
            found = next((machine for machine in host.node.machines if isinstance(machine, Elections)), None)
            if found is None:
                return None  # Its machines are being made.
            self.lives[host] = Life(host, found)
        return self.lives[host]

    def of(self, member: NodeId) -> Life | None:
        return next((life for life in self.lives.values() if life.me == member), None)
