"""One line for each run of a scenario, with a hash of its whole trace. A program, too: it reads "SCENARIO SEED SEED" from stdin."""

from __future__ import annotations

import sys
from hashlib import blake2b

from holdfast.lab.registry import find_scenario
from holdfast.lab.scenario import run
from holdfast.lab.trace import Trace

HASH_BYTES = 16


def trace_hash(scenario: str, seed: int) -> str:
    """Of every line of a run, of its number of events and of what was violated. A line names classes and fields, and no module."""
    trace, state = Trace(), blake2b(digest_size=HASH_BYTES)
    outcome = run(find_scenario(scenario), seed, trace=trace)
    for line in trace.lines():
        state.update(f"{line}\n".encode())
    state.update(f"{outcome.events} {outcome.violation}\n".encode())
    return f"{seed} {state.hexdigest()} {outcome.events} {outcome.violation}".rstrip()


if __name__ == "__main__":
    for line in sys.stdin:
        scenario, *seeds = line.split()
        print(" | ".join(trace_hash(scenario, int(seed)) for seed in seeds), flush=True)  # noqa: T201 - its parent reads it
