"""Imports inside the package make no cycle: a reader can begin with any file and go on downward.  docs/decisions.md H220."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.tidy.tree import PACKAGE, source

TICKETS = "features.tickets.protocol"
RING = "features.ring.protocol"
# Cycles that are there, each with the modules on it. What is broken is taken from this list, and no module is added to it.
LEFT = {
    "host and events: an event has members, and a host emits events": {"events", "host"},
    "the ring and its parts, which know the whole ring": {
        f"{RING}.{name}"
        for name in (
            "arbitration", "changes", "departing", "dispatch", "door", "fencing", "forgetting", "founding", "freshness", "groups",
            "hearing", "join", "lease", "lifecycle", "metrics", "neighbours", "news", "opening", "orphans", "proposal",
            "ring", "scouting",
        )
    },
    "a coordinator of tickets and its parts, which know the whole coordinator": {
        f"{TICKETS}.{name}"
        for name in ("candidate", "care", "coordinator", "leaving", "moving", "pool", "serving", "writing")
    },
}  # fmt: skip

Graph = Mapping[str, set[str]]


def module(path: Path) -> str:
    """Without the package's own name, which is "" itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(text: str) -> Iterator[str]:
    """Every import, wherever it stands: those of ``TYPE_CHECKING`` and of functions make a module as hard to read alone as others do."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not read here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def graph(texts: Mapping[str, str]) -> Graph:
    """Which modules each one imports. ``from a.b import c`` is one of ``a.b.c`` if that is a module, else of ``a.b``."""
    found: dict[str, set[str]] = {}
    for name, text in texts.items():
        wanted = (each.removeprefix("holdfast").removeprefix(".") for each in imported(text) if each.split(".")[0] == "holdfast")
        places = (each if each in texts else each.rpartition(".")[0] for each in wanted)
        found[name] = {place for place in places if place in texts and place != name}
    return found


def cycles(imports: Graph) -> list[set[str]]:
    """The sets of modules that reach each other, the first in the order of their names first."""
    above = {name: reached(imports, name) for name in imports}
    found: list[set[str]] = []
    for name in sorted(imports):
        together = {name} | {other for other in above[name] if name in above[other]}
        if len(together) > 1 and together not in found:
            found.append(together)
    return found


def reached(imports: Graph, start: str) -> set[str]:
    found: set[str] = set()
    pending = [start]
    while pending:
        for other in imports[pending.pop()] - found:
            found.add(other)
            pending.append(other)
    return found


def test_no_new_cycle() -> None:
    """H220: no module imports, over however many others, one that imports it; what is left of that is listed, and grows smaller only."""
    imports = graph({module(path): text for path, text in source()})
    assert len(imports) > 300, "the package was not read"
    found = cycles(imports)
    new = [sorted(each) for each in found if not any(each <= left for left in LEFT.values())]
    assert new == [], "a new cycle, or one more module on an old one: give the lower module an interface of what it needs"
    gone = {what: sorted(left.difference(*(each for each in found if each <= left))) for what, left in LEFT.items() if left not in found}
    assert gone == {}, "these are on no cycle any more, or on a smaller one: take them from the list"


def test_cycles_are_found() -> None:
    """A search that finds nothing would prove nothing: plain, for type checkers only, inside a function, over three modules."""
    pairs = (
        ("from holdfast.b import B", "import holdfast.a"),
        ("if TYPE_CHECKING:\n    from holdfast.b import B", "from holdfast.a import A"),
        ("def f():\n    from holdfast import b", "from holdfast.a import A"),
    )
    for one, other in pairs:
        assert cycles(graph({"a": one, "b": other, "c": "from holdfast.a import A"})) == [{"a", "b"}]
    assert cycles(graph({"a": "import holdfast.b", "b": "import holdfast.p.c", "p.c": "from holdfast.a import A"})) == [{"a", "b", "p.c"}]
    assert cycles(graph({"a": "from holdfast.b import B", "b": "import asyncio"})) == []
    assert cycles(graph({"p": "from holdfast.p.c import C", "p.c": "from holdfast.p import D"})) == [{"p", "p.c"}]
