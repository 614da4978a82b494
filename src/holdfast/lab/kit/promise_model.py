"""The model in which ``kit.promise`` is explored exhaustively: real ``Promises`` and ``Keeper``, abstract time.

Spec: foundation 4 (Promise), F8, F13, F15.  What may happen at one seat, in any order and any number of times:

* an ask of either candidate with any number arrives: fresh, or as a late copy whose grant is worth nothing any more,
* the disk completes its oldest write, and the answers that waited for it leave,
* a holder's grant from this seat runs out at the holder; or it resigns; its resignation arrives, once, often or never,
* time passes at the seat until its promise, or its restart wait, is over,
* the process dies with any number of its unconfirmed writes on disk, and starts again.

Time is an order, not a number. F8 makes a grant end at its holder before the seat's own count of it ends (a property
test shows that), so time passes at a seat only when no grant of this seat is alive at a holder. Answers arrive at once:
one that is lost or late only makes a holder less sure of itself. Asks need no network either: a candidate may ask
anything at any time, so every order, loss and repetition of asks is some sequence of arrivals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import NamedTuple

from msgspec import Struct

from holdfast.events import Event
from holdfast.host import Address, Host, Message, NodeId, Storage, Timer
from holdfast.kit.keeper import Keeper
from holdfast.kit.promise import Answer, HolderId, Promises

LENGTH = 10.0
KEY = "k"
HOLDERS = (HolderId(NodeId("a", 1), 0), HolderId(NodeId("b", 1), 0))

Pair = tuple[int, int]  # holder, number
Move = tuple[str, tuple[int, ...]]  # name of a method of Seat, its arguments


class Ask(Struct):
    """One arrival of an ask."""

    holder: int
    number: int
    fresh: bool  # a grant would still be worth something to its holder


class Write(NamedTuple):
    """One write under way."""

    key: str
    value: bytes
    then: Callable[[], None]
    ask: Ask  # the ask that caused it


class SeatView(NamedTuple):
    """One seat's state, as far as it decides what can happen next, and what its holders have seen of it."""

    record: tuple[int, int, bool] | None  # holder, number, durable
    runs: bool  # the promise
    waits: bool  # after a restart
    durable: tuple[tuple[str, bytes], ...]
    pending: tuple[tuple[str, bytes, int, int, bool], ...]
    alive: tuple[bool, ...]  # per holder: a grant of this seat has not run out there
    granted: tuple[Pair, ...]  # ever, over all lives
    resigned: tuple[int, ...]  # per holder: the highest number it will never act under again


class StillHost:
    """A host without network and timers: promises need none. The clock moves when the model says so."""

    def __init__(self) -> None:
        self.me, self.address, self.random = NodeId("seat", 1), Address("seat", 1), Random(0)
        self.now, self.late = 0.0, 0.0
        self.storage: Storage

    def wall(self) -> float:
        raise NotImplementedError

    def at(self, due: float, callback: Callable[[], None]) -> Timer:
        raise NotImplementedError

    def after(self, delay: float, callback: Callable[[], None]) -> Timer:
        raise NotImplementedError

    def send(self, to: NodeId | Address, message: Message) -> None:
        raise NotImplementedError

    def meet(self, peer: NodeId, address: Address) -> None:
        raise NotImplementedError

    def emit(self, event: Event) -> None:
        raise NotImplementedError


class Disk:
    """A part of the model's disk. All parts share one queue, because writes complete in call order."""

    def __init__(self, seat: Seat, part: str) -> None:
        self._seat, self._part = seat, part

    @property
    def fresh(self) -> bool:
        return not self.load()

    def load(self) -> Mapping[str, bytes]:
        return {key.removeprefix(self._part): value for key, value in self._seat.durable.items() if key.startswith(self._part)}

    def save(self, key: str, value: bytes | None, then: Callable[[], None]) -> None:
        assert value is not None
        self._seat.pending.append(Write(self._part + key, value, then, self._seat.asking))

    def part(self, name: str) -> Disk:
        return Disk(self._seat, f"{self._part}{name}/")


