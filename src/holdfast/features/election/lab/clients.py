"""Who asks to lead in the lab: clients that stand for names, hold what they were told, withdraw and resign.  Spec: election 5.10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import ClassVar

from holdfast.errors import ConfigError, Unavailable
from holdfast.events import Internal
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.manner import Manner
from holdfast.host import Host
from holdfast.kit.hold import LossReason
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

LOOK_PERIOD = 0.3  # true seconds between two looks at whether all stand that should
CHANGE_INTERVAL = 2.5  # mean true seconds between two changes of who stands for a name
STAND_SHARE = 0.6  # of the agents stand for a name at first
ODD_SECONDS = 1.5  # for which an agent stands in another manner than the others
WHAT = ("come", "come", "come", "go", "leader goes", "turn", "neglect", "elect", "odd")


class Told(Internal, frozen=True):
    """A client may act under this token until that instant of its agent's clock."""

    family: ClassVar[str] = "election"
    name: str
    token: int
    deadline: float
    length: float


class Stopped(Internal, frozen=True):
    """That client acts no more: it was told so, or it said so."""

    family: ClassVar[str] = "election"
    name: str
    token: int


class Client:
    """Implements ``kit.hold.Holder``."""

    def __init__(self, host: Host, name: str, length: float) -> None:
        self._host, self._name, self._length = host, name, length
        self.token = 0
        self.granted = 0

    def on_queued(self, position: int, why: str = "") -> None:
        """Candidates of one name stand in no queue."""

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        self.token = token
        self.granted += 1
        self._host.emit(Told(self._name, token, deadline, self._length))

    def on_extended(self, deadline: float) -> None:
        self._host.emit(Told(self._name, self.token, deadline, self._length))

    def on_at_risk(self) -> None:
        """It goes on until its deadline."""

    def on_lost(self, reason: LossReason) -> None:
        self.stop()

    def stop(self) -> None:
        if self.token:
            self._host.emit(Stopped(self._name, self.token))
            self.token = 0


def stand(world: World, host: LabHost, name: str, manner: Manner, length: float) -> Client | None:
    """None: it was refused, because others stand in another manner."""
    client = Client(host, name, length)
    refused: list[Exception] = []

    def ask() -> None:
        try:
            host.node.use(Elections).campaign(name, length, client, manner=manner)
        except (ConfigError, Unavailable) as error:
            refused.append(error)

    world.step(host, ask)
    return None if refused else client


class Clients:
    """Who should stand for what, and when that changes."""

    def __init__(
        self,
        world: World,
        manners: Mapping[str, Manner],
        agents: Sequence[str],
        *,
        length: float,
        until: float,
        share: float = STAND_SHARE,
        changes: bool = True,
    ) -> None:
        self._world, self._manners, self._agents, self._length = world, dict(manners), tuple(agents), length
        self._random = Random(f"{world.seed}/clients")
        self.standing = {name: {agent for agent in agents if self._random.random() < share} for name in manners}
        self.odd: set[tuple[LabHost, str]] = set()
        self.refused = 0
        self._clients: dict[tuple[LabHost, str], Client] = {}
        if changes:
            for name in manners:
                at = self._random.expovariate(1 / CHANGE_INTERVAL)
                while at < until:
                    world.at(at, partial(self._change, name, until))
                    at += self._random.expovariate(1 / CHANGE_INTERVAL)
        world.soon(self._look)

    def stands(self, host: LabHost, name: str) -> bool:
        return (host, name) in self._clients and host in self._world.alive

    def _change(self, name: str, until: float) -> None:
        what = self._random.choice(WHAT)
        running = [host for host in self._world.alive if host.running and host.node.running]
        if what == "come":
            self.standing[name].add(self._random.choice(self._agents))
        elif what == "go":
            self.standing[name].discard(self._random.choice(self._agents))
        elif what == "elect" and running:
            host = self._random.choice(running)
            self._world.step(host, partial(ask_for_election, host, name))
        elif what == "odd" and running and self._world.now + ODD_SECONDS < until:
            self._stand_oddly(self._random.choice(running), name)
        else:
            for host in running:
                if host.node.use(Elections).is_leader(name):
                    self._hit(what, host, name)

    def _hit(self, what: str, host: LabHost, name: str) -> None:
        if what == "leader goes":
            self.standing[name].discard(host.me.name)
        elif what == "turn" and (host, name) in self._clients:
            self._world.step(host, partial(self._leave, host, name))
            self._stand(host, name)
        elif what == "neglect":
            self._world.step(host, partial(host.node.use(Elections).renew_allowed, name, False))
            self._world.at(self._world.now + 2 * self._length, partial(self._allow, host, name))

    def _allow(self, host: LabHost, name: str) -> None:
        if host.running:
            self._world.step(host, partial(host.node.use(Elections).renew_allowed, name, True))
        elif host in self._world.alive:  # It is stopped: its client answers when it goes on.
            self._world.at(self._world.now + LOOK_PERIOD, partial(self._allow, host, name))

    def _stand_oddly(self, host: LabHost, name: str) -> None:
        """Its user wrote another variant than the others have."""
        if (host, name) in self._clients:
            return
        manner = self._manners[name]
        odd = Manner((manner.variant + 1) % 4, manner.voters, manner.rank, manner.health)
        client = stand(self._world, host, name, odd, self._length)
        if client is None:
            self.refused += 1
            return
        self._clients[host, name] = client
        self.odd.add((host, name))
        self._world.at(self._world.now + ODD_SECONDS, partial(self._end_oddly, host, name))

    def _end_oddly(self, host: LabHost, name: str) -> None:
        if host.dead:
            self.odd.discard((host, name))
        elif host.running:
            self.odd.discard((host, name))
            self._world.step(host, partial(self._leave, host, name))
        else:
            self._world.at(self._world.now + LOOK_PERIOD, partial(self._end_oddly, host, name))

    def _look(self) -> None:
        world = self._world
        self._clients = {key: client for key, client in self._clients.items() if not key[0].dead}
        for host in world.alive:
            if host.running and host.node.running:
                for name, agents in self.standing.items():
                    stands, wanted = (host, name) in self._clients, host.me.name in agents
                    if stands and not wanted and (host, name) not in self.odd:
                        world.step(host, partial(self._leave, host, name))
                    elif wanted and not stands:
                        self._stand(host, name)
        world.at(world.now + LOOK_PERIOD, self._look)

    def _stand(self, host: LabHost, name: str) -> None:
        client = stand(self._world, host, name, self._manners[name], self._length)
        if client is None:
            self.refused += 1
        else:
            self._clients[host, name] = client

    def _leave(self, host: LabHost, name: str) -> None:
        """F14: the client stops before the agent resigns."""
        client = self._clients.pop((host, name), None)
        if client is not None:
            client.stop()
            host.node.use(Elections).resign(name)


def ask_for_election(host: LabHost, name: str) -> None:
    """A user wants an election now; it may be that its agent cannot begin one."""
    try:
        host.node.use(Elections).elect(name)
    except (ConfigError, Unavailable):
        return  # It knows no candidate, or takes part in nothing.
