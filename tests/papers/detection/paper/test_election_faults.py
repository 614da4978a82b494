"""Whole groups under one fault each: what the election does, and what it does with the rule taken out.

Spec: fast-detection 7 (I1, I2, I7, I10), D2, D4, D12, D14, D15, D18-D23, D25, E15, E18, E19; paper 002, Figures 3 and 4, Proposition 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.events import Event, LeaderChanged
from holdfast.features.leadership.detector.config import ElectionConfig, Mode, Term
from holdfast.features.leadership.detector.facts import Dismissed, Suspect
from holdfast.features.leadership.detector.messages import DidYouMissToo, StartRound
from holdfast.host import NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.links import Exponential, Uniform
from holdfast.lab.violation import Violation
from holdfast.lab.world import World
from holdfast.papers.detection.lab.checkers.election import FenceOrder, LeaseExclusive, ReportSound, TermUnique, disagreement, election_of
from holdfast.papers.detection.lab.election_spoken import SpokenElection
from holdfast.papers.detection.protocol.election import LeaderElection
from holdfast.papers.detection.protocol.election_facts import Leading, TermEntered
from tests.features.leadership.ffd_ablations import AnswersFromFlag, NoBackups, YieldsForEver
from tests.papers.detection.election_ablations import (
    AnyoneDemotes,
    CandidateStaysOut,
    HastyVoter,
    NaiveElse,
    NoElse,
    NoPrimary,
    UncheckedPromises,
    with_detector,
    with_monitor,
    with_promises,
    with_voter,
)
from tests.papers.detection.election_stand import ADDRESSES, NAMES, PAPER, QUORUM, A, B, Stand, group, install, leaders, record, restart

SEVEN = tuple("abcdefg")
BOTH = pytest.mark.parametrize("config", [PAPER, QUORUM], ids=["paper", "quorum"])


def safe() -> Sequence[Checker]:
    return [TermUnique(), LeaseExclusive(), FenceOrder(), ReportSound()]


def agreed(world: World, names: Sequence[str]) -> Term:
    """The term in which all living members name one leader that leads."""
    assert disagreement(world, names) == ""
    return next(election_of(world.nodes[name]).term for name in names if not world.nodes[name].dead)


# Fast detection under the election.


@BOTH
def test_i7_death_is_reported_within_the_bound(config: ElectionConfig) -> None:
    """I7, Prop. 4.2: no loss, rank 0 alive: a death at any moment of the interval is reported within t_itv + delta + w."""
    for tenth in range(10):
        world = group(config, names=SEVEN)
        reports = record(world, Suspect)
        world.run(12.0 + tenth / 10)
        world.crash("a")
        world.run(world.now + config.t_itv + config.delta + config.w)
        assert [event.acted for _, _, event in reports if isinstance(event, Suspect)] == [True]


@pytest.mark.parametrize("machine, found", [(LeaderElection, 10), (NoPrimary, 0)], ids=["real", "as printed"])
def test_d2_somebody_is_primary_in_round_0(machine: type[LeaderElection], found: int) -> None:
    """D2: round 0 elects the smallest id; with the watched in K no monitor is the smallest, and no crash is found by fast detection."""
    config = ElectionConfig(mode="paper", t_itv=1.0, t_lat=0.05, p_fixed=0.1, common=0.0, backups=0)
    fast = 0
    for seed in range(10):
        world = group(config, names=SEVEN, machine=machine, seed=seed)
        reports = record(world, Suspect)
        world.run(10.0 + seed / 10)
        world.crash("a")
        world.run(world.now + config.t_itv + config.delta + config.w)
        fast += any(isinstance(event, Suspect) and event.acted for _, _, event in reports)
    assert fast == found


@pytest.mark.parametrize("machine, vetoed", [(LeaderElection, False), (with_detector(AnswersFromFlag), True)], ids=["real", "as printed"])
def test_d4_queries_name_a_heartbeat(machine: type[LeaderElection], vetoed: bool) -> None:
    """D4: a voter whose freshness point is still ahead, asked without an index, vetoes a correct suspicion with the flag of i - 1."""
    vetoes = 0
    for seed in range(10):
        world = group(PAPER, names=SEVEN, machine=machine, seed=seed, delay=Exponential(0.01))
        dismissed = record(world, Dismissed)
        world.run(20.0 + seed / 10)
        world.crash("a")
        crashed_at = world.now
        world.run(crashed_at + 3.0)
        vetoes += sum(at > crashed_at + 0.2 for at, _, _ in dismissed)
    assert (vetoes > 0) == vetoed


@pytest.mark.parametrize("machine, fast", [(LeaderElection, True), (with_detector(NoBackups), False)], ids=["real", "NoBackups"])
def test_d15_dead_primary_has_backups(machine: type[LeaderElection], fast: bool) -> None:
    """D15: leader and primary die together: rank 1 asks after w, and the next but one leads; without backups the slow path takes over."""
    world = group(QUORUM, names=SEVEN, machine=machine, checkers=safe())
    world.run(10.5)
    for name in "ab":
        world.crash(name)
    entered = record(world, TermEntered)
    world.run(10.5 + QUORUM.t_itv + QUORUM.delta + 2 * QUORUM.w)
    assert any(isinstance(event, TermEntered) and event.why == "reported" for _, _, event in entered) == fast
    world.run(25.0)
    assert agreed(world, SEVEN).round == 2


# Figure 4 as printed.


@BOTH
@pytest.mark.parametrize("machine", [LeaderElection, CandidateStaysOut], ids=["real", "as printed"])
def test_d12a_candidate_enters_its_own_round(config: ElectionConfig, machine: type[LeaderElection]) -> None:
    """D12 (a): with the body of StartRound inside the if, the candidate of the next round never stands, and nobody leads any more."""
    world = group(config, machine=machine)
    world.run(10.0)
    world.crash("a")
    world.run(60.0)
    assert leaders(world) == (["b"] if machine is LeaderElection else [])


@pytest.mark.parametrize("machine", [LeaderElection, with_monitor(NoElse)], ids=["real", "as printed"])
def test_d12c_dead_candidate_is_replaced(machine: type[LeaderElection]) -> None:
    """D12 (c): line 26 without an else: a candidate that is dead is never replaced, and fast detection is off: deadlock."""
    world = group(PAPER, machine=machine)
    world.run(10.0)
    world.crash("a")
    world.crash("b")
    world.run(60.0)
    assert leaders(world) == (["c"] if machine is LeaderElection else [])


@pytest.mark.parametrize("machine, patient", [(LeaderElection, True), (with_monitor(NaiveElse), False)], ids=["real", "naive"])
def test_d12d_round_is_not_timed_out_before_its_candidate_could_speak(machine: type[LeaderElection], patient: bool) -> None:
    """D12 (d): a round entered just before a freshness point of the grid lasts long enough for its candidate."""
    stand = Stand("e", PAPER, machine=machine)
    stand.host.pass_time(1.04)
    stand.election.on_message(A, StartRound("", 1, 5))
    entered = stand.round
    stand.host.pass_time(1.0 + PAPER.lat)
    assert (stand.round == entered) == patient


def test_d25_stray_word_of_a_dead_candidate_elects_nobody() -> None:
    """D25: with two OKs, as in Figure 3, a candidate that dies after its first is never named; with one, as in Figure 4, it is."""
    for elect_after, expected in ((2, set()), (1, {NodeId("b", 1)})):
        world = group(ElectionConfig(mode="paper", t_itv=1.0, t_lat=0.05, elect_after=elect_after))
        named: set[NodeId | None] = set()

        def on_event(host: LabHost, event: Event, world: World = world, named: set[NodeId | None] = named) -> None:
            if isinstance(event, TermEntered) and event.term.round == 1 and host.me.name == "b":
                world.at(world.now + 0.008, lambda: world.crash("b"))  # Its first OK is on the road.
            if isinstance(event, LeaderChanged) and event.leader is not None and host.me.name != "b":
                named.add(event.leader)

        world.run(5.0)
        world.listeners.append(on_event)
        world.crash("a")
        world.run(40.0)
        assert world.nodes["b"].dead
        assert named - {NodeId("c", 1)} == expected
        assert leaders(world) == ["c"]


# One bad receiver.


@pytest.mark.parametrize("mode, expected", [("paper", ["b", "c", "d", "e"]), ("quorum", [])])
def test_d14_deaf_process(mode: Mode, expected: list[str]) -> None:
    """D14, E15, G7, I10: in paper mode one process that hears nobody times out every leader in turn until it leads itself; in quorum
    mode nobody is demoted."""
    config = ElectionConfig(mode=mode, t_itv=1.0, t_lat=0.05)
    world = group(config, checkers=safe() if mode == "quorum" else ())
    world.run(5.0)
    led = record(world, Leading)
    world.network.cut("deaf", "abcd", "e")
    world.run(150.0)
    assert [me.name for _, me, _ in led] == expected
    assert leaders(world) == (["e"] if mode == "paper" else ["a"])


@pytest.mark.parametrize("deaf", NAMES[1:])
def test_i10_any_single_deaf_member(deaf: str) -> None:
    """I10: after convergence, without loss, whichever member is deaf: no new Leading."""
    world = group(QUORUM, checkers=safe())
    world.run(5.0)
    led = record(world, Leading)
    world.network.cut("deaf", [name for name in NAMES if name != deaf], deaf)
    world.run(60.0)
    assert led == []


def test_d14_majority_rule_is_what_keeps_the_leader() -> None:
    """D14, I5: with reports acted upon by one alone the checker of reports fails."""
    world = group(QUORUM, machine=with_monitor(AnyoneDemotes), checkers=safe())
    world.run(5.0)
    world.network.cut("deaf", "abcd", "e")
    with pytest.raises(Violation, match="I5 report-sound"):
        world.run(60.0)


def test_d14_deaf_leader_is_replaced() -> None:
    """D14: a leader that hears nobody gets no grants, steps down by its clock, and the others elect somebody who hears."""
    world = group(QUORUM, checkers=safe())
    world.run(5.0)
    world.network.cut("deaf", "bcde", "a")
    world.run(30.0)
    assert leaders(world) == ["b"]


def test_deaf_candidate_does_not_block_the_group() -> None:
    """Tick, give_up: the next candidate is deaf: everybody hears it, nobody's grant reaches it, and it passes the round on."""
    world = group(QUORUM, checkers=safe())
    world.run(5.0)
    world.network.cut("deaf", "acde", "b")
    world.crash("a")
    world.run(40.0)
    assert leaders(world) == ["c"]


