"""What Figures 1 and 2 of paper 002 get wrong about asking and answering, each with the fault put back.

Spec: fast-detection D1-D7, D15, D19, D21. Every check takes the class under test: with the rule it holds, without it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from holdfast.features.leadership.detector.config import FfdConfig, Term
from holdfast.features.leadership.detector.ffd import FastDetector
from holdfast.features.leadership.detector.messages import DidYouMissToo, MonitorOk, Vote, VoteKind, WatchedOk
from holdfast.host import Message, NodeId
from tests.features.leadership import ffd_ablations as without
from tests.features.leadership.ffd_stand import DELAY, Stand, is_heartbeat

PAPER = FfdConfig(t_itv=1.0, t_lat=0.05, skew=0.0, p_fixed=0.1, common=0.0)
LENIENT = FfdConfig(t_itv=1.0, t_lat=0.05, skew=0.0, p_fixed=0.1, common=0.0, p_m=1e-3)

Kind = type[FastDetector]


def dead_at(stand: Stand, at: float) -> Stand:
    stand.start()
    stand.run_to(at)
    stand.kill()
    return stand


def losing(seq: int, targets: Collection[str]) -> Callable[[str, str, Message], tuple[float, ...]]:
    """One heartbeat does not reach these."""
    return lambda source, target, message: () if is_heartbeat(message, seq) and target in targets else (DELAY,)


def check_asker_counts_once(kind: Kind) -> None:
    """Four monitors are worth 1e-4, not 1e-5: the first ballot is not enough."""
    stand = dead_at(Stand("bcde", PAPER, kind=kind), 1009.5)
    stand.run_to(1010.9)
    ((_, _, report),) = stand.reports()
    assert report.p_false == pytest.approx(1e-4)
    assert not report.acted


def check_primary_among_monitors(kind: Kind) -> None:
    """The watched has the smallest name and lists itself, as Fig. 1 does; still somebody asks at once."""
    stand = Stand("bcdef", PAPER, kind=kind)
    stand.leader.leaving = lambda ok: WatchedOk(ok.seq, ok.stamp, ok.leads, ("a", *ok.among), ok.common)
    dead_at(stand, 1009.5).run_to(1010.5)
    assert [by for _, by, _ in stand.reports(acted=True)] == ["b"]
    assert [at for at, _, _ in stand.queries()] == [pytest.approx(1010.05)]  # by the primary, not by a backup


def check_voter_with_slower_clock(kind: Kind) -> None:
    """D4's trace: crash at 9.5, the primary's tau at 10.050, its query at q at 10.055, q's own tau at 10.060: no veto, no lost interval."""
    stand = Stand("bcdef", PAPER, kind=kind)
    stand.hosts["c"].wall_error = -0.010
    dead_at(stand, 1009.5).run_to(1010.9)
    assert stand.dismissals() == []
    ((at, _, report),) = stand.reports()
    assert report.acted
    assert "c" in report.misses
    assert at == pytest.approx(1010.060 + DELAY)


def check_deferred_question_meets_heartbeat(kind: Kind) -> None:
    """D4: the voter's freshness point is ahead and its heartbeat comes before it: it has it, and says so then."""
    stand = Stand("bc", PAPER, kind=kind).start()
    stand.hosts["c"].wall_error = -0.040
    stand.fate = lambda source, target, message: (
        () if is_heartbeat(message, 1010) and target == "b" else (0.07,) if is_heartbeat(message, 1010) else (DELAY,)
    )
    stand.run_to(1010.9)
    assert [(at, message.kind) for at, _, _, message in stand.sent if isinstance(message, Vote)] == [(1010.07, VoteKind.HAVE)]
    assert stand.dismissals()[0].by == "c"


def check_silence_about_the_far_future(kind: Kind) -> None:
    """D4: a freshness point further ahead than a ballot lasts is nobody's business yet."""
    stand = Stand("bc", PAPER, kind=kind).start()
    stand.run_to(1005.5)
    stand["c"].detector.on_query(NodeId("b", 1), DidYouMissToo("a", 1, "", 0, 0, 1006, 99))
    stand.kill()
    stand.kill("b")
    stand.run_to(1007.5)
    assert [vote for vote in stand.votes("c") if vote.nonce == 99] == []


