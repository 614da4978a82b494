"""Questions to one peer or to a set of them, asked again until answered, and the sets of voters that decide one.

Spec: foundation 4 (Call / Phase, Quorum), F13; tickets 3; ring 5 (``quorum``: even groups, joint while a group changes).

A machine has one ``Questions``. Every question takes a serial from it that is never used again in this life; the
request carries it, the answer brings it back, and the envelope (F3) keeps answers to a former life away. The
machine hands every answer to ``Questions.answer``; one that comes too late, twice or from a stranger ends there.

A quorum knows its whole group, because a question may end early in two ways: enough said yes, or so many said
no that enough never will.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from holdfast.host import FANOUT_MAX, Address, Host, Message, NodeId, Timer

QUESTIONS_MAX = 4096  # open at a time; each has a timeout, so only a bug gets here

Request = Callable[[int], Message]  # builds the message around the serial
Outcome = Enum("Outcome", ["ENOUGH", "IMPOSSIBLE", "TIMEOUT"])


class Voter(Hashable, Protocol):
    """Anything that can be counted once and ordered: an identity, the number of a slot."""

    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=Voter)
K_contra = TypeVar("K_contra", bound=Voter, contravariant=True)


class Quorum(Protocol[K_contra]):
    """A monotone rule over sets of voters: a voter outside the group does not count."""

    def enough(self, yes: AbstractSet[K_contra]) -> bool:
        """These voters decide."""

    def possible(self, yes: AbstractSet[K_contra], no: AbstractSet[K_contra]) -> bool:
        """Some superset of ``yes`` that leaves out ``no`` would decide. A voter in both has said yes first."""


class Weights(Quorum[K]):
    """Each voter has a weight; ``need`` decides."""

    __slots__ = ("need", "weights")

    def __init__(self, weights: Mapping[K, int], need: int) -> None:
        assert need >= 1  # an empty group must never be enough
        self.weights = dict(weights)
        self.need = need

    def enough(self, yes: AbstractSet[K]) -> bool:
        return sum(weight for voter, weight in self.weights.items() if voter in yes) >= self.need

    def possible(self, yes: AbstractSet[K], no: AbstractSet[K]) -> bool:
        return sum(weight for voter, weight in self.weights.items() if voter in yes or voter not in no) >= self.need


class Joint(Quorum[K]):
    """Several groups at once, each by its own rule: what a change from one group to another needs (ring 5.3)."""

    __slots__ = ("parts",)

    def __init__(self, parts: Iterable[Quorum[K]]) -> None:
        self.parts = tuple(parts)
        assert self.parts

    def enough(self, yes: AbstractSet[K]) -> bool:
        return all(part.enough(yes) for part in self.parts)

    def possible(self, yes: AbstractSet[K], no: AbstractSet[K]) -> bool:
        # Exact although each part is asked alone: all of them are monotone, and one set, all voters but ``no``, is best for all.
        return all(part.possible(yes, no) for part in self.parts)


def majority(group: Collection[K]) -> Quorum[K]:
    """More than half. Any two winning sets share a voter."""
    return Weights(dict.fromkeys(group, 1), len(set(group)) // 2 + 1)


def weighted(group: Collection[K]) -> Quorum[K]:
    """As ``majority``, but in an even group the smallest id counts twice (ring 5, D5).

    The weights then sum to an odd total, so winning sets still share a voter, and a pair survives the crash of
    its larger id.
    """
    weights = dict.fromkeys(group, 1)
    if weights and len(weights) % 2 == 0:
        weights[min(weights)] = 2
    return Weights(weights, len(weights) // 2 + 1)


def joint(a: Quorum[K], b: Quorum[K]) -> Quorum[K]:
    """Both. A winning set shares a voter with every winning set of either."""
    return Joint((a, b))


def count(n: int, group: Collection[K]) -> Quorum[K]:
    """Any ``n`` of the group. Two such sets may be disjoint: for samples and for "all", not for exclusion."""
    return Weights(dict.fromkeys(group, 1), n)


class Question(Protocol):
    """What waits for answers under one serial."""

    def take(self, voter: Any, answer: Message, *, yes: bool, era: int) -> bool:
        """False: not one of those who were asked."""


class Questions:
    """The open questions of one machine, by serial."""

    def __init__(self, last_serial: int = 0) -> None:
        """``last_serial``: drawn, where an answer shall prove that its sender was asked; otherwise they count from 1."""
        self._last_serial = last_serial
        self._open: dict[int, Question] = {}
        self.late = 0  # answers to questions that had ended: normal, every resend may cause one
        self.strangers = 0  # answers by a peer that was not asked

    def __len__(self) -> int:
        return len(self._open)

    def open(self, question: Question) -> int:
        assert len(self._open) < QUESTIONS_MAX
        self._last_serial += 1
        self._open[self._last_serial] = question
        return self._last_serial

    def close(self, serial: int) -> None:
        self._open.pop(serial, None)

    def answer(self, serial: int, voter: Voter, answer: Message, *, yes: bool = True, era: int = 0) -> None:
        """A peer answered: ``voter`` is the one that ``answer`` came from, in the words of the question's members."""
        question = self._open.get(serial)
        if question is None:
            self.late += 1
        elif not question.take(voter, answer, yes=yes, era=era):
            self.strangers += 1