# Slow ballots.


@pytest.mark.parametrize("machine, asks", [(LeaderElection, True), (with_detector(YieldsForEver), False)], ids=["real", "YieldsForEver"])
def test_d21_yields_once(machine: type[LeaderElection], asks: bool) -> None:
    """D21: whoever hears somebody else ask yields once; yielding without end deadlocked two survivors."""
    stand = Stand("e", QUORUM, machine=machine)
    for nonce in range(200):
        stand.election.on_message(B, DidYouMissToo("a", 0, "", 1, 0, -1, nonce, slow=True))
        stand.host.pass_time(0.05)
    assert bool(stand.host.take(DidYouMissToo)) == asks


def test_d21_majority_beats_vetoes() -> None:
    """D21: a leader that only a minority hears cannot renew anyway; those who hear it do not keep the others from electing."""
    world = group(QUORUM, checkers=safe())
    world.run(5.0)
    world.network.cut("a is heard by b alone", "a", "cde")
    world.run(40.0)
    assert leaders(world) != ["a"]
    assert len(leaders(world)) == 1


# Partitions.


def test_d20_quorum_partition() -> None:
    """D20, E18: leader + 1 cut off: the majority elects after the promises end, the old leader has stepped down by then: no overlap."""
    world = group(QUORUM, names=SEVEN, checkers=safe())
    world.run(10.0)
    world.network.partition("cut", ["ab", "cdefg"])
    world.run(10.0 + QUORUM.lease)
    assert leaders(world) == []
    world.run(20.0)
    (leader,) = leaders(world)
    assert leader in "cdefg"
    rounds = {election_of(world.nodes[name]).term.round for name in "ab"}
    world.run(30.0)
    assert {election_of(world.nodes[name]).term.round for name in "ab"} == rounds  # A minority's rounds do not run away.
    world.network.heal()
    world.run(45.0)
    agreed(world, SEVEN)


