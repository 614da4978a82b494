"""Prose names the client, peer, member, seat, agent or holder that it speaks of.  STYLE 7."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.tidy.tree import PACKAGE, ROOT, name, texts

WORDS = re.compile(
    r"\b(?:[Ww]hoever|[Ww]homever|[Nn]obody|[Ss]omebody|[Ee]verybody|[Aa]nybody|[Aa]nyone|[Ss]omeone|[Ee]veryone)\b"
)  # NOBODY is a name
# A sentence that begins with "Who" and is no question: to its full stop, the end of its cell or of its paragraph.
WHO = re.compile(r"(?:^|(?<=[.:;!?|*>-] ))Who\s(?:[^.?!|:\n]|\n(?!\n))*(?:[.!|:]|\n\n|\Z)", re.MULTILINE)
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
FOLDERS = ("src", "docs", "benchmarks", "scripts")
PROSE = (".py", ".js", ".html", ".css", ".md", ".toml", ".yaml", ".sh")
# What may still say one of these words: a file or a folder, and why. What is rewritten is taken from this list.
LEFT = {
    "docs/spec/": "the specifications, which quote papers",
    "docs/detection.md": "names of two checkers",
    "src/holdfast/features/ring/protocol/join.py": "reasons that stand in traces and logs",
    "src/holdfast/features/ring/protocol/lifecycle.py": "as above",
}


def python_prose(text: str, *, messages: bool) -> Iterator[tuple[int, str]]:
    """Comments and docstrings with their lines; ``messages``: other texts as well. Names in code are not prose."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    tree = ast.parse(text)
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {node.body[0].value for node in ast.walk(tree) if isinstance(node, owners) and ast.get_docstring(node, clean=False)}  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (messages or node in docstrings):
            yield node.lineno, node.value


def is_of_a_lab(path: Path) -> bool:
    """Its messages are results, criteria and violations, which stand in reports and traces."""
    parts = path.relative_to(PACKAGE).parts if path.is_relative_to(PACKAGE) else path.relative_to(ROOT).parts
    return "lab" in parts[:-1] or parts[0] in ("papers", "benchmarks")


def found(path: Path, text: str) -> list[str]:
    lines = python_prose(text, messages=not is_of_a_lab(path)) if path.suffix == ".py" else enumerate(text.split("\n"), 1)
    return [f"{name(path)}:{number}: {match[0]}" for number, line in lines if (match := WORDS.search(line))]


@cache
def seen() -> tuple[str, ...]:
    """In the whole repository."""
    read = [(path, text) for path, text in texts().items() if path.suffix in PROSE and path.relative_to(ROOT).parts[0] in FOLDERS]
    assert len(read) > 400, "the repository was not read"
    return tuple(place for path, text in read for place in found(path, text))


def test_prose_names_what_it_speaks_of() -> None:
    """STYLE 7: a reader who learned English at work asks: a client, a peer, a seat? The text says which."""
    assert [place for place in seen() if not place.startswith(tuple(LEFT))] == []


def test_exceptions_are_needed() -> None:
    """What says none of the words any more is taken from the list."""
    places = seen()
    assert [start for start in LEFT if not any(place.startswith(start) for place in places)] == []


@pytest.mark.parametrize(
    "text, lines",
    [
        ('"""Nobody waits for it."""\n', [1]),
        ("a = 1  # whoever asks\n", [1]),
        ('a = f"{b} is held by somebody"\n', [1]),
        ("NOBODY = 1  # NOBODY: a slot\nnobody = 2\n", []),
    ],
)
def test_prose_is_read(text: str, lines: list[int]) -> None:
    """A search that finds nothing would prove nothing: docstrings, comments and messages are prose, names are not."""
    assert [number for number, line in python_prose(text, messages=True) if WORDS.search(line)] == lines
    assert [line for _, line in python_prose('fail(f"{a} met somebody")\n', messages=False)] == []


def without_subject(text: str) -> list[str]:
    """The sentences of a page that begin with a relative clause. Blocks of code are no prose, questions are asked of the reader."""
    return [" ".join(match[0].split()) for match in WHO.finditer(BLOCK.sub("", text))]


def test_pages_say_who_does_it() -> None:
    """STYLE 7: no sentence begins with a relative clause; it names the client, the reader, the member. Specifications quote papers."""
    pages = {path.name: text for path in sorted((ROOT / "docs").glob("*.md")) if (text := path.read_text())}
    assert len(pages) > 30
    assert {page: found for page, text in pages.items() if (found := without_subject(text))} == {}


@pytest.mark.parametrize(
    "text, found",
    [
        ("It is late. Who\nmisses one asks. Then", ["Who misses one asks."]),
        ("| a | it stops. Who asks is refused | b |", ["Who asks is refused |"]),
        ("- Who waits for it", ["Who waits for it"]),
        ("**Why.** Who comes back starts anew.", ["Who comes back starts anew."]),
        ("Who has what:\n\n```\nWho is it.\n```\n", ["Who has what:"]),
        ("Who leads\nthe name, and until when? A member.", []),
        ("A client who waits. A host (Who waits).", []),
    ],
)
def test_sentences_are_found(text: str, found: list[str]) -> None:
    """A search that finds nothing would prove nothing: also over the end of a line, in a cell, in a list."""
    assert without_subject(text) == found
