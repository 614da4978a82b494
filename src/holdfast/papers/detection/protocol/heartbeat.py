"""Heartbeats to all, one temporal detector per peer: the scheme that the paper improves on.

Spec: fast-detection 5 (freshness points), D11; paper 002, Proposition 4.1; foundation F10, F11 (the paused are not judges).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import floor, inf

from holdfast.errors import ConfigError
from holdfast.features.leadership.detector.detectors import PairDetector
from holdfast.features.leadership.detector.facts import DetectionFact
from holdfast.host import FANOUT_MAX, Address, Host, Message, NodeId, Timer, fingerprint
from holdfast.papers.detection.protocol.messages import Heartbeat, Hello

SEQ_MAX = 1 << 53  # an index stays exact as a float; at one per millisecond that is 285,000 years
AFTER_DIGITS = 6  # microseconds: no timer is more punctual
# Intervals during which the paused judge no peer: the next heartbeat is at most one interval away, and at most t_itv/8 on the road.
GRACE_INTERVALS = 1.5


class Silenced(DetectionFact, frozen=True):
    """A peer's heartbeats did not come in time."""

    peer: NodeId
    silent_for: float


class Heard(DetectionFact, frozen=True):
    """A peer spoke for the first time, or again after it was silenced."""

    peer: NodeId


class Subject:
    """What is known of the present life of one peer."""

    def __init__(self, life: NodeId, detector: PairDetector) -> None:
        self.life, self.detector = life, detector
        self.heard_at = -inf
        self.trusted = False


class HeartbeatDetector:
    """Says "I am alive" once per interval and notes who did not.

    ``late_timeout`` is t_lat: a timer that fires later than this finds that it was us who were stopped.
    """

    def __init__(
        self, host: Host, peers: Mapping[str, Address], *, interval: float, late_timeout: float, make: Callable[[], PairDetector]
    ) -> None:
        assert interval > 0
        assert late_timeout > 0
        self.host, self.interval, self.late_timeout = host, interval, late_timeout
        self.counts: Counter[str] = Counter()  # what was not believed: stranger, old_life, malformed, stale
        self._make = make
        self._addresses = {name: address for name, address in sorted(peers.items()) if name != host.me.name}
        if len(self._addresses) > FANOUT_MAX:
            raise ConfigError(
                f"peers: {len(self._addresses)} of them; accepted are up to {FANOUT_MAX}, because all are reached at once (F17)"
            )
        self._lives: dict[str, NodeId] = {}  # name -> the newest life that was heard of
        self._subjects: dict[str, Subject] = {}  # name -> that life, once it sent a heartbeat
        self._seq = -1
        self._judge_from = -inf
        self._backlog = False  # we read what waited while we were stopped
        self._beat: Timer | None = None
        self._judge: Timer | None = None

    @property
    def handles(self) -> Sequence[type[Message]]:
        return (Heartbeat, Hello)

    @property
    def fingerprint(self) -> bytes:
        return fingerprint(interval=self.interval)

    @property
    def trusted(self) -> tuple[NodeId, ...]:
        """The lives whose heartbeats come, by name."""
        return tuple(subject.life for _, subject in sorted(self._subjects.items()) if subject.trusted)

    @property
    def silenced(self) -> tuple[NodeId, ...]:
        """The lives whose heartbeats do not come any more, by name."""
        return tuple(subject.life for _, subject in sorted(self._subjects.items()) if not subject.trusted)

    def start(self) -> None:
        self._on_beat()

    def on_message(self, source: NodeId, message: Message) -> None:
        if source.name not in self._addresses:
            self.counts["stranger"] += 1
            return
        known = self._lives.get(source.name)
        if known is not None and source.boot < known.boot:
            self.counts["old_life"] += 1  # Said before its successor spoke: that life is over.
            return
        if source != known:
            self._lives[source.name] = source
            self._subjects.pop(source.name, None)
        if isinstance(message, Heartbeat):
            self._on_heartbeat(source, message)

    def on_away(self, seconds: float) -> None:
        """We were stopped: the silence is ours, and when the waiting heartbeats came is unknown (F10, F11)."""
        self._backlog = True
        self._begin_grace()

    def stop(self) -> None:
        for timer in (self._beat, self._judge):
            if timer is not None:
                timer.cancel()

    def _on_heartbeat(self, source: NodeId, message: Heartbeat) -> None:
        if not (0 <= message.seq < SEQ_MAX and 0 <= message.after <= self.interval):
            self.counts["malformed"] += 1
            return
        subject = self._subjects.get(source.name) or self._subjects.setdefault(source.name, Subject(source, self._make()))
        now = self.host.now
        if not subject.detector.arrived(message.seq, now - message.after, timed=not self._backlog):
            self.counts["stale"] += 1
            return
        subject.heard_at = now
        due = subject.detector.deadline()
        if not subject.trusted and now < due:  # One that was stale when it came says that the peer lived then.
            subject.trusted = True
            self.host.emit(Heard(source))
        if subject.trusted:
            self._arm(due)

    def _arm(self, due: float) -> None:
        """Judge then, or earlier if another peer is due earlier; a judge that finds nothing looks on."""
        due = max(due, self._judge_from)
        if self._judge is None or due < self._judge.due_at:
            if self._judge is not None:
                self._judge.cancel()
            self._judge = self.host.at(due, self._on_deadline)

    def _begin_grace(self) -> None:
        self._judge_from = self.host.now + GRACE_INTERVALS * self.interval

    def _on_beat(self) -> None:
        self._backlog = False  # Timers come after the datagrams that waited (F10).
        now = self.host.now
        # Always the next index: (i t_itv) / t_itv may round to just below i, and we would say i - 1 for ever.
        self._seq = max(self._seq + 1, floor(now / self.interval))
        after = min(max(0.0, round(now - self._seq * self.interval, AFTER_DIGITS)), self.interval)
        for name, address in self._addresses.items():
            life = self._lives.get(name)
            if life is None:
                self.host.send(address, Hello())
            else:
                self.host.send(life, Heartbeat(self._seq, after))
        self._beat = self.host.at((self._seq + 1) * self.interval, self._on_beat)

    def _on_deadline(self) -> None:
        self._judge = None
        if self.host.late > self.late_timeout:
            self._begin_grace()  # F11: we were stopped, and what our peers said meanwhile may still be on its way to us.
        now = self.host.now
        if now >= self._judge_from:
            self._silence(now)
        due = min((subject.detector.deadline() for subject in self._subjects.values() if subject.trusted), default=inf)
        if due < inf:
            self._arm(due)

    def _silence(self, now: float) -> None:
        for subject in self._subjects.values():
            if subject.trusted and subject.detector.deadline() <= now:
                subject.trusted = False
                self.host.emit(Silenced(subject.life, now - subject.heard_at))
