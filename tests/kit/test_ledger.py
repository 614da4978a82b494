"""Ledger: amounts between two lives, none lost and none counted twice.  Foundation 4; limits 5.3, D1, D4, D6; RL1, RL3."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.kit import ledger as module
from holdfast.kit.ledger import AMOUNT_MAX, Batch, Ledger, Refusal

A, B = 1, 2


def moved(giver: Ledger, taker: Ledger) -> dict[int, int] | Refusal:
    """The giver's message arrives, and so does the acknowledgement."""
    found = taker.take(giver.message())
    assert giver.ack(taker.taken)
    return found


def test_what_is_given_arrives_once() -> None:
    """Limits 5.3: a message brings what is new; the same message again brings nothing."""
    giver, taker = Ledger(), Ledger()
    assert giver.give({A: 5, B: 7})
    batch = giver.message()
    assert batch == Batch(0, 1, {A: 5, B: 7})
    assert taker.take(batch) == {A: 5, B: 7}
    assert taker.take(batch) is Refusal.PAST
    assert giver.ack(taker.taken)
    assert giver.outstanding == {}


def test_what_was_lost_comes_with_the_next() -> None:
    """Limits 5.3: a message carries everything in (lb, seq]."""
    giver, taker = Ledger(), Ledger()
    giver.give({A: 5})
    giver.message()  # lost
    giver.give({A: 3, B: 1})
    assert moved(giver, taker) == {A: 8, B: 1}


def test_a_part_was_taken_before() -> None:
    """Limits D4: some but not all of (lb, seq] was taken, because an acknowledgement was lost: checkpoints say how much that was."""
    giver, taker = Ledger(), Ledger()
    giver.give({A: 5})
    moved(giver, taker)
    giver.give({A: 3})
    assert taker.take(giver.message()) == {A: 3}  # its acknowledgement is lost
    giver.give({A: 2, B: 4})
    assert giver.message() == Batch(1, 3, {A: 5, B: 4})
    assert moved(giver, taker) == {A: 2, B: 4}
    assert giver.outstanding == {}


def test_an_old_message_counts_from_an_old_number() -> None:
    """Limits 5.3: what was overtaken brings nothing, wherever it counts from."""
    giver, taker = Ledger(), Ledger()
    giver.give({A: 5})
    old = giver.message()
    moved(giver, taker)
    giver.give({A: 1})
    moved(giver, taker)
    assert taker.take(old) is Refusal.PAST
    assert taker.taken == 2


def test_nothing_given_is_acknowledged_too() -> None:
    """Limits 5.3: a part of nothing has a number, so that silence is noticed."""
    giver, taker = Ledger(), Ledger()
    giver.give({A: 0})
    assert giver.message() == Batch(0, 1, {})
    assert [giver.is_open, moved(giver, taker), giver.is_open] == [True, {}, False]


def test_an_acknowledgement_of_what_was_never_given() -> None:
    """Limits 5.3: an ack above my seq changes nothing."""
    giver = Ledger()
    giver.give({A: 5})
    assert not giver.ack(2)
    assert not giver.ack(-1)
    assert giver.outstanding == {A: 5}
    assert giver.ack(1)
    assert giver.ack(0)  # late
    assert giver.acked == 1


@pytest.mark.parametrize(
    "batch, refusal",
    [
        (Batch(3, 9, {A: 5}), Refusal.UNKNOWN_BOUND),  # above anything taken
        (Batch(0, 9, {A: 5}), Refusal.UNKNOWN_BOUND),  # below what the giver knew already
        (Batch(1, 9, {A: 2}), Refusal.SHRUNK),  # less than what was taken of it
        (Batch(2, 9, {A: -1}), Refusal.SHRUNK),
        (Batch(1, 2, {A: 50}), Refusal.PAST),
    ],
)
def test_what_no_honest_giver_sends(batch: Batch, refusal: Refusal) -> None:
    """Limits 5.3, RL3: it brings nothing and changes nothing."""
    giver, taker = Ledger(), Ledger()
    giver.give({A: 5})
    moved(giver, taker)
    giver.give({A: 3})
    assert taker.take(giver.message()) == {A: 3}
    assert taker.take(batch) is refusal
    assert taker.taken == 2
    giver.give({A: 1})
    assert taker.take(giver.message()) == {A: 1}


def test_a_receiver_without_room() -> None:
    """F17: what does not fit is refused as a whole, and may be sent again."""
    giver, taker = Ledger(), Ledger()
    giver.give({A: 5})
    assert taker.take(giver.message(), lambda new: new[A] < 5) is Refusal.NO_ROOM
    assert taker.take(giver.message(), lambda new: new[A] == 5) == {A: 5}


def test_too_much_is_not_given() -> None:
    """F17: a sum stays within 64 bits, and what is refused stays with the giver."""
    giver = Ledger()
    assert giver.give({A: AMOUNT_MAX - 1})
    assert not giver.give({A: 2})
    assert giver.given == 1
    assert giver.give({A: 1, B: AMOUNT_MAX})


def test_too_many_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: neither end keeps more numbers open than ``OPEN_MAX``."""
    monkeypatch.setattr(module, "OPEN_MAX", 2)
    giver, taker = Ledger(), Ledger()
    assert giver.give({A: 1})
    assert giver.give({A: 1})
    assert not giver.give({A: 1})
    for seq in (1, 2):
        assert taker.take(Batch(0, seq, {A: seq})) == {A: 1}
    assert taker.take(Batch(0, 3, {A: 3})) is Refusal.TOO_MANY
    assert taker.take(Batch(1, 3, {A: 2})) == {A: 1}


def test_too_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: no message fills the receiver's memory."""
    monkeypatch.setattr(module, "KEYS_MAX", 3)
    assert Ledger().take(Batch(0, 1, dict.fromkeys(range(4), 1))) is Refusal.TOO_MANY


@pytest.mark.parametrize("seed", range(20))
def test_any_loss_repetition_and_order(seed: int) -> None:
    """RL1, RL3: at every step what was taken and what the giver holds to be outstanding cover what was given; at last they are equal."""
    random = Random(seed)
    giver, taker = Ledger(), Ledger()
    total = {A: 0, B: 0}
    got = {A: 0, B: 0}
    there: list[Batch] = []
    back: list[int] = []
    for _ in range(400):
        step = random.random()
        if step < 0.3:
            amounts = {key: random.randrange(100) for key in (A, B) if random.random() < 0.7}
            if giver.give(amounts):
                for key, amount in amounts.items():
                    total[key] += amount
        elif step < 0.55:
            there.append(giver.message())
        elif step < 0.8 and there:
            batch = random.choice(there)  # it may arrive again
            found = taker.take(batch)
            if not isinstance(found, Refusal):
                for key, amount in found.items():
                    got[key] += amount
            back.append(taker.taken)
        elif back:
            assert giver.ack(random.choice(back))
        for key in (A, B):
            assert got[key] <= total[key] <= got[key] + giver.outstanding.get(key, 0)
    giver.ack(taker.taken)
    found = taker.take(giver.message())
    if not isinstance(found, Refusal):
        for key, amount in found.items():
            got[key] += amount
    assert got == total
