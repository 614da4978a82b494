"""Agents with views: what scenarios and experiments are made of.  Spec: views 7, 8.

Servers s0.. are the slots; clients c0.. are others. A server may be a client as well. Links between servers that a directed run or an
experiment cuts for good are lost links, which the end of all faults does not heal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from random import Random

from holdfast.events import Event
from holdfast.features.views.lab.checkers import Agreed, Disjoint, Monotone, OwnView, UniqueId
from holdfast.features.views.lab.leases import OneGroup
from holdfast.features.views.lab.letters import Once, Trip
from holdfast.features.views.lab.settled import Convergence, all_linked
from holdfast.features.views.lab.users import Habits, ViewUser
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import Address, Host, Machine, View
from holdfast.kit.parcels import Parcels
from holdfast.kit.slots import Slot, own_slot
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Hole
from holdfast.lab.host import LabHost
from holdfast.lab.links import Fixed, Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.world import World

DELAY = Uniform(0.001, 0.005)
STEP = 0.05  # seconds between two looks at whether something has come about
NO_LINK = Link(Fixed(0.001), loss=1.0)


def slots_of(servers: int) -> tuple[Slot, ...]:
    return tuple(Slot(i, f"s{i}", Address(f"s{i}", PORT)) for i in range(servers))


def machines(host: Host, config: ViewsConfig, slots: Sequence[Slot], habits: Habits) -> list[Machine]:
    """The machines of one life."""
    assert isinstance(host, LabHost)
    node = ViewNode(host, config, slots, own_slot(slots, host.me.name, host.address), Parcels(host.node, host.wall))
    return [node, ViewUser(host, node, habits)]


def all_checkers(config: ViewsConfig, *, chain: bool = False, late: float = 0.0) -> list[Checker]:
    """CB1 to CB6, CB8, CB9, and the one that is asked for CB7 and CB10 when the faults are over."""
    settled = Convergence(config, neighbours if chain else all_linked, late)
    return [UniqueId(), Monotone(), OwnView(), Disjoint(), Agreed(), OneGroup(config), Trip(config), Once(), settled]


def neighbours(one: str, other: str) -> bool:
    """Servers of a chain that have a link."""
    return abs(int(one[1:]) - int(other[1:])) <= 1


def make_chain(world: World, servers: int) -> None:
    """From now on only neighbours are linked; every client reaches every server."""
    for one, other in permutations([slot.name for slot in slots_of(servers)], 2):
        if not neighbours(one, other):
            world.network.set_link(NO_LINK, one, other)


class ViewGroup:
    """A group for directed runs and experiments, under all checkers unless ``checked`` is False."""

    def __init__(
        self,
        seed: int,
        servers: int,
        clients: int,
        *,
        config: ViewsConfig | None = None,
        both: bool = False,
        habits: Habits | None = None,
        link: Link | None = None,
        drift: float = 0.0,
        checked: bool = True,
        chain: bool = False,
        homes: bool = False,
        checkers: Sequence[Checker] | None = None,
    ) -> None:
        """``both``: servers are clients as well. ``chain``: only neighbouring servers have links. ``homes``: client i reaches server i
        modulo the number of servers, and no other one. ``checkers``: these alone, where all of them would take too long."""
        self.config = ViewsConfig() if config is None else config
        self.slots = slots_of(servers)
        self.servers = [slot.name for slot in self.slots]
        self.clients = [f"c{i}" for i in range(clients)]
        self.events: list[tuple[float, str, Event]] = []  # of the kinds that were asked for
        self._both, self._habits = both, Habits() if habits is None else habits
        self._random, self._drift = Random(f"{seed}/drift"), drift
        if checkers is None:
            checkers = all_checkers(self.config, chain=chain) if checked else []
        self.world = World(seed, self._build, link=Link(DELAY) if link is None else link, checkers=checkers)
        if chain:
            make_chain(self.world, servers)
        if homes:
            self._give_homes()
        for name in [*self.servers, *self.clients]:
            self.start(name)

    # What runs do.

    def start(self, name: str) -> None:
        if self._drift:
            self.world.drift.setdefault(name, 1 + self._random.uniform(-self._drift, self._drift))
        self.world.start(name)

    def crash(self, name: str) -> None:
        self.world.crash(name)

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)

    def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Run until it is so; False if it is not within so many seconds."""
        end = self.world.now + seconds
        while not done():
            if self.world.now >= end:
                return False
            self.run(STEP)
        return True

    def cut(self, one: Iterable[str], other: Iterable[str], *, both: bool = True) -> tuple[object, ...]:
        """Nothing passes from one to the other, nor back if ``both``. What ends it (``heal``)."""
        there, back = object(), object()
        one, other = tuple(one), tuple(other)
        self.world.network.cut(there, one, other)
        if not both:
            return (there,)
        self.world.network.cut(back, other, one)
        return there, back

    def heal(self, cuts: Iterable[object] | None = None) -> None:
        """These cuts, or all of them."""
        if cuts is None:
            self.world.network.heal()
        else:
            for cut in cuts:
                self.world.network.heal(cut)

    def hole(self, source: str, target: str, *kinds: str, larger: int | None = None, seconds: float = 1e5) -> None:
        Hole(self.world.now, seconds, (source,), (target,), kinds, larger).begin(self.world)

    def say(self, source: str, target: str, *, large: bool = False) -> int:
        """One message by the overlay; its number."""
        host, to = self.world.nodes[source], self.world.nodes[target].me
        numbers: list[int] = []
        self.world.step(host, lambda: numbers.append(host.node.use(ViewUser).say(to, large=large)))
        return numbers[0]

    def note(self, *kinds: type[Event]) -> None:
        """From now on keep events of these kinds."""

        def listen(host: LabHost, event: Event) -> None:
            if isinstance(event, kinds):
                self.events.append((self.world.now, host.me.name, event))

        self.world.listeners.append(listen)

    # What they see.

    def node(self, name: str) -> ViewNode:
        return self.world.nodes[name].node.use(ViewNode)

    def user(self, name: str) -> ViewUser:
        return self.world.nodes[name].node.use(ViewUser)

    @property
    def participants(self) -> list[str]:
        """Living agents that take part as clients."""
        chosen = [*self.servers, *self.clients] if self._both else self.clients
        return [name for name in chosen if not self.world.nodes[name].dead]

    def leased(self, name: str) -> View | None:
        """The view that this agent may count on now."""
        node, host = self.node(name), self.world.nodes[name]
        return node.view if host.now < node.leased_until else None

    def views(self) -> list[list[str]]:
        """The members of every view that some agent may count on now, by name; each agent that counts on none is a list by itself."""
        found = {view.id: [member.id.name for member in view.members] for view in map(self.leased, self.participants) if view is not None}
        return sorted(found.values()) + [[f"{name} alone"] for name in self.participants if self.leased(name) is None]

    def is_one(self, names: Iterable[str] | None = None) -> bool:
        """These, or all participants, count on one view that lists them and no other agent."""
        wanted = sorted(self.participants if names is None else names)
        seen = [self.leased(name) for name in wanted]
        first = seen[0]
        same = first is not None and all(view is not None and view.id == first.id for view in seen)
        return same and first is not None and [member.id.name for member in first.members] == wanted

    def _give_homes(self) -> None:
        for at, client in enumerate(self.clients):
            for slot in self.slots:
                if slot.number != at % len(self.slots):
                    self.world.network.set_link(NO_LINK, client, slot.name)
                    self.world.network.set_link(NO_LINK, slot.name, client)

    def _build(self, host: Host) -> Sequence[Machine]:
        takes_part = self._both or host.me.name in self.clients
        return machines(host, self.config, self.slots, self._habits if takes_part else Habits(takes_part=False))
