"""Timers by due time, with lazy cancellation.  Spec: foundation F10 (due timers in order of their due time)."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from holdfast.net.host import DEAD_MIN, HostTimer, Timers


def run_due(timers: Timers, now: float) -> None:
    while (due_at := timers.next_due()) is not None and due_at <= now:
        timers.pop()()


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans())), st.integers(0, 20))
def test_due_timers_run_in_due_order_and_cancelled_ones_never(plan: list[tuple[int, bool]], now: int) -> None:
    """F10: due timers in order of their due time; equal ones in the order in which they were set."""
    timers, ran = Timers(), list[tuple[int, int]]()
    made = [timers.add(due, partial(ran.append, (due, i))) for i, (due, _) in enumerate(plan)]
    for timer, (_, cancelled) in zip(made, plan, strict=True):
        if cancelled:
            timer.cancel()
    run_due(timers, now)
    alive = [(due, i) for i, (due, cancelled) in enumerate(plan) if not cancelled]
    assert ran == sorted((due, i) for due, i in alive if due <= now)
    assert len(timers) == len(alive) - len(ran)


def test_a_heap_that_is_mostly_dead_is_compacted() -> None:
    """A timeout per request, cancelled by its answer, must not fill the memory until it would have been due."""
    timers = Timers()
    kept = timers.add(5.0, lambda: None)
    for i in range(10_000):
        timers.add(100.0 + i, lambda: None).cancel()
        assert timers.held <= 2 * DEAD_MIN
    assert len(timers) == 1
    assert timers.next_due() == kept.due_at == 5.0


def test_cancelling_twice_or_late_changes_nothing() -> None:
    """A timer is spent once: by running or by its first cancel."""
    timers, ran = Timers(), list[str]()
    first, second = timers.add(1.0, lambda: ran.append("first")), timers.add(2.0, lambda: ran.append("second"))
    first.cancel()
    first.cancel()
    run_due(timers, 3.0)
    second.cancel()
    assert (ran, len(timers), timers.held) == (["second"], 0, 0)


def test_a_callback_may_cancel_and_set_timers() -> None:
    """What a callback cancels does not run, even if it was due together; what it sets runs in its turn."""
    timers, ran = Timers(), list[str]()

    def first() -> None:
        ran.append("first")
        doomed.cancel()
        timers.add(1.5, lambda: ran.append("new"))

    timers.add(1.0, first)
    doomed: HostTimer = timers.add(1.0, lambda: ran.append("doomed"))
    timers.add(2.0, lambda: ran.append("last"))
    run_due(timers, 2.0)
    assert ran == ["first", "new", "last"]
