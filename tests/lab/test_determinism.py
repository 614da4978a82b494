"""Same seed, same bytes: in this process and in others, whatever the hash of a string is there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast.lab import registry
from tests.lab.paths import ROOT, environment
from tests.lab.trace_hash import trace_hash

SEEDS = (9, 10)  # seed 10 takes the road through the wire, as seed 0 does
FIRST = (0, 1)  # where fewer are pinned
HASH_SEEDS = ("0", "42")
PINNED = ROOT / "tests" / "pins" / "golden" / "traces"


@pytest.fixture(scope="module")
def others() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that answer the name of a scenario with its hash; an interpreter with the whole lab is slow to start."""
    command = [sys.executable, "-m", "tests.lab.trace_hash"]
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
    """Determinism: full traces are equal to the byte across processes and PYTHONHASHSEEDs. The first process is the one that pinned them:
    tests/pins compares them with what this one makes."""
    lines = (PINNED / f"{scenario.replace('/', '-')}.txt").read_text(encoding="utf-8").splitlines()
    seeds = SEEDS if len(lines) > max(SEEDS) else FIRST
    pinned = " | ".join(lines[seed] for seed in seeds)
    for other in others:
        assert other.stdin is not None
        other.stdin.write(f"{scenario} {' '.join(map(str, seeds))}\n")
    assert [other.stdout.readline().strip() for other in others if other.stdout is not None] == [pinned, pinned]


def test_another_seed_is_another_run() -> None:
    """The hash can tell runs apart."""
    assert trace_hash("detection/omega", 1).split()[1] != trace_hash("detection/omega", 2).split()[1]
