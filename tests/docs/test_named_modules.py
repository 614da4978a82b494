"""A page or a docstring that says where something is names a module that is there.  docs/decisions.md H225."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.tree import PACKAGE, ROOT, source

DOTTED = re.compile(r"(?<![\w./-])holdfast((?:\.[A-Za-z]\w*)+)")
SHORT = re.compile(r"`([a-z_]+)\.([A-Z]\w+)[^`]*`")  # "`lease.Leases`": the pages beside the papers say it so
NO_MODULE = {".toml", ".features.counter"}  # a file of settings; the example of a feature
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAPERS = sorted((ROOT / "docs").glob("*-paper.md"))


def is_there(name: str) -> bool:
    """``.folder.module.word``: the longest beginning that is a module, and in its text the word behind it."""
    place, words = PACKAGE, name.split(".")[1:]
    while words and (place / words[0]).is_dir():
        place /= words.pop(0)
    if words and (place / f"{words[0]}.py").exists():
        place /= f"{words.pop(0)}.py"
    file = place / "__init__.py" if place.is_dir() else place
    return not words or (file.exists() and re.search(rf"\b{words[0]}\b", file.read_text()) is not None)


def is_defined(module: str, name: str) -> bool:
    """A class, or a constant, of any module that is called so."""
    files = [*PACKAGE.rglob(f"{module}.py"), *PACKAGE.rglob(f"{module}/__init__.py")]
    return any(re.search(rf"^(?:class )?{name}\b", file.read_text(), re.MULTILINE) for file in files)


def test_every_named_module_is_there() -> None:
    """H225: a name of a module in a page or in the source leads to a file, so a module that moves takes its name along."""
    texts = {**{page: page.read_text() for page in PAGES}, **dict(source())}
    found = {path.relative_to(ROOT).as_posix(): set(DOTTED.findall(text)) - NO_MODULE for path, text in texts.items()}
    assert sum(map(len, found.values())) > 1000, "the pages were not read"
    assert {path: gone for path, names in found.items() if (gone := {name for name in names if not is_there(name)})} == {}


@pytest.mark.parametrize("page", PAPERS, ids=lambda page: page.stem)
def test_every_class_beside_a_paper_is_there(page: Path) -> None:
    """H225: a reader of a paper finds the class of a section by its module and its name."""
    named = SHORT.findall(page.read_text())
    assert len(named) > 10, "the page names its classes in another way"
    assert [pair for pair in named if not is_defined(*pair)] == []


@pytest.mark.parametrize("name", [".protocols.ring", ".kit.seat_record", ".kit.seats.Chair", ".join_us"])
def test_what_is_not_there_is_found(name: str) -> None:
    """A search that finds nothing would prove nothing."""
    assert not is_there(name)
    assert not is_defined("pulse", "Heart")
