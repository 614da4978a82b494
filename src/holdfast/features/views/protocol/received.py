"""Received: the ids of what the overlay handed to this client, so that it is handed nothing twice.  Spec: views 5.7, G7.

An id is remembered for as long as a copy may be on its way. After that the highest id of its sender stands for it: the ids of one life
grow, so what that sender said before is over, too. A copy that a dead connection or a stopped process held back for hours is not new.
"""

from __future__ import annotations

from collections import OrderedDict

from holdfast.features.views.protocol.config import GOT_MAX, GOT_SENDERS_MAX, ViewsConfig
from holdfast.host import NodeId


class ReceivedIds:
    """For one life of a client."""

    def __init__(self, config: ViewsConfig) -> None:
        self._config = config
        self._ids: OrderedDict[tuple[NodeId, int], float] = OrderedDict()  # and when each came
        self._past: OrderedDict[NodeId, int] = OrderedDict()  # sender -> the highest id that is remembered no more

    def __contains__(self, of: tuple[NodeId, int]) -> bool:
        return of in self._ids

    def has_room(self, now: float) -> bool:
        """Rather nothing is received than perhaps something twice."""
        self._forget_old(now)
        return len(self._ids) < GOT_MAX

    def is_past(self, sender: NodeId, mid: int, now: float) -> bool:
        """Its time is over: it came long ago, or its sender gave it up long ago."""
        self._forget_old(now)
        return mid <= self._past.get(sender, -1) and (sender, mid) not in self._ids

    def add(self, sender: NodeId, mid: int, now: float) -> None:
        self._ids[sender, mid] = now

    def _forget_old(self, now: float) -> None:
        while self._ids and next(iter(self._ids.values())) < now - self._config.got_seconds:
            (sender, mid), _ = self._ids.popitem(last=False)
            self._past[sender] = max(mid, self._past.pop(sender, -1))
            if len(self._past) > GOT_SENDERS_MAX:
                self._past.popitem(last=False)
