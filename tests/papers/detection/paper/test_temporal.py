"""The temporal scheme is what paper 002 compares with: section 3, Proposition 4.1 and its example, with D11 settled.

Spec: fast-detection 5 (freshness points), D11, experiment E1 for the whole grid.
"""

from __future__ import annotations

from itertools import product
from math import floor, log

import pytest

from holdfast.events import Event
from holdfast.features.leadership.detector.detectors import Temporal, heartbeats_to_miss
from holdfast.host import Address, Host, NodeId
from holdfast.lab.host import LabHost
from holdfast.lab.links import Exponential, Fixed, Link
from holdfast.lab.network import PORT
from holdfast.lab.world import World
from holdfast.papers.detection.protocol.heartbeat import HeartbeatDetector, Silenced
from holdfast.papers.detection.protocol.messages import Heartbeat
from tests.support.fake_host import FakeHost

T_ITV = 10.0
T_LAT = 0.1
DELAY = 0.01
SUBJECT = NodeId("subject", 1)


def pair(m: int, *, link: Link, seed: int = 1) -> tuple[World, list[float]]:
    """A subject and its monitor; the list gets the instants of the monitor's accusations."""
    peers = {name: Address(name, PORT) for name in ("subject", "monitor")}
    slack = T_LAT - DELAY  # The expected arrival contains the mean delay already.

    def build(host: Host) -> list[HeartbeatDetector]:
        return [HeartbeatDetector(host, peers, interval=T_ITV, late_timeout=T_LAT, make=lambda: Temporal(m, interval=T_ITV, slack=slack))]

    world = World(seed, build, names=peers, link=link)
    accused_at: list[float] = []

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, Silenced) and event.peer.name == "subject":
            accused_at.append(world.now)

    world.listeners.append(on_event)
    return world, accused_at


def watching(host: FakeHost, m: int) -> HeartbeatDetector:
    """A monitor on a fake host, started."""
    detector = HeartbeatDetector(
        host, {"subject": Address("subject", 1)}, interval=T_ITV, late_timeout=T_LAT, make=lambda: Temporal(m, interval=T_ITV, slack=T_LAT)
    )
    detector.start()
    return detector


def next_heartbeat_at(world: World) -> float:
    """When the subject's clock reaches the next point of its grid."""
    host = world.nodes["subject"]
    return world.now + (floor(host.now / T_ITV) + 1) * T_ITV - host.now


def detection_time(m: int, into_interval: float, *, link: Link, seed: int = 1) -> float:
    """Seconds from the crash to the accusation; the crash comes ``into_interval`` after a heartbeat."""
    world, accused_at = pair(m, link=link, seed=seed)
    world.run(20 * T_ITV)
    world.run(next_heartbeat_at(world) + into_interval)
    crashed_at = world.now
    world.crash("subject")
    world.run(crashed_at + (m + 2) * T_ITV)
    assert len(accused_at) == 1
    return accused_at[0] - crashed_at


@pytest.mark.parametrize("m", [1, 2, 5, 10])
def test_worst_crash_takes_m_intervals(m: int) -> None:
    """Proposition 4.1: the leader fails just after a heartbeat; detection takes m t_itv + t_lat."""
    assert detection_time(m, 1e-6, link=Link(Fixed(DELAY))) == pytest.approx(m * T_ITV + T_LAT, abs=1e-3)


@pytest.mark.parametrize("into_interval", [0.1, 5.0, 9.9])
def test_other_crashes_take_less(into_interval: float) -> None:
    """Proposition 4.1, "just after sending" is the worst case: whatever part of the interval has passed is saved."""
    assert detection_time(3, into_interval, link=Link(Fixed(DELAY))) == pytest.approx(3 * T_ITV + T_LAT - into_interval, abs=1e-3)


@pytest.mark.parametrize("loss, accuracy", [(0.01, 1e-3), (0.05, 1e-3), (0.1, 1e-5), (0.2, 1e-5), (0.3, 1e-7)])
def test_never_below_the_bound(loss: float, accuracy: float) -> None:
    """Proposition 4.1: at least t_itv log P_m / log p_L, for delays that vary and for every crash right after a heartbeat."""
    m = heartbeats_to_miss(accuracy, loss)
    bound = T_ITV * log(accuracy) / log(loss)
    for seed in range(5):
        took = detection_time(m, 1e-6, link=Link(Exponential(DELAY)), seed=seed)
        assert bound <= took
        assert took == pytest.approx(m * T_ITV + T_LAT, rel=0.01)


