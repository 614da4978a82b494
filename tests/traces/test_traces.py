"""Golden conversations: every script prints the trace that stands below it.  ``--rewrite`` writes it again; then read the diff."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

from holdfast.lab.script import SEPARATOR, parse, split
from holdfast.lab.stage import play

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.rglob("*.txt"))


def compare(path: Path, *, rewrite: bool) -> str:
    """The difference between what a golden file shows and what its script does now; "" if there is none."""
    script, golden = split(path.read_text(encoding="utf-8"))
    trace = play(parse(script, str(path))).trace
    if rewrite:
        path.write_text(f"{script}{SEPARATOR}\n{trace}", encoding="utf-8")
        return ""
    return "".join(unified_diff(golden.splitlines(keepends=True), trace.splitlines(keepends=True), "golden", "now", n=5))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_golden_trace(path: Path, rewrite: bool) -> None:
    """A golden trace changes only when somebody meant it to: each file names the rule that it shows."""
    difference = compare(path, rewrite=rewrite)
    assert not difference, f"{path.name} prints another trace; if that is right: pytest tests/traces --rewrite\n{difference}"


GOLDEN = """# Two members.
scenario detection/omega
seed 1
set alpha 1
nodes a b
run 1500ms
expect leader a on a
"""


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    path = tmp_path / "omega.txt"
    path.write_text(GOLDEN)
    compare(path, rewrite=True)
    return path


def test_rewriting_makes_a_golden_file(golden: Path) -> None:
    """``--rewrite``: the script stays to the byte, the trace stands below it, and then there is no difference."""
    text = golden.read_text()
    assert text.startswith(f"{GOLDEN}{SEPARATOR}\n   0.000000  * start a#1\n")
    assert text.endswith("  * as expected: leader a on a\n")
    assert compare(golden, rewrite=False) == ""
    compare(golden, rewrite=True)
    assert golden.read_text() == text


def test_a_changed_trace_is_shown_line_by_line(golden: Path) -> None:
    """A file that shows something else fails with the difference."""
    golden.write_text(golden.read_text().replace("Ok(round=0, seq=2)", "Ok(round=0, seq=9)", 1))
    difference = compare(golden, rewrite=False)
    assert "seq=9" in difference
    assert "seq=2" in difference


def test_a_file_without_its_trace_fails(golden: Path) -> None:
    """A script alone is no golden file: all of its trace is missing."""
    golden.write_text(GOLDEN)
    assert "+   0.000000  * start a#1" in compare(golden, rewrite=False)
