"""The token bucket: what may go, at a rate that changes.  Spec: limits 5.1, RL8, D16."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.features.limits.bucket import DEPTH_MIN, MICRO, NEVER, SECOND, Bucket, cost_micros, micros, nanos

START = 5 * SECOND


def bucket(rate: float, depth: float) -> Bucket:
    fresh = Bucket(START)
    fresh.set(START, micros(rate), micros(depth))
    return fresh


def test_a_bucket_starts_empty_and_fills_to_its_depth() -> None:
    """Limits 5.1: a bucket starts empty; refill ``rate * dt`` capped at ``depth``."""
    one = bucket(10, 5)
    assert not one.take(START, MICRO)
    assert one.ready_in(START, MICRO) == SECOND // 10
    assert not one.take(START + SECOND // 10 - 1, MICRO)
    assert one.take(START + SECOND // 10, MICRO)
    one.refill(START + 100 * SECOND)
    assert one.tokens == 5 * MICRO


def test_what_a_refill_leaves_of_a_micro_unit_is_kept() -> None:
    """Limits 5.1: many small refills bring in what one large one does; nothing is lost by looking often."""
    often, once = bucket(1 / 3, 100), bucket(1 / 3, 100)
    for step in range(1, 1001):
        often.refill(START + step * 1_000_003)
    once.refill(START + 1000 * 1_000_003)
    assert often.tokens == once.tokens > 0


def test_a_cost_above_the_depth_is_paid_afterwards() -> None:
    """Limits 5.1: admitted when ``tokens >= min(cost, depth)``; then tokens may become negative."""
    one = bucket(10, 5)
    full = START + SECOND // 2
    assert not one.take(full - 1, 20 * MICRO)
    assert one.take(full, 20 * MICRO)
    assert one.tokens == -15 * MICRO
    assert one.ready_in(full, MICRO) == 16 * SECOND // 10


def test_a_new_rate_refills_at_the_old_one_and_cuts_to_the_new_depth() -> None:
    """Limits 5.1: setting a new rate first refills at the old one, then cuts tokens to the new depth."""
    one = bucket(10, 50)
    one.set(START + 2 * SECOND, micros(1), micros(5))
    assert one.tokens == 5 * MICRO
    one.take(START + 2 * SECOND, 5 * MICRO)
    one.set(START + 3 * SECOND, micros(100), micros(50))
    assert one.tokens == MICRO


def test_after_a_pause_no_more_than_the_depth_may_go() -> None:
    """Limits D16: tokens refill at most to the depth, however long the process was stopped."""
    one = bucket(1000, 5)
    late = START + 3600 * SECOND
    assert sum(one.take(late, MICRO) for _ in range(100)) == 5


def test_a_clock_that_was_read_earlier_brings_in_nothing() -> None:
    """Foundation F9: two readings of one clock may be compared in the wrong order; that takes nothing away and gives nothing."""
    one = bucket(10, 5)
    one.refill(START + SECOND)
    held = one.tokens
    one.refill(START)
    assert one.tokens == held
    assert one.filled_at == START + SECOND


def test_without_a_rate_nothing_is_ever_ready() -> None:
    """Limits 5.1: a worker that was told nothing yet waits."""
    one = Bucket(START)
    assert one.ready_in(START + SECOND, MICRO) == NEVER
    assert not one.take(START + 1000 * SECOND, 1)


def test_without_a_rate_nothing_goes_not_even_what_is_left() -> None:
    """Limits 5.1, RL4: past the end of what it was told a worker uses nothing; a cost above the depth would never be paid, too."""
    one = bucket(10, 5)
    one.refill(START + SECOND)
    one.set(START + SECOND, 0, DEPTH_MIN)
    assert not one.admits(START + SECOND, 1)
    assert not one.admits(START + 100 * SECOND, 20 * MICRO)
    one.set(START + 100 * SECOND, micros(10), micros(5))
    assert one.take(START + 101 * SECOND, 5 * MICRO)


def test_what_a_smaller_depth_forgave_is_paid_before_a_cost_above_it() -> None:
    """H275: 50 went at once, then the depth fell to 1; a cost of 10 does not go on top of the 50 before the rate brought them in."""
    one = bucket(100, 50)
    full = START + SECOND
    assert one.take(full, 50 * MICRO)
    one.set(full, micros(100), DEPTH_MIN)
    assert one.forgiven == 49 * MICRO * SECOND
    assert one.take(full + SECOND // 100, MICRO)
    soon = full + 2 * SECOND // 100
    assert one.tokens < MICRO
    assert not one.take(soon, 10 * MICRO)
    assert one.ready_in(soon, 10 * MICRO) == 49 * SECOND // 100
    assert one.take(soon + 49 * SECOND // 100, 10 * MICRO)


def test_amounts_become_whole_micro_units() -> None:
    """Limits 10: R and cost are floats, internally micro-units. A rate is never rounded up, a cost never down to nothing."""
    assert micros(0.29) == 290_000
    assert micros(1e-7) == 0
    assert cost_micros(1e-9) == 1
    assert cost_micros(0.1) == 100_000
    assert (nanos(1.5), nanos(inf), nanos(-inf)) == (1_500_000_000, NEVER, 0)


@dataclass
class Watched:
    """A bucket, with all that RL8 asks about its past: in micro-units, and their thousand millionth parts."""

    bucket: Bucket
    now: int = START
    brought: int = 0  # the rate over time, in parts
    went: list[tuple[int, int, int]] = field(default_factory=list)  # before each admission: brought, depth; and the cost

    def wait(self, nanoseconds: int) -> None:
        self.now += nanoseconds
        self.brought += self.bucket.rate * nanoseconds

    def take(self, cost: int) -> None:
        if self.bucket.take(self.now, cost):
            self.went.append((self.brought, self.bucket.depth, cost))

    def take_in_a_hurry(self, cost: int) -> None:
        """As the client does it: two comparisons and one subtraction."""
        if self.now < self.bucket.settled_until and cost <= self.bucket.tokens:
            self.bucket.tokens -= cost
            self.went.append((self.brought, self.bucket.depth, cost))
        else:
            self.take(cost)

    def check(self) -> None:
        """RL8, for every interval that begins just before one admission and ends just after another one; no other one is sharper."""
        for first, (brought_at_start, depth, _cost) in enumerate(self.went):
            admitted, largest = 0, 0
            for brought, _depth, cost in self.went[first:]:
                admitted, largest = admitted + cost, max(largest, cost)
                assert admitted * SECOND <= brought - brought_at_start + max(depth, largest) * SECOND


RATES = st.one_of(st.integers(0, 3 * MICRO), st.integers(0, 10**15), st.integers(5 * MICRO, 500 * MICRO), st.just(0))
DEPTHS = st.one_of(st.integers(DEPTH_MIN, 60 * MICRO), st.just(DEPTH_MIN))
COSTS = st.one_of(st.integers(1, 3 * MICRO), st.integers(MICRO, 80 * MICRO), st.just(MICRO))
WAITS = st.one_of(st.integers(0, 1000), st.integers(0, SECOND), st.integers(SECOND, 100 * SECOND))
STEPS = st.one_of(
    st.tuples(st.just("set"), RATES, DEPTHS),
    st.tuples(st.sampled_from(["take", "hurry"]), COSTS, st.integers(1, 20)),
    st.tuples(st.just("wait"), WAITS, st.just(0)),
    st.tuples(st.just("until"), COSTS, st.just(0)),
)


def play(steps: Iterable[tuple[str, int, int]]) -> Watched:
    """What a test's steps do to a bucket that holds 20 and has taken no cost yet."""
    watched = Watched(Bucket(START))
    watched.bucket.set(START, 10 * MICRO, 20 * MICRO)
    watched.wait(2 * SECOND)
    for kind, first, second in steps:
        if kind == "set":
            watched.bucket.set(watched.now, first, second)
        elif kind == "wait":
            watched.wait(first)
        elif kind == "until":
            ready = watched.bucket.ready_in(watched.now, first)
            if ready < 1000 * SECOND:
                watched.wait(max(0, ready - 1))
                assert ready == 0 or not watched.bucket.admits(watched.now, first)
                watched.wait(min(1, ready))
                assert watched.bucket.admits(watched.now, first)
                watched.take(first)
        else:
            for _ in range(second):
                (watched.take if kind == "take" else watched.take_in_a_hurry)(first)
    return watched


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, min_size=5, max_size=40))
def test_no_schedule_of_rates_depths_and_costs_admits_more(steps: list[tuple[str, int, int]]) -> None:
    """RL8: in every interval, admitted <= the rate over time + max(depth at its start, largest cost); exactly, in whole numbers."""
    watched = play(steps)
    watched.check()
    assert watched.bucket.admitted == sum(cost for _brought, _depth, cost in watched.went)


