"""``holdfast watch``."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli.agent_call import AgentCall, socket_path
from holdfast.cli.options import AGENT, COUNT, FOR, GROUP, JSON_LINES, checked_limits
from holdfast.cli.shapes import event_json, event_line
from holdfast.cli.show import print_json_line
from holdfast.cli.words import Flag
from holdfast.local.calls import Watch
from holdfast.net.clock import now


def watch(
    *,
    internal: Annotated[bool, Flag("--internal", help="Also the facts inside the protocols.")] = False,
    count: Annotated[int, COUNT] = 0,
    seconds: Annotated[float, FOR] = 0.0,
    as_json: Annotated[bool, JSON_LINES] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Print what happens in the group, as it happens."""
    checked_limits(count, seconds)
    until = now() + seconds if seconds else float("inf")
    with AgentCall(socket_path(agent, group)) as call:
        for seen, item in enumerate(call.stream(Watch, internal, until=until), 1):
            if as_json:
                print_json_line(event_json(item))
            else:
                print(event_line(item), flush=True)
            if seen == count:
                return
