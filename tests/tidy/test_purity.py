"""Protocols, kit and node know the world through their host alone.

The import contracts in pyproject.toml forbid whole modules. ``random`` is half allowed: the type ``Random`` is what a host
carries, the module's functions share one hidden state that no seed of the lab reaches.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.tree import PACKAGE, name, source

PURE = ("kit", "host.py", "node.py", "events.py", "drops.py", "errors.py")
PURE_ROOMS = ("protocol", "detector")  # of a feature or a paper
ALLOWED = {"random": {"Random"}}  # of these modules, these names and nothing else
FORBIDDEN_CALLS = {"open", "print", "input", "id", "hash", "exec", "eval", "__import__"}
# hash() of text differs between processes and id() between runs: either in an order or a message ends determinism.


def is_pure(parts: tuple[str, ...]) -> bool:
    return parts[0] in PURE or (parts[0] in ("features", "papers") and parts[2:3] != () and parts[2] in PURE_ROOMS)


def impurities(text: str) -> list[str]:
    return [f"{line}: {what}" for line, what in sorted(_found(ast.parse(text)))]


def _found(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, f"import {alias.name}") for alias in node.names if alias.name in ALLOWED)
        elif isinstance(node, ast.ImportFrom) and node.module in ALLOWED:
            yield from ((node.lineno, f"from {node.module} import {a.name}") for a in node.names if a.name not in ALLOWED[node.module])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in FORBIDDEN_CALLS or (node.func.id == "Random" and not node.args):
                yield node.lineno, f"{node.func.id}()"
        elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.Set | ast.SetComp):
            yield getattr(node, "lineno", node.iter.lineno), "iterates over a bare set"


def test_pure_parts_take_chance_from_their_host() -> None:
    """Same seed, same inputs, same bytes out: no hidden state, no order that depends on the process."""
    pure = [(path, text) for path, text in source() if is_pure(path.relative_to(PACKAGE).parts)]
    assert pure
    assert [f"{name(path)}:{what}" for path, text in pure for what in impurities(text)] == []


@pytest.mark.parametrize(
    "code",
    [
        "import random",
        "from random import choice",
        "x = hash(name)",
        "r = Random()",
        "for x in {a, b}: pass",
        "y = [x for x in {a, b}]",
        "print(1)",
    ],
)
def test_impurities_are_found(code: str) -> None:
    """The check can fail."""
    assert impurities(code)


@pytest.mark.parametrize("code", ["from random import Random", "r = Random(seed)", "for x in sorted({a, b}): pass"])
def test_purity_is_left_alone(code: str) -> None:
    """The type is allowed, a seeded generator is, and a sorted set is."""
    assert impurities(code) == []
