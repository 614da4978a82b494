"""Care of the successor: does it live, where is its cell, and taking in its arc when it is over.  Spec: tickets 5.6; D6, D8, D11.

Whether the successor lives is decided by its guardians alone: they refuse while its grant runs. So word of its absence, of whatever
kind, only starts the question (F15), and a question that fails costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.features.tickets.protocol.desk import End
from holdfast.features.tickets.protocol.facts import ArcChanged, CellLost, Excluded
from holdfast.features.tickets.protocol.messages import AckUpdate, Cleave, Update
from holdfast.features.tickets.protocol.values import ANCHOR, NO_BALLOT, Agent, Key, Next, Place, Ptr, Status, Val
from holdfast.host import NodeId
from holdfast.kit.phase import Outcome

if TYPE_CHECKING:
    from holdfast.features.tickets.protocol.coordinator import Coordinator

CLEAVE_HOPS = 3  # arcs that a word of leaving is passed on
BALLOT_TRIES = 3  # 5.6: with a higher ballot each time
MOVES_MAX = 256  # sets that one absorption follows: a cell moves every 2 T at most, and its predecessor records it when they meet


class Care:
    """What one coordinator knows of its successor."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._it = coordinator
        self.agent = coordinator.val.succ.agent  # hint
        self.heard_at = coordinator.began_at
        self._retry_at = -inf
        self._lost = ""  # rid of a cell that was reported as lost
        self._repointed: AckUpdate | None = None

    @property
    def succ(self) -> Ptr:
        return self._it.val.succ

    @property
    def alone(self) -> bool:
        return self.succ.rid == self._it.rid

    def round(self) -> None:
        if self.alone:
            return
        self._update()
        now = self._it.host.now
        if now - self.heard_at > self._it.config.suspect_after and now >= self._retry_at:
            self._look_elsewhere()
            self.absorb()

    def _update(self) -> None:
        it = self._it
        chain = (it.desk.me, *it.preds)[: 2 * it.config.k + 1]
        it.desk.rounds.tell(self.agent, Update(it.pool.name, self.succ.rid, self.succ.cfg, chain))

    def _look_elsewhere(self) -> None:
        """An agent may have announced the ticket that follows our arc."""
        it = self._it
        found = it.pool.announced((it.head - it.val.length) % it.val.n)
        if found is not None:
            self.agent = found

    def on_ack(self, source: NodeId, ack: AckUpdate) -> None:
        if ack.rid != self.succ.rid or self.alone:
            return
        self.agent = ack.agent
        if ack.agent.life != source:
            return  # It was handed over: the agent that has it now has to say so itself.
        self.heard_at = self._it.host.now
        if ack.cfg > self.succ.cfg:
            self._repointed = ack
            self._it.enqueue("repoint", self._repoint)

    def on_cleave(self, cleave: Cleave) -> None:
        """From our successor; or from one further on, because we have split since it heard of us: then our successor is told, and of
        all holders of this agent only the one that comes before it on the circle tells (H167)."""
        if cleave.rid == self.succ.rid:
            self.heard_at = -inf  # A coordinator that becomes active later asks in its first round.
            self.absorb()
        elif cleave.hops < CLEAVE_HOPS and not self.alone and self._it.busy != "split":
            self._it.desk.tell(self.agent, replace(cleave, hops=cleave.hops + 1))

    def on_absence(self, life: NodeId) -> None:
        """An agent says that this life is over (F15)."""
        if life == self.agent.life and not self.alone:
            self.absorb()

    def absorb(self) -> None:
        """Only the holder of the cell that points to it merges it, and none merges the anchor (D11). So no other asks at the same time, and
        there is nothing that a jitter would spread (D23, H134)."""
        if self.succ.rid != ANCHOR and not self.alone and self._it.valid:
            self._it.enqueue("absorb", lambda: Absorption(self._it, self).start())

    def adopt(self, succ: Ptr) -> None:
        """Another successor: a child was split off, whose first RENEW is still to come."""
        self.agent, self.heard_at, self._retry_at = succ.agent, self._it.host.now, -inf

    def test_soon(self) -> None:
        """It is not known yet whether the present successor lives: it has two rounds to say so."""
        it = self._it
        self.heard_at = min(self.heard_at, it.host.now - it.config.suspect_after + 2 * it.config.period)

    def later(self, seconds: float) -> None:
        self._retry_at = self._it.host.now + seconds

    def lost(self, rid: str) -> None:
        """The Lost-cell metric."""
        self.later(self._it.config.suspect_after)
        if self._lost != rid:
            self._lost = rid
            self._it.desk.counts["cells_lost"] += 1
            self._it.host.emit(CellLost(self._it.pool.name, rid, self.agent.life))

    def _repoint(self) -> None:
        """The successor's guardians moved: record it, then the old ones are not needed."""
        it, ack, old = self._it, self._repointed, self.succ
        if ack is None or ack.rid != old.rid or ack.cfg <= old.cfg:
            it.finish()
            return

        def written(val: Val) -> None:
            it.desk.forget(Key(it.pool.name, old.rid, old.cfg), old.places)
            it.finish()

        new = Ptr(ack.rid, ack.cfg, ack.places, ack.agent)
        it.writer.write(lambda val: replace(val, succ=new), written)

    def merged(self, best: Val, visited: list[tuple[Key, tuple[Place, ...]]]) -> None:
        """The arc is ours."""
        it = self._it
        rid = visited[0][0].rid
        for key, places in visited:
            it.desk.forget(key, places)
        it.desk.counts["exclusions"] += 1
        it.host.emit(Excluded(it.pool.name, rid, best.head, it.head))
        it.host.emit(ArcChanged(it.pool.name, it.head, it.val.length))
        it.pool.announce_free(best.head, best)
        it.pool.announce(it)
        self.agent = it.val.succ.agent
        self.heard_at, self._retry_at = it.host.now, -inf
        self.test_soon()  # Several neighbours may have died together.
        if not self.alone:
            self._update()
        it.finish()
        it.server.serve()


