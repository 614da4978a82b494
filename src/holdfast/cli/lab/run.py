"""``holdfast lab run``."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.exits import FOUND
from holdfast.cli.lab.options import OUT, Jobs, Json, Name, On, OutFolder, Seed, prepared, print_json, settings
from holdfast.cli.progress import progress
from holdfast.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.lab.experiment import Report
    from holdfast.lab.jobs import Where
    from holdfast.lab.scenario import Scenario


def run(
    name: Name,
    *,
    seed: Seed = 0,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Repetitions per cell, where an experiment has them.", metavar="N")] = None,
    jobs: Jobs = 1,
    on: On = "",
    pairs: Annotated[list[str] | None, typer.Option("--set", help="Another value for one parameter; repeat it.", metavar="K=V")] = None,
    out: OutFolder = OUT,
    as_json: Json = False,
) -> None:
    """Run an experiment and judge it (exit 0: pass, 1: miss), or one seed of a scenario (1: violation)."""
    from holdfast.lab import registry
    from holdfast.lab.jobs import Where
    from holdfast.lab.scenario import Scenario

    found = registry.find(name)
    chosen = settings(pairs or [])
    if isinstance(found, Scenario):
        if chosen or seeds is not None:
            raise ConfigError(
                f"{name} is a scenario: its seed draws all parameters; --set and --seeds are for experiments (see `lab sweep`)"
            )
        _run_scenario(found, name, seed, as_json=as_json)
        return
    if seeds is not None:
        if "seeds" in chosen:
            raise ConfigError(f"--seeds {seeds} with --set seeds={chosen['seeds']}: they are the same; give one of the two")
        chosen["seeds"] = str(seeds)
    report = perform_shown(name, chosen, seed, Where(jobs, on), out)
    if as_json:
        print_json(report)
    else:
        _tell(report, out)
    raise typer.Exit(0 if report.verdict == "pass" else FOUND)


def perform_shown(name: str, chosen: dict[str, str], seed: int, where: Where, out: Path) -> Report:
    """One experiment with a progress bar; its JSON and its picture are in ``out`` afterwards."""
    from holdfast.lab import registry
    from holdfast.lab.durations import expected_seconds
    from holdfast.lab.experiment import parameters_of
    from holdfast.lab.picture import check_pictures
    from holdfast.lab.report import perform, write

    experiment = registry.find_experiment(name)
    parameters = parameters_of(experiment, chosen)
    check_pictures()
    where.check()
    made = not out.exists()
    prepared(out)
    cells = len(experiment.cells(parameters, seed))
    try:
        with progress(experiment.id, cells, expected_seconds(experiment, cells, where.jobs) if not chosen else None) as advance:
            report = perform(name, parameters, seed, where, lambda: advance(1))
        write(experiment, report, out)
    except BaseException:
        if made:
            with suppress(OSError):  # Something is in it: it stays.
                out.rmdir()
        raise
    return report


def _run_scenario(scenario: Scenario, name: str, seed: int, *, as_json: bool) -> None:
    from holdfast.cli.lab.outcome import facts, sentence
    from holdfast.lab.replay import replay_command
    from holdfast.lab.scenario import run as run_scenario

    outcome, command = run_scenario(scenario, seed), replay_command(name, seed)
    if as_json:
        print_json(facts(outcome, command))
    else:
        print(f"{sentence(outcome)}\n{command}")
    raise typer.Exit(0 if outcome.ok else FOUND)


def _tell(report: Report, out: Path) -> None:
    from holdfast.lab.registry import file_name
    from holdfast.lab.report import compared

    print(f"{report.experiment}  {report.title}\n{report.source}")
    rows = [("", "paper", "ours"), *compared(report)]
    width, middle = (max(len(row[column]) for row in rows) for column in (0, 1))
    for what, paper, ours in rows:
        print(f"  {what:<{width}}  {paper:<{middle}}  {ours}".rstrip())
    print(f"criterion: {report.criterion}")
    for note in report.notes:
        print(f"note: {note}")
    print(f"{report.verdict} (seed {report.seed}); {out / file_name(report.experiment)}.json and .png")
