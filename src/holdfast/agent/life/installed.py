"""Whether the files of this release are still the installed ones.

A running agent imports some modules when a user first asks for what they do. After an upgrade and before the restart that completes it
these files are of another release, and do not fit the modules that are loaded.
"""

from __future__ import annotations

import os

from holdfast.errors import Unavailable


def check_installed() -> None:
    """Before a late import. Raises ``Unavailable``."""
    if _written() != WRITTEN:
        raise Unavailable("another release of Holdfast was installed since this agent started; restart the agent and ask again")


def _written() -> tuple[int, int] | None:
    """Which file this module was read from, and when that was written; None if it is gone."""
    try:
        status = os.stat(__file__)  # noqa: PTH116 - a name, and no path that is worked with
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


WRITTEN = _written()  # as it was when this agent started
