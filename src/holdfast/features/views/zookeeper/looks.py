"""Looks at the members of the group: sync, then read.  Spec: views 5Z (view, lease), D22; G1, G6.

A look asks three questions at once: sync, the own znode, the children of ``members``. One server answers them from its state in this order,
so the list is not older than the sync, and the own znode was there. The list has names and a number, the zxid of its last change. The lives
behind the names are read afterwards, and may be later ones: a znode counts only if it was created no later than the list's number;
otherwise the look begins again. So one number means one list of lives everywhere (views G1).

Lives that are known are not read again, unless a name went and came back between two lists. ``cversion`` shows that: every creation and
every deletion counts one in it, so it grew by more than the difference between the lists.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from holdfast.bounds import NUMBER_MAX
from holdfast.features.views.protocol.config import CLIENTS_MAX
from holdfast.features.views.zookeeper.data import Paths, name_of, read_member, segment
from holdfast.features.views.zookeeper.link import Link
from holdfast.features.views.zookeeper.znodes import NO_STAT, Failure, Reply, Stat
from holdfast.host import Host, NodeId, ViewMember

ENSEMBLE = NodeId("", 0)  # in the place of the server that a client is attached to
PORTION = 64  # znodes that are asked for at once
ROUND_TRIPS_MAX = 256  # kept; in a minute a look every 0.25 s comes to that
ROUND_TRIPS_SECONDS = 60.0
CVERSION_MOD = 1 << 32

OnRows = Callable[[NodeId, int, Mapping[str, bytes]], None]  # a life, the version of what it published when it entered, and that


class Seen(NamedTuple):
    """The result of a look; this member is in it."""

    began_at: float  # the list is not older than that
    number: int
    attach: int
    members: tuple[ViewMember, ...]


class Known(NamedTuple):
    """A member's znode, as it was read."""

    czxid: int
    member: ViewMember | None  # None: it cannot be read


class Look:
    """One look under way."""

    def __init__(self, began_at: float) -> None:
        self.began_at = began_at
        self.attach = 0
        self.stat: Stat = NO_STAT
        self.wanted: deque[str] = deque()  # names whose lives are not known
        self.asked = 0
        self.synced = self.read = False


