"""What this member says of itself: its ``inc``, its rows, and its answer when it is accused.  Spec: gossip 5.5, D11, D13, D16.

Only the owner of an ``inc`` raises it. A member that accuses is told the present one: after a new accusation a new inc,
after an old one the inc that refuted it already.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.events import Updated
from holdfast.features.gossip.protocol.checks import INC_MAX
from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.facts import Refuted
from holdfast.features.gossip.protocol.messages import Gossip, Rumour, Status
from holdfast.features.gossip.protocol.rumours import Rumours, rumour_of
from holdfast.features.gossip.protocol.table import Entry, Tombstone, entry
from holdfast.host import Message, NodeId, Timer, changed_rows

ANSWERS_MAX = 4  # to one peer in one period, and rounds of gossip: a peer is told again with its next probe
ANSWERED_MAX = 256  # peers in one period; an accusation has four names


class Myself:
    """The own entry. It stands in the table like the others, and nothing that a peer says overwrites it."""

    def __init__(self, core: Core, rumours: Rumours) -> None:
        self._core, self._rumours = core, rumours
        self.rows: Mapping[str, bytes] = {}  # published from now on; another object after every change
        self._raised_at = core.host.now - core.config.period  # when the inc was raised for rows last
        self._gather: Timer | None = None
        self._answers: dict[str, int] = {}  # by name of the peer, in this period
        self._answers_end_at = core.host.now
        mine = core.table.get(core.name)
        if mine is None or mine.id != core.me:
            core.table.put(entry(core.me, core.host.address))
        else:
            self.rows = mine.rows  # Of a base: this member was formed with the others.

    @property
    def entry(self) -> Entry:
        found = self._core.table.get(self._core.name)
        assert found is not None
        return found

    @property
    def inc(self) -> int:
        return self.entry.inc

    def rumour(self) -> Rumour:
        return rumour_of(self.entry)

    # Rows.

    def publish(self, row: str, value: bytes | None) -> None:
        """Raises ``ConfigError`` for what a member may not publish. Changes are gathered: one inc for all within T/5 (gossip D11)."""
        rows = changed_rows(self.rows, row, value)
        if rows is None:
            return
        self.rows = rows
        if self._gather is None and self._core.active:
            due = max(self._core.host.now, self._raised_at + self._core.config.period / 5)
            self._gather = self._core.host.at(due, self._on_gathered)

    def begin(self) -> None:
        """The first entry that others see has the rows in it."""
        self._write()

    def stop(self) -> None:
        if self._gather is not None:
            self._gather.cancel()
            self._gather = None

    def say_goodbye(self) -> Rumour:
        """Mark the own entry as LEFT, for good."""
        mine = self.entry
        now = self._core.host.now
        self._core.table.put(entry(mine.id, mine.address, mine.inc, Status.LEFT, mine.rows, mine.rows_at), Tombstone(now, now))
        return self.rumour()

    # Accusations.

    def hear(self, rumour: Rumour, source: NodeId, *, answered: bool) -> bool:
        """Hear a rumour about this life. True: it accuses, or is of a ghost; then an answer under way (``answered``) has to say so."""
        core = self._core
        mine = self.entry
        if rumour.status is Status.ALIVE and rumour.inc <= mine.inc:
            return False
        if rumour.status is not Status.ALIVE and rumour.inc < mine.inc:
            if core.rules.answer_stale:
                self._answer(rumour, source, answered=answered)
            return True
        self._raise(min(rumour.inc + 1, INC_MAX))
        if rumour.status is not Status.ALIVE:
            core.worsen(1)
        core.counts["refutations"] += 1
        core.emit(Refuted(self.inc, source.name if rumour.status is not Status.ALIVE else ""))
        self._rumours.put(self.rumour())
        if core.rules.direct:
            # The first of a period leaves before the next datagram is read (H450). One table may accuse this member a thousand times (F17).
            at_once = core.name not in self._answered()
            self._answer(rumour, source, answered=answered, at_once=at_once)
            if self._may_answer(core.name):
                self._rumours.round(soon=not at_once)
        return True

    def tell(self, source: NodeId, rumour: Rumour) -> None:
        """Tell a peer something that it should know, and not more often than an accusation is answered."""
        if self._may_answer(source.name):
            self._core.answer(source, Gossip((rumour,)))

    def _answer(self, rumour: Rumour, source: NodeId, *, answered: bool, at_once: bool = False) -> None:
        core = self._core
        if not answered and self._may_answer(source.name):
            core.answer(source, self._gossip())
        for name in rumour.accusers:
            accuser = core.table.get(name)
            if accuser is not None and accuser.listed and name not in (source.name, core.name) and self._may_answer(name):
                (core.send if at_once else core.put)(accuser.member, self._gossip())

    def _answered(self) -> dict[str, int]:
        """How often each peer was answered in the present period."""
        now = self._core.host.now
        if now >= self._answers_end_at:
            self._answers.clear()
            self._answers_end_at = now + self._core.config.period
        return self._answers

    def _may_answer(self, name: str) -> bool:
        answers = self._answered()
        count = answers.get(name, 0)
        if count >= ANSWERS_MAX or (count == 0 and len(answers) >= ANSWERED_MAX):
            self._core.counts["answers_held_back"] += 1
            return False
        answers[name] = count + 1
        return True

    def _gossip(self) -> Message:
        return Gossip((self.rumour(),))

    def _raise(self, inc: int, rows: Mapping[str, bytes] | None = None) -> None:
        mine = self.entry
        if rows is None:
            self._core.table.put(entry(mine.id, mine.address, inc, mine.status, mine.rows, mine.rows_at))
        else:
            self._core.table.put(entry(mine.id, mine.address, inc, mine.status, rows, inc))

    def _write(self) -> None:
        """Write what is published into the entry, under a new inc."""
        if dict(self.entry.rows) != self.rows and self.inc < INC_MAX:
            self._raise(self.inc + 1, dict(self.rows))
            self._raised_at = self._core.host.now

    def _on_gathered(self) -> None:
        self._gather = None
        core = self._core
        if core.active and not core.is_leaving and dict(self.entry.rows) != self.rows:
            self._write()
            self._rumours.put(self.rumour())
            if core.is_member:
                core.announce(Updated(self.entry.member))
