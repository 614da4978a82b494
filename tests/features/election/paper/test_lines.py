"""Every line of the four algorithms has its place in docs/election-paper.md: a method, and a test that cites it.

Paper 004, Algorithms 1 to 4; issue 18 (docs: every algorithm line).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from tests.features.election.paper import test_algorithms
from tests.tidy.tree import ROOT

PRINTED = {1: 26, 2: 20, 3: 40, 4: 29}  # the last number of each algorithm
PAGE = ROOT / "docs" / "election-paper.md"
HEADING = "## The four algorithms, line by line"
LINES = r"\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*"
CITED = re.compile(rf"Algorithms? (\d)(?:-(\d))? lines? ({LINES})")

Line = tuple[int, int]  # of which algorithm, and its number


class Row(NamedTuple):
    """Of the table."""

    lines: frozenset[Line]
    method: str
    test: str


def numbers(text: str) -> Iterator[int]:
    """Of a text like 5-6, 9."""
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        yield from range(int(first), int(last or first) + 1)


def rows(page: str) -> list[Row]:
    """Behind the head of the table and its rule."""
    table = [line for line in page.partition(HEADING)[2].partition("\n## ")[0].splitlines() if line.startswith("|")]
    found = []
    for line in table[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        lines = frozenset((algorithm, number) for algorithm, cell in enumerate(cells[:4], 1) for number in numbers(cell))
        found.append(Row(lines, cells[5].strip("`"), cells[6].strip("`")))
    return found


def cited(docstring: str) -> frozenset[Line]:
    """By the docstring of a test."""
    found = CITED.findall(" ".join(docstring.split()))
    return frozenset(
        (algorithm, number)
        for first, last, lines in found
        for algorithm in range(int(first), int(last or first) + 1)
        for number in numbers(lines)
    )


def missing(page: str, tests: ModuleType) -> list[str]:
    """Lines without a row, and rows whose method or test is not there or does not cite them."""
    found = rows(page)
    printed = {(algorithm, number) for algorithm, last in PRINTED.items() for number in range(1, last + 1)}
    gaps = sorted(printed ^ {line for row in found for line in row.lines})
    wrong = [f"Algorithm {algorithm} line {number} has no row, or is none" for algorithm, number in gaps]
    for row in found:
        if not row.method and not row.test:
            continue  # Heads and ends: nothing to do.
        module, *names = row.method.split(".")
        place: object = import_module(f"holdfast.features.election.protocol.{module}")
        for name in names:
            place = getattr(place, name, None)
        if place is None:
            wrong.append(f"{row.method} is not there")
        test = getattr(tests, row.test, None)
        wrong += [f"{row.test} cites not {line}" for line in sorted(row.lines - cited(getattr(test, "__doc__", None) or ""))]
    return wrong


def test_every_line_has_its_place() -> None:
    """Algorithms 1 to 4: each printed line number has a row; the method is there, and the test cites the lines."""
    assert missing(PAGE.read_text(), test_algorithms) == []


def test_what_is_missing_is_found() -> None:
    """The test above can fail: a row that is taken out, a method and a test that are not there."""
    page = PAGE.read_text()
    (row,) = (line for line in page.splitlines() if "`test_leader_is_marked`" in line)
    gone = missing(page.replace(row + "\n", ""), test_algorithms)
    assert "Algorithm 1 line 23 has no row, or is none" in gone
    assert "hearing.Hearing.on_song is not there" in missing(page.replace("Hearing.on_leader", "Hearing.on_song"), test_algorithms)
    assert "test_nothing cites not (1, 23)" in missing(page.replace("`test_leader_is_marked`", "`test_nothing`"), test_algorithms)
