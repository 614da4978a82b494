"""Exit codes that scripts can use; docs/cli.md has the table."""

from __future__ import annotations

from holdfast.errors import AgentExpelled, ConfigError, ExtraMissing, HoldfastError, HoldLost, JoinFailed, NotAMember, Timeout

OK = 0
FOUND = 1  # a violation, a missed criterion, a name that is no member: the command worked and this is its answer
BAD_INPUT = 2  # a name, flag, file or value that cannot be used; typer uses the same code
ENVIRONMENT = 3  # the input is fine, the machine is not: no agent, port in use, state locked or damaged, disk, extra not installed
TIMED_OUT = 4  # it was not done in the time that was given; it may still be done later
HOLD_LOST = 124  # `holdfast run`: the command was stopped because its hold ended (as timeout(1) says it)
OWN_ERROR = 125  # `holdfast run`: Holdfast itself failed, before or after the command ran
NOT_EXECUTABLE = 126  # `holdfast run`: the command is there and cannot be run, as in a shell
NOT_FOUND = 127  # `holdfast run`: there is no such command, as in a shell
INTERRUPTED = 130  # Ctrl-C

ANSWERS = (NotAMember, AgentExpelled, HoldLost, JoinFailed)  # the group, or a member of it, said no


class CannotServe(HoldfastError):
    """The machine refuses what a well-formed command asked for."""


def exit_code(error: HoldfastError | OSError) -> int:
    if isinstance(error, Timeout):
        return TIMED_OUT
    if isinstance(error, ANSWERS):
        return FOUND
    return BAD_INPUT if isinstance(error, ConfigError) and not isinstance(error, ExtraMissing) else ENVIRONMENT


def one_line(error: Exception) -> str:
    """The error's text without line breaks; for the system's own errors, the file and the reason."""
    if isinstance(error, OSError) and not isinstance(error, HoldfastError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__
