"""Terms by seats: a majority of the slots promises each term to one life.

Spec: election 1 (mode ``seats``), 5.6, A2; foundation 4 (Promise). The promises are the kit's, the seats those that leadership and tickets
have. A promise here is as short as can be: it excludes no life for a time, it only spends the number.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from holdfast.bounds import is_beyond
from holdfast.events import RecordUnusable
from holdfast.features.election.protocol.contest import Contest
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.manner import Manner
from holdfast.features.election.protocol.messages import AskTerm, TermWord
from holdfast.host import NodeId
from holdfast.kit.phase import Outcome, Phase, PhaseEnd, Questions, Weights
from holdfast.kit.promise import Answer, HolderId, Promises
from holdfast.kit.seats import Seats

PART = "terms"  # of the seat's journal
KEY = "el:"
LENGTH = 0.001  # seconds: the shortest that a promise can be
HEARD_TIMEOUTS = 2.0  # how lately a majority of seats must have been heard before an election starts

Done = Callable[[Contest, int, tuple[int, ...] | None, int], None]  # term, the slots that promised it or None, the highest number refused


class Terms:
    """What this agent promises as a seat, and what it asks of seats as a candidate."""

    def __init__(self, core: Core, seats: Seats | None, done: Done) -> None:
        self._core, self._seats, self._done = core, seats, done
        self.questions = Questions()
        self._phases: dict[str, Phase[int]] = {}
        self._greeted_at = -inf
        own = seats is not None and seats.own is not None
        self.promises = Promises(core.host, core.host.storage.part(PART), seats.keeper) if own and seats is not None else None

    def start(self) -> None:
        """Say which names this seat cannot serve, and why (H174)."""
        for key, why in sorted(({} if self.promises is None else self.promises.unusable).items()):
            self._core.host.emit(RecordUnusable(key, why))

    def stop(self) -> None:
        for name in list(self._phases):
            self.cancel(name)

    # As a candidate.

    @property
    def reachable(self) -> bool:
        """True if a majority of the slots was heard within the last 2 TIMEOUT; this one's own is heard always."""
        seats, core = self._seats, self._core
        if seats is None:
            return False
        since = core.now - HEARD_TIMEOUTS * core.timeout
        seen = [seats.seen(slot.number) for slot in seats.slots if slot.number != seats.own]
        heard = sum(each is not None and each.heard_at >= since for each in seen) + (seats.own is not None)
        return heard > len(seats.slots) // 2

    def greet(self, *, every: float = 0.0) -> None:
        """Ask all slots how they are; not again within ``every`` seconds."""
        if self._seats is not None and self._core.now >= self._greeted_at + every:
            self._greeted_at = self._core.now
            self._seats.greet()

    @property
    def patience(self) -> float:
        return 0.0 if self._seats is None else self._seats.heard_for / 4

    def asks(self, name: str) -> bool:
        return name in self._phases

    def ask(self, contest: Contest, needed: int, timeout: float) -> None:
        """Ask the slots for the term of this candidate. ``done`` runs when it is decided; not when the time is over."""
        self.cancel(contest.name)
        seats, core = self._seats, self._core
        if seats is None or timeout <= 0:
            return
        term, name, manner = contest.term, contest.name, contest.manner
        phase = self._phases[name] = Phase(
            core.host,
            self.questions,
            seats.addresses,
            lambda serial: AskTerm(name, manner, serial, term, LENGTH),
            every=core.timeout,
            timeout=timeout,
            enough=Weights(dict.fromkeys(seats.addresses, 1), needed),
            done=lambda end: self._on_end(contest, term, end),
            expects=(TermWord,),
        )
        phase.start()
        if seats.own is not None and self._phases.get(name) is phase:
            self._promise(core.me, AskTerm(name, manner, phase.serial, term, LENGTH), lambda word: self._on_word(seats.own, word))

    def cancel(self, name: str) -> None:
        phase = self._phases.pop(name, None)
        if phase is not None:
            phase.cancel()

    def on_word(self, source: NodeId, word: TermWord) -> None:
        slot = None if self._seats is None else self._seats.slot_of(source)
        if slot is None or slot != word.slot:
            self._core.counts["malformed"] += 1
            return
        self._on_word(slot, word)

    def _on_word(self, slot: int | None, word: TermWord) -> None:
        assert slot is not None
        if not word.granted and word.wait > 0:
            self._core.counts["waited"] += 1  # Not yet; it is asked again.
            return
        self.questions.answer(word.serial, slot, word, yes=word.granted, era=word.era)

    def _on_end(self, contest: Contest, term: int, end: PhaseEnd[int]) -> None:
        self._phases.pop(contest.name, None)
        if end.outcome is Outcome.TIMEOUT:
            return
        refused = max((word.number for word in end.no.values() if isinstance(word, TermWord)), default=0)
        self._done(contest, term, tuple(end.yes) if end.won else None, refused)

    # As a seat.

    def on_ask(self, source: NodeId, ask: AskTerm) -> None:
        if self.promises is None:
            self._core.counts["not_a_seat"] += 1
            return
        self._promise(source, ask, lambda word: self._core.host.send(source, word))

    def _promise(self, holder: NodeId, ask: AskTerm, then: Callable[[TermWord], None]) -> None:
        assert self.promises is not None
        if is_beyond(ask.term, self._core.host.wall) or not self._core.credible(ask.term):
            self._core.counts["far_ahead"] += 1
            return
        self.promises.ask(KEY + ask.name, HolderId(holder, 0), ask.term, ask.length, lambda answer: then(self._word(ask, answer)))

    def _word(self, ask: AskTerm, answer: Answer) -> TermWord:
        assert self._seats is not None
        assert self._seats.own is not None
        manner: Manner = ask.manner
        return TermWord(ask.name, manner, ask.serial, self._seats.own, answer.granted, answer.number, answer.wait, answer.era)
