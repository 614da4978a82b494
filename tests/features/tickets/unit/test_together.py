"""Many tickets of one agent: renewed together, before what is new, none lost because of a crowd.  Spec: tickets 5.3, 5.5; D5; H166-H168."""

from __future__ import annotations

from math import ceil

import msgspec
import pytest

from holdfast.features.tickets.protocol.candidate import Candidate
from holdfast.features.tickets.protocol.care import CLEAVE_HOPS
from holdfast.features.tickets.protocol.guardian import TURN_MAX, WAITING_MAX
from holdfast.features.tickets.protocol.line import ASKING_MAX, Line
from holdfast.features.tickets.protocol.messages import (
    CELLS_MAX,
    AckUpdate,
    AckUpdates,
    Alive,
    Cjoin,
    Cleave,
    Info,
    Query,
    Reject,
    Renew,
    Renewals,
    Renewed,
    Update,
    Updates,
)
from holdfast.features.tickets.protocol.reasons import Late
from holdfast.features.tickets.protocol.rounds import EARLY, LATE_ROUNDS
from holdfast.features.tickets.protocol.values import ANCHOR, Key
from holdfast.host import DATAGRAM_BYTES_MAX, Message
from tests.features.tickets.stand import CONFIG, POOL, Asker, Stand

PERIOD, LEASE, POLL = CONFIG.period, CONFIG.lease, CONFIG.poll
SEATS = 3
MANY = 60
PER_MESSAGE = 10  # cells that share one at least, whatever the length of their names
ENVELOPE_BYTES = 200  # of a datagram, beside the message: seal, sender, fingerprint


def crowded(names: str = "abcd", holders: str = "d", many: int = MANY, of: int = 0) -> tuple[Stand, list[Asker]]:
    """A pool whose tickets are held, by these agents in turn."""
    stand = Stand(names, seats=SEATS)
    users = [stand.acquire(holders[number % len(holders)], of or many) for number in range(many)]
    stand.run(8.0)
    assert all(user.acting for user in users)
    return stand, users


def of(stand: Stand, since: int, source: str, *kinds: type[Message]) -> list[Message]:
    return [message for who, _, message in stand.sent[since:] if who == source and isinstance(message, kinds)]


def test_renewals_of_one_agent_share_messages() -> None:
    """H166: per guardian and round as many messages as pages, not as cells; four batches in three rounds at most (EARLY). The same for
    the words between neighbours. Each fits a datagram."""
    stand, users = crowded()
    since, rounds = len(stand.sent), 10
    stand.run(rounds * PERIOD)
    renewals = of(stand, since, "d", Renew, Renewals)
    batches = rounds / EARLY + 1
    assert len(renewals) <= SEATS * ceil(MANY / PER_MESSAGE) * batches
    cells = sum(len(each.cells) if isinstance(each, Renewals) else 1 for each in renewals)
    assert cells >= SEATS * MANY * (rounds - 1)  # none was left out
    assert all(len(each.cells) <= CELLS_MAX for each in renewals if isinstance(each, Renewals))
    assert len([each for each in stand.sent[since:] if isinstance(each[2], Alive | Renewed)]) <= len(renewals)
    encode = msgspec.msgpack.encode
    together = [each for _, _, each in stand.sent[since:] if isinstance(each, Renewals | Renewed | Updates | AckUpdates)]
    assert max(len(encode(each)) for each in together) <= DATAGRAM_BYTES_MAX - ENVELOPE_BYTES
    assert all(user.acting and not user.at_risk for user in users)


def test_words_between_neighbours_share_messages() -> None:
    """H166, 5.6: UPDATE and its answer, with half of the neighbours at each of two agents."""
    stand, _ = crowded("abcde", "de")
    since, rounds = len(stand.sent), 10
    stand.run(rounds * PERIOD)
    words = of(stand, since, "d", Update, Updates, AckUpdate, AckUpdates)
    said = sum(len(each.updates) for each in words if isinstance(each, Updates)) + sum(isinstance(each, Update) for each in words)
    assert said >= MANY / 4 * (rounds - 1)  # there are that many neighbours at the other agent
    assert len(words) <= said


def test_locks_of_many_pools_share_messages() -> None:
    """H166: whatever their pools."""
    stand = Stand("abcd", seats=SEATS)
    users = [Asker(stand.hosts["d"]) for _ in range(MANY)]
    for number, user in enumerate(users):
        user.attempt = stand.tickets["d"].acquire(f"lock {number}", 1, user)
    stand.run(4.0)
    since, rounds = len(stand.sent), 10
    stand.run(rounds * PERIOD)
    assert all(user.acting for user in users)
    assert len(of(stand, since, "d", Renew, Renewals)) <= SEATS * ceil(MANY / PER_MESSAGE) * (rounds / EARLY + 1)


