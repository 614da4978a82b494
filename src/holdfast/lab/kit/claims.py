"""Claimants: users of the kit's seats and promises in the lab.  Spec: foundation 4 (Promise, Seats, Phase), F8, F9.

Every node runs one. It claims one thing: asks all seats under a number of its own, holds it while a majority's promise
runs by its own clock, renews, lapses, resigns, claims again. The seats among them answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from holdfast.events import Internal
from holdfast.host import Host, Message, NodeId
from holdfast.kit.deadline import Deadline, entry, holder_length
from holdfast.kit.phase import Phase, PhaseEnd, Questions, majority
from holdfast.kit.promise import Answer, HolderId, Promises
from holdfast.kit.seats import Seats

KEY = "the thing"
RENEWALS = 3.0  # per length
RESENDS = 8.0  # per length
GRANTS_KEPT = 5  # of one hold; the last of so many comes a length and a third after the first, which alone would have run out
EARLY_SHARE = 0.5  # of the claims that are made at the first instant that makes sense


class Claim(Message, frozen=True, tag=240):
    """May I act under this number for so long?"""

    serial: int
    number: int
    length: float


class ClaimAnswer(Message, frozen=True, tag=241):
    """What a seat says."""

    serial: int
    slot: int
    granted: bool
    number: int
    wait: float
    era: int


class ClaimEnded(Message, frozen=True, tag=242):
    """I have stopped acting under this number and all below it."""

    number: int


class ClaimWon(Internal, frozen=True):
    """This node holds the thing from now on."""

    number: int


class ClaimLost(Internal, frozen=True):
    """This node holds it no longer."""

    number: int
    why: str


class Claimant:
    """Claims the thing for ever, and answers claims if this node is a seat."""

    handles = (Claim, ClaimAnswer, ClaimEnded)

    def __init__(self, host: Host, seats: Seats, *, length: float, rho: float, wall_numbers: bool = True) -> None:
        self.fingerprint = b""
        self.seats = seats
        self.promises = self.make_promises(host, seats)
        self.number = 0  # present claim
        self._spent = 0  # number that this life held and will not act under again, nor below
        self.holding = False
        self.grants: deque[float] = deque(maxlen=GRANTS_KEPT)  # when the present hold was granted and renewed
        self.deadline = Deadline(host)
        self._host, self._length, self._rho, self._wall_numbers = host, length, rho, wall_numbers
        self._neglecting = False
        self._questions = Questions()
        self._highest = 0  # number heard of
        self._members = seats.addresses
        self._quorum = majority(self._members)

    def make_promises(self, host: Host, seats: Seats) -> Promises:
        return Promises(host, host.storage.part("promises"), seats.keeper)

    @property
    def valid(self) -> bool:
        """May act now (F9)."""
        return self.holding and self.deadline.valid

    def held_since(self, instant: float) -> bool:
        """Holds under grants that all came after that instant of its clock, and has renewed beyond the end of the first."""
        return self.valid and len(self.grants) == GRANTS_KEPT and self.grants[0] >= instant

    @property
    def lapsed(self) -> bool:
        return self.holding and not self.deadline.valid

    def lapse(self) -> None:
        self._end("lapsed")

    def start(self) -> None:
        self._host.after(self._host.random.uniform(0, self._length), self._on_turn)

    def stop(self) -> None:
        self.holding = False

    def on_away(self, seconds: float) -> None:
        """``entry`` compares the clock before anything else: a pause needs no rule of its own."""

    @entry
    def resign(self) -> None:
        """Stop first, then say so: the seats' promise may end early only because the holder has ended (F15)."""
        if not self.holding:
            return
        self._end("resigned")
        self._give_back(self._spent)

    @entry
    def neglect(self) -> None:
        """Hold on to the last instant without renewing: the next holder must not come too early."""
        self._neglecting = self.holding

    @entry
    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, Claim):
            if self.seats.own is not None:
                self._ask(HolderId(source, 0), message, lambda answer: self._host.send(source, answer))
        elif isinstance(message, ClaimEnded):
            self.promises.release(KEY, HolderId(source, 0), message.number)
        else:
            assert isinstance(message, ClaimAnswer)
            if self.seats.slot_of(source) == message.slot:
                self._take(message)

    def _ask(self, holder: HolderId, claim: Claim, then: Answered) -> None:
        slot = self.seats.own
        assert slot is not None

        def answer(it: Answer) -> None:
            then(ClaimAnswer(claim.serial, slot, it.granted, it.number, it.wait, it.era))

        self.promises.ask(KEY, holder, claim.number, claim.length, answer)

    @entry
    def _take(self, answer: ClaimAnswer) -> None:
        self._highest = max(self._highest, answer.number)
        self._questions.answer(answer.serial, answer.slot, answer, yes=answer.granted, era=answer.era)

    @entry
    def _on_turn(self) -> None:
        """A new claim under a new number, or the renewal of the present one."""
        if self._neglecting:
            self._host.after(self.deadline.remaining, self._on_turn)
            return
        if not self.holding:
            self.number = max(self.number + 1, self._highest + 1, self._least_number())
        phase = Phase(
            self._host,
            self._questions,
            self._members,
            lambda serial: Claim(serial, self.number, self._length),
            every=self._length / RESENDS,
            timeout=self._length / 2,
            enough=self._quorum,
            done=partial(self._on_counted, self.number),
        )
        phase.start()
        if self.seats.own is not None:
            self._ask(HolderId(self._host.me, 0), Claim(phase.serial, self.number, self._length), self._take)

    def _least_number(self) -> int:
        """F16: wall-clock ms. Without, claimants ask for the same small numbers, which is what the seats must tell apart."""
        return int(self._host.wall() * 1000) if self._wall_numbers else 1

    @entry
    def _on_counted(self, number: int, end: PhaseEnd[int]) -> None:
        pause = self._length / RENEWALS
        if end.won and number > self._spent:  # A renewal that comes in after the end does not revive what has ended.
            self._hold(self.lease_end(end))
        elif not self.holding:
            # A claimant that keeps one seat's promise without a majority keeps all from having one.
            self._spent = number
            self._give_back(number)
            pause = self._pause(end)
        self._host.after(pause, self._on_turn)

    def _give_back(self, number: int) -> None:
        """After the end: the seats may promise the thing to the next one without waiting for the clock."""
        for address in self._members.values():
            if address is None:
                self.promises.release(KEY, HolderId(self._host.me, 0), number)
            else:
                self._host.send(address, ClaimEnded(number))

    def _pause(self, end: PhaseEnd[int]) -> float:
        """As early as a majority can say yes (detection: "heartbeat again when the first such promise ends"), or some time later.

        Two who ask at the same time split the seats for a whole length, so neither should always be early.
        """
        waits = sorted(answer.wait for answer in end.no.values() if isinstance(answer, ClaimAnswer))
        needed = len(waits) - len(self._members) // 2
        if needed >= 0 and waits and self._host.random.random() < EARLY_SHARE:
            return waits[min(needed, len(waits) - 1)] + 0.001
        return self._host.random.uniform(0.2, 1.5) * self._length

    def lease_end(self, end: PhaseEnd[int]) -> float:
        """F8: counted from before the request left."""
        return end.asked_at + holder_length(self._length, self._rho)

    def _hold(self, until: float) -> None:
        self.deadline.extend(until)
        self.grants.append(self._host.now)
        if not self.holding and self.deadline.valid:
            self.holding = True
            self._host.emit(ClaimWon(self.number))

    def _end(self, why: str) -> None:
        self.holding = self._neglecting = False
        self.grants.clear()
        self._spent = self.number
        self.deadline.end()
        self._host.emit(ClaimLost(self.number, why))


Answered = Callable[[ClaimAnswer], None]
