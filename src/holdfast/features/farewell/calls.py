"""Another agent is asked to leave, on the local socket.  docs/local-api.md has the layout."""

from __future__ import annotations

from holdfast.local.calls import Call


class ForceLeave(Call, frozen=True, tag=8):
    """Ask another agent, by name, to drain and leave. Answered when it agreed; silence is a ``Timeout``."""

    name: str
    timeout: float
