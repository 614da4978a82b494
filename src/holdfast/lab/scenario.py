"""A scenario: who takes part, what they run, what goes wrong, what must hold, and when all must be well again.

A run has two phases. In the first, faults happen and only safety is required. Then the faults stop, every process that
stays down is known, and within ``settle`` seconds the group must be as the scenario wants it. A failing run prints
one line that replays it; nothing but the seed (and, after shrinking, a plan file) is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from msgspec import Struct

from holdfast.host import Host, Machine, NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Plan
from holdfast.lab.links import Link
from holdfast.lab.topology import Topology
from holdfast.lab.trace import Trace
from holdfast.lab.violation import Violation
from holdfast.lab.wire import through_wire
from holdfast.lab.world import World, next_life

WIRE_EVERY = 10  # one seed in so many sends every message through encode, seal, open and decode
TRACE_LINES = 200  # shown of a failing run
CHECK_INTERVAL = 0.25  # virtual seconds between two looks at whether a group has settled
LOOKS = 2  # in a row that must find it settled: one alone may hit a happy instant


class Setup(Struct, frozen=True):
    """One drawn instance of a scenario."""

    names: tuple[str, ...]
    seconds: float  # faults happen in this time
    settle: float  # then all must be well within this time
    plan: Plan = Plan()
    link: Link = Link()
    parameters: dict[str, float | str] = {}  # what the scenario drew for its machines


class Scenario:
    """Base of all scenarios. Subclasses are declared in the folder ``scenarios`` of a lab, one module each, and have no state."""

    name = "scenario"  # folder/readable-name
    title = ""
    planted = False  # carries a bug on purpose, to show how one is found; sweeps over everything leave it out

    def setup(self, random: Random) -> Setup:
        """Draw the size, the parameters and the plan."""
        raise NotImplementedError

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        """The machines of one life."""
        raise NotImplementedError

    def life(self, place: str, former: NodeId | None, setup: Setup) -> NodeId:
        """Who starts at an address: by default a process of its name, with the next boot."""
        return next_life(place, former)

    def topology(self, setup: Setup, random: Random) -> Topology | None:
        return None

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        """What must hold after every event."""
        raise NotImplementedError

    def drive(self, world: World, setup: Setup) -> None:
        """What users do in the meantime; schedule it with ``world.at``."""

    def unsettled(self, world: World, setup: Setup) -> str:
        """Why the group is not yet as it should be when faults have stopped; "" if it is."""
        return ""


class Outcome(Struct, frozen=True):
    """What one run found."""

    scenario: str
    seed: int
    events: int
    seconds: float  # virtual
    violation: str = ""  # "" if all went well
    trace: str = ""

    @property
    def ok(self) -> bool:
        return not self.violation

    @property
    def replay(self) -> str:
        return f"holdfast lab replay {self.scenario} --seed {self.seed}"


def set_up(scenario: Scenario, seed: int) -> Setup:
    return scenario.setup(Random(f"{seed}/{scenario.name}"))


def run(scenario: Scenario, seed: int, *, plan: Plan | None = None, trace: bool | Trace = False) -> Outcome:
    """One seeded run. A violation is a result, not an exception; with ``trace`` the last lines come along.

    A caller that wants every line of any run, also of one that went well, hands in a ``Trace`` of its own.
    """
    setup = set_up(scenario, seed)
    chosen = setup.plan if plan is None else plan
    lines = trace if isinstance(trace, Trace) else Trace(TRACE_LINES) if trace else None
    world = World(
        seed,
        lambda host: scenario.build(host, setup),
        link=setup.link,
        topology=scenario.topology(setup, Random(f"{seed}/topology")),
        checkers=scenario.checkers(setup),
        trace=lines,
        life=lambda place, former: scenario.life(place, former, setup),
    )
    if seed % WIRE_EVERY == 0:
        through_wire(world)
    violation = ""
    try:
        _play(scenario, setup, world, chosen)
    except Violation as found:
        violation = f"{found} (at {found.at:.6f} s{', ' + found.node if found.node else ''})"
    return Outcome(scenario.name, seed, world.events, world.now, violation, str(lines) if lines and violation else "")


def _play(scenario: Scenario, setup: Setup, world: World, plan: Plan) -> None:
    plan.prepare(world)
    for name in setup.names:
        world.start(name)
    plan.schedule(world)
    scenario.drive(world, setup)
    world.run(setup.seconds)
    world.end_faults()
    _settle(scenario, setup, world)


def _settle(scenario: Scenario, setup: Setup, world: World) -> None:
    """Look until all is well, and once more: who is well at the last moment only is looked at a little later."""
    deadline = world.now + setup.settle
    settled, why = 0, "never looked"
    while settled < LOOKS and (settled or world.now < deadline):
        look_at = world.now + CHECK_INTERVAL
        world.run(look_at if settled else min(deadline, look_at))
        why = scenario.unsettled(world, setup)
        settled = 0 if why else settled + 1
    if why:
        violation = Violation("settled", f"{setup.settle:g} s after the last fault: {why}")
        violation.at = world.now
        raise violation
