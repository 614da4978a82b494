"""``holdfast lab replay``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.exits import FOUND
from holdfast.cli.lab.options import OUT, Json, OutFolder, PlanFile, ScenarioName, Seed, print_json
from holdfast.cli.progress import progress

if TYPE_CHECKING:
    from holdfast.lab.faults import Plan


def replay(
    name: ScenarioName,
    *,
    seed: Seed = 0,
    plan: PlanFile = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print every line, also of a run that goes well.")] = False,
    shrink: Annotated[bool, typer.Option("--shrink", help="Reduce the faults to those that matter, and write them to --out.")] = False,
    out: OutFolder = OUT,
    as_json: Json = False,
) -> None:
    """One seed again, with the trace (exit 0: it goes well, 1: the violation is there)."""
    from holdfast.cli.lab.outcome import facts, sentence
    from holdfast.lab import registry
    from holdfast.lab.faults import read_plan
    from holdfast.lab.replay import check_plan, replay_command
    from holdfast.lab.scenario import run, set_up
    from holdfast.lab.trace import Trace

    scenario = registry.find_scenario(name)
    setup = set_up(scenario, seed)
    faults = read_plan(plan) if plan is not None else setup.plan
    check_plan(faults, setup)
    lines = Trace() if trace else None
    outcome = run(scenario, seed, plan=faults, trace=lines or True)
    shrunk = _shrink(name, seed, faults, out) if shrink and not outcome.ok else None
    told = str(lines) if lines else outcome.trace
    if as_json:
        more = {"faults": len(faults.faults), "trace": told.splitlines(), "shrunk": str(shrunk or "")}
        print_json(facts(outcome, replay_command(name, seed, plan), **more))
    else:
        print(told, end="\n" if told else "")
        print(f"{sentence(outcome)} ({len(faults.faults)} faults)")
        print(replay_command(name, seed, plan))
        if shrunk is not None:
            print(f"{replay_command(name, seed, shrunk)}   # shrunk")
    raise typer.Exit(0 if outcome.ok else FOUND)


def _shrink(name: str, seed: int, faults: Plan, out: Path) -> Path:
    from holdfast.lab import registry
    from holdfast.lab.replay import SHRINK_TRIES, shrunk, write_plan

    with progress("shrinking", SHRINK_TRIES) as advance:
        small, _ = shrunk(registry.find_scenario(name), seed, faults, lambda: advance(1))
    return write_plan(name, seed, out, small)
