"""What happens to a fleet that gossips, one fault at a time, and how long its lists are wrong.  Spec: gossip 7 (G3, G13), 5.7, 5.8, D16."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import NamedTuple

from tests.features.gossip.process.fleet import GossipFleet
from tests.support.member_fleet import MARGIN, PROBE, Late
from tests.support.realtime import repeated

Fault = Callable[[GossipFleet], list[float]]  # returns how long lists were wrong in its phases, the last one left out


class Case(NamedTuple):
    """A fault. It ends with all processes running and the network whole, and says with ``fleet.excuse`` which members could not hear which
    other ones."""

    what: str
    fault: Fault


def check(fleet: GossipFleet, case: Case) -> None:
    """G3: every list is right within the bound. No member gives one up that lives and that it can hear. The grants of the seats are not
    touched (F15)."""

    def attempt(number: int) -> str:
        if number:
            fleet.net.heal()
        fleet.rest()
        since = time.time()
        try:
            took = [*case.fault(fleet), fleet.right()]
        except Late as late:
            return str(late)
        gone = fleet.lost(since)
        print(f"{case.what}: lists right after {', '.join(f'{each:.2f}' for each in took)} s of {fleet.bound:.1f} s; T {PROBE:g} s")  # noqa: T201 - a measurement, told with -s
        assert fleet.recorder.wrongs() == []
        touched = fleet.touched()
        return "; ".join([*([f"{len(gone)} given up alive: {gone[:3]}"] if gone else []), *([touched] if touched else [])])

    repeated(attempt, margin=MARGIN)


def killed(*names: str) -> Fault:
    """-9; when the others have noticed, the next life under the same name."""

    def fault(fleet: GossipFleet) -> list[float]:
        fleet.kill(*names)
        took = fleet.right()
        fleet.start(*names)
        return [took]

    return fault


def restarted(name: str) -> Fault:
    """-9, and the next life begins before the others have noticed."""

    def fault(fleet: GossipFleet) -> list[float]:
        fleet.kill(name)
        fleet.start(name)
        return []

    return fault


def replaced(name: str, new: str) -> Fault:
    """-9, and another member comes under a new name; then the other way round."""

    def fault(fleet: GossipFleet) -> list[float]:
        took = []
        for one, other in ((name, new), (new, name)):
            fleet.kill(one)
            took.append(fleet.right())
            fleet.start(other)
            took.append(fleet.right())
        return took[:-1]

    return fault


def stood_still(name: str, suspicions: float) -> Fault:
    """SIGSTOP for so many shortest suspicions. For less than one it is forgiven, and whom it watched is never given up (F11)."""

    def fault(fleet: GossipFleet) -> list[float]:
        if suspicions >= 1:
            fleet.excuse(fleet.names, [name])
        with fleet.stopped(name):
            time.sleep(suspicions * fleet.shortest)
        return []

    return fault


def one_way(sender: str, receiver: str) -> Fault:
    """Others pass on what does not pass directly: no member gives any up."""

    def fault(fleet: GossipFleet) -> list[float]:
        fleet.net.cut([sender], receiver)
        time.sleep(2 * fleet.longest)
        took = fleet.right()
        fleet.net.heal()
        return [took]

    return fault


def parted(few: Collection[str], seconds: float) -> Fault:
    """A cut network: each side gives up the other one, and no member of its own."""

    def fault(fleet: GossipFleet) -> list[float]:
        many = [name for name in fleet.names if name not in few]
        fleet.excuse(few, many)
        fleet.excuse(many, few)
        cut_at = time.time()
        fleet.split(few, many)
        took = []
        if seconds > fleet.longest + (2 * len(fleet.names) - 1) * fleet.config.period:
            took = [max(fleet.right(side, since=cut_at) for side in (few, many))]
        time.sleep(max(0.0, cut_at + seconds - time.time()))
        fleet.net.heal()
        return took

    return fault


def seeds_lost(name: str) -> Fault:
    """All seeds die. A member that is started again meanwhile finds the others at the addresses that it remembers; the seeds come back."""

    def fault(fleet: GossipFleet) -> list[float]:
        fleet.kill(*fleet.seeds)
        first = fleet.right()
        fleet.kill(name)
        fleet.start(name)
        second = fleet.right()
        fleet.start(*fleet.seeds)
        return [first, second]

    return fault
