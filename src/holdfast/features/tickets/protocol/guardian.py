"""Guardian: keeps cells for others; the whole safety core.  Spec: tickets 5.1, 5.2; D4, D13, D14, D18, D20.

A cell is a register in the manner of Paxos with one more rule: while a grant runs, only its holder gets a promise. A grant is never
saved. After a restart a seat takes every grant to be running for the longest length it ever gave (kit.keeper); an agent that is
no seat comes back as another life, which is in no guardian set.

Nothing is answered that rests on what is not durable yet: an answer waits for the last save of its cell.

What there is no room for is refused, and said to be (``cells``, docs/decisions.md H133).

A seat that has more to do than it can loses what is asked last. A candidate asks again; a holder whose renewal is not answered stops. So
renewals are answered as they are read, and all else of the same turn afterwards, a bounded share of it at a time (``Requests``, H166).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from math import inf

import msgspec

from holdfast.bounds import highest_of, is_beyond, is_bound_broken
from holdfast.errors import StorageDamaged, shown
from holdfast.events import RecordUnusable
from holdfast.features.tickets.protocol.cells import Cell, Cells
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.facts import CellWritten
from holdfast.features.tickets.protocol.messages import (
    Accept,
    Accepted,
    Alive,
    Forget,
    Info,
    Prepare,
    Promised,
    Query,
    Refusal,
    Refuse,
    Renew,
    Renewal,
    Renewals,
    Renewed,
)
from holdfast.features.tickets.protocol.values import ANCHOR, NO_BALLOT, NOBODY, Ballot, Key, LeaseId, Val, Who, key_fits, val_fits
from holdfast.host import Host, Message, NodeId, Timer
from holdfast.kit.keeper import Keeper

PART = "cells"  # of the seat's journal: the state of each cell, under its key as JSON
SWEEP_PERIOD = 60.0
SWEEP_SAVES_MAX = 512  # deletions that wait for the disk at a time: it takes 4096 saves of all machines together
WAITING_MAX = 1024  # requests; each is asked again, every ``rtx``, by who wants to know
TURN_MAX = 32  # answered in one callback: about 3 ms
DROPPED = "requests_dropped"

Reply = Callable[[Message], None]
Record = tuple[Ballot, Ballot, Val | None, bool]  # promised, accepted, val, gone
_highest = highest_of(Record)


class Requests:
    """What a guardian is asked beside renewals, until those are answered: first in, first out."""

    def __init__(self, host: Host, counts: Counter[str]) -> None:
        self._host, self._counts = host, counts
        self._waiting: deque[Callable[[], None]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, handle: Callable[[], None]) -> None:
        if len(self._waiting) >= WAITING_MAX:
            self._counts[DROPPED] += 1
            return
        if not self._waiting:
            self._host.after(0.0, self._on_turn)
        self._waiting.append(handle)

    def clear(self) -> None:
        self._waiting.clear()

    def _on_turn(self) -> None:
        for _ in range(min(TURN_MAX, len(self._waiting))):
            self._waiting.popleft()()
        if self._waiting:
            self._host.after(0.0, self._on_turn)


class Guardian:
    """All cells that this agent keeps. ``keeper`` is that of its seat; None: it is none, and has no journal."""

    def __init__(self, host: Host, config: TicketConfig, keeper: Keeper | None) -> None:
        self._host, self._config, self._keeper = host, config, keeper
        self._storage = host.storage.part(PART)
        self.table = Cells()
        self.draining = False
        self.unusable: dict[Key, str] = {}  # why: this seat says nothing about this cell
        self.counts: Counter[str] = (
            Counter()
        )  # renewed, refused_renewal, promised, refused, accepted, forgotten, silent, malformed, table_full, far_ahead, unusable
        self._timer: Timer | None = None
        self._deleting = False  # a sweep waits for the disk
        if keeper is not None:
            self._load()

    @property
    def cells(self) -> dict[Key, Cell]:
        """What is kept, by key; what was forgotten is in the table's ``tombstones``."""
        return self.table.kept

    def start(self) -> None:
        for key, why in self.unusable.items():
            self._host.emit(RecordUnusable(f"{key.pool}/{key.rid}/{key.cfg}", why))
        self._timer = self._host.after(SWEEP_PERIOD, self._on_sweep)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def on_message(self, message: Message, reply: Reply, source: NodeId = NOBODY.life) -> None:
        if self._keeper is not None and self._keeper.wait == inf:
            self.counts["silent"] += 1  # F13: it is not known yet, or any more, what this seat has promised.
            return
        if isinstance(message, Renewals):
            self.on_renewals(source, message, reply)
            return
        assert isinstance(message, Renew | Prepare | Accept | Query | Forget)
        if not key_fits(message.key) or (isinstance(message, Accept) and not val_fits(message.val)):
            self.counts["malformed"] += 1
            return
        if is_beyond(_growth(message), self._host.wall):
            self.counts["far_ahead"] += 1  # No candidate could go on from it; a peer's is refused by the codec already.
            return
        if message.key in self.unusable:
            self.counts["unusable"] += 1
            return
        grants = isinstance(message, Renew) or (isinstance(message, Accept) and message.grant)
        if grants and self._keeper is not None and not self._keeper.reaches(self._host.now + self._config.lease):
            self.counts["silent"] += 1
            return
        if isinstance(message, Renew):
            self.on_renew(message, reply)
        elif isinstance(message, Prepare):
            self.on_prepare(message, reply)
        elif isinstance(message, Accept):
            self.on_accept(message, reply)
        elif isinstance(message, Query):
            self.on_query(message, reply)
        else:
            self.on_forget(message, reply)

    def busy(self, cell: Cell | None) -> float:
        """Seconds that a grant may still run, as far as known here; 0.0 if none does."""
        wait = 0.0 if self._keeper is None else self._keeper.wait
        return max(wait, 0.0 if cell is None else cell.grant_until - self._host.now)

    # 5.1, one handler for each question.

    def on_renew(self, renew: Renew, reply: Reply) -> None:
        cell = self.table.get(renew.key)
        if cell is None or cell.gone or cell.val is None or renew.ballot < cell.promised:
            self._refuse_renewal(renew, cell, reply)
            return
        cell.touched_at = self._host.now
        ok, stale = cell.val.who == renew.who, cell.val.seq < renew.seq
        raised = ok and renew.ballot > cell.promised
        if ok:
            cell.promised = renew.ballot
            self._grant(cell)
        self.counts["renewed" if ok else "refused_renewal"] += 1
        alive = Alive(renew.key, renew.who, renew.stamp, ok, cell.promised, stale, self.draining)
        self._say(renew.key, cell, reply, alive, changed=raised, grant=ok)

    def on_renewals(self, source: NodeId, renewals: Renewals, reply: Reply) -> None:
        """H166: each cell as if it had come alone. What can be said at once is said together, the rest when it is durable."""
        answers: list[tuple[int, Alive]] = []
        for index, each in enumerate(renewals.cells):
            answer = _Answer(index, answers, reply)
            self.on_message(_renew(source, each, renewals.stamp), answer)
            answer.now = False
        if answers:
            ok = tuple(index for index, alive in answers if alive.ok)
            stale = tuple(index for index, alive in answers if alive.ok and alive.stale)
            refused = tuple(Refusal(index, alive.promised, alive.stale) for index, alive in answers if not alive.ok)
            reply(Renewed(renewals.serial, ok, stale, refused, self.draining))

    def on_prepare(self, prepare: Prepare, reply: Reply) -> None:
        cell = self._cell(prepare, reply)
        if cell is None:
            return
        if cell.gone or prepare.ballot < cell.promised:
            self._refuse(prepare, cell, reply)
            return
        raised = prepare.ballot > cell.promised
        if raised and self.busy(cell) > 0 and not self._is_holder(cell, prepare):
            self._refuse(prepare, cell, reply, busy=self.busy(cell))  # Without promising: the holder lives (D6).
            return
        cell.promised = prepare.ballot
        self.counts["promised"] += 1
        self._say(prepare.key, cell, reply, Promised(prepare.op, cell.accepted, cell.val, self._era), changed=raised)

    def on_accept(self, accept: Accept, reply: Reply) -> None:
        cell = self._cell(accept, reply)
        if cell is None:
            return
        if cell.gone or accept.ballot < cell.promised:
            self._refuse(accept, cell, reply)
            return
        ballot, val = accept.ballot, accept.val
        changed = cell.val is None or (cell.accepted, cell.val.seq) < (ballot, val.seq)
        if changed:
            if cell.val is not None and cell.val.who != val.who:
                cell.grant_until = -inf  # The old holder has stopped, or its grant had run out.
            cell.promised = cell.accepted = ballot
            cell.val = val
            self._host.emit(CellWritten(accept.key, ballot, val))
        grant = accept.grant and cell.val is not None and cell.val.who == val.who
        if grant:
            self._grant(cell)
        self.counts["accepted"] += 1
        self._say(accept.key, cell, reply, Accepted(accept.op, self._era), changed=changed, grant=grant)

    def on_query(self, query: Query, reply: Reply) -> None:
        cell = self.table.get(query.key)
        if cell is None:
            reply(Info(query.op, NO_BALLOT, None, self.busy(None), gone=False, era=self._era))
            return
        self._say(query.key, cell, reply, Info(query.op, cell.accepted, cell.val, self.busy(cell), cell.gone, self._era))

    def on_forget(self, forget: Forget, reply: Reply) -> None:
        if forget.key.rid == ANCHOR:
            self.counts["malformed"] += 1  # D11: the anchor is not merged.
            return
        cell, answer = self.table.get(forget.key), Accepted(forget.op, self._era)
        if cell is None and not self.table.has_room_for_tombstone:
            # It needs none here: the majority that retired it has it, and has a tombstone from now on or refuses as before.
            self.counts["table_full"] += 1
            reply(answer)
            return
        changed = cell is None or not cell.gone
        if cell is None or changed:
            self.counts["forgotten"] += 1
            cell = self.table.bury(forget.key, self._host.now)
        self._say(forget.key, cell, reply, answer, changed=changed)

    def _is_holder(self, cell: Cell, prepare: Prepare) -> bool:
        return prepare.who is not None and cell.val is not None and cell.val.who == prepare.who

    def _grant(self, cell: Cell) -> None:
        cell.grant_until = max(cell.grant_until, self._host.now + self._config.lease)

    def _refuse_renewal(self, renew: Renew, cell: Cell | None, reply: Reply) -> None:
        """A cell that never got a value here lacks it because a message was lost: it is sent again, as for an old version."""
        self.counts["refused_renewal"] += 1
        promised = NO_BALLOT if cell is None else cell.promised
        stale = cell is None or (not cell.gone and cell.val is None and renew.ballot >= promised)
        alive = Alive(renew.key, renew.who, renew.stamp, ok=False, promised=promised, stale=stale, draining=self.draining)
        if cell is None:
            reply(alive)
        else:
            self._say(renew.key, cell, reply, alive)

    def _refuse(self, asked: Prepare | Accept, cell: Cell, reply: Reply, *, busy: float = 0.0) -> None:
        self.counts["refused"] += 1
        self._say(asked.key, cell, reply, Refuse(asked.op, cell.promised, cell.val, busy, cell.gone, self._era))

    def _cell(self, asked: Prepare | Accept, reply: Reply) -> Cell | None:
        """The one that is asked about, made if it is not there. None: there is no room for it, and that was said."""
        cell = self.table.get(asked.key)
        if cell is None:
            if not self.table.has_room(asked):
                self.counts["table_full"] += 1
                reply(Refuse(asked.op, NO_BALLOT, None, 0.0, gone=False, era=self._era, full=True))
                return None
            cell = self.table.put(asked.key, Cell(self._host.now))
        elif not cell.gone:
            cell.touched_at = self._host.now
        return cell

    # 5.2, the journal.

    @property
    def _era(self) -> int:
        return 0 if self._keeper is None else self._keeper.era

    def _say(self, key: Key, cell: Cell, reply: Reply, answer: Message, *, changed: bool = False, grant: bool = False) -> None:
        """Answer when everything that the answer rests on is durable."""
        if self._keeper is None:
            reply(answer)
            return
        if grant and not self._keeper.covers(self._config.lease):
            self._keeper.cover(self._config.lease, _nothing)  # completes before the next save does
            changed = True
        if changed:
            self._save(key, cell)
        if cell.unsaid is None:
            reply(answer)
        else:
            cell.unsaid.append(partial(reply, answer))

    def _save(self, key: Key, cell: Cell) -> None:
        unsaid: list[Callable[[], None]] = []
        cell.unsaid = unsaid
        record: Record = cell.promised, cell.accepted, cell.val, cell.gone
        self._storage.save(_text(key), msgspec.msgpack.encode(record), lambda: self._on_saved(cell, unsaid))
        if self._keeper is not None:
            self._keeper.on_change()

    def _on_saved(self, cell: Cell, unsaid: list[Callable[[], None]]) -> None:
        if cell.unsaid is unsaid:
            cell.unsaid = None
        for say in unsaid:
            say()

    def _load(self) -> None:
        for text, value in sorted(self._storage.load().items()):
            try:
                key = msgspec.json.decode(text, type=Key)
                record = self._read(key, value)
            except (msgspec.DecodeError, ValueError) as error:
                raise StorageDamaged(f"the cell {shown(text)} in the seat's journal is unreadable: {error}") from None
            if record is not None:
                cell = Cell(self._host.now)
                cell.promised, cell.accepted, cell.val, cell.gone = record
                self.table.put(key, cell)

    def _read(self, key: Key, value: bytes) -> Record | None:
        """None: no candidate could go on from a number in it. The record stays as it is, and the cell unused (H174)."""
        try:
            record: Record = msgspec.msgpack.decode(value, type=Record)
        except msgspec.ValidationError as error:
            if not is_bound_broken(error):
                raise
            self.unusable[key] = str(error)
            return None
        assert _highest is not None
        if is_beyond(_highest(record), self._host.wall):
            self.unusable[key] = f"number {_highest(record)} is further ahead of the clock than any honest one"
            return None
        return record

    def _on_sweep(self) -> None:
        """Tombstones and cells that never got a value are deleted when no message about them can be on the road any more."""
        self._timer = self._host.after(SWEEP_PERIOD, self._on_sweep)
        if not self._deleting:
            oldest = self._host.now - self._config.tombstone_ttl
            self._delete(iter(self.table.old(oldest)), oldest)

    def _delete(self, keys: Iterator[Key], oldest: float) -> None:
        """In portions, each when the one before it is durable: after a restart they may all be of one age."""
        saves, self._deleting = 0, False
        for key in keys:
            if not self.table.drop_old(key, oldest) or self._keeper is None:
                continue
            saves += 1
            if saves == SWEEP_SAVES_MAX:
                self._deleting = True
                self._storage.save(_text(key), None, lambda: self._delete(keys, oldest))
                return
            self._storage.save(_text(key), None, _nothing)

    def untouched(self, seconds: float) -> list[Key]:
        """Cells with a value that no agent has asked about for so long, the anchors left out."""
        oldest = self._host.now - seconds
        return [key for key, cell in self.cells.items() if cell.val is not None and key.rid != ANCHOR and cell.touched_at <= oldest]

    def drop(self, key: Key) -> None:
        """As if an agent had said FORGET."""
        self.on_forget(Forget(0, key), _unheard)

    @property
    def durable(self) -> bool:
        """What it keeps outlives the process: it is a seat."""
        return self._keeper is not None

    @property
    def running_until(self) -> float:
        """The end of the longest grant that was not given back; minus infinity if there is none."""
        return max((cell.grant_until for cell in self.table.kept.values()), default=-inf)

    @property
    def kept(self) -> int:
        """Cells that an agent may still need; one that is forgotten is only remembered as that."""
        return sum(cell.val is not None for cell in self.table.kept.values())


