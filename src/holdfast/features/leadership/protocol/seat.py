"""The seat's side: promises, asked for by heartbeats.

Spec: fast-detection 5 (grant rule, RESIGN), D17b; foundation 4 (Promise), F13, F15, F16.

A candidate is granted by ``kit.promise`` or not at all: a seat does not ask who is alive, and its own opinion about rounds plays no part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.bounds import is_beyond
from holdfast.events import RecordUnusable
from holdfast.features.leadership.detector.messages import Granted, Lead
from holdfast.features.leadership.protocol.config import NAMES_MAX
from holdfast.features.leadership.protocol.messages import Holding
from holdfast.host import Host, NodeId
from holdfast.kit.promise import Answer, HolderId, Promises
from holdfast.kit.seats import Seats

PART = "promises"  # of the seat's journal: the last promise of each name, under KEY and the name (``kit.promise`` writes it)
KEY = "lead:"
ALL = ""  # a Granted of this name speaks for a whole page, whose number is in ``round``: the usual answer, in a few bytes

Told = Callable[[tuple[Granted, ...]], None]


class Waiting(NamedTuple):
    """A candidate that only the promise to another stands in the way of."""

    holder: NodeId
    lead: Lead
    then: Callable[[Granted], None]
    until: float  # then it has asked again, or gone


class LeadSeat:
    """What this agent promises as a seat; on other agents it says nothing."""

    def __init__(self, host: Host, seats: Seats) -> None:
        self._host, self._seats = host, seats
        self.promises = Promises(host, host.storage.part(PART), seats.keeper) if seats.own is not None else None
        self._given_up: dict[str, tuple[NodeId, int]] = {}  # name -> who resigned it last, under which number
        self._waiting: dict[str, Waiting] = {}  # name -> who was refused last because a promise runs
        self.counts: Counter[str] = Counter()  # far_ahead, given_up, waited

    def report(self) -> None:
        """Say which names this seat cannot serve, and why (H174)."""
        for key, why in sorted(({} if self.promises is None else self.promises.unusable).items()):
            self._host.emit(RecordUnusable(key, why))

    def ask(self, holder: NodeId, lead: Lead, then: Callable[[Granted], None], later: Callable[[Granted], None] | None = None) -> None:
        """May that life lead under this number for this length? ``then`` runs at once or when it is durable, or never. A candidate that is
        refused because a promise runs is granted as soon as that is given back, and hears it by ``later``, or ``then`` again: START
        overtakes RESIGN as often as not."""
        if self.promises is None:
            return
        refused = self._refused(holder, lead)
        if refused is not None:
            then(refused)
            return

        def told(answer: Answer) -> None:
            if answer.wait > 0 and answer.number < lead.round:
                self._wait(Waiting(holder, lead, later or then, self._host.now + lead.length))
            then(Granted(lead.name, 0, lead.round, answer.granted, answer.wait, answer.number, answer.era))

        self.promises.ask(KEY + lead.name, HolderId(holder, 0), lead.round, lead.length, told)

    def answer(self, holder: NodeId, leads: Sequence[Lead], page: int, then: Told) -> None:
        """A page of a heartbeat. ``then`` runs now, with what is known now, and once more when the disk has taken the rest."""
        answers: list[Granted] = []
        told = False

        def one(granted: Granted) -> None:
            answers.append(granted)
            if told and len(answers) == len(leads):
                then(_short(answers[before:], page, whole=before == 0))

        for lead in leads:
            self.ask(holder, lead, one, lambda granted: then((granted,)))
        before, told = len(answers), True
        then(_short(answers, page, whole=before == len(leads)))

    def release(self, holder: NodeId, name: str, number: int) -> None:
        """RESIGN: its own word that it has stopped (F15)."""
        if self.promises is None:
            return
        self.promises.release(KEY + name, HolderId(holder, 0), number)
        if name not in self._given_up and len(self._given_up) >= NAMES_MAX:
            del self._given_up[next(iter(self._given_up))]
        former = self._given_up.get(name)
        self._given_up[name] = (holder, number if former is None or former[0] != holder else max(number, former[1]))
        waiting = self._waiting.pop(name, None)
        if waiting is not None and waiting.until > self._host.now and waiting.holder != holder:
            self.counts["waited"] += 1
            self.ask(waiting.holder, waiting.lead, waiting.then)

    def holdings(self, names: Sequence[str]) -> tuple[Holding, ...] | None:
        """What is promised now; None: this is no seat, or it may not speak."""
        wait = self._seats.keeper.wait
        if self.promises is None or wait == float("inf"):
            return None
        return tuple(self._holding(name, wait) for name in names if KEY + name not in self.promises.unusable)

    def _wait(self, waiting: Waiting) -> None:
        name = waiting.lead.name
        if name not in self._waiting and len(self._waiting) >= NAMES_MAX:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[name] = waiting

    def _holding(self, name: str, wait: float) -> Holding:
        assert self.promises is not None
        promise = self.promises.get(KEY + name)
        if promise is None:
            return Holding(name, 0, "", 0, wait)
        life = NodeId("", 0) if promise.holder is None else promise.holder.life
        return Holding(name, promise.number, life.name, life.boot, max(wait, promise.until - self._host.now, 0.0))

    def _refused(self, holder: NodeId, lead: Lead) -> Granted | None:
        """What the promises need not see."""
        assert self.promises is not None
        promise = self.promises.get(KEY + lead.name)
        number = 0 if promise is None else promise.number
        given_up = self._given_up.get(lead.name)
        if given_up is not None and given_up[0] == holder and lead.round <= given_up[1]:
            self.counts["given_up"] += 1  # A heartbeat that was overtaken by its sender's RESIGN.
        elif is_beyond(lead.round, self._host.wall):
            self.counts["far_ahead"] += 1
        else:
            return None
        return Granted(lead.name, 0, lead.round, grant=False, number=number, era=self._seats.keeper.era)


def _short(answers: Sequence[Granted], page: int, *, whole: bool) -> tuple[Granted, ...]:
    """If all of a page is granted, one entry says so."""
    if whole and answers and all(answer.grant and answer.era == answers[0].era for answer in answers):
        return (Granted(ALL, 0, page, grant=True, era=answers[0].era),)
    return tuple(answers)
