"""Limits with one decision taken out: what the paper or an earlier form of the specification says instead.

Spec: limits D4, D6-D9, D11, D13, D15, D16, D18, D21. The teeth of section 7 (settle, D1, D5, D14, D20, D22, D23) and D9's moving average
are in ``holdfast.features.limits.lab.mutations``, for sweeps and figures use them, too. No setting reaches any of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from holdfast.features.limits.lab import mutations
from holdfast.features.limits.lab.mutations import put
from holdfast.features.limits.protocol import shares
from holdfast.features.limits.protocol.blacklist import FIRST, SECOND, THIRD, Blacklist
from holdfast.features.limits.protocol.config import QUOTA
from holdfast.features.limits.protocol.limit import Limit
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.limits.protocol.pushsum import PushSum, Told, _set
from holdfast.features.limits.protocol.quota import Holding, Quotas
from holdfast.features.limits.protocol.specs import Spec
from holdfast.features.limits.protocol.standing import Standing
from holdfast.host import Message, NodeId
from holdfast.kit.ledger import Amounts, Batch, Ledger, Refusal

Ablation = Callable[[ExitStack], None]


def two_numbers(stack: ExitStack) -> None:
    """D4: the paper's two sequence numbers alone say what is new: all of it, if the newest is."""

    def take(self: Ledger, batch: Batch, fits: Callable[[Amounts], bool] | None = None) -> dict[int, int] | Refusal:
        if batch.seq <= self.taken:
            return Refusal.PAST
        new = {key: amount for key, amount in batch.amounts.items() if amount}
        if fits is not None and not fits(new):
            return Refusal.NO_ROOM
        self.taken = batch.seq
        return new

    put(stack, Ledger, "take", take)


def next_random_choice(stack: ExitStack) -> None:
    """D6: what was lost goes again when its receiver is chosen again."""
    put(stack, Limiter, "_is_waiting", lambda self, push_sum, peer: False)


def no_reserve(stack: ExitStack) -> None:
    """D7: shares are proportional to demand and nothing else."""
    demand_target, small_want = shares.demand_target, shares.small_want
    put(stack, shares, "demand_target", lambda whole, size, report, aggregate, reserve: demand_target(whole, size, report, aggregate, 0.0))
    put(
        stack,
        shares,
        "small_want",
        lambda whole, size, want, *, headroom, reserve: small_want(whole, size, want, headroom=headroom, reserve=0.0),
    )


def plain_changes(stack: ExitStack) -> None:
    """D8: a change of the own demand goes into the own portion at once, and the estimate is what follows from that."""

    def report(self: PushSum, key: int, value: int, *, stands: bool = False) -> Told:
        delta = value - self.rep.get(key, 0)
        _set(self.p, key, self.p.get(key, 0) + delta)
        _set(self.rep, key, value)
        return Told(0.0, 0.0)

    def allocate(self: Limiter, told: dict[int, Told]) -> None:
        assert self.sums is not None
        self.allocator.allocate(self.sums.estimate, self.central.estimate, self.sums.rep)

    def estimate(self: PushSum, key: int) -> float:
        return self.size * self.p.get(key, 0) / self.w * ((1 << 32) / 1_000_000)

    put(stack, PushSum, "report", report)
    put(stack, PushSum, "estimate", estimate)
    put(stack, Limiter, "_allocate", allocate)


def no_blending(stack: ExitStack) -> None:
    """D9: a new instance believes what it reports."""

    def begin(self: Limit, former: int, size: int) -> None:
        self._former = {}
        self._round = self._rounds = 0

    put(stack, Limit, "begin", begin)


def starts_whole(stack: ExitStack) -> None:
    """D11: a process takes its 1/n with its first view."""
    begin = Quotas.begin

    def begin_whole(self: Quotas, fleets: Mapping[int, int]) -> None:
        for key in fleets:
            self.holdings.setdefault(key, Holding(QUOTA))
        begin(self, fleets)

    put(stack, Quotas, "begin", begin_whole)


def whole_in_panic(stack: ExitStack) -> None:
    """D13: the paper's panic, for exact limits: 1/n at once."""

    def cap(self: Quotas) -> None:
        self.recall()
        for holding in self.holdings.values():
            holding.q = QUOTA

    put(stack, Quotas, "cap", cap)


def views_mix(stack: ExitStack) -> None:
    """D15: every former member is gossiped with, and what it says is taken, whatever view it is of."""
    set_members = Standing._set_members
    ever: dict[int, dict[NodeId, None]] = {}

    def remember(self: Standing, members: tuple[NodeId, ...], size: int) -> None:
        ever.setdefault(id(self), {}).update(dict.fromkeys(members))
        set_members(self, members, size)

    def others(self: Standing) -> tuple[NodeId, ...]:
        return tuple(life for life in ever[id(self)] if life != self._host.me)

    put(stack, Standing, "_set_members", remember)
    put(stack, Standing, "peers", property(others))
    put(stack, Standing, "includes", lambda self, peer: True)
    put(stack, Limiter, "_enter", lambda self, source, inst, size: self.sums)


def looks_in_epochs(stack: ExitStack) -> None:
    """D16: the lease is looked at in epochs alone, so what waited during a pause is read as if there were one."""
    on_message = Limiter.on_message

    def read(self: Limiter, source: NodeId, message: Message) -> None:
        with ExitStack() as reading:
            put(reading, Standing, "look", lambda self, *, may_trip=True: None)
            put(reading, Standing, "leased", property(lambda self: not self.panic))
            view = type(self.views).view
            reading.callback(setattr, type(self.views), "view", view)
            type(self.views).view = property(lambda views: views.last)  # type: ignore[assignment]
            on_message(self, source, message)

    put(stack, Limiter, "on_message", read)
    put(stack, Limiter, "on_away", lambda self, seconds: None)


def one_sided(stack: ExitStack) -> None:
    """D18: only the side that noticed a cut stops using the link."""

    def answer(self: Blacklist, source: NodeId, step: int) -> None:
        if step == FIRST:
            self._reconcile(source, SECOND)
        elif step == SECOND:
            self._reconcile(source, THIRD)

    put(stack, Blacklist, "_answer", answer)


def proportional(stack: ExitStack) -> None:
    """D21: the paper's rule for requests, too: an overloaded limit is shared in proportion to demand."""
    put(stack, Spec, "is_maxmin", property(lambda self: False))


DECISIONS: Mapping[str, Ablation] = {
    "D4": two_numbers,
    "D5": mutations.any_life,
    "D6": next_random_choice,
    "D7": no_reserve,
    "D8": plain_changes,
    "D9": mutations.ewma_blending,
    "D11": starts_whole,
    "D13": whole_in_panic,
    "D14": mutations.one_way,
    "D15": views_mix,
    "D16": looks_in_epochs,
    "D18": one_sided,
    "D20": mutations.lapse_and_raise,
    "D21": proportional,
    "D22": mutations.gives_at_once,
    "D23": mutations.lapse_from_panic,
}
