"""The measured c: how many lists lacked a live member lately, as far as this member heard.  Spec: gossip 5.11, D4; paper 004 (c).

A member that held another one to be dead by mistake tells it so (``Missed``). The one that was missing counts who
tells it, by buckets of time, and the largest count of the window spreads with hints and tables as (value, seconds
that it still counts), so no clock is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import floor, inf
from typing import NamedTuple

from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.facts import CBound
from holdfast.features.gossip.protocol.messages import FRONT_MAX, Missed, MissedAck, Observation
from holdfast.host import Host, NodeId, Timer
from holdfast.kit.phase import Call, Questions

TRIES = 20  # with 20 % loss on each of four hops one try in six is answered (H331)
TRY_EVERY = 1.0  # seconds
SLACK = 1.0  # seconds that the report may have been under way
SAME_EXPIRY = 5.0  # seconds: a pair that expires no more than so much earlier counts as one that expires as late
OPEN_MAX = 32  # reports under way; the others wait their turn, so that a partition that heals does not send hundreds in one callback


class Kept(NamedTuple):
    """An observation, on the own clock."""

    value: int
    expires: float


class MeasuredC:
    """The front of observations, and who reported what to this member."""

    def __init__(self, host: Host, config: GossipConfig, counts: Counter[str], *, members_max: int, n: Callable[[], int]) -> None:
        self._host, self._config, self._counts, self._members_max, self._n = host, config, counts, members_max, n
        self.front: list[Kept] = []
        self.reports: dict[int, set[str]] = {}  # bucket -> who lacked this member then
        self._turbulent_at = -inf
        self._told = 0

    def on_missed(self, source: NodeId, message: Missed) -> None:
        """``source`` did not list this member for so long, until just now."""
        self._host.send(source, MissedAck(message.serial))
        config, now = self._config, self._host.now
        self.note_turbulence()
        first = floor((now - min(message.ago, config.window) - SLACK) / config.bucket)
        last = floor(now / config.bucket)
        for bucket in range(first, last + 1):
            names = self.reports.setdefault(bucket, set())
            if len(names) < max(self._n(), 1) or source.name in names:
                names.add(source.name)
            else:
                self._counts["reports_full"] += 1
        oldest = floor((now - config.window) / config.bucket)
        for bucket in [bucket for bucket in self.reports if bucket < oldest]:
            del self.reports[bucket]
        self.push(Observation(max(map(len, self.reports.values())), config.window))

    def push(self, seen: Observation) -> None:
        """Take in an observation, own or of another member."""
        if seen.value > self._members_max or seen.ttl > self._config.window + SLACK:
            self._counts["refused_c"] += 1
            return
        now = self._host.now
        new = Kept(seen.value, now + min(seen.ttl, self._config.window))
        self._expire()
        if seen.value <= 0 or any(each.value >= new.value and each.expires >= new.expires - SAME_EXPIRY for each in self.front):
            return
        kept = [each for each in self.front if not (new.value >= each.value and new.expires >= each.expires)]
        self.front = sorted([*kept, new], reverse=True)[:FRONT_MAX]
        self._tell()

    def note_turbulence(self) -> None:
        """Note that a report was sent or received."""
        self._turbulent_at = self._host.now

    @property
    def measured(self) -> int:
        self._expire()
        return self.front[0].value if self.front else 0

    @property
    def turbulent(self) -> bool:
        return self._host.now - self._turbulent_at < self._config.bucket

    def hint(self) -> Observation | None:
        """The largest live observation, for a probe."""
        if not self.front:
            return None
        self._expire()
        return self._said(self.front[0]) if self.front else None

    def said(self) -> tuple[Observation, ...]:
        """All of them, for a table."""
        self._expire()
        return tuple(self._said(each) for each in self.front)

    def _said(self, kept: Kept) -> Observation:
        return Observation(kept.value, kept.expires - self._host.now)

    def _expire(self) -> None:
        now = self._host.now
        if self.front and min(each.expires for each in self.front) <= now:
            self.front = [each for each in self.front if each.expires > now]
            self._tell()

    def _tell(self) -> None:
        value = self.front[0].value if self.front else 0
        if value != self._told:
            self._told = value
            self._host.emit(CBound(value))


class Reports:
    """Tells members that they were missing here, a few at a time."""

    def __init__(self, host: Host, measured: MeasuredC, counts: Counter[str], *, members_max: int) -> None:
        self._host, self._measured, self._counts, self._members_max = host, measured, counts, members_max
        self._questions = Questions()
        self._waiting: dict[NodeId, float] = {}  # whom to tell, and since when it was missing
        self._open: dict[NodeId, Call] = {}
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._waiting) + len(self._open)

    def missed(self, life: NodeId, since: float) -> None:
        """Tell a member, which lives, that it was held to be dead here from ``since`` until now."""
        self._measured.note_turbulence()
        if len(self._waiting) >= self._members_max and life not in self._waiting:
            self._counts["reports_full"] += 1
            return
        self._waiting[life] = min(since, self._waiting.get(life, since))
        if self._timer is None:
            self._timer = self._host.after(0.0, self._on_turn)

    def on_ack(self, source: NodeId, message: MissedAck) -> None:
        self._questions.answer(message.serial, source, message)

    def stop(self) -> None:
        for call in self._open.values():
            call.cancel()
        self._open.clear()
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_turn(self) -> None:
        self._timer = None
        while self._waiting and len(self._open) < OPEN_MAX:
            life = next(iter(self._waiting))
            since = self._waiting.pop(life)
            self._begin(life, self._host.now - since)

    def _begin(self, life: NodeId, ago: float) -> None:
        def done(answer: object) -> None:
            self._counts["reports_unanswered"] += answer is None
            del self._open[life]
            if self._waiting and self._timer is None:
                self._timer = self._host.after(0.0, self._on_turn)

        if life in self._open:
            self._open[life].cancel()
        call = Call(
            self._host, self._questions, life, lambda serial: Missed(serial, max(0.0, ago)), every=TRY_EVERY, tries=TRIES, done=done
        )
        self._open[life] = call
        call.start()
