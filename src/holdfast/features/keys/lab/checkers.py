"""What must hold of keys at every step.  Spec: docs/keys.md, docs/decisions.md H57.

The checkers hear what machines tell their agents (``KeysReported``) and know the faults.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

from holdfast.events import Event, Internal
from holdfast.features.keys.protocol.keys import KeyKeeper, KeysAsked, Report
from holdfast.features.keys.protocol.warden import KeysChanged
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World


class KeysReported(Internal, frozen=True):
    """What an operator at this node was told."""

    action: str
    reports: tuple[Report, ...]


class Readable(Checker):
    """docs/keys.md: each member holds the key that every other writes with, unless one of the two was not in the list of the member that
    changed keys, so that it could not be asked."""

    name = "readable"

    def __init__(self, keys_at: Callable[[str], tuple[str, ...]]) -> None:
        self._keys_at = keys_at
        self._left_out: set[str] = set()  # places that missed a change

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, KeysAsked) and event.action != "install":  # who lacks a key is found before it is used
            asked = {life.name for life in event.members}
            self._left_out |= {place for place in world.nodes if place not in asked}
        elif isinstance(event, KeysChanged):  # what a keyring holds changes with this event alone
            self._check(world)

    def _check(self, world: World) -> None:
        places = [place for place in world.nodes if place not in self._left_out]
        for place, other in permutations(places, 2):
            primary = self._keys_at(other)[0]
            if primary not in self._keys_at(place):
                self.fail(f"{place} holds {self._keys_at(place)}, and {other} writes with {primary}")


class EverybodyNamed(Checker):
    """docs/keys.md: a report has a line for every member in the list of the member that asked."""

    name = "everybody-named"

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, KeysReported):
            reported = {report.member.name for report in event.reports}
            listed = {member.id.name for member in host.node.use(KeyKeeper).membership.members()}
            if not listed <= reported:
                self.fail(f"{host.me} was told nothing of {sorted(listed - reported)}")
