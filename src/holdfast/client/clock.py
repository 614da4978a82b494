"""The clock that deadlines are on: it counts the time a machine was suspended, and means nothing on another machine (F7)."""

from __future__ import annotations

from holdfast.net.clock import now, now_ns

__all__ = ["now", "now_ns"]
