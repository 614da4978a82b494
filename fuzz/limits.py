"""Fuzz target of limits: ``python -m fuzz.limits --inputs N --seed S``.  Spec: limits 7, "one machine against a lying environment".

One exact limiter and one strict one, each against an environment that plays breaker, peers, workers, network and clock; two ledgers with a
network between them; one bucket. After every step an oracle compares, which adds up no fleet: what one member claims is enough. The same
seed gives the same runs; what is bad is named with the line that shows it again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TextIO

from msgspec import Struct

from fuzz.limit_bucket import BucketRun
from fuzz.limit_ledger import LedgerRun
from fuzz.limit_member import MemberRun
from fuzz.limit_strict import StrictRun


class Run(Protocol):
    """One history of what is under test."""

    counts: Counter[str]

    def play(self) -> None:
        """All steps; raises when a rule is broken."""


TARGETS: Mapping[str, Callable[[int, Callable[[str], None] | None], Run]] = {
    "exact": MemberRun,
    "strict": StrictRun,
    "ledger": LedgerRun,
    "bucket": BucketRun,
}
PROGRESS_RUNS = 1000
SHOWN_MAX = 10  # bad runs that are told; all are counted


class Outcome(Struct):
    """Of all runs."""

    runs: int
    bad: int
    counts: Counter[str]
    failures: list[str]

    def as_dict(self) -> dict[str, object]:
        """How far the runs came.

        ``raised``: members that took their 1/n again after ``settle``; ``lapsed``: members that took it without a view;
        ``provisional``: instances that were learnt from a peer.
        """
        named = {name: self.counts[name] for name in ("raised", "lapsed", "provisional")}
        others = {name.replace(" ", "_"): count for name, count in sorted(self.counts.items()) if name not in named}
        return {"runs": self.runs, "bad": self.bad, **named, **others, "failures": self.failures}


def run(
    inputs: int, seed: int, *, targets: Sequence[str] = tuple(TARGETS), progress: TextIO | None = None, trace: TextIO | None = None
) -> Outcome:
    """So many runs of each target. Run number i has the seed ``seed + i``."""
    outcome = Outcome(0, 0, Counter(), [])
    for name in targets:
        for number in range(seed, seed + inputs):
            _play(name, number, outcome, trace)
            if progress is not None and outcome.runs % PROGRESS_RUNS == 0:
                progress.write(f"{outcome.runs} of {inputs * len(targets)} runs, {outcome.bad} bad\n")
                progress.flush()
    return outcome


def _play(name: str, seed: int, outcome: Outcome, trace: TextIO | None) -> None:
    outcome.runs += 1
    try:
        one = TARGETS[name](seed, None if trace is None else lambda line: print(line[:500], file=trace))
        one.play()
    except Exception as error:  # a complaint of the oracle, or whatever the code under test raises
        outcome.bad += 1
        if len(outcome.failures) < SHOWN_MAX:
            again = f"python -m fuzz.limits --only {name} --inputs 1 --seed {seed} --trace"
            outcome.failures.append(f"{name}, seed {seed}: {type(error).__name__}: {error}; replay: {again}")
    else:
        outcome.counts.update(one.counts)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.limits", description="Play everything but one part of limits against it.")
    parser.add_argument("--inputs", type=int, default=1000, help="runs of each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(TARGETS), help="one target")
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--trace", action="store_true", help="print every step to stderr")
    options = parser.parse_args(arguments)
    targets = tuple(TARGETS) if options.only is None else (options.only,)
    outcome = run(options.inputs, options.seed, targets=targets, progress=sys.stderr, trace=sys.stderr if options.trace else None)
    if options.json:
        print(json.dumps(outcome.as_dict()))
    else:
        for line in outcome.failures:
            print(f"FAILED: {line}")
        found = {name: count for name, count in outcome.as_dict().items() if name != "failures"}
        print(", ".join(f"{count} {name}" for name, count in found.items()))
    return 1 if outcome.bad else 0


if __name__ == "__main__":
    sys.exit(main())
