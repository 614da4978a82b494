"""The temporal detector under mixed faults: the living are not silenced without a reason, the dead within the bound.

Spec: fast-detection 5 (freshness points), D11; paper 002, section 3 and Proposition 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from holdfast.features.leadership.detector.detectors import Temporal
from holdfast.host import Address, Host, Machine
from holdfast.lab.calm import Calm
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Menu, Pause, Weather, draw_plan
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World
from holdfast.papers.detection.lab.checkers.heartbeat import (
    DetectedInTime,
    Informed,
    LivesGrow,
    NoFalseSilence,
    PausedSilenceNobody,
    misinformed,
)
from holdfast.papers.detection.protocol.heartbeat import GRACE_INTERVALS, HeartbeatDetector

SECONDS = 15.0  # of faults
# Clocks that run apart by 1e-3 put the estimate 50 heartbeats x 1e-3 = 5 % of an interval behind (section 5); the slack is 25 %.
MENU = Menu(drift=5e-4, delay=Uniform(0.001, 0.2), tail_seconds=3.0)
SLACK_INTERVALS = 0.25  # t_lat; above the longest delay in good weather for every interval drawn here
DRIFT_INTERVALS = 0.1  # what drift adds to a deadline at most, in intervals
DELAY_MAX = 0.02
STRAY_SECONDS = 3.2  # the longest a message of bad weather is on the road
UNSEEN_SECONDS = 0.1  # a stop that makes the next timer late by less than this is not noticed (F10)

Parameters = Mapping[str, float | str]


class HeartbeatScenario(Scenario):
    """Two to six processes that watch each other, everything goes wrong for a while."""

    name = "detection/heartbeat"
    title = "Temporal failure detector, everybody watches everybody, under mixed faults"

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.randint(2, 6)))
        interval = random.choice((0.2, 0.5, 1.0))
        m = random.choice((1, 2, 3))
        plan = draw_plan(random, names, SECONDS, MENU)
        settle = STRAY_SECONDS + _informed_timeout(m, interval) + 3 * interval  # the last three: it is watched whether that stays so
        return Setup(names, SECONDS, settle, plan, Link(Uniform(0.001, DELAY_MAX)), {"interval": interval, "m": float(m)})

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        return [self.make(host, {name: Address(name, PORT) for name in setup.names}, setup.parameters)]

    def make(self, host: Host, peers: Mapping[str, Address], parameters: Parameters) -> HeartbeatDetector:
        interval, m = float(parameters["interval"]), int(parameters["m"])
        slack = SLACK_INTERVALS * interval
        return HeartbeatDetector(
            host, peers, interval=interval, late_timeout=slack, make=lambda: Temporal(m, interval=interval, slack=slack)
        )

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        interval, m = float(setup.parameters["interval"]), int(setup.parameters["m"])
        calm = Calm()
        bounds = _bounds(setup)
        return [
            calm,
            # The next heartbeat is one interval and a delay away; clocks may add a little.
            NoFalseSilence(calm, (1 + DRIFT_INTERVALS) * interval + DELAY_MAX),
            DetectedInTime(calm, lambda me: bounds[me.name], (GRACE_INTERVALS + DRIFT_INTERVALS) * interval),
            LivesGrow(),
            PausedSilenceNobody(interval),
            Informed(calm, STRAY_SECONDS + _informed_timeout(m, interval)),
        ]

    def unsettled(self, world: World, setup: Setup) -> str:
        """``Informed`` says when they must know; here it is watched for a while whether they go on knowing."""
        for host in world.alive:
            if why := misinformed(world, host):
                return why
        return "" if world.now >= setup.seconds + setup.settle else "all is well, and watched"


def _informed_timeout(m: int, interval: float) -> float:
    """Without strays: the dead are silenced after m intervals and the slack, twice if a stray heartbeat revived them, after the grace
    of those who were stopped; the living are heard after a Hello, a heartbeat and their delays, which is less."""
    return (GRACE_INTERVALS + m + SLACK_INTERVALS + 2 * DRIFT_INTERVALS) * interval + DELAY_MAX + UNSEEN_SECONDS + interval


def _bounds(setup: Setup) -> dict[str, float]:
    """How long each monitor may trust a dead life: ``m t_itv + t_lat`` plus what its faults add to the mean delay it measured.

    Messages of bad weather arrive up to ``STRAY_SECONDS`` late, and on a mean of late ones the deadline is late. A stop adds up to an
    interval and ``UNSEEN_SECONDS``, because no timer notices a shorter one; one after which datagrams and timers are served in any
    order adds its whole length.
    """
    interval, m = float(setup.parameters["interval"]), int(setup.parameters["m"])
    base = (m + SLACK_INTERVALS + DRIFT_INTERVALS) * interval
    late = STRAY_SECONDS if any(isinstance(fault, Weather) for fault in setup.plan.faults) else DELAY_MAX
    bounds = dict.fromkeys(setup.names, base + late)
    for fault in setup.plan.faults:
        if isinstance(fault, Pause):
            bounds[fault.node] += fault.seconds if fault.order == "shuffled" else interval + UNSEEN_SECONDS
    return bounds


SCENARIO = HeartbeatScenario()
