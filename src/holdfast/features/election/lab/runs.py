"""One election of the paper's simulation: a trace of lists, a field of radios, one initiator, one variant.  Spec: election 8.

Figures 3 to 11 share their runs. All four variants run over the same trace from the same instant with the same initiator.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Any

from msgspec.structs import replace

from holdfast.features.election.lab.fields import HOP, Drops
from holdfast.features.election.lab.groups import LATEST, NAME, ElectionGroup, Flooded, names_of
from holdfast.features.election.lab.healths import ordered, system_wide, top
from holdfast.features.election.lab.paper import REACH, Setting, X, Y
from holdfast.features.election.lab.ranking import by_rank
from holdfast.features.election.lab.traces import HEALTH_STEP, Replay, Trace, record
from holdfast.features.election.protocol import profiles
from holdfast.features.election.protocol.manner import VARIANTS, Variant
from holdfast.features.election.protocol.profiles import Profile
from holdfast.lab.topology import Topology

F = 2  # our choice: the paper does not say
TRACES = 4  # per point
TRACE_SECONDS = 120.0
TRACES_KEPT = 2
AFTER = 1.0  # seconds after the end in which late answers still count as traffic

Run = dict[str, Any]


@lru_cache(maxsize=TRACES_KEPT)
def trace_of(setting: Setting, number: int, seconds: float = TRACE_SECONDS) -> Trace:
    """The same for all variants and runs. The best-ranked have the highest drops, so a trace is made for the name that is elected on it."""
    names = names_of(setting.members)
    return record(number, setting.kind, setting.members, setting.drop, by_rank(NAME, names), seconds)


def elect(setting: Setting, variant: Variant, trace: Trace, seed: int, *, f: int = F, c: int | None = None, flood: bool = True) -> Run:
    """One election. Without ``flood`` the run ends when the last nomination is made."""
    random = Random(f"{setting}/{seed}")
    begin = random.uniform(0.0, trace.seconds)
    initiator = random.choice(trace.names)
    drops = Drops(setting.drop, trace.by_rank)
    topology = Topology(trace.points, REACH)
    found = profiles.paper(variant, c=setting.c if c is None else c, f=f)
    profile = Profile(replace(found.config, x=X, y=Y), found.rules)
    group = ElectionGroup(
        seed,
        trace.names,
        profile,
        lambda world, board: Replay(world, board, trace, begin),
        link=HOP,
        topology=topology,
        loss=drops.pair,
        flooded=Flooded(topology, drops.pair),
    )
    group.hop_bytes.by_type.clear()
    begun = group.elect(initiator)
    whole = group.until((lambda: group.settled(initiator)) if flood else (lambda: group.nominee(initiator) is not None), LATEST)
    ended = group.world.now
    values = trace.health[int((begin + ended) / HEALTH_STEP) % len(trace.health)]
    sums = system_wide([_ranked(trace, each) for each in values])
    leader = group.agreed() if flood else group.nominee(initiator)
    run: Run = {"variant": variant, "whole": whole and leader is not None}
    if leader is None:
        return run
    rank = trace.by_rank.index(leader)
    worst = top(sums, Y)
    run |= {"hash": rank, "health": ordered(sums, setting.members).index(rank), "among worst": rank in worst, "someone ill": bool(worst)}
    if flood:
        seconds = group.known_at() - begun
        group.run(AFTER)
        leaders = [cast.leader for cast in group.casts]
        changes = sum(before != after for before, after in zip(["", *leaders], leaders, strict=False))
        run |= {"seconds": round(seconds, 4), "bytes": group.hop_bytes.total, "casts": len(group.casts), "changes": changes}
    return run


@lru_cache(maxsize=256)
def point(setting: Setting, trace_number: int, first: int, runs: int, f: int = F) -> tuple[Run, ...]:
    """So many elections of each variant over one trace, the first with this seed. Kept, because figures share them."""
    trace = trace_of(setting, trace_number)
    return tuple(elect(setting, variant, trace, seed, f=f) for seed in range(first, first + runs) for variant in VARIANTS)


def _ranked(trace: Trace, values: dict[int, float]) -> dict[int, float]:
    """By hash rank instead of by place."""
    rank = {name: number for number, name in enumerate(trace.by_rank)}
    return {rank[trace.names[member]]: value for member, value in values.items()}
