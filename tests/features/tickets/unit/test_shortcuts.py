"""Two shortcuts of tickets, and what keeps them safe: a grant that counts from the CJOIN, and an anchor that its last holder goes on with.

Spec: tickets 5.3, 5.5, 5.8; docs/decisions.md H113, H114, H130, H143; I5, I6, I8. Both save a round trip where nothing happens in between.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.features.tickets.protocol.messages import Accept, Accepted, AckCjoin, Alive, Cancel, Cjoin, Prepare, Query, Refuse, Renew
from holdfast.features.tickets.protocol.pool import ANNOUNCE_DELAY, Pool
from holdfast.features.tickets.protocol.values import ANCHOR, Key
from tests.features.tickets.stand import CONFIG, POOL, Asker, Stand

LEASE, HOLD = CONFIG.lease, CONFIG.hold
SEATS = "abc"
ANCHOR_KEY = Key(POOL, ANCHOR, 0)


def never(source: str, target: str, message: object) -> bool:
    return False


def sent_by(stand: Stand, name: str, *kinds: type) -> list[object]:
    return [message for source, _, message in stand.sent if source == name and isinstance(message, kinds)]


def covered(stand: Stand, asker: Asker) -> bool:
    """I5: a majority of the seats holds the cell for the owner at least as long as it may act; all clocks of a stand run alike."""
    until = [stand.tickets[name].guardian.cells[ANCHOR_KEY].grant_until for name in SEATS]
    return sorted(until)[1] >= asker.until


# H114: the anchor that this agent gave up.


def given_up(names: str = "abcd") -> tuple[Stand, Asker]:
    """The agent d had the lock and has released it; that is written."""
    stand = Stand(names, seats=3)
    first = stand.acquire("d", 1, run=0.5)
    first.release()
    stand.run(0.5)
    stand.sent.clear()
    return stand, first


def test_the_last_holder_goes_on_with_one_question() -> None:
    """H114: under the ballot that it wrote FREE under; no look and no promise, and the token grows."""
    stand, first = given_up()
    second = stand.acquire("d", 1)
    stand.deliver()
    assert second.acting
    assert second.token > first.token
    assert sent_by(stand, "d", Query, Prepare) == []
    assert len(sent_by(stand, "d", Accept)) == len(SEATS)
    assert covered(stand, second)
    assert stand.tickets["d"].counts["resumed"] == 1


def test_what_was_given_up_is_gone_on_with_once() -> None:
    """I6: two attempts at once would write two versions under one ballot and one number; the second one asks like everybody."""
    stand, _ = given_up()
    written: dict[tuple[object, int], set[object]] = {}
    users = [stand.acquire("d", 1) for _ in range(2)]
    stand.run(1.0)
    assert [user.acting for user in users] == [True, False]
    for message in sent_by(stand, "d", Accept):
        assert isinstance(message, Accept)
        written.setdefault((message.ballot, message.val.seq), set()).add(message.val.who)
    assert all(len(who) == 1 for who in written.values())


@pytest.mark.parametrize("released", [False, True])
def test_who_had_it_since_is_not_disturbed(released: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """H114: whoever took the lock over meanwhile was promised a higher ballot, so a majority refuses; then it is asked for as usual."""
    stand, first = given_up()
    monkeypatch.setattr(stand.tickets["d"].cview, "newest_token", lambda pool, number: 0)  # It has not heard of it.
    other = stand.acquire("a", 1, run=0.5)
    if released:
        other.release()
        stand.run(0.5)
    again = stand.acquire("d", 1, run=0.1)
    assert other.acting is not released
    if not released:
        assert not again.acting
        other.release()
        stand.run(0.5)
    assert again.acting
    assert first.token < other.token < again.token
    assert stand.tickets["d"].counts["resumed"] == 0
    assert sent_by(stand, "d", Query) != []


def test_word_of_another_owner_is_enough_to_ask_as_usual() -> None:
    """H114: a hint saves the seats a refusal, and a seat that missed the other owner a grant that nobody wants."""
    stand, _ = given_up()
    other = stand.acquire("a", 1, run=3.0)
    other.release()
    stand.run(3.0)
    stand.sent.clear()
    again = stand.acquire("d", 1, run=0.5)
    assert again.acting
    first = next(message for source, _, message in stand.sent if source == "d")
    assert isinstance(first, Query)


@pytest.mark.parametrize("heard", ["before", "after"])
def test_what_another_had_since_is_no_longer_kept(heard: str) -> None:
    """H245: word of a larger token ends what was kept, whether it comes before the last holder knows that FREE is written or after."""
    stand = Stand("abcd", seats=3)
    first = stand.acquire("d", 1, run=0.5)
    if heard == "before":
        stand.hold = lambda source, target, message: target == "d" and isinstance(message, Accepted)
    first.release()
    stand.deliver()
    pool = stand.tickets["d"].pool_table[POOL]
    assert (pool.vacant is not None) is (heard == "after")
    other = stand.acquire("a", 1, run=5 * ANNOUNCE_DELAY)
    stand.hold = never
    stand.release_held()
    stand.deliver()
    assert not stand.coordinators("d"), "the release is known to be written"
    assert other.token > first.token
    assert stand.tickets["d"].view(POOL).owners[0].token == other.token
    assert pool.vacant is None


def test_an_answer_that_is_lost_costs_no_safety() -> None:
    """H114: the version may be chosen although nobody heard it; it is asked as usual then, and tokens grow."""
    stand, first = given_up()
    stand.lose = lambda source, target, message: target == "d" and isinstance(message, Accepted)
    again = stand.acquire("d", 1, run=CONFIG.phase_timeout + 0.1)
    early = again.acting
    stand.lose = never
    stand.run(3 * LEASE)
    assert (early, again.acting) == (False, True)
    assert again.token > first.token + 1
    assert covered(stand, again)


def test_the_next_of_the_same_agent_waits_for_the_release() -> None:
    """H114: it asks when the release is written, a moment later, instead of finding the former holder."""
    stand = Stand("abcd", seats=3)
    first = stand.acquire("d", 1, run=0.5)
    stand.sent.clear()
    first.release()
    second = stand.acquire("d", 1)
    stand.deliver()
    assert second.acting
    assert sent_by(stand, "d", Query, Prepare) == []
    assert second.token > first.token


def test_a_release_that_is_not_written_is_not_waited_for() -> None:
    """H114: after one repeat it asks like everybody; the lease of the former holder is what it waits for then."""
    stand = Stand("abcd", seats=3)
    first = stand.acquire("d", 1, run=0.5)
    stand.lose = lambda source, target, message: source == "d" and isinstance(message, Accept) and message.val.holder is None
    stand.sent.clear()
    first.release()
    second = stand.acquire("d", 1, run=CONFIG.rtx / 2)
    assert sent_by(stand, "d", Query) == []
    stand.run(CONFIG.rtx)
    assert sent_by(stand, "d", Query) != []
    stand.lose = never
    stand.run(4 * LEASE)
    assert second.acting
    assert second.token > first.token


# H113: a grant counts from the CJOIN.


def waiting() -> tuple[Stand, Asker, Asker]:
    """D has the lock, e waits for it."""
    stand = Stand("abcde", seats=3)
    holder = stand.acquire("d", 1, run=0.5)
    waiter = stand.acquire("e", 1, run=1.0)
    assert waiter.queued
    return stand, holder, waiter


def last_cjoin(stand: Stand) -> float:
    return max(message.stamp for source, _, message in stand.sent if source == "e" and isinstance(message, Cjoin))


def no_alive(source: str, target: str, message: object) -> bool:
    return target == "e" and isinstance(message, Alive)


def test_who_is_handed_a_ticket_owns_it_at_once() -> None:
    """H113: the seats were asked to hold it for the waiter after its CJOIN had come, so its lease runs from there, without a question of
    its own; and no longer than the seats hold it."""
    stand, holder, waiter = waiting()
    stand.lose = no_alive
    asked_at = last_cjoin(stand)
    holder.release()
    stand.deliver()
    assert waiter.acting
    assert waiter.until == pytest.approx(asked_at + HOLD)
    assert covered(stand, waiter)
    assert waiter.token > holder.token


def test_it_is_renewed_like_any_other() -> None:
    """5.3: from then on what counts is the RENEW that a majority echoed."""
    stand, holder, waiter = waiting()
    holder.release()
    stand.run(1.0)
    assert sent_by(stand, "e", Renew) != []
    assert waiter.until > stand.now + HOLD - 2 * CONFIG.period
    assert covered(stand, waiter)


def test_nobody_renews_it_and_it_ends() -> None:
    """F9: a lease that came with the ticket is one like others: at its end its owner stops."""
    stand, holder, waiter = waiting()
    stand.lose = no_alive
    holder.release()
    stand.run(HOLD + 0.1)
    assert not waiter.acting
    assert waiter.lost != []


def test_a_grant_that_comes_too_late_is_none() -> None:
    """D5: what was on the road for longer than a lease says nothing about now; a majority has to echo a RENEW first."""
    stand, holder, waiter = waiting()
    asked_at = last_cjoin(stand)
    stand.lose = lambda source, target, message: source == "e" and isinstance(message, Cjoin)
    stand.run(0.1)
    stand.hold = lambda source, target, message: target == "e" and isinstance(message, AckCjoin)
    holder.release()
    stand.run(asked_at + HOLD + 0.02 - stand.now)
    stand.hold, stand.lose = never, no_alive
    stand.release_held()
    assert not waiter.acting
    stand.lose = never
    stand.run(LEASE)
    assert waiter.acting


def test_a_cjoin_that_comes_while_the_cell_is_written_does_not_count() -> None:
    """H113: the seats may have granted before it was sent. The stamp is that of the CJOIN that was there when the write began."""
    stand, holder, waiter = waiting()
    before = last_cjoin(stand)
    stand.hold = lambda source, target, message: target == "d" and isinstance(message, Accepted | Refuse)
    stand.lose = no_alive
    holder.release()
    stand.run(1.2)
    assert last_cjoin(stand) > before
    stand.hold = never
    stand.release_held()
    stand.deliver()
    assert waiter.acting
    assert waiter.until == pytest.approx(before + HOLD)
    assert covered(stand, waiter)


def test_counting_from_a_later_cjoin_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ablation: a stamp of the moment when the grant leaves promises more than the seats hold."""
    grant = Pool.grant
    stamps: list[float] = []

    def grant_of_now(pool: Pool, ack: AckCjoin, to: object) -> None:
        late = AckCjoin(ack.lease, ack.key, ack.places, ack.ballot, ack.val, ack.pred, ack.waiters, stamps[-1])
        grant(pool, late, to)  # type: ignore[arg-type]

    stand, holder, waiter = waiting()
    monkeypatch.setattr(Pool, "grant", grant_of_now)
    # The seats have accepted, and the leaver hears of it only now: the waiter has asked again in between.
    stand.hold = lambda source, target, message: target == "d" and isinstance(message, Accepted | Refuse)
    stand.lose = lambda source, target, message: (
        no_alive(source, target, message) or (source == "d" and isinstance(message, Accept) and repeats)
    )
    repeats = False
    holder.release()
    stand.deliver()
    repeats = True
    stand.run(1.2)
    stamps.append(last_cjoin(stand))
    stand.hold = never
    stand.release_held()
    stand.deliver()
    assert waiter.acting
    assert not covered(stand, waiter)


