"""Exit codes of the agent process; docs/cli.md has the table."""

from __future__ import annotations

from holdfast.errors import AddressUnusable, ConfigError, ExtraMissing, HoldfastError, NameConflict

LEFT = 0
FOUND = 1  # a living agent of the same name; a bug, shown with its traceback
BAD_INPUT = 2
ENVIRONMENT = 3
BY_SIGNAL = 128  # plus its number: ended at once, because it was told so twice


def exit_code(error: HoldfastError | OSError, *, loaded: bool) -> int:
    """``loaded``: the settings were fine, so an address that cannot be used is the machine's affair."""
    if isinstance(error, NameConflict):
        return FOUND
    if isinstance(error, ExtraMissing):
        return ENVIRONMENT
    if isinstance(error, ConfigError) and not (loaded and isinstance(error, AddressUnusable)):
        return BAD_INPUT
    return ENVIRONMENT


def one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
