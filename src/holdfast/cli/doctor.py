"""``holdfast doctor``: what the agent noticed, and what can be seen without one. docs/operations.md has one entry for each code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from holdfast.cli.agent_call import GRACE, asked, socket_path
from holdfast.cli.exits import FOUND, OK
from holdfast.cli.options import AGENT, GROUP, JSON, TIMEOUT, checked_timeout
from holdfast.cli.parser import Flag
from holdfast.cli.show import print_json, shown
from holdfast.errors import AgentLost, ConfigError, Timeout
from holdfast.local.calls import Doctor, Finding

SINCE = Flag("--since", help="Also what was last seen so many seconds ago (default 600).", metavar="SECONDS")
SINCE_MAX = 7 * 86_400.0  # seconds; an agent remembers as long as it lives, and a week is a life
RMEM_MAX = Path("/proc/sys/net/core/rmem_max")


def doctor(
    *,
    config: Annotated[str, Flag("--config", help="Look at this file of settings too.", metavar="FILE")] = "",
    since: Annotated[float, SINCE] = 600.0,
    timeout: Annotated[float, TIMEOUT] = 6.0,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """Look for what is wrong now, here and at other members. Exit code 1 if something is; warnings and notes alone are 0."""
    if not 0 <= since <= SINCE_MAX:
        raise ConfigError(f"--since {since:g}: accepted are seconds from 0 to {SINCE_MAX:g}")
    findings = [*_of_settings(config), *_of_agent(agent, group, checked_timeout(timeout), since)]
    wrong = sum(each.severity == "error" for each in findings)
    if as_json:
        print_json({"errors": wrong, "findings": [{name: getattr(each, name) for name in each.__struct_fields__} for each in findings]})
    else:
        _print(findings)
    return FOUND if wrong else OK


def _of_agent(agent: str, group: str, timeout: float, since: float) -> Iterator[Finding]:
    path = socket_path(agent, group)
    try:
        yield from asked(agent, group, Doctor, timeout, since, timeout=timeout + GRACE)
    except AgentLost as error:
        yield Finding("no_agent", "error", path, f"{error}.", "Start it, or look into its log; only this machine was looked at.")
        yield from _of_machine()
    except Timeout:
        advice = "See whether it is stopped (SIGSTOP), out of CPU or out of memory."
        yield Finding("agent_silent", "error", path, f"The agent is there and did not answer within {timeout:g} s.", advice)
        yield from _of_machine()


def _of_machine() -> Iterator[Finding]:
    """What an agent of this machine would meet."""
    from holdfast.agent.observe.symptoms import few_files, of_clock, small_buffer
    from holdfast.agent.socket.files import allowed
    from holdfast.net.clock import COUNTS_SUSPENDED_TIME

    yield from of_clock(COUNTS_SUSPENDED_TIME)
    with suppress(OSError, ValueError):  # Another system than Linux: nothing is known about it.
        yield from small_buffer(int(RMEM_MAX.read_text()), members=0)
    yield from few_files(allowed())


def _of_settings(path: str) -> Iterator[Finding]:
    if not path:
        return
    from holdfast.agent.observe.symptoms import of_settings
    from holdfast.config import load

    try:
        config = load(path, os.environ)
    except ConfigError as error:
        yield Finding("bad_settings", "error", path, f"{error}.", "Correct it; `holdfast agent --check --config FILE` says the same.")
        return
    state = Path(config.state_dir) if config.state_dir else None
    yield from of_settings(config, state, seat=bool(config.seats))


def _print(findings: list[Finding]) -> None:
    for each in findings:
        print(f"{each.severity}: {each.code}: {shown(each.about)}")
        ago = f" (last seen {each.seen_ago:.0f} s ago)" if each.seen_ago >= 1 else ""
        print(f"    {shown(each.text)}{ago}")
        print(f"    {shown(each.advice)}")
    if not findings:
        print("nothing is wrong")
