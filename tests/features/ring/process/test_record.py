"""The recorder that looks at rings from outside finds what it is for: lines that must never be seen."""

from __future__ import annotations

from typing import Any

import pytest

from tests.features.ring.process.record import Line, wrongs


def line(event: str, node: str, at: float, **fields: Any) -> Line:
    return {"event": event, "node": f"{node}#1", "as": f"{node}.1", "at": at, **fields}


def owned(node: str, since: float, until: float, token: int) -> Line:
    return line("Owned", node, since, key="x", since=since, until=until, token=token)


def won(node: str, loser: str, at: float, *, entitled: bool = True) -> Line:
    return line("Won", node, at, peer=f"{loser}.1", epoch=1, entitled=entitled, stop=at)


def departed(node: str, at: float) -> Line:
    return line("Departed", node, at, id=f"{node}.1", reason="deadline", was_member=True)


def removed(by: str, whom: str, at: float, *, certain: bool = True) -> Line:
    return line("Removed", by, at, id=f"{whom}.1", certain=certain, reason="failed", gen=1)


@pytest.mark.parametrize(
    "lines, told",
    [
        ([owned("a", 1.0, 2.0, 1), owned("b", 2.0, 3.0, 2)], None),
        ([owned("a", 1.0, 2.0, 1), owned("b", 1.9, 3.0, 2)], "x: b#1 from 1.9"),
        ([owned("b", 1.9, 3.0, 2), owned("a", 1.0, 9.0, 1), owned("a", 1.5, 1.6, 1)], "x: b#1 from 1.9"),
        ([owned("a", 1.0, 2.0, 2), owned("b", 2.0, 3.0, 2)], "token 2 of b#1 after 2 of a#1"),
        ([won("a", "b", 1.0), departed("b", 1.5)], None),
        ([won("a", "b", 1.0), departed("a", 1.5), won("b", "a", 2.0)], None),
        ([won("a", "b", 1.0), won("b", "a", 2.0, entitled=False), departed("a", 3.0)], None),
        ([won("a", "b", 1.0), won("b", "a", 2.0), departed("a", 3.0)], "a#1 won against b#1"),
        ([won("a", "b", 1.0), won("b", "a", 2.0), line("View", "a", 3.0)], "a#1 won against b#1"),
        ([won("a", "b", 1.0), won("b", "a", 2.0)], None),
        ([owned("b", 1.0, 2.0, 1), removed("a", "b", 2.0)], None),
        ([owned("b", 1.0, 2.0, 1), removed("a", "b", 1.9), removed("c", "b", 2.5)], "Owned of b#1 at 2.0"),
        ([owned("b", 1.0, 2.0, 1), removed("a", "b", 1.9, certain=False)], None),
        ([removed("a", "b", 1.9), won("b", "c", 2.0)], "Won of b#1 at 2.0"),
    ],
)
def test_what_must_never_be_seen_is_found(lines: list[Line], told: str | None) -> None:
    """Ring G1, G2, G3, G9: overlapping owners, tokens that do not grow, mutual deaths, acts of the declared; and nothing else."""
    found = wrongs(lines)
    assert len(found) == (0 if told is None else 1)
    assert told is None or told in found[0]
