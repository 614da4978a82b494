"""A keeper with a horizon: the one seat of a machine knows until when anything runs.  Foundation F13; H154."""

from __future__ import annotations

import pytest

from holdfast.events import StorageFailed
from holdfast.host import NodeId
from holdfast.kit.deadline import wait_length
from holdfast.kit.keeper import Keeper
from holdfast.kit.promise import Answer, HolderId, Promises
from tests.support.fake_host import FakeHost

LENGTH_MAX, RHO, MARGIN = 15.0, 0.01, 0.1
ME = HolderId(NodeId("a", 1), 0)


class FakeHorizon:
    """A number in memory, and a disk that may refuse."""

    def __init__(self, until: float | None) -> None:
        self.until = until
        self.refuses = False

    def cover(self, until: float) -> bool:
        assert self.until is None or until > self.until  # H154: what it covers already is not written again
        return self.settle(until)

    def settle(self, until: float) -> bool:
        if not self.refuses:
            self.until = until
        return not self.refuses


class Seat:
    """A keeper with promises, opened."""

    def __init__(self, horizon: FakeHorizon, *, fresh: bool = True) -> None:
        self.host, self.horizon = FakeHost("a"), horizon
        self.keeper = Keeper(self.host, self.host.storage.part("keeper"), rho=RHO, margin=MARGIN, length_max=LENGTH_MAX, horizon=horizon)
        self.promises = Promises(self.host, self.host.storage.part("promises"), self.keeper)
        self.keeper.open(fresh=fresh)

    def ask(self, length: float) -> list[Answer]:
        answers: list[Answer] = []
        self.promises.ask("x", ME, 1, length, answers.append)
        return answers


@pytest.mark.parametrize("fresh", [True, False])
def test_a_seat_opens_when_what_was_promised_has_ended(fresh: bool) -> None:
    """H154: also with an empty journal, which would wait for the largest length."""
    host = FakeHost("a")
    assert Seat(FakeHorizon(0.0), fresh=fresh).keeper.wait == 0.0
    assert Seat(FakeHorizon(host.now + 1.25), fresh=fresh).keeper.wait == pytest.approx(1.25)


def test_without_a_word_of_the_last_life_f13_decides() -> None:
    """H154, F13: and the next life reads that nothing runs beyond this wait."""
    seat = Seat(FakeHorizon(None))
    assert seat.keeper.wait == pytest.approx(wait_length(LENGTH_MAX, RHO, MARGIN))
    assert seat.horizon.until == pytest.approx(seat.host.now + seat.keeper.wait)


def test_no_promise_leaves_that_the_next_life_would_not_know_of() -> None:
    """H154: the horizon is moved before the answer; a disk that refuses means silence, said once."""
    seat = Seat(FakeHorizon(0.0))
    assert [answer.granted for answer in seat.ask(2.0)] == [True]
    assert seat.horizon.until == pytest.approx(seat.host.now + 2.0)
    seat.horizon.refuses = True
    seat.host.pass_time(0.5)
    assert seat.ask(2.0) == seat.ask(2.0) == []
    assert seat.promises.counts["unwritten"] == 2
    assert len(seat.host.events(StorageFailed)) == 1
    promise = seat.promises.get("x")
    assert promise is not None
    assert promise.until <= (seat.horizon.until or 0.0)


def test_what_was_given_back_is_not_waited_for() -> None:
    """H154: an agent that leaves in good order settles the horizon to what still runs; a wait that runs itself stays."""
    seat = Seat(FakeHorizon(0.0))
    seat.ask(2.0)
    seat.keeper.settle(seat.promises.running_until)
    assert seat.horizon.until == pytest.approx(seat.host.now + 2.0)
    seat.promises.release("x", ME, 1)
    seat.keeper.settle(seat.promises.running_until)
    assert (seat.horizon.until or 0.0) <= seat.host.now
    waiting = Seat(FakeHorizon(None))
    waiting.keeper.settle(waiting.promises.running_until)
    assert waiting.horizon.until == pytest.approx(waiting.host.now + waiting.keeper.wait)
