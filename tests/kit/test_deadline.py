"""F8 and F9: how long a holder may act, how long others wait, and the check every holder begins with."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.kit.deadline import RHO_MAX, Deadline, entry, holder_length, wait_length
from tests.support.fake_host import FakeHost

ROUNDING = 1e-9  # relative; the formulas are tight, and floats are not exact

rhos = st.floats(0, RHO_MAX)
rates = st.sampled_from([-1.0, 1.0]) | st.floats(-1, 1)  # in units of rho; the extremes are where formulas break
lengths = st.floats(0.001, 100)
delays = st.sampled_from([0.0]) | st.floats(0, 200)


@given(length=lengths, rho=rhos, holder=rates, granter=rates, delay=delays)
@example(length=1.0, rho=RHO_MAX, holder=-1.0, granter=1.0, delay=0.0)
def test_the_holder_ends_before_the_granter(length: float, rho: float, holder: float, granter: float, delay: float) -> None:
    """F8: counted from before the send, holder_length ends in true time before the granter's own count of ``length`` does."""
    sent_at = 0.0  # true time; clock offsets never enter, because both sides count durations
    holder_end = sent_at + holder_length(length, rho) / (1 + holder * rho)
    granter_end = sent_at + delay + length / (1 + granter * rho)
    assert holder_end <= granter_end * (1 + ROUNDING)


@given(length=lengths, rho=rhos, holder=rates, waiter=rates, margin=st.floats(0, 1), behind=delays)
@example(length=1.0, rho=RHO_MAX, holder=-1.0, waiter=1.0, margin=0.0, behind=0.0)
def test_the_waiter_outlives_the_holder(length: float, rho: float, holder: float, waiter: float, margin: float, behind: float) -> None:
    """F8: wait_length, begun no earlier than the holder's count, never ends before the holder does."""
    holder_end = length / (1 + holder * rho)
    waiter_end = behind + wait_length(length, rho, margin) / (1 + waiter * rho)
    assert holder_end <= waiter_end * (1 + ROUNDING)


@pytest.mark.parametrize("rho", [1e-3, 0.01, RHO_MAX])
def test_one_plus_two_rho_is_not_enough(rho: float) -> None:
    """Ring section 4, "1 + 2 rho is not enough": a slow holder and a fast waiter overlap by 2 rho^2 of the length."""
    holder_end = 1 / (1 - rho)
    assert wait_length(1, rho, 0) / (1 + rho) >= holder_end * (1 - ROUNDING)
    naive_end = (1 + 2 * rho) / (1 + rho)
    assert holder_end - naive_end == pytest.approx(2 * rho**2, rel=0.2)


@given(delay=st.floats(0.01, 10), rho=st.floats(0, 1e-3))
def test_counting_from_the_receipt_is_not_safe(delay: float, rho: float) -> None:
    """F8, tickets D5: a holder that counts from the answer's arrival is still sure of itself when the granter's time is over."""
    granted_at, length = 0.0, 1.0
    received_at = granted_at + delay
    naive_end = received_at + holder_length(length, rho) / (1 + rho)
    granter_end = granted_at + length / (1 - rho)
    assert naive_end > granter_end


@given(length=lengths, rho=st.floats(1e-4, RHO_MAX))
def test_holding_what_was_granted_unshortened_is_not_safe(length: float, rho: float) -> None:
    """F8: without the factor a slow holder outlives a fast granter."""
    assert length / (1 - rho) > length / (1 + rho)
    assert holder_length(length, rho) < length < wait_length(length, rho, 0)


def test_a_deadline_is_compared_at_every_reading() -> None:
    """F9: nothing has to run for a deadline to pass."""
    host = FakeHost()
    deadline = Deadline(host)
    readings = [deadline.valid]
    deadline.extend(host.now + 2)
    readings.append(deadline.valid)
    host.clock += 2
    readings.append(deadline.valid)
    assert readings == [False, True, False]
    assert deadline.remaining == 0.0


def test_renewals_extend_and_a_new_basis_replaces() -> None:
    """F9, tickets D15: an older renewal never shortens; a move of guardians may."""
    host = FakeHost()
    deadline = Deadline(host, host.now + 5)
    deadline.extend(host.now + 3)
    assert deadline.remaining == 5
    deadline.replace(host.now + 3)
    assert deadline.remaining == 3
    deadline.end()
    assert deadline.until == -inf


class Leader:
    """A holder as protocols write it: a deadline, a state, guarded entries."""

    def __init__(self, host: FakeHost) -> None:
        self.deadline = Deadline(host, host.now + 1)
        self.leading = True
        self.log: list[str] = []

    @property
    def lapsed(self) -> bool:
        return self.leading and not self.deadline.valid

    def lapse(self) -> None:
        self.leading = False
        self.tell("lost")

    @entry
    def tell(self, what: str) -> int:
        """Also called by ``lapse`` itself: a guarded method must not begin it again."""
        self.log.append(what)
        return len(self.log)

    @entry
    def on_renewal(self, *, until: float) -> None:
        if self.leading:
            self.deadline.extend(until)


def test_every_entry_of_a_holder_begins_with_the_comparison() -> None:
    """F9, tickets 5.3: a grant that waited in the socket of a stopped process must not revive what has lapsed."""
    host = FakeHost()
    leader = Leader(host)
    leader.on_renewal(until=host.now + 2)
    host.clock += 1.5
    assert leader.tell("still") == 1
    host.clock += 1
    leader.on_renewal(until=host.now + 100)
    assert leader.log == ["still", "lost"]
    assert not leader.leading
    assert not leader.deadline.valid


def test_the_guard_keeps_name_and_result() -> None:
    """The decorator is invisible to whoever reads or calls the method."""
    assert Leader.tell.__name__ == "tell"
    assert Leader(FakeHost()).tell("x") == 1


class Stubborn(Leader):
    """Breaks the contract: lapses and goes on holding."""

    def lapse(self) -> None:
        self.log.append("no")


def test_a_holder_that_does_not_stop_is_a_bug() -> None:
    """F9: ``lapse`` makes ``lapsed`` false, or the assertion says so."""
    host = FakeHost()
    stubborn = Stubborn(host)
    host.clock += 2
    with pytest.raises(AssertionError):
        stubborn.on_renewal(until=host.now + 1)
