"""``holdfast run``: a command that is stopped before its hold expires. docs/run.md says what is promised.

Where the text of `holdfast run --help` comes from: the first sentence is in ``hold_flags.title``; the flag of each kind of hold is in the
``verbs.py`` of the feature that has that kind (``features/*/verbs.py``); ``--agent`` and ``--group``, which other verbs have too, are in
``cli/options.py``; all other flags, and the rest of the text, are in the declaration of ``run`` below.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, get_type_hints

from holdfast.cli.agent_call import socket_path
from holdfast.cli.exits import NOT_EXECUTABLE, NOT_FOUND, OWN_ERROR, one_line
from holdfast.cli.options import AGENT, GROUP, checked_timeout
from holdfast.cli.parser import Flag, Word
from holdfast.cli.run.hold_flags import firsts, flags, grace_default, kinds, modifiers, title
from holdfast.cli.run.wanted import wanted_hold
from holdfast.errors import ConfigError, HoldfastError

GRACE_MAX = 3600.0


def taking_kinds(verb: Callable[..., int]) -> Callable[..., int]:
    """The verb with flags for what the features offer to hold, and to wait for first, behind the words of the command."""
    hints = get_type_hints(verb, include_extras=True)
    kinds_given = {kind.parameter: kind.flag for kind in kinds()} | {first.parameter: first.flag for first in firsts()}
    kinds_given |= {modifier.parameter: modifier.flag for kind in kinds() for modifier in modifiers(kind)}
    del hints["given"]
    declared = {name: Annotated[str | None, flag] for name, flag in kinds_given.items()}
    verb.__annotations__ = {"words": hints.pop("words"), **declared, **hints}
    verb.__kwdefaults__ = {**dict.fromkeys(declared), **(verb.__kwdefaults__ or {})}
    verb.__doc__ = f"{title()} Without {flags()} it runs while the agent is a member.\n\n    {verb.__doc__}"
    return verb


@taking_kinds
def run(
    *,
    words: Annotated[tuple[str, ...], Word(help="The command and its words, after --.", metavar="-- CMD...")],
    hold: Annotated[
        str | None, Flag("--hold", help="What it must hold: a kind of grant that the agent has, and a name.", metavar="KIND:NAME")
    ] = None,
    option: Annotated[tuple[str, ...], Flag("--option", help="An option of that kind; repeat it for more.", metavar="NAME=VALUE")] = (),
    grace: Annotated[
        float | None, Flag("--grace", help=f"Seconds from SIGTERM to SIGKILL (default: {grace_default()}).", metavar="SECONDS")
    ] = None,
    timeout: Annotated[float | None, Flag("--timeout", help="Give up if it is not held within so many seconds.", metavar="SECONDS")] = None,
    restart: Annotated[
        bool, Flag("--restart", help="Wait for an agent that is not there; when the hold was lost, ask again and start the command anew.")
    ] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
    **given: str | None,
) -> int:
    """Returns the command's exit code, or 124: it was stopped because the hold ended; 125: Holdfast failed; 126, 127: it cannot be run."""
    try:
        _check(words, grace, timeout)
        wanted = wanted_hold(given, hold, option, grace)
        _check_firsts(given)
        missing = _missing(words[0])
        if missing is not None:
            return missing
        for first in firsts():
            if value := given.get(first.parameter):
                first.wait(agent, group, value, timeout)
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


def _check_firsts(given: Mapping[str, str | None]) -> None:
    for first in firsts():
        if given.get(first.parameter) == "":  # An unset variable of a script must not become "does not wait".
            raise ConfigError(f"{first.option}: is empty; accepted is a name, or no {first.option} at all")


def _missing(name: str) -> int | None:
    """Whether there is no such program, before anything is asked of the group. Executing it has the last word."""
    from shutil import which

    if which(name) is not None:
        return None
    from pathlib import Path

    there = "/" in name and Path(name).exists()
    print(f"holdfast: run: {name}: {'is not executable' if there else 'there is no such program'}", file=sys.stderr)
    return NOT_EXECUTABLE if there else NOT_FOUND
