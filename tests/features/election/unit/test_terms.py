"""Mode ``seats``: a majority of slots promises each term to one life.  Spec: election 1, 5.3, 5.6, 5.9, A2; decision H392; foundation 4."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import Unavailable
from holdfast.features.election.protocol.facts import Elected, SteppedDown
from holdfast.features.election.protocol.manner import manner
from holdfast.features.election.protocol.messages import AskTerm, Leader, LeaderAck, NotifyLeader, Query, TermWord
from holdfast.features.election.protocol.rules import Rules
from holdfast.features.election.protocol.shown import Role
from holdfast.features.election.protocol.terms import LENGTH
from holdfast.host import Address, NodeId
from holdfast.kit.seats import SeatHello, SeatHere
from tests.features.election.stand import NAME, TIMEOUT, Stand, Town, life, ranked_names

NODES = ranked_names(5)
TERM = 1_700_000_000_500
SEATS = manner("hybrid", "seats")


def stand(**changes: Any) -> Stand:
    """Slots 0 and 1 are others'; slot 2 is this one's, which is not open yet."""
    found = Stand(*NODES[1:], me=NODES[0], made=SEATS, **changes).stand()
    assert found.seats is not None
    found.seats.start()
    for slot, name in enumerate(NODES[1:3]):
        found.seats.on_message(life(name), SeatHere(0, slot, met=False, state=3))
    return found.quiet()


def notify(found: Stand, term: int = TERM, *, final: bool = True) -> None:
    found.hear(NODES[4], NotifyLeader(NAME, SEATS, 1, term, final))


def asks(found: Stand) -> list[tuple[Address, AskTerm]]:
    return [(to, message) for to, message in found.host.take(AskTerm) if isinstance(to, Address)]


def word(found: Stand, slot: int, ask: AskTerm, *, granted: bool = True, number: int = 0, wait: float = 0.0, source: str = "") -> None:
    answer = TermWord(NAME, SEATS, ask.serial, slot, granted, number or ask.term, wait, 0)
    found.hear(source or NODES[1 + slot], answer)


def test_seats_are_asked_when_the_initiator_has_finished() -> None:
    """H392: not for a nominee that may be replaced; two messages per slot; the length is the shortest."""
    found = stand()
    notify(found, final=False)
    assert asks(found) == []
    notify(found)
    asked = asks(found)
    assert [to.host for to, _ in asked] == NODES[1:3]
    assert {(message.term, message.length) for _, message in asked} == {(TERM, LENGTH)}
    assert found.host.take(LeaderAck) == []


def test_a_majority_of_slots_makes_a_term() -> None:
    """5.6: two of three; each slot counts once, and only by the one that sits there."""
    found = stand()
    notify(found)
    ask = asks(found)[0][1]
    word(found, 0, ask)
    word(found, 0, ask)
    word(found, 1, ask, source=NODES[3])
    assert found.role() is Role.TENTATIVE
    word(found, 1, ask)
    assert found.role() is Role.ACTIVE
    assert found.client.granted == [TERM]
    assert [(message.term, message.active) for _, message in found.host.take(Leader)][-1] == (TERM, True)


def test_a_term_that_is_taken_is_given_up() -> None:
    """5.6: two refusals: no majority can come; the higher number is what the next election goes beyond."""
    found = stand()
    notify(found)
    ask = asks(found)[0][1]
    word(found, 0, ask, granted=False, number=TERM + 40)
    word(found, 1, ask, granted=False, number=TERM + 90)
    assert found.role() is Role.FOLLOWER
    assert [(fact.term, fact.why) for fact in found.facts(SteppedDown)] == [(TERM, "refused")]  # type: ignore[attr-defined]
    assert found.machine.highest(NAME) == TERM + 90


def test_a_seat_that_waits_is_asked_again() -> None:
    """F13: after its restart a seat promises nothing for a while; that is no refusal."""
    found = stand()
    notify(found)
    ask = asks(found)[0][1]
    for slot in (0, 1):
        word(found, slot, ask, granted=False, number=1, wait=0.4)
    found.host.pass_time(TIMEOUT + 0.01)
    assert len(asks(found)) == 2
    for slot in (0, 1):
        word(found, slot, ask)
    assert found.role() is Role.ACTIVE


def test_silent_seats_end_with_the_candidacy() -> None:
    """5.6: candidacy_ttl."""
    found = stand()
    notify(found)
    found.host.pass_time(6 * TIMEOUT + 0.01)
    assert found.role() is Role.FOLLOWER
    found.host.take(AskTerm)
    found.host.pass_time(TIMEOUT)
    assert asks(found) == []


def test_no_election_without_seats_that_were_heard() -> None:
    """5.3: a majority of the slots within the last 2 TIMEOUT; else they are greeted, and looked at again, then the watch."""
    found = stand(rules=Rules(watch=False))
    found.host.pass_time(2 * TIMEOUT + 0.01)
    found.quiet()
    contest = found.machine._core.contests[NAME]
    assert not found.machine._initiator.begin(contest, "watch")
    assert found.host.take(SeatHello)
    assert found.host.take(Query) == []
    assert found.seats is not None
    found.seats.on_message(life(NODES[1]), SeatHere(0, 0, met=False, state=3))
    found.host.pass_time(TIMEOUT)
    assert found.host.take(Query)


def test_a_restart_that_waits_for_seats_keeps_x_and_y() -> None:
    """E11: restarts within one election are at most y, also if the seats were not heard in between."""
    found = stand(x=2, y=3, rules=Rules(watch=False))
    found.host.pass_time(2 * TIMEOUT + 0.01)
    contest = found.machine._core.contests[NAME]
    assert not found.machine._initiator.begin(contest, "empty", x=4, y=1)
    assert found.seats is not None
    found.seats.on_message(life(NODES[1]), SeatHere(0, 0, met=False, state=3))
    found.quiet()
    found.host.pass_time(TIMEOUT)
    assert {(query.x, query.y) for _, query in found.host.take(Query)} == {(4, 1)}


def test_a_seat_promises_each_term_once() -> None:
    """A2: by ``kit.promise``: one holder per number, nothing below it; the same one again is granted again."""
    town = Town(3, made=SEATS)
    town.run(3.0)
    seat = town.names[0]
    said: list[tuple[bool, int]] = []

    def ask(who: str, term: int) -> None:
        town.elections[seat].on_message(town.hosts[who].me, AskTerm(NAME, SEATS, len(said), term, LENGTH))
        said.extend((message.granted, message.number) for _, message in town.hosts[seat].take(TermWord))

    for who, term in ((1, TERM), (1, TERM), (2, TERM), (2, TERM - 1), (2, TERM + 1), (1, TERM + 1)):
        town.run(0.02)
        ask(town.names[who], term)
    assert said == [(True, TERM), (True, TERM), (False, TERM), (False, TERM), (True, TERM + 1), (False, TERM + 1)]


def test_a_seat_takes_no_term_far_ahead() -> None:
    """H87: it would use up a name for ever."""
    town = Town(3, made=SEATS)
    town.run(3.0)
    seat = town.names[0]
    town.elections[seat].on_message(life("liar"), AskTerm(NAME, SEATS, 1, (1 << 53) - 1, LENGTH))
    assert town.hosts[seat].take(TermWord) == []
    assert town.elections[seat].counts["far_ahead"] == 1


def test_who_is_no_seat_says_nothing() -> None:
    """Counted."""
    town = Town(5, made=SEATS)
    outsider = town.names[4]
    town.elections[outsider].on_message(life("x"), AskTerm(NAME, SEATS, 1, TERM, LENGTH))
    assert town.elections[outsider].counts["not_a_seat"] == 1


def test_seats_survive_restarts_of_all() -> None:
    """A2: seats keep what they promised: after a restart of all three with their disks terms go on growing, and none has two leaders."""
    town = Town(3, made=SEATS).stand()
    town.run_until(town.agreed)
    tokens = [town.clients[town.leaders()[0]].token]
    for name in town.names:
        town.crash(name)
    for name in town.names:
        town.restart(name, keep=True)
    town.stand()
    town.run_until(town.agreed)
    tokens.append(town.clients[town.leaders()[0]].token)
    assert tokens == sorted(set(tokens))


def test_a_leader_cut_off_from_the_seats_steps_down() -> None:
    """5.9: two ticks with fewer than W seats heard: no support; the other side elects."""
    town = Town(5, made=SEATS).stand()
    town.run_until(town.agreed)
    leader = town.leaders()[0]
    town.lost = lambda source, target, message: leader in (source, target)
    town.detect(leader)
    town.run_until(lambda: len(town.leaders()) == 1 and town.leaders() != [leader], 40.0)
    town.run(20.0)
    assert town.clients[leader].lost == ["no support"]
    facts = [fact for name in town.names for fact in town.hosts[name].events(Elected)]
    assert len({(fact.term) for fact in facts}) == len(facts)


def test_a_word_from_a_stranger_is_dropped() -> None:
    """F12: whose answer it is says the slot; the address and the sender's word prove nothing."""
    found = stand()
    notify(found)
    ask = asks(found)[0][1]
    for slot in (0, 1):
        found.machine.on_message(NodeId("stranger", 1), TermWord(NAME, SEATS, ask.serial, slot, True, TERM, 0.0, 0))
    assert found.role() is Role.TENTATIVE
    assert found.machine.counts["malformed"] == 2


