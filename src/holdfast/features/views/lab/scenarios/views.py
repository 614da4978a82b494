"""Views under mixed faults: CB1 to CB6, CB8 and CB9 at every event, CB7 and CB10 when the faults are over.  Spec: views 7.

One to seven servers, sometimes a chain of four to six, and one to seven clients that send by the overlay all the time. A tenth of
the runs has messages that are up to 3 s under way, where views hardly ever rest (views D27), a tenth has link states that do not pass
between two servers, and a tenth has holes for messages of any type, or for what no datagram holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import ClassVar

from holdfast.features.views.lab.groups import all_checkers, machines, make_chain, slots_of
from holdfast.features.views.lab.settled import PATIENCE, Convergence
from holdfast.features.views.lab.users import LARGE, Habits
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.messages import TYPES
from holdfast.host import DATAGRAM_BYTES_MAX, Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Crash, Cut, Fault, Hole, Menu, Partition, Plan, Weather, draw_plan
from holdfast.lab.links import Link, Uniform
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

SECONDS = 30.0  # of faults
FIRST = 2.0  # seconds in which views form
SLOW = 3.0  # seconds that a message may be under way where the network is slow
SHARE = 0.1  # of the runs, for each of the three special kinds
KINDS = tuple(kind.__name__ for kind in TYPES)
assert LARGE > DATAGRAM_BYTES_MAX


class ViewScenario(Scenario):
    """Any number of servers, or a chain of them."""

    name = "views/mixed"
    title = "Views under mixed faults"
    seconds = SECONDS
    chains: ClassVar[float] = 0.12  # share of the runs in which only neighbouring servers are linked

    def setup(self, random: Random) -> Setup:
        chain = random.random() < self.chains
        servers = random.choice((4, 5, 6) if chain else (1, 1, 2, 2, 3, 3, 3, 3, 3, 4, 4, 5, 5, 6, 7))
        clients = random.choice((1, 2, 2, 3, 3, 4, 5, 6, 7))
        kind = int(random.random() / SHARE)
        slow = kind == 0
        parameters: dict[str, float | str] = {
            "servers": float(servers),
            "chain": float(chain),
            "both": float(random.random() < 0.25),
            "late": SLOW if slow else 0.0,
            "says": random.choice((0.2, 0.5, 0.5, 2.0)),
            "trips": random.choice((0.0, 0.0, 5.0, 20.0)),
            "leaves": random.choice((0.0, 0.0, 0.0, 10.0)),
        }
        names = tuple(slot.name for slot in slots_of(servers)) + tuple(f"c{i}" for i in range(clients))
        plan = draw_faults(random, names, servers, self.seconds, slow=slow)
        holes = link_state_holes if kind == 1 else any_holes if kind == 2 else no_holes
        plan = Plan(_sorted([*plan.faults, *holes(random, names, servers, self.seconds)]))
        link = Link(Uniform(0.001, random.choice((0.005, 0.02, 0.1))))
        return Setup(names, self.seconds, self.settle(parameters), plan, link, parameters)

    def settle(self, parameters: dict[str, float | str]) -> float:
        """CB7 has a limit of its own, from the end of the last quarantine on (views D13); this is beyond the longest one."""
        config = ViewsConfig()
        return 2 * PATIENCE * config.heartbeat + config.quarantine_max + float(parameters["late"])

    def config(self, setup: Setup) -> ViewsConfig:
        return ViewsConfig()

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        given = setup.parameters
        habits = Habits(
            takes_part=host.me.name.startswith("c") or bool(given["both"]),
            says=float(given["says"]),
            trips=float(given["trips"]),
            leaves=float(given["leaves"]),
        )
        return machines(host, self.config(setup), slots_of(int(given["servers"])), habits)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return all_checkers(self.config(setup), chain=bool(setup.parameters["chain"]), late=float(setup.parameters["late"]))

    def drive(self, world: World, setup: Setup) -> None:
        if setup.parameters["chain"]:
            make_chain(world, int(setup.parameters["servers"]))

    def unsettled(self, world: World, setup: Setup) -> str:
        return next(each for each in world.checkers if isinstance(each, Convergence)).why(world)


def draw_faults(random: Random, names: Sequence[str], servers: int, seconds: float, *, slow: bool) -> Plan:
    """Each kind in about half of the runs."""

    def some(mean: float) -> float:
        return mean * random.choice((0.3, 0.6, 1.0, 1.5)) * seconds / SECONDS if random.random() < 0.55 else 0.0

    menu = Menu(
        crashes=some(0.5),
        crash_forever=0.2,
        pauses=some(0.6),
        pause_seconds=9.0,
        cuts=some(1.5),
        partitions=some(1.0),
        cut_seconds=12.0,
        weather=some(2.0),
        loss=0.1,
        duplicate=0.05,
        delay=Uniform(0.001, 0.2),
        tail_seconds=SLOW if slow else 0.2,
        drift=random.choice((0.0, 0.005)),
    )
    places = names[:servers]
    faults: list[Fault] = [*draw_plan(random, names, seconds, menu).faults, *_between(random, places, seconds, some(3.0))]
    if random.random() < 0.2:
        faults += _all_of(random, places, seconds)
    if slow:
        late = Link(Uniform(0.001, 0.1), random.choice((0.0, 0.05)), 0.05, random.choice((0.05, 0.2, 0.5)), SLOW)
        faults.append(Weather(0.0, seconds, late))
    return Plan(_sorted(faults))


def _when(random: Random, seconds: float, longest: float) -> tuple[float, float]:
    return round(random.uniform(FIRST, seconds), 3), round(longest * random.random() + 0.1, 3)


def _between(random: Random, places: Sequence[str], seconds: float, mean: float) -> list[Fault]:
    """Cuts between two servers, one way and both ways."""
    found: list[Fault] = []
    while len(places) > 1 and random.random() < mean / (mean + 1):
        at, span = _when(random, seconds, 12.0)
        one, other = random.sample(places, 2)
        found.append(random.choice((Cut(at, span, (one,), (other,)), Partition(at, span, ((one,), (other,))))))
    return found


def _all_of(random: Random, places: Sequence[str], seconds: float) -> list[Fault]:
    """All servers go down at about the same time, and come back one by one."""
    at = random.uniform(FIRST, seconds - FIRST)
    return [Crash(round(at + random.uniform(0.0, 0.5), 3), name, round(random.uniform(0.1, 6.0), 3)) for name in places]


def no_holes(random: Random, names: Sequence[str], servers: int, seconds: float) -> list[Fault]:
    return []


def link_state_holes(random: Random, names: Sequence[str], servers: int, seconds: float) -> list[Fault]:
    """Link states alone, one way between two servers (views D24)."""
    found: list[Fault] = []
    for _ in range(random.randint(1, 4) if servers > 1 else 0):
        one, other = random.sample(names[:servers], 2)
        found.append(Hole(*_when(random, seconds / 2, seconds), (one,), (other,), kinds=("Lsa",)))
    return found


def any_holes(random: Random, names: Sequence[str], servers: int, seconds: float) -> list[Fault]:
    """Messages of one to three types, or what no datagram holds, from some agents to some others."""
    found: list[Fault] = []
    for _ in range(random.randint(2, 10)):
        at, span = _when(random, seconds, random.choice((1.0, 5.0, seconds)))
        source = tuple(random.sample(names, random.randint(1, max(1, len(names) // 2))))
        target = tuple(random.sample(names, random.randint(1, len(names))))
        if random.random() < 0.25:
            found.append(Hole(at, span, source, target, larger=DATAGRAM_BYTES_MAX))
        else:
            found.append(Hole(at, span, source, target, kinds=tuple(random.sample(KINDS, random.randint(1, 3)))))
    return found


def _sorted(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    return tuple(sorted(faults, key=lambda fault: fault.at))


SCENARIO = ViewScenario()
