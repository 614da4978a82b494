"""What happened, for `watch`, the log, traces and checkers."""

from __future__ import annotations

from typing import ClassVar

from holdfast.events import Internal


class Closed(Internal, frozen=True):
    """This member leaves: it adds no more, and waits until the others have heard of what it added."""

    family: ClassVar[str] = "counter"

    waits: float  # seconds


class Counted(Internal, frozen=True):
    """A counter has another value, as this member knows it."""

    family: ClassVar[str] = "counter"

    name: str
    value: int
