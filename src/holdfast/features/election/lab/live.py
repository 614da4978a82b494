"""The stack that ships, in the lab: gossip, seats and elections of many members, and how long things take.  Spec: election 8 (L4)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.events import Decided, Event
from holdfast.features.election.lab.clients import Client
from holdfast.features.election.lab.draws import FOUNDED_AFTER, RHO
from holdfast.features.election.protocol.config import ElectionConfig
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.facts import Elected
from holdfast.features.election.protocol.manner import Voters
from holdfast.features.election.protocol.shown import Role
from holdfast.features.gossip.lab.groups import GossipGroup
from holdfast.features.gossip.protocol import profiles
from holdfast.host import Address, Host, Machine, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot, own_slot
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT

NAME = "job"
SEATS = 3
LENGTH = 2.0
DELAY = Uniform(0.0005, 0.005)
STEP = 0.05


class LiveGroup(GossipGroup):
    """Formed members; some of them stand for one name, none of which is a seat."""

    def __init__(self, seed: int, members: int, *, voters: Voters, loss: float, candidates: int, period: float = 1.0) -> None:
        names = [f"n{number:05}" for number in range(members)]
        self.voters, self.candidates = voters, names[SEATS : SEATS + candidates]
        self.slots = tuple(Slot(number, name, Address(name, PORT)) for number, name in enumerate(names[:SEATS]))
        self.config = ElectionConfig(voters=voters, hold=LENGTH)
        self.elected: list[tuple[float, NodeId, int]] = []
        self.decided: list[tuple[float, NodeId]] = []
        super().__init__(seed, profiles.default(period), link=Link(DELAY, loss=loss), seeds=names[:SEATS])
        self.world.listeners.append(self._on_event)
        self.form(names)
        self.run(FOUNDED_AFTER if voters == "seats" else 2.0)
        for name in self.candidates:
            self.stand(name)

    # What runs do.

    def stand(self, name: str) -> None:
        host = self.host(name)
        self.world.step(host, lambda: host.node.use(Elections).campaign(NAME, LENGTH, Client(host, NAME, LENGTH)))

    def restart(self, name: str) -> None:
        """The next life of a candidate."""
        self.start(name)
        self.stand(name)

    def settle(self, seconds: float) -> str | None:
        """The leader, when all know it; None if it takes longer."""
        self.until(lambda: self.agreed() is not None, seconds, 0.25)
        return self.agreed()

    def next_leader(self, seconds: float) -> float | None:
        """Seconds until some member leads; None if none does in that time."""
        before, begin = len(self.elected), self.world.now
        self.until(lambda: len(self.elected) > before, seconds, STEP)
        return self.elected[before][0] - begin if len(self.elected) > before else None

    # What they see.

    def elections(self, name: str) -> Elections:
        return self.host(name).node.use(Elections)

    def leaders(self) -> list[str]:
        found = []
        for host in self.world.alive:
            state = host.node.use(Elections).state(NAME)
            if state is not None and state.role is Role.ACTIVE:
                found.append(host.me.name)
        return found

    def agreed(self) -> str | None:
        """The one that leads, if all that run know it."""
        leaders = self.leaders()
        if len(leaders) != 1:
            return None
        for host in self.world.alive:
            reign = host.node.use(Elections).leader(NAME)
            if reign is None or not reign.active or reign.leader.name != leaders[0]:
                return None
        return leaders[0]

    @property
    def timeout(self) -> float:
        """TIMEOUT as the members reckon it: the largest."""
        rtts = (self.node(name).rtt_p99() for name in self.alive)
        return max(0.2, 3 * max(rtts))

    @property
    def lists_agree(self) -> bool:
        lives = sorted(self.host(name).me for name in self.alive)
        return all([member.id for member in self.node(name).members()] == lives for name in self.alive)

    # How it is made.

    def _build(self, host: Host) -> Sequence[Machine]:
        node, broadcast, exchange, *rest = super()._build(host)
        assert isinstance(broadcast, Broadcast)
        assert isinstance(exchange, Exchange)
        seats = None
        if self.voters == "seats":
            own = own_slot(self.slots, host.me.name, host.address)
            seats = Seats(host, self.slots, own, machine=host.me.name, rho=RHO, length_max=LENGTH)
        elections = Elections(host, node, exchange, seats, self.config, broadcast=broadcast)  # type: ignore[arg-type]
        return [node, broadcast, exchange, *([seats] if seats is not None else []), elections, *rest]

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, Elected):
            self.elected.append((self.world.now, host.me, event.term))
        elif isinstance(event, Decided):
            self.decided.append((self.world.now, event.member.id))
