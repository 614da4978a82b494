"""``holdfast leader``."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from holdfast.cli.agent_call import AgentCall, socket_path
from holdfast.cli.exits import FOUND, OK
from holdfast.cli.options import AGENT, GROUP, JSON, TIMEOUT, checked_timeout
from holdfast.cli.parser import Flag, Word
from holdfast.cli.show import print_json, print_table, say
from holdfast.client.holding import delay_text
from holdfast.errors import ConfigError, Timeout, shown
from holdfast.local.calls import GroupView, Info, Look, Watch
from holdfast.local.leaders import ACTIVE, LINES, LeaderView, leaders_in, read_line, shown_of
from holdfast.net.clock import now

if TYPE_CHECKING:
    from holdfast.client.mirror import Mirror


def leader(
    *,
    name: Annotated[str, Word(help="A name that is led (default: all of them).", metavar="NAME")] = "",
    wait: Annotated[bool, Flag("--wait", help="Wait until it has a leader.")] = False,
    timeout: Annotated[float | None, TIMEOUT] = None,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """Who leads what, as this agent knows it: a hint. Exit code 1 if no leader is known."""
    if wait and not name:
        raise ConfigError("--wait: needs a NAME to wait for")
    if timeout is not None and not wait:
        raise ConfigError("--timeout: accepted together with --wait")
    until = float("inf") if timeout is None else now() + checked_timeout(timeout)
    with AgentCall(socket_path(agent, group)) as call:
        view = _awaited(call, name, until) if wait else call.ask(Look)
        lines = [line for line in leaders_in(view) if not name or line.name == name]
        delay = None if any(line.leader is not None for line in lines) else call.ask(Info).get("seats_delay")
    if as_json:
        print_json({"leaders": [_json(line) for line in lines]})
    elif lines:
        print_table(("NAME", "LEADER", "TOKEN", "SINCE", "BY"), [_row(line) for line in lines])
    if any(line.leader is not None for line in lines):
        return OK
    if delay:
        say(f"leader: {delay_text(delay['why'], delay['seconds'] or 0.0)}")
    elif not lines:
        about = f"{shown(name)} has no leader" if name else "no name has a leader"
        say(f"leader: {about}: no client has led it, as far as this agent heard; `holdfast run --lead NAME -- CMD` would")
    return FOUND


def _awaited(call: AgentCall, name: str, until: float) -> GroupView:
    """The view in which it has a leader: the client's, which the events of a ``Watch`` keep current."""
    from holdfast.client.mirror import Mirror, Opening

    mirror = Mirror(lambda: call.tell(Look, waiter=mirror))
    call.open(Watch, False, sink=mirror, through=partial(Opening, mirror))
    while (line := _lines(mirror).get(name)) is None or line.leader is None or line.state != ACTIVE:
        left = until - now()
        if left <= 0:
            if delay := call.ask(Info).get("seats_delay"):
                raise Timeout(f"leader: {shown(name)} has no leader yet; {delay_text(delay['why'], delay['seconds'] or 0.0)}")
            raise Timeout(f"leader: {shown(name)} has no leader yet; does a client ask for it, and do the seats answer (`holdfast seats`)?")
        call.read(left)
    return mirror.view


def _lines(mirror: Mirror) -> dict[str, LeaderView]:
    return shown_of(mirror.lines(feature, read_line) for feature in LINES)


def _json(line: LeaderView) -> dict[str, Any]:
    who = None if line.leader is None else {"name": line.leader.name, "boot": line.leader.boot}
    return {"name": line.name, "leader": who, "token": line.token, "since": line.since, "by": line.by, "state": line.state}


def _row(line: LeaderView) -> tuple[str, ...]:
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(line.since))
    by = line.by if line.state == ACTIVE else f"{line.by}, {line.state}"
    return line.name, "none" if line.leader is None else str(line.leader), str(line.token), since, by
