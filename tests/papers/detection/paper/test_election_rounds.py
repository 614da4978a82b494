"""The election does what Figure 4 of paper 002 says, with the faults of D12 removed: one test per sentence.

Spec: fast-detection 5 (install_view, enter, WATCHED-OK, omega, nag, START), D12, D13, D16, D19, D25. Lines are those of the printed figure.
"""

from __future__ import annotations

import pytest

from holdfast.errors import ConfigError, NotAMember
from holdfast.events import LeaderChanged
from holdfast.features.leadership.detector.config import ElectionConfig, Term
from holdfast.features.leadership.detector.facts import Suspect
from holdfast.features.leadership.detector.messages import DidYouMissToo, MonitorOk, Resign, StartRound, Vote, VoteKind, WatchedOk
from holdfast.host import Message, NodeId
from holdfast.papers.detection.lab.checkers.election import disagreement, election_of
from holdfast.papers.detection.protocol.election import ROUND_MAX, VOTERS_MAX
from holdfast.papers.detection.protocol.election_facts import Leading, LostLead, TermEntered
from tests.papers.detection.election_stand import ADDRESSES, NAMES, PAPER, QUORUM, A, B, C, D, E, Stand, group, heartbeat, to_others

BOTH = pytest.mark.parametrize("config", [PAPER, QUORUM], ids=["paper", "quorum"])


def report(stand: Stand, *, acted: bool, slow: bool = False) -> None:
    election = stand.election
    election._monitor.on_report(Suspect(election.term, election.watched, 1, 0, ("b", "c", "d"), (), (), (), 0.0, acted, slow))


# install_view, and line 11: StartRound(0).


@BOTH
def test_view_begins_with_round_0(config: ElectionConfig) -> None:
    """install_view, line 11: StartRound(0), which is told to all; the watched of round 0 is the first of the sorted list."""
    stand = Stand("d", config, fresh=True, names="edcba")
    assert (stand.election.term, stand.election.watched, stand.election.leader()) == (Term(1, 0), "a", None)
    assert stand.said() == [(to, StartRound("", 1, 0)) for to in to_others("d")]


@BOTH
def test_candidate_speaks_at_once(config: ElectionConfig) -> None:
    """Line 16, D13: the first heartbeat of a term leaves on entry, to all others, not at the next sigma."""
    stand = Stand("b", config)
    stand.host.clock += 0.3
    stand.election.on_message(C, StartRound("", 1, 1))
    said = [(to, message) for to, message in stand.said() if isinstance(message, WatchedOk)]
    assert [to for to, _ in said] == to_others("b")
    assert {(message.leads[0].view, message.leads[0].round) for _, message in said} == {(1, 1)}


@BOTH
def test_old_views_are_ignored(config: ElectionConfig) -> None:
    """install_view: ignored unless v > view_id."""
    stand = Stand("d", config, view=3)
    stand.install("abd", 3)
    stand.install("abd", 2)
    assert (stand.election.term.view, stand.election.members, stand.election.counts["stale"]) == (3, tuple(NAMES), 2)


def test_next_view_follows_the_leader() -> None:
    """install_view: r0 is the index of our leader in the new list, 0 if it is not there."""
    for names, expected in (("abcdef", 2), ("bcdef", 1), ("abdef", 0)):
        stand = Stand("d", PAPER)
        stand.hear(C, 2)
        assert stand.election.leader() == C
        stand.install(names, 2)
        assert stand.election.term == Term(2, expected)


@BOTH
def test_who_is_not_in_the_view_is_silent(config: ElectionConfig) -> None:
    """install_view: not a member: step down, cancel all timers, be inactive; a later view takes it back."""
    stand = Stand("a", config, names="a")
    assert stand.election.is_leader()
    stand.install("bcd", 2)
    assert not stand.election.is_leader()
    assert stand.host.events(LostLead) == [LostLead(Term(1, 0), "not a member")]
    assert (stand.election.watched, stand.election.leader(), stand.host.timers) == ("", None, 0)
    stand.election.on_message(B, heartbeat(0, 2))
    assert (stand.said(), stand.election.counts["stranger"]) == ([], 1)
    with pytest.raises(NotAMember, match="has nothing to monitor"):
        stand.election.demand(1e-5)
    stand.install("abcd", 3)
    assert stand.election.term == Term(3, 0)


