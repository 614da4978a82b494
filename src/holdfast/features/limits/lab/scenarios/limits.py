"""Limits under mixed faults: what limits 7 (RL1 to RL5, RL8, RL9) asks at every event, and RL6 and RL7 when the faults are over.

Three limits in one group, one of each policy, over the faults of views/mixed, and with processes that die and hang. In half of the runs
what the processes want does not change. Where messages may be up to 3 s under way, views hardly ever rest (views D27, limits D25): those
runs belong to views, and are left out here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from random import Random

from holdfast.features.limits.lab.crews import Appetite, Crew
from holdfast.features.limits.lab.fleet import Appetites, Fleet
from holdfast.features.limits.lab.groups import checkers_of, machines
from holdfast.features.limits.lab.settled import PATIENCE, LimitsSettled
from holdfast.features.limits.lab.terms import Policy, Share, Terms
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.features.limits.protocol.messages import TYPES
from holdfast.features.views.lab.groups import slots_of
from holdfast.features.views.lab.scenarios.views import any_holes, draw_faults
from holdfast.features.views.lab.users import Habits
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.messages import TYPES as OF_VIEWS
from holdfast.host import Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Fault, Hole, Plan
from holdfast.lab.links import Link, Uniform
from holdfast.lab.listed_members import Lists
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

SECONDS = 30.0  # of faults
FIRST = 2.0  # seconds in which views form
POLICIES: tuple[Policy, ...] = ("fair", "strict", "exact")
RATE, BURST = 600.0, 240.0  # a bucket holds what comes in between two looks of a process
HOLES = tuple(kind.__name__ for kind in (*TYPES, *OF_VIEWS))
CHANGES = 6.0  # mean seconds between two changes of what a process wants, where it changes
VIEWS_BY = 120.0  # seconds after the faults in which all are in one view: the longest quarantine, and the 15 s of views CB7


class LimitScenario(Scenario):
    """Two to six agents, one to four servers."""

    name = "limits/mixed"
    title = "Limits under mixed faults"
    seconds = SECONDS
    policies: Sequence[Policy] = POLICIES

    def setup(self, random: Random) -> Setup:
        servers = random.choice((1, 2, 2, 3, 3, 3, 4))
        clients = random.choice((2, 3, 3, 4, 4, 5, 6))
        kills = random.choice((0.0, 3.0, 10.0))
        parameters: dict[str, float | str] = {
            "servers": float(servers),
            "fleet": float(clients + random.choice((0, 0, 0, 1, 3))),
            "constant": float(random.random() < 0.5),
            "processes": float(random.choice((1, 1, 2, 3))),
            "kills": kills,
            "hangs": random.choice((0.0, 3.0, 10.0)) if kills else 0.0,
            "trips": random.choice((0.0, 0.0, 0.0, 15.0)),
            "seed": float(random.getrandbits(40)),
        }
        for policy in POLICIES:
            parameters[f"share of {policy}"] = random.choice(("maxmin", "demand"))
            parameters[f"declared to {policy}"] = float(random.random() < 0.5)
        names = tuple(slot.name for slot in slots_of(servers)) + tuple(f"c{i}" for i in range(clients))
        faults = list(draw_faults(random, names, servers, self.seconds, slow=False).faults)
        kind = random.random()
        if kind < 0.1:
            faults += any_holes(random, names, servers, self.seconds)
        elif kind < 0.3:
            faults += holes_between(random, names[servers:], self.seconds)
        link = Link(Uniform(0.001, random.choice((0.005, 0.02, 0.1))))
        plan = Plan(tuple(sorted(faults, key=lambda fault: fault.at)))
        return Setup(names, self.seconds, VIEWS_BY + PATIENCE, plan, link, parameters)

    def terms(self, setup: Setup) -> list[Terms]:
        given = setup.parameters
        fleet, constant = int(given["fleet"]), bool(given["constant"])
        steady = constant and not given["kills"] and not given["hangs"]
        shares: dict[Policy, Share] = {
            policy: "maxmin" if given[f"share of {policy}"] == "maxmin" else "demand" for policy in self.policies
        }
        return [
            Terms(each, RATE, BURST, each, share, fleet, constant=constant, steady=steady, declared=_is_declared(given, each, share))
            for each, share in shares.items()
        ]

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        given = setup.parameters
        fleet = next(each for each in self.world_of(host).checkers if isinstance(each, Fleet))
        habits = Habits(says=0.0, trips=float(given["trips"]))
        slots = slots_of(int(given["servers"]))
        return machines(host, slots, fleet, views=ViewsConfig(), config=LimitsConfig(), habits=habits)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        terms = self.terms(setup)
        return checkers_of(Fleet(terms, partial(appetites, setup, terms)), ViewsConfig(), LimitsConfig())

    def drive(self, world: World, setup: Setup) -> None:
        Lists(world, ())
        fleet = next(each for each in world.checkers if isinstance(each, Fleet))
        random = Random(f"{world.seed}/processes")
        for crew in fleet.crews.values():
            trouble = Trouble(crew, random, setup)
            trouble.begin()

    def unsettled(self, world: World, setup: Setup) -> str:
        return next(each for each in world.checkers if isinstance(each, LimitsSettled)).why(world)

    @staticmethod
    def world_of(host: Host) -> World:
        world = getattr(host, "world", None)
        assert isinstance(world, World)
        return world


class Trouble:
    """What happens to the processes of one machine while there are faults."""

    def __init__(self, crew: Crew, random: Random, setup: Setup) -> None:
        self._crew, self._random, self._setup, self._world = crew, random, setup, crew.world

    def begin(self) -> None:
        given = self._setup.parameters
        self._later(float(given["kills"]), self._kill)
        self._later(float(given["hangs"]), self._hang)
        self._later(0.0 if given["constant"] else CHANGES, self._change)
        self._world.at(self._setup.seconds, self._crew.rest)

    def _kill(self) -> None:
        self._crew.kill(self._place(), self._random.choice((0.0, 0.5, 5.0)) * self._random.random())
        self._later(float(self._setup.parameters["kills"]), self._kill)

    def _hang(self) -> None:
        self._crew.hang(self._place(), self._random.choice((0.2, 2.0, 10.0)) * self._random.random())
        self._later(float(self._setup.parameters["hangs"]), self._hang)

    def _change(self) -> None:
        for appetite in self._crew.appetites[self._place()].values():
            appetite.rate = self._random.choice((0.0, 5.0, 50.0, 300.0, 900.0)) * self._random.random()
        self._later(CHANGES, self._change)

    def _place(self) -> int:
        return self._random.randrange(len(self._crew.appetites))

    def _later(self, mean: float, action: object) -> None:
        at = self._world.now + self._random.expovariate(1 / mean) if mean else self._setup.seconds
        if FIRST < at < self._setup.seconds:
            assert callable(action)
            self._world.at(at, action)
        elif at <= FIRST:
            self._later(mean, action)


def appetites(setup: Setup, terms: Sequence[Terms], name: str) -> Appetites:
    """Of the processes of this machine. A share in proportion to demand is checked against demand that does not depend on what waits."""
    given = setup.parameters
    random = Random(f"{given['seed']}/{name}")
    found = []
    for _ in range(int(given["processes"])):
        wants = random.choice((0.0, 10.0, 50.0, 200.0, 200.0, 900.0)) * random.uniform(0.5, 1.0)
        cost = random.choice((0.5, 1.0, 3.0))
        found.append({each.name: Appetite(wants, cost, each.declared) for each in terms})
    return found


def _is_declared(given: Mapping[str, float | str], policy: Policy, share: Share) -> bool:
    return share == "demand" or bool(given[f"declared to {policy}"])


def holes_between(random: Random, names: Sequence[str], seconds: float) -> list[Fault]:
    """Some types of limits and of views are lost between some agents, or all of them: links that are cut for the members alone."""
    found: list[Fault] = []
    for _ in range(random.randint(1, 6)):
        at, span = round(random.uniform(FIRST, seconds), 3), round(random.choice((2.0, 10.0, seconds)) * random.random() + 0.1, 3)
        source = tuple(random.sample(names, random.randint(1, len(names))))
        target = tuple(random.sample(names, random.randint(1, len(names))))
        kinds = tuple(kind.__name__ for kind in TYPES) if random.random() < 0.6 else tuple(random.sample(HOLES, random.randint(1, 3)))
        found.append(Hole(at, span, source, target, kinds=kinds))
        if random.random() < 0.5:
            found.append(Hole(at, span, target, source, kinds=kinds))
    return found


SCENARIO = LimitScenario()
