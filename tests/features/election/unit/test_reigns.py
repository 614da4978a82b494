"""Reigns: which is larger, who hears of it, and what a lie about one costs.

Spec: election 5.7, D5, D6, D22; decisions H394, H397, H399, H401; H87.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from holdfast.bounds import CLOCK_MIN
from holdfast.events import ConfigMismatch, LeaderChanged
from holdfast.features.election.protocol.config import AHEAD_MAX
from holdfast.features.election.protocol.facts import RankViolation, SteppedDown, TermConflict
from holdfast.features.election.protocol.manner import Manner, manner
from holdfast.features.election.protocol.messages import Leader, LeaderAck, NotifyLeader, Query
from holdfast.features.election.protocol.reigns import Row, _larger
from holdfast.features.election.protocol.rules import Rules
from holdfast.features.election.protocol.shown import Role
from holdfast.host import NodeId
from tests.features.election.stand import BASE, HYBRID, NAME, Stand, Town, life, ranked_names

NODES = ranked_names(6)
TERM = 1_700_000_000_500
MEMBERS, SEATS = manner("hybrid", "members"), manner("hybrid", "seats")


def stand(at: int = 0, made: Manner = HYBRID, **changes: Any) -> Stand:
    others = [name for index, name in enumerate(NODES) if index != at]
    found = Stand(*others, me=NODES[at], made=made, **changes).stand()
    found.machine._core.contests[NAME].voter = made.by_members
    return found.quiet()


def leads(found: Stand, who: int, term: int, *, active: bool = True, source: int | None = None, made: Manner | None = None) -> None:
    message = Leader(NAME, found.manner if made is None else made, term, life(NODES[who]), active)
    found.hear(NODES[who if source is None else source], message)


def known(found: Stand) -> tuple[int, int] | None:
    state = found.machine.state(NAME)
    assert state is not None
    return None if state.active is None else (state.active[0], NODES.index(state.active[1].name))


def row(term: int, who: str, boot: int = 1, *, over: bool = False) -> bytes:
    import msgspec

    return msgspec.msgpack.encode(Row(NAME, HYBRID, term, who, boot, over))


def test_the_table_is_a_join() -> None:
    """Section 2: larger (term, then better rank, then over): any order of any of them ends in one row."""
    rows = [row(5, NODES[0]), row(5, NODES[1]), row(5, NODES[0], over=True), row(5, NODES[0], 2), row(4, NODES[0], over=True)]
    ends = set()
    for order in permutations(rows):
        kept = order[0]
        for each in order[1:]:
            kept = _larger(kept, each)
        ends.add(kept)
    assert ends == {row(5, NODES[0], 2)}
    assert _larger(row(5, NODES[1], over=True), row(5, NODES[0])) == row(5, NODES[0])


def test_without_voters_the_pair_orders() -> None:
    """D22: the larger term, then the better hash, on LEADER as in the table."""
    found = stand(5)
    leads(found, 3, TERM)
    assert known(found) == (TERM, 3)
    leads(found, 4, TERM)
    assert known(found) == (TERM, 3)
    leads(found, 2, TERM)
    assert known(found) == (TERM, 2)
    leads(found, 4, TERM + 1)
    assert known(found) == (TERM + 1, 4)


def test_with_voters_the_term_alone_orders() -> None:
    """5.7: fencing on: by term; of one term the first that is known stays."""
    found = stand(5, SEATS)
    leads(found, 3, TERM)
    leads(found, 2, TERM)
    assert known(found) == (TERM, 3)


@pytest.mark.parametrize("pairs", [True, False])
def test_two_leaders_of_one_term(pairs: bool) -> None:
    """D22: both sides of a partition took one number. Ordered by terms alone both go on for ever."""
    town = Town(2, made=BASE, rules=Rules(pairs=pairs, clock_terms=False))
    first, second = town.names
    for one, other in ((first, second), (second, first)):
        town.lists[one].lose(other)
    cut = True
    town.lost = lambda source, target, message: cut
    town.stand()
    town.run_until(lambda: len(town.leaders()) == 2)
    assert len({town.elections[name].highest(NAME) for name in town.names}) == 1
    cut = False
    for one, other in ((first, second), (second, first)):
        town.lists[one].find(other)
    town.run(5.0)
    assert town.leaders() == ([first] if pairs else [first, second])
    assert town.clients[second].lost == (["superseded"] if pairs else [])


@pytest.mark.parametrize("made", [HYBRID, SEATS], ids=["none", "seats"])
def test_a_smaller_reign_is_answered_with_the_larger(made: Manner) -> None:
    """5.7: an active LEADER may be passed on by any member; its sender learns."""
    found = stand(5, made)
    leads(found, 2, TERM)
    found.quiet()
    leads(found, 3, TERM - 1)
    assert [(to, message.leader, message.term) for to, message in found.host.take(Leader)] == [(life(NODES[3]), life(NODES[2]), TERM)]


def test_a_leader_hears_of_a_larger_reign_that_is_over() -> None:
    """H402: otherwise each election names it again, and it answers with a term that no other member takes."""
    found = stand(5)
    found.exchange.table("elected").learn([_row_of(TERM, NODES[2], over=True)])
    found.quiet()
    leads(found, 3, TERM - 1)
    assert [(to, message.leader, message.term) for to, message in found.host.take(Leader)] == [(life(NODES[3]), life(NODES[2]), TERM)]
    leader = stand(3)
    leader.hear(NODES[0], NotifyLeader(NAME, leader.manner, 1, TERM - 1, True))
    assert leader.machine.is_leader(NAME)
    leads(leader, 2, TERM, source=5)
    assert not leader.machine.is_leader(NAME)
    assert leader.machine.counts["asked_leader"] == 1


@pytest.mark.parametrize("made", [MEMBERS, SEATS], ids=["members", "seats"])
def test_a_leader_hears_of_another_one_of_its_term(made: Manner) -> None:
    """H446, 5.9: with voters two leaders of one term cannot be ordered: the one that says that it leads hears of the other one, gives up,
    and the next term is higher. Another member that passes it on is not answered, or two would answer each other for ever."""
    found = stand(1, made)
    leads(found, 0, TERM)
    found.quiet()
    leads(found, 2, TERM, source=3)
    assert found.host.take(Leader) == []
    leads(found, 2, TERM)
    assert [(to, message.leader, message.term) for to, message in found.host.take(Leader)] == [(life(NODES[2]), life(NODES[0]), TERM)]
    assert known(found) == (TERM, 0)


def test_a_tentative_leader_speaks_for_itself() -> None:
    """5.7: a tentative LEADER only by its leader."""
    found = stand(5)
    leads(found, 2, TERM, active=False, source=3)
    assert found.machine.leader(NAME) is None
    leads(found, 2, TERM, active=False)
    reign = found.machine.leader(NAME)
    assert reign is not None
    assert (reign.leader, reign.active) == (life(NODES[2]), False)


@pytest.mark.parametrize("terms", [True, False])
def test_reordered_leaders_end_alike(terms: bool) -> None:
    """D5: two nominees of one election multicast, and members hear them in other orders. If each LEADER overwrites, they disagree."""
    known_last = set()
    for order in ((2, 3), (3, 2)):
        found = stand(5, rules=Rules(nomination_terms=terms))
        for who in order:
            leads(found, who, TERM + who)
        known_last.add(known(found))
    assert len(known_last) == (1 if terms else 2)


def lead(found: Stand, term: int = TERM) -> Stand:
    found.hear(NODES[4], NotifyLeader(NAME, found.manner, 1, term, final=True))
    if found.manner.by_members:
        for index in (1, 2, 3):
            found.hear(NODES[index], LeaderAck(NAME, found.manner, term, ok=True, promised=term, known=6))
    assert found.role() is Role.ACTIVE
    return found.quiet()


def test_a_leader_yields_to_a_larger_reign() -> None:
    """5.9: at once, and never again under that term."""
    found = lead(stand(1))
    leads(found, 3, TERM)
    assert found.role() is Role.ACTIVE
    leads(found, 0, TERM)
    assert (found.role(), found.client.lost) == (Role.FOLLOWER, ["superseded"])
    assert [(fact.term, fact.why) for fact in found.facts(SteppedDown)] == [(TERM, "superseded")]  # type: ignore[attr-defined]


def test_without_voters_a_nominee_deposes_no_leader() -> None:
    """H399: a tentative LEADER proves nothing; with voters its term was promised."""
    found = lead(stand(1))
    leads(found, 0, TERM + 5, active=False)
    assert found.role() is Role.ACTIVE
    voters = lead(stand(0, MEMBERS))
    leads(voters, 1, TERM + 5, active=False)
    assert voters.role() is Role.FOLLOWER


def test_a_nominee_yields_to_a_larger_one() -> None:
    """5.7: TENTATIVE, and another is named under a larger term."""
    found = stand(1)
    found.hear(NODES[4], NotifyLeader(NAME, HYBRID, 1, TERM, final=False))
    leads(found, 3, TERM - 1, active=False)
    assert found.role() is Role.TENTATIVE
    leads(found, 3, TERM + 1, active=False)
    assert found.role() is Role.FOLLOWER


def test_two_reigns_of_one_term_with_voters_conflict() -> None:
    """5.9: possible only if an assumption broke: TermConflict, step down, and the next term is higher."""
    found = lead(stand(0, MEMBERS))
    leads(found, 3, TERM)
    assert [(fact.term, fact.other) for fact in found.facts(TermConflict)] == [(TERM, life(NODES[3]))]  # type: ignore[attr-defined]
    assert (found.role(), found.client.lost) == (Role.FOLLOWER, ["conflict"])


def test_users_hear_who_leads() -> None:
    """Section 9: LeaderChanged for reigns that were adopted; None when the list drops the leader; again when it is back (D12)."""
    found = stand(5)
    leads(found, 2, TERM, active=False)
    assert found.host.events(LeaderChanged) == []
    leads(found, 2, TERM)
    found.lists.lose(NODES[2])
    found.lists.find(NODES[2])
    told = [(event.leader, event.token) for event in found.host.events(LeaderChanged)]
    assert told == [(life(NODES[2]), TERM), (None, TERM), (life(NODES[2]), TERM)]


def test_a_better_one_sees_the_violation() -> None:
    """D6: only it can; c doubles for one window. With ``preempt`` it initiates; without the rule nothing is seen."""
    found = stand(0, c=None, f=None)
    before = found.machine.state(NAME).c  # type: ignore[union-attr]
    leads(found, 3, TERM)
    assert [(fact.leader, fact.term) for fact in found.facts(RankViolation)] == [(life(NODES[3]), TERM)]  # type: ignore[attr-defined]
    assert found.machine.state(NAME).c == 2 * before  # type: ignore[union-attr]
    found.host.pass_time(601.0)
    assert found.machine.state(NAME).c == before  # type: ignore[union-attr]
    assert found.host.take(Query) == []
    assert not lead_violation(Rules(violations=False)).facts(RankViolation)
    assert lead_violation(Rules(), preempt=True).host.take(Query)


def lead_violation(rules: Rules, **changes: Any) -> Stand:
    found = stand(0, rules=rules, **changes)
    leads(found, 3, TERM)
    return found


@pytest.mark.parametrize("why", ["worse", "young", "sick", "unhealthy", "incumbent", "stands not"])
def test_what_is_no_violation(why: str) -> None:
    """5.7: eligible, settled for more than a bucket, not excluded by health, better than the leader, which did not lead already."""
    found = stand(4 if why == "worse" else 0)
    if why == "young":
        found.lists.observed = 20.0
    elif why == "sick":
        found.lists.sick = True
    elif why == "unhealthy":
        found.lists.health[NODES[0]] = 1.0
    elif why == "stands not":
        found.machine.withdraw(NAME)
    leads(found, 3, TERM)
    if why == "incumbent":
        found.quiet()
        leads(found, 3, TERM + 5)
    assert found.facts(RankViolation) == []


def test_a_leader_tells_who_comes() -> None:
    """H394: a newcomer, or the other side of a partition."""
    found = lead(stand(0))
    found.lists.lose(NODES[3])
    found.lists.find(NODES[3])
    found.host.pass_time(0.0)
    assert [(to, message.active) for to, message in found.host.take(Leader)] == [(life(NODES[3]), True)]


@pytest.mark.parametrize("made", [HYBRID, MEMBERS, SEATS], ids=["none", "members", "seats"])
@pytest.mark.parametrize("role", ["follower", "leader"])
def test_a_reign_that_never_was_is_denied(made: Manner, role: str) -> None:
    """H401: a member is told that this one leads under a term that it has not: it writes that reign over, and gives up a smaller one."""
    found = stand(0, made)
    if role == "leader" and not made.by_seats:
        lead(found)
    leads(found, 0, TERM + 77, source=3)
    state = found.machine.state(NAME)
    assert state is not None
    assert state.active == (TERM + 77, life(NODES[0]), True)
    assert found.role() is Role.FOLLOWER


def test_a_reign_told_by_another_is_passed_on_to_its_leader() -> None:
    """H401: so that it can deny it."""
    found = stand(5)
    leads(found, 2, TERM, source=3)
    assert [to for to, _ in found.host.take(Leader)] == [life(NODES[2])]
    leads(found, 1, TERM + 1)
    assert found.host.take(Leader) == []


def test_a_former_wish_is_corrected() -> None:
    """5.7: a row of my own name that says ACTIVE for a life that is me and that I do not lead (a restored table): I write it over."""
    found = stand(0)
    found.exchange.table("elected").learn([_row_of(TERM, NODES[0])])
    found.host.pass_time(0.0)
    assert known(found) == (TERM, 0)
    assert found.machine.leader(NAME) is None
    assert found.exchange.table("elected").is_gone(NAME)


def _row_of(term: int, who: str, name: str = NAME, made: Manner = HYBRID, *, over: bool = False):  # type: ignore[no-untyped-def]
    import msgspec

    from holdfast.kit.rows import Row as KitRow

    return KitRow(name, msgspec.msgpack.encode(Row(name, made, term, who, 1, over)), 0.0)


def test_a_term_far_ahead_is_refused_everywhere() -> None:
    """H87: 2^40 ms beyond the clock: LEADER, NOTIFYLEADER, a row, an answer."""
    far = max(CLOCK_MIN, 1_700_000_000_000) + AHEAD_MAX + 1
    found = stand(5)
    leads(found, 2, far)
    found.hear(NODES[2], NotifyLeader(NAME, HYBRID, 1, far, final=True))
    found.exchange.table("elected").learn([_row_of(far, NODES[2])])
    found.begin()
    found.answer(NODES[1], [NODES[0]], term=far)
    assert known(found) is None
    assert found.role() is Role.FOLLOWER
    assert found.machine.counts["far_ahead"] == 3
    assert found.machine.highest(NAME) < far
    assert len(found.machine.last(NAME).answers) == 1  # type: ignore[union-attr]


def test_a_larger_reign_counts_however_it_was_elected() -> None:
    """One name has one leader: a member that does not stand for it turns to the manner of the larger reign; one that does is told so, and
    does not take the smaller reign for the newest."""
    idle = Stand(*NODES[1:], me=NODES[0])
    leads(idle, 2, TERM)
    leads(idle, 3, TERM + 5, made=BASE)
    assert idle.machine.manner(NAME) == BASE
    assert idle.machine.leader(NAME).leader == life(NODES[3])  # type: ignore[union-attr]
    stands = stand(0)
    leads(stands, 2, TERM)
    leads(stands, 3, TERM + 5, made=BASE)
    assert known(stands) == (TERM + 5, 3)
    assert stands.machine.manner(NAME) == HYBRID
    assert stands.host.events(ConfigMismatch)


def test_a_row_under_another_key_is_no_reign() -> None:
    """A peer's mistake is counted."""
    from holdfast.kit.rows import Row as KitRow

    found = stand(0)
    found.exchange.table("elected").learn([KitRow("other", row(TERM, NODES[2]), 0.0)])
    assert found.machine.counts["misplaced"] == 1
    assert found.machine.leader("other") is None


