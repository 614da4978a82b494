"""ring/E2-real: many real members die at once; does any other have to go, and if so, why?

Spec: ring 8 (E2, 64 real agents), D13; paper 000, section VII-B, Figure 8. Members with a process of their own get a kill -9, of the
others the sockets are closed. A member that leaves beyond the killed must be explained: a pair of its whose group has no live majority.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from benchmarks.ring_fleet import NeverHappened, name_of
from benchmarks.ring_formed import KILLED, Formed, formed
from holdfast.errors import ConfigError
from holdfast.features.ring.protocol.config import K_MAX, LEASE_MAX, LEASE_MIN, RingConfig
from holdfast.kit.phase import weighted
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXACT_KILLED, EXACT_OF = 7, 43  # up to this share of the living, no other goes
EXACT_SHARE = 0.9  # of the runs

Event = Mapping[str, Any]


class RealSimultaneousParameters(Parameters, frozen=True, kw_only=True):
    """The setting of Figure 8; the numbers killed and the time between are ours."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 5  # runs; each takes two minutes
    lease: Annotated[float, Meta(ge=LEASE_MIN, le=LEASE_MAX)] = 0.5
    members: Annotated[int, Meta(ge=4, le=256)] = 64
    k: Annotated[int, Meta(ge=1, le=K_MAX)] = 3
    kills: Annotated[tuple[Annotated[int, Meta(ge=1, le=256)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (1, 2, 3, 4, 5, 6, 7, 8)
    apart: Annotated[float, Meta(ge=8.0, le=1000.0)] = 25.0  # in T_l
    alone: Annotated[int, Meta(ge=1, le=64)] = 8  # members with a process of their own
    shared: Annotated[int, Meta(ge=1, le=64)] = 2  # processes for all others

    def __post_init__(self) -> None:
        if sum(self.kills) >= self.members or self.alone >= self.members:
            raise ConfigError(f"kills {list(self.kills)}, alone {self.alone}: accepted are fewer than members ({self.members}) in all")


class RealSimultaneous(Experiment[RealSimultaneousParameters]):
    """Kill so many at once, wait, count, explain."""

    id = "ring/E2-real"
    name = "ring/real-simultaneous"
    title = "Real processes: only the dead are missing"
    source = "paper 000, Figure 8; ring 8, E2 (64 real agents)"
    criterion = (
        "exactly the killed are missing after every event that kills at most 7 of 43, in 90 % of the runs; every other departure is "
        "explained by a group without a live majority and is within 2k positions of a killed member"
    )
    parameters = RealSimultaneousParameters
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1", "members": "12", "kills": "[1,2]", "apart": "10", "alone": "3"}

    def cells(self, parameters: RealSimultaneousParameters, seed: int) -> Sequence[Cell]:
        shape = {name: getattr(parameters, name) for name in ("lease", "members", "k", "apart", "alone", "shared")}
        return [{"seed": f"{seed}/{number}", "kills": list(parameters.kills), **shape} for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        events: list[dict[str, Any]] = []
        broken, load = "", os.getloadavg()[0]
        config = RingConfig(lease=cell["lease"], k=cell["k"])
        try:
            with formed(cell["members"], config, solos=cell["alone"], shared=cell["shared"], seed=cell["seed"]) as ring:
                events.extend(_kill(ring, kills, cell["apart"] * config.lease) for kills in cell["kills"])
        except NeverHappened as error:
            broken = str(error).partition(";")[0]
        return {"seed": cell["seed"], "events": events, "broken": broken, "load": round(load, 2)}

    def judge(self, parameters: RealSimultaneousParameters, results: Sequence[Measured]) -> Finding:
        exact = [not result["broken"] and all(map(_is_exact, result["events"])) for result in results]
        extra = [(result, event, leaver) for result in results for event in result["events"] for leaver in event["extra"]]
        misses = [f"run {result['seed']}: {result['broken']}" for result in results if result["broken"]]
        misses += [f"unexplained: {_told(*each)}" for each in extra if not each[2]["because"]]
        misses += [f"further than 2k away: {_told(*each)}" for each in extra if each[2]["distance"] > 2 * parameters.k]
        if fmean(exact) < EXACT_SHARE:
            misses.append(f"exact in {fmean(exact):.0%} of {len(exact)} runs, {EXACT_SHARE:.0%} are asked for")
        left = [parameters.members - sum(parameters.kills[: e + 1]) for e in range(len(parameters.kills))]
        whole = [result["events"] for result in results if not result["broken"]]
        measured = {
            "alive after each event": [round(fmean(e["after"] for e in events), 2) for events in zip(*whole, strict=True)],
            "share of exact runs": round(fmean(exact), 4),
            "departures beyond the killed": [sum(len(e["extra"]) for e in events) for events in zip(*whole, strict=True)],
            "unexplained": sum(not leaver["because"] for _, _, leaver in extra),
            "members with a group that lost its majority": [sum(e["doomed"] for e in events) for events in zip(*whole, strict=True)],
            "killed by kill -9": sum(event["kill -9"] for result in results for event in result["events"]),
            "all killed": sum(event["killed"] for result in results for event in result["events"]),
            "largest lateness": max((event["lateness"] for result in results for event in result["events"]), default=0.0),
            "runs": [result["events"] for result in results],
        }
        expected = {
            "alive after each event": left,
            "share of exact runs": EXACT_SHARE,
            "departures beyond the killed": [0] * len(left),
            "unexplained": 0,
        }
        loads = ", ".join(f"{result['load']:g}" for result in results)
        explained = [_told(*each) for each in extra if each[2]["because"]]
        return Finding(measured, expected, not misses, (*misses, *explained, f"load of the machine before each run: {loads}"))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2)
        for events in finding.measured["runs"]:
            left.plot([str(e["killed"]) for e in events], [e["after"] for e in events], marker="o", alpha=0.6, color="#0072b2")
        longest: Sequence[Event] = max(finding.measured["runs"], key=len, default=[])
        expected = finding.expected["alive after each event"][: len(longest)]
        left.plot(
            [str(event["killed"]) for event in longest],
            expected,
            color="#7b8794",
            linestyle="--",
            label="paper: only the killed are missing",
        )
        left.set_xlabel("members killed at once, one event after the other")
        left.set_ylabel("members alive afterwards, one line per run")
        left.set_ylim(bottom=0)
        left.legend()
        extras = [(e["killed"] / e["before"], len(e["extra"])) for events in finding.measured["runs"] for e in events]
        right.plot([share for share, _ in extras], [count for _, count in extras], "o", alpha=0.6)
        right.set_xlabel("share of the living that was killed")
        right.set_ylabel("departures beyond the killed")
        right.set_ylim(bottom=-0.2)


def _kill(ring: Formed, kills: int, seconds: float) -> dict[str, Any]:
    """One event. Who has to leave comes back by itself: it is counted as gone in this event and as a member in the next."""
    it, k = ring.fleet, ring.config.k
    it.lateness()
    before = {name: ring.id_of(name) for name in ring.members()}
    if len(before) <= kills:
        raise NeverHappened(f"{len(before)} members are left, too few to kill {kills}; the machine stood still for whole leases")
    order = sorted(before.values())
    killed = ring.random.sample(sorted(before), kills)
    dead = {before[name] for name in killed}
    crashed_at = min(ring.crash(killed).values())
    it.pass_time(seconds)
    departures = [line for line in it.found("Departed", since=crashed_at, was_member=True) if line["id"] in order]
    extra, out = [], set(dead)
    for line in departures:
        because = next(hopeless(order, line["id"], out, k), "")
        extra.append({"name": name_of(line), "reason": line["reason"], "because": because, "distance": _distance(order, line["id"], dead)})
        out.add(line["id"])
    return {
        "before": len(before),
        "killed": kills,
        "kill -9": sum(ring.kind_of(name) == KILLED for name in killed),
        "after": len(before) - kills - len(extra),
        "agreed": it.agreed(name for name in before if name not in killed),
        "doomed": sum(any(hopeless(order, each, dead, k)) for each in order if each not in dead),
        "extra": extra,
        "lateness": round(max(it.lateness().values()), 4),
    }


def hopeless(order: Sequence[str], member: str, dead: Collection[str], k: int) -> Any:
    """The dead peers of a member about which no decision can be had: too few of the pair's group are left. Ids sort as on the ring."""
    for peer in _around(order, member, k):
        group = {member, peer, *_around(order, member, k), *_around(order, peer, k)}
        live = group - set(dead) | {member}
        if peer in dead and not weighted(group).enough(live):
            yield f"{len(live)} of {len(group)} of its group with {peer[:8]} alive"


def _around(order: Sequence[str], member: str, k: int) -> list[str]:
    at, size = order.index(member), len(order)
    return sorted({order[(at + step) % size] for step in range(-k, k + 1)} - {member})


def _distance(order: Sequence[str], member: str, dead: Collection[str]) -> int:
    """Positions to the nearest of the dead, on the ring as it was."""
    at, size = order.index(member), len(order)
    return min(min((at - order.index(each)) % size, (order.index(each) - at) % size) for each in dead)


def _is_exact(event: Event) -> bool:
    """Also true where so many were killed at once that nothing is asked for."""
    few = event["killed"] * EXACT_OF <= EXACT_KILLED * event["before"]
    return not few or (not event["extra"] and event["agreed"])


def _told(result: Measured, event: Event, leaver: Mapping[str, Any]) -> str:
    where = f"run {result['seed']}, {event['killed']} of {event['before']} killed, lateness {event['lateness']:g} s"
    return f"{where}: {leaver['name']} left ({leaver['reason']}), {leaver['distance']} from the next killed: {leaver['because'] or 'why?'}"


EXPERIMENT = RealSimultaneous()