def check_nothing_heard_nothing_missed(kind: Kind) -> None:
    """D5: a new term, and its candidate has not spoken: nobody misses it, nobody asks, whoever is asked says unheard."""
    stand = Stand("bcd", PAPER, kind=kind).start()
    stand.run_to(1005.5)
    for name in stand.monitors:
        stand[name].detector.watch("a", Term(0, 1), stand.monitors)
    stand.kill()
    stand.run_to(1010.5)
    assert stand.queries() == []
    assert stand["b"].missed == []
    stand["b"].detector.on_query(NodeId("c", 1), DidYouMissToo("a", 0, "", 0, 1, 1006, 1))
    assert [vote.kind for vote in stand.votes("b")] == [VoteKind.UNHEARD]


def check_heartbeat_during_ballot(kind: Kind) -> None:
    """D6: heartbeat 1010 is late everywhere and comes while the votes are under way: it is proof of life."""
    stand = Stand("bcdef", PAPER, kind=kind).start()
    stand.fate = lambda source, target, message: (0.057,) if is_heartbeat(message, 1010) else (DELAY,)
    stand.run_to(1010.9)
    assert stand.reports() == []
    assert [(each.seq, each.by) for each in stand.dismissals()] == [(1010, "a")]


def check_voter_answers_from_present_knowledge(kind: Kind) -> None:
    """D6: the voter's heartbeat came after its freshness point and before the question: it has it."""
    stand = Stand("bcdef", PAPER, kind=kind).start()
    stand.fate = lambda source, target, message: (DELAY,) if not is_heartbeat(message, 1010) else (0.052,) if target == "c" else ()
    stand.run_to(1010.9)
    assert stand.reports() == []
    assert stand.votes("c")[0].kind is VoteKind.HAVE


def check_doubled_votes(kind: Kind) -> None:
    """D7: every vote comes twice, and four monitors stay four."""
    stand = Stand("bcde", PAPER, kind=kind)
    stand.fate = lambda source, target, message: (DELAY, DELAY) if isinstance(message, Vote) else (DELAY,)
    dead_at(stand, 1009.5).run_to(1010.9)
    assert [report.acted for _, _, report in stand.reports()] == [False]


def check_votes_of_others(kind: Kind) -> None:
    """D7: whoever was not asked, another ballot's number, another heartbeat, no sensible loss: not counted."""
    stand = dead_at(Stand("bcde", PAPER, kind=kind), 1009.5)
    stand.fate = lambda source, target, message: () if isinstance(message, Vote) else (DELAY,)
    stand.run_to(1010.1)
    detector = stand["b"].detector
    assert detector.ballot is not None
    nonce = detector.ballot.query.nonce
    for source, number, seq, p in (("z", nonce, 1010, 0.1), ("c", nonce + 1, 1010, 0.1), ("c", nonce, 1009, 0.1), ("c", nonce, 1010, 0.0)):
        detector.on_vote(NodeId(source, 1), Vote("a", 0, 0, seq, number, VoteKind.MISSED, p))
    stand.run_to(1010.9)
    assert stand.reports()[0][2].misses == ("b",)


def check_closed_when_all_answered(kind: Kind) -> None:
    """D7, Prop. 4.2: the last vote closes the ballot; only so it takes t_rtt, not 2 t_rtt."""
    stand = dead_at(Stand("bcdef", PAPER, kind=kind), 1009.5)
    stand.run_to(1010.9)
    ((at, _, _),) = stand.reports()
    assert at == pytest.approx(1010.05 + 2 * DELAY)


def check_silent_are_asked_again(kind: Kind) -> None:
    """Section 5: the first question to every second monitor is lost, the repeat after t_rtt is not."""
    stand = Stand("bcdef", PAPER, kind=kind)
    first: set[str] = set()

    def fate(source: str, target: str, message: Message) -> tuple[float, ...]:
        if isinstance(message, DidYouMissToo) and target in "ce" and target not in first:
            first.add(target)
            return ()
        return (DELAY,)

    stand.fate = fate
    dead_at(stand, 1009.5).run_to(1010.9)
    at, _, report = stand.reports()[0]
    assert report.acted
    assert at == pytest.approx(1010.05 + PAPER.t_rtt + 2 * DELAY)


def check_backup_asks(kind: Kind) -> None:
    """D15: leader and primary die together: rank 1 asks one window later; with both, rank 2 two windows later."""
    for dead, by, windows in (("b", "c", 1), ("bc", "d", 2)):
        stand = dead_at(Stand("bcdef", LENIENT, kind=kind), 1009.5)
        for name in dead:
            stand.kill(name)
        stand.run_to(1010.99)
        assert [(each, report.acted) for _, each, report in stand.reports()] == [(by, True)]
        assert stand.queries()[0][0] == pytest.approx(1010.05 + windows * LENIENT.w)


