"""Leaders on the local socket: the lines that features which lead names add to the view of clients.  docs/local-api.md has the layout.

A name is led one way: by the seats, or by an election (election D23). A reader sees all ways in one list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.msgpack import Decoder

from holdfast.host import NodeId
from holdfast.local.calls import GroupView

SEATS, ELECTION = "seats", "election"
WAYS = (SEATS, ELECTION)
ACTIVE, TENTATIVE = "active", "tentative"
LINES = ("leadership", "election")  # where these lines are in ``GroupView.lines``; a name with two leaders is shown by the first
KINDS = ("lead", "elect")  # of grants under which a client leads


class LeaderView(Struct, frozen=True, array_like=True):
    """Who leads one name, as this agent knows it: a hint."""

    name: str
    leader: NodeId | None  # None: a member led it, and none is known to lead it now
    token: int  # of that term; of the last one where no member leads
    since: float  # wall-clock seconds when this agent heard of it
    by: str = SEATS  # how it is led: "seats" or "election"
    state: str = ACTIVE  # "tentative": it was named by an election, and may not act yet


read_line = Decoder(LeaderView).decode


def leaders_in(view: GroupView) -> list[LeaderView]:
    """Sorted by name. One line per way: two, where a name is led in two ways while news travel."""
    found = (read_line(line) for feature in LINES for line in view.lines.get(feature, {}).values())
    return sorted(found, key=lambda line: line.name)


def shown_of(lines: Iterable[Mapping[str, LeaderView]]) -> dict[str, LeaderView]:
    """One line per name, of all ways: one with a leader first, and of these one that excludes others."""
    found: dict[str, LeaderView] = {}
    for each in lines:
        for name, line in each.items():
            if name not in found or (found[name].leader is None and line.leader is not None):
                found[name] = line
    return found
