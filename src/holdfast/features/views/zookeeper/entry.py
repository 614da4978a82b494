"""The znode of this member: made when a session begins, made again for a trip, taken away in leaving.  Spec: views 5Z (start, leave).

It ends with the session, so a former life of this agent may still have one: its boot is lower, or it is this life in an earlier session,
and then it is deleted. Any other znode of this name belongs to another agent that lives: a conflict, looked at again from time to time.

Its data is written once, because one number of the list means one list of lives (views G1). So it has the rows that this member published
when it entered. Later ones are in the next znode; members hear of them from each other (H242).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from holdfast.errors import NameConflict
from holdfast.features.views.zookeeper.data import MemberData, Paths, encode, read_member
from holdfast.features.views.zookeeper.link import Link, ignore
from holdfast.features.views.zookeeper.znodes import Failure, Reply
from holdfast.host import Host, Timer

RETRY_AFTER = 1.0  # seconds; a session of the smallest time-out lives as long


class Entry:
    """Brings this member into the group, as often as the connection begins."""

    def __init__(self, host: Host, link: Link, paths: Paths, own: MemberData) -> None:
        self._host, self._link, self._paths, self._own = host, link, paths, own
        self.conflict: NameConflict | None = None  # another agent has this name
        self.entered = False  # the znode was there, in this session, when it was last looked at
        self.on_entered: Callable[[], None] = _nothing
        self.on_refused: Callable[[str], None] = _told
        self._busy = False
        self._renewing = False  # a znode of this session that is found is not good enough
        self._retry: Timer | None = None

    def publish(self, version: int, rows: Mapping[str, bytes]) -> None:
        """What this member says of itself, from the next entry on."""
        self._own = replace(self._own, rows=dict(rows), version=version)

    def begin(self) -> None:
        """Once connected, and again when the znode is found missing."""
        self.entered = False
        if self._busy:
            return
        self._busy = True
        for path in self._paths.persistent:
            self._link.create(path, b"", ignore)
        self._create()

    def renew(self) -> None:
        """Leave and come back, so that every member gets another view (views 5Z, trip)."""
        self._renewing = True
        if self._link.up:
            self.begin()  # Otherwise with the connection.

    def reset(self) -> None:
        """The connection broke, or this member leaves."""
        self.entered = self._busy = False
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _create(self) -> None:
        self._link.create(self._paths.own, encode(self._own), self._on_created, ephemeral=True)

    def _on_created(self, reply: Reply) -> None:
        if reply.failure is None:
            self._done()
        elif reply.failure is Failure.NODE_EXISTS:
            self._link.get(self._paths.own, self._on_found)
        elif reply.failure is Failure.REFUSED:
            self._wait(f"ZooKeeper refused to create {self._paths.own}: {reply.why}")
        elif reply.failure is Failure.NO_NODE:
            self._wait(f"ZooKeeper has no {self._paths.members}, and did not let this agent create it")
        else:
            self._wait("the connection to ZooKeeper broke")

    def _on_found(self, reply: Reply) -> None:
        if reply.failure is Failure.NO_NODE:
            self._create()
        elif reply.failure is not None:
            self._wait("ZooKeeper did not say which agent has this name")
        elif reply.stat.owner == self._link.owner:
            self._on_own()
        else:
            self._on_other(read_member(reply.data, self._host.wall))

    def _on_own(self) -> None:
        if self._renewing:
            self._make_again()
        else:
            self._done()

    def _on_other(self, other: MemberData | None) -> None:
        me = self._host.me
        if other is None:
            self._refuse(f"{self._paths.own} in ZooKeeper cannot be read: remove it, or give this agent another name")
        elif other.boot < me.boot or (other.boot, other.address) == (me.boot, self._host.address):
            self._make_again()
        else:
            self._refuse(f"{me.name}#{other.boot} at {other.address} has the same name in ZooKeeper: give one of the two another name")

    def _make_again(self) -> None:
        self._link.delete(self._paths.own, ignore)
        self._create()

    def _done(self) -> None:
        self._busy = self._renewing = False
        self.entered, self.conflict = True, None
        self.on_entered()

    def _refuse(self, why: str) -> None:
        self.conflict = NameConflict(why)
        self._wait(why)

    def _wait(self, why: str) -> None:
        self.on_refused(why)
        self._retry = self._host.after(RETRY_AFTER, self._on_retry)

    def _on_retry(self) -> None:
        self._busy, self._retry = False, None
        self.begin()


def _nothing() -> None:
    """The agent is told elsewhere."""


def _told(why: str) -> None:
    """As above."""
