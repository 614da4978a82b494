"""What every file of the repository obeys: its length, and that it speaks of Holdfast alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain

import pytest

from holdfast.lab.registry import experiments
from tests.tidy.tree import ROOT, name, source, texts

LINES_MAX = 450  # at 400 a reader looks for the second question a file answers; a little room, then it is split

# Brackets around one letter keep these lines from finding themselves.
PLACES = re.compile(r"(?<![\w.$}])/(?:[w]ork|[r]oot|[h]ome|[o]pt|[U]sers|[t]mp|[v]ar/tmp|[m]nt)/\w")
OTHER_SUBJECTS = re.compile(
    r"\b(?:[l]anguage model|[L]LM|[A]I[- ](?:generated|written|assisted)|[c]hatbot|[a]gent session|[i]ssues show"
    r"|[Ii]ssue #?\d|[Ii]ssue: \w+|PRODUCT\.[m]d|STYLE\.[m]d)\b"
)
INDEXES = re.compile(r"^\s*--(?:index-url|extra-index-url|find-links|trusted-host)|\bhttps?://[^\s/]*(?<!pypi\.org)/simple\b", re.MULTILINE)
FIGURE = re.compile(r"\b(Figure|Table) (\d+|[IVX]+)\b")
ROMAN = {"I": 1, "II": 2, "III": 3, "IV": 4, "V": 5, "VI": 6}
WITHOUT_ASSERTS = re.compile(r"python[\d.]*[\"', ]+-O|PYTHON[O]PTIMIZE")


def lines_with(pattern: re.Pattern[str], text: str) -> list[str]:
    return [f"{number}: {line.strip()}" for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]


def offenders(pattern: re.Pattern[str]) -> list[str]:
    return list(chain.from_iterable([f"{name(path)}:{line}" for line in lines_with(pattern, text)] for path, text in texts().items()))


def test_source_files_are_short() -> None:
    """Style: a file answers one question."""
    long = {name(path): lines for path, text in source() if (lines := len(text.splitlines())) > LINES_MAX}
    assert long == {}


def test_no_machine_paths() -> None:
    """A path of somebody's machine is right on that machine alone."""
    assert offenders(PLACES) == []


def test_speaks_of_holdfast_alone() -> None:
    """How and where it is written is no part of the product."""
    assert offenders(OTHER_SUBJECTS) == []


def test_no_package_index_is_named() -> None:
    """Where packages come from is a setting of the machine that installs them."""
    assert offenders(INDEXES) == []


def astray(sources: Mapping[str, str]) -> dict[str, str]:
    """Modules whose source names one figure or table and whose name does not begin with it, and how it should begin."""
    named = {module: {_prefix(*found) for found in FIGURE.findall(source)} for module, source in sources.items()}
    wanted = {module: prefix for module, prefixes in named.items() if len(prefixes) == 1 for prefix in prefixes}
    return {module: prefix for module, prefix in wanted.items() if not module.rpartition(".")[2].startswith(prefix)}


def _prefix(word: str, number: str) -> str:
    return f"{word.lower()}{ROMAN.get(number, number)}_"


def test_experiments_are_found_by_their_figure() -> None:
    """H225: a reader who looks for Figure 9 of a paper finds it in the listing of the files."""
    sources = {type(experiment).__module__: experiment.source for experiment in experiments().values()}
    assert astray(sources) == {}
    assert sum(bool(FIGURE.search(source)) for source in sources.values()) > 20


def test_what_is_found_by_its_figure() -> None:
    """H225: one figure or table gives the name; of several none does."""
    assert astray({"lab.example": "paper 004, Figure 1; F1", "lab.c": "paper 004, Table II"}) == {
        "lab.example": "figure1_",
        "lab.c": "table2_",
    }
    assert astray({"lab.figure11_x": "Figure 1", "lab.figure1_x": "Figure 1, as in Figure 1"}) == {"lab.figure11_x": "figure1_"}
    assert astray({"lab.both": "Figure 5, Table 1", "lab.no": "section 4, F3", "lab.many": "Figures 3 and 5"}) == {}


def test_asserts_stay_on() -> None:
    """Asserts guard what only a bug can break; nothing here may run without them."""
    assert [found for found in offenders(WITHOUT_ASSERTS) if not found.startswith(("tests/tidy/", "docs/", "CONTRIBUTING.md"))] == []


def test_lock_pins_with_hashes() -> None:
    """Whoever installs from the lock file gets the same bytes as everybody else."""
    lock = (ROOT / "requirements-dev.txt").read_text().replace("\\\n", " ")
    requirements = [line for line in lock.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(requirements) > 50
    assert [line for line in requirements if "==" not in line or "--hash=sha256:" not in line] == []


@pytest.mark.parametrize(
    "pattern, line",
    [
        (PLACES, 'open("/{}/someone/keys")'.format("home")),
        (OTHER_SUBJECTS, "see {} 7".format("issue")),
        (INDEXES, "--index-url https://mirror.example/pypi"),
        (INDEXES, "https://mirror.example/{}".format("simple")),
        (WITHOUT_ASSERTS, "python3 -{} -m holdfast".format("O")),
    ],
    ids=["place", "subject", "option", "host", "asserts"],
)
def test_patterns_find_what_they_are_for(pattern: re.Pattern[str], line: str) -> None:
    """A pattern that finds nothing looks like a tidy repository."""
    assert lines_with(pattern, line)
