"""Since when has nothing gone wrong?  Known faults excuse a false opinion; checkers ask here whether there was one."""

from __future__ import annotations

from math import inf

from holdfast.host import NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World


class Calm(Checker):
    """No invariant of its own. It must stand before the checkers that ask it, so that it has seen what they see."""

    name = "calm"

    def __init__(self) -> None:
        self._links_since = -inf
        self._disturbed = False
        self._state: dict[str, tuple[NodeId, bool]] = {}
        self._since: dict[str, float] = {}
        self._known = 0  # turns of fate that are in ``_state``
        self._stopped = False  # some process is stopped: since now, at every look

    def after(self, world: World, host: LabHost | None) -> None:
        disturbed = world.network.disturbed
        if disturbed or self._disturbed:
            self._links_since = world.now  # Also in the event that ends it: until now it lay over the links.
        self._disturbed = disturbed
        if self._stopped or self._known != world.turns_of_fate:
            self._look_at_processes(world)

    def _look_at_processes(self, world: World) -> None:
        self._known, self._stopped = world.turns_of_fate, False
        for name, each in world.nodes.items():
            state, stopped = (each.me, each.running), not each.running and not each.dead
            self._stopped = self._stopped or stopped
            if stopped or self._state.get(name) != state:
                self._since[name] = world.now or -inf  # A process that starts with the world is no news.
                self._state[name] = state

    def links_since(self) -> float:
        """Since when no fault has lain over any link; -inf if never one did."""
        return self._links_since

    def process_since(self, name: str) -> float:
        """Since when that process is as it is now, dead or running: while it is stopped, since now; -inf if it never changed."""
        return self._since.get(name, -inf)

    def since(self) -> float:
        """Since when nothing at all has happened to any process."""
        return max([self._links_since, *self._since.values()])