def test_a_stamp_that_was_never_sent_is_not_believed() -> None:
    """A peer may send anything: what lies after the last CJOIN is no time at which this agent asked."""
    stand, holder, waiter = waiting()
    candidate = stand.tickets["e"].pool_table[POOL].candidates[0]
    cell, desk = stand.tickets["a"].guardian.cells[ANCHOR_KEY], stand.tickets["e"].desk
    assert cell.val is not None
    ack = AckCjoin(candidate._lease, ANCHOR_KEY, desk.seats, cell.accepted, cell.val, desk.me, stamp=stand.now + 9.0)
    assert candidate.granted_at(ack) == {}
    assert (holder.acting, waiter.acting) == (True, False)


def test_many_hand_overs_in_a_row() -> None:
    """G3, G7, I5: the lock goes round; each owner has a larger token, and nobody acts beside another one."""
    stand = Stand("abcde", seats=3)
    users = [stand.acquire(name, 1) for name in "dedead"]
    order: list[Asker] = []
    for _ in users:
        stand.run(0.5)
        (acting,) = [user for user in users if user.acting]
        assert covered(stand, acting)
        order.append(acting)
        acting.release()
    assert len({id(user) for user in order}) == len(users)
    assert all(one.token < other.token for one, other in pairwise(order))