@BOTH
def test_bad_views_are_refused(config: ElectionConfig) -> None:
    """F17, D22: a view has at most as many voters as can be asked in one ballot; the error names the view."""
    stand = Stand("a", config)
    for view, names in ((0, "ab"), (1 << 21, "ab"), (2, ""), (2, [f"n{i}" for i in range(VOTERS_MAX + 1)])):
        with pytest.raises(ConfigError, match=f"view {view}"):
            stand.install(names, view)
    with pytest.raises(ConfigError, match="voters"):
        Stand("a", config, voters=["a", "a"])
    fixed = Stand("n0", config, names=[f"n{i}" for i in range(40)], voters=["n0", "n1", "n2"])  # type: ignore[arg-type]
    assert fixed.election.quorum == 2


# StartRound(s): send (START, s) to all ...


def test_own_decision_is_announced() -> None:
    """Lines 3-4: whoever enters a round by its own decision sends (START, s) to all others."""
    stand = Stand("d", PAPER)
    stand.hear(A, 0)
    stand.said()
    report(stand, acted=True)
    assert stand.round == 1
    assert stand.said() == [(to, StartRound("", 1, 1)) for to in to_others("d")]


@BOTH
@pytest.mark.parametrize(
    "message", [heartbeat(3), StartRound("", 1, 3), DidYouMissToo("d", 1, "", 1, 3, 5, 1)], ids=["ok", "start", "query"]
)
def test_newer_round_is_joined_and_not_announced(config: ElectionConfig, message: Message) -> None:
    """Lines 31-32, D16: jump to round k; others were told by whoever decided it."""
    stand = Stand("c", config)
    stand.election.on_message(D, message)
    assert stand.round == 3
    assert not [sent for _, sent in stand.said() if isinstance(sent, StartRound)]
    assert stand.host.events(TermEntered)[-1] == TermEntered(Term(1, 3), "told")


@BOTH
@pytest.mark.parametrize(
    "message", [heartbeat(2), StartRound("", 1, 2), DidYouMissToo("c", 1, "", 1, 2, 5, 1)], ids=["ok", "start", "query"]
)
def test_older_round_is_answered(config: ElectionConfig, message: Message) -> None:
    """Lines 33-34: (START, r) to q alone; nothing changes here."""
    stand = Stand("b", config)
    stand.hear(E, 4, leading=True)
    stand.said()
    stand.election.on_message(C, message)
    assert stand.said() == [(C, StartRound("", 1, 4))]
    assert (stand.round, stand.election.leader()) == (4, E)


@BOTH
def test_message_that_brings_a_term_is_read_in_it(config: ElectionConfig) -> None:
    """D16: a newer term is adopted before the message is processed."""
    stand = Stand("b", config)
    stand.hear(D, 3, leading=True)
    assert (stand.round, stand.election.leader()) == (3, D)
    assert [to for to, _ in stand.host.take(MonitorOk)] == [D]


# ... then always: r = s, leader = none.


@BOTH
@pytest.mark.parametrize("name", ["b", "d"], ids=["candidate", "other"])
def test_everybody_enters(config: ElectionConfig, name: str) -> None:
    """Lines 5-8 with D12 (a) removed: everybody enters, the candidate too; the former leader is named no more."""
    stand = Stand(name, config)
    stand.hear(A, 0, leading=True)
    assert stand.election.leader() == A
    stand.election.on_message(C, StartRound("", 1, 1))
    assert stand.round == 1
    assert [event.leader for event in stand.host.events(LeaderChanged)][:2] == [A, None]


