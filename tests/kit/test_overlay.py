"""The overlay's seam: what machines find of views that come and go.  Spec: views D30, D31."""

from __future__ import annotations

import pytest

from holdfast.host import Address, Carried, Message, NodeId
from holdfast.kit.overlay import Overlay
from tests.support.fake_views import FakeViews

A, B = NodeId("a", 1), NodeId("b", 7)


class Word(Message, frozen=True, tag=250):
    """Anything."""


@pytest.fixture
def overlay() -> Overlay:
    return Overlay()


def test_without_views_it_finds_and_carries_nothing(overlay: Overlay) -> None:
    """Views D31: an agent that takes part in no view; ``done`` runs all the same."""
    became: list[Carried] = []
    overlay.carry(B, Word(), became.append)
    assert (overlay.view, overlay.find("b"), overlay.reaches(B), became) == (None, None, False, [Carried.NOT_IN_VIEW])


def test_it_asks_the_views_at_every_use(overlay: Overlay) -> None:
    """Views D30: views begin, are lost, change and end while machines hold the same overlay."""
    views = FakeViews()
    overlay.views = views
    assert not overlay.reaches(B)
    views.install(A, B)
    assert overlay.reaches(B)
    assert overlay.view is views.view
    views.install(A)
    assert not overlay.reaches(B)
    overlay.views = None
    assert overlay.find("a") is None


def test_a_name_is_found_and_a_life_is_reached(overlay: Overlay) -> None:
    """F1: the view has one life of each name; another life of that name is not reached."""
    overlay.views = FakeViews(A, B)
    found = overlay.find("b")
    assert found is not None
    assert (found.id, found.address) == (B, Address("b-in-view", 1))
    assert overlay.find("c") is None
    assert [overlay.reaches(life) for life in (B, NodeId("b", 6), NodeId("c", 1))] == [True, False, False]


def test_it_carries_by_the_views(overlay: Overlay) -> None:
    """Views 5.7: what is given to it is given to them, with the way back."""
    views = FakeViews()
    overlay.views = views
    became: list[Carried] = []
    overlay.carry(B, Word(), became.append)
    assert [(to, message) for to, message, _ in views.carried] == [(B, Word())]
    views.end(Carried.TRIPPED)
    assert became == [Carried.TRIPPED]
