"""Time that passed while this process stood still.  Spec: gossip 5.8, F10, F11.

Who was away judges no member: the answers are in the socket, or were lost there. It waits a shortest suspicion anew,
and asks two members for what it missed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.facts import Overslept

AWAY_PERIODS = 2.0  # in T: so late is away
LATE_PERIODS = 0.5  # in T: so late a probe is not judged
SICKER_BY = 2  # Lifeguard's multiplier grows by so much


class PauseGuard:
    """Looked at by every timer that judges."""

    def __init__(self, core: Core, away: Callable[[], None]) -> None:
        """``away``: what the other parts do about it."""
        self._core, self._away = core, away
        self._handled_at = -inf

    def on_away(self, seconds: float) -> None:
        """The host says it first (F10)."""
        core = self._core
        if core.rules.pause_guard and core.active and seconds > AWAY_PERIODS * core.config.period:
            self._handled_at = core.host.now
            core.worsen(SICKER_BY)
            core.counts["overslept"] += 1
            core.emit(Overslept(seconds))
            self._away()

    def was_away(self) -> bool:
        """A timer came so late that this process was away, and the host has not said it. Then all that judges has been put off."""
        core = self._core
        late = core.host.late
        if late <= AWAY_PERIODS * core.config.period or not core.rules.pause_guard or core.host.now - late <= self._handled_at:
            return False
        self.on_away(late)
        return True

    def is_late(self) -> bool:
        """A timer came so late that what it would judge proves nothing."""
        return self._core.rules.pause_guard and self._core.host.late > LATE_PERIODS * self._core.config.period
