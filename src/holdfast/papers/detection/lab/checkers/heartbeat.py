"""What must hold of the heartbeat detector at every step.  Spec: fast-detection D11, paper 002 Proposition 4.1; foundation F11.

Each checker knows the faults: a false opinion needs one as its excuse, and a late opinion none that explains it is a violation.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.events import Event, Paused
from holdfast.host import NodeId
from holdfast.lab.calm import Calm
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World
from holdfast.papers.detection.protocol.heartbeat import GRACE_INTERVALS, Heard, HeartbeatDetector, Silenced

ROUNDING = 1e-6  # seconds; a simulated clock that drifts rounds


class NoFalseSilence(Checker):
    """Accuracy without loss: a subject that lives, is not stopped and can be heard is never silenced."""

    name = "no-false-silence"

    def __init__(self, calm: Calm, excused_for: float) -> None:
        self._calm = calm
        self._excused_for = excused_for  # a fault explains a silence for so long after its end

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if not isinstance(event, Silenced) or world.nodes[event.peer.name].me != event.peer:
            return
        parties = (self._calm.process_since(name) for name in (host.me.name, event.peer.name))
        calm_for = world.now - max(self._calm.links_since(), *parties)
        if not world.nodes[event.peer.name].dead and calm_for > self._excused_for:
            self.fail(f"{host.me} silenced {event.peer}, and between the two nothing went wrong for {calm_for:g} s")


class DetectedInTime(Checker):
    """Proposition 4.1, from above: no member trusts a dead life for longer than the bound."""

    name = "detected-in-time"

    def __init__(self, calm: Calm, bound: Callable[[NodeId], float], grace: float) -> None:
        self._calm, self._bound, self._grace = calm, bound, grace
        self._died_at: dict[NodeId, float] = {}

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None:
            for each in world.nodes.values():
                if each.dead:
                    self._died_at.setdefault(each.me, world.now)
            return
        if not host.running:
            return
        for life in host.node.use(HeartbeatDetector).trusted:
            died_at = self._died_at.get(life)
            # A member that was stopped itself counts from when it went on (F11).
            if died_at is not None and world.now > max(died_at, self._calm.process_since(host.me.name) + self._grace) + self._bound(
                host.me
            ):
                self.fail(f"{host.me} trusts {life}, dead for {world.now - died_at:g} s; the bound is {self._bound(host.me):g} s")


class LivesGrow(Checker):
    """F1: a member that heard a life never hears an earlier one of that name."""

    name = "F1 lives-grow"

    def __init__(self) -> None:
        self._heard: dict[tuple[NodeId, str], NodeId] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Heard):
            former = self._heard.setdefault((host.me, event.peer.name), event.peer)
            if event.peer.boot < former.boot:
                self.fail(f"{host.me} hears {event.peer} after {former}")
            self._heard[host.me, event.peer.name] = event.peer


class PausedSilenceNobody(Checker):
    """F11: a member that was stopped accuses no other before its peers had time for a heartbeat."""

    name = "F11 paused-silence-nobody"

    def __init__(self, interval: float) -> None:
        self._grace = GRACE_INTERVALS * interval
        self._back_at: dict[NodeId, float] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Paused):
            self._back_at[host.me] = world.now
        elif isinstance(event, Silenced) and host.me in self._back_at:
            listened = world.now - self._back_at[host.me]
            if listened < self._grace / host.rate - ROUNDING:
                self.fail(f"{host.me} silenced {event.peer} {listened:g} s after it was stopped itself")


class Informed(Checker):
    """Whenever nothing went wrong for long enough, all trust exactly those that live."""

    name = "informed"

    def __init__(self, calm: Calm, settle: float) -> None:
        self._calm, self._settle = calm, settle

    def after(self, world: World, host: LabHost | None) -> None:
        calm_for = world.now - max(0.0, self._calm.since())
        if host is not None and host.running and calm_for > self._settle and (why := misinformed(world, host)):
            self.fail(f"nothing went wrong for {calm_for:g} s: {why}")


def misinformed(world: World, host: LabHost) -> str:
    """Whom a node trusts wrongly or not yet; "" if it is right about all."""
    trusted = set(host.node.use(HeartbeatDetector).trusted)
    living = {each.me for each in world.alive if each is not host}
    if trusted == living:
        return ""
    return f"{host.me} trusts {sorted(map(str, trusted))}, alive are {sorted(map(str, living))}"
