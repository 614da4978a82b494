"""What is told of a limit: to the processes that use it, and to people.  Spec: limits 9, 10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.features.limits.calls import CHANGING, PANIC, STABLE, LimitItem, LimitLine, WorkerLine
from holdfast.features.limits.protocol.specs import AGGREGATES, POLICIES, SHARES
from holdfast.features.limits.protocol.workers import Tell
from holdfast.features.limits.terms import Terms
from holdfast.host import ViewState

if TYPE_CHECKING:
    from holdfast.features.limits.protocol.limit import Limit
    from holdfast.features.limits.protocol.limiter import Limiter
    from holdfast.features.limits.protocol.specs import Spec
    from holdfast.features.limits.streams import LimitStream
    from holdfast.features.limits.users import Used

NOTHING_TOLD = Tell(0, 0.0, 0.0, 0.0, 0.0, 0.0)


def terms_of(spec: Spec) -> Terms:
    """A limit as its users describe it."""
    return Terms(
        spec.rate / 1e6,
        spec.depth,
        POLICIES[spec.policy],
        SHARES[spec.share],
        spec.fleet,
        spec.reserve,
        spec.headroom,
        AGGREGATES[spec.aggregate],
    )


class Items:
    """What a worker is told beside its rate."""

    def __init__(self, limiter: Limiter, epoch: float) -> None:
        self._limiter, self._epoch = limiter, epoch

    def item(self, name: str, stream: LimitStream) -> LimitItem:
        told = stream.told or NOTHING_TOLD
        limiter = self._limiter
        limit = limiter.allocator.limits.get(name)
        spec = limiter.specs.get(name)
        standing = limiter.standing
        outlet = None if limit is None else limit.outlet
        return LimitItem(
            *told,
            state=state_of(limiter),
            share=0.0 if limit is None else limit.used,
            demand=0.0 if limit is None else limit.want,
            aggregate=0.0 if limit is None else aggregate_of(limit),
            limit=0.0 if limit is None else rate_of(limiter, limit),
            burst=0.0 if spec is None else spec.depth,
            fleet=0 if spec is None else spec.fleet or standing.fleet,
            members=standing.size,
            workers=len(getattr(outlet, "workers", ())),
            policy="" if spec is None else POLICIES[spec.policy],
            epoch=self._epoch,
        )


def state_of(limiter: Limiter) -> str:
    if limiter.standing.panic:
        return PANIC
    return STABLE if limiter.views.state is ViewState.STABLE else CHANGING


def aggregate_of(limit: Limit) -> float:
    """What all members want, as estimated here: of max-min the wants that are satisfied, and those of the saturated at their level."""
    return sum(limit.aggregates.get(key, 0.0) for key in limit.keys)


def rate_of(limiter: Limiter, limit: Limit) -> float:
    return 0.0 if limit.spec.removed else limit.spec.rate / 1e6


def line_of(name: str, spec: Spec, limiter: Limiter | None, used: Used | None, over: str, now: float, wall: float) -> LimitLine:
    """One limit for people."""
    penalty = max(0.0, spec.until - wall) if spec.is_penalized(wall) else 0.0
    if limiter is None:
        return LimitLine(name, terms_of(spec), spec.lamport, spec.by, penalty_for=penalty)
    standing, limit = limiter.standing, limiter.allocator.limits.get(name)
    held = {} if used is None else used.outlet.workers
    workers = (
        ()
        if used is None
        else tuple(
            WorkerLine(user.pid, user.program, held[number].held(now), user.waiting, user.gone)
            for number, user in sorted(used.users.items())
        )
    )
    return LimitLine(
        name,
        terms_of(spec),
        spec.lamport,
        spec.by,
        used=used is not None,
        state=state_of(limiter),
        over=over,
        view="" if standing.inst is None else str(standing.inst),
        members=standing.size,
        fleet=spec.fleet or standing.fleet,
        share=0.0 if limit is None else limit.used,
        demand=0.0 if limit is None else limit.want,
        aggregate=0.0 if limit is None else aggregate_of(limit),
        told=0.0 if used is None else used.outlet.told,
        waiting=sum(line.waiting for line in workers),
        workers=workers,
        panic_for=now - standing.panic_at if standing.panic else None,
        starved_for=None if limit is None or limit.starved_since is None else now - limit.starved_since,
        penalty_for=penalty,
    )