class Absorption:
    """One try to exclude the successor: promise, accept RETIRED, merge. Follows its guardian moves (D4)."""

    def __init__(self, coordinator: Coordinator, care: Care) -> None:
        self._it, self._care = coordinator, care
        self._rid = care.succ.rid
        self._at = Next(care.succ.cfg, care.succ.places)
        self._former: Val | None = None  # the value of the previous set, if a move led us here
        self._visited: list[tuple[Key, tuple[Place, ...]]] = []
        self._above = NO_BALLOT
        self._ballot = NO_BALLOT
        self._tries = 0
        self._era = 0

    @property
    def _key(self) -> Key:
        return Key(self._it.pool.name, self._rid, self._at.cfg)

    def start(self) -> None:
        if self._rid == ANCHOR or self._care.succ.rid != self._rid:
            self._it.finish()
        else:
            self._prepare()

    def _prepare(self) -> None:
        it = self._it
        self._tries += 1
        self._ballot = it.desk.ballot(it.lease, self._above)
        it.phase = it.desk.prepare(self._key, self._at.places, self._ballot, None, it.turn(self._on_prepared))

    def _on_prepared(self, end: End) -> None:
        if end.won:
            self._era = end.era
            self._retire(end)
        elif end.busy > 0:
            self._it_lives(end.seen)
        elif end.full and len(end.yes) + len(end.full) > len(self._at.places) // 2:
            self._give_up()  # Not lost: one of its guardians missed it, and has no room to go on with it now (H133).
        elif end.gone or end.outcome is Outcome.TIMEOUT:
            self._care.lost(self._rid)
            self._it.finish()
        elif self._tries < BALLOT_TRIES:
            self._above = end.promised
            self._prepare()
        else:
            self._give_up()

    def _it_lives(self, seen: Val | None) -> None:
        if seen is not None and seen.holder is not None:
            self._care.agent = Agent(seen.holder.life, seen.address)
        self._give_up()

    def _give_up(self) -> None:
        self._care.later(self._it.config.period)
        self._it.finish()

    def _retire(self, end: End) -> None:
        """Steps 2 to 4. A set that has no value yet was only being moved to: what the set before it has counts."""
        best = end.best[1]
        if best is None and self._former is not None:
            best = replace(self._former, nxt=None)
        if best is None:
            self._care.lost(self._rid)
            self._it.finish()
        elif best.status is Status.LIVE and best.nxt is not None:
            self._accept(best, self._follow)
        else:
            self._accept(replace(best, holder=None, status=Status.RETIRED, seq=best.seq + 1, nxt=None), self._merge)

    def _accept(self, val: Val, then: Callable[[Val], None]) -> None:
        it = self._it

        def ended(end: End) -> None:
            if end.won:
                self._visited.append((self._key, self._at.places))
                then(val)
            else:
                self._give_up()

        it.phase = it.desk.accept(self._key, self._at.places, self._ballot, val, it.turn(ended), grant=False, era=self._era)

    def _follow(self, val: Val) -> None:
        """Step 3: the set that it is being moved to decides, and the move cannot be taken back any more."""
        assert val.nxt is not None
        if len(self._visited) >= MOVES_MAX:
            self._give_up()
            return
        self._former, self._at, self._tries, self._above = val, val.nxt, 0, NO_BALLOT
        self._prepare()

    def _merge(self, best: Val) -> None:
        """Step 5. Operations come one after the other, so our pointer is still the one that we followed."""
        it = self._it
        assert it.val.succ.rid == self._rid
        it.writer.write(lambda val: merge(val, best), lambda val: self._care.merged(best, self._visited))


def merge(val: Val, child: Val) -> Val:
    """The arc of ``val`` with the one that follows it."""
    return replace(val, length=val.length + child.length, succ=child.succ, fence=max(val.fence, child.fence))
