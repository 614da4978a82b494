"""``holdfast version``."""

from __future__ import annotations

import json
import platform

import typer


def version(*, as_json: bool = typer.Option(False, "--json", help="One JSON object.")) -> None:
    """Which Holdfast this is, and on which Python."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        found = installed("holdfast")
    except PackageNotFoundError:
        found = "unknown"
    if as_json:
        print(json.dumps({"version": found, "python": platform.python_version()}))
    else:
        print(f"holdfast {found} (Python {platform.python_version()})")