def check_backups_stay_calm(kind: Kind) -> None:
    """D15: backups that saw the question do not ask it again."""
    stand = Stand("bcdef", PAPER, kind=kind)
    stand.kill("f")  # A silent voter keeps the first ballot open.
    dead_at(stand, 1009.5).run_to(1010.9)
    assert [by for _, by, _ in stand.queries()] == ["b"]


def check_stopped_monitor_does_not_ask(kind: Kind) -> None:
    """D19, F11: the primary was stopped and lost what came meanwhile; its late freshness point says nothing about the watched."""
    stand = Stand("bcdef", PAPER, kind=kind).start()
    stand.run_to(1005.5)
    stand.fate = lambda source, target, message: () if isinstance(message, WatchedOk) and target == "b" else (DELAY,)
    stand.pause("b")
    stand.run_to(1008.5)
    stand.resume("b")
    stand.fate = lambda source, target, message: (DELAY,)
    stand.run_to(1011.5)
    assert stand.queries() == []
    assert stand["b"].detector.last_seq == 1011


def check_ballot_of_before_the_pause(kind: Kind) -> None:
    """D19, F11: heartbeat 1010 was lost everywhere, the primary asks and is stopped: votes that waited are of another time."""
    stand = Stand("bcdef", PAPER, kind=kind).start()
    stand.fate = losing(1010, stand.monitors)
    stand.run_to(1010.052)
    stand.pause("b")
    stand.run_to(1012.5)
    stand.resume("b")
    stand.run_to(1014.0)
    assert stand.reports(acted=True) == []


def check_question_ahead_of_the_heartbeat(kind: Kind) -> None:
    """F11: after a stop the question is read before the heartbeat that waits behind it; whoever cannot know yet is silent."""
    stand = Stand("bc", PAPER, kind=kind).start()
    stand.fate = lambda source, target, message: (
        () if is_heartbeat(message, 1010) and target == "b" else (0.1,) if is_heartbeat(message, 1010) else (DELAY,)
    )
    stand.run_to(1010.01)
    stand.pause("c")
    stand.run_to(1010.12)
    stand.resume("c")
    stand.run_to(1010.9)
    assert VoteKind.MISSED not in [vote.kind for vote in stand.votes("c")]


def check_majority_beats_vetoes(kind: Kind) -> None:
    """D21: a slow ballot asks who misses it now; three of five do, so two witnesses do not save a leader that cannot renew."""
    stand = Stand("bcdef", PAPER, kind=kind, quorum=3).start()
    stand.run_to(1005.5)
    stand.fate = lambda source, target, message: () if is_heartbeat(message) and target in "bcd" else (DELAY,)
    stand.run_to(1008.5)
    stand["b"].detector.open_slow()
    stand.run(0.3)
    report = stand["b"].reports[-1][1]
    assert (report.slow, report.acted) == (True, True)
    assert (report.misses, report.have) == (("b", "c", "d"), ("e", "f"))


def check_yields_once(kind: Kind) -> None:
    """D21: somebody else asks again and again, and never gets it done: after one yield we ask ourselves."""
    stand = Stand("bcdef", PAPER, kind=kind, quorum=3)
    dead_at(stand, 1005.5).run_to(1005.9)
    detector = stand["c"].detector
    opened_at = stand.now
    for number in range(20):
        detector.on_query(NodeId("d", 1), DidYouMissToo("a", 1, "", 0, 0, 1006, number, slow=True))
        if number == 0:
            detector.open_slow()
            assert [each for _, by, each in stand.queries() if by == "c"] == []
        stand.run(0.09)
    own = [at for at, by, query in stand.queries() if by == "c" and query.slow]
    assert own
    assert own[0] - opened_at <= 2 * PAPER.w + 1e-9


CHECKS: list[tuple[Callable[[Kind], None], list[Kind]]] = [
    (check_asker_counts_once, [without.SelfVotes]),
    (check_primary_among_monitors, [without.WatchedHasRank]),
    (check_voter_with_slower_clock, [without.AnswersFromFlag, without.NeverDefers]),
    (check_deferred_question_meets_heartbeat, [without.NeverDefers]),
    (check_silence_about_the_far_future, [without.AnswersFromFlag]),
    (check_nothing_heard_nothing_missed, [without.MonitorsUnheard]),
    (check_heartbeat_during_ballot, [without.KeepsSuspicion]),
    (check_voter_answers_from_present_knowledge, [without.AnswersFromFlag]),
    (check_doubled_votes, [without.CountsVotes]),
    (check_votes_of_others, [without.CountsVotes]),
    (check_closed_when_all_answered, [without.WaitsForWindow]),
    (check_silent_are_asked_again, [without.AsksOnce]),
    (check_backup_asks, [without.NoBackups]),
    (check_backups_stay_calm, [without.BlindBackups]),
    (check_stopped_monitor_does_not_ask, [without.PausedJudges]),
    (check_ballot_of_before_the_pause, [without.PausedJudges]),
    (check_question_ahead_of_the_heartbeat, [without.PausedVotes]),
    (check_majority_beats_vetoes, [without.VetoedSlow]),
    (check_yields_once, [without.YieldsForEver]),
]


