"""What happens to a fleet that elects, one fault at a time, and what must follow.  Spec: election 1 (A2, A4, A7), 5.8 to 5.10; F14."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple

from holdfast.net.clock import now
from tests.features.election.process.led import INITIATED, LENGTH, LedFleet
from tests.features.election.process.store import refused
from tests.support.member_fleet import CUTS, MARGIN, POLL_INTERVAL, Late
from tests.support.realtime import repeated

EVERY: Final = 1.0  # seconds between two deaths of a churn
AWAY: Final = 0.5  # seconds until the next life of one of them begins
CHURN_STARTS: Final = 3  # agents that may be starting

Took = dict[str, float]  # seconds, by what they are of
Fault = Callable[[LedFleet, str], Took]  # gets the leader; raises ``Late`` where a bound is passed


class Case(NamedTuple):
    """A fault. It ends with the network whole and no process stopped."""

    what: str
    fault: Fault
    of_network: bool = False  # worth repeating where a kernel cuts


def check(fleet: LedFleet, case: Case) -> None:
    """No late write is let through and, with seats, no token acts for two lives, whatever happens and however late the machine is. The rest
    is asked of a machine that is in time: the bounds of the fault; no command acts beyond hold and grace; in the end one leader."""

    def attempt(number: int) -> str:
        if number:
            fleet.net.heal()
        try:
            fleet.rest()
            since = now()
            took = case.fault(fleet, fleet.leader())
            took["one leader"] = fleet.agreed()
        except Late as late:
            assert fleet.wrongs() == []
            return str(late)
        acts = fleet.acts.since(since)
        told = ", ".join(f"{what} {seconds:.2f}" for what, seconds in took.items())
        print(  # noqa: T201 - a measurement, told with -s
            f"{fleet.voters}, {case.what}: {told}; {len({act.token for act in acts})} tokens, {len(acts)} writes, {refused(acts)} refused"
        )
        assert fleet.wrongs() == []
        return "; ".join(fleet.too_long(since))

    repeated(attempt, margin=MARGIN)


def agent_killed(fleet: LedFleet, leader: str) -> Took:
    since = now()
    fleet.kill(leader)
    took = {"next acts": fleet.followed(since, fleet.takeover, but=[leader]), "former acts": fleet.quiet_since(since, [leader])}
    fleet.start(leader)
    return took


def initiator_killed(fleet: LedFleet, leader: str) -> Took:
    """It has asked its questions, for an election in which the leader is one candidate among others, and dies. Its nominee leads, or the
    former leader goes on: of two, the one with the smaller term hears of the other. A nominee that no initiator confirms expires, and who
    watched begins another one: what is looked at is what is so when all of that is over."""
    initiator = next(name for name in fleet.standing if name != leader)
    since = now()
    fleet.elect(initiator)
    fleet.kill(initiator)
    time.sleep(fleet.settling)
    fleet.agreed(within=fleet.again + fleet.handed)
    took = {"no command": longest_gap(fleet, since)}
    fleet.start(initiator)
    return took


def both_killed(fleet: LedFleet, leader: str) -> Took:
    """The leader's agent, and then the first that initiates. The next leader may be that one: then its silence has to be noticed, too."""
    since = now()
    fleet.kill(leader)
    while not (begun := [fact for fact in fleet.facts(INITIATED, since) if not fact.me.startswith(f"{leader}#")]):
        if now() - since > fleet.noticed + fleet.again:
            raise Late("no member began an election")
        time.sleep(POLL_INTERVAL / 10)
    initiator = begun[0].me.partition("#")[0]
    fleet.kill(initiator)
    killed_at = now()
    bound = killed_at - since + fleet.noticed + fleet.again + fleet.handed
    took = {"initiated": begun[0].at - since, "next acts": fleet.followed(since, bound, but=[leader, initiator])}
    fleet.start(leader, initiator)
    return took


def agent_stopped(fleet: LedFleet, leader: str) -> Took:
    """Until another one leads; then it goes on, and hears of that."""
    since = now()
    fleet.excuse(fleet.names, [leader])
    fleet.stop(leader)
    try:
        took = {"next acts": fleet.followed(since, fleet.takeover, but=[leader]), "former acts": fleet.quiet_since(since, [leader])}
    finally:
        fleet.go_on(leader)
    return took


def run_stopped(fleet: LedFleet, leader: str) -> Took:
    """SIGSTOP of ``holdfast run``: its guardian ends the command by the deadline, and its agent extends once more at most."""
    since = now()
    fleet.stop_run(leader)
    try:
        took = {
            "next acts": fleet.followed(since, 2 * LENGTH + fleet.handed, but=[leader]),
            "former acts": fleet.quiet_since(since, [leader]),
        }
    finally:
        fleet.go_on_run(leader)
    return took


def run_killed(fleet: LedFleet, leader: str) -> Took:
    """-9 of ``holdfast run``: its guardian ends the command at once, and the agent hears that from the kernel."""
    since = now()
    fleet.kill_run(leader)
    took = {"next acts": fleet.followed(since, LENGTH + fleet.handed, but=[leader]), "former acts": fleet.quiet_since(since, [leader])}
    fleet.ask()
    return took


