"""Desk: how one agent asks guardian sets and writes to other agents.  Spec: tickets 3 (phases), 5.5 (choose_guardians).

All parts here ask in the same way: a phase to all members of a set, asked again every ``rtx``, finished by a majority, by so many
refusals that there will be none, or by ``phase_timeout``. What this agent says to itself takes the same road, a turn later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.messages import Accept, Accepted, Forget, Info, Prepare, Promised, Query, Refuse
from holdfast.features.tickets.protocol.rounds import Rounds
from holdfast.features.tickets.protocol.values import (
    NO_BALLOT,
    NO_SLOT,
    NOBODY,
    Agent,
    Ballot,
    Key,
    LeaseId,
    Place,
    Val,
    Voter,
    Who,
    life,
    newest,
    seat,
)
from holdfast.host import Address, Host, Message, NodeId
from holdfast.kit.histogram import Histogram
from holdfast.kit.phase import Outcome, Phase, PhaseEnd, Questions, Quorum, Request, count, majority
from holdfast.kit.seats import Seats
from holdfast.kit.slots import own_slot

FORGETTING_MAX = 2048  # open questions beyond which no word of forgetting is added: half of those that may be open (kit.phase)
FORGET_TIMEOUT = 30.0  # seconds that old guardians are told to forget a cell; one that is down for longer keeps it

RTT_BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.2, 1.0)
MARGIN_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 20.0)

Done = Callable[["End"], None]


class End(NamedTuple):
    """How a phase ended."""

    outcome: Outcome
    asked_at: float  # before the first request left
    era: int
    yes: tuple[tuple[Voter, Message], ...]  # in the order of arrival
    no: tuple[Refuse, ...]
    full: tuple[Voter, ...]  # who has no room for the cell
    crowded: bool  # those are so many that the others are no majority

    @property
    def won(self) -> bool:
        return self.outcome is Outcome.ENOUGH

    @property
    def best(self) -> tuple[Ballot, Val | None]:
        """The highest accepted value among those who promised or informed."""
        return newest((each.accepted, each.val) for _, each in self.yes if isinstance(each, Promised | Info))

    @property
    def promised(self) -> Ballot:
        """The highest ballot that a guardian refused for."""
        return max((refuse.promised for refuse in self.no), default=NO_BALLOT)

    @property
    def busy(self) -> float:
        """The longest grant that a guardian refused for."""
        return max((refuse.busy for refuse in self.no), default=0.0)

    @property
    def gone(self) -> bool:
        return any(refuse.gone for refuse in self.no)

    @property
    def seen(self) -> Val | None:
        """The highest version among the refusals: a hint who holds it."""
        vals = [refuse.val for refuse in self.no if refuse.val is not None]
        return max(vals, key=lambda val: val.seq, default=None)


class Desk:
    """One per agent."""

    def __init__(self, host: Host, config: TicketConfig, seats: Seats, deliver: Callable[[NodeId, Message], None]) -> None:
        self.host, self.config = host, config
        self.hold = config.hold  # asked for with every extension of every ticket
        self.questions = Questions()
        self.me = Agent(host.me, host.address)
        self.seats = tuple(seat(slot.number) for slot in seats.slots)
        self.counts: Counter[str] = Counter()  # phase_timeouts, and what the parts of this machine count
        self.renew_rtt = Histogram(*RTT_BOUNDS)  # seconds from a RENEW to its first ALIVE that says yes, of each guardian
        self.lease_margin = Histogram(*MARGIN_BOUNDS)  # seconds that were left of a lease when it was extended
        self._seats, self._deliver = seats, deliver
        self.rounds = Rounds(self)
        self._serial = 0  # of leases and cells of this life
        self._ballot = 0  # highest number used or seen

    # Names that are never used again.

    def lease(self) -> LeaseId:
        self._serial += 1
        return LeaseId(self.host.me, self._serial)

    def rid(self) -> str:
        """The name of a new cell."""
        return str(self.lease())

    def ballot(self, lease: LeaseId, above: Ballot = NO_BALLOT) -> Ballot:
        self._ballot = max(self._ballot, above.number) + 1
        return Ballot(self._ballot, lease)

    # Who is where.

    def place_of(self, agent: Agent) -> Place:
        """How an agent stands in a guardian set: a seat by its slot, because its next life remembers (5.2)."""
        slot = own_slot(self._seats.slots, agent.life.name, agent.address)
        return life(agent) if slot is None else seat(slot)

    def voter_of(self, source: NodeId) -> Voter:
        slot = self._seats.own if source == self.host.me else self._seats.slot_of(source)
        return (NO_SLOT, source) if slot is None else (slot, NOBODY.life)

    def post(self, place: Place, message: Message) -> None:
        to = self._road(place)
        if to is None:
            self._to_me(message)
        else:
            self.host.send(to, message)

    def tell(self, agent: Agent, message: Message) -> None:
        if agent.life == self.host.me:
            self._to_me(message)
        elif agent.life.name:
            self.host.meet(*agent)
            self.host.send(agent.life, message)

    def reply(self, source: NodeId, message: Message) -> None:
        if source == self.host.me:
            self._to_me(message)
        else:
            self.host.send(source, message)

    # Questions to guardian sets.

    def prepare(self, key: Key, places: Sequence[Place], ballot: Ballot, who: Who | None, done: Done) -> Phase[Voter]:
        return self._ask(places, lambda op: Prepare(op, key, ballot, who), done, expects=(Promised, Refuse))

    def accept(
        self,
        key: Key,
        places: Sequence[Place],
        ballot: Ballot,
        val: Val,
        done: Done,
        *,
        grant: bool,
        era: int | None = None,
        timeout: float = 0.0,
    ) -> Phase[Voter]:
        return self._ask(places, lambda op: Accept(op, key, ballot, val, grant), done, expects=(Accepted, Refuse), era=era, timeout=timeout)

    def query(self, key: Key, places: Sequence[Place], done: Done, *, all_of_them: bool = False) -> Phase[Voter]:
        voters = [voter(place) for place in places]
        enough = count(len(voters), voters) if all_of_them else None
        return self._ask(places, lambda op: Query(op, key), done, expects=(Info,), enough=enough)

    def forget(self, key: Key, places: Sequence[Place], but: Container[Voter] = ()) -> None:
        """Told until all answered or ``FORGET_TIMEOUT``; no candidate waits for it. ``but``: those had no room for it. What
        one of them took in after saying so is an orphan (H109)."""
        places = [place for place in places if voter(place) not in but]
        if not places:
            return
        if len(self.questions) >= FORGETTING_MAX:
            self.counts["forgets_skipped"] += 1  # A seat is down and many leave: what it keeps of them is an orphan one day.
            return
        voters = [voter(place) for place in places]
        self._ask(
            places,
            lambda op: Forget(op, key),
            lambda end: None,
            expects=(Accepted,),
            enough=count(len(voters), voters),
            every=1.0,
            timeout=FORGET_TIMEOUT,
        )

    def _ask(
        self,
        places: Sequence[Place],
        request: Request,
        done: Done,
        *,
        expects: tuple[type[Message], ...],
        enough: Quorum[Voter] | None = None,
        era: int | None = None,
        every: float = 0.0,
        timeout: float = 0.0,
    ) -> Phase[Voter]:
        members = {voter(place): self._road(place) for place in places}

        def ended(end: PhaseEnd[Voter]) -> None:
            if end.outcome is Outcome.TIMEOUT:
                self.counts["phase_timeouts"] += 1
            # Those who are of another era say no by being so; they may have said yes.
            no = {source: each for source, each in end.no.items() if isinstance(each, Refuse)}
            full = tuple(source for source, each in no.items() if each.full)
            crowded = 2 * len(full) > len(members)
            done(End(end.outcome, end.asked_at, end.era, tuple(end.yes.items()), tuple(no.values()), full, crowded))

        phase: Phase[Voter] = Phase(
            self.host,
            self.questions,
            members,
            request,
            every=every or self.config.rtx,
            timeout=timeout or self.config.phase_timeout,
            enough=enough or majority(members),
            done=ended,
            era=era,
            expects=expects,
        )
        phase.start()
        if None in members.values():
            self._to_me(request(phase.serial))
        return phase

    def _road(self, place: Place) -> NodeId | Address | None:
        """Where a member of a set is asked; None: by a call, it is this agent."""
        if place.slot != NO_SLOT:
            return self._seats.addresses.get(place.slot, NOBODY.life)  # A slot that our list does not have never answers.
        if place.agent.life == self.host.me:
            return None
        self.host.meet(*place.agent)
        return place.agent.life

    def _to_me(self, message: Message) -> None:
        self.host.after(0.0, lambda: self._deliver(self.host.me, message))


def voter(place: Place) -> Voter:
    return place.slot, place.agent.life
