"""What the scenarios of both modes of the election share: members, views that change, faults, checkers.

Spec: fast-detection 7 (I1-I6, I9, I11), D17, D18. ``detection/paper`` and ``detection/quorum`` are the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from holdfast.features.leadership.detector.config import ElectionConfig, Mode
from holdfast.features.leadership.detector.messages import WatchedOk
from holdfast.host import Address, Host, Machine, Message
from holdfast.kit.deadline import wait_length
from holdfast.kit.keeper import MARGIN
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Cut, Fault, Menu, Plan, draw_plan
from holdfast.lab.host import Around, LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT, Filter
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World
from holdfast.papers.detection.lab.checkers import election as checkers
from holdfast.papers.detection.lab.checkers.election import disagreement, election_of
from holdfast.papers.detection.lab.election_spoken import SpokenElection
from holdfast.papers.detection.protocol.election import LeaderElection
from holdfast.papers.detection.protocol.termstore import TermStore
from holdfast.papers.detection.protocol.views_feed import ViewsFeed

SECONDS = 20.0  # of faults
SIZES = (1, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9)  # small groups have the more interesting majorities
STRAY_SECONDS = 3.2  # the longest a message of bad weather is on the road
CALM_INTERVALS = 60.0  # I9: faults end, 60 t_itv pass
WATCHED_INTERVALS = 4.0  # how long an agreement must last to count
VIEWS = (0, 1, 2, 3, 6)  # changes of the view in a run
OFFER_SECONDS = (0.1, 3.0, 12.0)  # longest until one member hears of a view: most at once, some long after
RESIGN_SECONDS = 6.0  # mean time between two resignations
DEAF = 0.3  # share of the runs in which a member hears no other for a while
COMMON = (0.0, 0.0, 0.02, 0.1)  # share of the heartbeats of which all copies are lost
RESTED_SECONDS = 1.0  # after which a member comes back that the others cannot do without
OFFER_AGAIN = 0.1  # seconds, while the process is stopped


class Step(NamedTuple):
    """One view: when it is agreed upon, and its members."""

    at: float
    members: tuple[str, ...]


class ElectionScenario(Scenario):
    """One to nine members, everything goes wrong for a while."""

    mode: Mode

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.choice(SIZES)))
        t_itv = random.choice((0.5, 1.0))
        rho = random.choice((1e-3, 1e-3, 0.05))
        fixed = self.mode == "quorum" and random.random() < 0.3
        steps = draw_steps(random, names, single=not fixed)
        parameters: dict[str, float | str] = {
            "t_itv": t_itv,
            "rho": rho,
            "length": random.choice((0.0, 2.3 * t_itv, 5 * t_itv)),  # the defaults of section 4, and one that outlasts most faults
            "elect_after": float(random.choice((1, 2))),
            "common": random.choice(COMMON),
            "voters": ",".join(names[: min(len(names), random.choice((3, 5)))]) if fixed else "",
            "views": ";".join(f"{step.at}:{','.join(step.members)}" for step in steps),
        }
        plan = self.draw(random, names, rho, [step.members for step in steps])
        link = Link(Uniform(0.001, 0.8 * t_itv / 20))
        return Setup(names, SECONDS, settle(config(self.mode, parameters), len(steps)), plan, link, parameters)

    def draw(self, random: Random, names: tuple[str, ...], rho: float, views: Sequence[tuple[str, ...]]) -> Plan:
        """Mixed faults; one may be deaf; of most groups a majority of the last view survives."""
        menu = Menu(drift=rho, crashes=0.5, crash_forever=0.25, crashes_in_save=0.3, pauses=0.5, disks_full=0.05, tail_seconds=3.0)
        plan = draw_plan(random, names, SECONDS, menu)
        faults: list[Fault] = [*plan.faults]
        if len(names) > 1 and random.random() < DEAF:
            deaf = random.choice(names)
            others = tuple(name for name in names if name != deaf)
            faults.append(Cut(round(random.uniform(0, SECONDS / 2), 3), round(random.uniform(1, SECONDS / 2), 3), others, (deaf,)))
        spared = random.sample(views[-1], len(views[-1]) // 2 + 1)
        return Plan(tuple(sorted(faults, key=lambda fault: fault.at))).sparing(spared, RESTED_SECONDS)

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        election = self.make(host, config(self.mode, setup.parameters), TermStore(host.storage.part("election")), fixed_voters(setup))
        assert isinstance(host, LabHost)
        host.world.soon(partial(self._catch_up, host, setup))
        return [election, self.make_feed(host, election)] if self.feeds(setup) else [election]

    def make(self, host: Host, config: ElectionConfig, store: TermStore, voters: Sequence[str]) -> LeaderElection:
        return SpokenElection(host, config, store, voters=voters)

    def make_feed(self, host: Host, election: LeaderElection) -> ViewsFeed:
        config = election.config
        return ViewsFeed(
            host,
            interval=config.t_itv,
            length=config.lease,
            rho=config.rho,
            installed=lambda: election.installed,
            install=election.install_view,
        )

    def feeds(self, setup: Setup) -> bool:
        """D17 is for exclusive leases whose voters change."""
        return self.mode == "quorum" and not setup.parameters["voters"]

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        found: list[Checker] = [
            checkers.TermUnique(),
            checkers.TermMonotone(),
            checkers.ReportSound(),
            checkers.VoteTruth(),
            checkers.TermsKept(),
            Lasting(),
        ]
        if self.mode == "quorum":
            steps = read_steps(setup)
            length = config(self.mode, setup.parameters).lease
            voters = fixed_voters(setup)
            found += [
                checkers.LeaseExclusive(),
                checkers.FenceOrder(),
                checkers.StepDown(length, lambda view: voters or steps[view - 1].members),
            ]
        return found

    def drive(self, world: World, setup: Setup) -> None:
        """Views reach the members one by one, leaders resign, some heartbeats are lost on all links at once."""
        random = Random(f"{world.seed}/views")
        for number, step in enumerate(read_steps(setup)[1:], 2):
            for name in setup.names:
                world.at(step.at + random.uniform(0, random.choice(OFFER_SECONDS)), partial(self._offer, world, name, number, setup))
        at = random.expovariate(1 / RESIGN_SECONDS)
        while at < setup.seconds:
            world.at(at, partial(resign, world))
            at += random.expovariate(1 / RESIGN_SECONDS)
        common = float(setup.parameters["common"])
        if common:
            world.network.lose_if(common_loss(world.seed, common))

    def unsettled(self, world: World, setup: Setup) -> str:
        """I9, where a majority lives: members of the newest view that can be reached agree, and go on agreeing."""
        lasting = next(each for each in world.checkers if isinstance(each, Lasting))
        members = reached_view(world, setup)
        why = lasting.look(world, members)
        t_itv = float(setup.parameters["t_itv"])
        voters = fixed_voters(setup) or members
        able = [name for name in voters if name in members and not world.nodes[name].dead]
        if self.mode == "quorum" and len(able) <= len(voters) // 2:
            return ""
        if not any(not world.nodes[name].dead for name in members):
            return ""
        return why or ("" if lasting.since <= world.now - WATCHED_INTERVALS * t_itv else "they agree, and are watched")

    def _catch_up(self, host: LabHost, setup: Setup) -> None:
        """A process that starts is told of all views so far."""
        for number, step in enumerate(read_steps(setup), 1):
            if step.at <= host.world.now and not host.dead:
                self._offer(host.world, host.me.name, number, setup)

    def _offer(self, world: Around, name: str, number: int, setup: Setup) -> None:
        host = world.nodes[name]
        if host.dead:
            return  # Its next life is told.
        if not host.running:
            world.at(world.now + OFFER_AGAIN, partial(self._offer, world, name, number, setup))
            return
        view = {member: Address(member, PORT) for member in read_steps(setup)[number - 1].members}
        take = host.node.use(ViewsFeed).offer if self.feeds(setup) else election_of(host).install_view
        world.step(host, partial(take, number, view))


class Lasting(Checker):
    """Since when the members agree; no invariant of its own."""

    name = "lasting"

    def __init__(self) -> None:
        self.since = 0.0

    def look(self, world: World, members: Sequence[str]) -> str:
        why = disagreement(world, members)
        if why:
            self.since = world.now
        return why


def config(mode: Mode, parameters: Mapping[str, float | str]) -> ElectionConfig:
    return ElectionConfig(
        mode=mode,
        t_itv=float(parameters["t_itv"]),
        length=float(parameters["length"]),
        rho=float(parameters["rho"]),
        elect_after=int(float(parameters["elect_after"])),
    )


def draw_steps(random: Random, names: tuple[str, ...], *, single: bool) -> list[Step]:
    """The first view, and what becomes of it: by one member at a time, or in any way."""
    present = sorted(random.sample(names, random.randint(max(1, len(names) - 2), len(names))))
    steps = [Step(0.0, tuple(present))]
    first, last = (0.0, SECONDS) if random.random() < 0.5 else (4.0, 6.0)  # at any time, or hard upon each other
    for at in sorted(round(random.uniform(first, last), 3) for _ in range(random.choice(VIEWS))):
        changes = random.sample(names, 1 if single else random.randint(1, len(names)))
        later = sorted(set(present) ^ set(changes))
        if later:
            present = later
            steps.append(Step(at, tuple(present)))
    return steps


def read_steps(setup: Setup) -> list[Step]:
    parts = (part.split(":") for part in str(setup.parameters["views"]).split(";"))
    return [Step(float(at), tuple(names.split(","))) for at, names in parts]


def fixed_voters(setup: Setup) -> tuple[str, ...]:
    text = str(setup.parameters["voters"])
    return tuple(text.split(",")) if text else ()


def settle(config: ElectionConfig, views: int) -> float:
    """I9's 60 t_itv, after what is on the road has arrived and the views that wait have passed the feed one by one."""
    held = views * (wait_length(config.lease, config.rho, MARGIN) + 3 * config.t_itv)
    return STRAY_SECONDS + held + (CALM_INTERVALS + WATCHED_INTERVALS) * config.t_itv


def reached_view(world: World, setup: Setup) -> tuple[str, ...]:
    """The newest view that gets through in the end: a majority of each before it lives, or a member is further already."""
    steps = read_steps(setup)
    reached = len(steps)
    if ViewsFeed in {type(machine) for host in world.alive for machine in host.node.machines}:
        furthest = max((election_of(host).installed for host in world.alive), default=1)
        reached = max(1, furthest)
        while reached < len(steps):
            members = steps[reached - 1].members
            if sum(not world.nodes[name].dead for name in members) <= len(members) // 2:
                break
            reached += 1
    return steps[reached - 1].members


def resign(world: World) -> None:
    for host in world.alive:
        if host.running and host.node.running and election_of(host).is_leader():
            world.step(host, election_of(host).resign)


def common_loss(seed: int, share: float) -> Filter:
    """Loses all copies of some heartbeats: what one bad cable near their sender does (D10)."""

    def lost(source: str, target: str, message: Message) -> bool:
        return isinstance(message, WatchedOk) and Random(f"{seed}/{source}/{message.seq}").random() < share

    return lost
