"""What happened, for `watch`, the log, traces and checkers."""

from __future__ import annotations

from typing import ClassVar

from holdfast.events import Internal


class Counted(Internal, frozen=True):
    """A counter has another value, as this member knows it."""

    family: ClassVar[str] = "counter"

    name: str
    value: int
