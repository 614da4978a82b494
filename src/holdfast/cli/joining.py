"""``holdfast join`` and ``leave``."""

from __future__ import annotations

from typing import Annotated, Any

from holdfast.cli.agent_call import GRACE, asked
from holdfast.cli.options import AGENT, GROUP, JSON, TIMEOUT, checked_timeout
from holdfast.cli.parser import Flag, Word
from holdfast.cli.show import print_json
from holdfast.local.calls import Join, Leave

LEAVE_TIMEOUT = 60.0  # seconds; F14: leaving waits for whatever clients were told, at most a few leases


def join(
    *,
    seeds: Annotated[tuple[str, ...], Word(help="Where to knock: the address of a member.", metavar="SEED...")],
    timeout: Annotated[float, TIMEOUT] = 30.0,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Let an agent that is in no group knock at these seeds. Ends when it is a member."""
    asked(agent, group, Join, seeds, checked_timeout(timeout), timeout=timeout + GRACE)
    told({"joined": True}, "joined", as_json=as_json)


def leave(
    *,
    stay: Annotated[bool, Flag("--stay", help="Keep the agent running, in no group; `holdfast join` brings it back.")] = False,
    timeout: Annotated[float, TIMEOUT] = LEAVE_TIMEOUT,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Let the agent drain, leave the group and end. What clients hold is given back first, or runs out."""
    asked(agent, group, Leave, not stay, timeout=checked_timeout(timeout))
    told({"left": True, "ended": not stay}, "left" if stay else "left; the agent ended", as_json=as_json)


def told(result: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        print(text)
