"""Leadership with seats under mixed faults: one leader at a time, tokens that grow, and in the end a leader that all know.

Spec: fast-detection 7, D17b; foundation F8-F17.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from random import Random

from msgspec.structs import replace

from holdfast.features.leadership.lab.checkers import (
    Backed,
    ClientExclusive,
    FenceOrder,
    LeaseExclusive,
    ReportSound,
    RoundsGrow,
    Stable,
    TermUnique,
    VoteTruth,
)
from holdfast.features.leadership.lab.clients import LENGTH_SPREAD, Clients
from holdfast.features.leadership.lab.spoken import ForgetfulOffice, SpokenWatches
from holdfast.features.leadership.protocol.leadership import Leadership, LeadershipConfig
from holdfast.host import Address, Host, Machine
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.deadline import wait_length
from holdfast.kit.exchange import Exchange
from holdfast.kit.keeper import MARGIN
from holdfast.kit.seats import ASK_TIMEOUT, Seats, SeatState
from holdfast.kit.slots import Slot, own_slot
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Drift, Fault, LostJournal, Menu, Plan, draw_plan
from holdfast.lab.links import Exponential, Link
from holdfast.lab.listed_members import Hidden, ListedMembers, Lists
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

SECONDS = 20.0
FOUNDED_AFTER = 4.5  # F13: all slots must be up once, until the longest wait of a fresh seat is over
RHO = 0.02
STRAY_SECONDS = 3.2  # the longest a message of bad weather is on the road
SPARED_SECONDS = 1.0
AE_PERIOD = 1.0
HIDE_SECONDS = 10.0
LOST_JOURNALS = 0.15  # share of the runs in which one seat loses its disk, and stays silent from then on (F13)
MENU = Menu(drift=RHO, crashes=0.4, crash_forever=0.2, crashes_in_save=0.2, pauses=0.5, loss=0.25, duplicate=0.2, disks_full=0.05)
HARD_MENU = replace(MENU, crashes=1.2, crashes_in_save=0.5, pauses=1.5, cuts=4.0, partitions=3.0, weather=4.0, loss=0.4, duplicate=0.3)
HARD_SHARE = 0.2  # of the runs
NAMES = ("alpha", "beta", "gamma")


class LeadershipScenario(Scenario):
    """1, 3 or 5 seats of 3 to 9 agents; up to three names, whose candidates come, withdraw, resign and die."""

    name = "detection/leadership"
    title = "Leadership decided by seats, under mixed faults and member lists that differ"
    seconds = SECONDS  # of faults
    heartbeats: tuple[float, ...] = (0.5, 1.0)  # t_itv is one of them

    def setup(self, random: Random) -> Setup:
        seats, agents = self.size(random)
        names = tuple(f"a{i}" for i in range(agents))
        t_itv = random.choice(self.heartbeats)
        plan = draw(random, names, seats, self.seconds)
        parameters: dict[str, float | str] = {
            "seats": float(seats),
            "t_itv": t_itv,
            "names": float(random.choice((1, 1, 2, 3))),
            "length": t_itv * random.choice((1.5, 1.5, 2.3)),
            "numbers": random.choice(("known", "known", "known", "forgotten")),
            "loss": random.choice((0.0, 0.01, 0.1)),
            "watched": random.choice((0.0, 0.0, 0.0, 1.0)),  # I10 is watched in calm, which takes time
        }
        link = Link(Exponential(0.01 * t_itv, least=0.0005), loss=float(parameters["loss"]))
        return Setup(names, self.seconds, settle(setup_length(parameters), t_itv), plan, link, parameters)

    def size(self, random: Random) -> tuple[int, int]:
        """How many seats, and how many agents with them."""
        seats = random.choice((1, 3, 3, 3, 5))
        return seats, random.randint(max(3, seats), 9)

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        members = ListedMembers(host)
        seats = self.make_seats(host, setup)
        broadcast = Broadcast(host, members)
        exchange = Exchange(host, broadcast, ae_period=AE_PERIOD)
        return [members, seats, broadcast, exchange, self.make(host, members, seats, exchange, setup)]

    def make_seats(self, host: Host, setup: Setup) -> Seats:
        places = slots(setup)
        own = own_slot(places, host.me.name, host.address)
        length_max = LENGTH_SPREAD * setup_length(setup.parameters)
        return Seats(host, places, own, machine=host.me.name, rho=RHO, length_max=length_max)

    def make(self, host: Host, members: ListedMembers, seats: Seats, exchange: Exchange, setup: Setup) -> Leadership:
        leadership = Leadership(host, members, seats, exchange, self.config(setup))
        leadership.watches.__class__ = SpokenWatches
        if setup.parameters["numbers"] == "forgotten":
            leadership.office.__class__ = ForgetfulOffice
        return leadership

    def config(self, setup: Setup) -> LeadershipConfig:
        return LeadershipConfig(t_itv=float(setup.parameters["t_itv"]), rho=RHO)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        names = led_names(setup)
        exclusive = [ClientExclusive(), LeaseExclusive(names), Backed(names, [slot.name for slot in slots(setup)])]
        return [TermUnique(), FenceOrder(), RoundsGrow(), *exclusive, ReportSound(), VoteTruth(), Stable(stable_since(setup))]

    def drive(self, world: World, setup: Setup) -> None:
        random = Random(f"{world.seed}/leadership")
        Lists(world, self.hides(random, setup))
        Clients(world, random, led_names(setup), setup.names, setup_length(setup.parameters), setup.seconds)

    def hides(self, random: Random, setup: Setup) -> list[Hidden]:
        """Lists that differ between nodes, for up to ten seconds at a time; all the same again when the faults are over."""
        found = []
        for _ in range(random.randint(0, 6)):
            viewer, member = random.sample(setup.names, 2)
            at = random.uniform(0, setup.seconds)
            found.append(Hidden(at, min(random.uniform(0, HIDE_SECONDS), setup.seconds - at), viewer, member))
        return found

    def unsettled(self, world: World, setup: Setup) -> str:
        """I9: all that are alive name the same leader and token, and that one leads; none where there is no candidate."""
        if len(able(world, setup)) <= len(slots(setup)) // 2:
            return ""
        why = next((why for name in led_names(setup) if (why := disagreement(world, name))), "")
        return why or ("its stability is watched" if world.now < watched_until(setup) else "")


def able(world: World, setup: Setup) -> list[str]:
    """Seats that can promise in the end. One whose journal never came to serve opens only if every other slot is there (F13)."""
    names = [slot.name for slot in slots(setup)]
    whole = [name for name in names if name not in world.buried and not world.disks[name].wipes]
    if whole == names:
        return names
    return [name for name in whole if world.nodes[name].node.use(Seats).state in (SeatState.WAITING, SeatState.SERVING)]


def disagreement(world: World, name: str) -> str:
    """How the living differ about who leads; "" if they agree and it is true."""
    all_of_them = [(host, host.node.use(Leadership)) for host in world.alive]
    candidates = [host.me for host, leadership in all_of_them if name in leadership.office.campaigns]
    views = sorted({str(leadership.leader(name)) for _, leadership in all_of_them})
    leaders = [(host.me, leadership.token(name)) for host, leadership in all_of_them if leadership.is_leader(name)]
    if len(views) > 1:
        return f"{name!r}: members disagree: {views}"
    if not candidates:
        return "" if views == ["None"] else f"{name!r}: nobody stands for it, and the leader is {views}"
    if not leaders:
        return f"{name!r}: nobody leads, candidates are {candidates}"
    shown = all_of_them[0][1].leader(name)
    return "" if shown is not None and (shown.leader, shown.token) == leaders[0] else f"{name!r}: {leaders} leads, members say {views}"


def draw(random: Random, names: tuple[str, ...], seats: int, seconds: float) -> Plan:
    """Mixed faults after the founding, and a majority of seats that survives all of it."""
    lost = random.choice(names[:seats]) if seats > 1 and random.random() < LOST_JOURNALS else ""
    spared = random.sample([name for name in names[:seats] if name != lost], seats // 2 + 1)
    menu = HARD_MENU if random.random() < HARD_SHARE else MENU
    faults = [_founded(fault) for fault in draw_plan(random, names, seconds - FOUNDED_AFTER, menu).sparing(spared, SPARED_SECONDS).faults]
    if lost:
        faults.append(LostJournal(round(random.uniform(FOUNDED_AFTER, seconds), 3), lost))
    return Plan(tuple(sorted(faults, key=lambda fault: fault.at)))


def slots(setup: Setup) -> tuple[Slot, ...]:
    return tuple(Slot(i, f"a{i}", Address(f"a{i}", PORT)) for i in range(int(setup.parameters["seats"])))


def led_names(setup: Setup) -> tuple[str, ...]:
    return NAMES[: int(setup.parameters["names"])]


def setup_length(parameters: dict[str, float | str]) -> float:
    return float(parameters["length"])


def settle(length: float, t_itv: float) -> float:
    """Messages of the bad time are on the road for ``STRAY_SECONDS``; a seat asks the others anew every ``ASK_TIMEOUT`` and waits for the
    longest length; then 60 t_itv (I9)."""
    return STRAY_SECONDS + ASK_TIMEOUT + 2 * wait_length(LENGTH_SPREAD * length, RHO, MARGIN) + 60 * t_itv


def stable_since(setup: Setup) -> float:
    """From when on nothing may happen: half of the time in which all must be well. Where every tenth message is lost a sole seat does not
    hear a heartbeat and its repeats now and then."""
    return setup.seconds + setup.settle / 2 if setup.parameters["watched"] and float(setup.parameters["loss"]) < 0.1 else inf


def watched_until(setup: Setup) -> float:
    return 0.0 if stable_since(setup) == inf else stable_since(setup) + 12 * float(setup.parameters["t_itv"])


def _founded(fault: Fault) -> Fault:
    return fault if isinstance(fault, Drift) else replace(fault, at=round(fault.at + FOUNDED_AFTER, 3))


SCENARIO = LeadershipScenario()