def test_a_partial_answer_extends_what_it_names() -> None:
    """D5, F8, H166: a cell that is not named in the answer is not extended, and what is counts from before the page was sent."""
    stand, _ = crowded(many=12)
    stand.lose = lambda source, target, message: isinstance(message, Renewed | Alive)
    since = len(stand.sent)
    stand.run(PERIOD + 0.05)
    (page, *_) = [each for each in of(stand, since, "d", Renewals) if isinstance(each, Renewals)]
    machine, keys = stand.tickets["d"], [each.key for each in page.cells]
    before = {each.key: each.deadline.until for each in stand.coordinators("d")}
    stand.run(0.1)  # the answers are late
    for seat in "ab":
        machine.on_message(stand.hosts[seat].me, Renewed(page.serial, (0, 2), (), (), draining=False))
    after = {each.key: each.deadline.until for each in stand.coordinators("d")}
    extended = [key for key in keys if after[key] > before[key]]
    assert extended == [keys[0], keys[2]]
    assert {after[key] for key in extended} == {page.stamp + CONFIG.hold}
    assert page.stamp + CONFIG.hold < stand.now + CONFIG.hold - 0.05


def test_an_answer_that_nobody_asked_for_extends_nothing() -> None:
    """F3, H166: of another page, beyond its end, of a guardian that is none, or of one alone."""
    stand, _ = crowded(many=12)
    stand.lose = lambda source, target, message: isinstance(message, Renewed | Alive)
    since = len(stand.sent)
    stand.run(PERIOD + 0.05)
    (page, *_) = [each for each in of(stand, since, "d", Renewals) if isinstance(each, Renewals)]
    machine = stand.tickets["d"]
    before = {each.key: each.deadline.until for each in stand.coordinators("d")}
    everything = tuple(range(len(page.cells)))
    for serial, source, ok in [
        (page.serial + 1000, "a", everything),
        (page.serial + 1000, "b", everything),
        (page.serial, "a", (CELLS_MAX - 1,)),
        (page.serial, "b", (CELLS_MAX - 1,)),
        (page.serial, "a", everything),  # one of three
        (page.serial, "a", everything),  # and again
        (page.serial, "d", everything),  # no guardian
    ]:
        machine.on_message(stand.hosts[source].me, Renewed(serial, ok, (), (), draining=False))
    assert {each.key: each.deadline.until for each in stand.coordinators("d")} == before


def test_a_refused_cell_is_told_apart() -> None:
    """5.1, D14, H166: one cell of a page has another owner; its holder dies, and the others are renewed."""
    stand, users = crowded(many=12)
    victim = next(each for each in stand.coordinators("d") if not each.anchor)
    for seat in "abc":
        stand.tickets[seat].guardian.drop(victim.key)
    stand.run(2 * LEASE)
    assert [user.number for user in users if user.lost] == [victim.head]
    assert sum(user.acting for user in users) == len(users) - 1


