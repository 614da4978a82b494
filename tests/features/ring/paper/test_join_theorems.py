"""The theorems about joins, in virtual time: paper 000, VI-B, Theorems 6 to 8, Figure 10; spec ring 5.6, 7 (I8, I10, I11, I12), D27."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

import pytest

from holdfast.events import Event
from holdfast.features.ring.lab.watch import DELAY, Stage
from holdfast.features.ring.protocol import facts
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.pair import State
from holdfast.features.ring.protocol.rules import Rules
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World
from tests.features.ring.stand import T_L

SEEDS = range(4)


class OneLock(Checker):
    """I11: a member serves at most one DORMANT joiner."""

    name = "I11"

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.most = 0

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None:
            return
        ring = self.stage[host.me.name]
        serving = [
            pair for pair in ring.pairs.values() if pair.state is State.DORMANT and not pair.opener and pair.peer.id not in ring.list
        ]
        self.most = max(self.most, len(serving))


def joining(config: RingConfig, seed: int, *, size: int, places: dict[str, float]) -> tuple[Stage, OneLock]:
    stage = Stage(config, Rules(), seed, size=size, late=places)
    locks = OneLock(stage)
    stage.world.checkers.append(locks)
    stage.run(2.0 + seed / 4)
    return stage, locks


def is_whole(stage: Stage) -> bool:
    """All living members list each other and nobody else, and have a pair with each neighbour and with nobody else."""
    alive = stage.rings.alive
    ids = sorted(ring.id for ring in alive)
    return all(ring.list.ids == ids and set(ring.pairs) == set(ring.nbrs) and ring.door.lock is None for ring in alive)


# Theorem 6.


@pytest.mark.parametrize("victim", ["n20", "n02", "n04"], ids=["candidate", "owner", "neighbour"])
@pytest.mark.parametrize("phase", ["lock", "open", "ready", "member"])
def test_theorem_6_a_join_under_failures(victim: str, phase: str) -> None:
    """Theorem 6, I8, I10: the candidate or one of its neighbours crashes at the beginning of each phase, or right after the last: lists
    stay consistent, nobody else leaves, and in the end everybody who lives is a member that all others know."""
    for seed in (0, 1):
        stage, _ = joining(RingConfig(k=2), seed, size=8, places={"n20": 2.4})
        at_phase(stage, phase, lambda stage=stage: stage.world.crash(victim))  # type: ignore[misc]
        stage.start("n20")
        stage.run(25.0)
        assert stage.world.nodes[victim].dead
        assert stage.watch.breaches == {}
        assert stage.watch.departed == []
        assert is_whole(stage)
        assert len(stage.rings.alive) == 8


def at_phase(stage: Stage, phase: str, then: Callable[[], None]) -> None:
    """As soon as the candidate has come so far for the first time."""
    done: list[Event] = []

    def listen(host: LabHost, event: Event) -> None:
        reached = isinstance(event, facts.PhaseReached) and event.phase == phase
        entered = isinstance(event, facts.BecameMember) and phase == "member"
        if host.me.name == "n20" and (reached or entered) and not done:
            done.append(event)
            stage.world.soon(then)

    stage.world.listeners.append(listen)


# Theorem 7.


@pytest.mark.parametrize("size", [1, 3, 16])
def test_theorem_7_simultaneous_joins(size: int) -> None:
    """Theorem 7, D27, I8, I10, I11: six nodes join at once, three of them right beside each other: all get in, one at a time where they
    share neighbours, and lists stay consistent all the way."""
    places = {"n20": 0.3, "n21": 0.4, "n22": 0.5, "n23": size / 2 + 0.1, "n24": size / 2 + 0.2, "n25": size - 0.1}
    for seed in (0, 1):
        stage, locks = joining(RingConfig(k=2), seed, size=size, places=places)
        for name in places:
            stage.start(name)
        stage.run(40.0)
        assert stage.watch.breaches == {}
        assert locks.most <= 1
        assert stage.watch.departed == []
        assert len(stage.rings.alive) == size + 6
        assert is_whole(stage)


# Theorem 8.


def times(stage: Stage, name: str) -> dict[str, float]:
    """When a joiner reached what."""
    found: dict[str, float] = {}

    def listen(host: LabHost, event: Event) -> None:
        if host.me.name == name and isinstance(event, facts.JoinStarted | facts.PhaseReached | facts.BecameMember):
            found.setdefault(getattr(event, "phase", type(event).__name__), stage.now)

    stage.world.listeners.append(listen)
    return found


@pytest.mark.parametrize("k", [1, 3])
def test_theorem_8_time_bounded_join(k: int) -> None:
    """Theorem 8, I12: without failures and losses a join ends 3 T_l after phase 1; paced, it takes 4 T_l in all (Figure 10)."""
    for seed in SEEDS:
        stage, _ = joining(RingConfig(k=k, join_pace=True), seed, size=10, places={"n20": 4.3})
        found = times(stage, "n20")
        stage.start("n20")
        stage.run(6.0)
        assert found["BecameMember"] - found["lock"] == pytest.approx(3 * T_L, abs=0.01)
        assert found["BecameMember"] - found["JoinStarted"] == pytest.approx(4 * T_L, abs=0.01)


def test_an_unpaced_join_takes_a_few_delays() -> None:
    """Ring E4 (fast mode): an uncontended join takes less than 20 one-way delays; far less than the 3 T_l of Theorem 8."""
    for seed in SEEDS:
        stage, _ = joining(RingConfig(k=3), seed, size=10, places={"n20": 4.3})
        found = times(stage, "n20")
        stage.start("n20")
        stage.run(2.0)
        assert found["BecameMember"] - found["JoinStarted"] < 20 * DELAY


def test_contention_is_resolved_by_backoff() -> None:
    """D27: five joiners into a ring of eight, all sharing neighbours: rejected and tried again, in less than 2 T_l on average."""
    taken = []
    for seed in SEEDS:
        places = {f"n2{i}": 1.0 + i * 1.5 for i in range(5)}
        stage, _ = joining(RingConfig(k=3), seed, size=8, places=places)
        found = {name: times(stage, name) for name in places}
        for name in places:
            stage.start(name)
        stage.run(30.0)
        taken += [each["BecameMember"] - each["JoinStarted"] for each in found.values()]
    assert mean(taken) < 2 * T_L