def halves(seconds: float) -> Fault:
    """Eight and eight; the leader is on the side without the seats. Mode none: a reign on each side. Mode seats: the leader steps down, and
    the other side has one. Healed, one of them is left."""

    def fault(fleet: LedFleet, leader: str) -> Took:
        fixed = [name for name in fleet.names if name not in fleet.standing]
        more = max(1, len(fleet.names) // 2 - len(fixed))
        one = [*fixed, *[name for name in fleet.standing if name != leader][:more]]
        other = [name for name in fleet.names if name not in one]
        since = now()
        fleet.excuse(one, other)
        fleet.excuse(other, one)
        fleet.split(one, other)
        took = {"other side acts": fleet.followed(since, seconds, one)}
        if fleet.voters == "seats":
            time.sleep(max(0.0, since + fleet.unsupported + LENGTH - now()))
            took["this side acts"] = fleet.quiet_since(since, other)
            if took["this side acts"] > fleet.unsupported + LENGTH:
                raise Late(f"a side without seats still acts after {took['this side acts']:.1f} s")
        time.sleep(max(0.0, since + seconds - now()))
        reigns = fleet.acting()
        sides, tokens = {life.actor.member in one for life in reigns}, {life.token for life in reigns}
        wanted = 1 if fleet.voters == "seats" else 2
        if (len(sides), len(tokens)) != (wanted, wanted):
            raise Late(f"{wanted} sides were to have a reign: {reigns}")
        healed_at = now()
        fleet.net.heal()
        if wanted > 1:
            larger = max(reigns, key=lambda life: life.token)
            loser = next(life for life in reigns if life.token != larger.token)
            fleet.agreed()
            took["loser acts"] = fleet.quiet_since(healed_at, [loser.actor.member])
            left = [life.token for life in fleet.acting()]
            if left != [larger.token]:
                raise Late(f"the reign with the larger token was to be left, {larger.token}: {left}")
        return took

    return fault


def mute(fleet: LedFleet, leader: str) -> Took:
    """What the leader sends arrives nowhere; it hears all."""
    return _one_way(fleet, leader, [([leader], name) for name in fleet.names if name != leader])


def deaf(fleet: LedFleet, leader: str) -> Took:
    """The leader hears nothing; what it sends arrives."""
    return _one_way(fleet, leader, [([name for name in fleet.names if name != leader], leader)])


def _one_way(fleet: LedFleet, leader: str, cuts: Sequence[tuple[Collection[str], str]]) -> Took:
    """Until another one leads, and on: the former one may go on, under its smaller token."""
    others = [name for name in fleet.names if name != leader]
    fleet.excuse(others, [leader])
    fleet.excuse([leader], others)
    since = now()
    with ThreadPoolExecutor(CUTS) as pool:
        list(pool.map(lambda cut: fleet.net.cut(*cut), cuts))
    took = {"next acts": fleet.followed(since, fleet.takeover, but=[leader])}
    time.sleep(2 * fleet.longest)
    took["former acts"] = fleet.quiet_since(since, [leader])
    fleet.net.heal()
    return took


def lossy(share: float) -> Fault:
    """So much of all datagrams is lost, and the leader's agent dies: questions are asked again, and one election may come to nothing."""

    def fault(fleet: LedFleet, leader: str) -> Took:
        fleet.excuse(fleet.names, fleet.names)
        fleet.net.lose(share)
        time.sleep(2 * fleet.longest)
        since = now()
        before = {life.actor.member for life in fleet.acting()}
        fleet.kill(*before)
        took = {"next acts": fleet.followed(since, fleet.takeover + fleet.again, but=before)}
        fleet.net.heal()
        fleet.start(*before)
        return took

    return fault


def churned(seconds: float) -> Fault:
    """A member that stands dies every second, the leader among them, and comes again under its name as soon as the machine can start it."""

    def fault(fleet: LedFleet, leader: str) -> Took:
        del leader
        random, since, deaths = Random(7), now(), 0
        fleet.excuse(fleet.names, fleet.names)
        starts: dict[str, Future[None]] = {}
        with ThreadPoolExecutor(CHURN_STARTS) as pool:
            while now() - since < seconds:
                due = since + deaths * EVERY
                time.sleep(max(0.0, due - now()))
                for name in [name for name, start in starts.items() if start.done()]:
                    starts.pop(name).result()
                if len(starts) < CHURN_STARTS:
                    victim = random.choice([name for name in fleet.standing if name not in starts])
                    fleet.kill(victim)
                    deaths += 1
                    starts[victim] = pool.submit(_back, fleet, victim)
                else:
                    time.sleep(POLL_INTERVAL)
            for start in starts.values():
                start.result()
        return {"seconds": now() - since, "deaths": float(deaths), "no command": longest_gap(fleet, since)}

    return fault


def _back(fleet: LedFleet, name: str) -> None:
    time.sleep(AWAY)
    fleet.start(name)


def longest_gap(fleet: LedFleet, since: float) -> float:
    """The longest time in which no command acted."""
    ats = [since, *sorted(act.at for act in fleet.acts.since(since)), now()]
    return max(after - before for before, after in pairwise(ats))
