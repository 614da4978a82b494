"""What happens to a fleet under load, one fault at a time, and what its records say of the members meanwhile.  Issue 16."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from holdfast.net.clock import now_ns
from tests.features.limits.process.fleet import USED, LimitFleet, Program
from tests.features.limits.process.record import SECOND, behind, merged, peaks, too_low, whole_since
from tests.support.realtime import repeated

BEFORE: Final = 1.0  # seconds before a fault that are looked at too
LOW_MAX: Final = 2.0  # seconds: for so long a member may be below min(what it wants, R/n) through a single failure
# A program of an exact limit goes on for 0.96 `settle` - `lease` after `until` (limits 5.1): 3.65 s with the preset of a LAN. If the next
# life of the agent is not there by then, less what the program needs to find it, the program waits for its part (H310).
IN_TIME: Final = 2.0  # seconds
NOTICED: Final = 3.0  # seconds: a silent member is out of the view after 1.75 s, with the preset of a LAN
MARGIN: Final = 0.25  # seconds: a third of the time after which a silent link is one that failed, with the preset of a LAN


class Outcome(NamedTuple):
    """Of one fault."""

    low: dict[str, float]  # seconds below min(what it wants, R/n), of each member
    behind: dict[str, float]  # seconds of that which were missing
    whole_in: float  # seconds from the end of the fault on until the whole limit was used
    wrongs: list[str]
    peaks: dict[float, float]  # by the length of the interval: the most that went in one, as a part of R * T
    took: float  # seconds from the begin of the fault to its end, all processes running

    def told(self, what: str) -> None:
        worst = max(self.low, key=self.low.__getitem__)
        found = ", ".join(f"{window:g} s: {part:.3f}" for window, part in self.peaks.items())
        print(  # noqa: T201 - a measurement, told with -s
            f"{what}: took {self.took:.2f} s; whole again after {self.whole_in:.2f} s; longest below min(want, R/n) {self.low[worst]:.2f} s"
            f" ({worst}), behind by {max(self.behind.values()):.2f} s; most of R * T in {found}"
        )


def through(fleet: LimitFleet, fault: Callable[[LimitFleet], None]) -> Outcome:
    """The fault, and until the whole limit is used again."""
    since = max(now_ns() - round(BEFORE * SECOND), fleet.counts_from)
    began_at = now_ns()
    fault(fleet)
    ended_at = now_ns()
    time.sleep(NOTICED)
    fleet.whole()
    until = now_ns() - SECOND // 10  # what went until then is written
    whole_at = whole_since(merged(fleet.records(), since), USED * fleet.terms.rate, ended_at, until)
    low, lag = {}, {}
    for name in fleet.names:
        permits = merged(fleet.records(name), since)
        low[name] = too_low(permits, fleet.least(name), since, until)[0]
        lag[name] = behind(permits, fleet.least(name), since, until)
    found = peaks(fleet.records(), since)
    parts = {each.window: each.excess(fleet.terms.rate) for each in found}
    return Outcome(low, lag, (whole_at - ended_at) / SECOND, fleet.wrongs(since), parts, (ended_at - began_at) / SECOND)


class Case(NamedTuple):
    """A fault, and for how long it keeps one member itself from its part."""

    what: str
    fault: Callable[[LimitFleet], None]
    member: str = ""
    excused: float = 0.0  # seconds
    restarts: bool = False  # the agent of this member begins another life: a busy machine may take too long for it

    def late(self, outcome: Outcome, fleet: LimitFleet) -> dict[str, float]:
        """Members that were below min(what they want, R/n) for too long."""
        excused = self.excused
        if self.restarts and fleet.terms.policy == "exact" and outcome.took > IN_TIME:
            excused += outcome.took + fleet.views.settle
        return {name: low for name, low in outcome.low.items() if low > LOW_MAX + (excused if name == self.member else 0.0)}


def check(fleet: LimitFleet, case: Case) -> None:
    """``exact`` never lets more go than R * T + B + m in any interval, however late the machine is. That no member is below min(what it
    wants, R/n) for too long is asked of a machine on which all processes run when they can."""

    def attempt(number: int) -> str:
        if number:
            fleet.rest()
        outcome = through(fleet, case.fault)
        outcome.told(f"{fleet.terms.policy}, {fleet.workers} per agent: {case.what}")
        assert fleet.terms.policy != "exact" or outcome.wrongs == []
        late = case.late(outcome, fleet)
        return f"below min(want, R/n) for too long: {late}" if late else ""

    repeated(attempt, margin=MARGIN)


# Faults. Each ends with all processes running and the network whole.


def worker_killed(name: str, away: float = 1.0) -> Callable[[LimitFleet], None]:
    """-9, and another one is started."""

    def fault(fleet: LimitFleet) -> None:
        fleet.kill_worker(name)
        time.sleep(away)
        fleet.load(name, 1)

    return fault


def worker_stopped(name: str, seconds: float) -> Callable[[LimitFleet], None]:
    def fault(fleet: LimitFleet) -> None:
        stopped(fleet.running(name)[:1], seconds)

    return fault


def agent_killed(name: str, away: float) -> Callable[[LimitFleet], None]:
    """-9; its next life begins later."""

    def fault(fleet: LimitFleet) -> None:
        fleet.kill(name)
        time.sleep(away)
        fleet.start(name)

    return fault


def agent_stopped(name: str, seconds: float) -> Callable[[LimitFleet], None]:
    def fault(fleet: LimitFleet) -> None:
        fleet.agents[name].signal(signal.SIGSTOP)
        time.sleep(seconds)
        fleet.agents[name].signal(signal.SIGCONT)

    return fault


def cut_off(names: Collection[str], seconds: float) -> Callable[[LimitFleet], None]:
    """These and the others do not hear each other."""

    def fault(fleet: LimitFleet) -> None:
        fleet.split(names, [name for name in fleet.names if name not in names])
        time.sleep(seconds)
        fleet.net.heal()

    return fault


def one_way(sender: str, receiver: str, seconds: float) -> Callable[[LimitFleet], None]:
    def fault(fleet: LimitFleet) -> None:
        fleet.net.cut(fleet.at(sender), fleet.at(receiver))
        time.sleep(seconds)
        fleet.net.heal()

    return fault


def stopped(programs: Collection[Program], seconds: float) -> None:
    for program in programs:
        program.process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    for program in programs:
        program.process.send_signal(signal.SIGCONT)
