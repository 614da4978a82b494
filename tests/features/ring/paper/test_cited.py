"""Nothing that the paper proves or the spec decides is without a test that names it.  Spec: ring 6."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from holdfast.features.ring.protocol import messages
from holdfast.host import Message

ABSTRACT = ("Message", "OfRing", "Lease")
RING = Path(__file__).parents[1]
OF_PAPERS = RING.parents[1] / "papers" / "ring"
WHOLE_GROUPS = [RING / "sim" / "test_directed.py", RING / "sim" / "test_orphans.py"]
FILES = sorted([*RING.glob("paper/test_*.py"), *RING.glob("unit/test_*.py"), *OF_PAPERS.glob("*/test_*.py"), *WHOLE_GROUPS])

DECISIONS = [f"D{number}" for number in range(1, 30)]
PRACTICE = [f"P{number}" for number in range(1, 5)]
SECTIONS = [f"5.{number}" for number in range(1, 9)]
THEOREMS = [f"Theorem {number}" for number in range(1, 9)]
OTHERS = ["Rule 1", "Rule 2", "Corollary 1", "Corollary 2", "Corollary 3", "Equation 1", "Equation 2", "rule RO", "entry guard", "quorum"]
LINES = ["lines 2-4", "line 3", "lines 5-6", "lines 7-8", "lines 9-11"]  # of Algorithm 1
MESSAGES = sorted(name for name, kind in vars(messages).items() if isinstance(kind, type) and issubclass(kind, Message))
INVARIANTS = [f"I{number}" for number in range(1, 16)]
GUARANTEES = [f"G{number}" for number in range(1, 10) if number not in (2, 7)]  # G2 is I2, G7 is best effort: the experiments measure it


@cache
def cited() -> str:
    """The docstrings of all tests of the ring; those of modules, which only announce, do not count."""
    found = []
    for path in FILES:
        if path.name != Path(__file__).name:
            functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
            found += [ast.get_docstring(function) or "" for function in functions if function.name.startswith("test_")]
    return "\n".join(found)


@pytest.mark.parametrize("names", [DECISIONS, PRACTICE, SECTIONS, THEOREMS, OTHERS, LINES, GUARANTEES], ids=lambda names: names[0])
def test_every_rule_has_its_test(names: list[str]) -> None:
    """Ring 5, 6, 12; paper 000: each rule, decision, theorem, corollary, equation and line of Algorithm 1 is cited by a test."""
    text = cited()
    assert [name for name in names if not re.search(rf"\b{re.escape(name)}\b", text)] == []


def test_every_message_is_tried() -> None:
    """Ring 3: each row of the table is sent by a test that plays a peer, or looked for in what a member sends."""
    text = "".join(path.read_text() for path in FILES)
    assert [name for name in MESSAGES if not re.search(rf"\bm\.{name}\b", text) and name not in ABSTRACT] == []


def test_every_invariant_has_a_checker_that_can_fail() -> None:
    """Ring 7: I1 to I15 each have a test in which the checker finds what it is for."""
    text = (RING / "sim" / "test_checkers.py").read_text()
    assert [name for name in INVARIANTS if not re.search(rf"\b{name}\b", text)] == []


def test_a_rule_that_nobody_cites_would_be_found() -> None:
    """The search finds whole names only: D1 is not in D12."""
    assert not re.search(r"\bD1\b", "D12")
    assert not re.search(r"\bD30\b", cited())
