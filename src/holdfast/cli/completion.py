"""What a shell offers for a name: the members, if the agent says so at once."""

from __future__ import annotations

from holdfast.cli.agent_call import AgentCall, socket_path
from holdfast.errors import HoldfastError
from holdfast.local.calls import Look

PATIENCE = 0.1  # seconds; a user who presses the tabulator key must not wait


def members(agent: str, group: str, incomplete: str) -> list[str]:
    """Names that begin so; none if there is no agent. Names that a shell would read as something else are left out."""
    try:
        with AgentCall(socket_path(agent, group), timeout=PATIENCE) as call:
            view = call.ask(Look, timeout=PATIENCE)
    except (HoldfastError, OSError):
        return []
    return [member.name for member in view.members if member.name.startswith(incomplete) and _is_plain(member.name)]


def _is_plain(name: str) -> bool:
    return all(c.isalnum() or c in "-_.:@" for c in name)
