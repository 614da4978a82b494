"""What a peer with the key makes up ends in a counter, and never in an asker's way.  Spec: foundation 2; docs/decisions.md H174, H175."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from holdfast.features.tickets.protocol.messages import Accepted, Info, Promised, Query, Refuse
from holdfast.features.tickets.protocol.values import NO_BALLOT, NO_LEASE, Ballot, Ptr, Status, Val
from holdfast.host import Message
from tests.features.tickets.stand import POOL, Stand

Forge = Callable[[int, Val], Message]


def no_arc(stand: Stand) -> Val:
    """A version whose numbers cannot be: a pool of no tickets."""
    desk = stand.tickets["d"].desk
    return Val(0, NO_LEASE, 5, 5, 0, 0, Ptr("anchor", 0, (), desk.me), Status.LIVE, None, 0, desk.me.address)


FORGED: list[Forge] = [
    lambda op, val: Promised(op, NO_BALLOT, None, 0),  # an answer to another question
    lambda op, val: Accepted(op, 0),
    lambda op, val: Info(op, Ballot(9, NO_LEASE), val, 0.0, False, 0),  # the right one, with an arc that cannot be
    lambda op, val: Info(op, Ballot(9, NO_LEASE), replace(val, n=3, length=9), 0.0, False, 0),
    lambda op, val: Promised(op, Ballot(9, NO_LEASE), val, 0),
    lambda op, val: Refuse(op, NO_BALLOT, val, 0.0, False, 0),
]


def answer(stand: Stand, forge: Forge) -> None:
    """Every question of d is answered by forgers first, and then by those that were asked."""
    for question in [message for source, _, message in stand.sent if source == "d" and isinstance(message, Query)]:
        for seat in "abc":
            stand.tickets["d"].on_message(stand.hosts[seat].me, forge(question.op, no_arc(stand)))
    stand.hold = lambda source, target, message: False
    stand.release_held()


@pytest.mark.parametrize("forge", FORGED)
def test_an_answer_of_the_wrong_kind_is_no_answer(forge: Forge) -> None:
    """A serial alone does not make an answer: under it comes the type that was asked for, with values that can be, or nothing."""
    stand = Stand("abcd", seats=3)
    stand.hold = lambda source, target, message: target == "d"
    asker = stand.acquire("d", 3, run=0.02)
    answer(stand, forge)
    stand.run(3.0)
    assert (asker.number, asker.lost) == (0, [])


@pytest.mark.parametrize("forge", FORGED)
def test_a_reader_survives_it_too(forge: Forge) -> None:
    """Reading walks from arc to arc: one of no tickets would be the end of it."""
    stand = Stand("abcd", seats=3)
    stand.acquire("a", 3, run=1.0)
    stand.hold = lambda source, target, message: target == "d"
    seen: list[object] = []
    stand.tickets["d"].read(POOL, seen.append)
    stand.deliver()
    answer(stand, forge)
    stand.run(5.0)
    assert len(seen) == 1
