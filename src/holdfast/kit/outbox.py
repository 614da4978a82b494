"""Sends spread over callbacks, so that none reaches more than 64 peers.  Spec: foundation F17."""

from __future__ import annotations

from collections import deque

from holdfast.bounds import MEMBERS_MAX
from holdfast.host import FANOUT_MAX, Address, Host, Member, Message, NodeId

OUTBOX_MAX = 4096  # messages: 64 callbacks' worth; a process further behind is being flooded, and epidemics repair losses
MET_MAX = MEMBERS_MAX  # as many as a Node keeps addresses for


class Outbox:
    """First in, first out. Whatever one callback asks for leaves at once, in callbacks of its own of 64 sends each."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._queue: deque[tuple[NodeId | Address, Message]] = deque()
        self._met: dict[NodeId, Address] = {}  # whom the host was told of: once is enough
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
        """To a member of a list, which may never have been heard here."""
        self.meet(to)
        self.put(to.id, message)

    def meet(self, member: Member) -> None:
        """The list says where it is; the host is told once."""
        if self._met.get(member.id) != member.address:
            if len(self._met) >= MET_MAX:
                self._met.clear()
            self._met[member.id] = member.address
            self._host.meet(member.id, member.address)

    def clear(self) -> None:
        self._queue.clear()

    def _on_turn(self) -> None:
        for _ in range(min(FANOUT_MAX, len(self._queue))):
            to, message = self._queue.popleft()
            self._host.send(to, message)
        if self._queue:
            self._host.after(0.0, self._on_turn)