class _Answer:
    """The reply to one of many: gathered while they are asked, by itself afterwards."""

    __slots__ = ("_answers", "_index", "_reply", "now")

    def __init__(self, index: int, answers: list[tuple[int, Alive]], reply: Reply) -> None:
        self._index, self._answers, self._reply = index, answers, reply
        self.now = True

    def __call__(self, answer: Message) -> None:
        assert isinstance(answer, Alive)
        if self.now:
            self._answers.append((self._index, answer))
        else:
            self._reply(answer)


def _renew(source: NodeId, renewal: Renewal, stamp: float) -> Renew:
    holder = LeaseId(source, renewal.holder)
    return Renew(
        renewal.key, Who(holder, renewal.token), Ballot(renewal.ballot, holder if renewal.by is None else renewal.by), renewal.seq, stamp
    )


def _growth(message: Renew | Prepare | Accept | Query | Forget) -> int:
    """The largest number in it that the next one goes on from."""
    if isinstance(message, Accept):
        return max(message.ballot.number, message.val.fence, message.val.seq)
    return message.ballot.number if isinstance(message, Renew | Prepare) else 0


def _text(key: Key) -> str:
    return msgspec.json.encode(key).decode()


def _unheard(answer: Message) -> None:
    """There is no asker."""


def _nothing() -> None:
    """A caller that waits, waits for a later save."""
