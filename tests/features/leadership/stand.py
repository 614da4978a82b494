"""A small group with seats in the lab, in calm: what a test of leadership needs to speak of agents, clients and takeovers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from math import inf

from holdfast.events import Event, LeaderChanged
from holdfast.features.leadership.protocol.facts import Leading, LostLead, RoundAsked
from holdfast.features.leadership.protocol.leadership import Leadership, LeadershipConfig
from holdfast.host import Address, Host, Machine
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.hold import LossReason
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot, own_slot
from holdfast.lab.host import LabHost
from holdfast.lab.links import Exponential, Link
from holdfast.lab.listed_members import Hidden, ListedMembers, Lists
from holdfast.lab.network import PORT
from holdfast.lab.world import World

RHO = 1e-3
MEAN = 0.01  # seconds on the road
FOUNDED = 3.0  # seconds: fresh seats have waited, everybody has met


class Client:
    """Implements ``kit.hold.Holder``: writes down what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.token = 0
        self.deadline = -inf

    def on_queued(self, position: int, why: str = "") -> None:
        """Candidates of one name stand in no queue."""

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        self.said.append("leading")
        self.token, self.deadline = token, deadline

    def on_extended(self, deadline: float) -> None:
        assert deadline > self.deadline
        self.deadline = deadline

    def on_at_risk(self) -> None:
        self.said.append("at risk")

    def on_lost(self, reason: LossReason) -> None:
        self.said.append(f"lost: {reason.word}")


class Stand:
    """Agents a0, a1, ...; the first of them are the seats."""

    def __init__(
        self,
        agents: int = 5,
        seats: int = 3,
        *,
        seed: int = 1,
        t_itv: float = 1.0,
        length: float = 1.5,
        loss: float = 0.0,
        hidden: Sequence[Hidden] = (),
        named: bool = True,
        config: LeadershipConfig | None = None,
    ) -> None:
        self.length = length
        self.config = config or LeadershipConfig(t_itv=t_itv, rho=RHO)
        places = [Address(f"a{i}", PORT) for i in range(seats)]
        self.slots = tuple(Slot(i, place.host if named else str(place), place) for i, place in enumerate(places))
        self.names = tuple(f"a{i}" for i in range(agents))
        self.facts: list[tuple[float, str, Event]] = []
        self.clients: dict[tuple[str, str], Client] = {}
        self.world = World(seed, self.build, names=self.names, link=Link(Exponential(MEAN), loss=loss))
        self.world.listeners.append(self._note)
        Lists(self.world, hidden)
        self.world.run(FOUNDED)

    def build(self, host: Host) -> Iterable[Machine]:
        members = ListedMembers(host)
        own = own_slot(self.slots, host.me.name, host.address)
        seats = Seats(host, self.slots, own, machine=host.me.name, rho=RHO, length_max=self.length)
        broadcast = Broadcast(host, members)
        exchange = Exchange(host, broadcast)
        return [members, seats, broadcast, exchange, Leadership(host, members, seats, exchange, self.config)]

    def at(self, agent: str) -> Leadership:
        return self.world.nodes[agent].node.use(Leadership)

    def host(self, agent: str) -> LabHost:
        return self.world.nodes[agent]

    def stand(self, *agents: str, name: str = "x", length: float | None = None) -> None:
        for agent in agents:
            client = self.clients[agent, name] = Client()
            self.do(agent, partial(self.at(agent).campaign, name, self.length if length is None else length, client))

    def resign(self, agent: str, name: str = "x") -> None:
        self.do(agent, partial(self.at(agent).resign, name))

    def do(self, agent: str, action: partial[None]) -> None:
        self.world.step(self.host(agent), action)

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)

    def leader(self, name: str = "x") -> str:
        """Who says that it leads; "" if nobody does."""
        leading = [host.me.name for host in self.world.alive if host.node.use(Leadership).is_leader(name)]
        assert len(leading) <= 1
        return leading[0] if leading else ""

    def opinions(self, name: str = "x") -> set[tuple[str, int]]:
        """Who leads under which token, as the living agents know it."""
        found = [host.node.use(Leadership).leader(name) for host in self.world.alive]
        return {("", 0) if led is None else (led.leader.name, led.token) for led in found}

    def led(self, name: str = "x") -> list[tuple[float, str]]:
        """When who began to lead."""
        return [(at, agent) for at, agent, fact in self.facts if isinstance(fact, Leading) and fact.name == name]

    def lost(self, name: str = "x") -> list[tuple[str, str]]:
        return [(agent, fact.why) for _, agent, fact in self.facts if isinstance(fact, LostLead) and fact.name == name]

    def asked(self, name: str = "x") -> list[tuple[str, str]]:
        return [(agent, fact.why) for _, agent, fact in self.facts if isinstance(fact, RoundAsked) and fact.name == name]

    def changes(self, agent: str, name: str = "x") -> list[str]:
        found = [fact for _, who, fact in self.facts if who == agent and isinstance(fact, LeaderChanged) and fact.name == name]
        return ["" if fact.leader is None else fact.leader.name for fact in found]

    def takeover(self, name: str = "x", seconds: float = 20.0) -> tuple[float, str]:
        """Seconds until somebody else begins to lead, and who."""
        before, now = len(self.led(name)), self.world.now
        self.run(seconds)
        news = self.led(name)[before:]
        assert news, "nobody took over"
        return news[0][0] - now, news[0][1]

    @property
    def bound(self) -> float:
        """Death to leading without loss: whichever is later, the report (t_itv + delta + w, Prop. 4.2) or the end of the last promise
        (the heartbeat was on its way), then a round trip and the write of a seat."""
        report = self.config.t_itv + self.config.delta + self.config.w
        promise = self.length * (1 + 2 * RHO) + self.config.t_rtt
        return max(report, promise) + 2 * self.config.t_rtt

    def _note(self, host: LabHost, event: Event) -> None:
        self.facts.append((self.world.now, host.me.name, event))
