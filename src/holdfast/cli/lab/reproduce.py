"""``holdfast lab reproduce``."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from holdfast.cli.exits import FOUND
from holdfast.cli.lab.options import OUT, Jobs, Json, On, OutFolder, Seed, print_json
from holdfast.cli.lab.run import perform_shown


def _papers() -> tuple[str, ...]:
    """Nothing that ships imports a paper: their list is loaded by name."""
    names: tuple[str, ...] = import_module("holdfast.papers").PAPERS
    return names


def reproduce(
    folder: Annotated[str, typer.Argument(help=f"{', '.join(_papers())}, ...: all experiments of one paper.", metavar="FOLDER")],
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Reduced sizes: enough for a look, not for a verdict.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Run nothing: the page of the results that are in --out.")] = False,
    seed: Seed = 0,
    jobs: Jobs = 1,
    on: On = "",
    out: OutFolder = OUT,
    as_json: Json = False,
) -> None:
    """Every experiment of a folder, and one page of the paper's values beside ours (exit 1: some criterion was missed). Results of other
    experiments of this folder that are in --out, for example of real processes, come last on the page."""
    from holdfast.errors import ConfigError
    from holdfast.lab import registry
    from holdfast.lab.jobs import Where
    from holdfast.lab.report import left_in, write_page

    where, reports = Where(jobs, on), []
    experiments = [experiment for experiment in registry.folder(folder) if not experiment.recorded]
    others = left_in(out, folder, without=() if page else {experiment.id for experiment in experiments})
    if page and not others:
        raise ConfigError(f"--page: {out} has no results of {folder}; run some of its experiments first")
    for experiment in () if page else experiments:
        report = perform_shown(experiment.id, dict(experiment.quick) if quick else {}, seed, where, out)
        reports.append(report)
        if not as_json:
            print(f"{report.verdict}  {report.experiment}  {report.title}", flush=True)
        # After each of them: a folder may take an hour, and a user who interrupts it keeps what is done.
        pages = write_page(folder, [*reports, *others], out, note=_note(len(reports), len(experiments), quick=quick))
    if page:
        reports = others
        known = len({report.experiment for report in others} & {experiment.id for experiment in experiments})
        pages = write_page(folder, reports, out, note=_note(known, len(experiments), quick=False))
    verdict = "pass" if all(report.verdict == "pass" for report in reports) else "miss"
    if as_json:
        print_json({"folder": folder, "quick": quick, "verdict": verdict, "pages": [str(page) for page in pages], "experiments": reports})
    else:
        print(f"{verdict}; {' and '.join(str(page) for page in pages)}")
    raise typer.Exit(0 if verdict == "pass" else FOUND)


def _note(done: int, planned: int, *, quick: bool) -> str:
    """What the page is not, if it is less than the whole folder at full size."""
    missing = f"{done} of {planned} experiments so far." if done < planned else ""
    return " ".join(filter(None, [missing, "Reduced sizes (--quick): enough for a look, not for a verdict." if quick else ""]))
