"""Seats, promises and phases together under mixed faults: one holder at a time, one holder per number, numbers only grow.

Spec: foundation 4 (Promise, Seats), F8, F9, F13, F15, F16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random

from msgspec.structs import replace

from holdfast.host import Address, Host, Machine
from holdfast.kit.deadline import wait_length
from holdfast.kit.keeper import MARGIN
from holdfast.kit.seats import ASK_TIMEOUT, Seats
from holdfast.kit.slots import Slot, own_slot
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Crash, CrashInSave, Drift, Fault, LostJournal, Menu, Plan, draw_plan
from holdfast.lab.kit.checkers.promise import Exclusive, LostJournalsSilent, NumbersGrow, OnePerNumber
from holdfast.lab.kit.claims import GRANTS_KEPT, Claimant
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

SECONDS = 25.0  # of faults
RHO = 0.05
MENU = Menu(drift=RHO, crashes=0.6, crash_forever=0.15, crashes_in_save=0.5, pauses=0.7, disks_full=0.15)
STRAY_SECONDS = 3.2  # the longest a message of bad weather is on the road
END_INTERVAL = 1.5  # mean time between two resignations, or neglects, of the holder
ROLL_INTERVAL = 8.0  # mean time between two quick restarts of all seats, one after the other: what an upgrade does
ROLL_DOWN = 0.2  # longest that each is down
LOST_JOURNALS = 0.3  # share of the runs in which one seat loses its disk
LOST_AFTER = 5.0  # seconds: by then it has been shown to the others, if all are up
# At the very first start all slots must be up once (F13). Where one of them will be gone for good nothing happens before this, or
# no claimant could ever hold; everywhere else faults come from the beginning.
FOUNDED_AFTER = 3.0
SPARED_SECONDS = 1.0  # after which a seat comes back that the others cannot do without


class PromiseScenario(Scenario):
    """1, 3 or 5 seats, up to 3 others; all claim the same thing."""

    name = "kit/claims"
    title = "Promises of seats under mixed faults, with lost journals"

    def setup(self, random: Random) -> Setup:
        seats = random.choice((1, 3, 3, 3, 5))
        names = tuple(f"s{i}" for i in range(seats)) + tuple(f"c{i}" for i in range(random.randint(1, 3)))
        length = random.choice((0.5, 1.0, 2.0))
        plan = draw(random, names, seats)
        parameters: dict[str, float | str] = {"seats": float(seats), "length": length, "numbers": random.choice(("wall", "small"))}
        link = Link(
            Uniform(0.001, random.choice((0.02, length / 8, length / 8)))
        )  # so that a question and its answers take up to half a timeout
        return Setup(names, SECONDS, settle(len(names), length), plan, link, parameters)

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        seats = self.make_seats(host, slots(setup), float(setup.parameters["length"]))
        return [seats, self.make(host, seats, setup)]

    def make_seats(self, host: Host, places: tuple[Slot, ...], length: float) -> Seats:
        own = own_slot(places, host.me.name, host.address)
        return Seats(host, places, own, machine=host.me.name, rho=RHO, length_max=length)

    def make(self, host: Host, seats: Seats, setup: Setup) -> Claimant:
        length, wall_numbers = float(setup.parameters["length"]), setup.parameters["numbers"] == "wall"
        return Claimant(host, seats, length=length, rho=RHO, wall_numbers=wall_numbers)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return [Exclusive(), OnePerNumber(), NumbersGrow(), LostJournalsSilent()]

    def drive(self, world: World, setup: Setup) -> None:
        random = Random(f"{world.seed}/claims")
        at = random.expovariate(1 / END_INTERVAL)
        while at < setup.seconds:
            world.at(at, partial(end_hold, world, random.choice((Claimant.resign, Claimant.neglect))))
            at += random.expovariate(1 / END_INTERVAL)

    def unsettled(self, world: World, setup: Setup) -> str:
        """A claimant has won or renewed since the faults stopped, and goes on renewing. Only a plan by hand leaves none that could."""
        seats, calm_for = able(world, setup), world.now - setup.seconds
        if len(seats) <= len(slots(setup)) // 2:
            return ""
        if any(host.node.use(Claimant).held_since(host.now - calm_for * host.rate) for host in world.alive):
            return ""
        return f"{len(seats)} of {len(slots(setup))} seats can speak and nobody holds for long"


def draw(random: Random, names: tuple[str, ...], seats: int) -> Plan:
    """Mixed faults, quick restarts of all seats in a row, a lost journal; and a majority of seats that survives all of it."""
    plan = draw_plan(random, names, SECONDS, MENU)
    places = names[:seats]
    lost = random.choice(places) if seats > 1 and random.random() < LOST_JOURNALS else ""
    plan = plan.sparing(random.sample([name for name in places if name != lost], seats // 2 + 1), SPARED_SECONDS)
    faults = [*plan.faults, *rolls(random, places)]
    if lost:
        faults.append(LostJournal(round(random.uniform(LOST_AFTER, SECONDS), 3), lost))
    if any(isinstance(fault, LostJournal) or _last(fault, places) for fault in faults):
        faults = [_founded(fault) for fault in faults]
    return Plan(tuple(sorted(faults, key=lambda fault: fault.at)))


def rolls(random: Random, places: tuple[str, ...]) -> list[Fault]:
    """Each process ends and its next life starts a moment later, well before a promise of the former one is over."""
    faults: list[Fault] = []
    at = random.expovariate(1 / ROLL_INTERVAL)
    while at < SECONDS - ROLL_DOWN * len(places):
        for name in places:
            how = random.choice((Crash, CrashInSave))
            faults.append(how(round(at, 3), name, round(random.uniform(0, ROLL_DOWN), 3)))
            at += ROLL_DOWN
        at += random.expovariate(1 / ROLL_INTERVAL)
    return faults


def able(world: World, setup: Setup) -> list[str]:
    """Seats that can promise in the end: their machine and journal are there, and they have founded the group or still can."""
    names = [slot.name for slot in slots(setup)]
    whole = [name for name in names if name not in world.buried and not world.disks[name].wipes]
    spoke = next(each for each in world.checkers if isinstance(each, LostJournalsSilent)).spoke
    return whole if whole == names else [name for name in whole if name in spoke]


def slots(setup: Setup) -> tuple[Slot, ...]:
    return tuple(Slot(i, f"s{i}", Address(f"s{i}", PORT)) for i in range(int(setup.parameters["seats"])))


def settle(claimants: int, length: float) -> float:
    """How long after the last fault a claimant must hold, if a majority of seats may speak.

    Messages of the bad time are on the road for ``STRAY_SECONDS``. A seat asks the others anew every ``ASK_TIMEOUT``, then waits for the
    longest length. Then claims: two at the same time split the seats for a length; each claimant draws a pause of up to
    1.5 lengths, and with ``claimants`` drawing, 20 rounds fail all together about once in a million runs. Then the winner renews
    often enough to show that it lasts, each time within a third of a length, half a timeout and what clocks add.
    """
    return STRAY_SECONDS + ASK_TIMEOUT + 2 * wait_length(length, RHO, MARGIN) + (20 * 1.5 + GRANTS_KEPT) * length + claimants * 0.1


def end_hold(world: World, how: Callable[[Claimant], None]) -> None:
    """The holder gives it up, or lets it run out."""
    for host in world.alive:
        if host.running and host.node.use(Claimant).valid:
            world.step(host, partial(how, host.node.use(Claimant)))


def _last(fault: Fault, places: tuple[str, ...]) -> bool:
    return isinstance(fault, Crash) and fault.down is None and fault.node in places


def _founded(fault: Fault) -> Fault:
    """The same fault, when the group has been founded."""
    if isinstance(fault, Drift):
        return fault
    return replace(fault, at=round(FOUNDED_AFTER + fault.at * (1 - FOUNDED_AFTER / SECONDS), 3))


SCENARIO = PromiseScenario()
