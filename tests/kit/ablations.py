"""The kit with one rule taken out each: what the checkers of its scenarios must catch.  No configuration reaches them."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.host import Address, Host, Member, Membership, NodeId
from holdfast.kit.broadcast import Broadcast, Rumour
from holdfast.kit.exchange import Exchange
from holdfast.kit.keeper import Keeper
from holdfast.kit.phase import PhaseEnd, Quorum, count
from holdfast.kit.promise import Answer, HolderId, Promises
from holdfast.kit.rows import Kept, Merge, Rows
from holdfast.kit.seats import SeatHello, Seats
from holdfast.kit.slots import Slot
from holdfast.kit.versioned import Versioned, newest, read
from holdfast.lab.kit.ballots import BallotAsk, Ballots, BallotVote
from holdfast.lab.kit.claims import Claimant
from holdfast.lab.kit.scenarios.broadcast import BroadcastScenario
from holdfast.lab.kit.scenarios.phase import PhaseScenario
from holdfast.lab.kit.scenarios.promise import PromiseScenario
from holdfast.lab.kit.scenarios.rows import RowsScenario
from holdfast.lab.scenario import Setup


class TellsTwice(Broadcast):
    """Tickets 5.9: no memory of what was heard."""

    def _first_sight(self, rumour: Rumour) -> bool:
        return True


class ForgetsLives(Broadcast):
    """F1: the numbers of all lives of a name are one sequence, so the rumours of the next life count as heard."""

    def _first_sight(self, rumour: Rumour) -> bool:
        return super()._first_sight(Rumour(rumour.origin._replace(boot=1), rumour.topic, rumour.seq, 0, b""))


class PassesOnAlways(Broadcast):
    """Infect, and infect again: duplicates are passed on too."""

    def _first_sight(self, rumour: Rumour) -> bool:
        first = super()._first_sight(rumour)
        if not first:
            self._forward(rumour)
        return first


class KeepsItself(Broadcast):
    """Tickets 5.9: rumours are delivered and not passed on."""

    def _pass_on(self, rumour: Rumour, peers: tuple[Member, ...]) -> None:
        super()._pass_on(rumour, peers[:1])


class BroadcastAblation(BroadcastScenario):
    """The scenario with another class in Broadcast's place."""

    def __init__(self, machine: type[Broadcast]) -> None:
        self.machine = machine

    def make(self, host: Host, membership: Membership) -> Broadcast:
        return self.machine(host, membership)


class NoAntiEntropy(Exchange):
    """Foundation 4: rumours alone."""

    def start(self) -> None:
        """Nothing is ever compared."""


class OneWay(Exchange):
    """Foundation 4: whoever knows better says nothing, and keys that are lacking are not asked for."""

    def _on_keys(self, source: object, table: object, message: object) -> None:
        """Silence."""


class WrongDigest(Exchange):
    """A row that changes leaves its old hash in the digest."""

    def rows(self, topic: str, merge: Merge, **options: object) -> Rows:
        table = super().rows(topic, merge, **options)  # type: ignore[arg-type]
        put = table._put

        def wrong(key: str, value: bytes, former: Kept | None, gone_at: float | None) -> None:
            put(key, value, former, gone_at)
            if former is not None:
                table._hashes[former.bucket] ^= former.hash

        table._put = wrong  # type: ignore[method-assign]
        return table


def inventing(a: bytes, b: bytes) -> bytes:
    """Not a join: two values make a third, above both."""
    it = read(newest(a, b))
    return Versioned(it.version + (a != b), it.author, it.body).encode()


class RowsAblation(RowsScenario):
    """The scenario with another exchange or another merge."""

    def __init__(self, machine: type[Exchange] = Exchange, merge: Merge | None = None) -> None:
        self.machine, self._merge = machine, merge

    def make(self, host: Host, broadcast: Broadcast) -> Exchange:
        return self.machine(host, broadcast, ae_period=0.5)

    def merge(self) -> Merge:
        return self._merge or super().merge()


class SaysFirst(Ballots):
    """Tickets 5.2: the vote is told, then saved."""

    def _vote(self, asker: NodeId, ask: BallotAsk) -> None:
        given = self.votes.setdefault(ask.ballot, str(asker))
        self._storage.save(str(ask.ballot), given.encode(), lambda: None)
        self._say(asker, BallotVote(ask.serial, given == str(asker)))


class ForgetsVotes(Ballots):
    """Tickets D20: a new life does not read what the former one promised."""

    def __init__(self, host: Host, members: dict[str, Address], quorum: Quorum[str]) -> None:
        super().__init__(host, members, quorum)
        self.votes = {}


class AnySerial(Ballots):
    """Tickets D18: an answer counts for whatever was asked last."""

    def _count(self, source: NodeId, vote: BallotVote) -> None:
        super()._count(source, BallotVote(self.questions._last_serial, vote.yes))


class CountsAnswers(Ballots):
    """Detection D7: a counter instead of a set; every answer is taken for another member's."""

    def _count(self, source: NodeId, vote: BallotVote) -> None:
        question = self.questions._open.get(vote.serial)
        voted = [*getattr(question, "_yes", ()), *getattr(question, "_no", ())]
        name = next((name for name in self._members if name not in voted), source.name)
        self.questions.answer(vote.serial, name, vote, yes=vote.yes)


