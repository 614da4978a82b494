"""The theorems about failures, in virtual time: paper 000, VI-A and VI-C, Theorems 1 to 5, Corollaries 1 to 3, Equation 2.

Spec: ring 7, D2, D15. T_l = 1 s, T_a = 0.5 s; clocks run at true rate and links take 1 ms, so bounds are the paper's; where the spec's
``wait`` adds drift and margin, it is named. Lower bounds are the corrected ones of D2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from holdfast.events import Event
from holdfast.features.ring.lab.rings import Rings
from holdfast.features.ring.lab.watch import DELAY, Stage
from holdfast.features.ring.protocol import facts
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.pair import State
from holdfast.features.ring.protocol.rules import Rules
from holdfast.lab.host import LabHost
from holdfast.lab.links import Fixed, Link
from tests.features.ring.stand import T_A, T_ARB, T_L

SEEDS = range(12)


class Crash:
    """One crash in a ring of 12 with k = 3, and when each of its six monitors suspected, won and declared, in seconds after it."""

    def __init__(self, seed: int, at: float = 3.0, config: RingConfig | None = None) -> None:
        self.stage = stage = Stage(config or RingConfig(k=3, indirect=False), Rules(), seed, size=12)
        self.at = at + seed / 12  # Every phase of a session has its turn.
        self.seen: dict[type[Event], list[float]] = {facts.Suspicion: [], facts.Won: [], facts.Removed: []}
        self.monitors = {stage[name].id for name in stage.names if stage.pair(name, "n05") is not None}
        stage.world.listeners.append(self._note)
        stage.world.at(self.at, lambda: stage.world.crash("n05"))
        stage.run(self.at + 8.0)

    def _note(self, host: LabHost, event: Event) -> None:
        if type(event) in self.seen and self.stage[host.me.name].id in self.monitors:
            self.seen[type(event)].append(self.stage.now - self.at)


# Theorem 2.


def test_theorem_2_failure_detection_time() -> None:
    """Theorem 2, G4, I5: every live monitor suspects within [T_l - delay, 2 T_l) of the crash. Both ends of the range are approached."""
    times = [each for seed in SEEDS for each in Crash(seed).seen[facts.Suspicion]]
    assert len(times) == 6 * len(SEEDS)
    # An ACK that left before the crash may arrive after it: 2 one-way delays of a session's start (D2).
    assert T_L - 2 * DELAY <= min(times) < 1.2 * T_L
    assert 1.8 * T_L < max(times) < 2 * T_L


def test_the_lower_bound_of_theorem_2_needs_instant_messages() -> None:
    """D2: a crash while LR is in flight is found T_l - delay later, here 0.91 T_l: less than the theorem allows."""
    stage = Stage(RingConfig(k=1, retry=1.0), Rules(), 1, size=4)
    stage.world.network.set_link(Link(Fixed(0.1)))
    stage.run(4.0)
    pair = stage.pair("n01", "n02")
    assert pair is not None
    begins = stage.true_time("n01", pair.s) + T_L
    found: list[float] = []
    stage.when(facts.Suspicion, "n01", lambda event: found.append(stage.now))
    stage.run(begins + 0.09 - stage.now)
    stage.world.crash("n02")
    stage.run(3.0)
    assert found[0] - (begins + 0.09) == pytest.approx(T_L - 0.09, abs=1e-3)


# Theorem 3, Corollary 1.


def disputes(lose: Callable[[Stage, str, str], None], seed: int) -> tuple[dict[str, float], Stage]:
    """The pair of n01 and n02 is disturbed from 3 s on; when each of the two suspects the other."""
    stage = Stage(RingConfig(k=1, indirect=False), Rules(), seed, size=6).without_return()
    suspected: dict[str, float] = {}

    def note(host: LabHost, event: Event) -> None:
        if isinstance(event, facts.Suspicion) and host.me.name in ("n01", "n02"):
            suspected.setdefault(host.me.name, stage.now)

    stage.world.listeners.append(note)
    stage.world.at(3.0 + seed / 12, lambda: lose(stage, "n01", "n02"))
    stage.run(12.0)
    return suspected, stage


def lose_acks(stage: Stage, one: str, other: str) -> None:
    """One hears no answers: only its own lease is in danger, until it stops answering itself."""
    stage.lose(m.LeaseAck, source=other, target=one)
    stage.lose(m.Arb, m.Leave, source=other)  # The other asks in vain, and says nothing when it leaves.


def lose_all(stage: Stage, one: str, other: str) -> None:
    stage.cut(one, other)


def test_theorem_3_symmetric_lease_timeout() -> None:
    """Theorem 3, Corollary 1: P's lease times out first; Q's follows within 2 T_l, because P has stopped acking (Rule 1)."""
    gaps = []
    for seed in SEEDS:
        suspected, _ = disputes(lose_acks, seed)
        gaps.append(suspected["n02"] - suspected["n01"])
    # Q's session before the last established one began at most T_l before P stopped; the next one fails T_l after its start.
    assert all(T_L - 2 * DELAY <= gap < 2 * T_L for gap in gaps)
    assert max(gaps) > 1.7 * T_L


def test_the_lower_bound_of_theorem_3_is_false_for_a_cut_link() -> None:
    """D2: if the link itself is cut, both leases are pending already and may expire together: gaps below T_l, in [0, 2 T_l)."""
    gaps = []
    for seed in SEEDS:
        suspected, _ = disputes(lose_all, seed)
        if len(suspected) == 2:
            gaps.append(abs(suspected["n01"] - suspected["n02"]))
    assert gaps
    assert min(gaps) < T_L
    assert max(gaps) < 2 * T_L


@pytest.mark.parametrize("lose", [lose_acks, lose_all], ids=["answers lost", "link cut"])
def test_one_of_two_stays(lose: Callable[[Stage, str, str], None]) -> None:
    """G1, I1: whatever the order, never do both win, and exactly one of the two is still there."""
    for seed in SEEDS:
        _, stage = disputes(lose, seed)
        assert stage.watch.breaches == {}
        left = [name for name, _ in stage.watch.departed]
        assert len(left) == 1
        assert left[0] in ("n01", "n02")


# Theorem 4, Corollaries 2 and 3.


def test_theorem_4_lifespan_of_a_suspected_node() -> None:
    """Theorem 4, G6, I7: the loser is out less than 2 T_l + T_a after it was first suspected, even if nobody answers its own requests."""
    lives = []
    for seed in SEEDS:
        stage = Stage(RingConfig(k=1, indirect=False), Rules(), seed, size=6).without_return()
        times: dict[str, float] = {}
        stage.when(facts.Suspicion, "n01", lambda event, stage=stage, times=times: times.update(suspected=stage.now))  # type: ignore[misc]
        stage.when(facts.Departed, "n02", lambda event, stage=stage, times=times: times.update(out=stage.now))  # type: ignore[misc]
        stage.world.at(3.0 + seed / 12, lambda stage=stage: lose_acks(stage, "n01", "n02"))  # type: ignore[misc]
        stage.run(12.0)
        lives.append(times["out"] - times["suspected"])
    assert max(lives) < T_ARB
    assert max(lives) > T_ARB - 0.4  # The bound is approached.


def test_corollary_2_nobody_asks_later_than_t_arb() -> None:
    """Corollary 2: the last request about a pair comes less than T_arb after the first one was decided, so older entries are not needed."""
    for seed in SEEDS:
        asked: list[float] = []
        stage = Stage(RingConfig(k=1, indirect=False), Rules(), seed, size=6).without_return()

        def note(source: str, target: str, message: object, stage: Stage = stage, asked: list[float] = asked) -> bool:
            if isinstance(message, m.Arb) and {message.source, message.accused} == {stage["n01"].id, stage["n02"].id}:
                asked.append(stage.now)
            return False

        stage.world.network.lose_if(note)
        stage.world.at(3.0 + seed / 12, lambda stage=stage: lose_acks(stage, "n01", "n02"))  # type: ignore[misc]
        stage.run(12.0)
        assert asked
        assert max(asked) - min(asked) < T_ARB


def test_corollary_3_and_theorem_5_time_based_consistency() -> None:
    """Corollary 3, Theorem 5, G5, I6: every monitor waits 2 T_l + T_a after its suspicion (times drift, plus margin) and so declares
    less than 4 T_l + T_a after the crash (the same additions)."""
    for seed in SEEDS:
        crash = Crash(seed)
        wait = crash.stage["n00"].config.wait
        assert len(crash.seen[facts.Won]) == 6
        declared = crash.seen[facts.Removed]
        assert len(declared) == 6
        first = min(crash.seen[facts.Suspicion])
        assert min(declared) == pytest.approx(first + wait, abs=1e-6)
        assert max(declared) < 4 * T_L + T_A + (wait - T_ARB)
        assert crash.stage.watch.breaches == {}


def test_theorem_5_everybody_knows() -> None:
    """Theorem 5, G8: after that time no list of a monitor holds the dead, and by rumour nobody else's does either."""
    crash = Crash(1)
    dead = crash.stage["n05"].id
    assert all(dead not in ring.list for ring in crash.stage.rings.alive)
    assert len(crash.stage.rings.alive) == 11


