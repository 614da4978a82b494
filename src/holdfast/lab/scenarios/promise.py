"""Seats, promises and phases together under mixed faults: one holder at a time, one holder per number, numbers only grow.

Spec: foundation 4 (Promise, Seats), F8, F9, F13, F15, F16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random

from holdfast.host import Address, Host, Machine
from holdfast.kit.deadline import wait_length
from holdfast.kit.keeper import MARGIN
from holdfast.kit.seats import ASK_TIMEOUT, Seats, SeatState
from holdfast.kit.slots import Slot, own_slot
from holdfast.lab.checker import Checker
from holdfast.lab.checkers.promise import Exclusive, LostJournalsSilent, NumbersGrow, OnePerNumber
from holdfast.lab.claims import Claimant
from holdfast.lab.disk import LabDisk
from holdfast.lab.faults import Crash, CrashInSave, Menu, draw_plan
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

SECONDS = 25.0  # of faults
RHO = 0.05
MENU = Menu(drift=RHO, crashes=0.6, crash_forever=0.15, crashes_in_save=0.5, pauses=0.7)
STRAY_SECONDS = 3.2  # the longest a message of bad weather is on the road
END_INTERVAL = 1.5  # mean time between two resignations, or neglects, of whoever holds
ROLL_INTERVAL = 8.0  # mean time between two quick restarts of all seats, one after the other: what an upgrade does
ROLL_DOWN = 0.2  # longest that each is down
LOST_JOURNALS = 0.3  # share of the runs in which one seat loses its disk
LOST_AFTER = 5.0  # seconds: by then it has been shown to the others, if all are up


class PromiseScenario(Scenario):
    """1, 3 or 5 seats, up to 3 others; everybody claims the same thing."""

    name = "kit/claims"
    title = "Promises of seats under mixed faults, with lost journals"

    def setup(self, random: Random) -> Setup:
        seats = random.choice((1, 3, 3, 3, 5))
        names = tuple(f"s{i}" for i in range(seats)) + tuple(f"c{i}" for i in range(random.randint(1, 3)))
        length = random.choice((0.5, 1.0, 2.0))
        plan = draw_plan(random, names, SECONDS, MENU)
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
        at = 0.0
        while at < setup.seconds:
            at += random.expovariate(1 / END_INTERVAL)
            world.at(at, partial(end_hold, world, random.choice((Claimant.resign, Claimant.neglect))))
        seats = int(setup.parameters["seats"])
        at = random.expovariate(1 / ROLL_INTERVAL)
        while at < setup.seconds:
            for number in range(seats):
                how = random.choice((Crash, CrashInSave))
                world.at(at, partial(bounce, world, how(at, f"s{number}", random.uniform(0, ROLL_DOWN))))
                at += ROLL_DOWN
            at += random.expovariate(1 / ROLL_INTERVAL)
        if seats > 1 and random.random() < LOST_JOURNALS:
            world.at(random.uniform(LOST_AFTER, setup.seconds), partial(lose_journal, world, f"s{random.randrange(seats)}"))

    def unsettled(self, world: World, setup: Setup) -> str:
        """Somebody holds, if the seats that may speak are a majority."""
        living = {host.me.name: host for host in world.alive}
        seats = [slot.name for slot in slots(setup)]
        states = [living[name].node.use(Seats).state for name in seats if name in living]
        if SeatState.ASKING in states and len(states) == len(seats):
            return "all slots are up and one still asks whether it may speak"
        speaking = sum(state in {SeatState.WAITING, SeatState.SERVING} for state in states)
        if speaking <= len(seats) // 2 or any(host.node.use(Claimant).valid for host in world.alive):
            return ""
        return f"{speaking} of {len(seats)} seats speak and nobody holds"


def slots(setup: Setup) -> tuple[Slot, ...]:
    return tuple(Slot(i, f"s{i}", Address(f"s{i}", PORT)) for i in range(int(setup.parameters["seats"])))


def settle(claimants: int, length: float) -> float:
    """How long after the last fault somebody must hold, if a majority of seats may speak.

    Messages of the bad time are on the road for ``STRAY_SECONDS``. A seat asks the others anew every ``ASK_TIMEOUT``, then waits for the
    longest length. Then claims: two at the same time split the seats for a length; each claimant draws a pause of up to
    1.5 lengths, and with ``claimants`` drawing, 20 rounds fail all together about once in a million runs.
    """
    return STRAY_SECONDS + ASK_TIMEOUT + 2 * wait_length(length, RHO, MARGIN) + 20 * 1.5 * length + claimants * 0.1


def end_hold(world: World, how: Callable[[Claimant], None]) -> None:
    """Whoever holds gives it up, or lets it run out."""
    for host in world.alive:
        if host.running and host.node.use(Claimant).valid:
            world.step(host, partial(how, host.node.use(Claimant)))


def bounce(world: World, fault: Crash | CrashInSave) -> None:
    """The process ends and its next life starts a moment later, well before a promise of the former one is over."""
    if not world.nodes[fault.node].dead:
        fault.begin(world)


def lose_journal(world: World, name: str) -> None:
    """The seat's machine is replaced: same name, same address, an empty disk. A seat that never served loses nothing."""
    host = world.nodes[name]
    if host.dead or host.node.use(Seats).state not in {SeatState.WAITING, SeatState.SERVING}:
        return
    checker = next(each for each in world.checkers if isinstance(each, LostJournalsSilent))
    checker.lost.add(name)
    world.crash(name)
    world.disks[name] = LabDisk(Random(f"{world.seed}/disk/{name}/2"))
    world.start(name)


SCENARIO = PromiseScenario()
