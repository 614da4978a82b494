"""cjoin, the queue, hand-over and cleave.  Spec: tickets 5.5, 5.8, G3, G7; D8 to D10, D12, D13, D17, D18, D26; paper 001, 3.1."""

from __future__ import annotations

import pytest

from holdfast.errors import ConfigError, HoldLost
from holdfast.features.tickets.protocol.candidate import Candidate
from holdfast.features.tickets.protocol.facts import AnchorTaken, ArcChanged, HandedOver, TicketAcquired
from holdfast.features.tickets.protocol.messages import Accept, Accepted, AckCjoin, Cancel, Cjoin, Cleave, Queued, Reject
from holdfast.features.tickets.protocol.reasons import Full, Mismatch, SeatsSilent
from holdfast.features.tickets.protocol.values import ANCHOR, Key, Status
from tests.features.tickets.stand import CONFIG, POOL, Asker, Stand

LEASE, POLL = CONFIG.lease, CONFIG.poll


def numbers(*users: Asker) -> list[int]:
    return sorted(user.number for user in users if user.acting)


def arcs(stand: Stand) -> dict[int, tuple[int, ...]]:
    """S_p of every owner, by its ticket."""
    return {each.head: each.tickets for name in stand.names for each in stand.coordinators(name) if each.valid}


def test_first_coordinator_founds_the_pool() -> None:
    """D10, D21: the empty anchor is taken over; ticket 0, all others coordinated, tokens from wall-clock ms."""
    stand = Stand("abcd", seats=3)
    user = stand.acquire("d", 4, run=0.2)
    assert (user.number, arcs(stand)) == (0, {0: (0, 3, 2, 1)})
    assert user.token == 1_700_000_000_001


@pytest.mark.parametrize("seats", [1, 3, 5])
def test_fleets_of_any_size(seats: int) -> None:
    """D9: one seat, three, five; the holder may be a seat itself."""
    stand = Stand("abcde", seats=seats)
    assert stand.acquire("a", 1, run=0.5).acting


def test_split_halves_the_arc() -> None:
    """5.5 split, Lemma 3.1: the newcomer gets the lower half, and every ticket is in exactly one arc."""
    stand = Stand("abcd", seats=3)
    users = [stand.acquire(name, 8, run=0.5) for name in "abcd"]
    assert numbers(*users) == sorted(user.number for user in users)
    covered = [ticket for tickets in arcs(stand).values() for ticket in tickets]
    assert sorted(covered) == list(range(8))


def test_candidate_hears_after_the_split_is_chosen() -> None:
    """5.5: child cell at its majority first, then the own cell, then ACKCJOIN; while that is in flight the arc is given up already."""
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 4, run=0.5)
    parent = stand.coordinators("d")[0]
    stand.hold = lambda source, target, message: source == "d" and isinstance(message, Accept) and message.key.rid == ANCHOR
    child = stand.acquire("a", 4, run=0.3)
    assert numbers(child) == []
    assert stand.count(AckCjoin) == 0
    assert len(parent.tickets) == 2
    written = [key for key in stand.tickets["b"].guardian.cells if key.rid != ANCHOR]
    assert len(written) == 1
    stand.hold = lambda source, target, message: False
    stand.release_held()
    stand.run(0.1)
    assert child.acting
    assert set(parent.tickets).isdisjoint(arcs(stand)[child.number])


def test_failed_split_changes_nothing() -> None:
    """5.5 (1): a child cell that its guardians do not take is given up; the candidate asks again."""
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 4, run=0.5)
    stand.lose = lambda source, target, message: isinstance(message, Accept) and message.key.rid != ANCHOR
    child = stand.acquire("a", 4, run=CONFIG.phase_timeout + 0.2)
    assert arcs(stand) == {0: (0, 3, 2, 1)}
    stand.lose = lambda source, target, message: False
    stand.run(2 * POLL)
    assert child.acting


def test_operations_are_served_in_order() -> None:
    """D17, paper 3.1: one at a time; three candidates at once get three different tickets."""
    stand = Stand("abcd", seats=3)
    first = stand.acquire("d", 8, run=0.5)
    others = [stand.acquire(name, 8) for name in "abc"]
    stand.run(2 * POLL)
    assert len(numbers(first, *others)) == 4
    assert len(set(numbers(first, *others))) == 4


