"""What users hear of a leader that is missed.

Spec: foundation 5 (Suspect and Dismissed, as LeaderSuspected); detection D6; docs/decisions.md H138.
"""

from __future__ import annotations

from holdfast.events import Event, LeaderChanged, LeaderSuspected
from holdfast.features.leadership.detector.facts import Dismissed, Suspect
from holdfast.features.leadership.detector.messages import DidYouMissToo, Lead, Resign, Vote, VoteKind, WatchedOk
from holdfast.features.leadership.protocol.board import LEADER, Row
from holdfast.features.leadership.protocol.leadership import Leadership, LeadershipConfig
from holdfast.host import Address, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot
from tests.features.leadership.stand import Stand
from tests.support.fake_host import FakeHost
from tests.support.fake_members import FakeMembers

A, B, C = NodeId("a", 1), NodeId("b", 1), NodeId("c", 1)
FIRST = 1_700_000_000_000
SLOTS = tuple(Slot(number, name, Address(name, 1)) for number, name in enumerate("abc"))


class Monitor:
    """The agent a, a seat; b leads, c is the other monitor. Only as ``sole`` seat it acts on a report: it never met the other seats."""

    def __init__(self, *, sole: bool = False) -> None:
        self.host = FakeHost("a")
        members = FakeMembers(A, B, C)
        seats = Seats(self.host, SLOTS[:1] if sole else SLOTS, 0, machine="m", rho=1e-3, length_max=1.5)
        seats.keeper.open(fresh=False)
        exchange = Exchange(self.host, Broadcast(self.host, members))
        self.leadership = Leadership(self.host, members, seats, exchange, LeadershipConfig(t_itv=1.0))
        self.leadership.start()
        self.seq = 1000

    def hear(self, *names: str) -> None:
        """The next heartbeat of b."""
        self.seq += 1
        leads = tuple(Lead(name, 0, FIRST, leading=True, length=1.5) for name in names)
        self.leadership.on_message(B, WatchedOk(self.seq, self.seq, leads, ("a", "c"), 0.0))

    def until_asked(self) -> None:
        """A freshness point passed, and c has a question."""
        watch = self.leadership.watches.get(B)
        assert watch is not None
        while watch.detector.ballot is None:
            self.host.pass_time(0.01)

    def answer(self, kind: VoteKind) -> None:
        """The vote of c on the latest question."""
        query = [message for _, message in self.host.sent if isinstance(message, DidYouMissToo)][-1]
        self.leadership.on_message(C, Vote("b", query.view, query.round, query.seq, query.nonce, kind, 0.1, 0))

    def told(self) -> list[Event]:
        return [event for event in self.host.emitted if isinstance(event, LeaderSuspected | LeaderChanged)]


def suspected(name: str, *, cleared: bool = False) -> LeaderSuspected:
    return LeaderSuspected(name, B, FIRST, cleared=cleared)


def test_one_word_per_name_and_suspicion_however_many_ballots() -> None:
    """Foundation 5, H138: Suspect becomes LeaderSuspected for each name that is led there, once; the next heartbeat clears it."""
    monitor = Monitor()
    monitor.hear("x", "y")
    monitor.host.pass_time(1.0)
    monitor.hear("x", "y")
    before = len(monitor.told())
    monitor.host.pass_time(3.5)
    assert len(monitor.host.events(Suspect)) >= 3
    assert not any(report.acted for report in monitor.host.events(Suspect))
    assert monitor.told()[before:] == [suspected("x"), suspected("y")]
    monitor.hear("x", "y")
    assert monitor.told()[before + 2 :] == [suspected("x", cleared=True), suspected("y", cleared=True)]
    monitor.host.pass_time(1.0)
    monitor.hear("x", "y")
    assert len(monitor.told()) == before + 4


