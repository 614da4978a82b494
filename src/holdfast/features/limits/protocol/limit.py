"""One limit at one member: from what its workers want to what they may use together.  Spec: limits 5.2, 5.3, 5.6, D8, D9, D12, D22.

Once an epoch: ``measure`` asks the outlet and says what this member reports, ``estimate`` turns what gossip knows into the aggregate, and
``target`` is T. What may be used of it is said by the policy; ``allot`` tells the outlet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from holdfast.features.limits.protocol import shares
from holdfast.features.limits.protocol.config import UNIT, LimitsConfig, key_of, micro
from holdfast.features.limits.protocol.demand import Demand, RequestDemand, UserDemand
from holdfast.features.limits.protocol.outlet import NOTHING, Allotment, Outlet, Wants
from holdfast.features.limits.protocol.specs import Spec

Estimate = Callable[[int], float]  # of a portion: the aggregate as it is known now, cost per second

GROWN = 1.1  # times what it reported: a member that wants more than that is saturated at once, if it is
STEADY = 3  # epochs for which a member that wanted more has to be satisfied by what it gets
SLACK = 1e-9  # relative: what floats lose when a share is split among workers and summed again


class Limit:
    """What this member knows and wants of one limit. It is there for every limit of the group, whether workers use it or not."""

    def __init__(self, name: str, spec: Spec, config: LimitsConfig) -> None:
        self.name, self.spec, self._config = name, spec, config
        self.key = key_of(name)  # of its quota, and of its portion under share "demand"
        self.many, self.small = key_of(name, "n"), key_of(name, "u")  # portions N and U of maxmin
        self.outlet: Outlet | None = None
        self._ending: list[Outlet] = []  # closed, and what their workers were told may be in use
        self._demand: Demand | None = None  # None: there is no user
        self._user = UserDemand()
        self.wants = Wants(0.0, 0.0)
        self.want = 0.0
        self.saturated = False
        self._levels: deque[float] = deque(maxlen=STEADY)  # lambda of the last epochs
        self._held_level = 0.0  # lambda when it was satisfied last, which counts for some epochs (H269)
        self._held_epochs = 0
        self._least = 0.0  # what it would report, in the last epoch
        self._satisfied = 1.0  # part of this member that reports what it wants; the rest reports its weight
        self.values: dict[int, int] = {}  # portions as this member wants them, micro-units
        self.aggregates: dict[int, float] = {}  # A, or U and N
        self._former: dict[int, float] = {}  # A0: of the former instance
        self._round = self._rounds = 0  # of blending
        self.target = 0.0  # T
        self.used = 0.0  # L
        self.allotted = NOTHING
        self.starved_since: float | None = None
        self.is_starved = False

    # Users.

    @property
    def is_open(self) -> bool:
        return self.outlet is not None

    @property
    def told(self) -> float:
        """The most that the workers here may use now, by what they were told."""
        self._ending = [outlet for outlet in self._ending if outlet.told > 0]
        return sum(outlet.told for outlet in self._ending) + (0.0 if self.outlet is None else self.outlet.told)

    @property
    def is_free(self) -> bool:
        """The workers use no more than what is left for them (D22)."""
        return self.told <= self.used * (1 + SLACK)

    def open(self, outlet: Outlet, demand: Demand | None) -> None:
        config = self._config
        self._ending = [ending for ending in self._ending if ending is not outlet]
        self.outlet = outlet
        self._demand = demand or RequestDemand(config.alpha_up, config.alpha_down, config.clears_in)
        self.allotted = NOTHING

    def close(self) -> None:
        """Nothing is wanted here any more; what the workers were told counts until they are known to use nothing."""
        if self.outlet is not None:
            self._ending.append(self.outlet)
            self.outlet.allot(NOTHING)
        self.outlet = self._demand = None
        self.wants, self.want, self.saturated = Wants(0.0, 0.0), 0.0, False

    @property
    def keys(self) -> tuple[int, ...]:
        """The portions that estimate it."""
        return (self.small, self.many) if self.spec.is_maxmin else (self.key,)

    # Demand.

    def measure(self, elapsed: float, whole: float, size: int) -> None:
        """What this member reports from now on: ``values``."""
        if self._demand is None or self.outlet is None or self.spec.removed:
            self.values = dict.fromkeys(self.keys, 0)
            return
        self.wants = wants = self.outlet.wants()
        demand = self._user if wants.user is not None else self._demand
        self.want = demand.look(wants, elapsed, self.used, even=whole / size)
        if not self.spec.is_maxmin:
            self.values = {self.key: micro(self.want)}
            return
        weight = min(shares.WEIGHT_MAX, max(shares.WEIGHT_MIN, wants.weight))
        least = shares.small_want(whole, size, self.want, headroom=self.spec.headroom, reserve=self.spec.reserve)
        self._judge(self._level(whole, size, weight), least, size)
        part = self._satisfied
        self.values = {self.small: micro(part * least), self.many: micro((1 - part) * weight)}

    def _judge(self, level: float, least: float, size: int) -> None:
        """Is it saturated? A change of side moves what gossip knows here and at others by much more than the sum (D8), until it is mixed,
        and others would change sides in turn. So a member goes over step by step (H269); one that wants much more than before, at once."""
        headroom, steps = self.spec.headroom, self._config.blends(size)
        self._levels.append(level)
        self._held_epochs = max(0, self._held_epochs - 1)
        if not self.saturated:
            self.saturated = shares.is_saturated(self.want, headroom, max(level, self._held_level if self._held_epochs else 0.0))
        elif len(self._levels) == STEADY and not shares.is_saturated(self.want, headroom, min(self._levels)):
            self.saturated = False
            self._held_level, self._held_epochs = min(self._levels), 2 * steps
        if not self.saturated:
            self._satisfied = min(1.0, self._satisfied + 1 / steps)
        elif least > GROWN * self._least:
            self._satisfied = 0.0
        else:
            self._satisfied = max(0.0, self._satisfied - 1 / steps)
        self._least = least

    # The aggregate.

    def estimate(self, current: Estimate) -> None:
        """Once an epoch: A as it is known now, blended with what it was before the view changed (D9)."""
        x = self._round / self._rounds if self._round < self._rounds else 1.0
        self._round += 1
        for key in self.keys:
            known = current(key)
            before = self._former.get(key)
            if before is not None and before < self.values.get(key, 0) / UNIT:
                before = None  # It cannot be right: this member alone wants more (H286).
                del self._former[key]
            self.aggregates[key] = known if before is None else before * (1 - x * x) + known * x * x
        if x == 1.0:
            self._former = {}

    def begin(self, former: int, size: int) -> None:
        """A new instance: what was known counts for less and less; scaled when the view grew, or a merge would double every share (D9)."""
        grown = max(1.0, size / former) if former else 1.0
        self._levels.clear()
        self._held_epochs = 0
        self._former = {key: known * grown for key, known in self.aggregates.items()}
        self._round, self._rounds = 0, self._config.blends(size)

    def forget(self) -> None:
        """Panic: what was known of the others is worth nothing (5.7)."""
        self.aggregates, self._former = {}, {}

    def aim(self, whole: float, size: int, reported: Mapping[int, int]) -> None:
        """T: what this member should use."""
        if not self.is_open:
            self.target = 0.0
        elif self.spec.is_maxmin:
            weight = min(shares.WEIGHT_MAX, max(shares.WEIGHT_MIN, self.wants.weight))
            level = self._level(whole, size, weight)
            if self._held_epochs:
                level = max(level, self._held_level)
            small, many = self.aggregates.get(self.small, 0.0), self.aggregates.get(self.many, 0.0)
            headroom, reserve = self.spec.headroom, self.spec.reserve
            self.target = shares.maxmin_target(whole, size, self.want, level, small, many, headroom=headroom, reserve=reserve)
        else:
            aggregate, report = self.aggregates.get(self.key, 0.0), reported.get(self.key, 0) / UNIT
            self.target = shares.demand_target(whole, size, report, aggregate, self.spec.reserve)

    def _level(self, whole: float, size: int, weight: float) -> float:
        """Lambda; an even split where nothing is known of the others."""
        if not self.aggregates:
            return whole / size * weight
        return shares.level(whole, size, self.aggregates.get(self.small, 0.0), self.aggregates.get(self.many, 0.0), weight)

    # What is told.

    def allot(self, used: float, until: float, after: float, ends_at: float, rate: float) -> None:
        """L, and until when."""
        self.used = used
        if self.outlet is None:
            return
        allotment = Allotment(used, until, after, ends_at, rate, self.spec.depth)
        if allotment != self.allotted:
            self.allotted = allotment
            self.outlet.allot(allotment)

    def look_for_starving(self, now: float, after: float, least: float) -> float | None:
        """Seconds for which callers have waited with next to nothing to give them; told once, None otherwise (9)."""
        if self.wants.waiting <= 0 or self.used >= least:
            self.starved_since, self.is_starved = None, False
            return None
        if self.starved_since is None:
            self.starved_since = now
        if self.is_starved or now - self.starved_since < after:
            return None
        self.is_starved = True
        return now - self.starved_since
