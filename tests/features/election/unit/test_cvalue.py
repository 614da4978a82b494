"""The value of c and f.  Spec: election 5.1, 4, D2, D15."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.features.election.protocol.facts import CBound, CBoundUnusable
from tests.features.election.stand import NAME, Stand

MANY = [f"p{number}" for number in range(39)]  # with m0: 40 members


def stand(others: list[str] = MANY, **changes: Any) -> Stand:
    return Stand(*others, **{"c": None, "f": None, **changes}).stand().quiet()


def c_f(found: Stand) -> tuple[int, int]:
    state = found.machine.state(NAME)
    assert state is not None
    return state.c, state.f


def test_nothing_measured_is_a_tenth() -> None:
    """5.1: ceil(0.1 n); f: max(1, suspects, ceil(0.05 n))."""
    assert c_f(stand()) == (4, 2)


@pytest.mark.parametrize("restless, observed, expected", [(False, 1000.0, 9), (True, 1000.0, 16), (False, 100.0, 16)])
def test_what_is_measured_is_taken_larger(restless: bool, observed: float, expected: int) -> None:
    """5.1: ceil(k c_measured) + 1; k is 1.5, and 3 while it is turbulent or less than one window was observed."""
    found = stand()
    found.lists.c, found.lists.restless, found.lists.observed = 5, restless, observed
    assert c_f(found)[0] == expected


def test_a_young_member_asks_all() -> None:
    """5.1: in the first bucket after the own start want = n-1, clamped to n-1-f."""
    found = stand()
    found.lists.observed = 10.0
    assert c_f(found) == (37, 2)


def test_suspects_count_as_down() -> None:
    """Section 4: f is at least the number of suspects in the own list."""
    found = stand()
    for name in MANY[:5]:
        found.lists.suspects[name] = None
    found.lists.bumps += 1
    assert c_f(found) == (4, 5)


@pytest.mark.parametrize("n, expected", [(1, (0, 1)), (2, (0, 1)), (3, (1, 1)), (4, (1, 1))])
def test_small_groups(n: int, expected: tuple[int, int]) -> None:
    """D15: c+1 answers can come although f are down: c is at most n-1-f."""
    assert c_f(stand(MANY[: n - 1])) == expected


def test_a_configured_c_is_clamped() -> None:
    """5.1: an integer goes through the same clamp; what was wanted is told."""
    found = stand(MANY[:4], c=10, f=1)
    assert c_f(found) == (3, 1)
    found.begin()
    assert [(fact.want, fact.most) for fact in found.facts(CBoundUnusable)] == [(10, 3)]  # type: ignore[attr-defined]


def test_c_is_told_when_it_changed_by_a_quarter() -> None:
    """5.1: CBound; the second election with the same c says nothing."""
    found = stand()
    found.begin()
    found.begin()
    assert [fact.c for fact in found.facts(CBound)] == [4]  # type: ignore[attr-defined]
    found.lists.c = 5
    found.begin()
    assert [fact.c for fact in found.facts(CBound)] == [4, 9]  # type: ignore[attr-defined]


def test_so_many_are_asked() -> None:
    """5.3: c+f others, because the own list is an answer (D3)."""
    from holdfast.features.election.protocol.messages import Query

    found = stand()
    found.begin()
    assert len(found.host.take(Query)) == 4 + 2
