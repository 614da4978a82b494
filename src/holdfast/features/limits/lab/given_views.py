"""Views that an experiment writes: every member is given the same one, and leases last until something else is said.  Spec: limits 8.

For trials in which nothing is asked of views but a list: F8 to F12, N1 to N3. What ``carry`` brings takes a moment and passes no link that
is cut, as long as ``Overlay.works``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf

from holdfast.events import ViewChanged, ViewEvent
from holdfast.host import Carried, Host, Message, NodeId, View, ViewId, ViewMember, ViewState
from holdfast.lab.host import LabHost
from holdfast.lab.links import Uniform
from holdfast.lab.world import World

SETTLE, LEASE = 5.4, 1.5  # seconds, those of ``lan``
SERVER = NodeId("s0", 1)
QUICK = Uniform(0.002, 0.01)  # seconds that a carried message takes
DEADLINE = 3.0  # seconds until a message that cannot be carried is given up


class Overlay:
    """The way round that all members share."""

    def __init__(self, delay: Uniform = QUICK) -> None:
        self.delay = delay
        self.works = True
        self.carried = 0  # messages


class GivenViews:
    """Implements ``Views`` for one member. A machine of its node."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""
    settle, lease = SETTLE, LEASE

    def __init__(self, host: Host, overlay: Overlay) -> None:
        assert isinstance(host, LabHost)
        self._host, self._overlay = host, overlay
        self._listeners: list[Callable[[ViewEvent], None]] = []
        self.view: View | None = None
        self.leased_until = -inf
        self.settled_at = inf
        self.left_at: float | None = -inf  # it was in none
        self.trips: list[str] = []

    @property
    def state(self) -> ViewState:
        return ViewState.STABLE if self._host.now < self.leased_until else ViewState.LOST

    @property
    def settled(self) -> bool:
        return self.state is ViewState.STABLE and self._host.now >= self.settled_at

    def subscribe(self, listener: Callable[[ViewEvent], None]) -> None:
        self._listeners.append(listener)

    def install(self, view: View) -> None:
        former = () if self.view is None else tuple(member.id for member in self.view.members)
        present = tuple(member.id for member in view.members)
        self.view, self.leased_until, self.settled_at = view, inf, self._host.now + SETTLE
        self.left_at = None
        for member in view.members:
            self._host.meet(member.id, member.address)
        added = tuple(life for life in present if life not in former)
        for listener in self._listeners:
            listener(ViewChanged(view, added, tuple(life for life in former if life not in present)))

    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        world, random, overlay = self._host.world, self._host.random, self._overlay
        if self.view is None or self.view.find(to.name) is None:
            done(Carried.NOT_IN_VIEW)
            return
        overlay.carried += 1
        if not overlay.works:
            world.at(world.now + DEADLINE, partial(self._tell, done, Carried.TRIPPED))
            return
        there = random.uniform(overlay.delay.low, overlay.delay.high)
        world.at(world.now + there, partial(self._arrive, to, message))
        world.at(world.now + 2 * there, partial(self._tell, done, Carried.DELIVERED))

    def trip(self, why: str, *, above: int = 0) -> bool:
        self.trips.append(why)
        return False

    def hurry(self) -> None:
        """There is no server to ask."""

    def start(self) -> None:
        """The experiment installs."""

    def stop(self) -> None:
        """It is over."""

    def on_message(self, source: NodeId, message: Message) -> None:
        """It has none."""

    def on_away(self, seconds: float) -> None:
        """Leases do not end here."""

    def _arrive(self, to: NodeId, message: Message) -> None:
        world, me = self._host.world, self._host.me
        target = world.nodes[to.name]
        if target.me == to and target.running:
            digest = self._host.node.digests.get(type(message), b"")
            world.step(target, lambda: target.node.hand_on(me, digest, message))

    def _tell(self, done: Callable[[Carried], None], outcome: Carried) -> None:
        if self._host.running:
            self._host.world.step(self._host, lambda: done(outcome))


def install(world: World, names: Iterable[str], number: int, of: Callable[[LabHost], GivenViews]) -> View:
    """Give all of these the same view, with the lives that they have now."""
    hosts = [world.nodes[name] for name in names]
    members = tuple(sorted(ViewMember(host.me, host.address, 1, SERVER) for host in hosts))
    view = View(ViewId(number, SERVER.name, SERVER.boot), (SERVER,), members, len(members))
    for host in hosts:
        world.step(host, partial(of(host).install, view))
    return view
