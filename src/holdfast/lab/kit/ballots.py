"""Ballots: the smallest protocol that stands on Phase, Quorum and Storage, for the lab.  Spec: foundation 4 (Call / Phase).

A ballot is a number. A life that wants it asks all members; a member gives its vote to the first life that asks, saves it, then says
so, and refuses all others for ever. A quorum of votes wins. So a ballot has one winner, if quorums meet, votes
are sets, answers match their question, and nothing is said before it is durable.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from holdfast.events import Internal
from holdfast.host import Address, Host, Message, NodeId
from holdfast.kit.phase import Outcome, Phase, PhaseEnd, Questions, Quorum

ASK_INTERVAL = 0.2
ASK_TIMEOUT = 1.5  # tickets 4: rtx, phase_timeout


class BallotAsk(Message, frozen=True, tag=243):
    """Will you vote for me?"""

    greeting: ClassVar[bool] = True
    serial: int
    ballot: int


class BallotVote(Message, frozen=True, tag=244):
    """My vote was for you, or it was not."""

    serial: int
    yes: bool


class BallotOpened(Internal, frozen=True):
    """This node wants a ballot."""

    ballot: int
    serial: int


class BallotEnded(Internal, frozen=True):
    """It knows whether it has it."""

    ballot: int
    serial: int
    outcome: str  # the name of one of Outcome
    yes: tuple[str, ...]


class Ballots:
    """Asks and votes."""

    handles = (BallotAsk, BallotVote)
    fingerprint = b""

    def __init__(self, host: Host, members: Mapping[str, Address], quorum: Quorum[str]) -> None:
        self._host, self._quorum = host, quorum
        self._members = {name: None if name == host.me.name else address for name, address in members.items()}
        self._storage = host.storage.part("ballots")
        self.votes = {int(key): value.decode() for key, value in self._storage.load().items()}  # durable, or on its way
        self.questions = Questions()

    def open(self, ballot: int) -> None:
        phase: Phase[str] = Phase(
            self._host,
            self.questions,
            self._members,
            partial(BallotAsk, ballot=ballot),
            every=ASK_INTERVAL,
            timeout=ASK_TIMEOUT,
            enough=self._quorum,
            done=lambda end: self._on_counted(ballot, phase.serial, end),
        )
        self._host.emit(BallotOpened(ballot, phase.serial))
        phase.start()
        self._vote(self._host.me, BallotAsk(phase.serial, ballot))

    def start(self) -> None:
        """Nothing happens by itself."""

    def stop(self) -> None:
        """Nothing runs by itself."""

    def on_away(self, seconds: float) -> None:
        """Votes have no deadline."""

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, BallotAsk):
            self._vote(source, message)
        else:
            assert isinstance(message, BallotVote)
            self._count(source, message)

    def _vote(self, asker: NodeId, ask: BallotAsk) -> None:
        given = self.votes.setdefault(ask.ballot, str(asker))
        answer = BallotVote(ask.serial, given == str(asker))
        if answer.yes:
            self._storage.save(str(ask.ballot), given.encode(), lambda: self._say(asker, answer))
        else:
            self._say(asker, answer)

    def _say(self, to: NodeId, vote: BallotVote) -> None:
        if to == self._host.me:
            self._count(to, vote)
        else:
            self._host.send(to, vote)

    def _count(self, source: NodeId, vote: BallotVote) -> None:
        self.questions.answer(vote.serial, source.name, vote, yes=vote.yes)

    def _on_counted(self, ballot: int, serial: int, end: PhaseEnd[str]) -> None:
        self._host.emit(BallotEnded(ballot, serial, end.outcome.name, tuple(end.yes)))


WON = Outcome.ENOUGH.name
