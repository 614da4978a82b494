"""Exit codes that scripts can use; docs/cli.md has the table."""

from __future__ import annotations

from holdfast.errors import ConfigError, HoldfastError

OK = 0
FOUND = 1  # a violation, a missed criterion: the command worked and this is its answer
BAD_INPUT = 2  # a name, flag, file or value that cannot be used; typer uses the same code
ENVIRONMENT = 3  # the input is fine, the machine is not: port in use, state locked or damaged, disk, extra not installed
INTERRUPTED = 130  # Ctrl-C


class CannotServe(HoldfastError):
    """The machine refuses what a well-formed command asked for."""


def exit_code(error: HoldfastError | OSError) -> int:
    return BAD_INPUT if isinstance(error, ConfigError) and not _is_missing_extra(error) else ENVIRONMENT


def one_line(error: Exception) -> str:
    """The error's text without line breaks; for the system's own errors, the file and the reason."""
    if isinstance(error, OSError) and not isinstance(error, HoldfastError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def _is_missing_extra(error: ConfigError) -> bool:
    from holdfast.lab.extras import ExtraMissing

    return isinstance(error, ExtraMissing)