# H130: what is announced, and when.


def owners(stand: Stand) -> list[dict[int, int]]:
    """Number -> token, as everybody sees it."""
    return [{number: holder.token for number, holder in stand.tickets[name].view(POOL).owners.items()} for name in stand.names]


def test_a_ticket_that_is_handed_on_is_never_announced_as_free() -> None:
    """H130: between the release and the next owner nothing is said but what hands it on; in the end all see the next owner."""
    stand, holder, waiter = waiting()
    seen: list[tuple[int, ...]] = []
    stand.tickets["a"].watch(lambda pool, number, view: seen.append(tuple(each.token for each in view.owners.values())))
    began = len(stand.sent)
    holder.release()
    stand.deliver()
    handed = next(place for place, (_, _, message) in enumerate(stand.sent) if place >= began and isinstance(message, AckCjoin))
    assert {type(message) for _, _, message in stand.sent[began:handed]} == {Accept, Accepted}
    assert [message for source, _, message in stand.sent[began:] if isinstance(message, Cancel) and source == "e"] == []
    stand.run(0.5)
    assert seen == [(waiter.token,)]
    assert owners(stand) == [{0: waiter.token}] * len(stand.names)


def test_a_ticket_that_nobody_wants_is_announced_as_free_when_that_is_written() -> None:
    """H130, 5.9: not before; and also if it never gets through, when the leaver gives up."""
    for loss in (False, True):
        stand = Stand("abcde", seats=3)
        user = stand.acquire("d", 1, run=0.5)
        stand.hold = lambda source, target, message: isinstance(message, Accept)
        stand.lose = lambda source, target, message: loss and isinstance(message, Accept)  # noqa: B023 - called in this turn
        user.release()
        stand.run(0.5)
        assert owners(stand) == [{0: user.token}] * 5
        stand.hold = never
        stand.release_held()
        stand.run(CONFIG.leave_timeout if loss else 0.5)
        assert owners(stand) == [{}] * 5


