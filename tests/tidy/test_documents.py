"""Documents that would quietly become untrue: the map, the dependencies, the changelog, the public names."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import holdfast
from tests.tidy.tree import PACKAGE, ROOT, texts

MAP = re.compile(r"<!-- map -->\s*```text\n(.*?)```", re.DOTALL)
ENTRY = re.compile(r"^(?P<indent> *)(?P<name>[\w.]+/?)(?:\s{2,}\S.*)?$")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
RULE = re.compile(r"\|[ :|-]*---[ :|-]*$")  # the line under the head of a table
SENTENCE = re.compile(r"(?<=[.!?]) +")
SENTENCE_MIN = 40  # characters: a shorter one may be said again
ROW = re.compile(r"^\| `(?P<name>[\w-]+)` \|.*\| (?P<why>[^|]+) \|$", re.MULTILINE)


def mapped(text: str) -> set[Path]:
    """The paths that the map of docs/architecture.md draws by indentation, two spaces for each level."""
    block = MAP.search(text)
    assert block is not None, "docs/architecture.md has no map"
    lines = block[1].splitlines()
    assert lines[0] == "src/holdfast/"
    found: set[Path] = set()
    above: list[str] = []
    for line in lines[1:]:
        entry = ENTRY.match(line)
        assert entry is not None, f"not an entry of the map: {line!r}"
        depth = len(entry["indent"]) // 2 - 1
        above = [*above[:depth], entry["name"].rstrip("/")]
        found.add(PACKAGE.joinpath(*above))
    return found


def packages() -> set[Path]:
    """Every package, and every module that lies in holdfast/ itself; the files of a package are its own affair."""
    folders = {path.parent for path in PACKAGE.rglob("__init__.py")} - {PACKAGE}
    return folders | set(PACKAGE.glob("*.py"))


def required(pyproject: dict[str, dict[str, object]]) -> set[str]:
    project = pyproject["project"]
    base, extras = project["dependencies"], project["optional-dependencies"]
    assert isinstance(base, list)
    assert isinstance(extras, dict)
    lines = [*base, *(line for extra in extras.values() for line in extra)]
    return {re.split(r"[<>=!~;\[ ]", line, maxsplit=1)[0] for line in lines}


def test_map_names_every_package() -> None:
    """One map: whoever adds a package draws it in."""
    assert packages() - mapped((ROOT / "docs" / "architecture.md").read_text()) == set()


def test_map_names_nothing_else() -> None:
    """The map shows what is there today; what is not yet there stands in the roadmap."""
    assert {path for path in mapped((ROOT / "docs" / "architecture.md").read_text()) if not path.exists()} == set()


def test_map_is_read_by_indentation() -> None:
    """The reader of the map can tell a folder's file from its neighbour."""
    text = "<!-- map -->\n```text\nsrc/holdfast/\n  a/   one\n    b.py   two\n  c.py   three\n```\n"
    assert mapped(text) == {PACKAGE / "a", PACKAGE / "a" / "b.py", PACKAGE / "c.py"}