def test_d20_paper_partition() -> None:
    """D20, E18: in paper mode each side has a leader of its own, with a token of its own; healed, the highest round wins."""
    world = group(PAPER, names=SEVEN, checkers=[TermUnique()])
    world.run(10.0)
    world.network.partition("cut", ["ab", "cdefg"])
    world.run(30.0)
    both = leaders(world)
    assert len(both) == 2
    highest = max(election_of(world.nodes[name]).term for name in both)
    world.network.heal()
    world.run(45.0)
    assert agreed(world, SEVEN) >= highest


# Restarts, pauses, sizes.


@pytest.mark.parametrize("machine", [SpokenElection, with_voter(HastyVoter)], ids=["real", "HastyVoter"])
def test_d18_voters_that_restarted_remember_the_lease(machine: type[LeaderElection]) -> None:
    """D18: the leader is cut off, all others restart at once: without the wait they elect somebody while its lease runs."""
    config = ElectionConfig(t_itv=1.0, t_lat=0.05, length=6.0)
    world = group(config, machine=machine, checkers=safe())
    world.run(10.0)
    world.network.partition("cut", ["a", "bcde"])
    for name in "bcde":
        world.crash(name)
    for name in "bcde":
        restart(world, name, NAMES)
    if machine is SpokenElection:
        world.run(40.0)
        assert len(leaders(world)) == 1
    else:
        with pytest.raises(Violation, match="I2 lease-exclusive"):
            world.run(40.0)


