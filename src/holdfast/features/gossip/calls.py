"""An operator gives up a dead member, on the local socket.  docs/local-api.md has the layout."""

from __future__ import annotations

from holdfast.local.calls import Call


class Forget(Call, frozen=True, tag=38):
    """Drop what is remembered of a dead member, here and, by rumour, elsewhere. Refused for a member that is listed."""

    name: str
