"""``holdfast lab sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.exits import FOUND, INTERRUPTED
from holdfast.cli.lab.options import OUT, Jobs, Json, On, print_json, seed_range
from holdfast.cli.progress import progress
from holdfast.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.lab.jobs import Where
    from holdfast.lab.results import Results
    from holdfast.lab.sweep import Summary

SEEDS_DEFAULT = "200"  # a few seconds of most scenarios
RESULTS = OUT / "sweeps.jsonl"


def sweep(
    name: Annotated[
        str | None, typer.Argument(help="A scenario, or a .py file that declares one; none with --all.", metavar="SCENARIO")
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Every scenario, except those with a planted bug.")] = False,
    seeds: Annotated[str, typer.Option("--seeds", help="N: seeds 0 to N-1; A:B: seeds A to B-1.", metavar="N|A:B")] = SEEDS_DEFAULT,
    jobs: Jobs = 1,
    on: On = "",
    out: Annotated[Path, typer.Option("--out", help="Results file; every finished chunk adds a line.", metavar="FILE")] = RESULTS,
    resume: Annotated[bool, typer.Option("--resume", help="Skip seeds that the results file has of this commit.")] = False,
    shrink: Annotated[bool, typer.Option("--shrink", help="Reduce the faults of each failing seed to those that matter.")] = False,
    as_json: Json = False,
) -> None:
    """Many seeds of a scenario (exit 0: all passed, 1: violations). An interrupted sweep goes on with --resume."""
    from holdfast.lab.jobs import Where
    from holdfast.lab.results import Results

    names = _names(name, everything=everything)
    chosen, where = seed_range(seeds), Where(jobs, on)
    where.check()
    results = Results(out)
    try:
        summaries = [_one(each, chosen, where, results, resume=resume, shrink=shrink, quiet=as_json) for each in names]
    except KeyboardInterrupt:
        print(f"interrupted; what was finished is in {out}, and --resume goes on from there", flush=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json({"verdict": "pass" if all(each.ok for each in summaries) else "violation", "out": str(out), "sweeps": summaries})
    raise typer.Exit(0 if all(each.ok for each in summaries) else FOUND)


def _names(name: str | None, *, everything: bool) -> list[str]:
    from holdfast.lab import registry

    if (name is None) != everything:
        raise ConfigError("which scenario? Give one name, or --all; `holdfast lab list` shows all of them")
    if name is not None:
        registry.find_scenario(name)
        return [name]
    return [each.name for each in registry.scenarios().values() if not each.planted]


def _one(name: str, seeds: range, where: Where, results: Results, *, resume: bool, shrink: bool, quiet: bool) -> Summary:
    from holdfast.lab.sweep import collect

    shrink_into = (results.path or OUT).parent if shrink else None
    with progress(name, len(seeds)) as advance:
        summary = collect(
            name,
            seeds,
            where=where,
            results=results,
            resume=resume,
            shrink_into=shrink_into,
            progress=lambda chunk: advance(chunk.last - chunk.first + 1),
        )
    if not quiet:
        _tell(summary)
    return summary


def _tell(summary: Summary) -> None:
    skipped = f" ({summary.skipped} known from before)" if summary.skipped else ""
    speed = f", {summary.events} events in {summary.seconds:.1f} s" if summary.events else ""
    print(f"{summary.scenario} at {summary.commit}: {summary.passed} passed, {len(summary.failed)} failed{skipped}{speed}")
    for failure in summary.failed:
        print(f"  seed {failure.seed}: {failure.violation}")
        print(f"    {failure.replay}")
        if failure.plan:
            print(f"    {failure.replay} --plan {failure.plan}   # shrunk")
