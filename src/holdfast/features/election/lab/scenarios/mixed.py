"""Elections on lists that a script writes, under mixed faults, in the three modes; E1 to E13.  Spec: election 7.

The lists are those of an oracle that follows the faults: who cannot be reached any more is dropped some seconds later, by each viewer at a
time of its own. Every run draws a mode, variants, numbers, and which kinds of faults it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from random import Random

from holdfast.features.election.lab.checkers import BestRanked, checkers_of
from holdfast.features.election.lab.clients import Clients, ask_for_election
from holdfast.features.election.lab.draws import (
    FOUNDED_AFTER,
    LENGTHS,
    RHO,
    TAIL,
    Ambush,
    config_of,
    draw_faults,
    draw_health,
    draw_link,
    draw_parameters,
    draw_size,
    manners_of,
    slots_of,
    spared,
)
from holdfast.features.election.lab.lists import Detector, Hole, Open, ScriptedLists, board_of
from holdfast.features.election.lab.ranking import by_rank
from holdfast.features.election.lab.settled import HEALED, Healed
from holdfast.features.election.lab.watch import ElectionWatch
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.rules import Rules
from holdfast.host import Host, Lists, Machine, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.deadline import wait_length
from holdfast.kit.exchange import Exchange
from holdfast.kit.keeper import MARGIN
from holdfast.kit.seats import ASK_TIMEOUT, Seats
from holdfast.kit.slots import own_slot
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Plan
from holdfast.lab.host import LabHost
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

SECONDS = (10.0, 20.0)  # of faults
SPARED_SECONDS = 1.0
UP, DOWN = 0.5, 3.0  # seconds: the most that a viewer is behind
SETTLING = 1.5
AE_PERIOD = 1.0
SEATS_SECONDS = 2 * wait_length(max(LENGTHS), RHO, MARGIN) + ASK_TIMEOUT  # until seats that restarted serve again
MEMBERS_SECONDS = 30.0  # quarantine, sync, and elections that run into members without a vote
CALM_SINCE = 4.0  # all stand, are settled and listed
HEALTH_EVERY = 2.0


class MixedScenario(Scenario):
    """One to forty processes, one to four names."""

    name = "election/mixed"
    title = "Elections without and with a majority, on lists that differ, under mixed faults"
    rules = Rules()
    lists_kind: type = ScriptedLists  # which machine of a member is its ``Lists``

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(draw_size(random)))
        seconds = round(random.uniform(*SECONDS), 3)
        parameters = draw_parameters(random, len(names))
        plan = Plan()
        if not parameters["calm"]:
            plan = draw_faults(random, names, parameters, seconds).sparing(spared(random, names, parameters), SPARED_SECONDS)
        return Setup(names, seconds, self.quiet(str(parameters["mode"])), plan, draw_link(random), parameters)

    def quiet(self, mode: str) -> float:
        """Messages of bad weather arrive, lists agree, and ten seconds pass."""
        return TAIL + DOWN + SETTLING + HEALED + {"none": 0.0, "seats": SEATS_SECONDS, "members": MEMBERS_SECONDS}[mode]

    # Machines.

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        assert isinstance(host, LabHost)
        lists = ScriptedLists(host, board_of(host.world))
        lists.publish("tag:load", str(Random(f"{host.me}/load").randint(0, 9)).encode())
        broadcast = Broadcast(host, lists)
        exchange = Exchange(host, broadcast, ae_period=AE_PERIOD)
        return self.made(host, setup, [lists, broadcast, exchange], lists, broadcast, exchange)

    def made(self, host: Host, setup: Setup, below: list[Machine], lists: Lists, broadcast: Broadcast, exchange: Exchange) -> list[Machine]:
        """What stands on a membership, with its election last."""
        seats = None
        if setup.parameters["mode"] == "seats":
            slots = slots_of(setup)
            own = own_slot(slots, host.me.name, host.address)
            seats = Seats(host, slots, own, machine=host.me.name, rho=RHO, length_max=max(LENGTHS))
            below.append(seats)
        elections = Elections(
            host, lists, exchange, seats, config_of(setup), rules=self.rules_of(setup), broadcast=broadcast
        )  # fmt: skip
        return [*below, elections]

    def rules_of(self, setup: Setup) -> Rules:
        changes = {} if setup.parameters["clock"] else {"clock_terms": False}
        return Rules(**{**{field: getattr(self.rules, field) for field in Rules.__struct_fields__}, **changes})

    def lists(self, host: LabHost) -> Lists:
        return host.node.use(self.lists_kind)

    # What is looked at.

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        watch = ElectionWatch(manners_of(setup))
        found: list[Checker] = [watch, Healed(manners_of(setup), self.lists)]
        found += checkers_of(watch, sticky=bool(setup.parameters["sticky"]), y=config_of(setup).y, lists=self.lists_kind)
        if setup.parameters["calm"]:
            found.append(BestRanked(watch, lambda name: NodeId(by_rank(name, setup.names)[0], 1), config_of(setup).c or 0, CALM_SINCE))
        return found

    # What happens.

    def drive(self, world: World, setup: Setup) -> None:
        calm, random = bool(setup.parameters["calm"]), Random(f"{world.seed}/elections")
        self.direct(world, setup)
        self.clients(world, setup)
        if calm:
            self._elect_now_and_then(world, setup, random)
            return
        if setup.parameters["ambushes"]:
            keep = spared(random, setup.names, setup.parameters)
            begin = 0.0 if setup.parameters["mode"] == "none" else FOUNDED_AFTER
            lasting = setup.parameters["mode"] == "none"
            Ambush(world, float(setup.parameters["ambushes"]), begin, setup.seconds, lambda name: lasting and name not in keep)

    def direct(self, world: World, setup: Setup) -> None:
        Detector(world, board_of(world), up=UP, down=DOWN, settling=SETTLING, holes=holes_of(world, setup))
        if any(str(setup.parameters[key]) != "tag:load" for key in setup.parameters if key.startswith("health:")):
            random = Random(f"{world.seed}/health")
            world.at(0.0, partial(_show_health, world, random, setup.seconds))

    def clients(self, world: World, setup: Setup) -> Clients:
        calm = bool(setup.parameters["calm"])
        return Clients(
            world,
            manners_of(setup),
            setup.names,
            length=float(setup.parameters["length"]),
            until=setup.seconds,
            share=1.0 if calm else 0.6,
            changes=not calm,
        )

    def _elect_now_and_then(self, world: World, setup: Setup, random: Random) -> None:
        """Nothing fails, so elections would be rare."""
        for name in manners_of(setup):
            for _ in range(4):
                world.at(random.uniform(CALM_SINCE, setup.seconds), partial(_ask, world, random.choice(setup.names), name))

    def unsettled(self, world: World, setup: Setup) -> str:
        return next(each for each in world.checkers if isinstance(each, Healed)).why(world)


def holes_of(world: World, setup: Setup) -> Open:
    """In calm runs: lists that lack members, as c allows; always the same, or the same in turn. They end with the faults."""
    kind, c = str(setup.parameters.get("holes", "none")), int(float(setup.parameters.get("c", 0.0)))
    if kind == "none" or c <= 0:
        return lambda now: frozenset()
    random = Random(f"{world.seed}/holes")
    lacked: dict[str, list[str]] = {
        member: random.sample([name for name in setup.names if name != member], min(c, len(setup.names) - 1)) for member in setup.names
    }
    if kind == "static":
        fixed = frozenset((viewer, member) for member, viewers in lacked.items() for viewer in viewers)
        return lambda now: fixed if now < setup.seconds else frozenset()

    def moving(now: float) -> frozenset[Hole]:
        """Of the c viewers one after the other lacks the member: the union over all time is c."""
        if now >= setup.seconds:
            return frozenset()
        turn = int(now / 0.4)
        return frozenset((viewers[turn % len(viewers)], member) for member, viewers in lacked.items())

    return moving


def _show_health(world: World, random: Random, until: float) -> None:
    hosts = [host for host in world.alive if host.running and host.node.running]
    lives = [host.me for host in hosts]
    for viewer, values in draw_health(random, lives, lives).items():
        world.nodes[viewer.name].node.use(ScriptedLists).health = values
    if world.now < until:
        world.at(world.now + HEALTH_EVERY, partial(_show_health, world, random, until))


def _ask(world: World, place: str, name: str) -> None:
    host = world.nodes[place]
    if host.running:
        world.step(host, partial(ask_for_election, host, name))


SCENARIO = MixedScenario()