def random_steps(chance: Random, count: int) -> Iterator[tuple[str, int, int]]:
    """Rates, depths and costs of a limit that is in use: most of them meet."""
    for _ in range(count):
        kind = chance.choice(["set", "take", "hurry", "wait", "until"])
        if kind == "set":
            yield kind, chance.randrange(100) * MICRO, chance.randrange(DEPTH_MIN, 50 * MICRO)
        elif kind == "wait":
            yield kind, int(SECOND * chance.random() ** 4), 0
        else:
            yield kind, chance.choice([MICRO, chance.randrange(1, 5 * MICRO), chance.randrange(1, 90 * MICRO)]), chance.randrange(1, 9)


@pytest.mark.parametrize("seed", range(40))
def test_a_limit_in_use_admits_no_more_under_any_schedule(seed: int) -> None:
    """RL8, with long runs in which most costs are admitted; without H275 most of these runs show more."""
    watched = play(random_steps(Random(seed), 150))
    watched.check()
    assert len(watched.went) > 30
    assert any(cost > depth for _brought, depth, cost in watched.went)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(WAITS, COSTS), min_size=1, max_size=30), RATES, DEPTHS)
def test_a_caller_in_a_hurry_gets_what_one_with_time_gets(asked: list[tuple[int, int]], rate: int, depth: int) -> None:
    """Limits 5.1: ``try_acquire`` compares twice and subtracts; what it admits is what the rule admits."""
    slow, quick = Watched(Bucket(START)), Watched(Bucket(START))
    for one in (slow, quick):
        one.bucket.set(START, rate, depth)
    for waited, cost in asked:
        slow.wait(waited)
        quick.wait(waited)
        slow.take(cost)
        quick.take_in_a_hurry(cost)
        assert len(slow.went) == len(quick.went)
    slow.bucket.refill(slow.now + SECOND)
    quick.bucket.refill(quick.now + SECOND)
    assert slow.bucket.tokens == quick.bucket.tokens


@pytest.mark.parametrize("cost", [MICRO, 200 * MICRO])
def test_a_bucket_that_is_used_as_soon_as_it_may_be_admits_the_whole_rate(cost: int) -> None:
    """Limits 5.1: nothing that the rate brings in is lost while there is a waiter, whatever the cost."""
    watched = Watched(bucket(10, 5))
    while watched.now < START + 200 * SECOND:
        watched.wait(watched.bucket.ready_in(watched.now, cost))
        watched.take(cost)
    assert watched.bucket.admitted >= 200 * 10 * MICRO - cost
