"""Takes away the mailboxes of agents that are gone for good.  Spec: views 5Z (leave).

A member that leaves takes its own mailbox away; one that dies cannot. The member with the smallest id does it for all, when the owner was
in no view for ``ABSENT_SECONDS``. It asks for the owner's znode after it has read the mailbox: what was in it then was written to an
agent that is gone.
"""

from __future__ import annotations

from holdfast.bounds import MEMBERS_MAX
from holdfast.features.views.zookeeper.data import Paths, segment
from holdfast.features.views.zookeeper.inbox import MAILBOX_MAX
from holdfast.features.views.zookeeper.link import Link, ignore
from holdfast.features.views.zookeeper.znodes import Failure, Reply
from holdfast.host import Host, View

ABSENT_SECONDS = 600.0
LOOK_PERIOD = 60.0  # seconds: a mailbox may stay for ten percent longer
REMOVALS_MAX = 64  # mailboxes per look; the others have time


class Cleaner:
    """Counts how long the owner of each mailbox is absent, while this member is the smallest."""

    def __init__(self, host: Host, link: Link, paths: Paths) -> None:
        self._host, self._link, self._paths = host, link, paths
        self.removed = 0
        self._absent: dict[str, float] = {}  # since when, by the part of the path
        self._look_at = 0.0

    def look(self, view: View) -> None:
        """Now and then, with the present view."""
        if view.members[0].id != self._host.me:
            self._absent.clear()
            return
        if self._host.now < self._look_at:
            return
        self._look_at = self._host.now + LOOK_PERIOD
        present = {segment(member.id.name) for member in view.members}
        self._link.children(self._paths.mail, lambda reply: self._on_list(present, reply))

    def _on_list(self, present: set[str], reply: Reply) -> None:
        if reply.failure is not None:
            return
        now = self._host.now
        absent = sorted(name for name in reply.names if name not in present)[:MEMBERS_MAX]
        self._absent = {name: self._absent.get(name, now) for name in absent}
        long = [name for name, since in self._absent.items() if now >= since + ABSENT_SECONDS]
        for name in long[:REMOVALS_MAX]:
            path = f"{self._paths.mail}/{name}"
            self._link.children(path, lambda reply, name=name: self._on_mailbox(name, reply))  # type: ignore[misc]

    def _on_mailbox(self, name: str, reply: Reply) -> None:
        if reply.failure is None:
            self._link.exists(f"{self._paths.members}/{name}", lambda owner: self._on_owner(name, reply.names, owner))

    def _on_owner(self, name: str, letters: tuple[str, ...], reply: Reply) -> None:
        if reply.failure is not Failure.NO_NODE:
            self._absent.pop(name, None)
            return
        path = f"{self._paths.mail}/{name}"
        for letter in sorted(letters)[:MAILBOX_MAX]:
            self._link.delete(f"{path}/{letter}", ignore)
        self._link.delete(path, lambda reply: self._on_removed(name, reply))

    def _on_removed(self, name: str, reply: Reply) -> None:
        if reply.failure is None:
            self.removed += 1
            self._absent.pop(name, None)
