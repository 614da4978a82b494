"""The command line. ``main`` is the entry point; every verb has a file of its own and imports what it needs when it runs."""

from __future__ import annotations

import sys

from holdfast.cli.exits import BAD_INPUT, INTERRUPTED, exit_code, one_line
from holdfast.errors import HoldfastError


def main() -> None:
    """Run the command in ``sys.argv``. What goes wrong is one line on stderr and an exit code (docs/cli.md), never a traceback."""
    from typer import Abort

    from holdfast.cli.app import app
    from holdfast.cli.usage import UsageError, usage

    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        print(usage(error), file=sys.stderr)
        sys.exit(BAD_INPUT)
    except Abort:  # older versions of typer tell Ctrl-C so
        sys.exit(INTERRUPTED)
    except SystemExit as ended:
        # None of ours raises it; typer does when the reader of stdout went away.
        if isinstance(ended.__context__, BrokenPipeError):
            raise
        print(f"holdfast: a scenario or experiment called sys.exit({ended.code}); accepted is to raise an exception", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except (HoldfastError, OSError) as error:
        print(f"holdfast: {one_line(error)}", file=sys.stderr)
        sys.exit(exit_code(error))
    sys.exit(code)