def test_a_witness_clears_it() -> None:
    """Foundation 5, D6: Dismissed by somebody who has a later heartbeat ends a suspicion; without one before it is nobody's news."""
    monitor = Monitor()
    monitor.hear("x")
    monitor.until_asked()
    monitor.answer(VoteKind.HAVE)
    assert len(monitor.host.events(Dismissed)) == 1
    assert monitor.host.events(LeaderSuspected) == []
    monitor.until_asked()
    monitor.host.pass_time(0.5)  # The next one is missed as well, and c does not answer.
    assert monitor.host.events(LeaderSuspected) == [suspected("x")]
    monitor.until_asked()
    monitor.answer(VoteKind.HAVE)
    assert monitor.host.events(LeaderSuspected) == [suspected("x"), suspected("x", cleared=True)]


def test_another_leader_ends_a_suspicion() -> None:
    """H138: who heard of a suspicion hears of its end once, from LeaderChanged or from ``cleared``, not from both."""
    monitor = Monitor()
    monitor.hear("x", "y")
    monitor.host.pass_time(2.5)
    assert monitor.host.events(LeaderSuspected) == [suspected("x"), suspected("y")]
    monitor.leadership.on_message(B, Resign("x", 0, FIRST))
    monitor.hear("y")
    assert monitor.host.events(LeaderSuspected)[2:] == [suspected("y", cleared=True)]
    assert monitor.host.events(LeaderChanged)[-1] == LeaderChanged("x", None, FIRST)


def test_only_what_was_suspected_is_cleared() -> None:
    """H138: a name that is heard of while its leader is missed was never said to be suspected, and is not cleared."""
    monitor = Monitor()
    monitor.hear("x")
    monitor.host.pass_time(2.5)
    row = Row(LEADER, "y", "b", 1, FIRST, 0, over=False)
    monitor.leadership._on_row(row)
    assert monitor.host.events(LeaderChanged)[-1] == LeaderChanged("y", B, FIRST)
    monitor.hear("x", "y")
    assert monitor.host.events(LeaderSuspected) == [suspected("x"), suspected("x", cleared=True)]


def test_the_next_suspicion_is_told_again() -> None:
    """Foundation 5: a false alarm ends with LeaderChanged, twice; then the leader can be suspected as if nothing had been."""
    monitor = Monitor(sole=True)
    monitor.hear("x")
    for _ in range(3):  # 0.1 for each of two, three times in a row: below 1e-5
        monitor.until_asked()
        monitor.answer(VoteKind.MISSED)
    assert [report.acted for report in monitor.host.events(Suspect)] == [False, False, True]
    monitor.hear("x")
    monitor.host.pass_time(2.5)
    lead, vacant = LeaderChanged("x", B, FIRST), monitor.host.events(LeaderChanged)[1]
    assert vacant.leader is None
    assert monitor.told() == [lead, suspected("x"), vacant, lead, suspected("x")]


def test_found_dead_is_suspected_first() -> None:
    """Foundation 5: a leader that is killed is suspected by whoever asked, before nobody is known to lead; nobody clears it."""
    stand = Stand()
    stand.stand("a4", "a3", name="x")
    stand.stand("a4", name="y")
    stand.run(10.0)
    leader = stand.leader()
    names = {name for name in "xy" if stand.leader(name) == leader}
    first = len(stand.facts)
    stand.world.crash(leader)
    stand.run(10.0)
    told = [(who, fact) for _, who, fact in stand.facts[first:] if isinstance(fact, LeaderSuspected)]
    assert {fact.name for _, fact in told} == names
    assert len(told) == len(set(told)), "once per suspicion"
    assert all((fact.leader.name, fact.cleared) == (leader, False) for _, fact in told)
    asker = told[0][0]
    order = [type(fact) for _, who, fact in stand.facts[first:] if who == asker and getattr(fact, "name", "") == "x"]
    assert order.index(LeaderSuspected) < order.index(LeaderChanged)


def test_a_calm_group_suspects_nobody() -> None:
    """Foundation 5: no word without a missed heartbeat."""
    stand = Stand()
    stand.stand("a4", "a3")
    stand.run(20.0)
    assert not any(isinstance(fact, LeaderSuspected) for _, _, fact in stand.facts)
