"""Seats: the few slots that remember, and whether this one may speak.  Spec: foundation 4 (Seats), F12, F13.

Every agent runs this machine: it knows the slots and finds out who sits there. Traffic to a seat goes to the slot's
address, never through the membership: a seat outside the group goes on voting, an expelled holder goes on renewing.

A seat that starts opens its keeper (``kit.keeper``) in one of three ways:

* Its journal is there: after the restart wait, if as many others as make a majority with it know of no later mark of that journal
  (``kit.marks``); else it is an old copy.
* Its journal is empty: only if every other slot says "I never met you". A journal is named by the life that began it, its
  *birth*, and is shown to all other slots before the seat first serves, so every journal that ever served is remembered
  by every other slot. At the very first start all slots must therefore be up once.
* Another slot remembers another journal of this slot: the journal was lost. What it promised is unknown; the seat stays silent and
  says so. Rebuilding it from the others (F13, eras) is not offered before it has been explored exhaustively.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from math import inf
from typing import Annotated, ClassVar, NamedTuple

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from holdfast.bounds import Label, Number, Text
from holdfast.bounds import Slot as SlotNumber
from holdfast.errors import ConfigError, StorageDamaged, shown
from holdfast.events import Internal, StorageFailed
from holdfast.host import Address, Host, Message, NodeId, Timer, fingerprint
from holdfast.kit.delay import Delay, delay_of
from holdfast.kit.keeper import LENGTH_MAX, MARGIN, Horizon, Keeper
from holdfast.kit.marks import Mark, MarkNumber, Marks, Word
from holdfast.kit.phase import Outcome, Phase, PhaseEnd, Questions, count
from holdfast.kit.seat_records import KEEPER, ME, MET, SEATS
from holdfast.kit.slots import COUNTS, Slot

HELLO_PERIOD = 0.5  # seconds until a slot that has not answered is greeted again
HELLO_PAUSE_MAX = 8.0  # each pause is twice the one before, up to this: a slot without an agent for days costs little
ASK_TIMEOUT = 10.0  # then the question is asked anew, for ever: a seat without a journal has nothing better to do
BIRTH_BYTES_MAX = 128
WAIT_MAX = 7200.0  # seconds; beyond the wait after the longest grant that settings allow
NO_SLOT = -1
HELLO_SERIAL = 0  # of a greeting that is no question: serials begin at 1

HEARD_FOR = 12.5  # seconds that a word of a seat counts; two and a half times the agent's usual period of greeting
WHY_BYTES_MAX = 200  # of the reason that a seat gives for its silence: one line of text

SeatState = Enum("SeatState", ["NOT_A_SEAT", "ASKING", "WAITING", "SERVING", "SILENT", "FAILED"])
SAID = {SeatState.ASKING: 1, SeatState.WAITING: 2, SeatState.SERVING: 3, SeatState.SILENT: 4, SeatState.FAILED: 5}  # on the wire
STATES = {number: state for state, number in SAID.items()}


class SeatHello(Message, frozen=True, tag=10):
    """Who sits there? And, from a seat that starts with an empty journal: have you met another journal of my slot?"""

    greeting: ClassVar[bool] = True
    serial: Number
    slot: SlotNumber  # the asker's; NO_SLOT if it is no seat
    birth: Label  # of the asker's journal; "" if it does not ask
    mark: MarkNumber = 0  # of that journal, with its word and the one before
    word: Word = ""
    former: Word = ""


class SeatHere(Message, frozen=True, tag=11):
    """I sit here."""

    serial: Number
    slot: SlotNumber
    met: bool  # another journal of your slot was here before
    state: Annotated[int, Meta(ge=0, le=5)] = 0  # ``SAID`` of the sender's state; 0: not said
    wait: Annotated[float, Meta(ge=0.0, le=WAIT_MAX)] = 0.0  # seconds until it promises, if it waits
    why: Annotated[str, Meta(max_length=WHY_BYTES_MAX)] = ""  # why it is silent or failed
    behind: bool = False  # with ``met``: it is the same journal, but an old copy
    blank: bool = False  # the sender's own journal never served, so its memory vouches for nothing
    later: MarkNumber = 0  # with ``behind``: the mark that the sender remembers, which proves it
    later_word: Word = ""


class SeatOpened(Internal, frozen=True):
    """This seat will promise again after ``wait`` seconds."""

    family: ClassVar[str] = "kit"
    slot: int
    fresh: bool
    wait: float


class SeatSeen(NamedTuple):
    """What this agent knows of another seat: what that seat said of itself, and when."""

    heard_at: float  # on this agent's clock
    state: SeatState | None  # as the seat said it; None: it did not say
    wait: float  # seconds, counted from ``heard_at``
    why: str

    def grants_at(self, now: float) -> bool:
        """It said that it grants, or that it would by now."""
        waited = self.state is SeatState.WAITING and now >= self.heard_at + self.wait
        return self.state in (SeatState.SERVING, None) or waited


class Journal(Struct, frozen=True, array_like=True):
    """The first record of a seat's journal: whose it is."""

    machine: Text
    slot: SlotNumber
    birth: Label
    served: bool  # False: begun, and not yet known to be welcome


