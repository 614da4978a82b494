"""What people are shown of limits: one look at the state of a member.  Spec: limits 9, 10."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.features.limits.protocol.config import QUOTA, UNIT, WEIGHT
from holdfast.features.limits.protocol.limit import Limit
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.limits.protocol.specs import AGGREGATES, POLICIES, SHARES
from holdfast.host import NodeId, ViewId, ViewState


class LimitLook(NamedTuple):
    """One limit, cost per second."""

    name: str
    rate: float  # R, as it counts now
    set_rate: float  # without a penalty
    burst: float
    policy: str
    share: str
    aggregation: str
    fleet: int  # n; 0: not known yet
    auto: bool  # n is the size of the largest view of late
    by: str  # who set these numbers
    version: int
    is_open: bool  # workers of this agent use it
    used: float  # L
    told: float  # what the workers may use by what they were told
    target: float  # T
    want: float
    waiting: float  # cost that waits here
    aggregate: float  # what all members want, as this one estimates it
    single: float  # R/n
    state: str  # "starting", "stable", "changing" or "panic"
    quota: float | None  # of an exact limit: what is held, in parts of 1/n
    starved: bool
    shared: float | None = (
        None  # what all members use of it, as the aggregate says: no more than this view may; None: there is no aggregate
    )


class LimiterLook(NamedTuple):
    """The member. Seconds count from now."""

    agreed: bool  # by views; else over the member list
    inst: ViewId | None
    size: int
    provisional: bool
    panic_for: float | None
    apart: bool  # member lists differ
    settles_in: float | None
    quiet: bool
    black: tuple[NodeId, ...]
    choke: tuple[NodeId, ...]  # the smaller side, if this member looks for it and found one
    outstanding: float  # weight that is on its way, as a part of what one member brought
    epochs: int


def limits_of(limiter: Limiter) -> tuple[LimitLook, ...]:
    limiter.standing.look()
    return tuple(_look(limiter, limit) for limit in limiter.allocator.limits.values())


def look_at(limiter: Limiter, name: str) -> LimitLook | None:
    limiter.standing.look()
    limit = limiter.allocator.limits.get(name)
    return None if limit is None else _look(limiter, limit)


def member_of(limiter: Limiter, now: float) -> LimiterLook:
    standing, sums = limiter.standing, limiter.sums
    standing.look()
    found = limiter.chokes.found
    return LimiterLook(
        agreed=limiter.agreed,
        inst=standing.inst,
        size=standing.size,
        provisional=standing.provisional,
        panic_for=now - standing.panic_at if standing.panic else None,
        apart=standing.apart,
        settles_in=standing.settle_at - now if now < standing.settle_at else None,
        quiet=limiter.pace.is_quiet,
        black=tuple(sorted(limiter.links.black)),
        choke=() if found is None else found.smaller_side,
        outstanding=0.0 if sums is None else sums.outstanding_weight / WEIGHT,
        epochs=limiter.epochs,
    )


def metrics_of(limiter: Limiter, now: float) -> dict[str, float]:
    """Numbers by name. Counters never fall while this machine runs."""
    member = member_of(limiter, now)
    found = {name: float(count) for name, count in sorted(limiter.counts.items())}
    found["epochs"] = float(member.epochs)
    found["instance"] = 0.0 if member.inst is None else float(member.inst.number)
    found["size"] = float(member.size)
    found["provisional"] = float(member.provisional)
    found["panic"] = float(member.panic_for is not None)
    found["black_links"] = float(len(member.black))
    found["outstanding_weight"] = member.outstanding
    found["quiet"] = float(member.quiet)
    found["panic_seconds"] = limiter.standing.panic_seconds
    found["provisional_seconds"] = limiter.standing.provisional_seconds
    found["limits"] = float(len(limiter.allocator.limits))
    return found


def _look(limiter: Limiter, limit: Limit) -> LimitLook:
    spec, allocator = limit.spec, limiter.allocator
    rate, fleet = allocator.rate_of(limit), allocator.fleet_of(limit)
    holding, aggregate = limiter.quotas.holdings.get(limit.key), _aggregate(limiter, limit)
    return LimitLook(
        name=limit.name,
        rate=rate,
        set_rate=spec.rate / UNIT,
        burst=spec.depth,
        policy=POLICIES[spec.policy],
        share=SHARES[spec.share],
        aggregation=AGGREGATES[spec.aggregate],
        fleet=fleet,
        auto=spec.fleet == 0,
        by=spec.by,
        version=spec.lamport,
        is_open=limit.is_open,
        used=limit.used,
        told=limit.told,
        target=limit.target,
        want=limit.want,
        waiting=limit.wants.waiting,
        aggregate=aggregate,
        shared=min(aggregate, allocator.whole_of(limit)) if limit.aggregates else None,
        single=rate / fleet if fleet else 0.0,
        state=_state(limiter, limit),
        quota=holding.q / QUOTA if spec.is_exact and holding is not None else None,
        starved=limit.is_starved,
    )


def _aggregate(limiter: Limiter, limit: Limit) -> float:
    """Under ``maxmin`` those that want more than they get count with what they get."""
    if not limit.spec.is_maxmin:
        return limit.aggregates.get(limit.key, 0.0)
    small, many = limit.aggregates.get(limit.small, 0.0), limit.aggregates.get(limit.many, 0.0)
    whole = limiter.allocator.whole_of(limit)
    return small + max(0.0, whole - small) * min(1.0, many)


def _state(limiter: Limiter, limit: Limit) -> str:
    standing = limiter.standing
    if standing.inst is None and not standing.panic:
        return "starting"
    if standing.panic:
        return "starting" if standing.inst is None else "panic"
    if not limit.aggregates:
        return "starting"
    stable = limiter.views.state is ViewState.STABLE and not standing.provisional
    return "stable" if stable else "changing"