# Task 0: on every sigma_i the candidate sends m_i.


@BOTH
def test_candidate_sends_on_the_grid(config: ElectionConfig) -> None:
    """Lines 14-16: one heartbeat per interval to all others, at sigma_i = i t_itv of its own clock."""
    stand = Stand("a", config)
    stand.host.clock += 0.3
    stand.host.pass_time(0.5)
    stand.host.sent.clear()
    for expected in (1001, 1002, 1003):
        stand.host.pass_time(expected - stand.host.now - 0.001)
        stand.host.sent.clear()
        stand.host.pass_time(0.002)
        said = stand.host.take(WatchedOk)
        assert [(to, message.seq) for to, message in said] == [(to, expected) for to in to_others("a")]
        assert {round(message.after, 3) for _, message in said} == {0.0}


@BOTH
def test_only_the_candidate_sends(config: ElectionConfig) -> None:
    """Line 15: p = r mod n."""
    stand = Stand("d", config)
    for _ in range(5):
        stand.host.pass_time(1.0)
        stand.hear(A, 0)
    assert stand.host.take(WatchedOk) == []


# Task 1: naming the leader.


@pytest.mark.parametrize("elect_after", [1, 2], ids=["figure 4", "figure 3"])
def test_leader_is_named_after_its_heartbeats(elect_after: int) -> None:
    """Lines 21-23, D13, D25: Figure 4 names at the first OK, Figure 3 at the second; on arrival, not at tau. Repeats count once."""
    stand = Stand("d", ElectionConfig(mode="paper", t_itv=1.0, t_lat=0.05, elect_after=elect_after))
    stand.hear(A, 0, stamp=1)
    assert stand.election.leader() == (A if elect_after == 1 else None)
    stand.hear(A, 0, stamp=2)
    assert stand.election.leader() == (A if elect_after == 1 else None)
    stand.host.clock += 1.0
    stand.hear(A, 0, stamp=3)
    assert stand.election.leader() == A


@pytest.mark.parametrize("elect_after", [1, 2], ids=["figure 4", "figure 3"])
def test_candidate_leads_once_it_spoke(elect_after: int) -> None:
    """heartbeat, D25: in paper mode a candidate becomes leader after ``elect_after`` heartbeats of its own."""
    stand = Stand("a", ElectionConfig(mode="paper", t_itv=1.0, t_lat=0.05, elect_after=elect_after))
    assert stand.election.is_leader() == (elect_after == 1)
    stand.host.pass_time(1.0)
    assert stand.election.is_leader()
    assert stand.election.token() == 1 << 32
    assert stand.host.events(Leading) == [Leading(Term(1, 0))]


def test_quorum_mode_names_whoever_leads() -> None:
    """WATCHED-OK, D25: in quorum mode leading=true is the proof, however many heartbeats came."""
    stand = Stand("d", QUORUM)
    for second in range(3):
        stand.hear(A, 0, stamp=second + 1)
        stand.host.pass_time(1.0)
    assert stand.election.leader() is None
    stand.hear(A, 0, stamp=9, leading=True)
    assert stand.election.leader() == A


def test_paper_mode_leader_steps_down_in_every_later_round() -> None:
    """enter, step 2: in paper mode every later round ends a leadership, also one that is ours again."""
    stand = Stand("a", PAPER)
    stand.election.on_message(B, StartRound("", 1, 5))
    assert stand.host.events(LostLead) == [LostLead(Term(1, 0), "demoted")]
    assert stand.election.token() == Term(1, 5).token


# Task 1: two reasons for the next round.


@BOTH
def test_acted_report_starts_the_next_round(config: ElectionConfig) -> None:
    """Lines 29-30: a report of the detector that is worth acting upon starts round r + 1; another one does not."""
    stand = Stand("d", config)
    stand.hear(A, 0, leading=True)
    report(stand, acted=False)
    assert stand.round == 0
    report(stand, acted=True)
    assert stand.host.events(TermEntered)[-1] == TermEntered(Term(1, 1), "reported")


