"""CPU of one epoch of one member, for `limits`: 182 limiters with 16 limits each, in the lab, all demands changing.

The objects are those that agents run. Their messages go by reference, so sealing and encoding are not part of it; what a
datagram costs is `datagrams`. A demand that changes with every epoch keeps the gossip at its full pace (limits D26).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from random import Random
from time import process_time
from typing import Any, NamedTuple, cast

from benchmarks.harness import show_progress
from holdfast.events import ViewChanged, ViewEvent
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.limits.protocol.outlet import NOTHING, Allotment, Wants
from holdfast.features.limits.protocol.specs import Specs, make
from holdfast.host import Carried, Host, Machine, Message, NodeId, View, ViewId, ViewMember, ViewState
from holdfast.kit.exchange import Exchange
from holdfast.kit.rows import Merge, Rows, Test
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.world import World

SERVER = NodeId("s0", 1)
RATE = 1000.0  # of each limit
WARM = 10.0  # seconds: estimates converge, all peers are known


class Epoch(NamedTuple):
    """How much of it."""

    members: int = 182
    limits: int = 16
    seconds: float = 20.0
    seed: int = 1


class OneView:
    """Implements ``Views`` with one view, which lasts."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""
    settle, lease = 5.4, 1.5
    state, leased_until, settled_at, settled, left_at = ViewState.STABLE, inf, 0.0, True, None

    def __init__(self) -> None:
        self.view: View | None = None
        self._listeners: list[Callable[[ViewEvent], None]] = []

    def install(self, view: View) -> None:
        self.view = view
        for listener in self._listeners:
            listener(ViewChanged(view, tuple(member.id for member in view.members), ()))

    def subscribe(self, listener: Callable[[ViewEvent], None]) -> None:
        self._listeners.append(listener)

    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        raise AssertionError("no link is cut")

    def trip(self, why: str, *, above: int = 0) -> bool:
        raise AssertionError(why)

    def hurry(self) -> None:
        """There is no other view."""


class Apart:
    """In the place of an ``Exchange``: each member sets the same limits itself, so that no table is part of what is measured."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def rows(self, topic: str, merge: Merge, *, gone: Test, valid: Test, tombstone_ttl: float) -> Rows:
        return Rows(self._host, topic, merge, lambda rows, keys: None, gone=gone, valid=valid, tombstone_ttl=tombstone_ttl)


class Noise:
    """An outlet whose demand is another one in every epoch."""

    def __init__(self, random: Random, most: float) -> None:
        self.on_less: Callable[[], None] = _nothing
        self._random, self._most = random, most
        self._allotment = NOTHING

    def wants(self) -> Wants:
        return Wants(self._random.uniform(0.5, 1.0) * self._most, 0.0)

    def allot(self, allotment: Allotment) -> None:
        self._allotment = allotment

    @property
    def told(self) -> float:
        return self._allotment.rate


def measure(size: Epoch, folder: Path) -> dict[str, Any]:
    """``folder`` is not used: nothing is kept."""
    del folder
    views: dict[str, OneView] = {}
    limiters: dict[str, Limiter] = {}

    def build(host: Host) -> list[Machine]:
        name = host.me.name
        views[name] = OneView()
        specs = Specs(host, cast(Exchange, Apart(host)))
        limiters[name] = Limiter(host, LimitsConfig(), views[name], specs, agreed=True)
        return [limiters[name]]

    names = [f"m{number:03}" for number in range(size.members)]
    world = World(size.seed, build, names=names, link=Link(delay=Uniform(0.001, 0.01)))
    hosts = [world.nodes[name] for name in names]
    members = tuple(sorted(ViewMember(host.me, host.address, 1, SERVER) for host in hosts))
    view = View(ViewId(1, SERVER.name, SERVER.boot), (SERVER,), members, len(members))
    for host in hosts:
        world.step(host, lambda: begin(host, hosts, views[host.me.name], limiters[host.me.name], view, size))  # noqa: B023 - called here
    show_progress("epochs")
    world.run(WARM)
    before, epochs = process_time(), sum(limiter.epochs for limiter in limiters.values())
    world.run(WARM + size.seconds)
    took, epochs = process_time() - before, sum(limiter.epochs for limiter in limiters.values()) - epochs
    return {"epoch_us": took / epochs * 1e6, "epochs": epochs, "events": world.events}


def begin(host: LabHost, hosts: Sequence[LabHost], views: OneView, limiter: Limiter, view: View, size: Epoch) -> None:
    for other in hosts:
        host.meet(other.me, other.address)
    for number in range(size.limits):
        limiter.specs.set(f"limit-{number}", make(RATE, RATE / 10))
        limiter.open(f"limit-{number}", Noise(host.random, 2 * RATE / size.members))
    views.install(view)


def _nothing() -> None:
    """No worker waits for less."""