def test_worked_example() -> None:
    """Section 4: P_m = .00001, t_int = 10 s, p_L = .1 takes at least 50 s; with t_lat = .1 it takes 50.1 s."""
    m = heartbeats_to_miss(1e-5, 0.1)
    assert m == 5
    assert detection_time(m, 1e-6, link=Link(Fixed(DELAY))) == pytest.approx(50.1, abs=1e-3)


def test_d11_m_counts_missed_heartbeats() -> None:
    """D11: section 3's delta = m t_int + t_lat after sigma_i gives m + 1 heartbeats (i..i+m) their chance; ours gives m."""
    for m in (1, 2, 5):
        detector = Temporal(m, interval=T_ITV, slack=T_LAT)
        detector.arrived(7, 7 * T_ITV)
        chances = [seq for seq in range(8, 30) if seq * T_ITV < detector.deadline()]
        assert len(chances) == m
        first = 8  # i: the first heartbeat that is missed
        as_printed = first * T_ITV + m * T_ITV + T_LAT
        assert len([seq for seq in range(8, 30) if seq * T_ITV < as_printed]) == m + 1
        assert as_printed - detector.deadline() == pytest.approx(T_ITV)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_suspects_exactly_after_m_losses_in_a_row(m: int) -> None:
    """Section 3, p_L^m: over every pattern of ten losses, one accusation per run of m or more, none for shorter runs."""
    for pattern in product([True, False], repeat=10):
        assert accusations(m, pattern) == runs_of_losses(m, pattern), pattern


def accusations(m: int, received: tuple[bool, ...]) -> int:
    """How often a monitor accuses a live subject of whose heartbeats it gets these; the first one, before them, it gets."""
    host = FakeHost("monitor")
    detector = watching(host, m)
    for seq, arrives in enumerate((True, *received), 101):
        host.pass_time(seq * T_ITV + DELAY - host.clock)
        if arrives:
            detector.on_message(SUBJECT, Heartbeat(seq, 0.0))
    host.pass_time(T_LAT + 0.001)
    return len(host.events(Silenced))


def runs_of_losses(m: int, received: tuple[bool, ...]) -> int:
    runs = "".join("." if arrives else "x" for arrives in received).split(".")
    return sum(len(run) >= m for run in runs)


def test_late_heartbeat_counts_as_lost() -> None:
    """Section 3: "if a message is delayed for too long, it will be effectively considered lost by the freshness point scheme"."""
    host = FakeHost("monitor")
    detector = watching(host, 1)
    for seq in range(101, 140):
        host.pass_time(seq * T_ITV - host.clock)
        detector.on_message(SUBJECT, Heartbeat(seq, 0.0))
    host.pass_time(T_ITV + T_LAT + 0.01)
    assert len(host.events(Silenced)) == 1
    host.pass_time(T_ITV + 1)  # Freshness point 141 has passed too: heartbeat 140 is stale when it comes.
    detector.on_message(SUBJECT, Heartbeat(140, 0.0))
    assert not detector.trusted
    host.pass_time(142 * T_ITV - host.clock)
    detector.on_message(SUBJECT, Heartbeat(142, 0.0))
    assert detector.trusted == (SUBJECT,)


def test_late_heartbeat_ends_a_mistake_while_it_is_fresh() -> None:
    """Section 3 after Chen et al.: between freshness points i and i + 1 the subject is trusted if any heartbeat j >= i has come."""
    host = FakeHost("monitor")
    detector = watching(host, 1)
    for seq in range(101, 140):
        host.pass_time(seq * T_ITV - host.clock)
        detector.on_message(SUBJECT, Heartbeat(seq, 0.0))
    host.pass_time(1.5 * T_ITV)
    assert detector.silenced == (SUBJECT,)
    detector.on_message(SUBJECT, Heartbeat(140, 0.0))
    assert detector.trusted == (SUBJECT,)
    host.pass_time(0.5 * T_ITV + 2 * T_LAT + 0.2)
    assert detector.silenced == (SUBJECT,)
