"""Leaders on the local socket: the lines that leadership adds to the view of clients.  docs/local-api.md has the layout."""

from __future__ import annotations

from msgspec import Struct
from msgspec.msgpack import Decoder

from holdfast.host import NodeId
from holdfast.local.calls import GroupView

LINES = "leadership"  # where these lines are in ``GroupView.lines``


class LeaderView(Struct, frozen=True, array_like=True):
    """Who leads one name, as this agent knows it: a hint."""

    name: str
    leader: NodeId | None  # None: a member led it, and none is known to lead it now
    token: int  # of that term; of the last one where no member leads
    since: float  # wall-clock seconds when this agent heard of it


read_line = Decoder(LeaderView).decode


def leaders_in(view: GroupView) -> list[LeaderView]:
    """Sorted by name."""
    return [read_line(line) for _, line in sorted(view.lines.get(LINES, {}).items())]
