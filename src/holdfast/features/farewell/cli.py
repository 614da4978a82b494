"""``holdfast force-leave``."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli.agent_call import GRACE, asked
from holdfast.cli.joining import told
from holdfast.cli.options import AGENT, GROUP, JSON, MEMBER, TIMEOUT, checked_timeout
from holdfast.cli.show import shown
from holdfast.features.farewell.calls import ForceLeave


def force_leave(
    *,
    name: Annotated[str, MEMBER],
    timeout: Annotated[float, TIMEOUT] = 10.0,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Ask another agent, by its name, to drain and leave. It must answer: a silent member is put out by the group itself."""
    asked(agent, group, ForceLeave, name, checked_timeout(timeout), timeout=timeout + GRACE)
    told({"agreed": True, "name": name}, f"{shown(name)} agreed to leave", as_json=as_json)
