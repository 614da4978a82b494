"""Prints one hash over the full traces of some seeds for every scenario that is named on stdin; run in other processes to compare them."""

from __future__ import annotations

import sys
from hashlib import sha256

from holdfast.lab import registry
from holdfast.lab.scenario import run
from holdfast.lab.trace import Trace


def trace_hash(scenario: str, first: int, last: int) -> str:
    state = sha256()
    for seed in range(first, last + 1):
        trace = Trace()
        outcome = run(registry.find_scenario(scenario), seed, trace=trace)
        state.update(f"{trace}\n{outcome.events} {outcome.violation}\n".encode())
    return state.hexdigest()


if __name__ == "__main__":
    for line in sys.stdin:
        print(trace_hash(line.strip(), int(sys.argv[1]), int(sys.argv[2])), flush=True)  # noqa: T201 - its parent reads it
