"""The table of leaders that clients and pages read, fed by events alone.  Spec: foundation 5 (LeaderChanged); detection 1."""

from __future__ import annotations

import pytest

from holdfast.config import load
from holdfast.events import LeaderChanged
from holdfast.features.leadership import leaders
from holdfast.features.leadership.leaders import Board
from holdfast.features.leadership.protocol.reigns import Reigns
from holdfast.features.leadership.timing import takeover_bound
from holdfast.host import NodeId
from holdfast.lab.fake_host import FakeHost
from holdfast.local.leaders import LeaderView, read_line

A, B = NodeId("a", 1), NodeId("b", 2)


def test_terms_and_vacancies() -> None:
    """Every term is counted once; how long nobody led is the time between the two events; a hand-over has none."""
    board = Board()
    for leader, token, at in ((A, 7, 10.0), (A, 7, 11.0), (None, 7, 12.0), (B, 8, 12.5), (A, 9, 20.0)):
        board.note(LeaderChanged("x", leader, token), at)
    assert board.views == (LeaderView("x", A, 9, 20.0),)
    assert (board.version, board.terms("x"), board.vacant("x"), board.terms_heard) == (4, 3, 0.0, 3)
    assert (board.led_by(A), board.led_by(B)) == (1, 0)


def test_leaders_by_election_are_of_another_table() -> None:
    """H421: the same event tells of both ways to lead; each table has its own."""
    board = Board()
    board.note(LeaderChanged("x", A, 7, "election"), 10.0)
    assert (board.views, board.version) == ((), 0)


def test_rounds_exceed_what_is_known_of_another_way() -> None:
    """F16: the next round of a name is above the tokens that it had in another way; a smaller number changes nothing."""
    reigns = Reigns(FakeHost("a"), lambda name: None)
    reigns.exceed("x", 70)
    reigns.exceed("x", 60)
    assert (reigns.highest("x"), reigns.highest("y")) == (70, 0)


def test_vacant_before_a_takeover() -> None:
    """What the page shows beside the promise."""
    board = Board()
    for leader, token, at in ((A, 7, 10.0), (None, 7, 12.0), (B, 8, 12.5)):
        board.note(LeaderChanged("x", leader, token), at)
    assert board.vacant("x") == 0.5


def test_a_false_alarm_is_no_term() -> None:
    """F16, G7: the round that was to begin was never granted; the leader that is heard again has its own token, and its old term."""
    board = Board()
    for leader, token, at in ((A, 7, 10.0), (None, 8, 12.0), (A, 7, 12.5)):
        board.note(LeaderChanged("x", leader, token), at)
    assert board.views == (LeaderView("x", A, 7, 12.5),)
    assert (board.version, board.terms("x"), board.vacant("x"), board.terms_heard) == (3, 1, None, 1)
    board.note(LeaderChanged("x", B, 8), 13.0)
    assert (board.terms("x"), board.vacant("x")) == (2, 0.0)


def test_lines_are_sorted_and_the_same_until_something_changes() -> None:
    """The view is encoded once per version."""
    board = Board()
    for name in ("m", "z", "a"):
        board.note(LeaderChanged(name, A, 1), 1.0)
    lines = board.views
    assert [line.name for line in lines] == ["a", "m", "z"]
    assert board.views is lines
    read = {name: read_line(line) for name, line in board.lines.items()}
    assert (read, board.lines is board.lines) == ({line.name: line for line in lines}, True)


def test_names_without_end_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit, names that nobody leads are forgotten first, the longest unheard of first."""
    monkeypatch.setattr(leaders, "NAMES_MAX", 3)
    board = Board()
    for number, leader in enumerate((A, None, None)):
        board.note(LeaderChanged(f"n{number}", A, 1), float(number))
        if leader is None:
            board.note(LeaderChanged(f"n{number}", None, 1), 10.0 - number)
    for name in ("new", "newer"):
        board.note(LeaderChanged(name, B, 2), 20.0)
    assert [line.name for line in board.views] == ["n0", "new", "newer"]


def test_how_soon_the_next_one_leads() -> None:
    """G2, D9, D26: with seven agents one heartbeat, its freshness point and a ballot, or the seats' promises; then a question. Fewer
    agents need more heartbeats; alone there is no next one; a grace is waited for."""
    config = load(overrides={"preset": "local"})
    promises = 0.015 + 0.45 * 1.001
    assert takeover_bound(config, 7) == pytest.approx(max(0.3 + 0.09 + 0.06, promises) + 0.06)
    assert takeover_bound(config, 3) == pytest.approx(3 * 0.3 + 0.09 + 0.06 + 0.06)
    assert takeover_bound(config, 7, grace=2.0) == pytest.approx(takeover_bound(config, 7) + 2.0 * 1.001)
    assert takeover_bound(config, 1) == float("inf")
