"""A group that gossips, under mixed faults: joined, left, cut, stopped, killed, cloned; G1 to G13 at every event.  Spec: gossip 7.

Every run draws a profile, a way to choose targets and which kinds of faults it has, so that some runs are about pauses alone, some about
nothing at all (G5), and others about everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from random import Random

from msgspec.structs import replace

from holdfast.events import Event
from holdfast.features.gossip.lab.draws import MEADOW, PROFILES, Ambush, draw_faults, draw_link, draw_parameters, draw_size
from holdfast.features.gossip.lab.groups import checkers_of
from holdfast.features.gossip.lab.members import Joiner, WatchedNode, address_of, machines
from holdfast.features.gossip.lab.settled import QUIET, Convergence
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.features.names.lab.checkers import NameBehind, NameTaken
from holdfast.features.names.protocol.names import Names
from holdfast.host import Host, Machine, NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Plan
from holdfast.lab.host import LabHost
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

PERIODS = (20.0, 30.0)  # of faults
SPARED = 2.0  # periods after which the first seed is back
RETRY = 0.5  # periods: a user tries again when the process it talks to is stopped
AGAIN = 1.0  # periods until a process that was behind has its new boot
BOOTS = 1000
ROW_BYTES = (4, 40, 256)
LIVES = "lives"


class MixedScenario(Scenario):
    """One to sixty-four processes, one to three seeds, users that come, go and change what they publish."""

    name = "gossip/mixed"
    title = "Gossip membership under mixed faults"
    periods = PERIODS

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(draw_size(random)))
        kind = random.choice(PROFILES)
        period = profiles.PROFILES[kind]().config.period
        seconds = round(random.uniform(*self.periods) * period, 3)
        parameters = {"profile": kind, **draw_parameters(random, names, period, seconds)}
        plan = Plan() if parameters["calm"] else draw_faults(random, names, period, seconds)
        plan = plan.sparing(names[:1], SPARED * period)
        return Setup(names, seconds, self.quiet(period), plan, draw_link(random, period), parameters)

    def quiet(self, period: float) -> float:
        return QUIET * period

    def profile(self, place: str, setup: Setup) -> Profile:
        given = setup.parameters
        found = profiles.PROFILES[str(given["profile"])]()
        random = Random(f"{place} of {len(setup.names)}")
        where = (random.uniform(0, MEADOW), random.uniform(0, MEADOW)) if given["positions"] else None
        odd = given["odd"] and random.random() < 0.3
        config = replace(
            found.config,
            target=given["target"],
            position=where,
            seeds=tuple(address_of(name) for name in setup.names[: int(given["seeds"])]),
            period=found.config.period * (1.5 if odd else 1.0),
        )
        return Profile(config, found.rules)

    def life(self, place: str, former: NodeId | None, setup: Setup) -> NodeId:
        """Boots come from one clock, as those of processes with one name on two machines do."""
        setup.parameters[LIVES] = lives = float(setup.parameters.get(LIVES, 0.0)) + 1.0
        return NodeId(str(setup.parameters.get(f"clone:{place}", place)), BOOTS + int(lives))

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        assert isinstance(host, LabHost)
        place = host.endpoint.name
        profile = self.profile(place, setup)
        found = machines(host, profile)
        node = found[0]
        assert isinstance(node, WatchedNode)
        if any(wish.startswith("clone:") for wish in setup.parameters):
            return [*found, self._names(host, node)]
        first = f"first:{place}" not in setup.parameters
        setup.parameters[f"first:{place}"] = 1.0
        late = first and f"join:{place}" in setup.parameters
        return found if late else [*found, Joiner(node)]

    def _names(self, host: Host, node: WatchedNode) -> Names:
        return Names(
            host,
            node,
            [address for address in node.config.seeds if address != host.address],
            clear=node.join,
            conflict=lambda life, address: host.emit(NameTaken(life)),
            behind=lambda boot: host.emit(NameBehind(boot)),
        )

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return checkers_of(setup.link)

    def drive(self, world: World, setup: Setup) -> None:
        world.listeners.append(partial(obey, world, setup))
        for wish, value in setup.parameters.items():
            verb, _, name = wish.partition(":")
            if verb in ("join", "leave", "return"):
                world.at(float(value), partial(tell, world, setup, name, verb))
        period, random = self.profile(setup.names[0], setup).config.period, Random(f"{world.seed}/rows")
        if setup.parameters["ambushes"] and not setup.parameters["calm"]:
            Ambush(world, float(setup.parameters["ambushes"]), period, setup.seconds)
        changes = int(float(setup.parameters["rows"]) * len(setup.names) * min(1.0, 8 / len(setup.names)))
        for _ in range(changes):
            world.at(random.uniform(0, setup.seconds + 5 * period), partial(publish, world, random.choice(setup.names), random.random()))

    def unsettled(self, world: World, setup: Setup) -> str:
        return next(each for each in world.checkers if isinstance(each, Convergence)).why(world)


def obey(world: World, setup: Setup, host: LabHost, event: Event) -> None:
    """What the agent does: of two processes of one name one goes for good, and one that is behind begins a new life."""
    if isinstance(event, NameTaken):
        world.soon(partial(_end, world, host, for_good=True))
    elif isinstance(event, NameBehind):
        setup.parameters[LIVES] = max(float(setup.parameters[LIVES]), float(event.boot - BOOTS))
        world.soon(partial(_end, world, host, for_good=False))


def _end(world: World, host: LabHost, *, for_good: bool) -> None:
    if host.dead:
        return
    world.crash(host.endpoint.name)
    if for_good:
        world.bury(host.endpoint.name)
    else:
        world.revive_after(AGAIN, host.endpoint.name)


def tell(world: World, setup: Setup, name: str, verb: str) -> None:
    """A user wants this process to join, to leave, or to come back as a new life."""
    host = world.nodes[name]
    if host.dead:
        return  # The next life joins by itself.
    if not host.running:
        world.at(world.now + RETRY, partial(tell, world, setup, name, verb))
        return
    node = host.node.use(WatchedNode)
    if verb == "join":
        world.step(host, node.join)
    elif verb == "leave":
        world.step(host, node.leave)
    elif not node.wanted:
        world.crash(name)
        world.start(name)


def publish(world: World, name: str, chance: float) -> None:
    """A user changes a row, or takes it away."""
    host = world.nodes[name]
    if not host.running:
        return
    number = int(chance * 1000)
    size = ROW_BYTES[number % len(ROW_BYTES)]
    value = None if number % 10 == 0 else f"{number:04}".encode() * (size // 4)
    world.step(host, partial(host.node.use(WatchedNode).publish, f"tag:t{number % 7}", value))


SCENARIO = MixedScenario()
