"""What must hold of an election at every step, whatever happens to members, links, clocks and disks.

Spec: fast-detection 7 (I1-I6, I9, I11), D18. The checkers hear what members say (``Leading``, ``TermEntered``, ``Suspect`` and the words
of ``SpokenElection``), read ``is_leader()``, and know the views. What a vote or a lease rests on they count themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from holdfast.events import Event
from holdfast.features.leadership.detector.config import Term
from holdfast.features.leadership.detector.facts import Suspect
from holdfast.host import NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World
from holdfast.papers.detection.lab.election_spoken import GrantSaid, HeartbeatRead, HeartbeatSaid, MissSaid
from holdfast.papers.detection.protocol.election import LeaderElection
from holdfast.papers.detection.protocol.election_facts import Leading, TermEntered
from holdfast.papers.detection.protocol.termstore import NO_TERM

ROUNDING = 1e-6  # seconds; a simulated clock that drifts rounds
Voters = Callable[[int], Sequence[str]]  # of a view


def election_of(host: LabHost) -> LeaderElection:
    return host.node.use(LeaderElection)


class TermUnique(Checker):
    """I1: no term has two lives that led it, ever."""

    name = "I1 term-unique"

    def __init__(self) -> None:
        self._led: dict[Term, NodeId] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Leading) and self._led.setdefault(event.term, host.me) != host.me:
            self.fail(f"{host.me} leads {event.term}, which {self._led[event.term]} has led")


class LeaseExclusive(Checker):
    """I2: at every instant of true time at most one process, stopped ones included, would say that it leads."""

    name = "I2 lease-exclusive"

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None or host.dead or not host.node.running or not election_of(host).is_leader():
            return  # Time makes no leaders: a member that has become one was touched.
        for other in world.alive:
            if other is not host and other.node.running and election_of(other).is_leader():
                self.fail(f"{host.me} and {other.me} lead at the same time")


class FenceOrder(Checker):
    """I3: a leader has a higher term than all that led before: what fencing tokens are for."""

    name = "I3 fence-order"

    def __init__(self) -> None:
        self._highest = NO_TERM

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Leading):
            if event.term <= self._highest:
                self.fail(f"{host.me} leads {event.term} after {self._highest} was led")
            self._highest = event.term


class TermMonotone(Checker):
    """I4: the terms that one life enters strictly increase; it is in no term that it has not entered."""

    name = "I4 term-monotone"

    def __init__(self) -> None:
        self._term: dict[NodeId, Term] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, TermEntered):
            if event.term <= self._term.get(host.me, NO_TERM):
                self.fail(f"{host.me} entered {event.term} after {self._term[host.me]}")
            self._term[host.me] = event.term

    def after(self, world: World, host: LabHost | None) -> None:
        if host is not None and not host.dead and host.node.running:
            term = election_of(host).term
            if term != self._term.get(host.me, NO_TERM):
                self.fail(f"{host.me} is in {term} without having entered it")


class ReportSound(Checker):
    """I5: each voter of a report stands in one list, once, and is a member; the watched in none; an acted report has enough of them."""

    name = "I5 report-sound"

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if not isinstance(event, Suspect):
            return
        election = election_of(host)
        named = [*event.misses, *event.silent, *event.unheard, *event.have]
        if len(set(named)) != len(named):
            self.fail(f"{host.me} counts somebody twice: {event}")
        if event.watched in named or not set(named) <= set(election.members):
            self.fail(f"{host.me} counts somebody who has no vote: {event}")
        if event.acted and election.config.mode == "quorum":
            against = {*event.misses, *event.unheard} if event.slow else {*event.misses}
            if len(against & set(election.voters)) < election.quorum:
                self.fail(f"{host.me} acts with {len(against)} of {len(election.voters)} voters: {event}")
        if event.acted and not event.slow and event.p_false > election.config.p_m + ROUNDING:
            self.fail(f"{host.me} acts although the demand is not met: {event}")


class VoteTruth(Checker):
    """I6: a monitor that says that it missed heartbeat i holds no heartbeat of that term from i on."""

    name = "I6 vote-truth"

    def __init__(self) -> None:
        self._held: dict[tuple[NodeId, Term, NodeId], int] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, HeartbeatRead):
            key = host.me, event.term, event.watched
            self._held[key] = max(event.seq, self._held.get(key, -1))
        elif isinstance(event, MissSaid):
            held = self._held.get((host.me, event.term, event.watched), -1)
            if held >= event.seq:
                self.fail(f"{host.me} says that it missed {event.seq} of {event.watched}, and holds {held}")


class StepDown(Checker):
    """I11: a member that says that it leads has sent, within L of its own clock, a heartbeat that a quorum has granted since."""

    name = "I11 step-down"

    def __init__(self, length: float, voters: Voters) -> None:
        self._length, self._voters = length, voters
        self._said_at: dict[tuple[NodeId, int], float] = {}  # (leader, stamp) -> when it first left, on the leader's clock
        self._granted: dict[NodeId, dict[str, int]] = defaultdict(dict)  # leader -> voter -> its newest grant, said or not arrived

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, HeartbeatSaid):
            self._said_at.setdefault((host.me, event.stamp), host.now)
        elif isinstance(event, GrantSaid):
            grants = self._granted[event.to]
            grants[host.me.name] = max(event.stamp, grants.get(host.me.name, 0))

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None or host.dead or not host.node.running or not election_of(host).is_leader():
            return
        term = election_of(host).lease.term
        assert term is not None
        voters = self._voters(term.view)
        quorum = len(voters) // 2 + 1 - (host.me.name in voters)  # It grants itself what it can, and tells no other.
        if quorum == 0:
            return
        grants = self._granted[host.me]
        newest = sorted((grants.get(voter, 0) for voter in voters if voter != host.me.name), reverse=True)
        said_at = self._said_at.get((host.me, newest[quorum - 1]))
        if said_at is None or host.now - said_at > self._length + ROUNDING:
            ago = "never" if said_at is None else f"{host.now - said_at:g} s ago"
            self.fail(f"{host.me} leads, and the last heartbeat that a quorum granted left {ago}; L is {self._length:g} s")


class TermsKept(Checker):
    """D18: whatever term a process has spoken in, none of its later lives enters a lower one, or leads one up to it."""

    name = "D18 terms-kept"

    def __init__(self) -> None:
        self._spoken: dict[str, Term] = {}  # name -> highest term that any of its lives spoke in
        self._former: dict[NodeId, Term] = {}  # life -> what the lives before it had spoken in

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        name = host.me.name
        former = self._former.setdefault(host.me, self._spoken.get(name, NO_TERM))
        if isinstance(event, TermEntered) and event.term < former:
            self.fail(f"{host.me} enters {event.term}; a former life has spoken in {former}")
        if isinstance(event, Leading) and event.term <= former:
            self.fail(f"{host.me} leads {event.term}; a former life has spoken in {former}")
        if isinstance(event, HeartbeatSaid | GrantSaid | MissSaid):
            self._spoken[name] = max(event.term, self._spoken.get(name, NO_TERM))


def disagreement(world: World, members: Sequence[str]) -> str:
    """I9: how the living members of a view differ about who leads; "" if they agree, and it does."""
    living = [world.nodes[name] for name in members if not world.nodes[name].dead]
    opinions = sorted({(str(election_of(host).leader()), election_of(host).term) for host in living})
    if len(opinions) > 1:
        return f"members disagree: {opinions}"
    for leader, term in opinions:
        leading = [(str(host.me), election_of(host).lease.term) for host in living if election_of(host).is_leader()]
        if leading != [(leader, term)]:
            return f"all name {leader} in {term}, and {leading} say that they lead"
    return ""
