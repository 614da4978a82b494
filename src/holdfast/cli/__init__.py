"""The command line. ``main`` is the entry point; every verb has a file of its own and is imported when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from holdfast.cli.exits import BAD_INPUT, FOUND, INTERRUPTED, OWN_ERROR, exit_code, one_line
from holdfast.errors import HoldfastError

COMPLETING = "_HOLDFAST_COMPLETE"  # set by the shell's completion script; typer answers it
ABOUT_COMPLETION = ("--install-completion", "--show-completion")


def main() -> None:
    """Run the command in ``sys.argv``. What goes wrong is one line on stderr and an exit code (docs/cli.md), never a traceback."""
    try:
        _warn()
        code = (_quick() or _thorough)()
        _flush()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # The reader of stdout went away: there is no reader left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(FOUND)
    except (HoldfastError, OSError) as error:
        print(f"holdfast: {one_line(error)}", file=sys.stderr)
        sys.exit(exit_code(error))
    sys.exit(code)


def _warn() -> None:
    """A variable that is no setting is a typing error. An agent says so in its own log."""
    if COMPLETING in os.environ or (sys.argv[1:2] == ["agent"] and "--check" not in sys.argv):
        return
    if any(name.startswith("HOLDFAST_") for name in os.environ):
        from holdfast.config import unknown_variables

        for line in unknown_variables(os.environ):
            print(f"holdfast: warning: {line}", file=sys.stderr)


def _quick() -> Callable[[], int | None] | None:
    """The verb with its values, if the words are spelled plainly; typer, which knows all spellings, is slow to load."""
    from holdfast.cli.parser import read
    from holdfast.cli.verbs import find

    found = None if COMPLETING in os.environ else find(sys.argv[1:])
    if found is None:
        return None
    verb = found[0].load()
    values = read(verb, found[1])
    return None if values is None else lambda: verb(**values)


def _thorough() -> int | None:
    from typer import Abort

    from holdfast.cli.app import app
    from holdfast.cli.usage import UsageError, usage

    try:
        code: int | None = app(prog_name="holdfast", standalone_mode=False)
    except UsageError as error:
        print(usage(error), file=sys.stderr)
        return OWN_ERROR if sys.argv[1:2] == ["run"] else BAD_INPUT  # Other codes of `run` are its command's.
    except Abort:  # older versions of typer tell Ctrl-C so
        return INTERRUPTED
    except SystemExit as ended:
        # None of ours raises it; typer does when it completed a word, and when the reader of stdout went away.
        if isinstance(ended.__context__, BrokenPipeError) or COMPLETING in os.environ or set(ABOUT_COMPLETION) & set(_flags()):
            raise
        print(f"holdfast: a scenario or experiment called sys.exit({ended.code}); accepted is to raise an exception", file=sys.stderr)
        return BAD_INPUT
    return code


def _flags() -> list[str]:
    return [word.partition("=")[0] for word in sys.argv[1:]]


def _flush() -> None:
    """What could not be written shall be known before the exit code is."""
    if sys.stdout is not None:
        sys.stdout.flush()
