"""The lab: its scenarios, experiments and checkers by name, and what the first seeds of every scenario do, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import pytest

from tests import sizes
from tests.pins.conftest import FOLDER, Pinned
from tests.pins.doors import Checker, Trace, experiments, import_all, run, scenarios, subclasses

SEEDS = sizes.SEEDS  # of each scenario, 42 s of CPU for all; each tenth goes through encode, seal, open and decode
FEWER = {"views/long": 2}  # of what is another scenario for longer
HASH_BYTES = 16


def trace_hash(scenario: str, seed: int) -> str:
    """Of every line of a run, of its number of events and of what was violated. A line names classes and fields, and no module."""
    trace, state = Trace(), blake2b(digest_size=HASH_BYTES)
    outcome = run(scenarios()[scenario], seed, trace=trace)
    for line in trace.lines():
        state.update(f"{line}\n".encode())
    state.update(f"{outcome.events} {outcome.violation}\n".encode())
    return f"{seed} {state.hexdigest()} {outcome.events} {outcome.violation}".rstrip()


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
