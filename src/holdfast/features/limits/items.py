"""What is told of a limit: to the processes that use it, and to people.  Spec: limits 9, 10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.features.limits.calls import STARTING, LimitItem, LimitLine, WorkerLine
from holdfast.features.limits.protocol.config import UNIT
from holdfast.features.limits.protocol.specs import AGGREGATES, POLICIES, SHARES
from holdfast.features.limits.protocol.survey import look_at
from holdfast.features.limits.protocol.workers import Tell, Worker
from holdfast.features.limits.terms import Terms

if TYPE_CHECKING:
    from holdfast.features.limits.protocol.limiter import Limiter
    from holdfast.features.limits.protocol.specs import Spec
    from holdfast.features.limits.streams import LimitStream
    from holdfast.features.limits.tally import Totals
    from holdfast.features.limits.users import Used, User

NOTHING_TOLD = Tell(0, 0.0, 0.0, 0.0, 0.0, 0.0)


def terms_of(spec: Spec) -> Terms:
    """A limit as its users describe it."""
    return Terms(
        spec.rate / UNIT,
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

    def item(self, used: Used, stream: LimitStream) -> LimitItem:
        told = stream.told or NOTHING_TOLD
        look = look_at(self._limiter, used.name)
        members, workers = self._limiter.standing.size, len(used.users)
        if look is None:
            return LimitItem(*told, STARTING, 0.0, 0.0, 0.0, 0.0, 0.0, 0, members, workers, "", self._epoch)
        return LimitItem(
            *told,
            look.state,
            look.used,
            look.want,
            look.aggregate,
            look.rate,
            look.burst,
            look.fleet,
            members,
            workers,
            look.policy,
            self._epoch,
            0.0 if stream.returned else self._limiter.allocator.claims_at(used.name),
        )

    def state(self, used: Used) -> tuple[str, float, int, float]:
        """What a process is told of although nothing changed for itself."""
        look = look_at(self._limiter, used.name)
        if look is None:
            return STARTING, 0.0, 0, 0.0
        return look.state, look.rate, look.fleet, self._limiter.allocator.claims_at(used.name)

    def is_fair(self, used: Used) -> bool:
        spec = self._limiter.specs.get(used.name)
        return spec is not None and spec.is_fair


def line_of(
    name: str, spec: Spec, limiter: Limiter | None, used: Used | None, over: str, now: float, wall: float, totals: Totals | None
) -> LimitLine:
    """One limit for people."""
    penalty = max(0.0, spec.until - wall) if spec.is_penalized(wall) else 0.0
    line = LimitLine(name, terms_of(spec), spec.lamport, spec.by, penalty_for=penalty)
    look = None if limiter is None else look_at(limiter, name)
    if limiter is None or look is None:
        return line
    standing, limit = limiter.standing, limiter.allocator.limits[name]
    workers = () if used is None else workers_of(used, now)
    return LimitLine(
        name,
        line.terms,
        line.version,
        line.by,
        used=used is not None,
        state=look.state,
        over=over,
        view="" if standing.inst is None else str(standing.inst),
        members=standing.size,
        fleet=look.fleet,
        share=look.used,
        demand=look.want,
        aggregate=look.aggregate,
        told=look.told,
        waiting=sum(worker.waiting for worker in workers),
        workers=workers,
        quota=look.quota,
        panic_for=now - standing.panic_at if standing.panic else None,
        starved_for=None if limit.starved_since is None else now - limit.starved_since,
        penalty_for=penalty,
        rate=look.rate,
        shared=look.shared,
        waiters=sum(worker.waiters for worker in workers),
        tokens=sum(worker.tokens for worker in workers),
        admitted=0.0 if totals is None else totals.admitted,
        waited=0.0 if totals is None else totals.waited,
    )


def workers_of(used: Used, now: float) -> tuple[WorkerLine, ...]:
    held = used.outlet.workers
    return tuple(
        WorkerLine(
            user.pid, user.program, held[number].held(now), user.waiting, user.gone, user.waiters, tokens_of(user, held[number], now)
        )
        for number, user in sorted(used.users.items())
    )


def tokens_of(user: User, worker: Worker, now: float) -> float:
    """What its bucket holds: one that says nothing lets nothing go, so what it said has grown by its rate since."""
    last = worker.last
    if user.gone or last is None:
        return 0.0
    return min(last.depth, user.tokens + worker.held(now) * max(0.0, now - user.tokens_at))