def test_every_dependency_has_its_reason() -> None:
    """docs/dependencies.md has one line for each requirement of pyproject.toml and none for anything else."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    reasons = {row["name"]: row["why"].strip() for row in ROW.finditer((ROOT / "docs" / "dependencies.md").read_text())}
    assert set(reasons) == required(pyproject)
    assert [name for name, why in reasons.items() if len(why) < 20] == []


def loose_rows(text: str) -> list[str]:
    """Lines that look like rows, after a line that is none, and without the rule under them that makes a head of them."""
    lines = [line if line.startswith("|") else "" for line in CODE.sub("", text).split("\n")]
    around = zip(["", *lines[:-1]], lines, [*lines[1:], ""], strict=True)
    return [line for before, line, after in around if line and not before and not RULE.match(after)]


def test_every_row_is_in_its_table() -> None:
    """A blank line within a table makes text of all rows after it, and no tool says so."""
    pages = {path: text for path, text in texts().items() if path.suffix == ".md"}
    assert {str(path.relative_to(ROOT)): rows for path, text in pages.items() if (rows := loose_rows(text))} == {}


def test_loose_rows_are_found() -> None:
    """The test above can fail: after a blank line, after text; heads of tables, and what is code, are none."""
    table = "| a | b |\n|---|:-:|\n| 1 | 2 |\n"
    assert loose_rows(f"text\n\n{table}\n```text\n| x\n```\n{table}") == []
    assert loose_rows(f"{table}\n| 3 | 4 |\n| 5 | 6 |\n\ntext\n| 7 | 8 |\n") == ["| 3 | 4 |", "| 7 | 8 |"]


def said_twice(text: str) -> list[str]:
    """Sentences of more than so many characters that a page has more than once; rows of tables and what is code are none."""
    paragraphs = CODE.sub("", text).split("\n\n")
    prose = (" ".join(line.strip() for line in each.split("\n") if not line.startswith("|")) for each in paragraphs)
    found = Counter(sentence for each in prose for sentence in SENTENCE.split(each) if len(sentence) > SENTENCE_MIN)
    return [sentence for sentence, times in found.items() if times > 1]


def test_no_specification_says_a_thing_twice() -> None:
    """STYLE 6: a sentence that stands twice in a specification was pasted."""
    pages = sorted((ROOT / "docs" / "spec").glob("*.md"))
    assert len(pages) > 5
    assert {str(path.relative_to(ROOT)): twice for path in pages if (twice := said_twice(path.read_text()))} == {}


def test_what_is_said_twice_is_found() -> None:
    """The test above can fail: across lines, not in rows or code, and not for a short sentence."""
    long = "After twelve rounds without enough of them it begins anew."
    assert said_twice(f"Text. {long} More. After twelve rounds\nwithout enough of them it begins anew.\n") == [long]
    assert said_twice(f"{long}\n\nIt begins anew. It begins anew.\n| {long} |\n```text\n{long}\n```\n") == []


def test_changelog_has_a_place_for_what_is_new() -> None:
    """User-visible changes are written down when they are made, in the user's words."""
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(r"^## \[?Unreleased\]?$", text, re.MULTILINE)
    assert text.index("Unreleased") < text.find(f"## [{holdfast_version()}]") or f"## [{holdfast_version()}]" not in text


def test_public_names_are_documented() -> None:
    """Whatever ``from holdfast import *`` brings says what it is, itself or in docs/reference.md."""
    reference = (ROOT / "docs" / "reference.md").read_text()
    names = getattr(holdfast, "__all__", ())
    assert [name for name in names if not getattr(holdfast, name).__doc__ and f"`{name}`" not in reference] == []


def holdfast_version() -> str:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert isinstance(version, str)
    return version


def test_every_page_is_in_the_navigation_once() -> None:
    """Five parts, no page twice, none left out: a page that the navigation has not is found by nobody."""
    trees = re.findall(r"```{toctree}\n:caption: (.+)\n:maxdepth: 1\n\n((?:[\w/-]+\n)+)```", (ROOT / "docs" / "index.md").read_text())
    assert [caption for caption, _ in trees] == ["Tutorial", "How-to", "Reference", "Explanation", "Laboratory and papers"]
    listed = [name for _, names in trees for name in names.split()]
    docs = ROOT / "docs"
    pages = [page.relative_to(docs).with_suffix("").as_posix() for page in (*docs.glob("*.md"), *docs.glob("spec/*.md"))]
    assert sorted(listed) == sorted(name for name in pages if name != "index")


def test_the_first_pages_fit_a_terminal() -> None:
    """At most 120 columns, wherever they are read."""
    pages = [ROOT / "README.md", ROOT / "docs" / "index.md"]
    assert [line for page in pages for line in page.read_text().splitlines() if len(line) > 120] == []
