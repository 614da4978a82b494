"""Marks: is this seat's journal the latest one, or a copy from an earlier time?  Spec: foundation F13; H156.

A seat's journal has a *mark*, a number and a word that no other journal has. Soon after anything is written that a promise rests on, the
mark becomes the next one: first in the journal, then the other slots are told, and remember it. A seat that starts shows its mark before
it opens. A slot that remembers a later mark, or another word of the same number, knows that the journal is an old copy: what was
promised since is not in it, so the seat stays silent, as one that lost its journal.

The mark moves only after enough other slots have vouched for the one before: a seat that runs on an old copy never gets ahead of what the
others remember. Enough are as many as make a majority together with this seat: fewer could grant nothing anyway. A slot that has not
answered by then is shown the mark again and again, and its "no" counts as well, at any time.

A "no" is believed only with its proof: the later mark itself. Half of a word is a code that only this journal can make (of a key
that it keeps), so a peer that lies about what it remembers, or that told other slots a mark of its own making, silences no seat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from math import inf
from typing import Annotated, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from holdfast.errors import StorageDamaged
from holdfast.host import Address, Host, Message, Storage, Timer
from holdfast.kit.phase import Phase, PhaseEnd, Questions, count
from holdfast.kit.seat_records import MARK, MARK_OF, MARKER

MARK_PERIOD = 2.0  # seconds between two marks of a seat that is busy: a copy that is older than this is found out
MARK_DELAY = 0.05  # seconds from a change to its mark, so that changes that come together have one
MARK_EVERY = 0.5  # seconds until a slot that has not answered is shown the mark again
MARK_TIMEOUT = 10.0  # then it is shown anew, for ever
NAG_MAX = 8.0  # seconds: each pause before a slot that stays silent is shown it again is twice the one before, up to this
MARK_MAX = 1 << 40  # one every two seconds for 70 000 years
NONCE_CHARS, CODE_CHARS = 16, 16  # of a word: what tells it from others, and what shows that this journal made it
WORD_CHARS = NONCE_CHARS + CODE_CHARS
KEY_BYTES = 16

MarkNumber = Annotated[int, Meta(ge=0, le=MARK_MAX)]
Word = Annotated[str, Meta(max_length=WORD_CHARS)]


class Mark(NamedTuple):
    """Where a journal is in time. A journal of an earlier release has none: number 0."""

    number: MarkNumber
    word: Word
    former: Word  # of the number before


class Owner(Protocol):
    """The seat (``kit.seats``)."""

    def mark_hello(self, serial: int, mark: Mark) -> Message: ...
    def on_vouched(self) -> None:
        """Enough other slots know of no later mark. Also after every later mark."""


class Marks:
    """The mark of the own journal, and what other slots are remembered by."""

    def __init__(self, host: Host, storage: Storage, questions: Questions, others: Mapping[int, Address], owner: Owner) -> None:
        self._host, self._storage, self._questions, self._others, self._owner = host, storage, questions, others, owner
        self._enough = (len(others) + 1) // 2
        self._phase: Phase[int] | None = None
        self._shown: Message | None = None  # as it was last shown
        self._vouched = False  # for the present mark
        self._changed = False  # since the present mark
        self._marked_at = -inf
        self._timer: Timer | None = None
        self._silent: dict[int, None] = {}  # slots that have not answered since it was last shown
        self._nag_timer: Timer | None = None
        self.serial = 0  # of the last question; a "no" to an earlier one says nothing: the mark has moved since
        self.mark, self._remembered, self._key = self._read()

    # The own mark.

    def show(self) -> None:
        """Ask the others whether they know of a later one."""
        self._vouched, self._silent = False, dict.fromkeys(self._others)
        self._cancel_nag()
        phase = Phase(
            self._host,
            self._questions,
            self._others,
            lambda serial: self._owner.mark_hello(serial, self.mark),
            every=MARK_EVERY,
            timeout=MARK_TIMEOUT,
            enough=count(self._enough, self._others),
            done=self._on_shown,
        )
        self._phase, self.serial = phase, phase.serial
        self._shown = self._owner.mark_hello(phase.serial, self.mark)
        phase.start()

    def begin(self) -> None:
        """The journal is new, and all other slots have said so."""
        self._vouched = True
        self._make_key()  # Before anything is promised: every copy that matters has it.

    def answered(self, number: int) -> None:
        """That slot has answered to what was last shown."""
        self._silent.pop(number, None)

    def show_to(self, number: int) -> None:
        """A slot has a new life: it may remember what those did not who were asked."""
        if self._shown is not None and number in self._others:
            self._host.send(self._others[number], self._shown)

    def on_change(self) -> None:
        """Something was written that a promise rests on. Before the seat has opened nothing is."""
        self._changed = True
        if self._vouched and self._timer is None:
            self._timer = self._host.at(max(self._host.now + MARK_DELAY, self._marked_at + MARK_PERIOD), self._on_due)

    def stop(self) -> None:
        if self._phase is not None:
            self._phase.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._cancel_nag()
        self._shown, self._vouched = None, False

    def _on_shown(self, end: PhaseEnd[int]) -> None:
        self._phase = None
        if not end.won:
            self.show()
            return
        self._vouched = True
        self._nag_after(MARK_EVERY)
        self._owner.on_vouched()
        if self._changed:
            self.on_change()

    def _nag_after(self, pause: float) -> None:
        self._nag_timer = self._host.after(pause, lambda: self._on_nag(pause)) if self._silent else None

    def _on_nag(self, pause: float) -> None:
        for number in self._silent:
            self.show_to(number)
        self._nag_after(min(2 * pause, NAG_MAX))

    def _cancel_nag(self) -> None:
        if self._nag_timer is not None:
            self._nag_timer.cancel()
            self._nag_timer = None

    def _on_due(self) -> None:
        """Durable here before any other slot hears of it: an honest journal is never behind what others remember."""
        self._timer, self._changed, self._vouched = None, False, False
        self._marked_at = self._host.now
        number = min(self.mark.number + 1, MARK_MAX)
        self._make_key()
        self.mark = Mark(number, self._new_word(number), self.mark.word)
        self._storage.save(MARK, msgspec.msgpack.encode(self.mark), self.show)

    def _new_word(self, number: int) -> str:
        """One that no other copy of this journal draws: of this life and this instant."""
        drawn = f"{self._host.me} {self._host.now!r} {self._host.wall()!r} {number} {self.mark.word}"
        nonce = blake2b(drawn.encode(), digest_size=NONCE_CHARS // 2).hexdigest()
        return nonce + self._code(number, nonce)

    def _make_key(self) -> None:
        """As secret as the source of chance, which is not drawn from: the same seed goes on giving the same run."""
        if not self._key:
            self._key = blake2b(repr(self._host.random.getstate()).encode(), digest_size=KEY_BYTES).digest()
            self._storage.save(MARKER, self._key, lambda: None)  # completes before the next mark's save does

    def _code(self, number: int, nonce: str) -> str:
        return blake2b(f"{number} {nonce}".encode(), key=self._key, digest_size=CODE_CHARS // 2).hexdigest()

    def is_proof(self, number: int, word: str) -> bool:
        """This journal, or the one that it is a copy of, made this mark, and it is not the present one or one before it. A journal of
        an earlier release has no key: it has to believe."""
        made = not self._key or word[NONCE_CHARS:] == self._code(number, word[:NONCE_CHARS])
        return made and (number > self.mark.number or (number == self.mark.number and word != self.mark.word))

    def remembered(self, slot: str) -> tuple[int, str]:
        """The last mark of another slot: what proves to it that it is behind."""
        return self._remembered.get(slot, (0, ""))

    # The marks of others.

    def is_behind(self, slot: str, mark: Mark) -> bool:
        """The journal that shows this mark is older than one that was here before."""
        number, word = self._remembered.get(slot, (-1, ""))
        if mark.number == number:
            return mark.word != word
        return mark.number < number or (mark.number == number + 1 and number >= 0 and mark.former != word)

    def remember(self, slot: str, mark: Mark, then: Callable[[], None]) -> None:
        assert not self.is_behind(slot, mark)
        self._remembered[slot] = mark.number, mark.word
        self._storage.save(MARK_OF + slot, msgspec.msgpack.encode((mark.number, mark.word)), then)

    def _read(self) -> tuple[Mark, dict[str, tuple[int, str]], bytes]:
        loaded = self._storage.load()
        try:
            mark = msgspec.msgpack.decode(loaded[MARK], type=Mark) if MARK in loaded else Mark(0, "", "")
            remembered = {
                key.removeprefix(MARK_OF): msgspec.msgpack.decode(value, type=tuple[MarkNumber, Word])
                for key, value in loaded.items()
                if key.startswith(MARK_OF)
            }
        except msgspec.DecodeError as error:
            raise StorageDamaged(f"a mark in the seat's journal is unreadable: {error}") from None
        return mark, remembered, loaded.get(MARKER, b"")