@pytest.mark.parametrize("check", [check for check, _ in CHECKS], ids=lambda check: check.__name__)
def test_rule(check: Callable[[Kind], None]) -> None:
    """D1, D2, D4-D7, D15, D19, D21: each check's docstring says what its rule is."""
    check(FastDetector)


@pytest.mark.parametrize("check, kind", [(check, kind) for check, kinds in CHECKS for kind in kinds], ids=lambda each: each.__name__)
def test_rule_is_needed(check: Callable[[Kind], None], kind: Kind) -> None:
    """D1, D2, D4-D7, D15, D19, D21: with the rule taken out, the same check fails."""
    with pytest.raises(AssertionError):
        check(kind)


def asked_while_unheard_by_the_watched(*, to_view_only: bool) -> int:
    """Questions in a calm group in which one monitor's MONITOR-OKs are lost."""
    stand = Stand("bcd", PAPER)
    if to_view_only:
        beat = stand.leader.beat
        stand.leader.beat = lambda to: beat(stand.leader.side.among)  # type: ignore[method-assign]
    stand.start()
    stand.fate = lambda source, target, message: () if isinstance(message, MonitorOk) and source == "c" else (DELAY,)
    stand.run_to(1020.5)
    return len(stand.queries())


def test_heartbeats_go_to_everybody() -> None:
    """D3: whoever is not in V is not asked and has a later rank, but still hears the watched; as printed it keeps asking."""
    assert asked_while_unheard_by_the_watched(to_view_only=False) == 0
    assert asked_while_unheard_by_the_watched(to_view_only=True) >= 5


def test_no_more_backups_than_configured() -> None:
    """D15: ranks beyond ``backups`` leave it to the slow path."""
    config = FfdConfig(t_itv=1.0, t_lat=0.05, skew=0.0, p_fixed=0.1, common=0.0, p_m=1e-3, backups=1)
    stand = dead_at(Stand("bcdef", config), 1009.5)
    stand.kill("b")
    stand.kill("c")
    stand.run_to(1013.0)
    assert stand.queries() == []


def test_slow_ballot_about_the_unheard() -> None:
    """D21, section 5: a candidate that nobody heard is given up by a majority that never heard it; no accuracy is claimed."""
    stand = Stand("bcdef", PAPER, quorum=3)
    stand.kill()
    stand.start()
    stand.run_to(1002.0)
    stand["d"].detector.open_slow()
    stand.run(0.3)
    ((_, by, report),) = stand.reports()
    assert (by, report.acted, report.seq, report.boot, report.misses) == ("d", True, -1, 0, ())
    assert report.unheard == ("b", "c", "d", "e", "f")


def test_slow_ballot_waits_for_the_fast_one() -> None:
    """D21: both fall due at one freshness point; the fast one's evidence is kept, the slow one follows."""
    stand = Stand("bcdef", PAPER, quorum=3)
    stand.kill("f")
    dead_at(stand, 1009.5).run_to(1010.06)
    stand["b"].detector.open_slow()
    stand.run_to(1010.99)
    assert [(report.slow, report.acted) for _, _, report in stand.reports()] == [(False, False), (True, True)]


def test_discarded_slow_ballot_comes_again() -> None:
    """F11, section 5: a slow ballot that was open while we were stopped is asked again after t_itv."""
    stand = Stand("bcdef", PAPER, quorum=3)
    stand.kill("f")
    dead_at(stand, 1005.5).run_to(1005.9)
    stand["c"].detector.open_slow()
    stand.pause("c")
    stand.run_to(1007.5)
    stand.resume("c")
    assert stand["c"].reports == []
    stand.run_to(1009.9)
    assert [report.acted for _, report in stand["c"].reports if report.slow][:1] == [True]
    slow_at = [at for at, by, query in stand.queries() if by == "c" and query.slow]
    assert slow_at[1] - 1007.5 <= PAPER.t_itv + 2 * PAPER.w
