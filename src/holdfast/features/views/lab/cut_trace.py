"""A made-up trace of link cuts between many hosts, in place of the paper's PlanetLab trace, which is not available.  Spec: views 8 (F2).

Every host has cuts as a Poisson process, each of one link to a random other host. Rates are heavy-tailed (Pareto), durations log-normal. A
part of the cuts is one-way, as the paper has seen them now and then. The trace is plain data: ``faults`` makes a plan of a part of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import log
from random import Random
from typing import NamedTuple

from msgspec import Struct

from holdfast.lab.faults import Cut

SHAPE = 1.2  # of the rates, Pareto; their mean is 6 times the least one
RATE_MAX = 200.0  # times the least rate: one host in 600 would have more, and one alone would outweigh all others
MEDIAN, SPREAD = 180.0, 1.3  # seconds and powers of e, log-normal: 80 % of the cuts last a minute, 7 % twenty
ONE_WAY = 0.1  # share of the cuts
PINGS_PER_MINUTE = 4  # every 15 seconds


class LinkCut(NamedTuple):
    """Nothing passes from ``source`` to ``target``, nor back unless it is one-way."""

    at: float
    seconds: float
    source: int
    target: int
    one_way: bool


class TraceRules(Struct, frozen=True, kw_only=True):
    """How a trace is made."""

    hosts: int
    seconds: float
    cuts_least: float  # of the most reliable host, in the whole trace


def make_trace(seed: int, rules: TraceRules) -> list[LinkCut]:
    """All cuts, in order of time."""
    random = Random(f"{seed}/cuts")
    cuts = []
    for source in range(rules.hosts):
        rate = min(random.paretovariate(SHAPE), RATE_MAX) * rules.cuts_least / rules.seconds
        at = random.expovariate(rate)
        while at < rules.seconds:
            target = (source + random.randrange(1, rules.hosts)) % rules.hosts
            seconds = min(random.lognormvariate(log(MEDIAN), SPREAD), rules.seconds - at)
            cuts.append(LinkCut(at, seconds, source, target, random.random() < ONE_WAY))
            at += random.expovariate(rate)
    return sorted(cuts)


def faults(cuts: Iterable[LinkCut], names: Sequence[str], since: float, until: float) -> tuple[Cut, ...]:
    """The cuts between the hosts that have names, in a window of the trace, for a plan that begins with the window."""
    found = []
    for cut in cuts:
        begin, end = max(cut.at, since), min(cut.at + cut.seconds, until)
        if begin < end and max(cut.source, cut.target) < len(names):
            one, other = names[cut.source], names[cut.target]
            found.append(Cut(begin - since, end - begin, (one,), (other,)))
            if not cut.one_way:
                found.append(Cut(begin - since, end - begin, (other,), (one,)))
    return tuple(found)


def silences(cuts: Iterable[LinkCut]) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """When ``target`` cannot hear ``source``, for each such pair; cuts that overlap are one silence."""
    found: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for cut in sorted(cuts):
        pairs = [(cut.source, cut.target)] if cut.one_way else [(cut.source, cut.target), (cut.target, cut.source)]
        for pair in pairs:
            spans = found[pair]
            end = cut.at + cut.seconds
            if spans and cut.at <= spans[-1][1]:
                spans[-1] = spans[-1][0], max(spans[-1][1], end)
            else:
                spans.append((cut.at, end))
    return found


def pings_missed(begin: float, end: float, phase: float) -> int:
    """Pings that were sent in the silence; they leave at ``phase`` and every 15 s from then on."""
    period = 60.0 / PINGS_PER_MINUTE
    return max(0, _pings_before(end, phase, period) - _pings_before(begin, phase, period))


def _pings_before(moment: float, phase: float, period: float) -> int:
    return 0 if moment <= phase else int((moment - phase) // period) + 1


def cut_links(cuts: Iterable[LinkCut], hosts: int, minutes: Sequence[int], seed: int) -> dict[int, list[int]]:
    """For each duration, for each host: to how many other hosts was a link silent for so long, seen from either end?

    A host notices a silence of m minutes when it misses all pings of m minutes in a row.
    """
    random = Random(f"{seed}/phases")
    phases = [random.uniform(0, 60.0 / PINGS_PER_MINUTE) for _ in range(hosts)]
    peers: dict[int, list[set[int]]] = {each: [set() for _ in range(hosts)] for each in minutes}
    for (source, target), spans in silences(cuts).items():
        missed = max(pings_missed(begin, end, phases[source]) for begin, end in spans)
        for each in minutes:
            if missed >= PINGS_PER_MINUTE * each:
                peers[each][target].add(source)
    return {each: [len(found) for found in peers[each]] for each in minutes}


def most_at_once(cuts: Iterable[LinkCut], hosts: int) -> list[int]:
    """For each host: how many links of it were cut at the same time, at most? A host with all of its links cut is partitioned."""
    changes: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
    for (source, target), spans in silences(cuts).items():
        for begin, end in spans:
            for host, other in ((source, target), (target, source)):
                changes[host] += [(begin, 1, other), (end, -1, other)]
    found = []
    for host in range(hosts):
        down: dict[int, int] = defaultdict(int)
        most = 0
        for _, step, other in sorted(changes[host]):
            down[other] += step
            if not down[other]:
                del down[other]
            most = max(most, len(down))
        found.append(most)
    return found