def test_a_ticket_that_comes_too_late_is_announced_as_free() -> None:
    """H130: whoever gave it said nothing, because the next owner would. That one changed its mind, so it says that nobody owns it."""
    stand, holder, waiter = waiting()
    stand.hold = lambda source, target, message: isinstance(message, AckCjoin)
    holder.release()
    stand.deliver()
    assert waiter.attempt is not None
    waiter.attempt.cancel()
    stand.hold = never
    stand.release_held()
    stand.run(0.5)
    assert (stand.tickets["e"].counts["returned"], owners(stand)) == (1, [{}] * 5)


def test_an_owner_is_announced_after_a_moment() -> None:
    """H143, 5.9: its client comes first. Everybody hears of it then; and nothing of an ownership that was over before. Its own agent
    knows at once."""
    stand = Stand("abcde", seats=3)
    short = stand.acquire("d", 1)
    stand.deliver()
    assert short.acting
    assert owners(stand) == [{}, {}, {}, {0: short.token}, {}]
    short.release()
    stand.run(0.5)
    assert (stand.tickets["d"].counts["announced"], owners(stand)) == (0, [{}] * 5)
    kept = stand.acquire("d", 1)
    stand.deliver()
    assert owners(stand) == [{}, {}, {}, {0: kept.token}, {}]
    stand.run(2 * ANNOUNCE_DELAY)
    assert owners(stand) == [{0: kept.token}] * 5