class Seat:
    """A seat that really runs; each move is a method. Mutations of the code under test override the two ``make`` methods."""

    def __init__(self) -> None:
        self.host = StillHost()
        self.durable: dict[str, bytes] = {}
        self.pending: list[Write] = []
        self.alive = [False] * len(HOLDERS)
        self.granted: set[Pair] = set()
        self.resigned = [0] * len(HOLDERS)
        self.asking = Ask(0, 0, fresh=False)
        self._start()

    def make_promises(self, host: Host, storage: Storage, keeper: Keeper) -> Promises:
        return Promises(host, storage, keeper)

    def make_keeper(self, host: Host, storage: Storage) -> Keeper:
        return Keeper(host, storage, rho=0.0, margin=0.0, length_max=LENGTH)

    def view(self) -> SeatView:
        record = self.promises.get(KEY)
        pair = None
        if record is not None:
            assert record.holder is not None
            pair = HOLDERS.index(record.holder), record.number, record.saved
        return SeatView(
            pair,
            record is not None and self.host.now < record.until,
            self.keeper.wait > 0,
            tuple(sorted(self.durable.items())),
            tuple((w.key, w.value, w.ask.holder, w.ask.number, w.ask.fresh) for w in self.pending),
            tuple(self.alive),
            tuple(sorted(self.granted)),
            tuple(self.resigned),
        )

    def ask(self, holder: int, number: int, fresh: int) -> None:
        self.asking = ask = Ask(holder, number, fresh=bool(fresh))
        self.promises.ask(KEY, HOLDERS[holder], number, LENGTH, lambda answer: self._on_answer(ask, answer))

    def saved(self) -> None:
        write = self.pending.pop(0)
        self.durable[write.key] = write.value
        write.then()

    def expire(self, holder: int) -> None:
        self.alive[holder] = False

    def resign(self, holder: int, number: int) -> None:
        """The holder stops by itself and will not act under this number, or one below, again."""
        self.alive[holder] = False
        self.resigned[holder] = number
        self._outdate(holder)

    def release(self, holder: int) -> None:
        self.promises.release(KEY, HOLDERS[holder], self.resigned[holder])

    def time(self) -> None:
        assert not any(self.alive)
        self.host.now += 2 * LENGTH
        for holder in range(len(HOLDERS)):
            self._outdate(holder)

    def crash(self, kept: int) -> None:
        for write in self.pending[:kept]:
            self.durable[write.key] = write.value
        self.pending = []
        self._start()

    def _start(self) -> None:
        disk = Disk(self, "")
        self.host.storage = disk
        self.keeper = self.make_keeper(self.host, disk.part("keeper"))
        self.promises = self.make_promises(self.host, disk.part("promises"), self.keeper)
        self.keeper.open(fresh=False)

    def _outdate(self, holder: int) -> None:
        """A grant that leaves from now on for an ask of this holder that still waits comes too late."""
        for write in self.pending:
            write.ask.fresh = write.ask.fresh and write.ask.holder != holder

    def _on_answer(self, ask: Ask, answer: Answer) -> None:
        if answer.granted:
            self.granted.add((ask.holder, ask.number))
            self.alive[ask.holder] = self.alive[ask.holder] or ask.fresh


class Bounds(NamedTuple):
    """How much may happen."""

    numbers: int  # 1 to so many may be asked for
    pending: int = 3  # writes under way at one seat; more are the same again
    resigning: bool = True


def enabled(view: SeatView, bounds: Bounds) -> Iterator[Move]:
    """Every move that can happen in a state."""
    holders = range(len(HOLDERS))
    if len(view.pending) < bounds.pending:
        for holder in holders:
            for number in range(1, bounds.numbers + 1):
                yield "ask", (holder, number, 0)
                if number > view.resigned[holder]:
                    yield "ask", (holder, number, 1)
    if view.pending:
        yield "saved", ()
    for holder in holders:
        if view.alive[holder]:
            yield "expire", (holder,)
        if view.resigned[holder]:
            yield "release", (holder,)
        for number in range(view.resigned[holder] + 1, bounds.numbers + 1 if bounds.resigning else 0):
            yield "resign", (holder, number)
    if (view.runs or view.waits) and not any(view.alive):
        yield "time", ()
    for kept in range(len(view.pending) + 1):
        yield "crash", (kept,)


class SeatModel:
    """All moves of one seat, each made once by the real code: a state is reached again by replaying the moves that led to it.

    States are numbered, so that ``GroupModel`` can combine them cheaply.
    """

    def __init__(self, make: Callable[[], Seat], bounds: Bounds) -> None:
        self._make, self._bounds = make, bounds
        self.views = [make().view()]
        self._number = {self.views[0]: 0}
        self._paths: list[tuple[Move, ...]] = [()]
        self._moves: dict[int, list[tuple[str, int]]] = {}

    def moves(self, state: int) -> list[tuple[str, int]]:
        known = self._moves.get(state)
        if known is None:
            known = self._moves[state] = [self._made(state, move) for move in enabled(self.views[state], self._bounds)]
        return known

    def wrong(self, state: int) -> str:
        return two_holders((self.views[state],))

    def _made(self, state: int, move: Move) -> tuple[str, int]:
        path = (*self._paths[state], move)
        seat = self._make()
        for name, arguments in path:
            getattr(seat, name)(*arguments)
        view = seat.view()
        if view not in self._number:
            self._number[view] = len(self.views)
            self.views.append(view)
            self._paths.append(path)
        return f"{move[0]}{move[1]}", self._number[view]


class GroupModel:
    """Several seats, which do not talk to each other. They are alike, so a state is the sorted tuple of theirs."""

    def __init__(self, seat: SeatModel, seats: int) -> None:
        self._seat = seat
        self.first = (0,) * seats

    def moves(self, state: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
        for place, number in enumerate(state):
            if place and number == state[place - 1]:
                continue  # The same seat again.
            rest = state[:place] + state[place + 1 :]
            for name, after in self._seat.moves(number):
                yield f"seat in state {number}: {name}", tuple(sorted((*rest, after)))

    def wrong(self, state: tuple[int, ...]) -> str:
        return two_holders(tuple(self._seat.views[number] for number in state))


def two_holders(seats: tuple[SeatView, ...]) -> str:
    """What must never be: one number with two holders, or two holders who are both sure of themselves."""
    enough = len(seats) // 2 + 1
    won: dict[int, int] = {}
    for holder, number in sorted({pair for seat in seats for pair in seat.granted}):
        if sum((holder, number) in seat.granted for seat in seats) >= enough and won.setdefault(number, holder) != holder:
            return f"number {number} was won by both"
    if all(sum(seat.alive[holder] for seat in seats) >= enough for holder in range(len(HOLDERS))):
        return "both hold at the same time"
    return ""
