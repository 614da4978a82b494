"""Notices: what a server tells all of its clients leaves in portions.  Spec: views 5.5, D29; foundation F17.

A callback may reach 64 peers, and a server may have 700 clients. Nothing rests on the order or on the arrival of a notice: pings fetch what
was missed.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.host import FANOUT_MAX, Host, Timer

PORTION = FANOUT_MAX - 16  # the callback may also speak to servers and answer pings


class Notices:
    """One notice per client at most: a later one takes the place of the one that waits."""

    def __init__(self, host: Host, within: float) -> None:
        self._host, self._within = host, within
        self._waiting: dict[str, Callable[[], None]] = {}
        self._timer: Timer | None = None
        self._pause = within  # between two portions of what waits

    def put(self, client: str, tell: Callable[[], None]) -> None:
        self._waiting.pop(client, None)
        self._waiting[client] = tell
        if self._timer is None:
            self._pause = self._within
            self._timer = self._host.after(0.0, self._on_portion)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._waiting.clear()

    def _on_portion(self) -> None:
        portions = -(-len(self._waiting) // PORTION)
        self._pause = min(self._pause, self._within / max(1, portions))
        # What is told may put other notices: they wait for the next portion.
        for client in list(self._waiting)[:PORTION]:
            self._waiting.pop(client)()
        self._timer = self._host.after(self._pause, self._on_portion) if self._waiting else None
