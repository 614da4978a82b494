"""How often a member speaks: always while there is news, rarely while there is none.  Spec: limits 5.3 step 7, D26.

Conserved values may rest: mass and estimates stay what they are while no member says anything.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.features.limits.protocol.config import QUIET_AFTER, QUIET_CHANGE, QUIET_EVERY, QUIET_STEADY


class Steady:
    """For how many epochs no value moved by more than 1 % from where it was when the last one did."""

    __slots__ = ("_before", "epochs")

    def __init__(self) -> None:
        self._before: dict[int, float] = {}
        self.epochs = 0

    def look(self, values: Mapping[int, float]) -> None:
        before = self._before
        if before.keys() == values.keys() and all(abs(value - before[key]) <= QUIET_CHANGE * before[key] for key, value in values.items()):
            self.epochs += 1
        else:
            self._before, self.epochs = dict(values), 0


class Pace:
    """Of one member, over all limits."""

    def __init__(self) -> None:
        self._demands, self._estimates = Steady(), Steady()
        self._epoch = 0
        self._was_quiet = False

    def look(self, demands: Mapping[int, float], estimates: Mapping[int, float]) -> None:
        """Once an epoch."""
        self._epoch += 1
        self._demands.look(demands)
        self._estimates.look(estimates)

    def wake(self) -> None:
        """A new instance, or anything else that all shall hear of."""
        self._demands, self._estimates = Steady(), Steady()

    def turns(self) -> bool:
        """It went quiet, or woke, since this was asked last."""
        before, self._was_quiet = self._was_quiet, self.is_quiet
        return before != self._was_quiet

    @property
    def is_quiet(self) -> bool:
        return self._demands.epochs >= QUIET_AFTER and self._estimates.epochs >= QUIET_STEADY

    def peers(self, fanout: int) -> int:
        """To how many it speaks in this epoch."""
        if not self.is_quiet:
            return fanout
        return 1 if self._epoch % QUIET_EVERY == 0 else 0
