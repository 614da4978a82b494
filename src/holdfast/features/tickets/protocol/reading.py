"""Reading the truth: a walk along the cells, each by a majority; and abandoning a cell whose majority is lost.  Spec: tickets 9.5, 10."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.errors import Unavailable, shown
from holdfast.features.tickets.protocol.cview import Entry
from holdfast.features.tickets.protocol.desk import Desk, End
from holdfast.features.tickets.protocol.messages import Abandon, Info
from holdfast.features.tickets.protocol.values import ANCHOR, Agent, Key, Next, Status, Val
from holdfast.features.tickets.protocol.view import Holder, TicketView

WALKS = 3  # a ring that changes under the reader is read again
HOPS_PER_TICKET = 4  # cells and moves that one walk may follow, per ticket of the pool
HOPS_MIN = 64

Found = tuple[str, Val]  # cell and value
Read = Callable[[TicketView | Unavailable], None]


def follows(before: Val, val: Val) -> bool:
    """The arc begins where the one before it ends."""
    return val.n == before.n and val.head == (before.head - before.length) % before.n


class Walk:
    """One reading of a pool. ``done`` gets the cells in order of the circle, and "" or the cell at which it ended.

    A cell that a majority does not have at all ends it too: ``unreadable`` says which of the two it was.
    """

    def __init__(self, pool: str, desk: Desk, done: Callable[[list[Found], str], None], *, all_of_them: bool = False) -> None:
        self.unreadable = False
        self.needed = self.reachable = 0  # guardians of the cell that was not
        self.referred: set[tuple[str, int]] = set()  # cells and sets that any answer points to, whether or not it is the last version
        self._pool, self._desk, self._done, self._all_of_them = pool, desk, done, all_of_them
        self._walks = 0
        self._found: list[Found] = []
        self._hops = 0

    def start(self) -> None:
        self._walks += 1
        self._found, self._hops = [], 0
        self._ask(ANCHOR, Next(0, self._desk.seats))

    def _ask(self, rid: str, at: Next) -> None:
        self._hops += 1
        self.referred.add((rid, at.cfg))
        self._desk.query(
            Key(self._pool, rid, at.cfg), at.places, lambda end: self._on_info(rid, len(at.places), end), all_of_them=self._all_of_them
        )

    def _on_info(self, rid: str, asked: int, end: End) -> None:
        val = end.best[1]
        for _, info in end.yes:
            if isinstance(info, Info) and info.val is not None:
                self.referred.add((info.val.succ.rid, info.val.succ.cfg))
                self.referred |= set() if info.val.nxt is None else {(rid, info.val.nxt.cfg)}
        if not end.won:
            self.unreadable, self.needed, self.reachable = True, asked // 2 + 1, len(end.yes) + len(end.no)
            self._done(self._found, rid)
        elif val is None:
            self._again(rid)  # Merged meanwhile, or a pool that was not founded.
        elif val.nxt is not None and self._hops <= self._limit(val):
            self._ask(rid, val.nxt)
        else:
            self._step(rid, val)

    def _step(self, rid: str, val: Val) -> None:
        if self._found and not follows(self._found[-1][1], val):
            self._again(rid)
            return
        self._found.append((rid, val))
        if val.succ.rid == ANCHOR:
            whole = sum(each.length for _, each in self._found) == val.n
            self._done(self._found, "") if whole else self._again(rid)
        elif self._hops > self._limit(val):
            self._again(rid)
        else:
            self._ask(val.succ.rid, Next(val.succ.cfg, val.succ.places))

    def _limit(self, val: Val) -> int:
        return max(HOPS_MIN, HOPS_PER_TICKET * val.n)

    def _again(self, rid: str) -> None:
        if self._walks < WALKS:
            self._desk.host.after(self._desk.config.rtx, self.start)
        else:
            self._done(self._found, rid)


class Reading:
    """``Tickets.read``."""

    def __init__(self, pool: str, desk: Desk, said: Callable[[str], Mapping[int, Entry]], done: Read) -> None:
        self._pool, self._desk, self._said, self._done = pool, desk, said, done

    def start(self) -> None:
        walk = Walk(self._pool, self._desk, lambda found, stuck: self._on_walked(walk, found, stuck))
        walk.start()

    def _on_walked(self, walk: Walk, found: list[Found], stuck: str) -> None:
        """A majority that knows nothing of the pool: it was not founded, so no ticket is owned."""
        unfounded = stuck == ANCHOR and not found and not walk.unreadable
        if unfounded or not stuck:
            self._done(self._view(found))
        else:
            text = f"tickets: too few seats answer to say who owns {shown(self._pool)} (`holdfast seats`)"
            self._done(Unavailable(text, needed=walk.needed, reachable=walk.reachable))

    def _view(self, found: list[Found]) -> TicketView:
        owners: dict[int, Holder] = {}
        for _, val in found:
            if val.status is Status.LIVE and val.holder is not None:
                said = self._said(self._pool).get(val.head)
                metadata = dict(said.metadata) if said is not None and said.token == val.token else {}
                owners[val.head] = Holder(val.holder.life, val.token, metadata)
        n = found[0][1].n if found else 0
        return TicketView(self._pool, n, dict(sorted(owners.items())), self._desk.host.now, hint=False)


class Abandoning:
    """``Tickets.abandon``: finds the holder of the cell that points to the lost one, which is asked to go on without it."""

    def __init__(
        self, pool: str, number: int, desk: Desk, call: Callable[[Agent, Callable[[int], Abandon]], None], refuse: Callable[[str], None]
    ) -> None:
        self._pool, self._number, self._desk, self._call, self._refuse = pool, number, desk, call, refuse

    def start(self) -> None:
        Walk(self._pool, self._desk, self._on_walked).start()

    def _on_walked(self, found: list[Found], stuck: str) -> None:
        if not stuck:
            self._refuse("every cell of the pool answers; a dead holder is excluded by itself")
        elif not found:
            self._refuse("no majority of the seats answers")
        else:
            self._ask_holder(found[-1][1], stuck)

    def _ask_holder(self, val: Val, stuck: str) -> None:
        head = (val.head - val.length) % val.n
        if head != self._number:
            self._refuse(f"ticket {head} is the one whose guardians do not answer; abandon that one first")
        elif val.holder is None:
            self._refuse("the cell before it has no holder either; a client has to acquire a ticket first")
        else:
            self._call(Agent(val.holder.life, val.address), lambda op: Abandon(op, self._pool, stuck))
