"""What the demo shows: promises with bounds that are derived, and a planted bug that is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.lab.faults import read_plan
from holdfast.lab.scenario import run
from holdfast.papers.detection.lab.hunt import FAULTS_LEFT_MAX, hunt
from holdfast.papers.detection.lab.scenarios.omega_doubled_ok import SCENARIO
from holdfast.papers.detection.lab.story import ACTS, DEAD, NAMES, NOBODY, STOPPED, tell


@pytest.mark.parametrize("seed", range(12))
def test_every_promise_is_kept(seed: int) -> None:
    """Omega: each act ends in agreement within its bound; the sums are explained beside the bounds."""
    story = tell(seed)
    assert [kept.what for kept in story.kept if not kept.ok] == []
    assert [kept.leader for kept in story.kept] == ["a", "b", "b", "d", "d", "e", "e"]


def test_bounds_are_tight() -> None:
    """A bound that nothing comes near proves nothing: over some seeds the worst takeover uses most of it."""
    crash = [tell(seed).kept[1] for seed in range(30)]
    assert max(kept.took / kept.bound for kept in crash if kept.took is not None) > 0.85


def test_the_story_shows_what_happened() -> None:
    """Lines: whom each member names at each time, and when it was dead or stopped."""
    story = tell(1)
    assert [story.at(name, 3.9) for name in NAMES] == ["a"] * 7
    assert story.at("a", 8.0) == DEAD
    assert {story.at(name, 18.9) for name in "abc"} == {"b"}
    assert {story.at(name, 18.9) for name in "defg"} == {"d"}
    assert story.at("d", 30.0) == STOPPED
    assert [label for _, label in story.acts] == [act.label for act in ACTS]
    assert story.at("a", 0.0) == NOBODY


def test_the_story_follows_from_its_seed() -> None:
    """Reproducible from the printed seed."""
    assert tell(2) == tell(2)
    assert tell(2).kept != tell(3).kept


def test_the_planted_bug_is_found_and_shrunk(tmp_path: Path) -> None:
    """A small sweep finds it, few faults are left of many, and the plan file replays the violation."""
    found = hunt(1, tmp_path)
    assert found is not None
    assert found.ok
    assert found.faults > 20
    assert len(found.plan.faults) <= FAULTS_LEFT_MAX
    assert run(SCENARIO, found.seed, plan=read_plan(Path(found.file))).violation == found.violation


def test_without_the_bug_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the same seeds and faults with the true Omega violate nothing."""
    monkeypatch.setattr(type(SCENARIO), "make", type(SCENARIO).__mro__[1].make)  # type: ignore[attr-defined]
    assert hunt(1, tmp_path) is None
