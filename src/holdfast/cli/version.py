"""``holdfast version``."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli.options import JSON
from holdfast.cli.show import print_json


def version(*, as_json: Annotated[bool, JSON] = False) -> None:
    """Which Holdfast this is, and on which Python."""
    import sys
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    python = ".".join(map(str, sys.version_info[:3]))
    try:
        found = installed("holdfast")
    except PackageNotFoundError:
        found = "unknown"
    if as_json:
        print_json({"version": found, "python": python})
    else:
        print(f"holdfast {found} (Python {python})")
