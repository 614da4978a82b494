"""FastDetector alone, on a fake host: what its owner may rely on, and what a peer may send.

Spec: fast-detection 2, 5, D8-D10, D19; foundation F1, F10, F11. The rules of the paper are in ../paper.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf
from random import Random

import pytest

from holdfast.features.leadership.detector.config import FfdConfig, Term
from holdfast.features.leadership.detector.facts import Dismissed, Report, Suspect
from holdfast.features.leadership.detector.ffd import DEFERRED_MAX, FastDetector
from holdfast.features.leadership.detector.links import Links
from holdfast.features.leadership.detector.messages import DidYouMissToo, Lead, Vote, VoteKind, WatchedOk
from holdfast.host import Address, Message, NodeId
from tests.support.fake_host import FakeHost

CONFIG = FfdConfig(p_fixed=0.1, common=0.0)
WATCHED = NodeId("w", 5)
LEADS = (Lead("", 0, 1, True, 1.5),)


class Owner:
    """Asks b and c; needs two misses."""

    def __init__(self, name: str = "a", config: FfdConfig = CONFIG) -> None:
        self.host = FakeHost(name)
        self.links = Links(self.host, config)
        self.detector = FastDetector(self.host, config, self, self.links)
        self.missed: list[int] = []
        self.reports: list[Report] = []
        self.detector.watch("w", Term(0, 1), ["a", "b", "c"])

    def monitors(self) -> Mapping[str, NodeId | Address]:
        return {name: NodeId(name, 1) for name in ("a", "b", "c", "w")}  # Its own name and the watched's are passed over.

    def enough(self, names: Collection[str]) -> bool:
        return len(names) >= 2

    def say(self, to: NodeId | Address, message: Message) -> None:
        self.host.send(to, message)

    def on_missed(self, seq: int) -> None:
        self.missed.append(seq)

    def on_report(self, report: Report) -> None:
        self.reports.append(report)

    def hear(
        self, seq: int, *, stamp: int | None = None, after: float = 0.0, page: int = 0, among: tuple[str, ...] = ("a", "b", "c")
    ) -> bool:
        ok = WatchedOk(seq, seq if stamp is None else stamp, LEADS, among, 0.0, after, page)
        return self.detector.on_heartbeat(WATCHED, ok)

    def hear_until(self, seq: int) -> None:
        """Heartbeats 1000 to ``seq``, each at its time."""
        while self.detector.last_seq < seq:
            self.hear(round(self.host.now))
            self.host.pass_time(1.0)


def test_before_the_first_heartbeat() -> None:
    """D5: no rank, no freshness point, no slow path of its own, no bits."""
    detector = Owner().detector
    assert (detector.rank(), detector.fresh_at, detector.omega_at(), detector.missing, detector.missed_bits()) == (None, inf, inf, False, 0)
    assert (detector.heard, detector.last_seq, detector.boot, detector.K, detector.p_false) == (0, -1, 0, ("a", "b", "c"), 1.0)


def test_news_and_repeats() -> None:
    """Section 5: a new index is news; the same again, older, or another page of it is not."""
    owner = Owner()
    assert owner.hear(1000)
    assert not owner.hear(1000, stamp=1001)
    assert not owner.hear(999, stamp=1002)
    assert owner.hear(1001, stamp=1003, page=1)
    assert not owner.hear(1001, stamp=1003, page=0)
    assert (owner.detector.heard, owner.detector.last_seq, owner.detector.boot) == (2, 1001, 5)


def test_page_of_the_monitors() -> None:
    """K is on page 0, whichever page comes first; an overtaken heartbeat does not bring back its own."""
    owner, seen = Owner(), []
    for seq, page, among in ((1000, 1, ()), (1000, 0, ("b",)), (999, 0, ("a", "b", "c"))):
        owner.hear(seq, page=page, among=among)
        seen.append(owner.detector.K)
    assert seen == [("a", "b", "c"), ("b",), ("b",)]
    assert owner.detector.rank() == 0  # It counts itself, listed or not.


def test_other_lives_are_not_believed() -> None:
    """F1: one life speaks per term; where the owner wants one life, no other may begin."""
    owner = Owner()
    owner.hear(1000)
    assert not owner.detector.on_heartbeat(NodeId("w", 6), WatchedOk(1001, 9, LEADS, (), 0.0))
    assert not owner.detector.on_heartbeat(NodeId("x", 5), WatchedOk(1001, 9, LEADS, (), 0.0))
    owner.detector.watch("w", Term(0, 2), [], boot=6)
    assert not owner.hear(1002)
    assert owner.detector.on_heartbeat(NodeId("w", 6), WatchedOk(1002, 9, LEADS, (), 0.0))
    assert owner.links.counts["other_life"] == 3


@pytest.mark.parametrize(
    "ok",
    [
        WatchedOk(-1, 1, LEADS, (), 0.0),
        WatchedOk(1 << 40, 1, LEADS, (), 0.0),
        WatchedOk(1, 1, LEADS, (), 1.5),
        WatchedOk(1, 1, LEADS, (), float("nan")),
        WatchedOk(1, 1, LEADS, (), 0.0, after=-0.1),
        WatchedOk(1, 1, LEADS, (), 0.0, after=1.1),
        WatchedOk(1, 1, LEADS, tuple(f"m{number}" for number in range(65)), 0.0),
    ],
)
def test_malformed_heartbeats(ok: WatchedOk) -> None:
    """What a peer sends is counted, never believed and never raised."""
    owner = Owner()
    assert not owner.detector.on_heartbeat(WATCHED, ok)
    assert owner.links.counts["malformed"] == 1


def test_off_grid_heartbeat_is_a_sample() -> None:
    """Section 5: the first of a term leaves between two ticks and says how long after the last one, so the estimate is right at once."""
    owner = Owner()
    owner.host.pass_time(0.61)
    owner.hear(1000, after=0.6)
    assert owner.detector.fresh_at == pytest.approx(1001.01 + CONFIG.alpha_max)


def test_samples_survive_the_term() -> None:
    """Section 2: freshness points and loss of a life go on into the next term; gaps between the terms are no loss."""
    owner = Owner()
    owner.hear_until(1020)
    owner.detector.watch("w", Term(0, 2), ["b", "c"])
    owner.host.pass_time(5.0)
    owner.hear(round(owner.host.now))
    stats = owner.links.stats(WATCHED)
    assert (stats.p, stats.samples) == (0.0, 20)
    assert stats.alpha == pytest.approx(CONFIG.lat / 4)


def test_gap_is_loss_up_to_a_limit() -> None:
    """D8: a gap that the next heartbeat closes counts, at most m_max of it: longer is an outage."""
    owner = Owner()
    owner.hear_until(1010)
    owner.host.pass_time(2.0)
    owner.hear(1013)
    assert owner.links.stats(WATCHED).samples == 10 + 3
    owner.host.pass_time(100.0)
    owner.hear(1113)
    assert owner.links.stats(WATCHED).samples == 13 + CONFIG.m_max + 1


def test_missed_bits() -> None:
    """D10: bit j says that seq - 1 - j did not come in time; nothing before the first heartbeat is missed, 32 are told."""
    owner = Owner()
    owner.hear(1000)
    assert [owner.detector.missed_bits(seq) for seq in (1000, 1001, 1002, 1003)] == [0, 0, 0b1, 0b11]
    owner.hear(1001)
    owner.hear(1004)
    assert owner.detector.missed_bits() == 0b11
    assert owner.detector.missed_bits(1006) == 0b1101
    assert owner.detector.missed_bits(1004 + 100) == 0xFFFFFFFF
    owner.hear(1200)
    assert owner.detector.missed_bits() == 0xFFFFFFFF


def test_freshness_point() -> None:
    """Fig. 2: at every point without its heartbeat the owner is told; the primary asks b and c, never itself or the watched."""
    owner = Owner()
    owner.hear_until(1010)
    owner.host.pass_time(1.5)
    assert owner.missed == [1011, 1012]
    asked = [(to, query.seq) for to, query in owner.host.take(DidYouMissToo)]
    assert asked[:2] == [(NodeId("b", 1), 1011), (NodeId("c", 1), 1011)]
    assert {to for to, _ in asked} == {NodeId("b", 1), NodeId("c", 1)}
    assert owner.detector.missing


def test_report() -> None:
    """Section 5: the report is emitted and told; evidence alone does not act without ``enough``."""
    owner = Owner()
    owner.hear_until(1010)
    owner.host.pass_time(10.0)
    assert [report.acted for report in owner.reports] == [False] * 10
    assert owner.reports[-1].p_false == pytest.approx(1e-10)
    assert owner.reports[-1].silent == ("b", "c")
    assert owner.host.events(Suspect) == owner.reports


def vote(owner: Owner, name: str, kind: VoteKind = VoteKind.MISSED) -> bool:
    assert owner.detector.ballot is not None
    query = owner.detector.ballot.query
    return owner.detector.on_vote(NodeId(name, 1), Vote("w", query.view, query.round, query.seq, query.nonce, kind, 0.1))


def test_owner_may_move_on_inside_the_report() -> None:
    """Watcher: ``watch`` or ``stop`` from on_report leave no timer of the former term."""
    owner = Owner(config=FfdConfig(p_fixed=0.1, common=0.0, p_m=1e-2))
    owner.hear_until(1010)
    owner.host.pass_time(0.1)
    owner.on_report = lambda report: owner.detector.stop()  # type: ignore[method-assign]
    assert vote(owner, "b")
    assert vote(owner, "c")
    assert owner.detector.watched == ""
    assert owner.host.timers == 0
    assert owner.links.counts["ballots_acted"] == 1


def test_votes_without_a_ballot() -> None:
    """D7: False, so that the owner may try another detector."""
    owner = Owner()
    assert not owner.detector.on_vote(NodeId("b", 1), Vote("w", 0, 1, 3, 1, VoteKind.MISSED, 0.1))
    assert owner.links.counts["votes_ignored"] == 1


def test_duplicate_heartbeat_proves_nothing() -> None:
    """D9: a datagram that the network kept is no sign of life; a repeat that the watched sent is."""
    owner = Owner()
    owner.hear_until(1010)
    owner.host.pass_time(1.5)
    evidence = owner.detector.p_false
    assert evidence < 1.0
    owner.hear(1010)
    assert owner.detector.p_false == evidence
    owner.hear(1010, stamp=2000, after=0.9)
    assert owner.detector.p_false == 1.0


def test_deferred_questions_have_a_limit() -> None:
    """Each asker has one question, and not more than 64 wait; our own late freshness point forgets them (F11)."""
    owner = Owner("b")
    owner.hear_until(1009)
    owner.host.clock -= 0.05  # Just before the freshness point of 1010.
    for number in range(DEFERRED_MAX + 5):
        for nonce in (1, 2):
            owner.detector.on_query(NodeId(f"m{number}", 1), DidYouMissToo("w", 5, "", 0, 1, 1010, nonce))
    assert owner.host.take(Vote) == []
    assert owner.links.counts["silent"] == 2 * 5
    owner.host.pass_time(0.1)
    votes = owner.host.take(Vote)
    assert len(votes) == DEFERRED_MAX
    assert {message.nonce for _, message in votes} == {2}


def test_away() -> None:
    """F10, F11: a ballot of before ends, heartbeats that waited prove life and teach nothing, then all is as before."""
    owner = Owner()
    owner.hear_until(1010)
    owner.host.pass_time(0.1)
    assert owner.links.counts["ballots_fast"] == 1
    owner.host.clock += 5.0
    owner.detector.on_away(5.0)
    assert owner.detector.ballot is None
    samples = owner.links.stats(WATCHED).samples
    for seq in range(1011, 1016):
        owner.hear(seq)
    assert owner.links.stats(WATCHED).samples == samples
    owner.host.pause(0.0)
    owner.host.pass_time(0.05)
    assert (owner.reports, owner.missed) == ([], [1011])
    owner.host.clock = 1017.0
    owner.hear(1017)
    assert owner.links.stats(WATCHED).samples == samples + 2
    assert owner.links.counts["ballots_discarded"] == 1


def test_long_pause_skips_the_points_of_it() -> None:
    """F11: after an hour there is one late timer, no question, and the next point lies ahead."""
    owner = Owner()
    owner.hear_until(1010)
    owner.host.pause(3600.0)
    assert (owner.missed, owner.links.counts["late_timers"]) == ([], 1)
    owner.host.pass_time(1.0)
    assert len(owner.missed) == 1


def test_plan_counts_the_votes_of_others() -> None:
    """Section 9: loss of other links is known from votes, and is p_new (or fixed) before; a dead monitor is not counted."""
    owner = Owner(config=FfdConfig(p_new=0.2, common=0.0))
    owner.hear_until(1010)
    assert owner.detector.demand(1e-3).misses == 3
    assert owner.detector.demand(0.2**3).heartbeats == 1
    owner.host.pass_time(0.1)
    for name in ("b", "c"):
        vote(owner, name)
    assert owner.detector.demand(0.2 * 0.1 * 0.1).heartbeats == 1
    assert owner.detector.demand(1e-4).heartbeats == 2


def test_dismissal_names_the_witness() -> None:
    """Section 9: Dismissed(term, seq, by), and the evidence is gone."""
    owner = Owner()
    owner.hear_until(1010)
    owner.host.pass_time(0.1)
    vote(owner, "c", VoteKind.HAVE)
    assert owner.host.events(Dismissed) == [Dismissed(Term(0, 1), "w", 1011, "c")]
    assert (owner.detector.ballot, owner.detector.p_false, owner.reports) == (None, 1.0, [])


def test_question_from_the_future_keeps_nobody_from_asking() -> None:
    """D4, D15: only a question about a heartbeat that is due counts as asked, so a wrong number silences no backup."""
    owner = Owner("b")
    owner.hear_until(1010)
    owner.detector.on_query(NodeId("a", 1), DidYouMissToo("w", 5, "", 0, 1, 10**9, 1))
    owner.host.pass_time(0.5)
    assert owner.host.take(DidYouMissToo)


def test_heartbeat_with_a_wild_index() -> None:
    """An index far ahead leaves one timer, and the term after it starts from what comes then; nothing is counted up to it."""
    owner = Owner()
    owner.hear_until(1010)
    owner.hear((1 << 40) - 1)
    owner.detector.watch("w", Term(0, 1), ["b", "c"])
    for _ in range(30):
        owner.hear(round(owner.host.now))
        owner.host.pass_time(1.0)
    assert owner.detector.fresh_at == pytest.approx(owner.host.now, abs=CONFIG.alpha_max + 1e-3)


def test_stop() -> None:
    """A stopped detector has no timer, answers nothing, and may be asked for slow ballots without harm."""
    owner = Owner()
    owner.hear_until(1010)
    owner.host.pass_time(0.1)
    owner.detector.stop()
    assert owner.host.timers == 0
    owner.host.take(DidYouMissToo)
    owner.detector.open_slow()
    owner.detector.on_query(NodeId("b", 1), DidYouMissToo("w", 5, "", 0, 1, 1011, 1))
    owner.host.pass_time(5.0)
    assert owner.host.sent == []


def test_no_input_breaks_it() -> None:
    """What a peer sends is dropped or believed, never raised: any numbers, in any order, at any time."""
    owner, random = Owner(), Random(5)
    numbers = [-(1 << 63), -1, 0, 1, 5, 999, 1000, 1001, 1010, 1 << 40, (1 << 40) - 1, 1 << 40, 1 << 53, (1 << 64) - 1]
    fractions = [0.0, -1.0, 0.1, 0.5, 1.0, 1e300, float("inf"), float("nan")]
    lives = [NodeId(name, boot) for name in ("a", "b", "c", "w", "z") for boot in (1, 5)]

    def number() -> int:
        return random.choice([*numbers, owner.detector.last_seq, owner.detector.last_seq + 1])

    for turn in range(4000):
        if turn % 50 == 0:
            owner.detector.watch("w", Term(0, 1), ["b", "c"])
            owner.hear(round(owner.host.now))
        source, kind = random.choice(lives), random.randrange(5)
        if kind == 0:
            ok = WatchedOk(
                number(), number(), LEADS, ("b", "w", "b"), random.choice(fractions), random.choice(fractions), number(), number()
            )
            owner.detector.on_heartbeat(source, ok)
        elif kind == 1:
            query = DidYouMissToo("w", random.choice([0, 5, 9]), "", 0, 1, number(), number(), random.random() < 0.5)
            owner.detector.on_query(source, query)
        elif kind == 2:
            owner.detector.on_vote(
                source, Vote("w", 0, 1, number(), random.randrange(100), VoteKind(random.randrange(3)), random.choice(fractions))
            )
        elif kind == 3:
            owner.detector.open_slow()
        owner.host.pass_time(random.choice([0.0, 0.01, 0.3]))
    assert owner.host.timers <= 8
