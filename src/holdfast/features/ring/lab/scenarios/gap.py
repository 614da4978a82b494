"""Holes in a ring with one or two neighbours per side: members so new that only those know them who fail.  Spec: ring D9, D19, D29.

Waves, one every few lease periods. In each, one process starts anew, and around its place on the ring something happens: its only
neighbour crashes, or several at once; the two on both sides of it lose sight of each other; the word about it does not get through.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from holdfast.features.ring.lab.draws import LEASE, around_the_ring, draw_link, draw_parameters
from holdfast.features.ring.lab.scenarios.ring import SETTLE, SPARED_SECONDS, RingScenario
from holdfast.lab.faults import Crash, Cut, Fault, Plan
from holdfast.lab.scenario import Setup

SECONDS = 60.0
SIZES = (6, 12)
FIRST_WAVE, WAVE_EVERY = 8.0, 8.0
AWAY = 6.0  # seconds before it starts anew a process is killed: by then the ring has closed over its place
LONG = 8.0  # seconds: longer than from a crash to the declaration


class GapScenario(RingScenario):
    """Six to twelve processes, k of 1 or 2."""

    name = "ring/gap"
    title = "Ring membership with few neighbours: fresh members whose neighbours fail, orphans"

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.randint(*SIZES)))
        parameters = draw_parameters(random, names, SECONDS)
        parameters |= {"k": float(random.choice((1, 1, 1, 2))), "seeds": 3.0}
        waves = [wave for i in range(5) for wave in draw_wave(random, names, FIRST_WAVE + i * WAVE_EVERY)]
        plan = Plan(tuple(sorted(waves, key=lambda fault: fault.at))).sparing(names[:3], SPARED_SECONDS)
        return Setup(names, SECONDS, SETTLE, plan, draw_link(random), parameters)


def draw_wave(random: Random, names: Sequence[str], at: float) -> list[Fault]:
    """One process starts anew at about this time, and something happens around it."""
    at = round(at + random.uniform(0.0, 3.0), 3)
    around, first = around_the_ring(names), random.randrange(len(names))
    if random.random() < 0.5:
        around.reverse()
    before, beside, new, behind = (around[(first + i) % len(around)] for i in range(4))
    faults: list[Fault] = [Crash(round(at - AWAY, 3), new, AWAY)]
    kind = random.choice(("crash", "crash", "several", "dispute", "dispute", "hidden"))
    soon = round(at + random.uniform(0.0, 1.5), 3)
    if kind == "crash":
        faults.append(_crash(random, soon, beside))
    elif kind == "several":
        faults += [_crash(random, soon, around[(first + i) % len(around)]) for i in range(random.randint(2, 4))]
    elif kind == "dispute":
        # One is out of sight of all others, or of one neighbour. It loses and goes on until its time is over; the new one comes beside it.
        others = (beside,) if random.random() < 0.3 else tuple(name for name in names if name not in (behind, new))
        cut_at, seconds = round(at - random.uniform(1.0, 3.0), 3), round(random.uniform(3.0, 6.0), 3)
        faults += [Cut(cut_at, seconds, others, (behind,)), Cut(cut_at, seconds, (behind,), others)]
    else:
        # The one before the neighbour does not hear of the new one, and cannot ask those who know it when its neighbour is gone.
        others = tuple(name for name in names if name not in (before, beside, around[first - 1]))
        faults += [Cut(at, LEASE, others, (before,)), Cut(at, LONG, (new, behind), (before,)), Cut(at, LONG, (before,), (new, behind))]
        faults.append(_crash(random, soon, beside))
    return faults


def _crash(random: Random, at: float, name: str) -> Fault:
    return Crash(at, name, None if random.random() < 0.1 else round(random.uniform(2.0, 12.0), 3))


SCENARIO = GapScenario()
