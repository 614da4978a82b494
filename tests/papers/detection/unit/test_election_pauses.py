"""The election of both modes when its process stands still, or waits for its disk.  Spec: fast-detection 5 (enter, omega), D18, D19, I6."""

from __future__ import annotations

import pytest

from holdfast.features.leadership.detector.config import ElectionConfig, Term
from holdfast.features.leadership.detector.messages import DidYouMissToo, StartRound, Vote, VoteKind, WatchedOk
from holdfast.papers.detection.protocol.election import WAITING_MAX
from tests.papers.detection.election_stand import NAMES, PAPER, QUORUM, A, B, C, D, Stand, to_others
from tests.support.fake_host import FakeStorage

BOTH = pytest.mark.parametrize("config", [PAPER, QUORUM], ids=["paper", "quorum"])


# Pauses and the disk.


@BOTH
def test_d19_late_timer_judges_nobody(config: ElectionConfig) -> None:
    """omega, D19, F11: a timer that is late by more than t_lat finds that it was us who were stopped, and listens for an interval."""
    stand = Stand("e", config)
    for _ in range(20):
        stand.hear(A, 0, stamp=int(stand.host.now))
        stand.host.pass_time(1.0)
    stand.host.pause(30.0)
    assert (stand.round, stand.host.take(DidYouMissToo)) == (0, [])
    stand.hear(A, 0, stamp=9999)
    stand.host.pass_time(1.0)
    assert stand.round == 0


@BOTH
def test_d19_away_begins_patience_anew(config: ElectionConfig) -> None:
    """D19, F11: after a pause nobody is accused before t_itv + t_lat, even if the timers come first."""
    stand = Stand("e", config)
    stand.hear(A, 0)
    stand.host.clock += 30.0
    stand.election.on_away(30.0)
    stand.host.pass_time(1.0)
    assert (stand.round, stand.host.take(DidYouMissToo)) == (0, [])


@BOTH
def test_d18_term_is_on_disk_before_anything_is_said(config: ElectionConfig) -> None:
    """enter, step 4: max_term is written before any message of that term leaves; what comes meanwhile is read afterwards."""
    disk = FakeStorage()
    stand = Stand("b", config, storage=disk)
    disk.complete()
    stand.said()
    stand.election.on_message(C, StartRound("", 1, 1))
    stand.election.on_message(D, StartRound("", 1, 0))
    assert (stand.round, stand.said(), stand.election.installed) == (1, [], 1)
    disk.complete()
    assert [to for to, _ in stand.host.take(WatchedOk)] == to_others("b")
    assert stand.host.take(StartRound) == [(D, StartRound("", 1, 1))]


@BOTH
def test_term_that_was_overtaken_on_its_way_to_the_disk_is_not_begun(config: ElectionConfig) -> None:
    """enter: two terms are written one after the other; only the later one is spoken in."""
    disk = FakeStorage()
    stand = Stand("b", config, storage=disk)
    disk.complete()
    stand.said()
    stand.election.on_message(C, StartRound("", 1, 1))
    stand.install(NAMES, 2)
    disk.complete(1)
    assert stand.said() == []
    disk.complete()
    assert stand.election.term == Term(2, 0)
    assert stand.host.take(WatchedOk) == []


@BOTH
def test_what_waits_for_the_disk_has_a_limit(config: ElectionConfig) -> None:
    """Everything has a limit: messages beyond it are counted, and lost."""
    disk = FakeStorage()
    stand = Stand("b", config, storage=disk)
    for _ in range(WAITING_MAX + 3):
        stand.hear(A, 0)
    assert stand.election.counts["overflow"] == 3


def test_i6_heartbeats_that_waited_are_read_before_questions_about_them() -> None:
    """I6, F10: a question and the heartbeat it asks for wait for the disk together; the answer knows the heartbeat."""
    disk = FakeStorage()
    stand = Stand("e", QUORUM, storage=disk)
    query = DidYouMissToo("a", 1, "", 1, 0, 1000, 77)
    stand.election.on_message(B, query)
    stand.hear(A, 0, seq=1001)
    disk.complete()
    disk.complete()
    assert [(to, vote.kind) for to, vote in stand.host.take(Vote)] == [(B, VoteKind.HAVE)]


@BOTH
def test_queries_are_for_monitors_only(config: ElectionConfig) -> None:
    """DID-YOU-MISS-TOO: the watched itself ignores it; a vote nobody asked for is counted."""
    stand = Stand("a", config)
    stand.election.on_message(B, DidYouMissToo("a", 1, "", 1, 0, 1000, 1))
    stand.election.on_message(B, Vote("a", 1, 0, 1000, 1, VoteKind.HAVE, 0.1))
    assert (stand.host.take(Vote), stand.election.counts["late_vote"]) == ([], 1)
