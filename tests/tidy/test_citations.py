"""Citations: what comments, docstrings and tests rest on has an address in docs/spec or docs/decisions.md.  docs/rules.md has the grammar.

``F14`` and ``H162`` mean one thing everywhere. ``D26`` is of the specification that was named last in the same docstring or comment; if
none was, of the one that the docstring of the module names. Sections are cited behind the name: "Spec: ring 5.2, 8 (E9), D14; F4".
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import pytest

from tests.tidy.tree import ROOT, name, python, texts

FOUNDATION = "foundation"
SPECS = {
    FOUNDATION: FOUNDATION, "ring": "ring", "detection": "detection", "fast-detection": "detection", "tickets": "tickets",
    "views": "views", "circuit-breaker": "views", "limits": "limits", "rate-limit": "limits", "gossip": "gossip",
    "election": "election",
}  # fmt: skip
FOLDERS = ("src/", "tests/")
PAGES = (*(f"docs/spec/{page}.md" for page in sorted(set(SPECS.values()))), "docs/decisions.md")

HEADING = re.compile(r"^## (H\d+) ", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
SECTION = r"\d{1,2}(?:\.\d{1,2})?(?![\w%]|\.[\d.])"
CODE = r"(?:[DEFGHIP]|CB|RL)\d{1,3}[a-z]?(?!\w)"
ASIDE = r"(?: \([^()]*\)| step \d+)?"
NAMES = "|".join(sorted(SPECS, key=len, reverse=True))
# A name and what is cited of it, with asides in brackets: "ring 8 (E9), 5.3, D14", "ring/E3".
ITEM = rf"(?:{SECTION}|{CODE}){ASIDE}"
TOKEN = re.compile(
    rf"(?<![\w/.-])(?P<name>{NAMES})(?P<list>[ /]{ITEM}(?:(?:,|;| and| to|-) ?{ITEM})*)"
    rf"|(?P<paper>\bpaper \d{{3}}\b[^;]*)"
    rf"|(?<![\w.])(?P<code>{CODE})",
    re.IGNORECASE,
)
ASKED = re.compile(rf"\bSpec: (?P<name>{NAMES})\b", re.IGNORECASE)


class Text(NamedTuple):
    """One docstring, or the comment lines that stand together."""

    line: int
    body: str
    of_module: bool


class Citation(NamedTuple):
    """One thing that is cited, by its anchor; without one, nobody can say what is meant."""

    line: int
    cited: str
    anchor: str


def read(source: str) -> Iterator[Text]:
    """Everything in a file that is not code; the module's docstring first."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring is not None:
                yield Text(node.body[0].lineno, docstring, isinstance(node, ast.Module))
    yield from _comments(source)


def _comments(source: str) -> Iterator[Text]:
    block: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or "noqa" in token.string:
            continue
        if block and token.start != (block[-1].start[0] + 1, block[-1].start[1]):
            yield _joined(block)
            block = []
        block.append(token)
    if block:
        yield _joined(block)


def _joined(block: list[tokenize.TokenInfo]) -> Text:
    return Text(block[0].start[0], " ".join(token.string.lstrip("#: ") for token in block), of_module=False)


def citations(source: str) -> Iterator[Citation]:
    """All citations of one file."""
    at_hand: set[str] = set()  # the protocols that the module's docstring names
    for text in read(source):
        body = " ".join(text.body.split())
        if text.of_module:
            at_hand = _named(body)
        yield from _of_text(text.line, body, at_hand)


def _named(body: str) -> set[str]:
    found = [*(match["name"] for match in TOKEN.finditer(body) if match["name"]), *ASKED.findall(body)]
    return {SPECS.get(each.lower(), each.lower()) for each in found} - {FOUNDATION}


def _of_text(line: int, body: str, at_hand: set[str]) -> Iterator[Citation]:
    spec = next(iter(at_hand)) if len(at_hand) == 1 else ""
    for match in TOKEN.finditer(body):
        if match["name"]:
            cited = SPECS.get(match["name"].lower(), match["name"].lower())
            spec = spec if cited == FOUNDATION else cited
            for section in re.findall(rf"(?<![\w.]){SECTION}", re.sub(r"\([^()]*\)| step \d+", "", match["list"])):
                yield Citation(line, f"{match['name']} {section}", f"{cited}-{section}")
            for code in re.findall(CODE, match["list"]):
                yield _coded(line, code, spec)
        elif match["code"] and match["code"][0].isupper():
            yield _coded(line, match["code"], spec)


def _coded(line: int, code: str, spec: str) -> Citation:
    if code[0] in "FH":
        return Citation(line, code, code)
    return Citation(line, f"{spec} {code}".strip(), f"{spec}-{code}" if spec else "")


def anchors() -> set[str]:
    """A decision that was just written is there, even if its anchor was forgotten: another test says that."""
    pages = [(ROOT / page).read_text() for page in PAGES]
    return {*(anchor for page in pages for anchor in ANCHOR.findall(page)), *HEADING.findall(pages[-1])}


