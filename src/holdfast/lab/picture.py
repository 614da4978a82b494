"""The frame around every experiment's figure: what it is, where it comes from, what came out, how to make it again.

The experiment draws its axes, the paper's values beside ours; the frame is the same for all, so that a page of them reads
as one.  docs/lab.md
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.lab.experiment import Experiment, Finding, Report
from holdfast.lab.extras import need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INCHES = (9.0, 6.0)
DOTS_PER_INCH = 120
HEADER, FOOTER = 0.13, 0.14  # shares of the height that belong to the frame
LINE_CHARACTERS = 118  # of small print that fit the width
FOOTER_LINES_MAX = 5

INK, PALE = "#1f2933", "#7b8794"
VERDICT_COLOUR = {"pass": "#1b7f4b", "miss": "#b42318"}
STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.edgecolor": PALE,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e7eb",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}
# Told apart also by those who see fewer colours (Okabe and Ito); the paper's values are mostly drawn in grey.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b8794"]


def check_pictures() -> None:
    """Say before an hour of measuring that nothing could be drawn at its end."""
    need("matplotlib", "drawing an experiment")


def save_picture(experiment: Experiment[Any], report: Report, path: Path) -> None:
    """Draw the experiment's figure in its frame."""
    matplotlib = need("matplotlib", "drawing an experiment")
    figures = need("matplotlib.figure", "drawing an experiment")
    cycler = need("cycler", "drawing an experiment")
    with matplotlib.rc_context({**STYLE, "axes.prop_cycle": cycler.cycler(color=COLOURS)}):
        figure = figures.Figure(figsize=INCHES, dpi=DOTS_PER_INCH, layout="constrained")
        figure.get_layout_engine().set(rect=(0.01, FOOTER, 0.98, 1 - HEADER - FOOTER))
        experiment.draw(figure, Finding(report.measured, report.expected, report.verdict == "pass", report.notes))
        _write_frame(figure, report)
        # Without the library's own stamp the same results give the same bytes.
        figure.savefig(path, format="png", metadata={"Software": None})


def _write_frame(figure: Figure, report: Report) -> None:
    figure.text(0.015, 0.975, report.title, fontsize=13, fontweight="bold", va="top")
    figure.text(0.015, 0.925, f"{report.experiment}   {report.source}", fontsize=9, color=PALE, va="top")
    colour = VERDICT_COLOUR[report.verdict]
    figure.text(0.985, 0.975, report.verdict.upper(), fontsize=13, fontweight="bold", color=colour, ha="right", va="top")
    figure.text(0.015, 0.012, _small_print(report), fontsize=7.5, color=PALE, va="bottom", linespacing=1.35)


def _small_print(report: Report) -> str:
    parameters = ", ".join(f"{name}={value}" for name, value in report.parameters.items())
    texts = [f"criterion: {report.criterion}", *report.notes, f"seed {report.seed}, holdfast {report.version}; {parameters}"]
    lines = [line for text in texts for line in textwrap.wrap(text, LINE_CHARACTERS)]
    return "\n".join(lines if len(lines) <= FOOTER_LINES_MAX else [*lines[: FOOTER_LINES_MAX - 1], "..."])