class Call:
    """One peer: asks up to ``tries`` times, ``every`` so many seconds. ``done`` runs once, with the answer or None."""

    def __init__(
        self,
        host: Host,
        questions: Questions,
        to: NodeId | Address,
        request: Request,
        *,
        every: float,
        tries: int,
        done: Callable[[Message | None], None],
    ) -> None:
        assert every > 0
        assert tries >= 1
        self._host, self._questions, self._to = host, questions, to
        self._every, self._tries_left, self._done = every, tries, done
        self.serial = questions.open(self)
        self._request = request(self.serial)
        self._timer: Timer | None = None

    def start(self) -> None:
        assert self._timer is None
        self._on_every()

    def cancel(self) -> None:
        """The answer is not wanted any more: ``done`` will not run."""
        self._questions.close(self.serial)
        if self._timer is not None:
            self._timer.cancel()

    def take(self, voter: Any, answer: Message, *, yes: bool, era: int) -> bool:
        del yes, era  # of one peer, any answer is the answer
        # An address was asked without knowing who lives there; the serial alone says that this is the answer.
        if isinstance(self._to, NodeId) and voter != self._to:
            return False
        self._end(answer)
        return True

    def _on_every(self) -> None:
        if self._tries_left == 0:
            self._end(None)
            return
        self._tries_left -= 1
        self._timer = self._host.after(self._every, self._on_every)
        self._host.send(self._to, self._request)

    def _end(self, answer: Message | None) -> None:
        self.cancel()
        self._done(answer)


class PhaseEnd(Generic[K]):
    """How a phase ended, and who said what until then."""

    __slots__ = ("asked_at", "era", "no", "outcome", "silent", "yes")

    def __init__(
        self, outcome: Outcome, yes: Mapping[K, Message], no: Mapping[K, Message], silent: tuple[K, ...], asked_at: float, era: int
    ) -> None:
        self.outcome = outcome
        self.yes, self.no = yes, no  # in the order of arrival
        self.silent = silent
        self.asked_at = asked_at  # before the first request left: what a lease won by this phase counts from (F8)
        self.era = era  # the one era whose answers were counted (F13)

    @property
    def won(self) -> bool:
        return self.outcome is Outcome.ENOUGH


class Phase(Generic[K]):
    """A set of members, asked together; ends once: enough said yes, enough never will, or ``timeout``.

    ``members`` maps each voter to where it is asked: a life, an address, or None for the voter who is this node
    itself and whose answer the caller brings by ``Questions.answer``. Votes are sets: the first answer of a voter
    stands. Answers of different eras are never added up (F13): with ``era`` only that one counts and a voter who
    is beyond it has said no; without, the highest era seen counts and those who are behind are asked again.
    """

    def __init__(
        self,
        host: Host,
        questions: Questions,
        members: Mapping[K, NodeId | Address | None],
        request: Request,
        *,
        every: float,
        timeout: float,
        enough: Quorum[K],
        done: Callable[[PhaseEnd[K]], None],
        era: int | None = None,
        expects: tuple[type[Message], ...] = (Message,),
    ) -> None:
        """``expects``: what answers this question. Whatever else a peer sends under its serial is a stranger's word."""
        assert len(members) <= FANOUT_MAX  # F17
        assert every > 0
        assert timeout > 0
        self._host, self._questions, self._quorum, self._done = host, questions, enough, done
        self._members = dict(members)
        self._every, self._timeout = every, timeout
        self._era_fixed, self._expects = era is not None, expects
        self._era = era or 0
        self._yes: dict[K, Message] = {}
        self._no: dict[K, Message] = {}
        self._timers: list[Timer] = []
        self.serial = questions.open(self)
        self._request = request(self.serial)
        self.asked_at = host.now

    def start(self) -> None:
        """Ask. ``done`` may run inside this call when the members can never be enough."""
        assert not self._timers
        self.asked_at = self._host.now
        self._timers = [self._host.after(self._timeout, self._on_timeout)]
        self._on_every()
        self._decide()

    def cancel(self) -> None:
        """The answer is not wanted any more: ``done`` will not run."""
        self._questions.close(self.serial)
        for timer in self._timers:
            timer.cancel()

    def take(self, voter: Any, answer: Message, *, yes: bool, era: int) -> bool:
        if voter not in self._members or not isinstance(answer, self._expects):
            return False
        if era > self._era and not self._era_fixed:
            self._begin_era(era)
        if era < self._era or voter in self._yes or voter in self._no:
            return True  # It answered for a time that is over, and may catch up; or it has voted.
        votes = self._yes if yes and era == self._era else self._no
        votes[voter] = answer
        self._decide()
        return True

    def _begin_era(self, era: int) -> None:
        """What was said before this era must not help to decide in it; all others become silent again."""
        self._era = era
        self._yes.clear()
        self._no.clear()

    def _decide(self) -> None:
        yes, no = self._yes.keys(), self._no.keys()
        if self._quorum.enough(yes):
            self._end(Outcome.ENOUGH)
        elif not self._quorum.possible(yes, no):
            self._end(Outcome.IMPOSSIBLE)

    def _silent(self) -> tuple[K, ...]:
        return tuple(voter for voter in self._members if voter not in self._yes and voter not in self._no)

    def _on_every(self) -> None:
        self._timers[1:] = [self._host.after(self._every, self._on_every)]
        for voter in self._silent():
            to = self._members[voter]
            if to is not None:
                self._host.send(to, self._request)

    def _on_timeout(self) -> None:
        self._end(Outcome.TIMEOUT)

    def _end(self, outcome: Outcome) -> None:
        self.cancel()
        self._done(PhaseEnd(outcome, self._yes, self._no, self._silent(), self.asked_at, self._era))
