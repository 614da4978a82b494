"""``holdfast run``: a command that ends before its hold can be somebody else's. docs/run.md says what is promised."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated, NamedTuple

from holdfast.cli.agent_call import socket_path
from holdfast.cli.exits import NOT_EXECUTABLE, NOT_FOUND, OWN_ERROR, one_line
from holdfast.cli.options import AGENT, GROUP, checked_timeout
from holdfast.cli.words import Flag, Word
from holdfast.errors import ConfigError, HoldfastError, shown

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
        wanted = _wanted(lead, ticket, hold, option, grace)
        missing = _missing(words[0])
        if missing is not None:
            return missing
        from holdfast.cli.run.attempts import Attempts

        return Attempts(words, wanted, socket_path(agent, group), timeout=timeout, restart=restart).run()
    except (HoldfastError, OSError) as error:
        print(f"holdfast: {one_line(error)}", file=sys.stderr)
        return OWN_ERROR


class Wanted(NamedTuple):
    """What the command must hold."""

    hold: str  # KIND:NAME; "" for membership
    options: dict[str, object]
    grace: float | None
    lengthened: bool = False  # the hold was asked for with the grace on top


def _wanted(lead: str | None, ticket: str | None, hold: str | None, option: tuple[str, ...], grace: float | None) -> Wanted:
    """A term is asked for as much longer as the command needs to stop (detection D26): a renewal in time never costs it its grace."""
    for flag, given in (("--lead", lead), ("--ticket", ticket), ("--hold", hold)):
        if given == "":  # An unset variable of a script must not become "runs everywhere at once".
            raise ConfigError(f"{flag}: is empty; accepted is the name of what the command must hold, or no {flag} at all")
        if given is not None and not given.isprintable():
            raise ConfigError(f"{flag}: {shown(given)}; accepted is printable text")
    short = "--lead" if lead else "--ticket"
    if (lead or ticket) and (hold or option or (lead and ticket)):
        raise ConfigError(f"{short}: stands for --hold and its options; accepted is one of --lead, --ticket and --hold")
    if lead:
        return Wanted(f"lead:{lead}", {"grace": grace or 0.0}, grace or 0.0, lengthened=True)
    if ticket:
        pool, of = parsed_ticket(ticket, "--ticket ")
        return Wanted(f"ticket:{pool}", {"of": of}, grace)
    if hold:
        parsed_hold(hold)
    return Wanted(hold or "", _options(option), grace)


def parsed_hold(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    if not kind or not colon or not name:
        raise ConfigError(f"--hold {shown(text)}: accepted is KIND:NAME")
    return kind, name


def parsed_ticket(text: str, flag: str = "") -> tuple[str, int]:
    pool, _, number = text.rpartition(":")
    if not pool or not (number.isascii() and number.isdigit()) or int(number) < 1:
        raise ConfigError(f"{flag}{shown(text)}: accepted is POOL:N, a pool and the number of its tickets, such as gpu:8")
    return pool, int(number)


def _check(words: tuple[str, ...], grace: float | None, timeout: float | None) -> None:
    if not words[0]:
        raise ConfigError("CMD: is empty; accepted is the name or path of a program")
    if timeout is not None:
        checked_timeout(timeout)
    if grace is not None and not 0 <= grace <= GRACE_MAX:
        raise ConfigError(f"--grace {grace:g}: accepted are seconds from 0 to {GRACE_MAX:g}")


def _options(pairs: tuple[str, ...]) -> dict[str, object]:
    """Values that are numbers travel as numbers, true and false as such."""
    options: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise ConfigError(f"--option {shown(pair)}: accepted is NAME=VALUE")
        options[name] = _value(value)
    return options


def _value(text: str) -> object:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return {"true": True, "false": False}.get(text, text)


def _missing(name: str) -> int | None:
    """Whether there is no such program, before anything is asked of the group. Executing it has the last word."""
    from shutil import which

    if which(name) is not None:
        return None
    from pathlib import Path

    there = "/" in name and Path(name).exists()
    print(f"holdfast: run: {name}: {'is not executable' if there else 'there is no such program'}", file=sys.stderr)
    return NOT_EXECUTABLE if there else NOT_FOUND
