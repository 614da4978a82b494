"""What the style asks of code and no tool checks: short functions, tests that name their rule, to-dos that are planned."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from statistics import median

from tests.tidy.tree import PACKAGE, ROOT, functions, name, python, source

FUNCTION_LINES_MAX = 60
FUNCTION_LINES_MEDIAN_MAX = 10
TO_DO = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?:\((?P<entry>[\w-]+)\))?")


def lengths() -> dict[str, int]:
    found = {}
    for path, text in source():
        for function in functions(ast.parse(text)):
            assert function.end_lineno is not None
            found[f"{name(path)}:{function.lineno} {function.name}"] = function.end_lineno - function.lineno + 1
    return found


def unplanned(text: str, roadmap: str) -> list[str]:
    """Comments that put something off without an entry ``(name)`` that the roadmap has under ``name``."""
    comments = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT]
    found = []
    for comment in comments:
        match = TO_DO.search(comment.string)
        if match and (match["entry"] is None or f"`{match['entry']}`" not in roadmap):
            found.append(f"{comment.start[0]}: {comment.string}")
    return found


def uncut(text: str) -> list[str]:
    """What an error repeats whole: values with ``!r`` in the text of what is raised. ``errors.shown`` cuts them."""
    raised = [node.exc for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
    values = [(call, each) for call in raised for each in ast.walk(call) if isinstance(each, ast.FormattedValue)]
    return [f"{call.lineno}: {ast.unparse(each.value)}" for call, each in values if each.conversion == ord("r") and not of_ours(each.value)]


def of_ours(value: ast.expr) -> bool:
    """The state of an agent is one of four words."""
    return isinstance(value, ast.Attribute) and value.attr == "state"


def is_trial(parts: tuple[str, ...]) -> bool:
    """Of the simulator, or of the lab of a feature or a paper."""
    return parts[0] == "lab" or (parts[0] in ("features", "papers") and parts[2:3] == ("lab",))


def test_errors_cut_what_they_repeat() -> None:
    """H171: a value that a user, a file or a peer gave is repeated with 80 characters at most, by ``errors.shown``."""
    assert uncut("raise ConfigError(f'name: {name!r}; accepted is another')") == ["1: name"]
    found = [
        f"{name(path)}:{each}"
        for path, text in source()
        if not is_trial(path.relative_to(PACKAGE).parts) and path.name != "__init__.py"
        for each in uncut(text)
    ]
    assert found == []


def test_functions_are_short() -> None:
    """Style: no function over 60 lines, the median under 10."""
    measured = lengths()
    assert {place: lines for place, lines in measured.items() if lines > FUNCTION_LINES_MAX} == {}
    assert median(measured.values()) < FUNCTION_LINES_MEDIAN_MAX


def test_every_test_says_what_it_checks() -> None:
    """Style: the docstring of a test names the rule it checks."""
    bare = []
    for path, text in python():
        if path.is_relative_to(ROOT / "tests") and path.name.startswith("test_"):
            tests = [function for function in functions(ast.parse(text)) if function.name.startswith("test_")]
            bare += [f"{name(path)}:{test.lineno} {test.name}" for test in tests if ast.get_docstring(test) is None]
    assert bare == []


def test_what_is_put_off_is_planned() -> None:
    """A to-do names its entry of docs/roadmap.md in brackets, or is done."""
    roadmap = (ROOT / "docs" / "roadmap.md").read_text()
    assert [f"{name(path)}:{found}" for path, text in python() for found in unplanned(text, roadmap)] == []


def test_unplanned_finds_what_it_is_for() -> None:
    """A comment without an entry, and one whose entry the roadmap does not have; a string is not a comment."""
    word = "TO" + "DO"
    text = f'a = 1  # {word}: later\nb = 2  # {word}(ring): later\nc = 3  # {word}(moon): later\nd = "# {word}"\n'
    assert [line.split(":")[0] for line in unplanned(text, "- `ring`: planned")] == ["1", "3"]