@pytest.mark.parametrize("machine", [SpokenElection, with_promises(UncheckedPromises)], ids=["real", "UncheckedPromises"])
def test_g3_list_that_changes_under_one_view_id(machine: type[LeaderElection]) -> None:
    """Grant rule, G3: a, then b lead (1, 0) with one token, because a list changed under its number; the term check keeps b out of it."""
    voters = ("x", "y", "z")
    world = group(QUORUM, names=("a", *voters), machine=machine, voters=voters, checkers=safe())
    world.run(5.0)
    assert leaders(world) == ["a"]
    for name in ("a", *voters):
        world.crash(name)
    world.start("b")
    install(world, "b", ("b", *voters))
    for name in voters:
        restart(world, name, ("b", *voters))
    if machine is SpokenElection:
        world.run(30.0)
        assert agreed(world, ("b", *voters)) > Term(1, 0)
    else:
        with pytest.raises(Violation, match="I1 term-unique"):
            world.run(30.0)


@pytest.mark.parametrize("rho, holds", [(0.05, True), (1e-4, False)], ids=["right", "wrong"])
def test_e19_wrong_drift_bound(rho: float, holds: bool) -> None:
    """G5, E19: clocks 5 % off: with rho = .05 the leases never overlap; with a bound that is wrong they do."""
    config = ElectionConfig(t_itv=1.0, t_lat=0.05, length=4.0, rho=rho)
    drift = {"a": 0.95, **dict.fromkeys("bcde", 1.05)}
    world = group(config, checkers=safe(), drift=drift, delay=Uniform(0.001, 0.01))
    world.run(4.3)
    assert leaders(world) == ["a"]
    world.network.partition("cut", ["a", "bcde"])
    if holds:
        world.run(world.now + 30.0)
        assert len(leaders(world)) == 1
    else:
        with pytest.raises(Violation, match="I2 lease-exclusive"):
            world.run(world.now + 30.0)


