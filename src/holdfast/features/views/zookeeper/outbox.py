"""Letters of this member on their way.  Spec: views 5Z (carry), G5, G7.

A letter is a znode in the receiver's mailbox. The receiver deletes it when it was handed on. It also goes when the receiver leaves, when
its mailbox is cleaned, and with the own session; so when it is gone, the receiver's own znode is asked for: if it is still the one that
the view listed, the receiver has read the letter. A letter is written once. If the answer to that is lost with the connection, nothing is
known of it, and it is given up.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.features.views.protocol.config import SENDS_MAX, ViewsConfig
from holdfast.features.views.protocol.facts import Carried as Delivered
from holdfast.features.views.zookeeper.data import LETTER_PREFIX, Letter, Paths, encode
from holdfast.features.views.zookeeper.link import Link, ignore
from holdfast.features.views.zookeeper.znodes import Failure, Reply
from holdfast.host import Carried, Host, Timer, View, ViewMember
from holdfast.kit.parcels import Parcel

HOPS = 0  # of the overlay: a letter passes none
Done = Callable[[Carried], None]


class Sending:
    """One letter under way."""

    def __init__(self, to: ViewMember, data: bytes, done: Done) -> None:
        self.to, self.data, self.done = to, data, done
        self.path = ""  # of its znode, once that is known
        self.timer: Timer | None = None


class Outbox:
    """Sends letters, and says what became of each, once."""

    def __init__(self, host: Host, link: Link, paths: Paths, config: ViewsConfig) -> None:
        self._host, self._link, self._paths, self._config = host, link, paths, config
        self.on_unread: Callable[[ViewMember], None] = _unread  # a letter was not read in time
        self.counts = dict.fromkeys(("sent", "ok", "failed", "busy"), 0)
        self._mid = 0
        self._sending: dict[int, Sending] = {}
        self._mids: dict[str, int] = {}  # by path

    @property
    def under_way(self) -> int:
        return len(self._sending)

    def send(self, to: ViewMember, message: Parcel, done: Done) -> None:
        if len(self._sending) >= SENDS_MAX:
            self.counts["busy"] += 1
            done(Carried.BUSY)
            return
        self.counts["sent"] += 1
        self._mid += 1
        mid = self._mid
        sending = self._sending[mid] = Sending(to, encode(Letter(self._host.me, to.id, mid, message)), done)
        sending.timer = self._host.after(self._config.ov_deadline, lambda: self._on_deadline(mid))
        self._create(mid)

    def on_watch(self, path: str, deleted: bool) -> bool:
        """False: no letter of this path is under way."""
        mid = self._mids.get(path)
        if mid is None:
            return False
        if deleted:
            self._on_gone(mid)
        else:
            self._ask(mid)
        return True

    def on_view(self, view: View) -> None:
        """Give up the letters to receivers that are not in it: this view tells their sender why."""
        for mid in [mid for mid, sending in self._sending.items() if view.find(sending.to.id.name) != sending.to]:
            self._give_up(mid)

    def on_connected(self) -> None:
        """In the session in which they were written: ask for all that are under way."""
        for mid in list(self._sending):
            self._ask(mid)

    def on_suspended(self) -> None:
        """Letters whose creation was not confirmed may be there or not."""
        for mid in [mid for mid, sending in self._sending.items() if not sending.path]:
            self._finish(mid, Carried.TRIPPED)

    def drop(self) -> None:
        """The agent stops, and nothing waits for a result."""
        for sending in self._sending.values():
            if sending.timer is not None:
                sending.timer.cancel()
        self._sending.clear()
        self._mids.clear()

    def on_lost(self) -> None:
        """The session took its letters along, read or unread."""
        for mid in list(self._sending):
            self._finish(mid, Carried.TRIPPED)

    def _create(self, mid: int) -> None:
        sending = self._sending.get(mid)
        if sending is not None:
            path = f"{self._paths.mailbox_of(sending.to.id.name)}/{LETTER_PREFIX}"
            self._link.create(path, sending.data, lambda reply: self._on_created(mid, reply), ephemeral=True, sequence=True)

    def _on_created(self, mid: int, reply: Reply) -> None:
        sending = self._sending.get(mid)
        if sending is None:
            if reply.failure is None:
                self._link.delete(reply.path, ignore)  # It was given up meanwhile.
        elif reply.failure is None:
            sending.path, sending.data = reply.path, b""
            self._mids[reply.path] = mid
            self._ask(mid)
        elif reply.failure is Failure.NO_NODE:
            self._host.after(self._config.e2e_rto, lambda: self._create(mid))  # The receiver makes its mailbox again.
        elif reply.failure is not Failure.UNKNOWN:
            self._finish(mid, Carried.BUSY)

    def _ask(self, mid: int) -> None:
        sending = self._sending.get(mid)
        if sending is not None and sending.path:
            # Not ``exists``: where the letter is gone already, that would leave a watch for its return, which lasts as long as the session.
            self._link.children(sending.path, lambda reply: self._on_asked(mid, reply), watch=True)

    def _on_asked(self, mid: int, reply: Reply) -> None:
        if reply.failure is Failure.NO_NODE:
            self._on_gone(mid)

    def _on_gone(self, mid: int) -> None:
        sending = self._sending.get(mid)
        if sending is not None:
            self._link.exists(self._paths.member(sending.to.id.name), lambda reply: self._on_receiver(mid, reply))

    def _on_receiver(self, mid: int, reply: Reply) -> None:
        sending = self._sending.get(mid)
        if sending is None or reply.failure is Failure.UNKNOWN:
            return
        if reply.failure is None and reply.stat.czxid == sending.to.attach:
            self._host.emit(Delivered(sending.to.id, mid, HOPS))
            self._finish(mid, Carried.DELIVERED)
        else:
            self._finish(mid, Carried.TRIPPED)

    def _on_deadline(self, mid: int) -> None:
        sending = self._sending.get(mid)
        if sending is not None:
            self._give_up(mid)
            self.on_unread(sending.to)

    def _give_up(self, mid: int) -> None:
        sending = self._sending.get(mid)
        if sending is not None and sending.path:
            self._link.delete(sending.path, ignore)
        self._finish(mid, Carried.TRIPPED)

    def _finish(self, mid: int, result: Carried) -> None:
        sending = self._sending.pop(mid, None)
        if sending is None:
            return  # The callback of another letter ended this one as well.
        self._mids.pop(sending.path, None)
        if sending.timer is not None:
            sending.timer.cancel()
        self.counts["ok" if result is Carried.DELIVERED else "busy" if result is Carried.BUSY else "failed"] += 1
        sending.done(result)


def _unread(to: ViewMember) -> None:
    """The views are told elsewhere."""
