"""What must hold of Omega at every step.  Spec: fast-detection 7 (I4), and what Figure 3 implies about naming a leader."""

from __future__ import annotations

from holdfast.events import Event, LeaderChanged
from holdfast.host import NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World
from holdfast.protocols.detection.omega import Omega, RoundEntered


class RoundsGrow(Checker):
    """I4 TermMonotone: the rounds that one life enters strictly increase."""

    name = "I4 rounds-grow"

    def __init__(self) -> None:
        self._round: dict[NodeId, int] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, RoundEntered):
            if event.round <= self._round.get(host.me, -1):
                self.fail(f"{host.me} entered round {event.round} after round {self._round[host.me]}")
            self._round[host.me] = event.round

    def after(self, world: World, host: LabHost | None) -> None:
        if host is not None and host.node.running and host.node.use(Omega).round != self._round.get(host.me):
            self.fail(f"{host.me} is in round {host.node.use(Omega).round} without having entered it")


class LeaderConsented(Checker):
    """A member names only the candidate of its round, and only if that very life has been in that round itself."""

    name = "leader-consented"

    def __init__(self) -> None:
        self._entered: set[tuple[NodeId, int]] = set()

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, RoundEntered):
            self._entered.add((host.me, event.round))
        if isinstance(event, LeaderChanged) and event.leader is not None:
            omega = host.node.use(Omega)
            if event.leader.name != omega.candidate_of(event.token):
                self.fail(f"{host.me} names {event.leader} in round {event.token} of {omega.candidate_of(event.token)}")
            if (event.leader, event.token) not in self._entered:
                self.fail(f"{host.me} names {event.leader}, which never was in round {event.token}")
