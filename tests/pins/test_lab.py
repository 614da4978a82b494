"""The lab: its scenarios, experiments and checkers by name, and what the first seeds of every scenario do, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import sizes
from tests.pins.conftest import FOLDER, Pinned
from tests.pins.doors import Checker, experiments, import_all, scenarios, subclasses, trace_hash

SEEDS = sizes.SEEDS  # of each scenario, 42 s of CPU for all; each tenth goes through encode, seal, open and decode
FEWER = {"views/long": 2}  # of what is another scenario for longer


@pytest.mark.parametrize("scenario", list(scenarios()))
def test_traces(scenario: str, pinned: Pinned) -> None:
    """Same seed, same trace: what does not change behaviour changes no line of any run. `holdfast lab replay` shows the lines. No invariant
    is violated, whatever is pinned: sweeps of the features begin behind these seeds."""
    lines = [trace_hash(scenario, seed) for seed in range(FEWER.get(scenario, SEEDS))]
    if not scenarios()[scenario].planted:
        assert [line for line in lines if len(line.split()) > len(("seed", "hash", "events"))] == []
    pinned(f"traces/{scenario.replace('/', '-')}", lines)


def test_every_golden_trace_has_its_scenario() -> None:
    """A scenario that is gone, or has another name, does not leave its hashes behind unread."""
    assert sorted(path.stem for path in (FOLDER / "traces").iterdir()) == sorted(name.replace("/", "-") for name in scenarios())


def names() -> Iterator[str]:
    yield from (f"scenario {each.name}{' (planted)' if each.planted else ''}: {each.title}" for each in scenarios().values())
    for experiment in experiments().values():
        parameters = " ".join(f"{name}={getattr(experiment.parameters(), name)!r}" for name in experiment.parameters.__struct_fields__)
        yield f"experiment {experiment.id} {experiment.name}: {experiment.title}; {parameters}"
    import_all()
    yield from sorted(f"checker {each.name}" for each in subclasses(Checker))


def test_names_of_the_lab(pinned: Pinned) -> None:
    """Foundation 6: pages, results files and replay lines name scenarios, experiments with their parameters, and checkers."""
    pinned("lab", names())