class Seats:
    """The slots of a group, as one agent sees them, and its own slot if it has one."""

    handles = (SeatHello, SeatHere)

    def __init__(
        self,
        host: Host,
        slots: Sequence[Slot],
        own: int | None,
        *,
        machine: str,
        rho: float,
        margin: float = MARGIN,
        length_max: float = LENGTH_MAX,
        moved: bool = False,
        horizon: Horizon | None = None,
    ) -> None:
        """Raises ConfigError when the journal belongs to another slot or, without ``moved``, to another machine."""
        assert len(slots) in COUNTS
        assert own is None or 0 <= own < len(slots)
        assert horizon is None or len(slots) == 1  # Of what other seats promised it knows nothing.
        self.slots, self.own = tuple(slots), own
        self.keeper = Keeper(host, host.storage.part(KEEPER), rho=rho, margin=margin, length_max=length_max, horizon=horizon)
        self.fingerprint = fingerprint(longest_grant=length_max, **{f"seat{slot.number}": str(slot) for slot in slots})
        self._host, self._machine = host, machine
        self._storage = host.storage.part(SEATS)
        self._lives: dict[int, NodeId] = {}
        self._questions = Questions()
        self._hello_timer: Timer | None = None
        self._hello_pause = HELLO_PERIOD  # the next one
        self._wait_timer: Timer | None = None
        self._started_at = -inf
        # Where each slot is asked, as ``Phase`` wants it: None for the own one, which is asked by a call.
        self.addresses: Mapping[int, Address | None] = {slot.number: None if slot.number == own else slot.address for slot in slots}
        self._others = {slot.number: slot.address for slot in self.slots if slot.number != own}
        self.marks = Marks(host, self._storage, self._questions, self._others, self)
        if self._others:
            self.keeper.on_change = self.marks.on_change
        self._why_silent = ""
        self._why_failed = ""
        self._seen: dict[int, SeatSeen] = {}
        self.heard_for = HEARD_FOR  # the agent sets it: it greets a large group's seats less often
        self._journal, self._met = self._read(moved=moved)
        self.counts: Counter[str] = Counter()  # not_a_seat, impostor, malformed

    @property
    def state(self) -> SeatState:
        if self.own is None:
            return SeatState.NOT_A_SEAT
        if self._why_silent:
            return SeatState.SILENT
        if self._why_failed:
            return SeatState.FAILED
        if self.keeper.wait == inf:
            return SeatState.ASKING
        return SeatState.WAITING if self.keeper.wait > 0 else SeatState.SERVING

    def life(self, number: int) -> NodeId | None:
        """Who sits there, as last heard."""
        return self._host.me if number == self.own else self._lives.get(number)

    @property
    def why(self) -> str:
        """Why this seat is silent or failed; "" if it is neither."""
        return self._why_silent or self._why_failed

    def seen(self, number: int) -> SeatSeen | None:
        """What another seat last said of itself; None if it was never heard."""
        return self._seen.get(number)

    @property
    def voting(self) -> int:
        """How many of the slots grant something now, as far as this agent knows; its own included."""
        now = self._host.now
        others = sum(self.is_heard(number) and seen.grants_at(now) for number, seen in self._seen.items())
        return others + (self.state is SeatState.SERVING)

    def is_heard(self, number: int) -> bool:
        """Another seat answered within the last ``heard_for`` seconds."""
        seen = self._seen.get(number)
        return seen is not None and self._host.now < seen.heard_at + self.heard_for

    def delay(self) -> Delay | None:
        """Why nothing is granted, as far as this agent knows, and for how long; None: a majority of the seats grants."""
        numbers = [slot.number for slot in self.slots]
        waits = [wait for number in numbers if (wait := self._wait_of(number)) is not None]
        silent = [slot for slot in self.slots if slot.number != self.own and not self.is_heard(slot.number)]
        asking = any(self._state_of(number) is SeatState.ASKING for number in numbers)
        return delay_of(waits, len(numbers), silent, asking=asking)

    def _state_of(self, number: int) -> SeatState | None:
        seen = self._seen.get(number)
        return self.state if number == self.own else None if seen is None or not self.is_heard(number) else seen.state

    def _wait_of(self, number: int) -> float | None:
        """Seconds until that slot grants; None: it does not, or it is not known."""
        state = self._state_of(number)
        if number == self.own:
            return self.keeper.wait if state in (SeatState.WAITING, SeatState.SERVING) else None
        seen = self._seen.get(number)
        if seen is None or not self.is_heard(number):
            return None
        if seen.grants_at(self._host.now):
            return 0.0
        return seen.heard_at + seen.wait - self._host.now if state is SeatState.WAITING else None

    def fail(self, why: str) -> None:
        """This agent's disk failed: the seat can save no new promise. It says so to agents that ask."""
        self._why_failed = why

    def greet(self) -> None:
        """Ask every other slot how it is. The agent calls this regularly; the answers are what ``seen`` and ``voting`` read."""
        hello = SeatHello(HELLO_SERIAL, NO_SLOT if self.own is None else self.own, "")
        for slot in self.slots:
            if slot.number != self.own:
                self._host.send(slot.address, hello)

    def slot_of(self, source: NodeId) -> int | None:
        """Whose answer is this? By name: the next life of an agent sits in the same slot."""
        found = (number for number, life in self._lives.items() if life.name == source.name)
        return self.own if source.name == self._host.me.name else next(found, None)

    def start(self) -> None:
        self._on_hello()
        self._started_at = self._host.now
        if self.own is None:
            return
        if self._journal is None:
            self._write(Journal(self._machine, self.own, str(self._host.me), served=False), self._begin_asking)
            return
        if self._journal.machine != self._machine:
            self._write(replace(self._journal, machine=self._machine), lambda: None)
        if self._journal.served and self._others:
            self.marks.show()
        elif self._journal.served:
            self._open(fresh=False)  # A sole seat has no others to ask.
        else:
            self._begin_asking()

    def stop(self) -> None:
        self.marks.stop()
        for timer in (self._hello_timer, self._wait_timer):
            if timer is not None:
                timer.cancel()

    def on_away(self, seconds: float) -> None:
        """A pause changes nothing: the keeper's wait is compared with the clock."""

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, SeatHello):
            self._on_seat_hello(source, message)
        else:
            assert isinstance(message, SeatHere)
            if not self._sits(source, message.slot):
                return
            self._seen[message.slot] = SeatSeen(self._host.now, STATES.get(message.state), message.wait, message.why)
            if message.serial != HELLO_SERIAL:
                self._on_word(message)

    def _on_word(self, here: SeatHere) -> None:
        """What another slot remembers of this seat's journal. That it is an old copy is believed at any time, with the proof; that it
        is another journal only before the seat has opened: it was shown to all others before it first served."""
        refused = self.marks.is_proof(here.later, here.later_word) if here.behind else here.met and self.keeper.wait == inf
        self.counts["unproven"] += here.met and not refused
        if here.serial != self.marks.serial:
            self._questions.answer(here.serial, here.slot, here, yes=not refused)
            return
        self.marks.answered(here.slot)
        if refused:
            self._fall_silent([here.slot], behind=here.behind)
        elif not here.blank:
            self._questions.answer(here.serial, here.slot, here)

    def _on_seat_hello(self, source: NodeId, hello: SeatHello) -> None:
        if self.own is None:
            self.counts["not_a_seat"] += 1
            return
        if len(hello.birth.encode()) > BIRTH_BYTES_MAX:
            self.counts["malformed"] += 1
            return
        if hello.slot != NO_SLOT and not self._sits(source, hello.slot):
            return
        if hello.birth:
            self._remember(source, hello)
        else:
            self._host.send(source, self._here(hello.serial, met=False))

    def _remember(self, source: NodeId, hello: SeatHello) -> None:
        """Only a journal that will be remembered is told that it is new here."""
        assert self.own is not None
        if hello.slot == NO_SLOT:
            self.counts["malformed"] += 1
            return
        slot = str(self.slots[hello.slot])  # With its address: after a change of the list another slot of that number is new.
        mark = Mark(hello.mark, hello.word, hello.former)
        other = self._met.get(slot, hello.birth) != hello.birth
        behind = not other and self.marks.is_behind(slot, mark)
        here = self._here(hello.serial, met=other or behind, behind=behind, later=self.marks.remembered(slot))
        if here.met:
            self._host.send(source, here)
            return
        if slot not in self._met:
            self._met[slot] = hello.birth
            self._storage.save(MET + slot, hello.birth.encode(), lambda: None)  # completes before the next save does
        self.marks.remember(slot, mark, lambda: self._host.send(source, here))

    def _here(self, serial: int, *, met: bool, behind: bool = False, later: tuple[int, str] = (0, "")) -> SeatHere:
        assert self.own is not None
        wait = min(self.keeper.wait, WAIT_MAX) if self.state is SeatState.WAITING else 0.0
        why = self.why.encode()[:WHY_BYTES_MAX].decode(errors="ignore")
        blank = bool(self._why_silent) or self._journal is None or not self._journal.served
        return SeatHere(serial, self.own, met, SAID[self.state], wait, why, behind, blank, *(later if behind else (0, "")))

    def _sits(self, source: NodeId, number: int) -> bool:
        """Take note of who says it sits in a slot."""
        if not 0 <= number < len(self.slots):
            self.counts["malformed"] += 1
            return False
        if number == self.own or (self.slots[number].named and self.slots[number].name != source.name):
            self.counts["impostor"] += 1
            return False
        known = self._lives.get(number)
        if known is None or known.name != source.name or known.boot < source.boot:
            self._lives[number] = source
            self._greet_soon()
            self.marks.show_to(number)
        return True

    def _read(self, *, moved: bool) -> tuple[Journal | None, dict[str, str]]:
        loaded = self._storage.load()
        try:
            journal = msgspec.msgpack.decode(loaded[ME], type=Journal) if ME in loaded else None
            met = {key.removeprefix(MET): value.decode() for key, value in loaded.items() if key.startswith(MET)}
        except (msgspec.DecodeError, ValueError) as error:
            raise StorageDamaged(f"the seat's journal is unreadable: {error}") from None
        if self.own is None or journal is None:
            return None, met
        if journal.slot != self.own:
            raise ConfigError(f"seats: this journal belongs to slot {journal.slot}, the configuration says slot {self.own}")
        if journal.machine != self._machine and not moved:
            raise ConfigError(
                f"moved: this journal of slot {journal.slot} is a copy from machine {shown(journal.machine)}. If that one will never start "
                "again, start once with moved=True (--moved)"
            )
        return journal, met

    def _write(self, journal: Journal, then: Callable[[], None]) -> None:
        self._journal = journal
        self._storage.save(ME, msgspec.msgpack.encode(journal), then)

    def _open(self, *, fresh: bool) -> None:
        assert self.own is not None
        self.keeper.open(fresh=fresh, since=self._host.now if fresh else self._started_at)
        self._host.emit(SeatOpened(self.own, fresh, self.keeper.wait))
        if fresh:
            # A crash during the wait must not skip it, so the journal is marked only when it is over.
            self._wait_timer = self._host.after(self.keeper.wait, self._on_waited)

    def _begin_asking(self) -> None:
        """Does any other slot know another journal of ours? A sole seat has no other slot to ask."""
        assert self._journal is not None
        if not self._others:
            self._open(fresh=True)
            return
        Phase(
            self._host,
            self._questions,
            self._others,
            lambda serial: self.mark_hello(serial, self.marks.mark),
            every=HELLO_PERIOD,
            timeout=ASK_TIMEOUT,
            enough=count(len(self._others), self._others),
            done=self._on_asked,
        ).start()

    def _on_asked(self, end: PhaseEnd[int]) -> None:
        if end.outcome is Outcome.TIMEOUT:
            self._begin_asking()
        elif end.won:
            self.marks.begin()
            self._open(fresh=True)
        else:
            self._fall_silent(list(end.no), behind=any(isinstance(no, SeatHere) and no.behind for no in end.no.values()))

    def _fall_silent(self, by: Sequence[int], *, behind: bool) -> None:
        """F13: what it promised is not known, so it promises nothing; not any more, if another slot says so late."""
        if self._why_silent:
            return
        slots = ", ".join(map(str, by))
        if behind:
            lost = f"seat {self.own} went back in time: its journal is an old copy (slot {slots} remembers a later one). It"
        else:
            lost = f"seat {self.own} lost its journal (slot {slots} remembers another one) and"
        self._why_silent = f"{lost} stays silent: what it promised is unknown"
        self.keeper.close()
        self.marks.stop()
        self._host.emit(StorageFailed(self._why_silent))

    # What the marks ask (``marks.Owner``).

    def mark_hello(self, serial: int, mark: Mark) -> SeatHello:
        assert self._journal is not None
        return SeatHello(serial, self._journal.slot, self._journal.birth, *mark)

    def on_vouched(self) -> None:
        if self.keeper.wait == inf and not self._why_silent:
            self._open(fresh=False)

    def _on_waited(self) -> None:
        assert self._journal is not None
        self._write(replace(self._journal, served=True), lambda: None)

    def _on_hello(self) -> None:
        self._hello_timer = None
        hello = SeatHello(HELLO_SERIAL, NO_SLOT if self.own is None else self.own, "")
        unheard = [slot for slot in self.slots if slot.number != self.own and slot.number not in self._lives]
        for slot in unheard:
            self._host.send(slot.address, hello)
        if unheard:
            self._arm_hello()

    def _greet_soon(self) -> None:
        """A seat came: where one is, others may be. A pause that is short already stays, or a crowd would put it off for ever."""
        if self._hello_timer is not None and self._hello_pause > 2 * HELLO_PERIOD:
            self._hello_timer.cancel()
            self._hello_pause = HELLO_PERIOD
            self._arm_hello()

    def _arm_hello(self) -> None:
        self._hello_timer = self._host.after(self._hello_pause, self._on_hello)
        self._hello_pause = min(2 * self._hello_pause, HELLO_PAUSE_MAX)
