"""Every interleaving of a promise's small world: never two holders of one number, never two holders at one time.

Foundation 4 (Promise), F13. The model is ``holdfast.lab.kit.promise_model``; it runs the real ``Promises`` and ``Keeper``. A safety
check that cannot fail proves nothing: each rule is also taken out once, and the exploration has to find what that breaks.
"""

from __future__ import annotations

import pytest

from holdfast.host import Host, Storage
from holdfast.kit.keeper import Keeper
from holdfast.kit.promise import Promises
from holdfast.lab.explore import explore
from holdfast.lab.kit.promise_model import LENGTH, Bounds, GroupModel, Seat, SeatModel
from tests.kit.ablations import AnswersFirst, AnyResignation, ForgetsLongest, ForgetsUntil, IgnoresBusy, TellsTheSlow, TwoPerNumber

STATES_MAX = 1_000_000


@pytest.mark.parametrize("numbers, states", [(1, 328), (2, 4911)])
def test_one_seat(numbers: int, states: int) -> None:
    """Foundation 4: 2 candidates, up to 3 writes under way, resignations, crashes at every write point; all states are fine.

    The number of states is part of the test: an exploration that suddenly sees less has lost a move.
    """
    model = SeatModel(Seat, Bounds(numbers))
    found = explore(0, model.moves, model.wrong, states_max=STATES_MAX)
    assert found.violation == ""
    assert found.complete
    assert found.states == states


def test_three_seats() -> None:
    """Foundation 4: 3 seats, 2 candidates, 2 numbers; every combination of what the seats may have done."""
    model = GroupModel(SeatModel(Seat, Bounds(2, pending=1, resigning=False)), 3)
    found = explore(model.first, model.moves, model.wrong, states_max=STATES_MAX)
    assert found.violation == ""
    assert found.complete
    assert found.states == 246_905


def mutated(promises: type[Promises] = Promises, keeper: type[Keeper] = Keeper) -> type[Seat]:
    class Mutated(Seat):
        def make_promises(self, host: Host, storage: Storage, keeper: Keeper) -> Promises:
            return promises(host, storage, keeper)

        def make_keeper(self, host: Host, storage: Storage) -> Keeper:
            return keeper(host, storage, rho=0.0, margin=0.0, length_max=LENGTH)

    return Mutated


SMALL, WIDE, LONG = Bounds(2, pending=1, resigning=False), Bounds(2), Bounds(3, pending=1)
NUMBER, TIME = "number {} was won by both", "both hold at the same time"

MUTATIONS = [
    pytest.param(mutated(TwoPerNumber), SMALL, 1, NUMBER.format(1), id="two-per-number"),
    pytest.param(mutated(TwoPerNumber), SMALL, 3, NUMBER.format(1), id="two-per-number-3"),
    pytest.param(mutated(AnswersFirst), SMALL, 1, NUMBER.format(1), id="answers-first"),
    pytest.param(mutated(AnswersFirst), SMALL, 3, NUMBER.format(1), id="answers-first-3"),
    pytest.param(mutated(keeper=ForgetsUntil), SMALL, 1, TIME, id="forgets-until"),
    pytest.param(mutated(keeper=ForgetsUntil), SMALL, 3, TIME, id="forgets-until-3"),
    pytest.param(mutated(keeper=ForgetsLongest), SMALL, 1, TIME, id="forgets-longest"),
    pytest.param(mutated(IgnoresBusy), SMALL, 1, TIME, id="ignores-busy"),
    pytest.param(mutated(AnyResignation), LONG, 1, TIME, id="any-resignation"),
    pytest.param(mutated(TellsTheSlow), WIDE, 1, NUMBER.format(2), id="tells-the-slow"),
]


@pytest.mark.parametrize("seat, bounds, seats, violation", MUTATIONS)
def test_what_each_rule_is_for(seat: type[Seat], bounds: Bounds, seats: int, violation: str) -> None:
    """Foundation 4, F13: take one rule out, and a short sequence of moves makes two holders."""
    model = GroupModel(SeatModel(seat, bounds), seats)
    found = explore(model.first, model.moves, model.wrong, states_max=STATES_MAX)
    assert found.violation == violation
    assert 3 <= len(found.path) <= 20