def drifting(seed: int, config: RingConfig, rate: float) -> Stage:
    """The clocks of n01, which will win, and n02, which will lose as late as it may, run 2 % wrong, in opposite directions."""
    stage = Stage(config, Rules(), seed, size=6, drift={"n01": rate, "n02": 2.0 - rate}).without_return()
    stage.world.at(3.0 + seed / 12, lambda: lose_acks(stage, "n01", "n02"))
    stage.run(14.0)
    assert stage.seen(facts.Removed, "n01")
    return stage


@pytest.mark.parametrize("rate", [0.98, 1.02], ids=["slow", "fast"])
def test_declarations_allow_for_drift(rate: float) -> None:
    """Ring 4 (wait), F8: with clocks 2 % wrong on either side, the winner's waiting still outlasts the loser's deadline (I2, I7)."""
    for seed in SEEDS:
        assert drifting(seed, RingConfig(k=1, rho=0.02, margin=0.0, indirect=False), rate).watch.breaches == {}


def test_what_the_allowance_is_for() -> None:
    """F8: a winner whose clock is fast, without the allowance for drift, declares members that are valid."""
    assert any("I2" in drifting(seed, RingConfig(k=1, rho=0.0, margin=0.0, indirect=False), 1.02).watch.breaches for seed in SEEDS)