def test_repeated_cjoin_gets_the_same_answer() -> None:
    """D18: ACKCJOIN is lost, the candidate asks again, and no second ticket is split off."""
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 4, run=0.5)
    stand.lose = lambda source, target, message: isinstance(message, AckCjoin)
    child = stand.acquire("a", 4, run=0.5)
    assert numbers(child) == []
    stand.lose = lambda source, target, message: False
    stand.run(POLL)
    assert child.acting
    assert len(arcs(stand)) == 2


def test_repeated_ack_is_acted_on_once() -> None:
    """D18: an ACKCJOIN that comes again after its ticket was given back does not take it a second time."""
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 4, run=0.5)
    child = stand.acquire("a", 4, run=0.5)
    acks = [(*item, 1) for item in stand.sent if isinstance(item[2], AckCjoin)]
    child.release()
    stand.run(0.5)
    acquired = len(stand.events(TicketAcquired))
    stand.held = acks
    stand.release_held()
    stand.run(0.5)
    assert len(stand.events(TicketAcquired)) == acquired
    assert stand.tickets["a"].counts["old_grant"] == 1


def test_ack_of_a_former_life_is_dropped() -> None:
    """D18: the lease id is of another boot; the restarted agent does not "return" what it never had."""
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 4, run=0.5)
    stand.acquire("a", 4, run=0.5)
    acks = [(*item, 2) for item in stand.sent if isinstance(item[2], AckCjoin)]
    stand.crash("a")
    stand.restart("a")
    stand.held = acks
    stand.release_held()
    assert stand.tickets["a"].counts["old_grant"] == 1
    assert stand.coordinators("a") == []


def test_full_pool_queues_in_order() -> None:
    """G7: QUEUED with the position, served in order of arrival, the whole queue travels with the cell."""
    stand = Stand("abcd", seats=3)
    holder = stand.acquire("d", 1, run=0.5)
    first, second, third = (stand.acquire(name, 1, run=0.3) for name in "abc")
    stand.run(POLL)
    assert (first.queued[-1], second.queued[-1], third.queued[-1]) == (1, 2, 3)
    for user, after in ((holder, first), (first, second), (second, third)):
        user.release()
        stand.run(0.05)
        assert after.acting
        assert after.token > user.token
    assert len(stand.events(HandedOver)) == 3


def test_handover_takes_three_messages_in_a_row() -> None:
    """5.8, E11, H113: ACCEPT of the final write, ACCEPTED, ACKCJOIN. Nothing waits for a timer, nor for a RENEW and its echo."""
    stand = Stand("abcd", seats=3)
    holder = stand.acquire("d", 1, run=0.5)
    waiter = stand.acquire("a", 1, run=POLL)
    stand.lose = lambda source, target, message: not isinstance(message, Accept | Accepted | AckCjoin)
    holder.release()
    stand.deliver()
    assert waiter.acting


def test_waiter_that_vanished_is_passed_over() -> None:
    """5.8: fresh waiters only; an entry lives three polls, and CANCEL ends it at once."""
    stand = Stand("abcd", seats=3)
    holder = stand.acquire("d", 1, run=0.5)
    silent, cancelled, waiter = (stand.acquire(name, 1, run=0.2) for name in "abc")
    assert cancelled.attempt is not None
    cancelled.attempt.cancel()
    stand.lose = lambda source, target, message: source == "a" and isinstance(message, Cjoin | Cancel)
    stand.run(CONFIG.waiter_ttl + POLL)
    holder.release()
    stand.run(0.1)
    assert waiter.acting
    assert not silent.acting
    assert stand.count(Cancel, "b") >= 1


def test_extra_grant_is_given_back() -> None:
    """D26: queued at several coordinators and granted by two at once; the second grant goes on to the next."""
    stand = Stand("abcde", seats=3)
    holders = [stand.acquire(name, 3, run=0.5) for name in "abc"]
    waiter = stand.acquire("d", 3, run=2 * POLL)
    assert waiter.queued
    stand.hold = lambda source, target, message: isinstance(message, AckCjoin | Cancel)
    for holder in holders[:2]:
        holder.release()
    stand.run(0.1)
    stand.hold = lambda source, target, message: False
    stand.release_held()
    stand.run(0.5)
    assert waiter.acting
    other = stand.acquire("e", 3, run=2 * POLL)
    assert other.acting
    assert stand.tickets["d"].counts["returned"] == 1


def test_cancelled_attempt_returns_a_late_grant() -> None:
    """9.3: a grant that comes after the user gave up goes back at once."""
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 4, run=0.5)
    stand.hold = lambda source, target, message: isinstance(message, AckCjoin)
    user = stand.acquire("a", 4, run=0.2)
    assert user.attempt is not None
    user.attempt.cancel()
    stand.hold = lambda source, target, message: False
    stand.release_held()
    stand.run(1.0)
    assert not user.acting
    assert arcs(stand) == {0: (0, 3, 2, 1)}


