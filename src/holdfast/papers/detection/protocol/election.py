"""Leader election over agreed views: stable Omega, sped up by fast detection, made exclusive by a lease.

Spec: fast-detection 1-5, D12-D26; paper 002, Figure 4 with the faults of D12 removed.

A term is (view, round); it belongs to ``members[round mod n]``, the watched. The watched sends heartbeats, all others monitor
it. Rounds only grow: a monitor that finds the watched dead enters the next round and tells all. Two modes, one code path:

* ``paper``: Figure 4. Any monitor may demote; a candidate leads once it spoke. Terms are unique, leaders are not.
* ``quorum``: a majority must miss the leader, and a majority of unexpired promises makes one (lease).

Voters are the members of the view, or fixed ones: then views may change in any way, and the others only monitor (D17).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from holdfast.errors import ConfigError, LeadershipLost, NotAMember, shown
from holdfast.events import LeaderChanged
from holdfast.features.leadership.detector.config import ROUND_BITS, ElectionConfig, Term
from holdfast.features.leadership.detector.ffd import FastDetector
from holdfast.features.leadership.detector.links import LinkStats
from holdfast.features.leadership.detector.messages import DidYouMissToo, MonitorOk, Resign, StartRound, Vote, WatchedOk
from holdfast.features.leadership.detector.plan import Plan
from holdfast.host import Address, Host, Message, NodeId, Timer, fingerprint
from holdfast.kit.deadline import entry
from holdfast.papers.detection.protocol.election_candidate import Candidate
from holdfast.papers.detection.protocol.election_facts import Leading, LostLead, TermEntered
from holdfast.papers.detection.protocol.election_lease import Lease
from holdfast.papers.detection.protocol.election_monitor import Monitor
from holdfast.papers.detection.protocol.election_timers import TermTimers
from holdfast.papers.detection.protocol.election_voter import Voter
from holdfast.papers.detection.protocol.termstore import NO_TERM, TermStore
from holdfast.papers.detection.protocol.views_feed import View, check_view

VOTERS_MAX = 16  # F17: a watched process has at most 15 monitors who are asked in a ballot; a larger view needs fixed voters (D22)
ROUND_MAX = (1 << ROUND_BITS) - 2  # what a peer may bring us to; the round after it still fits a token
WAITING_MAX = 64  # messages kept while the disk works: a heartbeat, a question and a vote of each voter, and as many again


class LeaderElection:
    """One member of agreed views. Views come by ``install_view``; in quorum mode they must obey D17, or ``voters`` are fixed."""

    def __init__(self, host: Host, config: ElectionConfig, store: TermStore, *, name: str = "leader", voters: Sequence[str] = ()) -> None:
        if len(voters) > VOTERS_MAX or len(set(voters)) != len(voters):
            raise ConfigError(
                f"voters: {', '.join(voters)}; accepted are up to {VOTERS_MAX} different names, none: the members of the view"
            )
        self.host, self.config, self.name = host, config, name
        # What was not believed: stranger, malformed, other_view, not_watched, late_vote; not kept: stale, overflow; not done: rounds_spent.
        self.counts: Counter[str] = Counter()
        self.term = NO_TERM
        self.members: tuple[str, ...] = ()  # sorted; empty while this process is in no view
        self.lease = Lease(host, config.lease, config.rho)
        self._store, self._no_lead = store, store.stored
        self._fixed = tuple(sorted(voters))
        self._view = max(0, store.stored.view - 1)  # the newest one that was installed; a restart may install the stored one again
        self._addresses: dict[str, Address] = {}
        self._leader: tuple[NodeId | None, int] = (None, 0)  # who leads, with its token
        self._waiting: deque[tuple[NodeId, Message]] = deque()  # what came while the disk worked
        self._lease_end: Timer | None = None  # outlives terms, as a lease does
        self._timers = TermTimers(host, self._guard)
        self._voter = Voter(host, store, config.rho)
        self._candidate = Candidate(host, config, self._voter, self.lease, self._timers, self)
        self._monitor = Monitor(host, config, self._voter, self._timers, self)

    # What users ask.

    def is_leader(self) -> bool:
        """By the clock, at this instant."""
        return self.lease.valid

    def token(self) -> int:
        """The fencing token of the leadership that is held here; LeadershipLost if there is none."""
        if self.lease.term is None or not self.lease.valid:
            raise LeadershipLost(f"{self.host.me} does not lead {shown(self.name)} now: stop what only a leader may do")
        return self.lease.term.token

    def leader(self) -> NodeId | None:
        """Who leads, as known here: a hint."""
        return self._leader[0]

    @entry
    def resign(self) -> None:
        """Hand over at once, instead of letting the lease run out; LeadershipLost if this process does not lead."""
        if not self.lease.valid:
            raise LeadershipLost(f"{self.host.me} does not lead {shown(self.name)} now: there is nothing to resign from")
        self._step_down("resigned")
        spoken = self._store.stored  # Nothing was said in a later term.
        self._voter.release(self.host.me, spoken)
        for address in self.others().values():
            self.host.send(address, Resign("", *spoken))
        self.enter_next("resigned")

    def link(self, peer: NodeId) -> LinkStats:
        """What was measured of the link from this life."""
        return self._monitor.links.stats(peer)

    def demand(self, p_m: float) -> Plan:
        """What this accuracy costs with the links as they are; NotAMember while this process has nothing to monitor."""
        if self.watched in ("", self.host.me.name):
            raise NotAMember(f"{self.host.me} has nothing to monitor now, so there is no plan for an accuracy of {p_m:g}")
        return self.ffd.demand(p_m)

    @property
    def ffd(self) -> FastDetector:
        """How this process sees the watched."""
        return self._monitor.ffd

    @property
    def installed(self) -> int:
        """The newest view that the disk knows to be installed here: what a feed tells others (D17)."""
        return max(0, self._store.stored.view)

    @property
    def voters(self) -> Sequence[str]:
        return self._fixed or self.members

    @property
    def quorum(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def watched(self) -> str:
        """Whose term it is; "" while this process is in no view."""
        return self.members[self.term.round % len(self.members)] if self.members else ""

    def others(self) -> Mapping[str, Address]:
        """All other members."""
        return {name: self._addresses[name] for name in self.members if name != self.host.me.name}

    # A machine.

    @property
    def handles(self) -> Sequence[type[Message]]:
        return (WatchedOk, MonitorOk, StartRound, DidYouMissToo, Vote, Resign)

    @property
    def fingerprint(self) -> bytes:
        return self.config.fingerprint + b";" + fingerprint(voters=",".join(self._fixed))

    def start(self) -> None:
        self._voter.start()

    def stop(self) -> None:
        self._timers.cancel_all()
        self._monitor.end()
        if self._lease_end is not None:
            self._lease_end.cancel()
            self._lease_end = None

    @entry
    def on_away(self, seconds: float) -> None:
        self._monitor.on_away(seconds)

    @entry
    def install_view(self, view: int, members: View) -> None:
        """From the layer that agrees on views: the same number is the same list, everywhere."""
        check_view(view, members)
        if not self._fixed and len(members) > VOTERS_MAX:
            raise ConfigError(f"view {view}: {len(members)} members; accepted are up to {VOTERS_MAX}, or an election with fixed voters")
        if view <= self._view:
            self.counts["stale"] += 1
            return
        self._view = view
        self._addresses = {name: members[name] for name in sorted(members)}
        self._waiting.clear()  # said in a former view
        if self.host.me.name in members:
            self.members = tuple(self._addresses)
            # All who may ask each other in a ballot meet now: a first contact costs a round trip, which a ballot does not have.
            self._enter(self._first_term(view), "view", list(dict.fromkeys((*self.voters, *self.members)))[:VOTERS_MAX])
        else:
            self._leave()

    @entry
    def on_message(self, source: NodeId, message: Message) -> None:
        if source.name not in self.members or source.name == self.host.me.name:
            self.counts["stranger"] += 1
        elif self._busy:
            self._keep(source, message)
        elif isinstance(message, WatchedOk):
            self._on_watched_ok(source, message)
        elif isinstance(message, MonitorOk):
            self._on_monitor_ok(source, message)
        elif isinstance(message, StartRound):
            self._on_start(source, message)
        elif isinstance(message, Resign):
            self._on_resign(source, message)
        elif isinstance(message, DidYouMissToo):
            self._on_query(source, message)
        else:
            assert isinstance(message, Vote)
            self._on_vote(source, message)

    # A holder (F9).

    @property
    def lapsed(self) -> bool:
        return self.lease.lapsed

    def lapse(self) -> None:
        """The lease ran out. If the round is still ours, the next one shall try."""
        self._step_down("lapsed")
        if self.watched == self.host.me.name:
            self.enter_next("lapsed")

    def _guard(self) -> None:
        if self.lapsed:
            self.lapse()

    # What a candidate and a monitor tell.

    def say(self, to: NodeId | Address, message: Message) -> None:
        assert not self._busy  # D18: nothing of a term is said before the disk knows it.
        self.host.send(to, message)

    def enter_next(self, why: str) -> None:
        if self.term.round > ROUND_MAX:
            self.counts["rounds_spent"] += 1  # Its token would be one of the next view, which begins with round 0.
            return
        self._enter(self.term.next(), why, self.members)

    def on_won(self) -> None:
        self.host.emit(Leading(self.term))
        self.name_leader(self.host.me)
        self.on_extended()

    def on_extended(self) -> None:
        """One timer looks when the lease should be over, and sleeps on if it is longer by then."""
        if self._lease_end is None and self.config.mode == "quorum":
            self._lease_end = self.host.at(self.lease.until, self._on_lease_end)

    def on_gave_up(self) -> None:
        self.enter_next("gave up")

    def _on_lease_end(self) -> None:
        self._lease_end = None
        self._guard()
        if self.lease.valid:
            self.on_extended()

    def _step_down(self, why: str) -> None:
        assert self.lease.term is not None
        term = self.lease.term
        self.lease.end()
        self.host.emit(LostLead(term, why))
        if self._leader[0] == self.host.me:
            self.name_leader(None)

    def name_leader(self, leader: NodeId | None) -> None:
        named = (leader, self.term.token if leader is not None else 0)
        if named != self._leader:
            self._leader = named
            self.host.emit(LeaderChanged(self.name, leader, self.term.token))

    # Terms.

    @property
    def _busy(self) -> bool:
        """The disk does not know the term yet."""
        return bool(self.members) and self._store.stored < self.term

    def _first_term(self, view: int) -> Term:
        """Whom we follow leads on, if it is a member. A restart in the stored view begins at the stored round (D18)."""
        followed = self._leader[0].name if self._leader[0] is not None else ""
        first = Term(view, self.members.index(followed) if followed in self.members else 0)
        return max(first, self._store.stored) if self._store.stored.view == view else first

    def _enter(self, term: Term, why: str, tell: Sequence[str] = ()) -> None:
        """StartRound; ``tell``: who is sent START."""
        assert term > self.term
        self._timers.cancel_all()
        self._monitor.end()
        self._candidate.end()
        self.lease.begin()
        self.term = term
        self.host.emit(TermEntered(term, why))
        if self.lease.term is None:
            self.name_leader(None)
        elif self.config.mode == "paper" or self.watched != self.host.me.name:
            self._step_down("demoted")
        if term > self._store.stored:
            self._store.save(term, lambda: self._on_stored(term, tell))
        else:
            self._begin(tell)

    def _on_stored(self, term: Term, tell: Sequence[str]) -> None:
        if term == self.term and self.members:  # Else a later one is on its way to the disk, or we are in no view.
            self._begin(tell)

    def _begin(self, tell: Sequence[str]) -> None:
        """The disk knows the term; now others may."""
        for name, address in self.others().items():
            if name in tell:
                self.say(address, StartRound("", *self.term))
        if self.watched != self.host.me.name:
            self._monitor.begin()
        elif self.term > self._no_lead:
            self._candidate.begin()
        else:
            self._timers.arm("spent", self.host.now, self._on_spent)
        if self._waiting:
            self._read_waiting()

    def _read_waiting(self) -> None:
        """As after a pause (F10, F11): it teaches nothing about delays, and a heartbeat is read before a question about it."""
        self._monitor.on_backlog()
        self._waiting = deque(sorted(self._waiting, key=lambda kept: not isinstance(kept[1], WatchedOk)))
        while self._waiting and not self._busy:
            self.on_message(*self._waiting.popleft())

    def _on_spent(self) -> None:
        """D18: a former life may have led this term."""
        self.enter_next("spent")

    def _leave(self) -> None:
        """We are not in the view."""
        if self.lease.term is not None:
            self._step_down("not a member")
        self.stop()
        self._candidate.end()
        self.name_leader(None)
        self.members = ()

    def _keep(self, source: NodeId, message: Message) -> None:
        if len(self._waiting) < WAITING_MAX:
            self._waiting.append((source, message))
        else:
            self.counts["overflow"] += 1

    def _current(self, source: NodeId, view: int, number: int, message: Message | None) -> bool:
        """Is this said in our term? An older one is answered; a newer one is entered, and the message is read in it (D16)."""
        if view != self.term.view:
            self.counts["other_view"] += 1  # Views come from the layer below.
        elif not 0 <= number <= ROUND_MAX:
            self.counts["malformed"] += 1
        elif number < self.term.round:
            self.say(source, StartRound("", *self.term))
        elif number > self.term.round:
            if message is not None:
                self._waiting.appendleft((source, message))
            self._enter(Term(view, number), "told")
        else:
            return True
        return False

    def _on_start(self, source: NodeId, message: StartRound) -> None:
        if self._current(source, message.view, message.round, None) and self._candidate.stands:
            self._candidate.repeat_to(source)

    def _on_resign(self, source: NodeId, message: Resign) -> None:
        """The promise ends also when a START has moved us on already: the START that a resignation causes often overtakes it."""
        if not 0 <= message.round <= ROUND_MAX:
            self.counts["malformed"] += 1
            return
        if message.view > self.term.view:
            self.counts["other_view"] += 1
            return
        self._voter.release(source, Term(message.view, message.round))
        if (message.view, message.round) == self.term and source.name == self.watched:
            self._enter(self.term.next(), "resigned")  # Its sender tells all itself.

    def _on_monitor_ok(self, source: NodeId, message: MonitorOk) -> None:
        if self._candidate.stands:
            self._candidate.on_monitor_ok(source, message)

    def _on_watched_ok(self, source: NodeId, message: WatchedOk) -> None:
        if len(message.leads) != 1:
            self.counts["malformed"] += 1
            return
        (lead,) = message.leads
        if not self._current(source, lead.view, lead.round, message):
            return
        if source.name == self.watched:
            self._monitor.on_heartbeat(source, message, lead)
        else:
            self.counts["not_watched"] += 1

    def _on_query(self, source: NodeId, message: DidYouMissToo) -> None:
        if self._current(source, message.view, message.round, message) and self.watched != self.host.me.name:
            self._monitor.on_query(source, message)

    def _on_vote(self, source: NodeId, message: Vote) -> None:
        if (message.view, message.round) != self.term or not self._monitor.on_vote(source, message):
            self.counts["late_vote"] += 1