@cache
def cited() -> dict[str, tuple[Citation, ...]]:
    return {name(path): tuple(citations(text)) for path, text in python() if name(path).startswith(FOLDERS)}


def wrong(found: Iterable[Citation], known: set[str]) -> list[str]:
    return [
        f"{each.line}: {each.cited} {'is not in docs/spec or docs/decisions.md' if each.anchor else '(of which specification?)'}"
        for each in found
        if each.anchor not in known
    ]


def test_every_citation_has_an_address() -> None:
    """A wrong number sends its reader to another rule; D26 alone may be a rule of the ring, of tickets or of detection."""
    known = anchors()
    found = [f"{file}:{each}" for file, of_file in cited().items() for each in wrong(of_file, known)]
    assert found == []


def test_citations_are_found() -> None:
    """A reader that finds nothing would be content with everything: the code has thousands of them."""
    found = [each.anchor for of_file in cited().values() for each in of_file]
    assert len(found) > 3000
    assert {"F14", "H162", "ring-D26", "tickets-D26", "detection-D17b", "ring-5.2", "foundation-4"} <= set(found)


def test_anchors_are_unique() -> None:
    """An address is one place."""
    found = [anchor for page in PAGES for anchor in ANCHOR.findall((ROOT / page).read_text())]
    assert sorted(found) == sorted(set(found))


def test_every_decision_has_its_anchor() -> None:
    """Links lead to it: ``<a id="H1"></a>`` and an empty line stand before its heading."""
    text = (ROOT / "docs" / "decisions.md").read_text()
    found = re.findall(r'(?:^<a id="(H\d+)"></a>\n\n)?^## (H\d+) ', text, re.MULTILINE)
    assert [heading for anchor, heading in found if anchor != heading] == []


def test_specifications_cite_what_is_there() -> None:
    """The pages themselves: every F and H in them, and every D, G, I, E and P of their own."""
    known = anchors()
    found = []
    for page in PAGES[:-1]:
        spec = page.rpartition("/")[2].removesuffix(".md")
        codes = re.findall(rf"(?<![\w.\"#-]){CODE}", texts()[ROOT / page])
        own = [each for each in codes if spec != FOUNDATION or each[0] in "FH"]
        found += [f"{page}: {each}" for each in own if _coded(0, each, spec).anchor not in known]
    assert found == []


@pytest.mark.parametrize(
    "source, expected",
    [
        ('"""Leases.  Spec: ring 5.2, D3, D4."""', ["ring-5.2", "ring-D3", "ring-D4"]),
        ('"""Spec: ring 8 (E9), 5.3, D14; paper 000, IV-B, section 7."""', ["ring-8", "ring-5.3", "ring-E9", "ring-D14"]),
        ('"""Spec: fast-detection 5 (grant rule), D17b; foundation 4, F16."""', ["detection-5", "detection-D17b", "foundation-4", "F16"]),
        ('"""Spec: tickets 5.5; foundation F8."""\n# Once per life (D18).', ["tickets-5.5", "F8", "tickets-D18"]),
        ('"""Of ring 5 and tickets 5."""\n# Once (D18).', ["ring-5", "tickets-5", ""]),
        ("# As in tickets D26, then D3 of it; ring/E3.", ["tickets-D26", "tickets-D3", "ring-E3"]),
        ("# D26", [""]),
        ("# H162, F99", ["H162", "F99"]),
        ("# Its gossip 5.2 is not here.", ["gossip-5.2"]),
        ("D26 = 'D26'  # code is not read", []),
    ],
)
def test_citations_are_read(source: str, expected: list[str]) -> None:
    """The grammar of docs/rules.md, one line each."""
    assert sorted(each.anchor for each in citations(source)) == sorted(expected)


@pytest.mark.parametrize("source", ["# ring D99", "# H9", "# F99", "# tickets 5.11", "# D26", '"""Spec: ring 5.2; tickets 5.1."""\n# D26'])
def test_what_leads_nowhere_is_found(source: str) -> None:
    """A number that no page has, and a number that may be of two pages."""
    assert len(wrong(citations(source), anchors() - {"H9"})) == 1


def resting_on_ours(source: str) -> list[str]:
    """Tests whose docstring rests on decisions of ours alone: "H162, H164: ..."."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return [node.name for node in found if re.match(r"H\d+(?:, H\d+)*:", ast.get_docstring(node) or "")]


def test_paper_folders_hold_what_a_paper_says() -> None:
    """H212: a decision of ours is tested in ``unit`` or ``sim``."""
    files = {name(path): text for path, text in python() if re.match(r"tests/\w+/\w+/paper/", name(path))}
    assert len(files) > 20
    assert {file: found for file, text in files.items() if (found := resting_on_ours(text))} == {}


@pytest.mark.parametrize("cited, ours", [("H162: no", True), ("H162, H164: no", True), ("H162, P1: no", False), ("D3: not H162", False)])
def test_decisions_of_ours_are_told_apart(cited: str, ours: bool) -> None:
    """H212: "H162, P1" rests on a rule of a specification, too."""
    assert bool(resting_on_ours(f'def test_it() -> None:\n    """{cited}"""')) is ours
