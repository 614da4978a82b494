"""Experiments: parameters by name, a verdict that is computed, a picture in its frame, a page per folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.errors import ConfigError
from holdfast.lab import registry
from holdfast.lab.experiment import parameters_of
from holdfast.lab.jobs import HERE, Where
from holdfast.lab.picture import save_picture
from holdfast.lab.report import compared, perform, write, write_page
from tests.lab.own_experiment import EXPERIMENT, Draws

OWN = str(Path(__file__).with_name("own_experiment.py"))
PNG = b"\x89PNG\r\n\x1a\n"


def test_settings_change_parameters() -> None:
    """``--set k=v``: numbers and text, each in the type of its field."""
    assert parameters_of(EXPERIMENT, {}) == Draws()
    assert parameters_of(EXPERIMENT, {"draws": "10", "tolerance": "0.5", "label": "mean"}) == Draws(draws=10, tolerance=0.5)


@pytest.mark.parametrize(
    "settings,told",
    [
        ({"drawz": "1"}, "own/E1 has no parameter 'drawz'; it has seeds, cells, draws, tolerance, label"),
        ({"draws": "many"}, r"draws.*parameters are .*draws \(default 200\)"),
        ({"draws": "1.5"}, "draws"),
    ],
)
def test_bad_settings_name_the_field(settings: dict[str, str], told: str) -> None:
    """Bad input: a parameter that does not exist or does not parse names the field and the accepted values."""
    with pytest.raises(ConfigError, match=told):
        parameters_of(EXPERIMENT, settings)


@pytest.mark.parametrize("where", [HERE, Where(2)])
def test_a_run_is_a_report(where: Where) -> None:
    """``conduct``: measured, expected and a verdict; the same numbers wherever the cells ran."""
    done: list[int] = []
    report = perform(OWN, Draws(), 3, where, lambda: done.append(1))
    assert (report.experiment, report.seed, report.verdict) == ("own/E1", 3, "pass")
    assert report.measured["means"] == [EXPERIMENT.measure({"seed": f"3/{cell}", "draws": 200})["mean"] for cell in range(4)]
    assert report.parameters == {"seeds": 1, "cells": 4, "draws": 200, "tolerance": 0.2, "label": "mean"}
    assert len(done) == 4


def test_the_verdict_can_be_a_miss() -> None:
    """The criterion is code: what misses it is reported as a miss."""
    assert perform(OWN, Draws(tolerance=1e-9), 3).verdict == "miss"


def test_files(tmp_path: Path) -> None:
    """``<folder>-<id>.json`` holds the report, ``.png`` the figure."""
    report = perform(OWN, Draws(), 3)
    json_path, png = write(EXPERIMENT, report, tmp_path / "out")
    assert (json_path.name, png.name) == ("own-E1.json", "own-E1.png")
    assert json.loads(json_path.read_text())["verdict"] == "pass"
    assert png.read_bytes().startswith(PNG)


def test_the_same_results_give_the_same_picture(tmp_path: Path) -> None:
    """Pictures are made from the report alone, to the byte."""
    report = perform(OWN, Draws(), 3)
    for name in ("one.png", "two.png"):
        save_picture(EXPERIMENT, report, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_paper_beside_ours() -> None:
    """Rows of what was measured and what was expected under the same name."""
    rows = compared(perform(OWN, Draws(cells=1), 3))
    names = [name for name, _, _ in rows]
    assert names == ["means", "all.mean"]
    assert rows[1][1] == "0.5"
    assert float(rows[1][2]) == pytest.approx(0.5, abs=0.2)


def test_tables_within_tables_stay_in_the_file() -> None:
    """A list of rows is no cell of a table: the page says where it is."""
    report = perform(OWN, Draws(cells=1), 3)
    rows = compared(replace(report, measured={"cells": [{"p": 0.1}, {"p": 0.2}], "n": 3}))
    assert rows[:2] == [("cells", "", "2 rows, in the JSON file"), ("n", "", "3")]


def test_a_page_per_folder(tmp_path: Path) -> None:
    """``reproduce``: a Markdown page with links to the pictures, and an HTML page that stands alone."""
    reports = [perform(OWN, Draws(tolerance=tolerance), 3) for tolerance in (0.2,)]
    for report in reports:
        write(EXPERIMENT, report, tmp_path)
    markdown, html = write_page("own", reports, tmp_path)
    text = markdown.read_text()
    assert "| own/E1 | The mean of uniform numbers | pass |" in text
    assert "![The mean of uniform numbers](own-E1.png)" in text
    assert "| all.mean | 0.5 |" in text
    page = html.read_text()
    assert "data:image/png;base64," in page
    assert "no paper, section 1" in page
    assert "drawn, not measured" in page


def test_what_is_shown_is_escaped(tmp_path: Path) -> None:
    """A name with markup in it is text on the page."""
    parameters = Draws(label="<b>|</b>")
    report = perform(OWN, parameters, 3)
    write(EXPERIMENT, report, tmp_path)
    markdown, html = write_page("own", [report], tmp_path)
    assert "<b>|" not in html.read_text()
    assert "\\|" in markdown.read_text()


def test_every_experiment_is_declared_in_full() -> None:
    """Experiments are small declared modules: id, name, title, source, criterion, parameters that can be set."""
    for experiment in registry.experiments().values():
        assert all(getattr(experiment, field) for field in ("id", "name", "title", "source", "criterion"))
        assert experiment.cells(parameters_of(experiment, dict(experiment.quick)), 0)