def test_a_new_life_of_the_leader_is_another_one() -> None:
    """5.8: the list has another life of its name: the leader is gone."""
    found = stand(5)
    leads(found, 2, TERM)
    found.rows.add(NodeId(NODES[2], 2))
    found.lists.updated(NODES[2])
    found.host.pass_time(1.1)
    assert found.machine.leader(NAME) is None


def test_a_reign_that_is_over_is_not_led_again() -> None:
    """H401: a lie made this member write a term over; an initiator that does not know it names it under that term: it refuses."""
    found = stand(0)
    leads(found, 0, TERM, source=3)
    found.hear(NODES[4], NotifyLeader(NAME, HYBRID, 1, TERM, final=True))
    assert found.role() is Role.FOLLOWER
    found.hear(NODES[4], NotifyLeader(NAME, HYBRID, 1, TERM + 1, final=True))
    assert found.role() is Role.ACTIVE


def test_an_over_that_another_wrote_ends_the_reign() -> None:
    """The table cannot take it back, so all others hold the reign to be over: its client must hear so, too."""
    found = lead(stand(0))
    found.exchange.table("elected").learn([_row_of(TERM, NODES[0], over=True)])
    assert (found.role(), found.client.lost) == (Role.FOLLOWER, ["superseded"])


def test_the_leader_is_asked_until_it_answers() -> None:
    """H401: with every tick, because a datagram may be lost; its own word ends it. The table may be the one that told it."""
    found = stand(5)
    found.exchange.table("elected").learn([_row_of(TERM, NODES[2])])
    for _ in range(3):
        found.host.pass_time(1.0)
        assert [to for to, _ in found.host.take(Leader)] == [life(NODES[2])]
    leads(found, 2, TERM)
    found.host.pass_time(3.0)
    assert found.host.take(Leader) == []


