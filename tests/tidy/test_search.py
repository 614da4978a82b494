"""The search for a seed that shows that a rule is missing: the known one in `make test`, all of them in `make test-all`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.own_scenario import SCENARIO
from tests.support.search import Search

FIRST, NAME = 2, "test_it.py::test_it"  # seeds 2, 7, 12, ... of this scenario fail


def known(folder: Path, seed: int | None) -> Path:
    file = folder / "known_seeds.json"
    file.write_text(json.dumps({} if seed is None else {NAME: seed}))
    return file


def test_the_known_seed_alone_is_run(tmp_path: Path) -> None:
    """H206: `make test` runs the seed that is known, and fails with the way to find another where it shows nothing."""
    assert Search(NAME, known(tmp_path, 7), rewrite=False, hunt=False)(SCENARIO, 10) == "settled"
    for seed, said in ((3, "seed 3"), (None, "seed 0")):
        with pytest.raises(AssertionError, match=rf"nothing fails in {said} without this rule; look for another: pytest --rewrite"):
            Search(NAME, known(tmp_path, seed), rewrite=False, hunt=False)(SCENARIO, 10)


def test_the_hunt_begins_at_0(tmp_path: Path) -> None:
    """H206: `make test-all` shows that random runs find it, not only that one of them does."""
    assert Search(NAME, known(tmp_path, 3), rewrite=False, hunt=True)(SCENARIO, 10) == "settled"
    with pytest.raises(AssertionError, match=r"nothing fails in 2 seeds without this rule$"):
        Search(NAME, known(tmp_path, 7), rewrite=False, hunt=True)(SCENARIO, FIRST)


def test_what_was_found_is_noted(tmp_path: Path) -> None:
    """``--rewrite`` notes the first seed that fails, in place of another."""
    file = known(tmp_path, 7)
    Search(NAME, file, rewrite=True, hunt=False)(SCENARIO, 10)
    assert json.loads(file.read_text()) == {NAME: FIRST}
