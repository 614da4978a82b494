"""Writing the own cell: accept, and a higher ballot where that is refused.  Spec: tickets 5.4; D12, D14, D16; docs/decisions.md H102.

One write at a time. It goes on until it is chosen or the coordinator is dead: by its deadline, by the end of its leave, or because
another coordinator has the cell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.features.tickets.protocol.desk import End
from holdfast.features.tickets.protocol.values import NO_BALLOT, Ballot, Val
from holdfast.kit.hold import Deposed
from holdfast.kit.phase import Outcome

if TYPE_CHECKING:
    from holdfast.features.tickets.protocol.coordinator import Coordinator


class Writer:
    """The versions of one coordinator's cell."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.sent = coordinator.val  # last version that a guardian may have
        self._coordinator = coordinator
        self._done: Callable[[Val], None] | None = None
        self._asked = NO_BALLOT  # by the PREPARE under way
        self._above = NO_BALLOT  # the highest ballot heard of
        self._era: int | None = None  # F13: a promise and what is accepted under it are of one era

    @property
    def era(self) -> int | None:
        """In which what comes next has to be accepted; None: in any."""
        return self._era

    def newest(self) -> Val:
        """What the next version is built on: two contents must never share a number (D16)."""
        chosen = self._coordinator.val
        return self.sent if self.sent.seq > chosen.seq else chosen

    def write(self, change: Callable[[Val], Val], done: Callable[[Val], None], *, above: Ballot | None = None) -> None:
        """``done`` runs when the changed version is chosen; never if we die before. ``above``: under a ballot beyond it."""
        assert self._done is None
        base = self.newest()
        self.sent = replace(change(base), seq=base.seq + 1)
        self._done = done
        if above is None:
            self._accept()
        else:
            self._above = max(self._above, above)
            self._prepare()

    def adopt(self, ballot: Ballot, val: Val) -> None:
        """5.7: another guardian set has accepted this version under this ballot."""
        assert self._done is None
        it = self._coordinator
        it.ballot, it.val, self.sent, self._era = ballot, val, val, None
        it.pool.repointed()

    def _accept(self) -> None:
        it, val = self._coordinator, self.sent
        it.phase = it.desk.accept(
            it.key, it.places, it.ballot, val, it.turn(self._on_accepted), grant=val.holder is not None, era=self._era
        )

    def _on_accepted(self, end: End) -> None:
        if end.won:
            it = self._coordinator
            it.val, done, self._done = self.sent, self._done, None
            it.pool.repointed()
            assert done is not None
            done(it.val)
        elif end.gone:
            self._coordinator.die(Deposed())
        elif end.no or end.outcome is Outcome.IMPOSSIBLE:
            self._above = max(self._above, end.promised)
            self._prepare()
        else:
            self._accept()  # Not enough answered in time.

    def _prepare(self) -> None:
        it = self._coordinator
        self._asked = it.desk.ballot(it.lease, max(self._above, it.ballot))
        it.phase = it.desk.prepare(it.key, it.places, self._asked, it.who, it.turn(self._on_prepared))

    def _on_prepared(self, end: End) -> None:
        it = self._coordinator
        if not end.won:
            self._above = max(self._above, end.promised)
            if end.gone:
                it.die(Deposed())
            else:
                it.after("prepare", it.config.rtx * it.host.random.uniform(0.5, 1.5), self._prepare)
            return
        accepted, best = end.best
        if best is None or (best != self.sent and best.who != it.who) or self._foreign(accepted):
            it.die(Deposed())
            return
        it.ballot, self._era = self._asked, end.era
        self._accept()

    def _foreign(self, accepted: Ballot) -> bool:
        """H102: another coordinator wrote here, if only our own words. An excluder that follows a move does so, and merges us further
        on."""
        return accepted > self._coordinator.ballot
