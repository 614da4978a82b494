"""One token bucket under any schedule of rates, depths, costs and times.  Spec: limits 5.1, 7 (RL8), D16.

The oracle keeps the integral of the rate and the sum of what was admitted, and for each instant at which an interval might begin how much
that interval may still admit. It knows nothing of how the bucket counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from fuzz.view_host import Menu, Misbehaved
from holdfast.features.limits.bucket import DEPTH_MIN, MICRO, NEVER, SECOND, Bucket
from holdfast.features.limits.lab.admitted import Admitted

LONG = 40 * SECOND


class BucketRun:
    """One bucket, one history."""

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.seed, self.random = seed, Random(seed)
        self.counts: Counter[str] = Counter()
        self._trace = trace
        self._now = self.random.choice((0, 10**9, 10**17))
        self._largest = self.random.choice((1, MICRO, 7 * MICRO, 500 * MICRO))  # cost of one request
        self._bucket = Bucket(self._now)
        self._watched = Admitted(self._now, DEPTH_MIN, self._largest)
        self._fastest = self.random.choice((10 * MICRO, 1000 * MICRO, 10**9 * MICRO))

    def play(self) -> None:
        menu = Menu(self.random, {
            self._pass: 10, self._take: 20, self._drain: 6, self._set: 6, self._wait: 6, self._fill: 1, self._go_back: 1,
        })  # fmt: skip
        menu.play(self.random.randint(50, 300))

    def _pass(self) -> None:
        self._now += self.random.choice((1, 999, 10**6, 10**8, SECOND, LONG)) * self.random.randint(1, 9) // 5
        self._note("time passes")

    def _cost(self) -> int:
        return self.random.randint(1, self._largest) if self.random.random() < 0.6 else self._largest

    def _take(self) -> None:
        cost = self._cost()
        admits = self._bucket.admits(self._now, cost)
        taken = self._bucket.take(self._now, cost)
        self._note(f"take {cost}: {taken}")
        if admits is not taken:
            self._fail(f"admits says {admits}, take says {taken}")
        if taken:
            self.counts["admitted"] += 1
            self._see(cost)

    def _drain(self) -> None:
        cost = self._cost()
        for _ in range(50):
            if not self._bucket.take(self._now, cost):
                break
            self.counts["admitted"] += 1
            self._see(cost)
        self._note(f"drained by {cost}")

    def _set(self) -> None:
        rate = self.random.choice((0, 1, self.random.randint(1, self._fastest), self._fastest))
        depth = self.random.choice((DEPTH_MIN, DEPTH_MIN, DEPTH_MIN + self.random.randint(0, 300 * MICRO)))
        self._bucket.set(self._now, rate, depth)
        self._watched.change(self._now, rate, depth)
        self.counts["changes"] += 1
        self._note(f"set {rate} {depth}")
        if self._bucket.tokens > depth:
            self._fail(f"5.1: {self._bucket.tokens} tokens above a depth of {depth}")

    def _wait(self) -> None:
        """Exactly until the bucket says that this cost may go; not earlier, and not later."""
        cost = self._cost()
        wait = self._bucket.ready_in(self._now, cost)
        if wait in (NEVER, 0):
            return
        self.counts["waited"] += 1
        self._now += wait - 1
        if self._bucket.admits(self._now, cost):
            self._fail(f"{cost} may go before {wait} ns have passed")
        self._now += 1
        self._note(f"waited {wait}")
        if not self._bucket.take(self._now, cost):
            self._fail(f"{cost} may not go after {wait} ns")
        self._see(cost)

    def _fill(self) -> None:
        """Left alone long enough it is full, not fuller, and any cost goes."""
        if self._bucket.rate == 0:
            return
        wait = self._bucket.ready_in(self._now, self._bucket.depth + 1)
        if wait > 10**18:
            return
        self._now += wait + LONG
        self._bucket.refill(self._now)
        if self._bucket.tokens != self._bucket.depth:
            self._fail(f"D16: {self._bucket.tokens} tokens after a long time, depth {self._bucket.depth}")
        self.counts["full"] += 1

    def _go_back(self) -> None:
        """A thread read the clock before another one: that brings nothing in (F9)."""
        tokens = self._bucket.tokens
        self._bucket.refill(self._now - self.random.randint(0, SECOND))
        if self._bucket.tokens > tokens and self._bucket.filled_at > self._now:
            self._fail("F9: it fills before its time")

    def _see(self, cost: int) -> None:
        excess = self._watched.admit(self._now, cost)
        if excess > 0:
            self._fail(f"RL8: {excess} parts of a micro-unit too much are admitted")

    def _note(self, what: str) -> None:
        if self._trace is not None:
            self._trace(f"{self._now}: {what}; {self._bucket.tokens} tokens")

    def _fail(self, what: str) -> None:
        raise Misbehaved(f"at {self._now} ns: {what}")
