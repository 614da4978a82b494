"""What somebody who only reads the lines of all processes can prove about a ring.  Spec: ring 1 (G1, G2, G3, G9), 7 (I1, I2, I8, I13).

All processes run on one machine and count with the same clock, so their lines have one order. Each check returns what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

Line = dict[str, Any]


def wrongs(lines: Sequence[Line]) -> list[str]:
    """Everything that must never be seen, whatever happened to processes and links."""
    return [*two_owners(lines), *tokens_that_fell(lines), *mutual_deaths(lines), *acts_of_the_dead(lines)]


def two_owners(lines: Sequence[Line]) -> list[str]:
    """G3: what two members were told about one key never overlaps."""
    found = []
    for key, claims in _claims(lines).items():
        ends: dict[str, Line] = {}  # who -> its claim that lasts longest
        for claim in claims:
            found += [
                f"{key}: {claim['node']} from {claim['since']:.6f}, {other['node']} until {other['until']:.6f}"
                for who, other in ends.items()
                if who != claim["as"] and other["until"] > claim["since"]
            ]
            if claim["as"] not in ends or claim["until"] > ends[claim["as"]]["until"]:
                ends[claim["as"]] = claim
    return found


def tokens_that_fell(lines: Sequence[Line]) -> list[str]:
    """G9: the next owner of a key has a larger token."""
    found = []
    for key, claims in _claims(lines).items():
        for before, after in pairwise(claims):
            if before["as"] != after["as"] and before["token"] >= after["token"]:
                found.append(f"{key}: token {after['token']} of {after['node']} after {before['token']} of {before['node']}")
    return found


def mutual_deaths(lines: Sequence[Line]) -> list[str]:
    """G1, I1: never two members that both won against the other, unless the first winner was out before the second won."""
    wins = {(line["as"], line["peer"]): line for line in lines if line["event"] == "Won" and line["entitled"]}
    out = {line["id"]: line["at"] for line in lines if line["event"] == "Departed"}
    last = {line["node"]: line["at"] for line in lines}
    found = []
    for (winner, loser), line in wins.items():
        back = wins.get((loser, winner))
        if back is None or back["at"] < line["at"]:
            continue
        gone_at = out.get(winner, last[line["node"]])
        if gone_at >= back["at"]:
            found.append(f"{line['node']} won against {back['node']} at {line['at']:.6f} and lost against it at {back['at']:.6f}")
    return found


def acts_of_the_dead(lines: Sequence[Line]) -> list[str]:
    """G2: once somebody declared a membership over, nothing is done or was promised under it beyond that instant."""
    declared: dict[str, Line] = {}
    for line in lines:
        if line["event"] == "Removed" and line["certain"] and (line["id"] not in declared or line["at"] < declared[line["id"]]["at"]):
            declared[line["id"]] = line
    found = []
    for line in lines:
        over = declared.get(line.get("as", ""))
        if over is None:
            continue
        acted_at = line["until"] if line["event"] == "Owned" else line["at"] if line["event"] in ("Won", "BecameMember") else 0.0
        if acted_at > over["at"]:
            found.append(f"{line['event']} of {line['node']} at {acted_at:.6f}; {over['node']} declared it at {over['at']:.6f}")
    return found


def _claims(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """Of each key, what its owners were told, in order."""
    claims: dict[str, list[Line]] = {}
    for line in sorted((line for line in lines if line["event"] == "Owned"), key=lambda line: float(line["since"])):
        claims.setdefault(line["key"], []).append(line)
    return claims
