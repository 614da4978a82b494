"""How a member leaves: its znode first, then its mailbox with what is in it, then the session.  Spec: views 5Z (leave).

In this order, so that the sender of a letter that goes unread sees that its receiver was gone first. It takes ``LEAVE_MAX`` at most: an
ensemble that does not answer ends the session by itself, and the smallest member takes the mailbox away.
"""

from __future__ import annotations

from holdfast.features.views.zookeeper.data import Paths
from holdfast.features.views.zookeeper.inbox import MAILBOX_MAX
from holdfast.features.views.zookeeper.link import Link, ignore
from holdfast.features.views.zookeeper.znodes import Reply, Session
from holdfast.host import Host, Timer

LEAVE_MAX = 2.0  # seconds; four round trips


class Leaving:
    """Once."""

    def __init__(self, host: Host, link: Link, session: Session, paths: Paths) -> None:
        self._host, self._link, self._session, self._paths = host, link, session, paths
        self.over = False
        self._timer: Timer | None = None

    def begin(self) -> None:
        if not self._link.up:
            self.end()
            return
        self._timer = self._host.after(LEAVE_MAX, self.end)
        self._link.delete(self._paths.own, ignore)
        self._link.children(self._paths.mailbox, self._on_list)

    def end(self) -> None:
        """Done, or it took too long."""
        if self.over:
            return
        self.over = True
        if self._timer is not None:
            self._timer.cancel()
        self._link.end()
        self._link.session = None
        self._session.close()

    def _on_list(self, reply: Reply) -> None:
        for letter in sorted(reply.names)[:MAILBOX_MAX]:
            self._link.delete(f"{self._paths.mailbox}/{letter}", ignore)
        self._link.delete(self._paths.mailbox, self._on_deleted)

    def _on_deleted(self, reply: Reply) -> None:
        """Also when ZooKeeper refused: a letter that just arrived keeps the mailbox, and the smallest member cleans it later."""
        self.end()
