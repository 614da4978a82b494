"""Tables that are compared and brought together.  Spec: gossip 5.7 (SYNC receipt, sync tick), D5, D19, D20.

Equal tables cost two datagrams. Where they differ, the entries of the differing buckets go both ways. A table may
accuse, it does not kill: after a partition each side's table says that all of the other are dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from holdfast.features.gossip.protocol.cbound import MeasuredC
from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.facts import Synced
from holdfast.features.gossip.protocol.merge import Merge
from holdfast.features.gossip.protocol.messages import ALL_BUCKETS, BUCKETS, Rumour, Status, Sync, SyncDigest
from holdfast.features.gossip.protocol.pages import messages
from holdfast.features.gossip.protocol.table import NO_ROWS
from holdfast.host import Member, NodeId, Timer

JITTER = 0.1
OPEN_MAX = 64  # questions that were not answered yet; the oldest is given up
ANSWERED_MAX = 256  # questions whose pages still come: each is answered once
COMPARED_MAX = 64  # members whose last comparison is remembered, for people
GREETED_MAX = 16  # unknown peers that are shown the table in one period
GREETED_ENTRIES = 256  # entries that they are shown in one period; a larger table is shown once in several


class Comparison(NamedTuple):
    """What one comparison found."""

    differing: int  # buckets that were not equal
    at: float


class Asked:
    """A question of ours, and the pages of its answer that have come."""

    __slots__ = ("pages", "peer", "then")

    def __init__(self, peer: NodeId, then: Callable[[NodeId], None] | None) -> None:
        self.peer, self.then = peer, then
        self.pages: set[int] = set()


class Syncs:
    """Questions about tables, ours and those of others."""

    def __init__(self, core: Core, merge: Merge, measured: MeasuredC, complete: Callable[[NodeId], None]) -> None:
        """``complete``: this peer's whole table, or all that differed, has come."""
        self._core, self._merge, self._measured, self._complete = core, merge, measured, complete
        self._serial = 0
        self._asked: dict[int, Asked] = {}
        self._answered: dict[tuple[NodeId, int], None] = {}
        self._greeted: dict[NodeId, None] = {}  # in this period
        self._greeted_end_at = core.host.now
        self._after_pause: tuple[int, ...] = ()  # questions
        self._paused_until = core.host.now
        self._timer: Timer | None = None
        self.compared: dict[str, Comparison] = {}  # by the name of the peer, the oldest first

    def start(self) -> None:
        if self._timer is None:
            self._set_timer()

    def stop(self) -> None:
        self._asked.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Questions of ours.

    def with_table(self, to: Member, then: Callable[[NodeId], None] | None = None) -> None:
        """Show a peer the whole table, and ask for its own."""
        self._core.meet(to)
        self._send(to.id, self._open(to.id, then), ALL_BUCKETS, want=True)

    def with_life(self, to: NodeId) -> None:
        """As above, with a peer that has just been heard."""
        self._send(to, self._open(to, None), ALL_BUCKETS, want=True)

    def compare(self, to: Member, then: Callable[[NodeId], None] | None = None) -> int:
        """Only if there is a difference, what differs (gossip D19). Returns the number of the question."""
        serial = self._open(to.id, then)
        self._core.counts["syncs"] += 1
        self._core.send(to, SyncDigest(serial, self._core.table.root))
        return serial

    def after_pause(self, others: Iterable[Member]) -> None:
        """Ask these for what was missed. While a member that was asked after the last pause has not answered, this process or that
        member is behind with its work, and one more table would be more of it: a process with many members, late once, would stay late.
        """
        core = self._core
        if core.host.now < self._paused_until and any(serial in self._asked for serial in self._after_pause):
            core.counts["syncs_held_back"] += 1
            return
        self._paused_until = core.host.now + core.config.reconnect
        self._after_pause = tuple(self.compare(each) for each in others)

    def greet(self, source: NodeId) -> None:
        """A peer that is not known here has been heard. It may list this member and lack the others, or the other way round."""
        core = self._core
        size = core.table.size
        if core.host.now >= self._greeted_end_at:
            self._greeted.clear()
            self._greeted_end_at = core.host.now + core.config.period * max(1.0, size / GREETED_ENTRIES)
        if source in self._greeted:
            return
        if len(self._greeted) >= min(GREETED_MAX, max(1, GREETED_ENTRIES // size)):
            core.counts["greetings_held_back"] += 1
            return
        self._greeted[source] = None
        self.with_life(source)

    # What comes in.

    def on_digest(self, source: NodeId, message: SyncDigest) -> None:
        core = self._core
        if not message.answer:
            same = message.root == core.table.root
            hashes = () if same else tuple(core.table.hashes)
            core.answer(source, SyncDigest(message.serial, core.table.root, hashes, answer=True))
            return
        asked = self._asked.get(message.serial)
        if asked is not None and asked.peer == source:
            self._on_compared(message, asked)
        else:
            core.counts["late_answers"] += 1

    def on_sync(self, source: NodeId, message: Sync) -> None:
        core = self._core
        if message.page >= message.of:
            core.counts["refused_page"] += 1
            return
        for seen in message.front:
            self._measured.push(seen)
        mine = next((each for each in message.entries if each.id == source), None)
        if mine is not None and core.table.of(source) is None:
            core.meet(Member(source, mine.address, NO_ROWS))
        if message.want and (source, message.serial) not in self._answered:
            if len(self._answered) >= ANSWERED_MAX:
                del self._answered[next(iter(self._answered))]
            self._answered[source, message.serial] = None
            self._send(source, message.serial, message.buckets, want=False)
        for each in message.entries:
            self._merge_entry(each, source)
        self._note(source, message)

    def _on_compared(self, message: SyncDigest, asked: Asked) -> None:
        core = self._core
        if len(message.hashes) not in (0, BUCKETS):
            core.counts["refused_page"] += 1
            return
        if not message.hashes:
            self._end(message.serial, asked)
            core.counts["syncs_equal"] += 1
            self._found(asked.peer, 0)
            return
        buckets = sum(1 << at for at, (ours, theirs) in enumerate(zip(core.table.hashes, message.hashes, strict=True)) if ours != theirs)
        self._send(asked.peer, message.serial, buckets, want=True)

    def _note(self, source: NodeId, message: Sync) -> None:
        """Is this the last page of an answer?"""
        asked = self._asked.get(message.serial)
        if message.want:
            if message.of == 1:
                self._complete(source)  # A joiner has heard the whole table of another side.
        elif asked is not None and asked.peer == source:
            asked.pages.add(message.page)
            if len(asked.pages) >= message.of:
                self._end(message.serial, asked)
                self._core.counts["syncs_differing"] += 1
                self._found(source, message.buckets.bit_count())

    def _found(self, peer: NodeId, differing: int) -> None:
        self.compared.pop(peer.name, None)
        if len(self.compared) >= COMPARED_MAX:
            del self.compared[next(iter(self.compared))]
        self.compared[peer.name] = Comparison(differing, self._core.host.now)
        self._core.emit(Synced(peer, differing))

    def _merge_entry(self, rumour: Rumour, source: NodeId) -> None:
        """A table may accuse, not kill (gossip D5)."""
        core = self._core
        if rumour.status in (Status.SUSPECT, Status.DEAD) and core.rules.tables_accuse:
            listed = core.table.lists(rumour.id)
            if rumour.status is Status.SUSPECT or listed:
                rumour = Rumour(rumour.id, rumour.address, rumour.inc, Status.SUSPECT, (source.name,), rumour.rows_at)
        self._merge.merge(rumour, source, quiet=True)

    def _open(self, peer: NodeId, then: Callable[[NodeId], None] | None) -> int:
        if len(self._asked) >= OPEN_MAX:
            del self._asked[next(iter(self._asked))]
            self._core.counts["syncs_failed"] += 1
        self._serial += 1
        self._asked[self._serial] = Asked(peer, then)
        return self._serial

    def _end(self, serial: int, asked: Asked) -> None:
        del self._asked[serial]
        self._complete(asked.peer)
        if asked.then is not None:
            asked.then(asked.peer)

    def _send(self, to: NodeId, serial: int, buckets: int, *, want: bool) -> None:
        for message in messages(self._core, serial, self._measured.said(), want=want, buckets=buckets):
            self._core.answer(to, message)

    # Timers.

    def _set_timer(self) -> None:
        core = self._core
        interval = core.config.sync(max(1, core.n))
        if interval > 0:
            self._timer = core.host.after(interval * core.host.random.uniform(1 - JITTER, 1 + JITTER), self._on_interval)

    def _on_interval(self) -> None:
        core = self._core
        self._set_timer()
        for each in core.table.draw(core.host.random, 1, core.is_other):
            self.compare(each.member)
