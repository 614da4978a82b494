"""What processes count of a limit for people.  Spec: limits 9; H351."""

from __future__ import annotations

from math import inf, nan

import pytest

from holdfast.features.limits.bucket import MICRO, SECOND, Bucket
from holdfast.features.limits.calls import Tally
from holdfast.features.limits.tally import WAITS, Counting, Totals


def filled() -> Bucket:
    """10/s, up to 5, since a second."""
    bucket = Bucket(0)
    bucket.set(0, 10 * MICRO, 5 * MICRO)
    bucket.refill(SECOND)
    return bucket


def test_what_went_is_known_from_the_bucket() -> None:
    """Limits 9: admitted cost and tokens, without a word of those that took it: `try_acquire` counts nothing."""
    bucket, counting = filled(), Counting()
    bucket.tokens -= 3 * MICRO  # As `try_acquire` does.
    assert counting.told(bucket, SECOND) == Tally(admitted=3.0, tokens=2.0)
    assert counting.told(bucket, SECOND + SECOND // 10) == Tally(tokens=3.0)
    assert bucket.filled_at == SECOND  # Looking brings nothing in.
    assert counting.told(bucket, 60 * SECOND).tokens == 5.0


def test_those_that_waited_are_counted_once() -> None:
    """Limits 9: waited cost, how long they waited, who waits now; those that waited in vain are in neither."""
    bucket, counting, totals = filled(), Counting(), Totals()
    for _ in range(3):
        counting.begin()
    counting.end(2 * MICRO, SECOND // 2, went=True)
    counting.end(MICRO, 9 * SECOND, went=False)
    bucket.tokens -= 2 * MICRO
    told = counting.told(bucket, SECOND)
    assert (told.admitted, told.waited, told.seconds, told.waiters) == (2.0, 2.0, 0.5, 1)
    totals.add(told)
    totals.add(counting.told(bucket, SECOND))
    assert (totals.admitted, totals.waited, totals.waits.count, totals.waits.sum) == (2.0, 2.0, 1, 0.5)
    assert dict(zip(WAITS, totals.waits.below, strict=False))[0.5] == 1


@pytest.mark.parametrize(
    "nonsense",
    [Tally(nan, inf, nan), Tally(-1.0, -1.0), Tally(waits=(1, 2)), Tally(waits=(-1,) * (len(WAITS) + 1), seconds=3.0)],
)
def test_a_process_that_tells_nonsense_spoils_nothing(nonsense: Tally) -> None:
    """docs/http.md: counters never fall, and stay numbers."""
    totals = Totals()
    totals.add(Tally(1.0, 1.0, 2.0, (1,) * (len(WAITS) + 1)))
    totals.add(nonsense)
    assert (totals.admitted, totals.waited, totals.waits.sum, totals.waits.count) == (1.0, 1.0, 2.0, len(WAITS) + 1)