def test_renewals_are_answered_before_what_is_new() -> None:
    """H166: of what one turn brings, whatever its order; and what is too much is dropped, counted, and never a renewal."""
    stand, _ = crowded(many=12)
    stand.hold = lambda source, target, message: target == "a" and isinstance(message, Renewals)
    stand.run(PERIOD + 0.05)
    (page, *_) = [message for _, target, message, _ in stand.held if isinstance(message, Renewals)]
    seat, machine, me = stand.hosts["a"], stand.tickets["a"], stand.hosts["d"].me
    seat.sent = []
    too_many = 7
    for op in range(1, WAITING_MAX + too_many + 1):
        machine.on_message(me, Query(op, Key("other", ANCHOR, 0)))
    machine.on_message(me, page)
    assert [type(message) for _, message in seat.sent] == [Renewed]
    assert machine.counts["requests_dropped"] == too_many
    seat.pass_time(0.0)
    answered = [message for _, message in seat.sent if isinstance(message, Info)]
    assert len(answered) % TURN_MAX == 0 or len(answered) == WAITING_MAX
    for _ in range(WAITING_MAX // TURN_MAX):
        seat.pass_time(0.001)
    assert len([message for _, message in seat.sent if isinstance(message, Info)]) == WAITING_MAX


def test_one_word_of_leaving_stays_one() -> None:
    """H167, D8: with many tickets at each of three agents a CLEAVE is passed on by one holder at a time, and its arc is taken in."""
    stand, users = crowded("abc", "abc", many=48)
    since = len(stand.sent)
    for user in users[5:11]:
        user.release()
    stand.run(1.0)
    cleaves = [message for _, _, message in stand.sent[since:] if isinstance(message, Cleave)]
    assert len(cleaves) <= 6 * (1 + CLEAVE_HOPS)
    assert not [user for user in users if user.lost]
    far = next(each for each in stand.coordinators("c") if not stand.tickets["a"].pool_table[POOL]._before(each.rid))
    since = len(stand.sent)
    stand.tickets["a"].on_message(stand.hosts["c"].me, Cleave(POOL, far.rid, head=far.head))  # who has split since, or was never before it
    stand.run(1.0)
    passed = [message for _, _, message in stand.sent[since:] if isinstance(message, Cleave)]
    assert len(passed) <= CLEAVE_HOPS
    assert {message.hops for message in passed if isinstance(message, Cleave)} <= {1, 2, 3}
    assert far.valid
    again = [stand.acquire("a", 48) for _ in range(6)]
    stand.run(6 * POLL)
    assert all(user.acting for user in again)


def test_a_crowd_asks_as_a_few() -> None:
    """H167: of 100 that wait at one agent 32 ask; they share what they see, the others know where they stand, all are served in turn."""
    stand, holders = crowded("abcde", "d", many=4)
    crowd = [stand.acquire("e", 4) for _ in range(100)]
    stand.run(4 * POLL)
    since, polls = len(stand.sent), 10
    stand.run(polls * POLL)
    asked = of(stand, since, "e", Cjoin)
    assert {each.lease for each in asked if isinstance(each, Cjoin)} == {
        each._lease for each in _line(stand).asking if isinstance(each, Candidate)
    }
    assert len(_line(stand).asking) == ASKING_MAX
    assert len(of(stand, since, "e", Query)) <= polls / 0.1 * SEATS
    positions = [user.queued[-1] for user in crowd]
    assert positions[ASKING_MAX:] == list(range(ASKING_MAX + 1, 101))
    served: list[int] = []
    for _ in range(40):
        turn = next(user for user in [*holders, *crowd] if user.acting)
        turn.release()
        stand.run(0.1)
        served += [number for number, user in enumerate(crowd) if user.acquired_at and number not in served]
    assert len(served) >= 36
    assert max(served) < ASKING_MAX + 20  # the last ones are not served before the first


def _line(stand: Stand) -> Line:
    return stand.tickets["e"].pool_table[POOL].line


def test_who_waits_elsewhere_at_an_agent_is_handed_its_ticket() -> None:
    """H167, 5.8: one agent has many tickets, and one client waits at one of them. Whichever is given back, it gets that one at once."""
    stand, users = crowded("abcde", "d", many=8)
    waiter = stand.acquire("e", 8, run=2 * POLL)
    (queue,) = [each for each in stand.coordinators("d") if each.server.waiters]
    other = next(user for user in users if user.number != queue.head)
    number = other.number
    other.release()
    stand.run(0.05)
    assert (waiter.acting, waiter.number) == (True, number)
    assert not queue.server.waiters


def test_an_agent_that_is_late_keeps_what_it_holds_and_takes_nothing_new() -> None:
    """H168: late by more than a round, it refuses candidates of its own and of others, and says why; a round later it serves again."""
    stand, users = crowded("abcde", "d", many=4, of=8)
    reasons: list[str] = []
    stand.hosts["d"].clock += (LATE_ROUNDS + 0.9) * PERIOD  # nothing ran for so long
    machine = stand.tickets["d"]
    assert machine.desk.rounds.late > LATE_ROUNDS * PERIOD

    class Told(Asker):
        def on_queued(self, position: int, why: str = "") -> None:
            reasons.append(why)

    told = Told(stand.hosts["d"])
    told.attempt = machine.acquire(POOL, 8, told)
    assert reasons
    assert "late" in reasons[0]
    lease = stand.tickets["e"].desk.lease()
    machine.on_message(stand.hosts["e"].me, Cjoin(POOL, 8, lease, stand.hosts["e"].address, True, 1.0))
    rejects = [message for _, message in stand.hosts["d"].sent if isinstance(message, Reject)]
    assert [each.reason for each in rejects] == [Late.word]
    assert machine.counts["late"] >= 1
    stand.run(4 * POLL)
    assert all(user.acting and not user.lost for user in users)
    assert told.acting
    assert machine.desk.rounds.late == 0.0


@pytest.mark.parametrize("behind", [0.3, 1.9])
def test_who_does_not_wait_at_a_late_agent_is_told_why(behind: float) -> None:
    """H168: a hiccup costs a moment; one that lasts is said, as what it is."""
    stand, _ = crowded("abcd", "d", many=2, of=4)
    rounds = stand.tickets["d"].desk.rounds
    stand.hosts["d"].clock += behind * PERIOD
    late = rounds.late > 0
    if late:
        type(rounds).late, before = property(lambda self: 1.0), type(rounds).late  # type: ignore[method-assign,assignment]
    try:
        user = stand.acquire("d", 4, wait=False, run=2 * POLL)
    finally:
        if late:
            type(rounds).late = before  # type: ignore[method-assign]
    assert (user.lost, user.acting) == (([Late(POOL)], False) if late else ([], True))
