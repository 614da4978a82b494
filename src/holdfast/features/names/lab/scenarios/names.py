"""One name, several processes that want it, under mixed faults: two do not have it together, and in calm one of them has it.

Spec: foundation F1, F5; docs/decisions.md H56. A machine was cloned, or two of them have one name: the processes at ``p0`` and ``p1``,
and in some runs at ``p2``, are all called "web". A process that has to go is started again by its supervisor. A few lives start with a wall
clock that went back, and without the disk that would have told them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from random import Random

from holdfast.events import Event
from holdfast.features.names.lab.checkers import MembersStay, NameBehind, NameClear, NameTaken, OneOfAName, OneStays
from holdfast.features.names.protocol.names import ASK_EVERY, LOOK_PERIOD, TRIES, Names
from holdfast.host import Address, Host, Machine, Membership, NodeId
from holdfast.lab.calm import Calm
from holdfast.lab.checker import Checker
from holdfast.lab.crowd import BEAT_PERIOD, Crowd
from holdfast.lab.faults import Menu, draw_plan
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

SHARED = "web"
SECONDS = 20.0  # of faults
GONE_AFTER = 3.0
SUPERVISOR_SECONDS = 2.5  # until a process that ended is started again
RESTART_SECONDS = 0.2  # until one that was behind has its new boot
CLOCK_BACK_SHARE = 0.2  # of all later lives
BOOTS, BOOTS_BACK = 1000, 500  # where boots begin, and where they begin when the clock went back
STRAY_SECONDS = 3.2  # the longest a message of bad weather is on the road
INQUIRY_SECONDS = ASK_EVERY * (TRIES + 1)
# They hear each other's greeting within two beats, then one question and its answer settle it. Links in calm lose 2 %. A process that was
# cut off at its start, and is unknown to others because its boot is lower than that of its former life, asks again after the period of
# looks.
TOGETHER_MAX = STRAY_SECONDS + 3 * BEAT_PERIOD + 2 * INQUIRY_SECONDS + 1.1 * LOOK_PERIOD
# A few more lives for a process that is behind or comes after the other, and the clock that goes back in calm.
SETTLE = STRAY_SECONDS + 4 * (SUPERVISOR_SECONDS + 2 * INQUIRY_SECONDS) + TOGETHER_MAX + 20.0
MENU = Menu(crashes=0.7, crash_forever=0.1, drift=0.01, duplicate=0.3)
SPARED_SECONDS = 1.0
STAGE = "stage"  # 0 faults, 1 the clock of the last place went back in calm
FORMER_BOOT = "former boot"


class NamesScenario(Scenario):
    """Four or five places; two or three have processes of one name, the last two are the seeds of all."""

    name = "care/names"
    title = "Two processes of one name under mixed faults: one goes, one stays"

    def setup(self, random: Random) -> Setup:
        places = tuple(f"p{i}" for i in range(random.randint(4, 5)))
        shared = random.randint(2, len(places) - 2)
        plan = draw_plan(random, places, SECONDS, MENU).sparing([places[0], *places[-2:]], SPARED_SECONDS)
        parameters: dict[str, float | str] = {"shared": float(shared), "lives": 0.0, STAGE: 0.0}
        return Setup(places, SECONDS, SETTLE, plan, Link(Uniform(0.001, 0.05), loss=0.02), parameters)

    def life(self, place: str, former: NodeId | None, setup: Setup) -> NodeId:
        """Boots as F1 makes them: above what the disk has, or as late as the wall clock says, which may be wrong if the disk was lost."""
        parameters = setup.parameters
        lives = parameters["lives"] = float(parameters["lives"]) + 1.0
        back = former is not None and Random(f"{place} {former} {lives}").random() < CLOCK_BACK_SHARE
        stored = 0 if back else int(float(parameters.get(f"stored {place}", 0.0)))
        boot = max(stored + 1, int(lives) + (BOOTS_BACK if back else BOOTS))
        parameters[f"stored {place}"] = float(boot)
        return NodeId(SHARED if setup.names.index(place) < float(parameters["shared"]) else place, boot)

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        addresses = [Address(place, PORT) for place in setup.names]
        crowd = Crowd(host, addresses, gone_after=GONE_AFTER)
        return [crowd, self.make(host, crowd, addresses[-2:])]

    def make(self, host: Host, membership: Membership, greeted: Sequence[Address]) -> Names:
        return Names(
            host,
            membership,
            greeted,
            clear=lambda: host.emit(NameClear()),
            conflict=lambda life, address: host.emit(NameTaken(life)),
            behind=lambda boot: host.emit(NameBehind(boot)),
        )

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        calm = Calm()
        return [calm, OneOfAName(calm, TOGETHER_MAX), OneStays(), MembersStay()]

    def drive(self, world: World, setup: Setup) -> None:
        world.listeners.append(partial(obey, world, setup))

    def unsettled(self, world: World, setup: Setup) -> str:
        """The shared name has one process and every other its own; then the last place starts with a clock that went back."""
        clear = next(checker for checker in world.checkers if isinstance(checker, OneOfAName)).clear_at(world)
        holders = [life for life in clear.values() if life.name == SHARED]
        nameless = [place for place in setup.names[int(float(setup.parameters["shared"])) :] if place not in clear and _up(world, place)]
        if len(holders) != 1 or nameless:
            return f"{SHARED!r} belongs to {holders}, and without a name is {nameless}"
        return self._with_the_clock_back(world, setup, clear)

    def _with_the_clock_back(self, world: World, setup: Setup, clear: dict[str, NodeId]) -> str:
        place, parameters = setup.names[-1], setup.parameters
        if parameters[STAGE] == 0.0 and not _lists(world, setup.names[-2], clear[place]):
            return f"the other seed does not list {clear[place]}"
        if parameters[STAGE] == 0.0:
            parameters[STAGE], parameters[FORMER_BOOT] = 1.0, float(clear[place].boot)
            world.crash(place)
            parameters[f"stored {place}"] = float(BOOTS_BACK - world.seed % 7)
            parameters["lives"] = -BOOTS  # so that neither the clock nor the disk reaches the former boot
            world.start(place)
            parameters["lives"] = 2.0 * BOOTS
            return "the clock goes back"
        former = float(parameters[FORMER_BOOT])
        return "" if clear[place].boot > former else f"{clear[place]} has its name, after a life with boot {former:g}"


def obey(world: World, setup: Setup, host: LabHost, event: Event) -> None:
    """What the agent and its supervisor do."""
    place = host.endpoint.name
    if isinstance(event, NameTaken):
        world.soon(partial(_restart, world, host, SUPERVISOR_SECONDS))
    elif isinstance(event, NameBehind):
        setup.parameters[f"stored {place}"] = float(event.boot)
        world.soon(partial(_restart, world, host, RESTART_SECONDS))


def _restart(world: World, host: LabHost, seconds: float) -> None:
    place = host.endpoint.name
    if not host.dead:
        world.crash(place)
        if place not in world.buried:
            world.revive_after(seconds, place)


def _lists(world: World, place: str, life: NodeId) -> bool:
    member = world.nodes[place].node.use(Crowd).get(life.name)
    return member is not None and member.id == life


def _up(world: World, place: str) -> bool:
    return place not in world.buried


SCENARIO = NamesScenario()
