"""The mailbox of this member: letters in the order of their numbers, each handed on once.  Spec: views 5Z (receiver), G7.

A letter is deleted when it was handed on, and that tells its sender. Should the deletion fail with the connection, the letter is found
again: what was handed on is remembered until its deletion is confirmed. A sender never writes a letter twice, so that is enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from holdfast.bounds import MEMBERS_MAX
from holdfast.features.views.zookeeper.data import Letter, Paths, order_of, read_letter
from holdfast.features.views.zookeeper.entry import RETRY_AFTER
from holdfast.features.views.zookeeper.link import Link, ignore
from holdfast.features.views.zookeeper.znodes import Failure, Reply
from holdfast.host import Host, NodeId, Timer

PORTION = 64  # letters that are asked for at once
MAILBOX_MAX = 4096  # letters of one list that are worked off before the next list; no sender has more under way
UNDELETED_MAX = MEMBERS_MAX  # letters handed on whose deletion is not confirmed: with more, reading waits


class Inbox:
    """Reads the mailbox whenever it changes."""

    def __init__(self, host: Host, link: Link, paths: Paths, deliver: Callable[[Letter], None]) -> None:
        self._host, self._link, self._paths, self._deliver = host, link, paths, deliver
        self.received = 0
        self.malformed = 0  # letters that could not be read, and znodes that are none
        self.misdirected = 0  # to another life of this agent
        self._undeleted: dict[tuple[NodeId, int], None] = {}
        self._pending: deque[str] = deque()
        self._asked = 0
        self._busy = self._again = False
        self._retry: Timer | None = None

    def look(self) -> None:
        """Once this member has entered, and when the mailbox changed."""
        if self._busy:
            self._again = True
            return
        self._busy, self._again = True, False
        self._link.children(self._paths.mailbox, self._on_list, watch=True)

    def reset(self) -> None:
        """The connection broke, or this member leaves."""
        self._busy = self._again = False
        self._pending.clear()
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _on_list(self, reply: Reply) -> None:
        if reply.failure is Failure.NO_NODE:  # Taken away, perhaps as one of a member that was gone for long.
            self._link.create(self._paths.mailbox, b"", ignore)
            self._link.children(self._paths.mailbox, self._on_list, watch=True)
        elif reply.failure is not None:
            self._wait()
        else:
            letters = sorted(name for name in reply.names if order_of(name) is not None)
            self.malformed += len(reply.names) - len(letters)
            self._again = self._again or len(letters) > MAILBOX_MAX
            self._pending.extend(letters[:MAILBOX_MAX])
            self._read_on()

    def _read_on(self) -> None:
        if not self._pending:
            self._busy = False
            if self._again:
                self.look()
            return
        if len(self._undeleted) >= UNDELETED_MAX:
            self._wait()
            return
        portion = [self._pending.popleft() for _ in range(min(PORTION, len(self._pending)))]
        self._asked = len(portion)
        for name in portion:
            path = f"{self._paths.mailbox}/{name}"
            self._link.get(path, lambda reply, path=path: self._on_letter(path, reply))  # type: ignore[misc]

    def _on_letter(self, path: str, reply: Reply) -> None:
        if not self._busy:
            return  # This member leaves.
        if reply.failure is None:
            self._take(path, reply.data)
        self._asked -= 1
        if self._asked == 0:
            self._read_on()

    def _take(self, path: str, data: bytes) -> None:
        letter = read_letter(data, self._host.wall)
        if letter is None or letter.to != self._host.me:
            self.malformed += letter is None
            self.misdirected += letter is not None
            self._link.delete(path, ignore)
            return
        key = letter.source, letter.mid
        if key not in self._undeleted:
            self._undeleted[key] = None
            self.received += 1
            self._deliver(letter)
        self._link.delete(path, lambda reply: self._on_deleted(key, reply))

    def _on_deleted(self, key: tuple[NodeId, int], reply: Reply) -> None:
        if reply.failure in (None, Failure.NO_NODE):
            self._undeleted.pop(key, None)

    def _wait(self) -> None:
        self._pending.clear()
        if self._retry is None:
            self._retry = self._host.after(RETRY_AFTER, self._on_retry)

    def _on_retry(self) -> None:
        self._retry, self._busy = None, False
        self.look()