def test_a_leader_that_is_asked_answers() -> None:
    """H401: with its own word, to the one that asked."""
    found = lead(stand(0))
    leads(found, 0, TERM, source=3)
    assert [(to, message.leader) for to, message in found.host.take(Leader)] == [(life(NODES[3]), life(NODES[0]))]
    assert found.role() is Role.ACTIVE


def test_reigns_of_two_manners_are_ordered_as_in_the_table() -> None:
    """D22: of one term the better hash, also where the name was elected otherwise before; or a member would keep what the table has not."""
    found = Stand(*NODES[:5], me=NODES[5])
    leads(found, 3, TERM)
    found.exchange.table("elected").learn([_row_of(TERM, NODES[3], over=True)])
    leads(found, 2, TERM, made=BASE)
    reign = found.machine.leader(NAME)
    assert reign is not None
    assert (reign.leader, reign.manner) == (life(NODES[2]), BASE)
    leads(found, 4, TERM, made=HYBRID)
    assert found.machine.leader(NAME) == reign


def test_a_name_that_was_forgotten_is_recalled_from_the_table() -> None:
    """Section 2: an idle name makes room; when it is met again, the table says who leads it."""
    found = Stand(*NODES[:5], me=NODES[5])
    found.exchange.table("elected").learn([_row_of(TERM, NODES[2])])
    del found.machine._core.contests[NAME]
    found.hear(NODES[1], Query(NAME, HYBRID, 1, 1, 0, 0))
    reign = found.machine.leader(NAME)
    assert reign is not None
    assert (reign.leader, reign.token) == (life(NODES[2]), TERM)


def test_a_leader_yields_to_a_larger_reign_of_another_manner() -> None:
    """One name has one leader: its client hears ``lost``, and it does not lead on beside the other."""
    found = lead(stand(0))
    leads(found, 3, TERM - 1, made=BASE)
    assert found.role() is Role.ACTIVE
    leads(found, 3, TERM + 1, made=BASE)
    assert (found.role(), found.client.lost) == (Role.FOLLOWER, ["superseded"])
    assert found.machine.manner(NAME) == HYBRID


def test_another_manner_makes_no_far_term_credible() -> None:
    """H87, F1: what is refused of the own manner is refused of another."""
    found = stand(5)
    leads(found, 2, CLOCK_MIN + (1 << 41), made=BASE)
    found.hear("p", Leader(NAME, BASE, TERM, NodeId("", 1), active=True))
    assert known(found) is None


def test_with_voters_another_manner_needs_a_higher_term() -> None:
    """E2: of one term the reign that is known stays, whatever another manner says of it."""
    found = stand(5, SEATS)
    leads(found, 3, TERM)
    leads(found, 2, TERM, made=HYBRID)
    assert known(found) == (TERM, 3)
    leads(found, 2, TERM + 1, made=HYBRID)
    assert known(found) == (TERM + 1, 2)