# Theorem 1.


def upgrade_lag(seed: int, config: RingConfig, *, lose_explicit: bool) -> list[float]:
    """Crash a member, which changes many groups; from each proposal, how long until the responder holds the group."""
    stage = Stage(config, Rules(), seed, size=12)
    open_: dict[tuple[str, str, int], float] = {}
    lags: list[float] = []

    def note(host: LabHost, event: Event) -> None:
        if isinstance(event, facts.GroupProposed):
            other = next(name for name in stage.names if stage[name].id == event.peer)
            open_[host.me.name, other, event.ver] = stage.now

    def look() -> None:
        for (opener, responder, ver), since in list(open_.items()):
            pair = stage.pair(responder, opener)
            if pair is None or stage.world.nodes[responder].dead:
                del open_[opener, responder, ver]
            elif pair.ver >= ver:
                lags.append(stage.now - since)
                del open_[opener, responder, ver]
        stage.world.at(stage.now + 0.005, look)

    stage.world.listeners.append(note)
    if lose_explicit:
        stage.lose(m.ArbUpgrd)
    stage.world.at(0.0, look)
    stage.world.at(2.0 + seed / 12, lambda: stage.world.crash("n05"))
    stage.run(10.0)
    assert open_ == {}
    return lags


@pytest.mark.parametrize("retry", [1.0, 0.125], ids=["one try per session", "default"])
def test_theorem_1_inconsistency_interval(retry: float) -> None:
    """Theorem 1, D15, I14: even if every explicit ArbUpgrd is lost, the responder reflects the group within 2 T_l, by lease messages."""
    lags = [lag for seed in range(6) for lag in upgrade_lag(seed, RingConfig(k=3, retry=retry), lose_explicit=True)]
    assert len(lags) > 60
    assert max(lags) < 2 * T_L


def test_the_explicit_word_takes_one_delay() -> None:
    """IV-B, D17: otherwise it takes one way, and groups heal a round trip after the decision."""
    lags = upgrade_lag(1, RingConfig(k=3), lose_explicit=False)
    assert max(lags) <= DELAY + 0.005 + 1e-9


# Equation 2, and how many groups a node is in.


@pytest.mark.parametrize("members,k", [(16, 1), (16, 3), (48, 3), (24, 5)])
def test_equation_2_messages(members: int, k: int) -> None:
    """Equation 2: 2 x 2k / T_l lease messages per second and node, whatever the size of the ring; counted over 20 T_l in calm."""
    rings = Rings(1, RingConfig(k=k))
    names = [f"n{i}" for i in range(members)]
    rings.form(names)
    rings.world.run(2.0)
    before = counted(rings, names)
    rings.world.run(22.0)
    after = counted(rings, names)
    leases = sum(after[kind] - before[kind] for kind in (m.LeaseRequest, m.LeaseAck))
    assert leases / members / 20 == pytest.approx(2 * 2 * k / T_L, rel=0.01)
    rest = sum(after.values()) - sum(before.values()) - leases
    assert rest <= 0.1 * leases


def counted(rings: Rings, names: list[str]) -> Counter[type]:
    total: Counter[type] = Counter()
    for name in names:
        total.update(rings.world.network.endpoint(name).sent)
    return total


@pytest.mark.parametrize("k", [1, 3])
def test_a_node_is_in_few_groups(k: int) -> None:
    """IV-B (Recently-Failed list): each node takes part in at most 2k x 4k = 8 k^2 arbitrator sets."""
    rings = Rings(1, RingConfig(k=k))
    rings.form([f"n{i}" for i in range(30)])
    sets = Counter[object]()
    for ring in rings.alive:
        for pair in ring.pairs.values():
            assert pair.state is State.ACTIVE
            if pair.opener:
                sets.update(pair.cfg)
    assert max(sets.values()) <= 8 * k * k


def test_a_stage_counts_as_the_paper_does() -> None:
    """Table I: T_arb = 2 T_l + T_a, and T_a is half of T_l unless it is given."""
    config = RingConfig(k=3)
    assert (config.lease, config.t_a, config.t_arb) == (T_L, T_A, T_ARB)
    assert replace(config, arbitration=0.2).t_arb == pytest.approx(2.2)