class Looks:
    """At most one at a time."""

    def __init__(self, host: Host, link: Link, paths: Paths, timeout: float) -> None:
        self._host, self._link, self._paths, self._timeout = host, link, paths, timeout
        self.on_seen: Callable[[Seen], None] = _seen
        self.on_missing: Callable[[], None] = _missing  # the own znode is not there
        self.on_refused: Callable[[str], None] = _refused
        self.on_rows: OnRows = _rows
        self.malformed = 0  # znodes of members that could not be read
        self.round_trips: deque[tuple[float, float]] = deque(maxlen=ROUND_TRIPS_MAX)  # when, and how long a sync took
        self._look: Look | None = None
        self._again = False
        self._known: dict[str, Known] = {}  # of names in the list below
        self._names: frozenset[str] = frozenset()  # the last list
        self._cversion = -1  # of that list

    def begin(self, *, again: bool = False) -> None:
        """``again``: something changed, so a look that is under way may have been too early."""
        look = self._look
        if look is not None and self._host.now < look.began_at + self._timeout:
            self._again = self._again or again
            return
        look = self._look = Look(self._host.now)
        self._again = False
        self._link.sync(self._paths.members, lambda reply: self._on_synced(look, reply))
        self._link.get(self._paths.own, lambda reply: self._on_own(look, reply))
        self._link.children(self._paths.members, lambda reply: self._on_list(look, reply), watch=True)

    def reset(self) -> None:
        """Forget the look that is under way."""
        self._look, self._again = None, False

    def rtt_p99(self) -> float | None:
        """The longest 1 % of what syncs took in the last minute."""
        now = self._host.now
        lately = sorted(took for at, took in self.round_trips if at > now - ROUND_TRIPS_SECONDS)
        return lately[min(len(lately) - 1, len(lately) * 99 // 100)] if lately else None

    def _on_synced(self, look: Look, reply: Reply) -> None:
        if look is not self._look:
            return
        if reply.failure is not None:
            self._end()
            return
        self.round_trips.append((self._host.now, self._host.now - look.began_at))
        look.synced = True
        self._finish(look)

    def _on_own(self, look: Look, reply: Reply) -> None:
        if look is not self._look:
            return
        if reply.failure is Failure.NO_NODE or (reply.failure is None and reply.stat.owner != self._link.owner):
            self._end()
            self.on_missing()
        elif reply.failure is not None:
            self._end()
        else:
            look.attach = reply.stat.czxid

    def _on_list(self, look: Look, reply: Reply) -> None:
        if look is not self._look:
            return
        stat = look.stat = reply.stat
        if reply.failure is not None:
            self._end()
        elif len(reply.names) > CLIENTS_MAX:
            self._refuse(f"the group has {len(reply.names)} members in ZooKeeper, and views hold up to {CLIENTS_MAX}")
        elif stat.pzxid > NUMBER_MAX:
            self._refuse(f"ZooKeeper counts its changes with {stat.pzxid}, and the number of a view goes up to 2^53")
        else:
            self._compare(frozenset(reply.names), stat.cversion)
            look.wanted.extend(sorted(name for name in self._names if name not in self._known))
            self._read_on(look)

    def _compare(self, names: frozenset[str], cversion: int) -> None:
        """Forget what this list may have overtaken."""
        if (cversion - self._cversion) % CVERSION_MOD != len(names ^ self._names):
            self._known.clear()
        for name in sorted(self._known.keys() - names):
            del self._known[name]
        self._names, self._cversion = names, cversion

    def _read_on(self, look: Look) -> None:
        """One portion of what is wanted; at the end, the list."""
        if not look.wanted:
            look.read = True
            self._finish(look)
            return
        portion = [look.wanted.popleft() for _ in range(min(PORTION, len(look.wanted)))]
        look.asked = len(portion)
        for name in portion:
            self._link.get(f"{self._paths.members}/{name}", lambda reply, name=name: self._on_member(look, name, reply))  # type: ignore[misc]

    def _on_member(self, look: Look, name: str, reply: Reply) -> None:
        if look is not self._look:
            return
        if reply.failure is not None or reply.stat.czxid > look.stat.pzxid:
            self._end(again=reply.failure in (None, Failure.NO_NODE))  # The list is over: this name went, and may have come back.
            return
        self._known[name] = Known(reply.stat.czxid, self._member(name, reply))
        look.asked -= 1
        if look.asked == 0:
            self._read_on(look)

    def _member(self, name: str, reply: Reply) -> ViewMember | None:
        read = read_member(reply.data, self._host.wall)
        plain = name_of(name)
        if read is None or plain is None or reply.stat.version != 0:
            self.malformed += 1
            return None
        life = NodeId(plain, read.boot)
        if read.version and life != self._host.me:
            self.on_rows(life, read.version, read.rows)
        return ViewMember(life, read.address, reply.stat.czxid, ENSEMBLE)

    def _finish(self, look: Look) -> None:
        if not (look.synced and look.read):
            return
        own = self._known.get(segment(self._host.me.name))
        if own is None or own.czxid != look.attach:
            self._known.clear()  # It was deleted, or made again; perhaps the whole list was, and counts from 0.
            self._end(again=True)
            return
        if own.member is None or own.member.id != self._host.me:
            self._refuse(f"{self._paths.own} in ZooKeeper is not as this agent wrote it")
            return
        members = tuple(sorted(known.member for known in self._known.values() if known.member is not None))
        self._end(again=self._again)
        self.on_seen(Seen(look.began_at, look.stat.pzxid, look.attach, members))

    def _refuse(self, why: str) -> None:
        self._end()
        self.on_refused(why)

    def _end(self, *, again: bool = False) -> None:
        self._look, self._again = None, False
        if again:
            self.begin()


def _seen(seen: Seen) -> None:
    """Until ``on_seen`` is set: what was seen is dropped."""


def _missing() -> None:
    """Until ``on_missing`` is set: nothing follows."""


def _refused(why: str) -> None:
    """Until ``on_refused`` is set: nothing follows."""


def _rows(life: NodeId, version: int, rows: Mapping[str, bytes]) -> None:
    """Until ``on_rows`` is set: another list has the rows of the members."""