def active() -> Stand:
    found = stand(hold=60.0)
    notify(found)
    ask = asks(found)[0][1]
    for slot in (0, 1):
        word(found, slot, ask)
    assert found.role() is Role.ACTIVE
    return found


def test_after_a_pause_the_seats_are_asked_again() -> None:
    """5.9: the same term, of the same holder: granted again, unless a higher one was promised meanwhile."""
    found = active()
    found.host.pause(3.5)
    assert found.role() is Role.TENTATIVE
    ask = asks(found)[0][1]
    assert ask.term == TERM
    for slot in (0, 1):
        word(found, slot, ask)
    assert (found.role(), found.client.lost) == (Role.ACTIVE, [])
    found.host.pause(3.5)
    ask = asks(found)[0][1]
    for slot in (0, 1):
        word(found, slot, ask, granted=False, number=TERM + 5)
    assert (found.role(), found.client.lost) == (Role.FOLLOWER, ["unsure"])


def test_elect_says_that_it_cannot() -> None:
    """Section 10: Unavailable; in mode ``seats`` it asks them first, in mode ``members`` it sees that too few are listed."""
    made = manner("hybrid", "members")
    found = Stand(*NODES[1:], me=NODES[0], made=made).stand()
    found.machine._core.contests[NAME].voter = True
    for name in NODES[2:]:
        found.lists.lose(name)
    with pytest.raises(Unavailable, match="too few of those that must agree"):
        found.machine.elect(NAME)
    seats = stand(rules=Rules(watch=False))
    seats.host.pass_time(1.0)
    seats.machine.elect(NAME)
    assert seats.host.take(SeatHello)
