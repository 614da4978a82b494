"""The command line. ``main`` is the entry point; every verb has a file of its own and imports what it needs when it runs."""

from __future__ import annotations

import sys

from holdfast.cli.exits import exit_code, one_line
from holdfast.errors import HoldfastError


def main() -> None:
    """Run the command in ``sys.argv``. What goes wrong is one line on stderr and an exit code (docs/cli.md), never a traceback."""
    from holdfast.cli.app import app

    try:
        app()
    except (HoldfastError, OSError) as error:
        print(f"holdfast: {one_line(error)}", file=sys.stderr)
        sys.exit(exit_code(error))
