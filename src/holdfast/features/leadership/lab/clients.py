"""Who uses leadership in the lab: on every agent, clients that stand for names, hold what they were told, withdraw and resign."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

from holdfast.events import Internal
from holdfast.features.leadership.protocol.leadership import Leadership
from holdfast.host import Host
from holdfast.kit.hold import LossReason
from holdfast.lab.faults import Crash, Cut, Pause
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

CHANGE_INTERVAL = 2.5  # mean true seconds between two changes of who stands for a name
LOOK_PERIOD = 0.3  # true seconds between two looks at whether all stand that should
LENGTH_SPREAD = 1.4  # how much more some ask for
STAND_SHARE = 0.6  # of the agents stand for a name at first


class Told(Internal, frozen=True):
    """A client may act under this token until that instant of its agent's clock."""

    name: str
    token: int
    deadline: float


class Stopped(Internal, frozen=True):
    """That client acts no more: it was told so, or it said so."""

    name: str
    token: int


class Client:
    """Implements ``kit.hold.Holder``."""

    def __init__(self, host: Host, name: str) -> None:
        self._host, self._name = host, name
        self.token = 0
        self.at_risk = 0

    def on_queued(self, position: int, why: str = "") -> None:
        """Candidates of one name stand in no queue."""

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        self.token = token
        self._host.emit(Told(self._name, token, deadline))

    def on_extended(self, deadline: float) -> None:
        self._host.emit(Told(self._name, self.token, deadline))

    def on_at_risk(self) -> None:
        self.at_risk += 1

    def on_lost(self, reason: LossReason) -> None:
        self.stop()

    def stop(self) -> None:
        if self.token:
            self._host.emit(Stopped(self._name, self.token))
            self.token = 0


class Clients:
    """Who should stand for what, and when that changes."""

    def __init__(self, world: World, random: Random, names: Sequence[str], agents: Sequence[str], length: float, seconds: float) -> None:
        self._world, self._random, self._agents, self._length = world, random, tuple(agents), length
        self._standing = {name: {agent for agent in agents if random.random() < STAND_SHARE} for name in names}
        self._clients: dict[tuple[Host, str], Client] = {}
        for name in names:
            at = random.expovariate(1 / CHANGE_INTERVAL)
            while at < seconds:
                world.at(at, partial(self._change, name))
                at += random.expovariate(1 / CHANGE_INTERVAL)
        world.soon(self._look)

    def _change(self, name: str) -> None:
        what = self._random.choice(("come", "come", "come", "go", "leader goes", "turn", "neglect", "die", "die", "pause", "cut"))
        if what == "come":
            self._standing[name].add(self._random.choice(self._agents))
        elif what == "go":
            self._standing[name].discard(self._random.choice(self._agents))
        else:
            for host in self._world.alive:
                if host.running and host.node.use(Leadership).is_leader(name):
                    self._hit(what, host, name)

    def _hit(self, what: str, host: LabHost, name: str) -> None:
        """At the leader faults tell most."""
        world, agent, now = self._world, host.endpoint.name, round(self._world.now, 3)
        if what == "leader goes":
            self._standing[name].discard(agent)
        elif what == "turn":
            world.step(host, partial(self._turn, host, name))
        elif what == "neglect":
            self._neglect(host, name)
        elif what == "die":
            Crash(now, agent, self._random.choice((0.0, 1.0, 4.0))).begin(world)
        elif what == "pause":
            Pause(now, agent, self._length * self._random.choice((0.5, 1.0, 2.0)), self._random.choice(("host", "shuffled"))).begin(world)
        else:
            others = tuple(each for each in self._agents if each != agent)
            some = tuple(self._random.sample(others, self._random.randint(1, len(others))))
            source, target = self._random.choice((((agent,), some), (some, (agent,))))
            Cut(now, self._length * self._random.choice((0.5, 1.5, 3.0)), source, target).begin(world)

    def _neglect(self, host: LabHost, name: str) -> None:
        """Its client does not answer for a while: what it was told is not extended."""
        leadership = host.node.use(Leadership)
        self._world.step(host, partial(leadership.renew_allowed, name, False))
        self._world.at(self._world.now + 2 * self._length, lambda: self._allow(host, name))

    def _allow(self, host: LabHost, name: str) -> None:
        if host.running:
            self._world.step(host, partial(host.node.use(Leadership).renew_allowed, name, True))
        elif host in self._world.alive:  # It is stopped: its client answers when it goes on.
            self._world.at(self._world.now + LOOK_PERIOD, lambda: self._allow(host, name))

    def _look(self) -> None:
        world = self._world
        for host in world.alive:
            if host.running and host.node.running:
                for name, agents in self._standing.items():
                    stands = name in host.node.use(Leadership).office.campaigns
                    if stands != (host.me.name in agents):
                        world.step(host, partial(self._leave if stands else self._stand, host, name))
        world.at(world.now + LOOK_PERIOD, self._look)

    def _stand(self, host: LabHost, name: str) -> None:
        """F4: who needs longer asks for more; the seats promise what was asked."""
        client = self._clients[host, name] = Client(host, name)
        length = self._length * self._random.choice((1.0, 1.0, LENGTH_SPREAD))
        host.node.use(Leadership).campaign(name, length, client)

    def _turn(self, host: LabHost, name: str) -> None:
        """The next client of the same agent, which is the same holder to the seats."""
        self._leave(host, name)
        self._stand(host, name)

    def _leave(self, host: LabHost, name: str) -> None:
        """F14: the client stops before the agent resigns."""
        self._clients[host, name].stop()
        host.node.use(Leadership).resign(name)
