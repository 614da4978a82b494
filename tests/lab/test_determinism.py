"""Same seed, same bytes: in this process and in others, whatever the hash of a string is there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast.lab import registry
from tests.lab.paths import ROOT, environment
from tests.lab.trace_hash import trace_hash

SEEDS = (9, 10)  # seed 10 takes the road through the wire
HASH_SEEDS = ("0", "42")


@pytest.fixture(scope="module")
def others() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that answer the name of a scenario with its hash; an interpreter with the whole lab is slow to start."""
    command = [sys.executable, "-m", "tests.lab.trace_hash", *map(str, SEEDS)]
    started = [
        subprocess.Popen(
            command, cwd=ROOT, env=environment(PYTHONHASHSEED=seed), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        for seed in HASH_SEEDS
    ]
    yield started
    for process in started:
        process.communicate(timeout=60)


@pytest.mark.parametrize("scenario", sorted(registry.scenarios()))
def test_the_same_bytes_in_every_process(scenario: str, others: list[subprocess.Popen[str]]) -> None:
    """Determinism: full traces are equal to the byte across processes and PYTHONHASHSEEDs."""
    for other in others:
        assert other.stdin is not None
        other.stdin.write(f"{scenario}\n")
    here = trace_hash(scenario, *SEEDS)
    assert [other.stdout.readline().strip() for other in others if other.stdout is not None] == [here, here]


def test_another_seed_is_another_run() -> None:
    """The hash can tell runs apart."""
    assert trace_hash("detection/omega", 1, 1) != trace_hash("detection/omega", 2, 2)
