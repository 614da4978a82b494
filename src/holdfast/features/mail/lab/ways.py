"""Views, an overlay and a member list for the trials of mail: as bad as they may be, and whole again in calm.  Spec: views G5, D30, D31.

Nothing is agreed upon here. Each node has a list of its own of the lives that run, and now and then it leaves one out or has none at all.
The overlay is slower than the network, loses, doubles and refuses; unlike the network it is never cut. It hands a copy on twice although
views would not (G7): what a receiver hears twice must be one letter whatever the overlay does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from random import Random

from holdfast.events import Failed, Joined, ViewEvent
from holdfast.host import Carried, Member, Message, NodeId, Timer, View, ViewId, ViewMember, ViewState
from holdfast.kit.parcels import Parcel, Parcels
from holdfast.kit.roster import Roster
from holdfast.lab.host import LabHost

LOOK_PERIOD = 0.5  # between two views of one node
LOST_SHARE = 0.1  # of the views: there is none
LEFT_OUT_SHARE = 0.1  # of the lives in a view
DELAY = (0.005, 0.4)  # of one copy, and of the word that it was delivered
DROPPED_SHARE = 0.3  # of the copies, and of these words
DOUBLED_SHARE = 0.2
BUSY_SHARE = 0.1
RETRY_INTERVAL = 1.0
CARRY_SECONDS = 4.0  # 16 heartbeats of views in a local network


class Load:
    """One message under way; ``done`` runs once."""

    def __init__(self, to: NodeId, parcel: Parcel, until: float, done: Callable[[Carried], None]) -> None:
        self.to, self.parcel, self.until = to, parcel, until
        self._done: Callable[[Carried], None] | None = done

    @property
    def under_way(self) -> bool:
        return self._done is not None

    def end(self, became: Carried) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(became)


class RoughViews:
    """Implements ``holdfast.host.Views`` and ``Machine``. It is rough until ``calm_at``, in true time."""

    handles = ()
    fingerprint = b""
    state = ViewState.STABLE
    leased_until = inf
    settled_at = -inf
    left_at: float | None = None
    settled = True
    settle, lease = 5.4, 1.5

    def __init__(self, host: LabHost, calm_at: float) -> None:
        self._host, self._calm_at = host, calm_at
        self._parcels = Parcels(host.node, host.wall)
        self._random = Random(f"{host.world.seed}/ways/{host.me}")
        self.view: View | None = None
        self._number = 0
        self._timer: Timer | None = None

    def start(self) -> None:
        self._on_look()

    def on_message(self, source: NodeId, message: Message) -> None:
        raise AssertionError("it handles no messages")

    def on_away(self, seconds: float) -> None:
        """The next look comes anyway."""

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def subscribe(self, listener: Callable[[ViewEvent], None]) -> None:
        """Mail asks at every use."""

    def trip(self, why: str, *, above: int = 0) -> bool:
        return False

    def hurry(self) -> None:
        """The next look comes soon."""

    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        found = None if self.view is None else self.view.find(to.name)
        parcel = self._parcels.pack(message)
        if found is None or found.id != to:
            done(Carried.NOT_IN_VIEW)
        elif parcel is None:
            done(Carried.TOO_LARGE)
        elif self._happens(BUSY_SHARE):
            done(Carried.BUSY)
        else:
            self._try(Load(to, parcel, self._host.now + CARRY_SECONDS, done))

    def unpack(self, sender: NodeId, parcel: Parcel) -> None:
        """As the overlay's last hop does."""
        self._parcels.unpack(sender, parcel)

    def _happens(self, share: float) -> bool:
        return self._random.random() < share and self._host.world.now < self._calm_at

    def _on_look(self) -> None:
        lives = [host for host in self._host.world.alive if host is self._host or not self._happens(LEFT_OUT_SHARE)]
        members = tuple(sorted(ViewMember(host.me, host.address, 1, host.me) for host in lives))
        self._number += 1
        me = self._host.me
        self.view = None if self._happens(LOST_SHARE) else View(ViewId(self._number, me.name, me.boot), (me,), members)
        self._timer = self._host.after(LOOK_PERIOD, self._on_look)

    def _try(self, load: Load) -> None:
        if not load.under_way:
            return
        if self._host.now >= load.until:
            load.end(Carried.TRIPPED)
            return
        for _ in range(1 + self._happens(DOUBLED_SHARE) - self._happens(DROPPED_SHARE)):
            self._later(partial(self._arrive, load))
        self._host.after(RETRY_INTERVAL, partial(self._try, load))

    def _arrive(self, load: Load) -> None:
        world = self._host.world
        target = world.nodes[load.to.name]
        if target.me != load.to or not target.running:
            return
        world.step(target, lambda: target.node.use(RoughViews).unpack(self._host.me, load.parcel))
        if not self._happens(DROPPED_SHARE):
            self._later(partial(self._on_delivered, load))

    def _on_delivered(self, load: Load) -> None:
        if self._host.running:
            self._host.world.step(self._host, lambda: load.end(Carried.DELIVERED))

    def _later(self, step: Callable[[], None]) -> None:
        world = self._host.world
        world.at(world.now + self._random.uniform(*DELAY), step)


class EmptyingRoster(Roster):
    """A list that may lose all others, as that of a ring does in a 50/50 partition (views D31)."""

    emptied = False

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        return tuple(member for member in super().members(topic) if not self.emptied or member.id == self._host.me)

    def get(self, name: str) -> Member | None:
        return None if self.emptied and name != self._host.me.name else super().get(name)

    def empty(self) -> None:
        others = [member for member in super().members() if member.id != self._host.me]
        self.emptied = True
        for member in others:
            self._announce(Failed(member, certain=False))

    def fill(self) -> None:
        self.emptied = False
        for member in super().members():
            if member.id != self._host.me:
                self._announce(Joined(member))
