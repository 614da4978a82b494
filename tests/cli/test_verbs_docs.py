"""docs/cli.md, docs/run.md and docs/operations.md say what the commands do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli import exits
from holdfast.cli.app import command
from holdfast.cli.verbs import Entry, Table, everything

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text()
FLAG = re.compile(r"`(--?[a-z][a-z-]*)")
HEADING = re.compile(r"^## `holdfast (?P<verb>[a-z -]+?)(?: [A-Z].*| -- .*)?`$", re.MULTILINE)
OF_THE_PROGRAM = {"--install-completion", "--show-completion", "--help", "--json"}


def sections() -> dict[str, str]:
    """The text below each heading, by the verb it names."""
    found = list(HEADING.finditer(PAGE))
    ends = [*(match.start() for match in found[1:]), len(PAGE)]
    return {match["verb"]: PAGE[match.end() : end] for match, end in zip(found, ends, strict=True)}


def entries(table: Table, *above: str) -> Iterator[tuple[str, Entry]]:
    for name, entry in table.verbs.items():
        if isinstance(entry, Table):
            yield from entries(entry, *above, name)
        else:
            yield " ".join((*above, name)), entry


def flags(verb: str, entry: Entry) -> set[str]:
    built = command(verb.rsplit(maxsplit=1)[-1], entry)
    return {name for parameter in built.params for name in parameter.opts if name.startswith("--")} - {"--help"}


ALL = dict(entries(everything()))


@pytest.mark.parametrize("verb", ALL)
def test_every_verb_and_flag_is_documented(verb: str) -> None:
    """One section for each verb (for each group of small ones), and every flag in it."""
    found = sections()
    text = found.get(verb) or found[verb.split(maxsplit=1)[0]]
    if verb not in found:
        assert f"`holdfast {verb}" in text or f"`{verb}`" in text
    assert {flag for flag in flags(verb, ALL[verb]) if flag not in text} == set()


def test_nothing_else_is_documented() -> None:
    """No section and no flag that is not there."""
    known = OF_THE_PROGRAM.union(*(flags(verb, entry) for verb, entry in ALL.items()), {"-o"})
    assert set(sections()) <= set(ALL) | set(everything().verbs)
    assert set(FLAG.findall(PAGE)) - known == set()
    run = set(FLAG.findall((ROOT / "docs" / "run.md").read_text()))
    assert run - flags("run", ALL["run"]) - {"-tag"} == set()  # -tag:NAME is a value of --rank.


def test_exit_codes_are_documented() -> None:
    """Every exit code has its line."""
    codes = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    lines = re.findall(r"^\| ([\d, -]+) \|", PAGE, re.MULTILINE)
    told = {int(number) for line in lines for number in re.findall(r"\d+", line)}
    assert codes <= told


def test_every_finding_has_its_entry() -> None:
    """The operations guide says what to do about each code of doctor."""
    sources = [ROOT / "src" / "holdfast" / place for place in ("agent/observe/doctor.py", "agent/observe/symptoms.py", "cli/doctor.py")]
    pattern = re.compile(r'(?:error|warning|note|say|Finding)\(\s*"([a-z_]+)"')
    codes = {code for path in sources for code in pattern.findall(path.read_text())}
    codes |= {"wrong_key", "plaintext", "sealed", "forged", "wrong_group"}  # those of drops, by the drop's name
    assert len(codes) > 20
    guide = (ROOT / "docs" / "operations.md").read_text()
    assert {code for code in codes if f"`{code}`" not in guide} == set()
