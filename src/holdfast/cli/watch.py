"""``holdfast watch``."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli.agent_call import streamed
from holdfast.cli.options import AGENT, COUNT, FOR, GROUP, JSON_LINES
from holdfast.cli.parser import Flag
from holdfast.cli.shapes import event_json, event_line
from holdfast.cli.show import print_json_line
from holdfast.local.calls import Watch


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
    for item in streamed(agent, group, count, seconds, Watch, internal):
        if as_json:
            print_json_line(event_json(item))
        else:
            print(event_line(item), flush=True)
