"""A wrong flag or word in one line, like every other mistake; typer would draw four."""

from __future__ import annotations

from typing import Any

import typer

# typer comes with a click of its own in newer versions and needs the public one in older; both are the base of its BadParameter.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def usage(error: Any) -> str:
    """What was wrong, and where the accepted flags are listed. A command without any words asks for its help and gets it."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return str(error.format_message())
    told = " ".join(error.format_message().split()).rstrip(".")
    where = f"; see `{error.ctx.command_path} --help`" if error.ctx is not None else ""
    return f"holdfast: {told}{where}"
