"""``holdfast version``."""

from __future__ import annotations

import sys
from typing import Annotated

from holdfast.agent.life.version import VERSION
from holdfast.cli.options import JSON
from holdfast.cli.show import print_json


def version(*, as_json: Annotated[bool, JSON] = False) -> None:
    """Which Holdfast this is, and on which Python."""
    python = ".".join(map(str, sys.version_info[:3]))
    if as_json:
        print_json({"version": VERSION, "python": python})
    else:
        print(f"holdfast {VERSION} (Python {python})")
