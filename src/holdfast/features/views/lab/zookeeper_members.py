"""Members whose views come from a real ensemble of ZooKeeper, all in one process and one loop.  Spec: views 5Z, 8 (T1).

The ensemble and its wires block, so what is asked of them runs in threads beside the loop. All that views say to each other goes through
the ensemble, so members have no sockets of their own; trials of what uses views may give them other machines, and a way of their own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from random import Random

from holdfast.events import Event
from holdfast.features.views.lab.ensemble import STALE, Ensemble
from holdfast.features.views.lab.users import Habits, ViewUser
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.zookeeper.servers import parse_servers
from holdfast.features.views.zookeeper.session import KazooSessions
from holdfast.features.views.zookeeper.views import ZooKeeperViews
from holdfast.host import Address, Machine, Message, NodeId, Storage, View, Views, ViewState
from holdfast.kit.parcels import Parcels
from holdfast.lab.fake_host import FakeStorage
from holdfast.node import Node, Transmit

GROUP = "lab"
SESSION = 2.0  # seconds; the ensemble's shortest one is 1
LOOK_INTERVAL = 0.02
LEAVE_MAX = 5.0  # seconds; a session whose server is cut off cannot leave

Told = Callable[[float, str, Event], None]
More = Callable[["LoopHost", Views], Sequence[Machine]]


class LoopTimer:
    """A callback of the loop."""

    def __init__(self, due_at: float, handle: asyncio.TimerHandle) -> None:
        self.due_at, self._handle = due_at, handle

    def cancel(self) -> None:
        self._handle.cancel()


class LoopHost:
    """A host in real time without a network: timers are those of the running loop, and what is sent is lost unless ``transmit`` is set."""

    late = 0.0

    def __init__(self, name: str, told: Told) -> None:
        self.me = NodeId(name, 1)
        self.address = Address(name, 1)  # where no process listens
        self.random = Random(name)
        self.storage: Storage = FakeStorage(auto=True)
        self.transmit: Transmit = _lose
        self.node = Node(self, self._transmit)
        self._loop, self._told = asyncio.get_running_loop(), told

    @property
    def now(self) -> float:
        return self._loop.time()

    def wall(self) -> float:
        return time.time()

    def at(self, due: float, callback: Callable[[], None]) -> LoopTimer:
        return LoopTimer(due, self._loop.call_at(due, callback))

    def after(self, delay: float, callback: Callable[[], None]) -> LoopTimer:
        return self.at(self.now + delay, callback)

    def send(self, to: NodeId | Address, message: Message) -> None:
        self.node.send(to, message)

    def meet(self, peer: NodeId, address: Address) -> None:
        self.node.meet(peer, address)

    def emit(self, event: Event) -> None:
        self._told(self.now, self.me.name, event)

    def post(self, callback: Callable[[], None]) -> None:
        """The way in for threads."""
        self._loop.call_soon_threadsafe(callback)

    def _transmit(self, address: Address, life: int, fingerprint: bytes, message: Message) -> None:
        self.transmit(address, life, fingerprint, message)


class ZooKeeperMember:
    """One of them."""

    def __init__(self, name: str, host: LoopHost, views: ZooKeeperViews, user: ViewUser) -> None:
        self.name, self.host, self.views, self.user = name, host, views, user

    @property
    def leased(self) -> View | None:
        """The view that it may count on now."""
        return None if self.views.state is ViewState.LOST else self.views.view


class ZooKeeperMembers:
    """Six of them, say, each with one server of the ensemble. ``told`` hears what they emit, with the moment on the loop's clock; ``more``
    makes the machines that each has beside its views."""

    def __init__(self, ensemble: Ensemble, told: Told, *, more: More = lambda host, views: ()) -> None:
        self.ensemble, self._told, self._more = ensemble, told, more
        self.all: list[ZooKeeperMember] = []

    async def start(self, servers: Sequence[int]) -> None:
        """One member for each of these servers: c0, c1 and so on."""
        for number, server in enumerate(servers):
            await self._open(f"c{number}", server)

    async def until(self, holds: Callable[[], bool], within: float) -> bool:
        """Wait until it is so; False if it is not in time."""
        loop = asyncio.get_running_loop()
        end_at = loop.time() + within
        while not holds():
            if loop.time() > end_at:
                return False
            await asyncio.sleep(LOOK_INTERVAL)
        return True

    def is_one(self) -> bool:
        """All count on one view that lists all of them."""
        views = [member.leased for member in self.all]
        first = views[0]
        return first is not None and first.size == len(views) and all(view is not None and view.id == first.id for view in views)

    def views(self) -> list[list[str]]:
        """The members of every view that some member counts on now."""
        found = {view.id: [each.id.name for each in view.members] for view in (member.leased for member in self.all) if view is not None}
        return sorted(found.values())

    def is_lost(self, names: Sequence[str]) -> bool:
        """One of these counts on no view, whatever the views of others list."""
        return any(member.leased is None for member in self.all if member.name in names)

    def say(self, source: str, target: str) -> bool:
        """One message by the mailbox; False if the receiver is not in the sender's view."""
        by_name = {member.name: member for member in self.all}
        view = by_name[source].leased
        to = None if view is None else view.find(target)
        if to is None:
            return False
        by_name[source].user.say(to.id)
        return True

    async def end(self) -> None:
        for member in self.all:
            member.views.withdraw()
        await self.until(lambda: all(member.views.left for member in self.all), LEAVE_MAX)
        for member in self.all:
            member.host.node.stop()

    async def _open(self, name: str, server: int) -> None:
        wire = await asyncio.to_thread(self.ensemble.door, server)
        host = LoopHost(name, self._told)
        sessions = KazooSessions(parse_servers(str(wire.address)), SESSION, host.post)
        views = ZooKeeperViews(host, ViewsConfig(), GROUP, sessions, Parcels(host.node, host.wall), stale=STALE)
        user = ViewUser(host, views, Habits(says=0.0))
        machines: list[Machine] = [views, user, *self._more(host, views)]
        for machine in machines:
            host.node.add(machine)
        host.node.start()
        self.all.append(ZooKeeperMember(name, host, views, user))


def _lose(address: Address, life: int, fingerprint: bytes, message: Message) -> None:
    """There is no way to any other member."""
