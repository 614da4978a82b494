"""One seed again: the same bytes, this time with a trace; and the few faults of its plan that matter.  docs/lab.md"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from holdfast.errors import ConfigError
from holdfast.lab import registry
from holdfast.lab.faults import Cut, Fault, Hole, Partition, Plan, Weather
from holdfast.lab.scenario import Outcome, Scenario, Setup, run, set_up
from holdfast.lab.shrink import shrink

SHRINK_TRIES = 400  # runs; 40 faults need about 100, and each takes as long as the failure itself

Progress = Callable[[], None]


def replay_command(target: Scenario | str, seed: int, plan: Path | None = None) -> str:
    """The one line that shows a run again."""
    name = target if isinstance(target, str) else target.name
    return f"holdfast lab replay {name} --seed {seed}" + (f" --plan {plan}" if plan is not None else "")


def check_plan(plan: Plan, setup: Setup) -> None:
    """A plan is written for the members and the length of one seed's run; another one would quietly do nothing."""
    for number, fault in enumerate(plan.faults, 1):
        if not 0 <= fault.at <= setup.seconds:
            raise ConfigError(f"plan: fault {number}: at {fault.at:g} s lies outside the run; accepted: 0 to {setup.seconds:g}")
        for name in _touched(fault):
            if name not in setup.names:
                raise ConfigError(f"plan: fault {number}: no node is called {name!r} in this seed; accepted: {', '.join(setup.names)}")


def shrunk(scenario: Scenario, seed: int, plan: Plan | None = None, progress: Progress = lambda: None) -> tuple[Plan, Outcome]:
    """The smallest plan found that violates the same invariant, and what it does."""
    whole = set_up(scenario, seed).plan if plan is None else plan
    invariant = _invariant(run(scenario, seed, plan=whole))
    if not invariant:
        raise ConfigError(
            f"shrink: seed {seed} of {scenario.name} violates nothing with these {len(whole.faults)} faults; "
            "accepted: a run that fails, every time, by its seed and its plan alone"
        )

    def fails(candidate: Plan) -> bool:
        progress()
        return _invariant(run(scenario, seed, plan=candidate)) == invariant

    small = shrink(whole, fails, tries=SHRINK_TRIES)
    return small, run(scenario, seed, plan=small, trace=True)


def write_plan(target: Scenario | str, seed: int, folder: Path, plan: Plan) -> Path:
    name = target if isinstance(target, str) else target.name
    path = folder / f"{registry.file_name(name)}-{seed}.plan.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(plan.to_json())
    return path


def _invariant(outcome: Outcome) -> str:
    return outcome.violation.partition(":")[0]


def _touched(fault: Fault) -> tuple[str, ...]:
    match fault:
        case Cut() | Hole():
            return (*fault.source, *fault.target)
        case Partition():
            return tuple(name for side in fault.sides for name in side)
        case Weather():
            return ()
        case _:
            return (fault.node,)