@pytest.mark.parametrize("order", ["host", "shuffled"])
def test_d19_stopped_leader(order: str) -> None:
    """D19: a leader that was stopped for longer than its lease does not lead when it comes back, in whatever order it reads; nor judges."""
    world = group(QUORUM, checkers=safe())
    world.run(10.2)
    world.stop("a")
    world.run(20.0)
    (leader,) = leaders(world)
    assert leader == "b"
    world.resume("a", order)
    world.run(30.0)
    assert leaders(world) == ["b"]
    assert agreed(world, NAMES).round == 1


def test_d19_stopped_monitor_judges_nobody() -> None:
    """D19, F11: a monitor, the primary one, that was stopped for long demotes nobody when it comes back."""
    for config in (PAPER, QUORUM):
        world = group(config)
        world.run(10.2)
        entered = record(world, TermEntered)
        world.stop("b")
        world.run(18.7)
        world.resume("b", "shuffled")
        world.run(30.0)
        assert entered == []


@pytest.mark.parametrize("mode, leads", [("paper", ["b"]), ("quorum", [])])
def test_d22_two_members(mode: Mode, leads: list[str]) -> None:
    """D22: of two members a majority is both: quorum mode has no failover, paper mode has."""
    world = group(ElectionConfig(mode=mode, t_itv=1.0, t_lat=0.05), names="ab")
    world.run(5.0)
    assert leaders(world) == ["a"]
    world.crash("a")
    world.run(60.0)
    assert leaders(world) == leads


def test_d22_many_members_need_fixed_voters() -> None:
    """D22: 40 members, 5 of them vote: the others hear heartbeats and name the leader; a death costs no more than in a small group."""
    names = tuple(f"n{i:02}" for i in range(40))
    world = group(QUORUM, names=names, voters=names[:5], checkers=safe())
    world.run(10.3)
    world.crash("n00")
    world.run(10.3 + QUORUM.t_itv + QUORUM.delta + QUORUM.w + QUORUM.lease + 0.2)
    assert leaders(world) == ["n01"]
    world.run(20.0)
    agreed(world, names)


def test_d23_dead_candidate_costs_little() -> None:
    """D23: a candidate that is dead costs Delta_c and one ballot, not Delta: it hides behind the running lease."""
    world = group(QUORUM, names=SEVEN, checkers=safe())
    world.run(10.5)
    died_at = world.now
    for name in "ac":
        world.crash(name)
    world.run(died_at + 1.5 * QUORUM.t_itv + QUORUM.delta + QUORUM.w)
    assert leaders(world) == ["b"]
    world.run(20.5)
    led = record(world, Leading)
    died_at = world.now
    world.crash("b")
    world.run(40.0)
    # c is dead, four of seven are left, and all of them must vote: found by heartbeats missed in a row, then Delta_c and a ballot for c.
    assert [me.name for _, me, _ in led] == ["d"]
    bound = 3 * QUORUM.t_itv + QUORUM.delta + QUORUM.w + 2 * (QUORUM.delta_c + QUORUM.w) + QUORUM.lease
    assert led[0][0] - died_at <= bound


def test_resignation_takes_a_round_trip() -> None:
    """resign(), section 9: RESIGN, START, WATCHED-OK, MONITOR-OK and the disk's syncs: far below L."""
    world = group(QUORUM, names=SEVEN, checkers=safe())
    world.run(10.5)
    world.step(world.nodes["a"], election_of(world.nodes["a"]).resign)
    world.run(10.5 + 0.1)
    assert leaders(world) == ["b"]


def test_heartbeats_go_to_all_members() -> None:
    """D3: a monitor that is not in K, because its answers were lost for long, hears every heartbeat all the same."""
    world = group(QUORUM, checkers=safe())
    world.run(3.0)
    world.network.cut("mute", "e", "abcd")
    world.run(30.0)
    assert "e" not in election_of(world.nodes["b"]).ffd.K
    assert election_of(world.nodes["e"]).leader() == NodeId("a", 1)
    assert ADDRESSES.keys() == set(NAMES)
