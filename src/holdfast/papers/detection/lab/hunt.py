"""The second half of the demo: a planted bug is found by a small sweep, and its many faults are reduced to the few that matter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from holdfast.lab.faults import Plan
from holdfast.lab.replay import replay_command, shrunk, write_plan
from holdfast.lab.scenario import Outcome, run, set_up
from holdfast.papers.detection.lab.scenarios.omega_doubled_ok import SCENARIO

SEEDS = 40  # about half of them fail; all 40 passing would be a wonder (1 in 10^12)
FAULTS_LEFT_MAX = 4  # what a reader can hold in mind
SHRUNK_MAX = 8  # failing seeds that are reduced until one gets as small as that


class Found(Struct, frozen=True):
    """A bug, as the lab hands it to a developer."""

    scenario: str
    seeds: int  # that were run
    failing: tuple[int, ...]
    seed: int
    faults: int  # before
    plan: Plan  # after
    violation: str
    trace: str
    file: str
    replay: str

    @property
    def ok(self) -> bool:
        return len(self.plan.faults) <= FAULTS_LEFT_MAX


def hunt(seed: int, folder: Path, progress: Callable[[], None] = lambda: None) -> Found | None:
    """Sweep the scenario with the planted bug, shrink failing seeds until one is small; None if the bug was not found."""
    seeds = range(seed * SEEDS, (seed + 1) * SEEDS)
    failing = tuple(each for each in seeds if not _run(each, progress).ok)
    best: tuple[int, Plan, Outcome] | None = None
    for each in failing[:SHRUNK_MAX]:
        plan, outcome = shrunk(SCENARIO, each, progress=progress)
        if best is None or len(plan.faults) < len(best[1].faults):
            best = each, plan, outcome
        if len(plan.faults) <= FAULTS_LEFT_MAX:
            break
    if best is None:
        return None
    return _found(seeds, failing, *best, folder)


def _run(seed: int, progress: Callable[[], None]) -> Outcome:
    progress()
    return run(SCENARIO, seed)


def _found(seeds: range, failing: tuple[int, ...], seed: int, plan: Plan, outcome: Outcome, folder: Path) -> Found:
    file = write_plan(SCENARIO, seed, folder, plan)
    return Found(
        scenario=SCENARIO.name,
        seeds=len(seeds),
        failing=failing,
        seed=seed,
        faults=len(set_up(SCENARIO, seed).plan.faults),
        plan=plan,
        violation=outcome.violation,
        trace=outcome.trace,
        file=str(file),
        replay=replay_command(SCENARIO, seed, file),
    )