def test_grant_that_no_guardian_confirms_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """5.3: joining for more than 2D; the candidate goes on under a fresh lease id (D12). Without H113: as one who came with a cell."""
    monkeypatch.setattr(Candidate, "granted_at", lambda candidate, ack: {})
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 4, run=0.5)
    stand.lose = lambda source, target, message: source in "bc" and target == "a"
    user = stand.acquire("a", 4, run=LEASE)
    candidate = stand.tickets["a"].pool_table[POOL].candidates[0]
    lease = candidate._lease
    stand.run(2.5 * LEASE)
    assert candidate._lease != lease
    stand.lose = lambda source, target, message: False
    stand.run(3 * LEASE)
    assert user.acting


def test_other_number_of_tickets() -> None:
    """D10: the founder's n stands; others are told it, by the seats or by a coordinator."""
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 4, run=0.5)
    user = stand.acquire("a", 5, run=POLL)
    assert user.lost == [Mismatch(POOL, 5, 4)]
    assert user.lost[0].numbers == {"expected": 5, "actual": 4}
    assert "4 tickets" in str(user.lost[0])


@pytest.mark.parametrize("founders", ["ab", "abc", "abcd"])
def test_concurrent_founders(founders: str) -> None:
    """D10, D13: ballots order them, the first accepted value binds the rest, and soon everybody has a ticket."""
    stand = Stand("abcd", seats=3)
    users = [stand.acquire(name, 4) for name in founders]
    stand.run(3.0)
    assert len(set(numbers(*users))) == len(founders)


def test_unwilling_candidate_hears_full() -> None:
    """10: wait=False and every ticket is held."""
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 1, run=0.5)
    user = stand.acquire("a", 1, wait=False, run=5 * POLL)
    assert user.lost == [Full(POOL)]


def test_unwilling_candidate_hears_unavailable() -> None:
    """10: wait=False and no majority of the seats answers."""
    stand = Stand("abcd", seats=3)
    stand.crash("b")
    stand.crash("c")
    user = stand.acquire("d", 1, wait=False, run=5 * POLL)
    assert user.lost == [SeatsSilent(POOL, needed=2, reachable=1)]


def test_leave_of_an_inner_arc() -> None:
    """5.8, D8: RETIRED, CLEAVE, and the predecessor merges it; its ticket is given again under a higher token."""
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 2, run=0.5)
    second = stand.acquire("a", 2, run=0.5)
    second.release()
    stand.run(0.2)
    assert stand.count(Cleave) == 1
    assert arcs(stand) == {0: (0, 1)}
    again = stand.acquire("b", 2, run=POLL)
    assert (again.number, again.token > second.token) == (second.number, True)


def test_predecessor_finds_a_retired_cell_without_being_told() -> None:
    """D8: CLEAVE is only a hint."""
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 2, run=0.5)
    second = stand.acquire("a", 2, run=0.5)
    stand.lose = lambda source, target, message: isinstance(message, Cleave)
    second.release()
    stand.run(CONFIG.suspect_after + 3 * CONFIG.period)
    assert arcs(stand) == {0: (0, 1)}


def test_everybody_leaves_at_once() -> None:
    """5.8, D8: no deadlock; the anchor is FREE, the others RETIRED, and the next candidate merges them one by one."""
    stand = Stand("abcd", seats=3)
    users = [stand.acquire(name, 4, run=0.7) for name in "abcd"]
    stand.lose = lambda source, target, message: isinstance(message, Cleave)
    for user in users:
        user.release()
    stand.run(1.0)
    assert arcs(stand) == {}
    assert stand.tickets["a"].guardian.cells[Key(POOL, ANCHOR, 0)].val.status is Status.FREE  # type: ignore[union-attr]
    stand.lose = lambda source, target, message: False
    last = stand.acquire("b", 4, run=10.0)
    assert last.acting
    assert arcs(stand) == {0: (0, 3, 2, 1)}
    assert last.token > max(user.token for user in users if user.number == 0)


def test_dead_arcs_are_merged_one_after_the_other() -> None:
    """G5, 5.6: the holders of three neighbouring arcs crash; their predecessor takes in each of them."""
    stand = Stand("abcdefg", seats=3)
    users = [stand.acquire(name, 4, run=0.7) for name in "adef"]
    assert len(numbers(*users)) == 4
    for name in "def":
        stand.crash(name)
    stand.run(LEASE + 3 * (2 * CONFIG.period + 1.0) + 1.0)
    assert arcs(stand) == {0: (0, 3, 2, 1)}


