"""Specs: which limits a group has, and with which numbers.  Spec: limits 5.10, 9 (penalize), 10; foundation F7, H268.

A table of the kit that all members share. The last writer wins, by (Lamport counter, name of the member); only ``remove`` deletes. A
version may carry a penalty that ends by itself: a process that met a 429 slows the whole fleet for a while. Its end is an instant of the
wall clock, because it has to mean the same at members that hear of it later; one further ahead than a penalty may last does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from math import isfinite
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from holdfast.bounds import Name, Ratio
from holdfast.errors import ConfigError, shown
from holdfast.events import Event, LimitChanged, SpecConflict
from holdfast.features.limits.protocol.config import FLEET_MAX, LIMITS_MAX, NAME_BYTES_MAX, RATE_MAX, UNIT
from holdfast.host import Host
from holdfast.kit.exchange import Exchange
from holdfast.kit.rows import Rows

TOPIC = "limits"
TOMBSTONE_TTL = 3600.0  # a limit that was removed does not come back from a partition that lasted less (5.10)
LAMPORT_MAX = 1 << 40  # no honest group gets near it, and a lie leaves room above
PENALTY_MAX = 3600.0  # seconds: more is a change of the rate
POLICIES = ("fair", "strict", "exact")
SHARES = ("maxmin", "demand")
AGGREGATES = ("gossip", "central")
RATE_MIN = 1 / UNIT
BURST_MAX = RATE_MAX

Micro = Annotated[int, Meta(ge=0, le=int(RATE_MAX) * UNIT)]
Choice = Annotated[int, Meta(ge=0, le=2)]


class Spec(Struct, frozen=True, array_like=True):
    """One version of a limit. ``rate`` 0: it is removed."""

    rate: Micro  # micro-units per second
    burst: Micro
    lamport: Annotated[int, Meta(ge=1, le=LAMPORT_MAX)]
    by: Name
    policy: Choice = 0
    share: Choice = 0
    aggregate: Choice = 0
    fleet: Annotated[int, Meta(ge=0, le=FLEET_MAX)] = 0  # 0: auto
    reserve: Ratio = 0.05
    headroom: Annotated[float, Meta(ge=0.0, le=0.5)] = 0.02
    factor: Annotated[float, Meta(gt=0.0, le=1.0)] = 1.0  # of the rate, until ``until``
    until: Annotated[float, Meta(ge=0.0, le=1e12)] = 0.0  # wall clock

    @property
    def removed(self) -> bool:
        return self.rate == 0

    @property
    def is_fair(self) -> bool:
        return POLICIES[self.policy] == "fair"

    @property
    def is_strict(self) -> bool:
        return POLICIES[self.policy] == "strict"

    @property
    def is_exact(self) -> bool:
        return POLICIES[self.policy] == "exact"

    @property
    def is_maxmin(self) -> bool:
        return SHARES[self.share] == "maxmin"

    @property
    def is_central(self) -> bool:
        return AGGREGATES[self.aggregate] == "central"

    def is_penalized(self, wall: float) -> bool:
        return wall < self.until <= wall + PENALTY_MAX

    def rate_at(self, wall: float) -> float:
        """R, cost per second."""
        return self.rate / UNIT * (self.factor if self.is_penalized(wall) else 1.0)

    @property
    def depth(self) -> float:
        """B, in cost."""
        return self.burst / UNIT


def make(
    rate: float,
    burst: float,
    *,
    policy: str = "fair",
    share: str = "maxmin",
    aggregate: str = "gossip",
    fleet: int = 0,
    reserve: float = 0.05,
    headroom: float = 0.02,
    d_min: float = 1.0,
) -> Spec:
    """What a user asks for, without author or version. Raises ``ConfigError`` naming the field."""
    _check_range("rate", rate, RATE_MIN, RATE_MAX)
    _check_range("burst", burst, d_min, BURST_MAX)
    _check_range("reserve", reserve, 0.0, 1.0)
    _check_range("headroom", headroom, 0.0, 0.5)
    for field, value, accepted in (("policy", policy, POLICIES), ("share", share, SHARES), ("aggregate", aggregate, AGGREGATES)):
        if value not in accepted:
            raise ConfigError(f"{field}: {shown(value)}; accepted are {', '.join(accepted)}")
    if not 0 <= fleet <= FLEET_MAX:
        raise ConfigError(f"fleet: {shown(fleet)}; accepted are 1 to {FLEET_MAX}, or auto")
    if policy != "fair" and fleet == 0:
        raise ConfigError(f"fleet: policy {shown(policy)} needs the number of members that it is divided for; auto is for policy fair")
    return Spec(
        round(rate * UNIT),
        round(burst * UNIT),
        1,
        "",
        POLICIES.index(policy),
        SHARES.index(share),
        AGGREGATES.index(aggregate),
        fleet,
        reserve,
        headroom,
    )


class Specs:
    """The limits of the group, as known here. Listeners hear of every version that begins to count."""

    def __init__(self, host: Host, exchange: Exchange) -> None:
        self._host = host
        self._rows: Rows = exchange.rows(TOPIC, newest, gone=_gone, valid=valid, tombstone_ttl=TOMBSTONE_TTL)
        self._specs: dict[str, Spec] = {}
        self._listeners: list[Callable[[str, Spec | None, Spec], None]] = []
        self.counts: Counter[str] = Counter()  # too_many, conflicts
        self.told: Callable[[Event], None] = host.emit
        self._rows.on_change(self._on_row)

    def __len__(self) -> int:
        return len(self._specs)

    def get(self, name: str) -> Spec | None:
        return self._specs.get(name)

    def items(self) -> Iterator[tuple[str, Spec]]:
        return iter(sorted(self._specs.items()))

    def on_change(self, listener: Callable[[str, Spec | None, Spec], None]) -> None:
        """Called with the name, the version before (None: there was none) and the one that counts now."""
        self._listeners.append(listener)

    def offer(self, name: str, wanted: Spec) -> Spec:
        """A process that starts names its limit: it is created, or stays as it is in the group (then another rate is a conflict)."""
        known = self._specs.get(name)
        if known is None:
            return self.set(name, wanted)
        if known.rate != wanted.rate:
            self._conflict(name, known, wanted)
        return known

    def set(self, name: str, wanted: Spec) -> Spec:
        """These numbers count from now on, whatever was there; a penalty that runs goes on."""
        check_name(name)
        former = self._version(name)
        if (former is None or former.removed) and len(self._specs) >= LIMITS_MAX:
            raise ConfigError(f"limit {shown(name)} would be number {len(self._specs) + 1}; a group has at most {LIMITS_MAX}")
        if former is not None and not former.removed and former.is_penalized(self._host.wall()):
            wanted = replace(wanted, factor=former.factor, until=former.until)
        return self._put(name, former, wanted)

    def change(self, name: str, *, rate: float | None = None, burst: float | None = None, fleet: int | None = None) -> Spec:
        """Another version of a limit that is there. Raises ``ConfigError`` if it is not."""
        known = self._known(name)
        changed = make(
            known.rate / UNIT if rate is None else rate,
            known.depth if burst is None else burst,
            policy=POLICIES[known.policy],
            share=SHARES[known.share],
            aggregate=AGGREGATES[known.aggregate],
            fleet=known.fleet if fleet is None else fleet,
            reserve=known.reserve,
            headroom=known.headroom,
        )
        return self.set(name, changed)

    def penalize(self, name: str, seconds: float, factor: float = 0.5) -> Spec:
        """The whole fleet goes slower for a while. One that is worse than what runs already replaces it."""
        known = self._known(name)
        _check_range("seconds", seconds, 0.001, PENALTY_MAX)
        _check_range("factor", factor, 0.001, 1.0)
        until = self._host.wall() + seconds
        if known.is_penalized(self._host.wall()) and known.factor <= factor and known.until >= until:
            return known
        if known.is_penalized(self._host.wall()):
            factor, until = min(factor, known.factor), max(until, known.until)
        return self._put(name, known, replace(known, factor=factor, until=until))

    def remove(self, name: str) -> None:
        """Nothing is limited by it any more, anywhere. Raises ``ConfigError`` if there is no such limit."""
        known = self._known(name)
        self._put(name, known, replace(known, rate=0))

    def _known(self, name: str) -> Spec:
        known = self._specs.get(name)
        if known is None:
            raise ConfigError(f"limit {shown(name)}: there is no such limit in this group")
        return known

    def _version(self, name: str) -> Spec | None:
        raw = self._rows.raw(name)
        return None if raw is None else _DECODE(raw)

    def _put(self, name: str, former: Spec | None, wanted: Spec) -> Spec:
        lamport = 1 if former is None else former.lamport + 1
        if lamport > LAMPORT_MAX:
            raise ConfigError(f"limit {shown(name)}: it was changed {LAMPORT_MAX} times, or a member lied; use another name")
        spec = replace(wanted, lamport=lamport, by=self._host.me.name)
        self._rows.set(name, msgspec.msgpack.encode(spec))
        return spec

    def _on_row(self, name: str, before: bytes | None, now: bytes) -> None:
        known = None if before is None else _DECODE(before)
        spec = _DECODE(now)
        if known is not None and known.lamport == spec.lamport and known.by != spec.by and known.rate != spec.rate:
            self._conflict(name, spec, known)
        listed = self._specs.get(name)
        if spec.removed:
            if listed is None:
                return
            del self._specs[name]
        elif listed is None and len(self._specs) >= LIMITS_MAX:
            self.counts["too_many"] += 1
            return
        else:
            self._specs[name] = spec
        self.told(LimitChanged(name, spec.rate_at(self._host.wall()), spec.depth, spec.by))
        for listener in tuple(self._listeners):
            listener(name, listed, spec)

    def _conflict(self, name: str, counts: Spec, refused: Spec) -> None:
        self.counts["conflicts"] += 1
        self.told(SpecConflict(name, counts.rate / UNIT, counts.by, refused.rate / UNIT))


def check_name(name: str) -> None:
    size = len(name.encode())
    if not 1 <= size <= NAME_BYTES_MAX:
        raise ConfigError(f"limit {shown(name)}: a name of {size} bytes; accepted are 1 to {NAME_BYTES_MAX}")


def newest(a: bytes, b: bytes) -> bytes:
    """The join: of two versions the larger (Lamport counter, author); of two of one author the removal, then the larger bytes."""
    return max(a, b, key=_rank)


def valid(value: bytes) -> bool:
    """A peer sent it: is it a version of a limit?"""
    try:
        spec = _DECODE(value)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return spec.removed or spec.is_fair or spec.fleet > 0


def _rank(value: bytes) -> tuple[int, str, bool, bytes]:
    spec = _DECODE(value)
    return spec.lamport, spec.by, spec.removed, value


def _gone(value: bytes) -> bool:
    return _DECODE(value).removed


def _check_range(field: str, value: float, low: float, high: float) -> None:
    if not (isfinite(value) and low <= value <= high):
        raise ConfigError(f"{field}: {shown(value)}; accepted are {low:g} to {high:g}")


_DECODE = msgspec.msgpack.Decoder(Spec).decode
