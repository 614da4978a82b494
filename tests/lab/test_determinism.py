"""Same seed, same bytes: in this process and in others, whatever the hash of a string is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.lab import registry
from tests.lab.paths import ROOT, environment
from tests.lab.trace_hash import trace_hash

SEEDS = (9, 12)  # seed 10 takes the road through the wire


@pytest.mark.parametrize("scenario", sorted(registry.scenarios()))
def test_the_same_bytes_in_every_process(scenario: str) -> None:
    """Determinism: full traces are equal to the byte across processes and PYTHONHASHSEEDs."""
    here = trace_hash(scenario, *SEEDS)
    command = [sys.executable, "-m", "tests.lab.trace_hash", scenario, *map(str, SEEDS)]
    others = [
        subprocess.Popen(command, cwd=ROOT, env=environment(PYTHONHASHSEED=seed), stdout=subprocess.PIPE, text=True) for seed in ("0", "42")
    ]
    assert {other.communicate(timeout=60)[0].strip() for other in others} == {here}


def test_another_seed_is_another_run() -> None:
    """The hash can tell runs apart."""
    assert trace_hash("detection/omega", 1, 1) != trace_hash("detection/omega", 2, 2)
