"""What the recorder of real processes that gossip finds wrong.  Spec: gossip 7 (G7, G10, G11)."""

from __future__ import annotations

import pytest

from tests.support.gossip_record import Excuse, Line, Lists, lost, wrongs


def told(*whats: str, member: str = "b#2") -> list[Line]:
    """What a#1 says of one member, a second apart."""
    return [Line(float(at), "a#1", what, member) for at, what in enumerate(whats)]


@pytest.mark.parametrize(
    "whats",
    [
        ("Joined", "Suspected", "Cleared", "Suspected", "Decided", "Failed", "Joined"),
        ("Joined", "Decided", "Failed"),
        ("Joined", "Suspected", "Left"),
    ],
)
def test_an_order_that_may_be(whats: tuple[str, ...]) -> None:
    """G10: a member that was given up by mistake may come back."""
    assert wrongs(told(*whats)) == []


@pytest.mark.parametrize(
    "whats",
    [
        ("Joined", "Joined"),
        ("Suspected",),
        ("Joined", "Cleared"),
        ("Joined", "Failed"),
        ("Joined", "Decided", "Failed", "Failed"),
        ("Left",),
    ],
)
def test_an_order_that_may_not_be(whats: tuple[str, ...]) -> None:
    """G10."""
    assert len(wrongs(told(*whats))) == 1


def test_left_stays_left() -> None:
    """G7: a life that left is not listed again; the next one is."""
    assert wrongs(told("Joined", "Left", "Joined")) == ["G7: a#1 lists b#2 again, which left"]
    assert wrongs([*told("Joined", "Left"), *told("Joined", member="b#3")]) == []


def test_no_failure_is_certain() -> None:
    """G10."""
    line = Line(9.0, "a#1", "Failed", "b#2", certain=True)
    assert wrongs([*told("Joined", "Decided"), line]) == ["G10: a#1 says that b#2 failed for certain"]


def test_wrong_lists() -> None:
    """G4, G11: what a list lacks, has too much and suspects."""
    lists = Lists()
    for line in (*told("Joined"), *told("Joined", member="c#3"), *told("Joined", "Suspected", member="a#1")):
        lists.take(line)
    assert lists.wrong_about(["a#1"]) == {"a#1": ["+b#2", "+c#3", "?a#1"]}
    assert lists.wrong_about(["a#1", "b#2", "d#4"])["a#1"] == ["-d#4", "+c#3", "?a#1"]
    lists.take(Line(9.0, "a#1", "Cleared", "a#1"))
    assert "a#1" not in lists.wrong_about(["a#1", "b#2", "c#3"])


def test_a_live_member_that_is_lost() -> None:
    """G13: whoever was dead by then is not lost, nor is one that could not be heard."""
    lines = told("Joined", "Decided", "Failed")
    assert len(lost(lines, {})) == 1
    assert len(lost(lines, {"b#2": 2.5})) == 1
    assert lost(lines, {"b#2": 1.5}) == []
    assert lost(lines, {}, [Excuse(["a#1"], ["b#2"])]) == []
    assert len(lost(lines, {}, [Excuse(["b#2"], ["a#1"])])) == 1
