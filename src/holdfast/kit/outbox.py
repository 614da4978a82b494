"""Sends spread over callbacks, so that none reaches more than 64 peers.  Spec: foundation F17."""

from __future__ import annotations

from collections import deque

from holdfast.host import FANOUT_MAX, Address, Host, Member, Message, NodeId

OUTBOX_MAX = 4096  # messages: 64 callbacks' worth; whoever is further behind is being flooded, and epidemics repair losses


class Outbox:
    """First in, first out. Whatever one callback asks for leaves at once, in callbacks of its own of 64 sends each."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._queue: deque[tuple[NodeId | Address, Message]] = deque()
        self.refused = 0  # messages that found the queue full

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, to: NodeId | Address, message: Message) -> None:
        if len(self._queue) >= OUTBOX_MAX:
            self.refused += 1
            return
        if not self._queue:
            self._host.after(0.0, self._on_turn)
        self._queue.append((to, message))

    def put_member(self, to: Member, message: Message) -> None:
        """To somebody from a member list, who may never have been heard here: the list says where it is."""
        self._host.meet(to.id, to.address)
        self.put(to.id, message)

    def clear(self) -> None:
        self._queue.clear()

    def _on_turn(self) -> None:
        for _ in range(min(FANOUT_MAX, len(self._queue))):
            to, message = self._queue.popleft()
            self._host.send(to, message)
        if self._queue:
            self._host.after(0.0, self._on_turn)