def test_silence_starts_the_next_round() -> None:
    """Line 20, "a big delay Delta": in paper mode m_Omega missed heartbeats start round r + 1, and not one interval less."""
    stand = Stand("e", PAPER)  # The last in rank: it opens no ballots.
    for _ in range(20):
        stand.hear(A, 0, stamp=int(stand.host.now))
        stand.host.pass_time(1.0)
    m = PAPER.m_omega(0.1, 4)
    assert m == 6
    due = stand.election.ffd.fresh_at + (m - 1) * PAPER.t_itv
    stand.host.pass_time(due - stand.host.now - 0.001)
    assert stand.round == 0
    stand.host.pass_time(0.002)
    assert stand.host.events(TermEntered)[-1] == TermEntered(Term(1, 1), "silence")


def test_d12cd_candidate_never_heard_is_replaced() -> None:
    """D12 (c), (d): a silent candidate is given up Delta_c after the round was *entered*: there is an else, and it is not early."""
    stand = Stand("e", PAPER)
    stand.host.pass_time(PAPER.delta_c - 0.01)
    assert stand.round == 0
    stand.election.on_message(D, StartRound("", 1, 1))  # The moment before the timer of round 0 would have fired.
    stand.host.pass_time(PAPER.delta_c - 0.01)
    assert stand.round == 1
    stand.host.pass_time(0.02)
    assert stand.host.events(TermEntered)[-1] == TermEntered(Term(1, 2), "silence")


def test_quorum_mode_asks_before_it_gives_up_a_candidate() -> None:
    """omega, D23: in quorum mode Delta_c of silence opens a slow ballot; a majority that never heard the candidate moves on."""
    stand = Stand("e", QUORUM)
    stand.host.pass_time(QUORUM.delta_c + 0.001)
    queries = stand.host.take(DidYouMissToo)
    assert [to for to, _ in queries] == [ADDRESSES[name] for name in "bcd"]
    assert all(query.slow for _, query in queries)
    nonce = queries[0][1].nonce
    for voter in (B, C):
        stand.election.on_message(voter, Vote("a", 1, 0, -1, nonce, VoteKind.UNHEARD, 0.1))
    assert stand.round == 0
    stand.election.on_message(D, Vote("a", 1, 0, -1, nonce, VoteKind.HAVE, 0.1))
    assert stand.host.events(TermEntered)[-1] == TermEntered(Term(1, 1), "reported")


def test_slow_ballot_without_a_majority_is_repeated() -> None:
    """Close ballot: slow without act: omega again after Delta_c (1 + random)."""
    stand = Stand("e", QUORUM)
    stand.host.pass_time(QUORUM.delta_c + QUORUM.w + 0.001)
    assert stand.round == 0
    stand.host.take(DidYouMissToo)
    stand.host.pass_time(QUORUM.delta_c)
    assert stand.host.take(DidYouMissToo) == []
    stand.host.pass_time(QUORUM.delta_c)
    assert len({query.nonce for _, query in stand.host.take(DidYouMissToo)}) == 1


# nag.


@BOTH
def test_candidate_is_nagged_until_it_is_heard(config: ElectionConfig) -> None:
    """nag: START(term) to the watched every 1.5 t_rtt, until it is heard."""
    stand = Stand("d", config)
    stand.host.pass_time(3.1 * config.nag)
    assert stand.host.take(StartRound) == [(ADDRESSES["a"], StartRound("", 1, 0))] * 3
    stand.hear(A, 0)
    stand.host.pass_time(1.0)
    assert stand.host.take(StartRound) == []


