"""Elections on the local socket: what a client may ask.  docs/local-api.md has the layout."""

from __future__ import annotations

from holdfast.local.calls import Call


class Elect(Call, frozen=True, tag=39):
    """Begin an election of this name now, in which its leader is one candidate among others. Answered when it has begun."""

    name: str
