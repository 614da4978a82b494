"""Going on without a cell whose majority of guardians is lost, when an operator says that its holder is dead.  Spec: tickets 9.5, D27.

Exclusivity is not traded for it by ourselves: a person says that the holder is dead. What the remaining guardians have is taken for the
last version. It may be older than that; then a ticket inside the arc has an owner of its own, which Cview shows, and nothing is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.features.tickets.protocol.care import merge
from holdfast.features.tickets.protocol.desk import End
from holdfast.features.tickets.protocol.messages import Info
from holdfast.features.tickets.protocol.values import ANCHOR, Key, Val

if TYPE_CHECKING:
    from holdfast.features.tickets.protocol.coordinator import Coordinator

ABANDONED_FENCE = 1 << 20  # beyond whatever tokens the lost guardians have seen


class Abandonment:
    """One operation of the predecessor. ``answer`` gets "" or why it was refused."""

    def __init__(self, coordinator: Coordinator, rid: str, answer: Callable[[str], None]) -> None:
        self._it, self._rid, self._answer = coordinator, rid, answer

    def start(self) -> None:
        it, succ = self._it, self._it.val.succ
        if succ.rid != self._rid or self._rid == ANCHOR:
            self._refuse("the ring has changed meanwhile; look again")
            return
        self._old = Key(it.pool.name, succ.rid, succ.cfg), succ.places
        it.phase = it.desk.query(*self._old, it.turn(self._on_asked), all_of_them=True)

    def _on_asked(self, end: End) -> None:
        it = self._it
        infos = [each for _, each in end.yes if isinstance(each, Info)]
        best = end.best[1]
        if len(infos) > len(it.val.succ.places) // 2:
            self._refuse("a majority of its guardians answers: it is excluded by itself when its lease is over")
        elif any(info.busy > 0 for info in infos):
            self._refuse("one of its guardians granted it lately: the holder lives, or wait for the end of the lease")
        elif best is None:
            self._refuse("no guardian has a copy of it: the end of its arc is unknown")
        elif best.nxt is not None:
            self._refuse("it was being moved to other guardians, which must be asked")
        elif self._inside(best):
            self._refuse(f"tickets {self._inside(best)} of its arc have owners: the copy that is left is too old")
        else:
            it.writer.write(lambda val: _with_fence(merge(val, best)), lambda val: self._on_written(best))

    def _inside(self, val: Val) -> list[int]:
        owners = self._it.pool.cview.owners(self._it.pool.name)
        return [number for number in val.arc[1:] if number in owners]

    def _on_written(self, best: Val) -> None:
        it = self._it
        it.desk.counts["abandoned"] += 1
        self._answer("")
        it.care.merged(best, [self._old])

    def _refuse(self, why: str) -> None:
        self._answer(why)
        self._it.finish()


def _with_fence(val: Val) -> Val:
    return replace(val, fence=val.fence + ABANDONED_FENCE)
