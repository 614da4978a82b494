"""`ring`: what ring membership costs, on real sockets and in the lab.

    leases_off_equation_2       |LR + ACK sent / what Equation 2 of the paper says - 1|, the worst of 9 rings
    other_messages              everything else they sent / LR + ACK, the worst of 9
    figure_9_of_five_minutes    CPU of Figure 9 at full size (one core) / 5 minutes
    figure_9_of_two_gibibytes   its peak of memory / 2 GiB
    lease_over_echo             CPU per lease message on real sockets / per message of a bare echo at the same pace, both sealed
    lease_over_hurried_echo     the same / per message of an echo that never waits, so that a wake-up serves many
    lab_event_over_bare_lease   CPU per lab event of a ring / of the bare lease workload, as many nodes and neighbours
    checkers_slowdown           CPU of a ring of 40 with the checkers of I1 to I14 / without
    view_over_wire              bytes of a view of 1000 members in memory / bytes of the same rows as they travel

Figure 9 is run once, in a process of its own; everything that is a ratio of two times is taken in turns.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from benchmarks import lease
from benchmarks.harness import ROOT, Contestant, Report, at_most, median_ratio, ratio, show_progress, take_turns
from benchmarks.ring_lab import Watched, calm_world, messages_sent, per_event, view_bytes

FIVE_MINUTES = 300.0
TWO_GIBIBYTES_IN_MIB = 2048.0
GOALS = {
    "leases_off_equation_2": at_most(0.01),
    "other_messages": at_most(0.10),
    "figure_9_of_five_minutes": at_most(1.0),
    "figure_9_of_two_gibibytes": at_most(1.0),
}
RATIOS = {
    "lease_over_echo": ("sockets_ring", "sockets_echo"),
    "lease_over_hurried_echo": ("sockets_ring", "sockets_hurried"),
    "lab_event_over_bare_lease": ("lab_ring", "lab_bare_leases"),
    "checkers_slowdown": ("lab_watched", "lab_unwatched"),
}
ROUNDS = 4
SEED = 1
CALM_SECONDS = 2.0  # of the large ring, per round


class Size(NamedTuple):
    """How much of it."""

    members: int = 1000  # of Figure 9, of the lab's ring, and of the view whose memory is taken
    crashes: int = 100  # Figure 9: one after another, 6 T_l apart
    early: int = 5  # crashes after which the rest of Figure 9 is projected
    counted: tuple[int, ...] = (16, 64, 256)  # rings that are counted against Equation 2
    neighbours: tuple[int, ...] = (1, 3, 5)  # k of these
    watched: int = 40  # members of the ring under checkers
    hosts: int = 8  # on real sockets, all in one process
    lease: float = 0.2  # T_l there, and how often an echo is asked: short, so that a second has many messages
    seconds: float = 4.0  # counted there per round


SIZE = Size()


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    figure_9 = _in_child("ring_full_size", size.members, size.crashes, size.early)
    counted = {f"n {n}, k {k}": _counted(n, k) for n in size.counted for k in size.neighbours}
    view = view_bytes(size.members)
    contest = Contest(size)
    seconds = take_turns(contest.contestants(), rounds)
    ratios = {
        "leases_off_equation_2": max(abs(each["leases_of_equation_2"] - 1) for each in counted.values()),
        "other_messages": max(each["others_of_leases"] for each in counted.values()),
        "figure_9_of_five_minutes": figure_9["cpu_seconds"] / FIVE_MINUTES,
        "figure_9_of_two_gibibytes": figure_9["peak_mib"] / TWO_GIBIBYTES_IN_MIB,
        **{name: ratio(seconds, *pair) for name, pair in RATIOS.items()},
        "view_over_wire": view["memory_bytes"] / view["wire_bytes"],
    }
    raw = {**_raw(size, rounds, seconds, contest), "figure_9": figure_9, "messages": counted, "view": view}
    return Report("ring", GOALS, ratios, raw, [*figure_9["problems"], *contest.problems()])


class Contest:
    """Pairs that are compared. A round's time is CPU per event or message: two contestants need not do equally many."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.sockets: dict[str, dict[str, Any]] = {}  # of the latest round
        self._calm = calm_world(SEED, size.members)
        self._bare = lease.build_world(lease.Size(nodes=size.members, seed=SEED))
        self._watched = {watched: Watched(SEED, size.watched, watched=watched) for watched in (False, True)}
        self._problems: list[str] = []

    def contestants(self) -> dict[str, Contestant]:
        return {
            "lab_ring": partial(per_event, self._calm, CALM_SECONDS),
            "lab_bare_leases": partial(per_event, self._bare, CALM_SECONDS),
            "lab_unwatched": self._watched[False].per_event,
            "lab_watched": self._watched[True].per_event,
            "sockets_ring": partial(self._sockets, "ring"),
            "sockets_echo": partial(self._sockets, "echo"),
            "sockets_hurried": partial(self._sockets, "hurried"),
        }

    def problems(self) -> list[str]:
        results = {each.result for each in self._watched.values()}
        differs = [] if len(results) == 1 else [f"checkers changed the run: events and members {sorted(results)}"]
        return [*self._problems, *differs]

    def _sockets(self, kind: str) -> float:
        self.sockets[kind] = found = _in_child("ring_sockets", kind, self.size.hosts, self.size.lease, self.size.seconds)
        self._problems += found["problems"]
        return float(found["cpu_seconds"] / found["messages"])


def _counted(n: int, k: int) -> dict[str, Any]:
    show_progress(f"messages of {n} members, k = {k}")
    return messages_sent(SEED, n, k)


def _in_child(module: str, *arguments: object) -> Any:
    show_progress(f"{module} {' '.join(map(str, arguments))}")
    command = [sys.executable, "-m", f"benchmarks.{module}", json.dumps(arguments)]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _raw(size: Size, rounds: int, seconds: Mapping[str, list[float]], contest: Contest) -> dict[str, object]:
    lab = [name for name in seconds if name.startswith("lab")]
    return {
        **{name: each if isinstance(each, (int, float)) else list(each) for name, each in size._asdict().items()},
        "rounds": rounds,
        "events_per_cpu_second": {name: round(1 / min(seconds[name])) for name in lab},
        "microseconds_per_message": {name: round(min(seconds[name]) * 1e6, 2) for name in seconds if name not in lab},
        "median_ratio_of_a_round": {name: round(median_ratio(seconds, *pair), 3) for name, pair in RATIOS.items()},
        "sockets": contest.sockets,
        "cpu_microseconds": {name: [round(each * 1e6, 3) for each in times] for name, times in seconds.items()},
    }
