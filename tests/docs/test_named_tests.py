"""A page that names a test as its proof names one that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`(test_\w+)`")
PLACED = re.compile(r"\btests/[\w./*-]*[\w/]")
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "RESULTS.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = {page.name: names for page in sorted((ROOT / "docs").glob("*.md")) if (names := NAMED.findall(page.read_text()))}
DEFINED = {name for file in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)\(", file.read_text())}


@pytest.mark.parametrize("page", PAGES)
def test_every_named_test_is_there(page: str) -> None:
    """STYLE 6: what a document says is checked; a row of a table of failures is worth as much as its test."""
    assert [name for name in PAGES[page] if name not in DEFINED and not (ROOT / "tests" / name).exists()] == []


@pytest.mark.parametrize("text", [path for path in TEXTS if "tests/" in path.read_text()], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_named_place_is_there(text: Path) -> None:
    """A folder or a file of tests that a page names by its path is there; a star stands for a part of a name."""
    named = PLACED.findall(text.read_text())
    assert [place for place in named if not any(ROOT.glob(place.rstrip("/")))] == []
