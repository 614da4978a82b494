"""Decisions of others: how long they stand, and when they are void.  Spec: ring P4, 5.2; H380."""

from __future__ import annotations

from itertools import count

from holdfast.events import Cleared, Decided, Event
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.ids import Peer
from holdfast.features.ring.protocol.memberlist import Tombstone, key_of
from holdfast.features.ring.protocol.news import DECIDERS_MAX, SPREAD_LEASES
from holdfast.features.ring.protocol.rules import Rules
from holdfast.host import Member, MemberStatus, Message, NodeId
from holdfast.kit.broadcast import Rumour
from tests.features.ring.stand import STEP, T_A, T_L, Stand, crowd, peer, suspecting

SEQ = count(1)
WAIT = RingConfig().wait
KEEP = WAIT + SPREAD_LEASES * T_L


def hear(stand: Stand, decider: Peer, decided: Peer, *, life: NodeId | None = None) -> None:
    """The word of a member that it has won comes by rumour."""
    stand.ring.broadcast.on_message(decider.node, rumour(stand, decider.node if life is None else life, decided))


def rumour(stand: Stand, origin: NodeId, decided: Peer) -> Message:
    return Rumour(origin, stand.ring.news.topic, next(SEQ), 0, key_of(decided.id).encode())


def status(stand: Stand, whom: Peer) -> MemberStatus:
    member = stand.ring.get(whom.node.name)
    assert isinstance(member, Member)
    return member.status


def leaves(stand: Stand, whom: Peer) -> None:
    stand.say(whom, m.Leave(*stand.head(whom), "rejected", 1))


def events(stand: Stand, *kinds: type[Event]) -> list[tuple[str, str]]:
    """What was told about whom, in order."""
    told = [event for kind in kinds for event in stand.host.events(kind)]
    return [(type(event).__name__, event.member.name) for event in told if isinstance(event, Cleared | Decided)]


def test_a_decision_is_void_when_its_decider_left() -> None:
    """H380: a member that has won and departs declares nothing (5.2), so what it has decided ends with it, at once."""
    stand, (decider, decided, *_) = crowd()
    hear(stand, decider, decided)
    assert status(stand, decided) is MemberStatus.DECIDED
    leaves(stand, decider)
    assert status(stand, decided) is MemberStatus.ALIVE
    assert events(stand, Decided, Cleared) == [("Decided", decided.node.name), ("Cleared", decided.node.name)]


def test_it_stands_while_another_decider_is_listed() -> None:
    """H380: every member that has won may declare; the decision is void when the last of them is gone."""
    stand, (one, other, decided, *_) = crowd()
    hear(stand, one, decided)
    hear(stand, other, decided)
    leaves(stand, one)
    assert status(stand, decided) is MemberStatus.DECIDED
    leaves(stand, other)
    assert status(stand, decided) is MemberStatus.ALIVE


def test_a_word_that_comes_after_its_deciders_end_counts_for_nothing() -> None:
    """H380: rumours overtake each other. One of a membership that is over is not believed, and one of a life not listed yet is."""
    stand, (decider, decided, other, *_) = crowd()
    leaves(stand, decider)
    hear(stand, decider, decided)
    assert status(stand, decided) is MemberStatus.ALIVE
    hear(stand, decider, other, life=NodeId("new", 1))
    assert status(stand, other) is MemberStatus.DECIDED


def test_a_decision_ends_when_no_declaration_comes() -> None:
    """H380: its decider may crash or be cut off. After wait and the time in which a tombstone is asked for it is void, within T_l."""
    stand, (decider, decided, *_) = crowd()
    hear(stand, decider, decided)
    stand.live(KEEP - STEP)
    assert status(stand, decided) is MemberStatus.DECIDED
    stand.live(T_L + 2 * STEP)
    assert status(stand, decided) is MemberStatus.ALIVE
    assert events(stand, Cleared) == [("Cleared", decided.node.name)]


def test_a_word_that_is_said_again_stands_longer() -> None:
    """H380: the time counts from the last word."""
    stand, (decider, decided, *_) = crowd()
    hear(stand, decider, decided)
    stand.live(KEEP - T_L)
    hear(stand, decider, decided)
    stand.live(KEEP - STEP)
    assert status(stand, decided) is MemberStatus.DECIDED


def test_our_own_decision_stands_and_is_told_then() -> None:
    """H380, P4: a win about which others had the news already was not told. When their word is void, ours is."""
    stand, silent, others = suspecting()
    hear(stand, others[-1], silent)
    stand.vote(yes=others[:3])
    assert silent.id in stand.ring.condemned
    stand.host.pass_time(0.0)
    assert not stand.take(Rumour)
    leaves(stand, others[-1])
    stand.host.pass_time(0.0)
    assert {told.payload for _, told in stand.take(Rumour) if told.topic == stand.ring.news.topic} == {key_of(silent.id).encode()}
    assert status(stand, silent) is MemberStatus.DECIDED
    assert not events(stand, Cleared)


def test_an_own_suspicion_is_not_cleared_by_the_way() -> None:
    """H380, D3: while the own arbitration runs, a doubt stays; it ends within T_a."""
    stand, silent, others = suspecting()
    hear(stand, others[-1], silent)
    leaves(stand, others[-1])
    assert status(stand, silent) is MemberStatus.DECIDED
    stand.live(T_A, silent=[silent])
    assert stand.departures()


def test_nothing_is_kept_of_members_that_are_gone() -> None:
    """H380, G8: the tombstone ends the matter; and a list that is closed has no decisions."""
    stand, (decider, decided, other, *_) = crowd()
    hear(stand, decider, decided)
    hear(stand, decider, other)
    stand.ring.list.announce(decided.id, Tombstone(certain=True, gen=1, reason="failed"))
    assert list(stand.ring.news._decided) == [other.id]
    stand.ring.depart("test")
    assert not stand.ring.news._decided


def test_deciders_of_one_member_are_limited() -> None:
    """F17: at most 2 k members monitor one; the words of more are not counted."""
    stand, (_, decided, *_) = crowd()
    for number in range(2 * DECIDERS_MAX):
        hear(stand, peer(f"x{number}", number), decided)
    assert len(stand.ring.news._decided[decided.id]) == DECIDERS_MAX


def test_without_the_rule_a_living_member_stays_decided() -> None:
    """H380: what is seen with the rule switched off."""
    stand, (decider, decided, *_) = crowd(rules=Rules(void=False))
    hear(stand, decider, decided)
    leaves(stand, decider)
    stand.live(2 * KEEP)
    assert status(stand, decided) is MemberStatus.DECIDED
