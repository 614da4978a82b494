"""Rows that did not come with the rumour that announced them.  Spec: gossip 3 (WANT, ROWS), D18.

The member that sent the rumour is asked first, then the member whose rows they are. What three questions do not
bring, the next comparison of tables announces again.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.messages import PAGE_BYTES_MAX, WANT_MAX, MemberRows, Rows, Want, Wanted
from holdfast.features.gossip.protocol.table import Entry
from holdfast.host import ROWS_BYTES_MAX, NodeId, Timer, rows_bytes

TRIES = 3
ASKED_MAX = 16  # members that one callback asks: far below the 64 of F17, each for up to 64 rows
ROWS_OVERHEAD_BYTES = 128  # of one member's rows on the wire, beside names and values: id, lengths


class Missing:
    """Rows that were announced and are not here."""

    __slots__ = ("life", "rows_at", "source", "tries")

    def __init__(self, life: NodeId, rows_at: int, source: NodeId) -> None:
        self.life, self.rows_at, self.source = life, rows_at, source
        self.tries = 0


class Fetch:
    """What is missing, by name: at most one per listed member."""

    def __init__(self, core: Core, take: Callable[[NodeId, int, dict[str, bytes], NodeId], None]) -> None:
        """``take``: rows that came, with the member that sent them."""
        self._core, self._take = core, take
        self._missing: dict[str, Missing] = {}
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._missing)

    def announced(self, name: str) -> int:
        """The newest rows of this member that were heard of and are not here; 0: none."""
        found = self._missing.get(name)
        return 0 if found is None else found.rows_at

    def want(self, life: NodeId, rows_at: int, source: NodeId) -> None:
        """``source`` has spoken of them, so it may have them."""
        found = self._missing.get(life.name)
        if found is not None and found.life == life and found.rows_at >= rows_at:
            return
        self._missing[life.name] = Missing(life, rows_at, source)
        if self._timer is None:
            # A moment later: one table may name many, and they fit into a few questions.
            self._timer = self._core.host.after(0.0, self._on_turn)

    def have(self, name: str, rows_at: int) -> None:
        """These are here now, or the member is not listed any more (then ``rows_at`` is the largest there can be)."""
        found = self._missing.get(name)
        if found is not None and found.rows_at <= rows_at:
            del self._missing[name]

    def stop(self) -> None:
        self._missing.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_want(self, source: NodeId, message: Want) -> None:
        """Answered in as many datagrams or frames as needed; at least as new as what was asked for, or not at all."""
        page: list[MemberRows] = []
        room = PAGE_BYTES_MAX
        for wanted in message.members:
            found = self._core.table.of(wanted.id)
            if found is None or found.rows_at < wanted.rows_at:
                continue
            size = rows_bytes(found.rows) + ROWS_OVERHEAD_BYTES
            if size > room:
                break  # 64 sets of rows of 3 KiB: the rest is asked for again.
            room -= size
            page.append(MemberRows(found.id, found.rows_at, dict(found.rows)))
        if page:
            self._core.answer(source, Rows(tuple(page)))

    def on_rows(self, source: NodeId, message: Rows) -> None:
        for each in message.members:
            if rows_bytes(each.rows) > ROWS_BYTES_MAX:
                self._core.counts["refused_rows"] += 1
            else:
                self._take(each.id, each.rows_at, each.rows, source)

    def _on_turn(self) -> None:
        """Ask, a few members at a time; again after a probe's timeout."""
        self._timer = None
        core = self._core
        asked: dict[NodeId, list[Wanted]] = {}
        for name, missing in list(self._missing.items()):
            to = self._whom(missing)
            if to is None:
                del self._missing[name]
                core.counts["rows_not_fetched"] += 1
                continue
            if to not in asked and len(asked) >= ASKED_MAX:
                continue
            of_peer = asked.setdefault(to, [])
            if len(of_peer) < WANT_MAX:
                of_peer.append(Wanted(missing.life, missing.rows_at))
                missing.tries += 1
        for to, wanted in asked.items():
            found: Entry | None = core.table.of(to)
            if found is not None:
                core.meet(found.member)
            core.answer(to, Want(tuple(wanted)))
        if self._missing:
            self._timer = core.host.after(core.config.timeout, self._on_turn)

    def _whom(self, missing: Missing) -> NodeId | None:
        if missing.tries >= TRIES or not self._core.table.lists(missing.life):
            return None
        return missing.source if missing.tries == 0 else missing.life
