"""What the scenarios of gossip draw: profile and numbers, who comes, goes and changes its rows, what goes wrong.  Spec: gossip 7; issue 17.

All times are in periods of the profile that was drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from holdfast.lab.faults import Crash, Fault, LostJournal, Menu, Pause, Plan, draw_plan
from holdfast.lab.links import Link, Uniform

SIZES = ((1, 1), (2, 2), (3, 3), (3, 5), (3, 5), (4, 7), (4, 7), (6, 9), (6, 9), (8, 12), (8, 12), (10, 16), (12, 20))
LARGE = (24, 32, 48, 64)
LARGE_SHARE = 0.02
PROFILES = ("lan", "lan", "lan", "local", "local", "wan", "swim", "lifeguard", "paper")
TARGETS = ("shuffle", "shuffle", "bag", "spatial")
LOSS_MAX = 0.25
PAUSE_MIN, PAUSE_MAX = 0.3, 20.0  # T
CALM_SHARE = 0.12  # of the runs have no faults of links and processes: G5 is judged there
CLONES_SHARE = 0.12
DRIFT = 0.02
MEADOW = 1000.0  # metres: members are anywhere in a square of that size

Parameters = dict[str, float | str]


def draw_size(random: Random) -> int:
    return random.choice(LARGE) if random.random() < LARGE_SHARE else random.randint(*random.choice(SIZES))


def draw_parameters(random: Random, names: Sequence[str], period: float, seconds: float) -> Parameters:
    """The switches of the group, and what its users want."""
    calm = random.random() < CALM_SHARE
    seeds = min(len(names), random.choice((1, 2, 3, 3, 3)))
    parameters: Parameters = {
        "calm": float(calm),
        "target": random.choice(TARGETS),
        "seeds": float(seeds),
        "positions": float(random.random() < 0.4),
        "odd": float(random.random() < 0.1),  # some members have another T
        "rows": random.choice((0.0, 2.0, 10.0)),  # changes per member, on average
    }
    others = names[seeds:]
    if others and not calm and random.random() < CLONES_SHARE:
        parameters[f"clone:{random.choice(others)}"] = random.choice(names[:seeds])
    return parameters | draw_wishes(random, names, seeds, period, seconds)


def draw_wishes(random: Random, names: Sequence[str], seeds: int, period: float, seconds: float) -> Parameters:
    """``join:NAME``, ``leave:NAME``, ``return:NAME``: when its user wants that. The first seed stays."""
    wishes: Parameters = {}
    for name in names[seeds:]:
        if random.random() < 0.25:
            wishes[f"join:{name}"] = round(random.uniform(0.0, seconds * 0.7), 3)
    if len(names) > 1 and random.random() < 0.5:
        for name in random.sample(names[1:], random.randint(1, max(1, len(names) // 4))):
            left = round(random.uniform(5 * period, seconds * 0.8), 3)
            wishes[f"leave:{name}"] = left
            if name in names[:seeds] or random.random() < 0.5:
                wishes[f"return:{name}"] = round(left + random.uniform(0.1, 10.0) * period, 3)
    return wishes


def draw_faults(random: Random, names: Sequence[str], period: float, seconds: float) -> Plan:
    """Each kind of fault in about half of the runs, more or less of it."""

    def some(mean: float) -> float:
        return mean * random.choice((0.3, 0.6, 1.0, 1.5)) if random.random() < 0.55 else 0.0

    few = min(1.0, 12 / len(names))
    menu = Menu(
        crashes=some(0.5) * few,
        crash_forever=0.4,
        pauses=some(0.4) * few,
        pause_seconds=PAUSE_MAX * period,
        cuts=some(2.0),
        partitions=some(1.0),
        cut_seconds=20 * period,
        weather=some(1.5),
        loss=LOSS_MAX,
        duplicate=0.1,
        delay=Uniform(0.001 * period, 0.3 * period),
        tail_seconds=random.choice((1.0, 3.0, 10.0)) * period,
        drift=DRIFT if random.random() < 0.3 else 0.0,
    )
    faults: list[Fault] = list(draw_plan(random, names, seconds, menu).faults)
    for name in names:
        if random.random() < 0.5 * few * menu.pauses:
            span = round(random.uniform(PAUSE_MIN, PAUSE_MAX) * period, 3)
            faults.append(Pause(round(random.uniform(0.0, seconds), 3), name, span, random.choice(("host", "host", "shuffled"))))
        if random.random() < 0.5 * few * menu.crashes:
            faults.append(LostJournal(round(random.uniform(0.0, seconds), 3), name, round(random.uniform(0.0, 10.0) * period, 3)))
    if len(names) > 2 and random.random() < 0.3:
        faults += crash_together(random, names, period, seconds)
    return Plan(tuple(sorted(faults, key=lambda fault: fault.at)))


def crash_together(random: Random, names: Sequence[str], period: float, seconds: float) -> list[Fault]:
    """Several at once: all seeds among them now and then."""
    at = round(random.uniform(3 * period, seconds), 3)
    chosen = random.sample(names, random.randint(2, max(2, len(names) // 2))) if random.random() < 0.7 else list(names[:3])
    return [Crash(at, name, None if random.random() < 0.3 else round(random.uniform(0.0, 15.0) * period, 3)) for name in chosen]


def draw_link(random: Random, period: float) -> Link:
    """Good weather: at most a quarter of the probe timeout, in some runs with a little loss or duplicates."""
    longest = random.choice((0.01, 0.05, 0.099)) * period
    loss, duplicate = random.choice(((0.0, 0.0), (0.0, 0.0), (0.0, 0.05), (0.02, 0.0)))
    return Link(Uniform(0.001 * period, longest), loss=loss, duplicate=duplicate)
