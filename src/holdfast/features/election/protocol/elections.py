"""Elections: one leader per name, chosen among the members of a group whose lists differ; with or without a majority.

Spec: election; paper 004 (Wang and Gupta). One machine for all names of an agent, over ``host.Lists``. It is asked as leadership with seats
is: campaign, withdraw, resign, renew_allowed, in the words of ``kit.hold``.

``initiator`` asks and names, ``answering`` answers, ``candidacy`` is the life of who is named, ``hearing`` and ``reigns`` what all learn,
``voting`` and ``terms`` who must agree, ``watching`` when an election starts, ``clients`` what a client is told, ``ticking`` what is looked
at again and again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf

from holdfast.errors import ConfigError, HoldLost, Unavailable, shown
from holdfast.events import Joined, MembershipEvent, Updated
from holdfast.features.election.protocol.answering import Answering
from holdfast.features.election.protocol.candidacy import Candidacy
from holdfast.features.election.protocol.clients import Clients
from holdfast.features.election.protocol.config import HOLD_MAX, HOLD_MIN, NAME_BYTES_MAX, STANDS_MAX, ElectionConfig
from holdfast.features.election.protocol.contest import Contest, Wish
from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.cvalue import CValue
from holdfast.features.election.protocol.hearing import Hearing
from holdfast.features.election.protocol.initiator import Initiator
from holdfast.features.election.protocol.manner import Manner
from holdfast.features.election.protocol.messages import (
    TYPES,
    AskTerm,
    Leader,
    LeaderAck,
    NotifyLeader,
    NotifyNack,
    OfElection,
    Query,
    Response,
    TermWord,
)
from holdfast.features.election.protocol.metrics import metrics
from holdfast.features.election.protocol.multicast import DirectMulticast, Multicast
from holdfast.features.election.protocol.posting import Posting
from holdfast.features.election.protocol.reigns import Reigns
from holdfast.features.election.protocol.rules import Rules
from holdfast.features.election.protocol.selection import account
from holdfast.features.election.protocol.shown import Account, Reign, Role, State
from holdfast.features.election.protocol.terms import Terms
from holdfast.features.election.protocol.ticking import Ticking
from holdfast.features.election.protocol.voting import Voting
from holdfast.features.election.protocol.watching import Watching
from holdfast.features.election.protocol.wiring import Wiring
from holdfast.host import Host, Lists, Message, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.hold import Holder
from holdfast.kit.seats import Seats


class Elections:
    """The machine of all elections of one agent."""

    fingerprint = b""
    handles: Sequence[type[Message]] = TYPES

    def __init__(
        self,
        host: Host,
        lists: Lists,
        exchange: Exchange,
        seats: Seats | None,
        config: ElectionConfig,
        *,
        rules: Rules | None = None,
        broadcast: Broadcast | None = None,
        multicast: Multicast | None = None,
    ) -> None:
        """Makes the table ``elected`` in ``exchange``, publishes rows ``e:...`` in ``lists``, keeps promises in the parts ``election`` and,
        as a seat, ``terms`` of ``host.storage``. ``broadcast`` is used above 1024 members. The laboratory alone hands in
        ``rules`` and ``multicast``."""
        self.config = config
        self.rules = Rules() if rules is None else rules
        core = self._core = Core(host, lists, config, self.rules)
        self._seats = seats
        wiring = Wiring(config)
        self._watching = wiring.watching = Watching(core, wiring.begin)
        self._answering = Answering(core, self._watching)
        self._cvalue = wiring.cvalue = CValue(core)
        self._voting = wiring.voting = Voting(core, seats, self._watching)
        self._candidacy = wiring.candidacy = Candidacy(core, self._voting, self._watching, lambda: self._terms, wiring)
        self._terms = wiring.terms = Terms(core, seats, self._candidacy.on_promised)
        self._reigns = wiring.reigns = Reigns(core, exchange, self._watching, wiring)
        self._clients = wiring.clients = Clients(core, wiring.sure, wiring.lapsed)
        self._initiator = wiring.initiator = Initiator(
            core, self._answering, self._cvalue, self._voting, self._watching, self._terms, wiring
        )
        self.took = self._initiator.took  # seconds that finished elections of this member took
        self._hearing = Hearing(core, self._reigns, self._voting, self._watching, self._candidacy.step_down)
        self._posting = Posting(core)
        self._ticking = wiring.ticking = Ticking(
            core, candidacy=self._candidacy, hearing=self._hearing, posting=self._posting, reigns=self._reigns, voting=self._voting,
            watching=self._watching, terms=self._terms,
        )  # fmt: skip
        core.opened, core.forgotten = wiring.opened, wiring.forgotten
        cast = DirectMulticast(host, core.outbox, broadcast, self.on_message) if multicast is None else multicast
        core.cast = lambda message: cast.cast(message, core.others())
        self._on: dict[type[Message], Callable[..., None]] = self._handlers()
        self._stopped = False
        lists.subscribe(self._on_member)

    # What the agent calls: in the words of kit.hold.

    def campaign(self, name: str, length: float, holder: Holder, *, manner: Manner | None = None) -> None:
        """A client of this agent wants to lead ``name``: this agent is a candidate from now on. ``length``: how many seconds ahead the
        deadlines are that the holder hears, extended every half of it (5.10); 0.0: ``config.hold``. ``manner``: how it is elected; None:
        as configured. Raises ConfigError for a bad name, length or manner, for a manner that differs from that of other candidates,
        and for voters="seats" without seats; Unavailable for a 17th name.

        ``holder`` hears ``on_granted(term, deadline)`` when it leads, ``on_extended``, ``on_at_risk`` when the agent doubts itself (a
        pause), and ``on_lost`` when the term is over. After a loss this agent stands on and may be elected again under a higher term,
        with another ``on_granted``, unless ``renew_allowed(name, False)`` or ``resign`` was called."""
        length = length or self.config.hold
        wanted = self.config.manner if manner is None else manner
        self._check(name, length, wanted)
        core = self._core
        self._lapse()
        contest = core.contests.get(name) or core.open(name, wanted)
        if contest is None:
            raise Unavailable(f"this agent knows too many names for {shown(name)}; try again when some are idle")
        if contest.manner != wanted:
            contest.manner, contest.cached = wanted, None
            self._voting.tick(contest)
        contest.wish = Wish(holder, length)
        try:
            self._posting.refresh(contest)
        except ConfigError:
            contest.wish = None
            raise
        core.standing[name] = contest
        if not self._watching.led(contest):
            self._watching.arm(contest, soon=True)

    def withdraw(self, name: str) -> None:
        """Stop being a candidate. Of a leader this is ``resign``."""
        self.resign(name)

    def resign(self, name: str) -> None:
        """Give the name up at once and stop being a candidate; ``on_lost`` is not called. Not leading: the same as ``withdraw``. Unknown
        names are ignored."""
        self._lapse()
        contest = self._core.standing.pop(name, None)
        if contest is None or contest.wish is None:
            return
        self._clients.end(contest.wish)
        contest.wish = None
        self._posting.withdraw(contest)
        led = contest.role is Role.ACTIVE or contest.unsure
        self._candidacy.step_down(contest, "resigned" if led else "withdrawn")

    def renew_allowed(self, name: str, allowed: bool) -> None:
        """May deadlines be extended? If not, an agent that does not lead is no candidate meanwhile."""
        self._lapse()
        contest = self._core.standing.get(name)
        if contest is None or contest.wish is None:
            return
        self._clients.allow(contest, contest.wish, allowed)
        if allowed:
            self._ticking.look(contest)
        elif contest.role is not Role.ACTIVE:
            self._posting.withdraw(contest)
            self._candidacy.step_down(contest, "withdrawn")

    def elect(self, name: str) -> None:
        """Begin an election now, here, with the incumbent as one candidate among others (not sticky). Raises ConfigError if this agent
        knows no candidate of that name, Unavailable while it takes part in nothing."""
        core, contest = self._core, self._core.contests.get(name)
        if contest is None or not core.candidates(contest):
            raise ConfigError(f"name: no member stands for {shown(name)}; accepted is a name that a client leads or waits for")
        if not core.takes_part(contest):
            raise Unavailable("this agent takes part in no election yet; wait until it is a settled member")
        self._initiator.end(contest, "overtaken")
        if not self._initiator.begin(contest, "elect", sticky=False) and contest.start is None:
            raise Unavailable(f"no election of {shown(name)} can begin here: too few of those that must agree are reachable; try again")

    # What is known: hints, never waiting.

    def leader(self, name: str) -> Reign | None:
        """The leader as known here; also tentative. None: no leader, or the one that was has left the list."""
        contest = self._core.contests.get(name)
        return None if contest is None else self._reign(contest)

    def reigns(self) -> Mapping[str, Reign]:
        """The reigns of all names, by name."""
        found = ((name, self.leader(name)) for name in self.names())
        return {name: reign for name, reign in found if reign is not None}

    def is_leader(self, name: str) -> bool:
        """True if this agent leads the name: ACTIVE, told to a client that asked, and in time (F9)."""
        return self.deadline(name) > self._core.now

    def token(self, name: str) -> int:
        """The token of this agent's reign. Raises ``errors.HoldLost`` if it does not lead."""
        if not self.is_leader(name):
            raise HoldLost(f"{shown(name)} is not led by this agent; wait until it is")
        return self._core.contests[name].term

    def deadline(self, name: str) -> float:
        """The deadline as told to the client, on ``host.now``; minus infinity if it does not lead."""
        contest = self._core.standing.get(name)
        return -inf if contest is None or contest.wish is None or contest.role is not Role.ACTIVE else contest.wish.deadline

    def candidates(self, name: str) -> tuple[NodeId, ...]:
        """The members that stand for it and are listed here, best rank first."""
        contest = self._core.contests.get(name)
        return () if contest is None else tuple(each.id for each in self._core.candidates(contest))

    def manner(self, name: str) -> Manner | None:
        """How that name is elected, as known here; None: nothing is known of it."""
        contest = self._core.contests.get(name)
        return None if contest is None else contest.manner

    def highest(self, name: str) -> int:
        """The highest term of that name that was heard of here; 0: none."""
        contest = self._core.contests.get(name)
        return 0 if contest is None else max(contest.promised, contest.term, 0 if contest.active is None else contest.active.term)

    def exceed(self, name: str, number: int) -> None:
        """Terms of this name that this agent nominates from now on are above that (F16: tokens of another way to lead it)."""
        contest = self._core.contests.get(name)
        if contest is not None:
            contest.floor = max(contest.floor, number)

    def names(self) -> tuple[str, ...]:
        """All names that are known, sorted."""
        return tuple(sorted(self._core.contests))

    def state(self, name: str) -> State | None:
        """The state of a name, for checkers and pages; None: the name is not known."""
        contest = self._core.contests.get(name)
        if contest is None:
            return None
        bounds = self._cvalue.bounds(contest)
        active = None if contest.active is None else (contest.active.term, contest.active.leader, contest.active.over)
        return State(
            name, contest.manner, contest.role, contest.term, contest.final, frozenset(contest.acks), self._voting.needed(contest),
            contest.voter, contest.promised, contest.promised_to, active, contest.shown, contest.run is not None,
            contest.wish is not None, bounds.c, bounds.f, -inf if contest.wish is None else contest.wish.deadline,
        )  # fmt: skip

    def last(self, name: str) -> Account | None:
        """How the last election of that name that began at this member went, or goes."""
        contest = self._core.contests.get(name)
        if contest is None:
            return None
        return contest.last if contest.run is None else account(self._core, contest, contest.run, "")

    def metrics(self) -> Mapping[str, float]:
        """Numbers by name. Counters never fall in a life; the rest is as of now."""
        return metrics(self._core)

    @property
    def counts(self) -> Counter[str]:
        """What was refused and dropped, and what happened how often."""
        return self._core.counts

    # The machine.

    def start(self) -> None:
        self._terms.start()
        self._voting.start()
        self._ticking.start()

    def stop(self) -> None:
        self._stopped = True
        core = self._core
        self._ticking.stop()
        self._voting.stop()
        self._terms.stop()
        for contest in core.contests.values():
            self._initiator.end(contest, "overtaken")
            self._candidacy.stop(contest)
            self._watching.cancel(contest)
            if contest.wish is not None:
                self._clients.end(contest.wish)
        core.outbox.clear()
        self._answering.outbox.clear()

    def on_away(self, seconds: float) -> None:
        self._lapse()

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, OfElection)
        core = self._core
        core.received[type(message)] += 1
        self._lapse()
        if isinstance(message, AskTerm):
            self._terms.on_ask(source, message)
        elif isinstance(message, TermWord):
            self._terms.on_word(source, message)
        else:
            self._on_word(source, message)

    # How it is done.

    def _on_word(self, source: NodeId, message: OfElection) -> None:
        """Handle a message about a name."""
        known = self._core.contests.get(message.name)
        if isinstance(message, Leader) and known is not None and known.manner != message.manner:
            self._hearing.on_otherwise(source, message)
        contest = self._core.meet(source, message.name, message.manner)
        if contest is not None:
            self._on[type(message)](source, contest, message)
        elif isinstance(message, Query) and message.name in self._core.contests:
            self._answering.mismatch(source, self._core.contests[message.name], message.eid)

    def _handlers(self) -> dict[type[Message], Callable[..., None]]:
        return {
            Query: self._on_query,
            Response: self._on_response,
            NotifyLeader: self._on_notify,
            NotifyNack: self._initiator.on_nack,
            Leader: self._on_leader,
            LeaderAck: self._candidacy.on_ack,
        }

    def _on_query(self, source: NodeId, contest: Contest, query: Query) -> None:
        if not query.sync and self._core.takes_part(contest):
            self._initiator.on_rival(contest, source)
        self._answering.on_query(source, contest, query)

    def _on_response(self, source: NodeId, contest: Contest, response: Response) -> None:
        terms = (response.term, 0 if response.active is None else response.active.term)
        if not all(map(self._core.credible, terms)):
            self._core.counts["far_ahead"] += 1
        elif not self._voting.on_answer(source, contest, response):
            self._initiator.take(contest, source, response)

    def _on_notify(self, source: NodeId, contest: Contest, notify: NotifyLeader) -> None:
        if self._core.credible(notify.term):
            self._candidacy.on_notify(source, contest, notify)
        else:
            self._core.counts["far_ahead"] += 1

    def _on_leader(self, source: NodeId, contest: Contest, message: Leader) -> None:
        self._hearing.on_leader(source, contest, message)
        self._initiator.on_leader(source, contest, message)

    def _on_member(self, event: MembershipEvent) -> None:
        """The list changed: leaders may be gone, and newcomers must hear of those that this member is."""
        member = event.member
        if self._stopped:
            return
        for contest in tuple(self._core.contests.values()):
            if isinstance(event, Updated):
                if member.id == self._core.me and contest.wish is not None:
                    self._ticking.look(contest)
            elif contest.active is not None and contest.active.leader.name == member.name:
                self._ticking.look(contest)
            if isinstance(event, Joined) and member.id != self._core.me:
                self._candidacy.announce(contest, member)

    def _lapse(self) -> None:
        """Take deadlines that have passed for losses, before anything else (F9)."""
        for contest in tuple(self._core.standing.values()):
            self._clients.lapse(contest)

    def _reign(self, contest: Contest) -> Reign | None:
        core, active, shown_ = self._core, contest.active, contest.shown
        if active is not None and self._watching.led(contest):
            sure = active.leader != core.me or contest.role is Role.ACTIVE
            return Reign(contest.name, active.leader, active.term, sure, core.is_listed(active.leader), contest.manner)
        if shown_ is None or core.now - contest.shown_at > core.ttl or (active is not None and active.term >= shown_[0]):
            return None
        return Reign(contest.name, shown_[1], shown_[0], False, core.is_listed(shown_[1]), contest.manner)

    def _check(self, name: str, length: float, wanted: Manner) -> None:
        if not 1 <= len(name.encode()) <= NAME_BYTES_MAX or not name.isprintable():
            raise ConfigError(f"name: {shown(name)}; accepted are 1 to {NAME_BYTES_MAX} bytes of printable text")
        if not HOLD_MIN <= length <= HOLD_MAX:
            raise ConfigError(f"length: {shown(length)}; accepted are {HOLD_MIN:g} to {HOLD_MAX:g} seconds")
        if wanted.by_seats and self._seats is None:
            raise ConfigError('voters: "seats" and there are none: set seats, or seeds that are literal addresses')
        if name in self._core.standing:
            raise ConfigError(f"name: this agent stands for {shown(name)} already; accepted is one candidacy per name")
        if len(self._core.standing) >= STANDS_MAX:
            raise Unavailable(f"this agent stands for {STANDS_MAX} names already; use another agent, or fewer names")
        other = self._posting.otherwise(name, wanted) or self._led_otherwise(name, wanted)
        if other is not None:
            who, theirs = other
            field = next(field for field in theirs.words() if theirs.words()[field] != wanted.words()[field])
            ours, has = wanted.words()[field], theirs.words()[field]
            raise ConfigError(f"{field}: {shown(ours)}; accepted is {shown(has)}, as {who} has it, which stands for {shown(name)}")

    def _led_otherwise(self, name: str, wanted: Manner) -> tuple[NodeId, Manner] | None:
        contest = self._core.contests.get(name)
        if contest is None or contest.active is None or contest.manner == wanted or not self._watching.led(contest):
            return None
        return contest.active.leader, contest.manner
