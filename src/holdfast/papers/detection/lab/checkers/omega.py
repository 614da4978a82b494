"""What must hold of Omega at every step.  Spec: fast-detection 7 (I4, I10 in calm), D25, foundation F11.

The checkers hear what members say of themselves (``RoundEntered``, ``LeaderChanged``) and know the faults. Whose turn a round
is they compute themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.events import Event, LeaderChanged, Paused
from holdfast.host import NodeId
from holdfast.lab.calm import Calm
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World
from holdfast.papers.detection.protocol.omega import Omega, RoundEntered

ROUNDING = 1e-6  # seconds; a simulated clock that drifts rounds


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
    """A member names only the candidate of its round, only if that very life stood for it, and one life per round."""

    name = "leader-consented"

    def __init__(self, names: Sequence[str]) -> None:
        self._names = sorted(names)
        self._entered: set[tuple[NodeId, int]] = set()
        self._named: dict[tuple[NodeId, int], NodeId] = {}  # (who, in which round) -> whom

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, RoundEntered):
            self._entered.add((host.me, event.round))
        if isinstance(event, LeaderChanged) and event.leader is not None:
            self._check(host, event.leader, event.token)

    def _check(self, host: LabHost, leader: NodeId, number: int) -> None:
        candidate = self._names[number % len(self._names)]
        if leader.name != candidate:
            self.fail(f"{host.me} names {leader} in round {number} of {candidate}")
        if (leader, number) not in self._entered:
            self.fail(f"{host.me} names {leader}, which never was in round {number}")
        former = self._named.setdefault((host.me, number), leader)
        if former != leader:
            self.fail(f"{host.me} names {leader} in round {number}, where it named {former} before")


class SecondOk(Checker):
    """D25: no candidate is named before it can have said its second OK, one alpha after the first; a doubled datagram is one OK."""

    name = "D25 second-ok"

    def __init__(self, alpha: float) -> None:
        self._alpha = alpha
        self._stood_at: dict[tuple[NodeId, int], float] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, RoundEntered):
            self._stood_at[host.me, event.round] = world.now
        elif isinstance(event, LeaderChanged) and event.leader is not None:
            stood_for = world.now - self._stood_at.get((event.leader, event.token), world.now)
            if stood_for < self._alpha / world.drift.get(event.leader.name, 1.0) - ROUNDING:
                self.fail(
                    f"{host.me} names {event.leader} {stood_for:g} s after it entered round {event.token}; alpha is {self._alpha:g} s"
                )


class PausedJudgeNobody(Checker):
    """F11: a member that was stopped accuses no other before it has listened for its whole patience."""

    name = "F11 paused-judge-nobody"

    def __init__(self, patience_timeout: float) -> None:
        self._timeout = patience_timeout
        self._back_at: dict[NodeId, float] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Paused):
            self._back_at[host.me] = world.now
        elif isinstance(event, RoundEntered) and event.why == "silence" and host.me in self._back_at:
            listened = world.now - self._back_at[host.me]
            if listened < self._timeout / host.rate - ROUNDING:
                self.fail(f"{host.me} heard nobody {listened:g} s after it was stopped itself")


class Stable(Checker):
    """I10 in calm: once the group had time to agree and nothing happens any more, no member starts a round."""

    name = "I10 stable"

    def __init__(self, calm: Calm, settle: float) -> None:
        self._calm, self._settle = calm, settle

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, RoundEntered) and event.why == "silence" and world.now - self._calm.since() > self._settle:
            self.fail(f"{host.me} starts round {event.round} although nothing went wrong for {world.now - self._calm.since():g} s")


class Agreed(Checker):
    """I9 Converged: whenever nothing went wrong for long enough, all the living name one living leader, in one round."""

    name = "I9 agreed"

    def __init__(self, calm: Calm, settle: float) -> None:
        self._calm, self._settle = calm, settle

    def after(self, world: World, host: LabHost | None) -> None:
        calm_for = world.now - max(0.0, self._calm.since())  # The beginning is a time of disagreement too.
        if calm_for > self._settle and (why := disagreement(world)):
            self.fail(f"nothing went wrong for {calm_for:g} s: {why}")


def disagreement(world: World) -> str:
    """How the living differ about who leads; "" if they agree."""
    views = sorted({(str(omega.leader), omega.round) for omega in (host.node.use(Omega) for host in world.alive)})
    if len(views) > 1:
        return f"members disagree: {views}"
    for leader, _ in views:
        if leader not in {str(host.me) for host in world.alive}:
            return f"the leader is {leader}"
    return ""
