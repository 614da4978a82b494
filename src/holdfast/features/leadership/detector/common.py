"""Common-cause loss: how often does a heartbeat reach no monitor?  Spec: fast-detection 4 (c), D10; paper 002, section 6.2.

The watched knows which heartbeats it sent; its monitors say which of them did not come in time. A heartbeat that almost all of
them missed is an event. Independent losses alone make such events now and then; what is beyond that is common cause.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import ceil

from holdfast.features.leadership.detector.config import ROUNDING, FfdConfig

WINDOW = 5000  # settled heartbeats
PRIOR_WEIGHT = 1e4  # w0: c0 counts as much as so many heartbeats, until two events are seen
EVENTS_MIN = 2.0  # with so much beyond independence, what was measured counts alone
SHARE = 0.8  # of the reporters must miss a heartbeat, and at least two
BITS = 32  # of MONITOR-OK.missed
REPORTERS_MAX = 64
LOSS_PRIOR = 10.0  # a reporter's loss starts at p_new with the weight of so many heartbeats


class Reporter:
    """One monitor, as the watched sees its reports."""

    __slots__ = ("boot", "heartbeats", "missed", "since")

    def __init__(self, boot: int, since: int) -> None:
        self.boot, self.since = (
            boot,
            since,
        )  # its life, and the first heartbeat it is known to have heard: it cannot have missed earlier ones
        self.heartbeats = self.missed = 0.0  # settled ones

    def count(self, missed: bool) -> None:
        if self.heartbeats >= WINDOW:  # A link that changed is believed after a while.
            self.heartbeats, self.missed = self.heartbeats / 2, self.missed / 2
        self.heartbeats += 1
        self.missed += missed


class CommonCause:
    """The estimator of c, kept by the watched across its terms."""

    def __init__(self, config: FfdConfig) -> None:
        self._config = config
        self._reporters: dict[str, Reporter] = {}
        self._open: dict[int, dict[str, bool]] = {}  # seq -> reporter -> missed, until it is settled
        self._settled: deque[tuple[bool, float]] = deque(maxlen=WINDOW)  # event, and how likely independence makes it
        self._events = 0
        self._expected = 0.0
        self.refused = 0  # reporters beyond the limit

    @property
    def c(self) -> float:
        """What the watched publishes."""
        if self._config.common is not None:
            return self._config.common
        excess, settled = self._excess, len(self._settled)
        if excess >= EVENTS_MIN:
            return min(1.0, excess / settled)
        return (excess + self._config.c0 * PRIOR_WEIGHT) / (settled + PRIOR_WEIGHT)

    @property
    def settled(self) -> int:
        return len(self._settled)

    @property
    def _excess(self) -> float:
        return max(0.0, self._events - self._expected)

    def begin(self) -> None:
        """A term begins: what monitors report about former ones means nothing now. What was learned stays."""
        self._open.clear()
        for reporter in self._reporters.values():
            reporter.since = -1

    def sent(self, seq: int, among: Sequence[str]) -> None:
        """Heartbeat ``seq`` leaves; ``among`` are the monitors believed alive."""
        if self._config.common is None and seq not in self._open:
            self._open[seq] = {}
            self._settle(seq, among)

    def report(self, name: str, boot: int, seq: int, missed: int) -> None:
        """MONITOR-OK: bit j of ``missed`` set means that heartbeat seq - 1 - j did not come in time."""
        if self._config.common is not None:
            return
        reporter = self._reporter(name, boot)
        if reporter is None:
            return
        if reporter.since < 0:
            reporter.since = seq
        for index, answers in self._open.items():
            if reporter.since < index < seq and seq - index <= BITS:
                answers[name] = bool(missed >> (seq - 1 - index) & 1)

    def _reporter(self, name: str, boot: int) -> Reporter | None:
        known = self._reporters.get(name)
        if known is None:
            if len(self._reporters) >= REPORTERS_MAX:
                self.refused += 1
                return None
            known = self._reporters[name] = Reporter(boot, -1)
        elif known.boot != boot:
            known.boot, known.since = boot, -1
        return known

    def _settle(self, seq: int, among: Sequence[str]) -> None:
        """Heartbeats that all reported about, or that are so old that none will."""
        for index in [each for each in self._open if each < seq]:
            answers = self._open[index]
            if seq - index >= self._config.m_max or all(name in answers for name in among):
                del self._open[index]
                if len(answers) >= 2:
                    self._count(answers)

    def _count(self, answers: dict[str, bool]) -> None:
        least = max(2, ceil(SHARE * len(answers) - ROUNDING))
        event = sum(answers.values()) >= least
        if len(self._settled) == WINDOW:
            former, likely = self._settled[0]
            self._events -= former
            self._expected -= likely
        likely = tail([self._loss(name) for name in answers], least)
        self._settled.append((event, likely))
        self._events += event
        self._expected += likely
        for name, missed in answers.items():
            self._reporters[name].count(missed)

    def _loss(self, name: str) -> float:
        """What its own link loses: of all that it missed, the part that is not common cause; q = c + (1 - c) p."""
        reporter = self._reporters[name]
        missed = (reporter.missed + self._config.p_new * LOSS_PRIOR) / (reporter.heartbeats + LOSS_PRIOR)
        common = self._excess / max(1, len(self._settled))
        return max(0.0, missed - common) / (1 - common) if common < 1 else 0.0


def tail(losses: Sequence[float], least: int) -> float:
    """The chance that at least so many of independent losses happen at once (Poisson binomial)."""
    chances = [1.0] + [0.0] * len(losses)  # chances[k]: exactly k of those seen so far
    for number, loss in enumerate(losses, 1):
        for k in range(number, 0, -1):
            chances[k] = chances[k] * (1 - loss) + chances[k - 1] * loss
        chances[0] *= 1 - loss
    return sum(chances[least:])
