"""``holdfast run``: a command that ends before its hold can be somebody else's. docs/run.md says what is promised."""

from __future__ import annotations

import sys
from typing import Annotated

from holdfast.cli.agent_call import socket_path
from holdfast.cli.exits import NOT_EXECUTABLE, NOT_FOUND, OWN_ERROR, one_line
from holdfast.cli.options import AGENT, GROUP, checked_timeout
from holdfast.cli.run.wanted import wanted_hold
from holdfast.cli.words import Flag, Word
from holdfast.errors import ConfigError, HoldfastError

GRACE_MAX = 3600.0


def run(
    *,
    words: Annotated[tuple[str, ...], Word(help="The command and its words, after --.", metavar="-- CMD...")],
    lead: Annotated[str | None, Flag("--lead", help="Run it while this agent leads this name, for this command.", metavar="NAME")] = None,
    ticket: Annotated[
        str | None,
        Flag("--ticket", help="Run it while it holds one of the N tickets of this pool: HOLDFAST_TICKET says which.", metavar="POOL:N"),
    ] = None,
    hold: Annotated[
        str | None, Flag("--hold", help="What it must hold: a kind of grant that the agent has, and a name.", metavar="KIND:NAME")
    ] = None,
    option: Annotated[tuple[str, ...], Flag("--option", help="An option of that kind; repeat it for more.", metavar="NAME=VALUE")] = (),
    grace: Annotated[
        float | None,
        Flag("--grace", help="Seconds from SIGTERM to SIGKILL (default: with --lead 0, else a quarter of the hold).", metavar="SECONDS"),
    ] = None,
    timeout: Annotated[float | None, Flag("--timeout", help="Give up if it is not held within so many seconds.", metavar="SECONDS")] = None,
    restart: Annotated[
        bool, Flag("--restart", help="Wait for an agent that is not there; when the hold was lost, ask again and start the command anew.")
    ] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """Run a command while holding a lock or leadership; stop it before the hold expires. Without --lead, --ticket and --hold it runs
    while the agent is a member.

    Returns the command's exit code, or 124: it was stopped because the hold ended; 125: Holdfast failed; 126, 127: it cannot be run."""
    try:
        _check(words, grace, timeout)
        wanted = wanted_hold(lead, ticket, hold, option, grace)
        missing = _missing(words[0])
        if missing is not None:
            return missing
        from holdfast.cli.run.attempts import Attempts

        return Attempts(words, wanted, socket_path(agent, group), timeout=timeout, restart=restart).run()
    except (HoldfastError, OSError) as error:
        print(f"holdfast: {one_line(error)}", file=sys.stderr)
        return OWN_ERROR


def _check(words: tuple[str, ...], grace: float | None, timeout: float | None) -> None:
    if not words[0]:
        raise ConfigError("CMD: is empty; accepted is the name or path of a program")
    if timeout is not None:
        checked_timeout(timeout)
    if grace is not None and not 0 <= grace <= GRACE_MAX:
        raise ConfigError(f"--grace {grace:g}: accepted are seconds from 0 to {GRACE_MAX:g}")


def _missing(name: str) -> int | None:
    """Whether there is no such program, before anything is asked of the group. Executing it has the last word."""
    from shutil import which

    if which(name) is not None:
        return None
    from pathlib import Path

    there = "/" in name and Path(name).exists()
    print(f"holdfast: run: {name}: {'is not executable' if there else 'there is no such program'}", file=sys.stderr)
    return NOT_EXECUTABLE if there else NOT_FOUND