class PhaseAblation(PhaseScenario):
    """The scenario with other ballots, or with half of the members instead of a quorum."""

    def __init__(self, machine: type[Ballots] = Ballots, *, half: bool = False) -> None:
        self.machine, self.half = machine, half

    def make(self, host: Host, members: dict[str, Address], quorum: Quorum[str]) -> Ballots:
        return self.machine(host, members, quorum)

    def quorum(self, setup: Setup) -> Quorum[str]:
        return count(max(1, len(setup.names) // 2), setup.names) if self.half else super().quorum(setup)


class TwoPerNumber(Promises):
    """Foundation 4: without "refused if it equals it and the holder differs"."""

    def _refusal(self, key: str, holder: HolderId, number: int, length: float) -> Answer | None:
        refusal = super()._refusal(key, holder, number, length)
        record = self.get(key)
        over = record is not None and self._host.now >= record.until
        return None if refusal is not None and over and refusal.number == number and self._keeper.wait == 0 else refusal


class IgnoresBusy(Promises):
    """Foundation 4: without "refused while another holder's ``until`` runs"."""

    def _refusal(self, key: str, holder: HolderId, number: int, length: float) -> Answer | None:
        refusal = super()._refusal(key, holder, number, length)
        return None if refusal is not None and refusal.wait > 0 and number > refusal.number and self._keeper.wait == 0 else refusal


class AnswersFirst(Promises):
    """Foundation 4: answers, then saves."""

    def _when_durable(self, key: str, holder: HolderId, number: int, length: float, then: Callable[[], None]) -> None:
        super()._when_durable(key, holder, number, length, lambda: None)
        then()


class AnyResignation(Promises):
    """Detection, RESIGN: a late resignation ends a promise that its holder has won since under a higher number."""

    def release(self, key: str, holder: HolderId, number: int) -> None:
        super().release(key, holder, number + 10**12)


class TellsTheSlow(Promises):
    """A grant whose save took too long is given although another holder was recorded meanwhile, and marks that one as saved."""

    def _conclude(self, key: str, holder: HolderId, number: int, then: Callable[[Answer], None]) -> None:
        self._table[key].saved = True
        then(Answer(granted=True, number=number, wait=0.0, era=0))


class ForgetsUntil(Keeper):
    """F13: opens at once after a restart."""

    def open(self, *, fresh: bool, since: float | None = None) -> None:
        self._opens_at = self._host.now


class ForgetsLongest(Keeper):
    """F13: grants before the longest length is on disk."""

    def covers(self, length: float) -> bool:
        return True


class CountsFromReceipt(Claimant):
    """F8: the lease counts from when a majority had answered."""

    def lease_end(self, end: PhaseEnd[int]) -> float:
        return super().lease_end(end) - end.asked_at + self._host.now


class HoldsUnshortened(Claimant):
    """F8: the holder counts the whole length on its own clock, plus what a naive 2 rho gives."""

    def lease_end(self, end: PhaseEnd[int]) -> float:
        return end.asked_at + self._length * (1 + 2 * self._rho)


class FlagsItsLease(Claimant):
    """F9: a flag that a timer clears instead of a comparison."""

    @property
    def valid(self) -> bool:
        return self.holding


class RevivesRenewals(Claimant):
    """A renewal that comes in after a resignation revives it."""

    def _end(self, why: str) -> None:
        super()._end(why)
        self._spent = 0


class Trusting(Seats):
    """H156: no slot remembers how far another's journal had come."""

    def _remember(self, source: NodeId, hello: SeatHello) -> None:
        self.marks._remembered.clear()
        super()._remember(source, hello)


class Amnesic(Seats):
    """F13: an empty journal is taken for a first start without asking anybody."""

    def _begin_asking(self) -> None:
        self._open(fresh=True)


class AlwaysNew(Seats):
    """F13: "never met you", to everybody."""

    def _remember(self, source: NodeId, hello: SeatHello) -> None:
        self._met.clear()
        self.marks._remembered.clear()
        super()._remember(source, hello)


class PromiseAblation(PromiseScenario):
    """The scenario with one part replaced."""

    def __init__(
        self,
        *,
        promises: type[Promises] = Promises,
        keeper: type[Keeper] = Keeper,
        claimant: type[Claimant] = Claimant,
        seats: type[Seats] = Seats,
    ) -> None:
        self.promises, self.keeper, self.claimant, self.seats = promises, keeper, claimant, seats

    def make_seats(self, host: Host, places: tuple[Slot, ...], length: float) -> Seats:
        sound = super().make_seats(host, places, length)
        sound.__class__ = self.seats
        sound.keeper.__class__ = self.keeper
        return sound

    def make(self, host: Host, seats: Seats, setup: Setup) -> Claimant:
        sound = super().make(host, seats, setup)
        sound.__class__ = self.claimant
        sound.promises.__class__ = self.promises
        return sound
