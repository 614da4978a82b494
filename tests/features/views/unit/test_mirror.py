"""A view as a client knows it: the items of a stream become a standing and events, and deadlines are compared with the clock."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import ConfigError
from holdfast.events import Changing, EventsLost, ViewChanged, ViewLost, ViewRestored, ViewTripped
from holdfast.features.views import client_base
from holdfast.features.views.calls import NextView, ViewItem
from holdfast.features.views.client_base import ViewMirror, advanced, checked_reason
from holdfast.features.views.streams import difference
from holdfast.host import NodeId, ViewState
from tests.features.views.fake_views import view

STABLE, IS_CHANGING, IS_LOST = ViewState.STABLE, ViewState.CHANGING, ViewState.LOST


class Clock:
    """What ``now`` reads."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(client_base, "now", clock)
    return clock


def item(what: str, state: int = STABLE, leased: float | None = 101.5, settled: float | None = 105.4, **more: Any) -> ViewItem:
    return ViewItem(what, state, leased, settled, **more)


def test_before_anything_is_said(clock: Clock) -> None:
    """Views 10: the state is lost until the agent is in a view."""
    mirror = ViewMirror()
    assert (mirror.standing.word, mirror.standing.leased, mirror.standing.settled) == ("lost", False, False)
    assert mirror.follow(item("now", IS_LOST, None, None)) == []
    assert mirror.standing.word == "lost"


def test_a_lease_ends_by_the_clock(clock: Clock) -> None:
    """Views G6, F9: the agent may be silent or stopped; the deadline that it told last is compared at every use."""
    mirror = ViewMirror()
    mirror.follow(item("view", view=difference(None, view(3, "a", "b"))))
    assert (mirror.standing.word, mirror.standing.leased) == ("stable", True)
    clock.at = 101.5
    assert (mirror.standing.word, mirror.standing.leased) == ("lost", False)
    mirror.follow(item("lease", leased=102.0))
    assert mirror.standing.leased


def test_settled_is_late_enough_stable_and_leased(clock: Clock) -> None:
    """Views G6: a valid lease, not changing, installed at least `settle` ago."""
    mirror = ViewMirror()
    mirror.follow(item("view", leased=110.0, settled=105.0, view=difference(None, view(3, "a"))))
    assert (mirror.standing.settled, mirror.standing.word) == (False, "stable")
    clock.at = 105.0
    assert (mirror.standing.settled, mirror.standing.word) == (True, "stable")
    mirror.follow(item("changing", IS_CHANGING, 110.0, 105.0, number=3))
    assert (mirror.standing.settled, mirror.standing.word) == (False, "changing")
    mirror.follow(item("lease", STABLE, 110.0, 105.0))
    clock.at = 110.0
    assert (mirror.standing.settled, mirror.standing.word) == (False, "lost")


def test_items_become_events(clock: Clock) -> None:
    """Views 9: the five events of a user, with what they carry; a lease alone is none."""
    mirror, first = ViewMirror(), view(3, "a", "b")
    assert mirror.follow(item("view", view=difference(None, first))) == [ViewChanged(first, (NodeId("a", 1), NodeId("b", 1)), ())]
    assert mirror.follow(item("lease", leased=103.0)) == []
    assert mirror.follow(item("changing", IS_CHANGING, number=3)) == [Changing(3)]
    assert mirror.follow(item("lost", IS_LOST, None, why="silence")) == [ViewLost("silence")]
    assert mirror.why == "silence"
    assert mirror.follow(item("restored")) == [ViewRestored(first)]
    assert mirror.follow(item("tripped", IS_LOST, None, why="by hand", peer=NodeId("b", 1))) == [ViewTripped(NodeId("b", 1), "by hand")]
    second = view(5, "a", "c")
    assert mirror.follow(item("view", view=difference(first, second))) == [ViewChanged(second, (NodeId("c", 1),), (NodeId("b", 1),))]
    assert mirror.standing.view == second


def test_a_view_that_is_there_already_is_a_change_to_a_new_reader(clock: Clock) -> None:
    """Views 10: `watch` tells the view, whether this client was the first to ask for it or not."""
    mirror, there = ViewMirror(), view(3, "a")
    assert mirror.follow(item("now", view=difference(None, there))) == [ViewChanged(there, (NodeId("a", 1),), ())]


def test_what_was_missed(clock: Clock) -> None:
    """Views 10: a process that did not read is told how many events it missed; the newest view is there."""
    mirror = ViewMirror()
    mirror.follow(item("view", view=difference(None, view(3, "a"))))
    assert mirror.follow(item("missed", view=difference(None, view(9, "a", "b")), missed=7)) == [EventsLost(7)]
    assert mirror.standing.view == view(9, "a", "b")


def test_another_agent(clock: Clock) -> None:
    """Views 10: after an agent's restart the state is lost until the next one takes part; its first view is whole."""
    mirror = ViewMirror()
    mirror.follow(item("view", view=difference(None, view(3, "a"))))
    mirror.forget()
    assert (mirror.standing.word, mirror.standing.view) == ("lost", None)
    assert mirror.follow(item("now", IS_LOST, None, None)) == []
    later = view(7, "a", "b")
    assert mirror.follow(item("view", view=difference(None, later)))[0] == ViewChanged(later, (NodeId("a", 1), NodeId("b", 1)), ())


def test_a_view_as_what_differs() -> None:
    """Views D14: of two members that change among many, two are told; where nothing is left of the old view all are."""
    names = [f"n{number:04}" for number in range(2000)]
    before, after = view(3, *names), view(4, *names[1:], "z")
    told = difference(before, after)
    assert (told.whole, [member.id.name for member in told.members], told.gone) == (False, ["z"], ("n0000",))
    assert advanced(before, told) == after
    assert difference(None, after) == NextView(after.id, after.servers, True, after.members, (), after.fleet)
    moved = view(5, "a", "b", attach=2)
    assert difference(view(4, "a", "b"), moved).whole
    assert advanced(view(4, "a", "b"), difference(view(4, "a", "b"), moved)) == moved


@pytest.mark.parametrize("reason", ["", "x" * 201, "two\nlines", 7, None])
def test_bad_reasons(reason: Any) -> None:
    """Bad input: one error that names the field."""
    with pytest.raises(ConfigError, match="reason: "):
        checked_reason(reason)
    assert checked_reason("b does not answer") == "b does not answer"
