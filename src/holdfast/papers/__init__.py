"""What exists to reproduce or refute a paper; nothing that ships imports it."""

from collections.abc import Iterator
from types import ModuleType

from holdfast.features import found

PAPERS = ("ring", "detection", "tickets")  # one folder each, and one folder of experiments (`holdfast lab reproduce`)


def rooms(name: str) -> Iterator[ModuleType]:
    """The module of this name of each paper that has one."""
    return found((f"{__name__}.{paper}" for paper in PAPERS), name)