@BOTH
def test_candidate_answers_a_nag(config: ElectionConfig) -> None:
    """Messages, START: answered by WATCHED-OK by the candidate: the same stamp, and how far off the grid it leaves now."""
    stand = Stand("a", config, fresh=True)
    first = stand.host.take(WatchedOk)[-1][1]
    stand.host.clock += 0.05
    stand.election.on_message(D, StartRound("", 1, 0))
    assert stand.host.take(WatchedOk) == []  # The first one is still on its way.
    stand.host.clock += 0.15
    stand.election.on_message(D, StartRound("", 1, 0))
    ((to, again),) = stand.host.take(WatchedOk)
    assert (to, again.seq, again.stamp, round(again.after, 6)) == (D, first.seq, first.stamp, round(first.after + 0.2, 6))


# Who may speak.


@BOTH
def test_strangers_and_other_views_are_not_believed(config: ElectionConfig) -> None:
    """Messages: from non-members, from our own name, of another view, from whoever is not the watched: dropped and counted."""
    stand = Stand("d", config)
    stand.hear(NodeId("x", 1), 7)
    stand.hear(NodeId("d", 9), 7)
    stand.hear(A, 7, view=2)
    stand.hear(B, 0)
    assert (stand.round, stand.election.leader(), stand.host.take(MonitorOk)) == (0, None, [])
    assert stand.election.counts == {"stranger": 2, "other_view": 1, "not_watched": 1}


@BOTH
def test_nonsense_does_nothing(config: ElectionConfig) -> None:
    """A peer's bad input is a counter: no leads, two leads, a round that no token has, a heartbeat off every grid."""
    stand = Stand("d", config)
    good = heartbeat(0)
    two = WatchedOk(1000, 1, good.leads * 2, (), 0.0)
    none = WatchedOk(1000, 1, (), (), 0.0)
    for message in (
        two,
        none,
        heartbeat(-1),
        heartbeat(ROUND_MAX + 1),
        Resign("", 1, -1),
        WatchedOk(1000, 1, good.leads, (), 0.0, after=99.0),
    ):
        stand.election.on_message(A, message)
    assert (stand.round, stand.election.leader(), stand.said()) == (0, None, [])
    assert stand.election.counts["malformed"] == 5


@BOTH
def test_term_belongs_to_one_life(config: ElectionConfig) -> None:
    """WATCHED-OK: another boot of the watched: a newer one restarted, so the next round begins; an older one is dropped."""
    stand = Stand("d", config)
    stand.hear(NodeId("a", 5), 0)
    stand.said()
    stand.hear(NodeId("a", 4), 0, stamp=2)
    assert (stand.round, stand.host.take(MonitorOk)) == (0, [])
    stand.hear(NodeId("a", 6), 0, stamp=3)
    assert stand.host.events(TermEntered)[-1] == TermEntered(Term(1, 1), "restarted")
    assert len(stand.host.take(StartRound)) == 4


def test_numbers_of_both_ends_must_match() -> None:
    """F4: mode, t_itv, t_lat, rho and fixed voters are compared before anything is believed."""
    texts = {
        Stand("a", config, voters=voters).election.fingerprint
        for config, voters in (
            (QUORUM, ()),
            (PAPER, ()),
            (QUORUM, ("a", "b", "c")),
            (ElectionConfig(t_itv=2.0), ()),
            (ElectionConfig(rho=0.01), ()),
        )
    }
    assert len(texts) == 5


@BOTH
def test_stop_leaves_no_timers(config: ElectionConfig) -> None:
    """A machine that is stopped does nothing more, whichever side it was on."""
    for name in "ad":
        stand = Stand(name, config)
        stand.hear(A, 0)
        stand.election.stop()
        assert stand.host.timers == 0


# The figure as a whole.


@BOTH
def test_calm_group_elects_the_first_and_keeps_it(config: ElectionConfig) -> None:
    """Section 5, stability: without faults round 0 is the only one, and everybody names its leader."""
    world = group(config)
    world.run(60.0)
    assert disagreement(world, NAMES) == ""
    assert {election_of(host).term for host in world.alive} == {Term(1, 0)}
