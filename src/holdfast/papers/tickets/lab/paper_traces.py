"""Counterexamples to the paper's Theorem 4.1, as schedules on ``PaperRing``; and random cuts and stops.  Spec: tickets D3-D6, 8 (E3).

Processes p0, p1, ... follow each other around the circle; in the traces k = 1, every message takes 20 ms, T = 1 s, delta = 0.1 s. Every
step of a trace is one of Algorithms 3 to 5 as they are written.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec import Struct

from holdfast.lab.links import Fixed, Link
from holdfast.papers.tickets.lab.paper_ring import PaperConfig
from holdfast.papers.tickets.lab.paper_rings import DELAY, PaperRings

TRACE_LINK = Link(Fixed(0.02))
CUT_SECONDS = (1.0, 6.0)  # how long a link is down in the random runs
CUT_GAP = 20.0  # seconds between two cuts, on average: with many more, the core is empty soon (D6)
JOINERS = 4


class Trace(Struct, frozen=True):
    """One counterexample."""

    name: str
    decision: str  # as in the spec
    why: str
    ticket: int  # what two processes act with
    seconds: float
    play: Callable[[int], PaperRings]


def round_phases(seed: int = 0) -> PaperRings:
    """D3. The link p2-p3 is cut at 2.0 s and nothing else happens. At 2.76 p2 cannot reach p3 and asks p1 and itself whether it may exclude
    p3; both agree. One temporary round later, at 3.76, it takes ticket 3. But p3 heard p1 for the last time at 2.92, just after its
    round had begun at 2.85: at 3.85 it counts that ALIVE, and goes on until 4.85."""
    rings = PaperRings(seed, PaperConfig(n=7), size=7, phases=(0.30, 0.90, 0.76, 0.85, 0.50, 0.10, 0.20), link=TRACE_LINK)
    rings.world.at(2.0, lambda: rings.world.network.partition("cut", (["p2"], ["p3"])))
    rings.world.run(ROUND_PHASES.seconds)
    return rings


def unacknowledged_update(seed: int = 0) -> PaperRings:
    """D4. j0 and j1 join between p1 and p2. At 4.10 p2 sends R' = {p2, j1, j0} to p3, which installs it; from 4.0 on nothing passes from p3
    to p2, so the status is lost. p2 still has R = {p2, p1, p0}, and p4 answers L = {p3, p2, p1}: p2 and p1 are asked, both
    acknowledge, and after seven temporary rounds p2 takes ticket 15. p3 hears j0 and j1, which were not asked, for ever."""
    rings = PaperRings(
        seed,
        PaperConfig(n=28),
        size=7,
        joiners=("j0", "j1"),
        phases=(0.30, 0.20, 0.10, 0.40, 0.50, 0.60, 0.70),
        link=TRACE_LINK,
    )
    for name in ("p1", "j0"):
        rings.processes[name].choose = max  # The nearest free ticket: room for another between it and p2.
    for name, at, via in (("j0", 3.45, "p1"), ("j1", 3.55, "j0")):
        rings.processes[name].phase = 0.2
        rings.join(name, at, via)
    rings.world.at(4.0, lambda: rings.world.network.cut("cut", ["p3"], ["p2"]))
    rings.world.run(UNACKNOWLEDGED.seconds)
    return rings


def buffered_alive(seed: int = 0) -> PaperRings:
    """D5. p3 is stopped from 2.0 to 10.0 s. p2 excludes it and takes ticket 3. When p3 goes on it finds the ALIVE messages that came while
    it was stopped, counts them in its present round, and acts with a ticket that is not its own any more."""
    rings = PaperRings(seed, PaperConfig(n=7), size=7, phases=(0.30, 0.90, 0.76, 0.85, 0.50, 0.10, 0.20), link=TRACE_LINK)
    rings.stop("p3", 2.0, 8.0)
    rings.world.run(BUFFERED.seconds)
    return rings


ROUND_PHASES = Trace("round phases", "D3", "rounds of p2 and p3 begin at different times", 3, 6.0, round_phases)
UNACKNOWLEDGED = Trace("unacknowledged UPDATE", "D4", "the set that counts is not the set that was asked", 15, 30.0, unacknowledged_update)
BUFFERED = Trace("stopped process", "D5", "ALIVE messages are counted when they are read", 3, 12.0, buffered_alive)
TRACES = (ROUND_PHASES, UNACKNOWLEDGED, BUFFERED)
BY_NAME = {trace.name: trace for trace in TRACES}


def random_cuts(seed: int, k: int, seconds: float, *, full: bool) -> PaperRings:
    """Links between neighbours go down and come back; processes and clocks are sound, and no message is lost on a link that is up.

    ``full``: every ticket is owned. Otherwise half of them are, and four processes join meanwhile.
    """
    size = 4 * k + 3
    joiners = () if full else tuple(f"j{i}" for i in range(JOINERS))
    rings = PaperRings(seed, PaperConfig(n=size if full else 2 * size, k=k, enough=k + 1), size=size, joiners=joiners)
    random = Random(f"{seed}/cuts")
    for name in joiners:
        rings.join(name, random.uniform(3.0, seconds / 2))
    at = random.expovariate(1 / CUT_GAP)
    while at < seconds:
        _cut(rings, at, random.randrange(size), random.uniform(*CUT_SECONDS))
        at += random.expovariate(1 / CUT_GAP)
    rings.world.run(seconds)
    return rings


def _cut(rings: PaperRings, at: float, place: int, seconds: float) -> None:
    """One process and the next one do not hear each other for a while."""
    network = rings.world.network
    ends = [rings.names[place - 1]], [rings.names[place]]
    rings.world.at(at, lambda: network.partition(at, ends))
    rings.world.at(at + seconds, lambda: network.heal(at))


def random_stop(seed: int, seconds: float) -> PaperRings:
    """D5 with random phases and delays: one process of seven is stopped for a while."""
    rings = PaperRings(seed, PaperConfig(n=28), size=7)
    random = Random(f"{seed}/stop")
    at = random.uniform(5.0, 6.0)
    rings.stop(random.choice(rings.names), at, seconds)
    rings.world.run(at + seconds + 5.0)
    return rings


def random_joins(seed: int, config: PaperConfig, *, size: int, joins: int, seconds: float, loss: float = 0.0) -> PaperRings:
    """D1, D6, D7: nothing happens but joins, and with ``loss`` that single messages do not arrive."""
    joiners = [f"j{i}" for i in range(joins)]
    rings = PaperRings(seed, config, size=size, joiners=joiners, link=Link(DELAY, loss=loss))
    random = Random(f"{seed}/joins")
    for name in joiners:
        rings.join(name, random.uniform(5.0, seconds / 2))
    rings.world.run(seconds)
    return rings
