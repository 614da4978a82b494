"""Tickets under mixed faults: taken, given back, queued for, excluded, moved; I1 to I10.  Spec: tickets 7, 8 (E4).

Agents s0.. are the seats, c0.. are others. All have users that come and go. When the faults have stopped every living agent wants
one ticket and keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from holdfast.features.tickets.lab.checkers import (
    Cells,
    LeaseCover,
    NoReturn,
    OwnExclusive,
    QuorumAlone,
    TicketWatch,
    TokensGrow,
    guardian_at,
)
from holdfast.features.tickets.lab.users import Habits, TicketUsers
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.tickets import Tickets
from holdfast.features.tickets.protocol.values import Key, Place, Val
from holdfast.host import Address, Host, Machine
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.deadline import wait_length
from holdfast.kit.exchange import Exchange
from holdfast.kit.keeper import MARGIN
from holdfast.kit.roster import Roster, listed
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot, own_slot
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Crash, CrashInSave, Fault, Menu, Plan, draw_plan
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

POOL = "pool"
RHO = 0.02
SPARED_SECONDS = 1.0
SECONDS = 60.0  # of faults (E4)


class TicketScenario(Scenario):
    """Two to nine agents, one to eight tickets, one to five seats."""

    name = "tickets/mixed"
    title = "Tickets under mixed faults"
    tickets = Tickets
    seconds = SECONDS

    def setup(self, random: Random) -> Setup:
        agents = random.randint(2, 9)
        seats = random.choice([count for count in (1, 3, 3, 3, 5) if count <= agents])
        names = tuple(f"s{i}" for i in range(seats)) + tuple(f"c{i}" for i in range(agents - seats))
        lease = random.choice((1.0, 2.0, 2.0))
        parameters: dict[str, float | str] = {
            "seats": float(seats),
            "n": float(random.randint(1, 8)),
            "k": float(random.choice((0, 1, 1, 2))),
            "guardians": random.choice(("seats", "seats", "ring")),
            "lease": lease,
            "users": float(random.choice((1, 1, 1, 2))),
            "hold": random.choice((0.3, 2.0, 5.0)),
        }
        plan = draw_faults(random, names, seats, self.seconds)
        link = Link(Uniform(0.001, random.choice((0.005, 0.02, 0.05))))
        return Setup(names, self.seconds, settle(agents, lease), plan, link, parameters)

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        roster = Roster(host, listed({name: Address(name, PORT) for name in setup.names}))
        broadcast = Broadcast(host, roster)
        exchange = Exchange(host, broadcast)
        config = self.config(setup)
        seats = self.make_seats(host, slots(setup), config.lease)
        tickets = self.make(host, roster, seats, broadcast, exchange, config)
        return [roster, broadcast, exchange, seats, tickets, TicketUsers(host, tickets, habits(setup))]

    def config(self, setup: Setup) -> TicketConfig:
        lease = float(setup.parameters["lease"])
        ring = setup.parameters["guardians"] == "ring"
        return TicketConfig(
            k=int(setup.parameters["k"]),
            period=lease / 4,
            lease=lease,
            rho=RHO,
            phase_timeout=0.75 * lease,
            rtx=0.1 * lease,
            guardians="ring" if ring else "seats",
        )

    def make_seats(self, host: Host, places: tuple[Slot, ...], length: float) -> Seats:
        return Seats(host, places, own_slot(places, host.me.name, host.address), machine=host.me.name, rho=RHO, length_max=length)

    def make(self, host: Host, roster: Roster, seats: Seats, broadcast: Broadcast, exchange: Exchange, config: TicketConfig) -> Tickets:
        return self.tickets(host, roster, seats, broadcast, exchange, config)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        cover = LeaseCover()
        return [TicketWatch(OwnExclusive(), cover, QuorumAlone()), cover, TokensGrow(), Cells(), NoReturn()]

    def unsettled(self, world: World, setup: Setup) -> str:
        """I9, I10: every agent that is there wants one ticket, and has it if there are enough; no dead cell is left on the ring."""
        for host in world.alive:
            users = host.node.use(TicketUsers).users
            users[0].stay()
            for user in users[1:]:
                if user.attempt is not None or not user.keeping:
                    user.stay()
                    world.step(host, user.leave)
        return missing(world, setup)


def missing(world: World, setup: Setup) -> str:
    """What is not yet as I9 and I10 want it."""
    cells = next(each for each in world.checkers if isinstance(each, Cells))
    held = {coordinator.who for host in world.alive for coordinator in host.node.use(Tickets).coordinators if coordinator.valid}
    guarded = False  # the cell before is held, so this one is cared for; the anchor is not cared for before a user wants a ticket
    for val, keys in cells.walk(POOL):
        if val.who in held:
            guarded = True
            continue
        if not readable(world, cells, keys, val):
            # A lost cell (D27): whatever is behind it has to wait for an operator, who has to be told.
            return f"the cell of ticket {val.head} is lost and nobody says so" if guarded and (POOL, keys[0].rid) not in cells.lost else ""
        if guarded:
            return f"the cell of ticket {val.head}, {val.status.name} by {val.who}, is nobody's"
    owning = sum(user.acting for host in world.alive for user in host.node.use(TicketUsers).users)
    wanted = min(len(world.alive), int(setup.parameters["n"]))
    return "" if owning >= wanted else f"{owning} own a ticket; {len(world.alive)} want one of {int(setup.parameters['n'])}"


def readable(world: World, cells: Cells, keys: list[Key], val: Val) -> bool:
    """Whether most guardians of each set on the way to a cell are there: of those that it was moved from, or the move is not found, and of
    the one that it was being moved to, because it cannot be known whether that one has it."""
    sets = [_places(cells, key) for key in keys] + [val.nxt.places if val.nxt is not None else ()]
    return all(_majority(world, places) for places in sets if places)


def _places(cells: Cells, key: Key) -> tuple[Place, ...]:
    """The guardian set of a cell, from the cell that points to it; empty if none does."""
    for other, (_, val) in cells.highest.items():
        if (val.succ.rid, val.succ.cfg) == (key.rid, key.cfg):
            return val.succ.places
        if other.rid == key.rid and val.nxt is not None and val.nxt.cfg == key.cfg:
            return val.nxt.places
    return ()


def _majority(world: World, places: tuple[Place, ...]) -> bool:
    hosts = [guardian_at(world, place) for place in places]
    return sum(host is not None and not host.dead for host in hosts) > len(places) // 2


def habits(setup: Setup) -> Habits:
    given = setup.parameters
    return Habits(POOL, int(given["n"]), users=int(given["users"]), hold=float(given["hold"]))


def slots(setup: Setup) -> tuple[Slot, ...]:
    return tuple(Slot(i, f"s{i}", Address(f"s{i}", PORT)) for i in range(int(setup.parameters["seats"])))


def draw_faults(random: Random, names: tuple[str, ...], seats: int, seconds: float) -> Plan:
    """Each kind in about half of the runs; seats always come back."""

    def some(mean: float) -> float:
        return mean * random.choice((0.3, 0.6, 1.0, 1.5)) if random.random() < 0.55 else 0.0

    menu = Menu(
        crashes=some(0.5),
        crash_forever=0.3,
        crashes_in_save=some(0.3),
        pauses=some(0.8),
        pause_seconds=8.0,
        cuts=some(2.0),
        partitions=some(1.0),
        cut_seconds=10.0,
        weather=some(1.5),
        loss=0.25,
        duplicate=0.1,
        delay=Uniform(0.001, random.choice((0.05, 0.2, 1.9))),
        tail_seconds=random.choice((1.0, 3.0, 8.0)),
        drift=RHO if random.random() < 0.5 else 0.0,
    )
    plan = draw_plan(random, names, seconds, menu).sparing(names[:seats], SPARED_SECONDS)
    faults: list[Fault] = [*plan.faults, *rolls(random, names[:seats], seconds)]
    return Plan(tuple(sorted(faults, key=lambda fault: fault.at)))


def rolls(random: Random, places: tuple[str, ...], seconds: float) -> list[Fault]:
    """Quick restarts of all seats in a row, in some runs: what an upgrade does."""
    if random.random() < 0.6:
        return []
    at = random.uniform(2.0, seconds - 2.0)
    faults: list[Fault] = []
    for name in places:
        faults.append(random.choice((Crash, CrashInSave))(round(at, 3), name, round(random.uniform(0.0, 0.3), 3)))
        at += 0.3
    return faults


def settle(agents: int, lease: float) -> float:
    """I9: suspect + 2D + 10 s for each cell that is merged one after the other, and messages of the bad time before."""
    return 10.0 + wait_length(lease, RHO, MARGIN) * (3 + 3 * agents) + 10.0


SCENARIO = TicketScenario()
