"""One page per folder of experiments: the paper's values beside ours, with the pictures.  docs/lab.md

The page is Markdown for a repository and HTML, in one file with its pictures inside, for all other readers.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from holdfast.lab import registry
from holdfast.lab.experiment import Cell, Experiment, Measured, Parameters, Report, conduct
from holdfast.lab.jobs import HERE, Done, Where, spread
from holdfast.lab.picture import save_picture
from holdfast.lab.source import commit

ROWS_MAX = 200  # of one table; a figure says more than the rest of them would
NUMBER_DIGITS = 6

CSS = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1f2933; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
img { max-width: 100%; border: 1px solid #e4e7eb; }
table { border-collapse: collapse; margin: 1rem 0; } td, th { padding: .2rem .8rem; border-bottom: 1px solid #e4e7eb; text-align: left; }
.pass { color: #1b7f4b; } .miss { color: #b42318; } .source { color: #7b8794; }
"""


def perform(target: str, parameters: Parameters, seed: int, where: Where = HERE, done: Done = lambda: None) -> Report:
    """Run an experiment by a name that workers find it by; ``done`` is called after each cell."""
    experiment = registry.find_experiment(target)

    def there(_: object, cells: Sequence[Cell]) -> Iterator[Measured]:
        # Workers look the experiment up by name: a bound method would have to be pickled with a module they cannot import.
        return spread(partial(_measure, target), cells, where, done)

    return conduct(experiment, parameters, seed, there, commit())


def write(experiment: Experiment[Any], report: Report, folder: Path) -> tuple[Path, Path]:
    """``<folder>-<id>.json`` and ``.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = registry.file_name(report.experiment)
    json, png = folder / f"{stem}.json", folder / f"{stem}.png"
    json.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    save_picture(experiment, report, png)
    return json, png


def left_in(out: Path, folder: str, *, without: Collection[str] = ()) -> list[Report]:
    """Results of this folder that earlier runs have left there: of experiments that need real processes, or were run one by one."""
    found = []
    for path in out.glob(f"{folder}-*.json"):
        try:
            report = msgspec.json.decode(path.read_bytes(), type=Report)
        except (msgspec.DecodeError, OSError):
            continue  # Not a result of ours.
        if report.experiment not in without and path.stem == registry.file_name(report.experiment) and path.with_suffix(".png").exists():
            found.append(report)
    return sorted(found, key=lambda report: registry.natural(report.experiment))


def write_page(name: str, reports: Sequence[Report], folder: Path, *, note: str = "") -> tuple[Path, Path]:
    """``<name>.md`` and ``<name>.html`` beside the pictures. ``note`` is what a reader must know before the first figure."""
    markdown, html = folder / f"{name}.md", folder / f"{name}.html"
    markdown.write_text(_markdown(name, reports, note), encoding="utf-8")
    html.write_text(_html(name, reports, folder, note), encoding="utf-8")
    return markdown, html


def compared(report: Report) -> list[tuple[str, str, str]]:
    """Rows of (what, paper, ours): everything measured, and what was expected under the same name."""
    ours, paper = dict(_flat(report.measured)), dict(_flat(report.expected))
    return [(name, paper.get(name, ""), ours.get(name, "")) for name in dict.fromkeys([*ours, *paper])][:ROWS_MAX]


def _measure(target: str, cell: Cell) -> Measured:
    return registry.find_experiment(target).measure(cell)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _shown(value)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.{NUMBER_DIGITS}g}"
    if isinstance(value, (list, tuple)) and any(isinstance(each, Mapping) for each in value):
        return f"{len(value)} rows, in the JSON file"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value))
    return str(value)


def _parameters(report: Report) -> str:
    return ", ".join(f"{name} = {_shown(value)}" for name, value in report.parameters.items())


def _markdown(name: str, reports: Sequence[Report], note: str) -> str:
    lines = [f"# {name}: the paper and ours", "", *([note, ""] if note else []), "| experiment | claim | verdict |", "|---|---|---|"]
    lines += [f"| {report.experiment} | {_cell(report.title)} | {report.verdict} |" for report in reports]
    for report in reports:
        lines += ["", f"## {report.experiment} {report.title}", "", f"{report.source}. Criterion: {report.criterion}", ""]
        lines += [f"![{report.title}]({registry.file_name(report.experiment)}.png)", "", "| | paper | ours |", "|---|---|---|"]
        lines += [f"| {_cell(what)} | {_cell(paper)} | {_cell(ours)} |" for what, paper, ours in compared(report)]
        lines += ["", f"**{report.verdict}** (seed {report.seed}, {report.version}; {_parameters(report)})"]
        lines += ["", *(f"- {each}" for each in report.notes)] if report.notes else []
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _html(name: str, reports: Sequence[Report], folder: Path, note: str) -> str:
    rows = "".join(
        f'<tr><td><a href="#{escape(r.experiment)}">{escape(r.experiment)}</a></td><td>{escape(r.title)}</td>'
        f'<td class="{r.verdict}">{r.verdict}</td></tr>'
        for r in reports
    )
    body = "".join(_html_section(report, folder) for report in reports)
    title = escape(f"{name}: the paper and ours")
    warning = f"<p>{escape(note)}</p>" if note else ""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{CSS}</style>'
        f"<h1>{title}</h1>{warning}<table><tr><th>experiment</th><th>claim</th><th>verdict</th></tr>{rows}</table>{body}</html>\n"
    )


def _html_section(report: Report, folder: Path) -> str:
    picture = b64encode((folder / f"{registry.file_name(report.experiment)}.png").read_bytes()).decode()
    rows = "".join(f"<tr><td>{escape(w)}</td><td>{escape(p)}</td><td>{escape(o)}</td></tr>" for w, p, o in compared(report))
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    return (
        f'<h2 id="{escape(report.experiment)}">{escape(report.experiment)} {escape(report.title)} '
        f'<span class="{report.verdict}">{report.verdict}</span></h2>'
        f'<p class="source">{escape(report.source)}. Criterion: {escape(report.criterion)}.<br>Seed {report.seed}, '
        f"{escape(report.version)}; {escape(_parameters(report))}.</p>"
        f'<img alt="{escape(report.title)}" src="data:image/png;base64,{picture}">'
        f"<table><tr><th></th><th>paper</th><th>ours</th></tr>{rows}</table><ul>{notes}</ul>"
    )
