"""Direct links that fail and come back, hundreds at a time.  Spec: limits 8 (F10 to F12); paper 003, 7.2.2; views 8 (F2).

A cut of the lab's network is asked about for each message. So many of them are one rule here, which looks a pair up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from random import Random

from holdfast.features.views.lab.cut_trace import TraceRules, faults, make_trace
from holdfast.host import Message
from holdfast.lab.faults import Cut
from holdfast.lab.world import World

BURST_RATE, BURST_MEAN = 2.0, 40.0  # links that are cut in a second, and for how many seconds
SPIKE, SPIKE_INTERVAL = 60, 30.0  # links that are cut at once, and how often
CUTS_LEAST = 60.0  # of the most reliable host in six days (views F2)
DAYS = 6 * 86_400.0


class FailingLinks:
    """Which directed links fail now."""

    def __init__(self, world: World, names: Sequence[str]) -> None:
        self._world, self._names = world, names
        self._down: Counter[tuple[str, str]] = Counter()  # by how many cuts
        world.network.lose_if(self._takes, self)

    def __len__(self) -> int:
        """Directed links that are cut now."""
        return len(self._down)

    def plan(self, cuts: Iterable[Cut]) -> None:
        """Each of one directed link, in seconds from now."""
        now = self._world.now
        for cut in cuts:
            for source in cut.source:
                for target in cut.target:
                    self._world.at(now + cut.at, partial(self.fail, source, target))
                    self._world.at(now + cut.at + cut.seconds, partial(self.heal, source, target))

    def fail(self, source: str, target: str) -> None:
        self._down[source, target] += 1

    def heal(self, source: str, target: str) -> None:
        left = self._down[source, target] - 1
        if left:
            self._down[source, target] = left
        else:
            del self._down[source, target]

    def _takes(self, source: str, target: str, message: Message) -> bool:
        return (source, target) in self._down


def window_of_trace(seed: int, names: Sequence[str], seconds: float) -> tuple[Cut, ...]:
    """A part of the trace of views F2, drawn from the seed."""
    trace = make_trace(seed, TraceRules(hosts=len(names), seconds=DAYS, cuts_least=CUTS_LEAST))
    since = Random(f"{seed}/window").uniform(0.0, DAYS - seconds)
    return faults(trace, names, since, since + seconds)


def bursts(seed: int, names: Sequence[str], seconds: float) -> tuple[Cut, ...]:
    """Cuts of both directions at a steady rate, and many at once now and then. Rates are of 182 hosts, and smaller for fewer."""
    random = Random(f"{seed}/bursts")
    share = min(1.0, len(names) / 182)
    instants = []
    at = random.expovariate(BURST_RATE * share)
    while at < seconds:
        instants.append(at)
        at += random.expovariate(BURST_RATE * share)
    spikes = int(seconds // SPIKE_INTERVAL)
    instants += [SPIKE_INTERVAL * (number + 1) for number in range(spikes) for _ in range(round(SPIKE * share))]
    found = []
    for each in sorted(instants):
        one, other = random.sample(names, 2)
        lasts = min(random.expovariate(1 / BURST_MEAN), seconds - each)
        if lasts > 0:
            found += [Cut(each, lasts, (one,), (other,)), Cut(each, lasts, (other,), (one,))]
    return tuple(found)