def test_anchor_is_taken_over_with_its_ring() -> None:
    """D11, 5.5: the holder of the anchor crashes; a candidate goes on with its arc, the others keep theirs."""
    stand = Stand("abcdef", seats=3)
    first, second = stand.acquire("d", 4, run=0.5), stand.acquire("e", 4, run=0.5)
    stand.crash("d")
    stand.run(LEASE + 0.1)
    third = stand.acquire("f", 4, run=2 * POLL)
    assert second.acting
    assert third.acting
    assert first.number == 0
    assert len(stand.events(AnchorTaken)) == 2
    covered = sorted(ticket for tickets in arcs(stand).values() for ticket in tickets)
    assert covered == list(range(4))


def test_partition_keeps_the_majority_side() -> None:
    """G1, E14: the side with one seat of three stops within D, the other goes on and takes everything over."""
    stand = Stand("abcde", seats=3)
    minority, majority = stand.acquire("a", 1, run=0.5), stand.acquire("d", 1, run=0.5)
    sides = {name: side for side, names in enumerate(("ae", "bcd")) for name in names}
    stand.lose = lambda source, target, message: sides[source] != sides[target]
    cut_at = stand.now
    stand.run(LEASE)
    assert minority.lost
    stand.run(LEASE)
    assert majority.acting
    assert minority.until < majority.acquired_at <= cut_at + 2 * LEASE
    stand.lose = lambda source, target, message: False
    stand.run(LEASE)
    assert stand.holder(0) == ["d"]


def test_seat_restart_costs_nobody_a_ticket() -> None:
    """5.2, D20: each seat restarts once, one after the other, and the holder goes on."""
    stand = Stand("abcd", seats=3)
    user = stand.acquire("d", 1, run=0.5)
    for name in "abc":
        stand.crash(name)
        stand.run(0.2)
        stand.restart(name)
        stand.run(LEASE)
    assert user.acting
    assert user.lost == []


def test_bad_wishes_are_refused_by_name() -> None:
    """Style: one clear error that names the field and what is accepted."""
    stand = Stand("ab", seats=1)
    tickets, user = stand.tickets["a"], Asker(stand.hosts["a"])
    for pool, n, metadata, field in (
        ("", 1, {}, "pool"),
        ("x" * 57, 1, {}, "pool"),
        ("a\nb", 1, {}, "pool"),
        ("gpu", 0, {}, "of"),
        ("gpu", 5000, {}, "of"),
        ("gpu", 1, {"host": "x" * 600}, "metadata"),
    ):
        with pytest.raises(ConfigError, match=f"^{field}: .*accepted"):
            tickets.acquire(pool, n, user, metadata=metadata)


def test_publish_needs_a_valid_ticket() -> None:
    """5.9: application events are stamped with (number, token); publish refuses when the ticket is not valid, old tokens are dropped."""
    stand = Stand("abc", seats=3)
    heard: list[tuple[int, int, bytes]] = []
    stand.tickets["a"].listen(POOL, lambda number, token, payload: heard.append((number, token, payload)))
    user = stand.acquire("a", 1, run=0.5)
    assert user.attempt is not None
    user.attempt.publish(b"hello")
    assert heard == [(0, user.token, b"hello")]
    stand.tickets["a"].cview._deliver(POOL, 0, user.token - 1, b"late")
    assert len(heard) == 1
    user.release()
    with pytest.raises(HoldLost):
        user.attempt.publish(b"too late")


def test_rejects_name_who_has_room() -> None:
    """5.5 REJECT: a coordinator without free tickets names those who announced some."""
    stand = Stand("abcd", seats=3)
    for name in "ab":
        stand.acquire(name, 8, run=0.5)
    rejected = Reject(POOL, stand.tickets["c"].desk.lease(), "not-coordinator", 0, ())
    stand.tickets["c"].on_message(
        stand.hosts["d"].me, Cjoin(POOL, 8, rejected.lease._replace(life=stand.hosts["d"].me), stand.hosts["d"].address, wait=False)
    )
    stand.run(0.02)
    answers = [message for _, _, message in stand.sent if isinstance(message, Reject)]
    assert {agent.life.name for agent in answers[-1].roomy} == {"a", "b"}
    assert stand.count(Queued) == 0
    assert stand.events(ArcChanged)
