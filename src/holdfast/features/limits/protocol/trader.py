"""The trader: quota of exact limits moves to where it is wanted.  Spec: limits 5.5, D3, D20, D22; foundation F9, F17.

It owns ``Ask``, ``Give`` and ``GiveAck``. A member trades only while its lease is on the instance that the quota is of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from holdfast.features.limits.protocol.allocator import Allocator
from holdfast.features.limits.protocol.config import QUOTA, LimitsConfig
from holdfast.features.limits.protocol.facts import QuotaGiven, QuotaTaken, Raised
from holdfast.features.limits.protocol.limit import Limit
from holdfast.features.limits.protocol.links import Links
from holdfast.features.limits.protocol.messages import Ask, Give, GiveAck
from holdfast.features.limits.protocol.quota import Quotas
from holdfast.features.limits.protocol.standing import Standing
from holdfast.host import Carried, Host, NodeId, Timer, ViewId, Views, ViewState
from holdfast.kit.ledger import Batch, Refusal
from holdfast.kit.outbox import Outbox


class Trader:
    """Of one member, for all exact limits."""

    def __init__(
        self,
        host: Host,
        views: Views,
        config: LimitsConfig,
        standing: Standing,
        links: Links,
        quotas: Quotas,
        allocator: Allocator,
        counts: Counter[str],
    ) -> None:
        self._host, self._views, self._config, self._standing = host, views, config, standing
        self._links, self._quotas, self._allocator, self._counts = links, quotas, allocator, counts
        self._outbox = Outbox(host)
        self._settles: Timer | None = None  # set in the last epoch before the instance is settled

    def on_epoch(self) -> None:
        """Raise, give what was asked for, ask for what is missing, repeat what was not acknowledged."""
        if not self._standing.counts:
            return
        limits = self._allocator.exact_limits()
        for limit in limits:
            self._quotas.know(limit.key, limit.spec.fleet)
            if self._allocator.is_beyond(limit):
                self._quotas.resign(limit.key)
            elif self._standing.may_grow:
                self._raise(limit)
        for limit in limits:
            self._quotas.promise(limit.key, self._allocator.quota_target(limit), self._standing.includes)
            self._allocator.allot(limit)
        given = self.flush()
        for peer in self._quotas.silent():
            if peer not in given and self._is_good(peer):
                self._give(peer)
        if limits and self._views.state is ViewState.STABLE:
            self._ask(limits)
        if limits and self._host.now < self._standing.settle_at <= self._host.now + self._config.epoch:
            self._await_settled()

    def flush(self) -> list[NodeId]:
        """Promises leave, of limits whose workers are known to use no more than what is left (D22). To whom they went."""
        if not self._quotas.promises or not self._standing.counts:
            return []
        handed = self._quotas.hand_over(self._is_free)
        for promise in handed:
            self._host.emit(QuotaGiven(promise.key, promise.peer, promise.amount))
        peers = list(dict.fromkeys(promise.peer for promise in handed))
        for peer in peers:
            self._give(peer)
        return peers

    def take(self, source: NodeId, batch: Batch) -> bool:
        """Quota from a peer, directly or over the overlay. True: it knows now that all of it was taken."""
        taken = self._quotas.take(source, batch, self._standing.size * QUOTA)
        if isinstance(taken, Refusal):
            self._counts[f"quota_{taken}"] += 1
            return taken is Refusal.PAST
        for key, amount in taken.items():
            self._host.emit(QuotaTaken(key, source, amount))
            limit = self._allocator.by_key.get(key)
            if limit is not None:
                self._allocator.allot(limit)
        return True

    def clear(self) -> None:
        self._outbox.clear()
        if self._settles is not None:
            self._settles.cancel()
            self._settles = None

    # What peers say. The limiter has asked for the standing.

    def on_ask(self, source: NodeId, message: Ask) -> None:
        if not self._may_trade(source, message.inst == self._standing.inst):
            return
        if not self._quotas.ask(message.key, source, message.need):
            self._counts["asks_refused"] += 1

    def on_give(self, source: NodeId, message: Give) -> None:
        if not self._may_trade(source, message.inst == self._standing.inst):
            return
        if self.take(source, Batch(message.lb, message.seq, message.q)):
            self._host.send(source, GiveAck(message.inst, self._quotas.ledger(source).taken))

    def on_give_ack(self, source: NodeId, message: GiveAck) -> None:
        if message.inst != self._standing.inst or not self._standing.includes(source):
            self._counts["stranger"] += 1
        elif self._quotas.ledger(source).ack(message.seq):
            self._links.answered(source)
        else:
            self._counts["ack_beyond"] += 1

    # Inside.

    def _may_trade(self, source: NodeId, same: bool) -> bool:
        """Provisional members neither give nor take, and what is of another instance is of another sum."""
        standing = self._standing
        if same and standing.counts and standing.includes(source):
            return True
        self._counts["no_trade"] += 1
        return False

    def _raise(self, limit: Limit) -> None:
        holding = self._quotas.holdings[limit.key]
        if not holding.raised:
            self._host.emit(Raised(limit.name, holding.raise_()))

    def _await_settled(self) -> None:
        if self._settles is not None:
            self._settles.cancel()
        self._settles = self._host.at(self._standing.settle_at, self._on_settled)

    def _on_settled(self) -> None:
        """A part is there when a process of a former life stops using it (H310, H364), and not from the next epoch on."""
        self._settles = None
        self._standing.look()
        if not self._standing.may_grow:
            return
        for limit in self._allocator.exact_limits():
            if limit.key in self._quotas.holdings and not self._allocator.is_beyond(limit):
                self._raise(limit)
                self._allocator.allot(limit)

    def _ask(self, limits: Sequence[Limit]) -> None:
        """A few peers directly; and one of those whose links are cut by the overlay, for what it has is not to be had otherwise."""
        eligible = [peer for peer in self._standing.peers if self._is_good(peer)]
        peers = self._host.random.sample(eligible, min(self._config.asks(self._standing.size), len(eligible)))
        black = sorted(self._links.black)
        beyond = self._host.random.choice(black) if black else None
        for limit in limits:
            need = 0 if self._allocator.is_beyond(limit) else self._quotas.need(limit.key, self._allocator.quota_target(limit))
            if need:
                ask = Ask(self._inst, limit.key, need)
                for peer in peers:
                    self._outbox.put(peer, ask)
                if beyond is not None:
                    self._views.carry(beyond, ask, _whatever)

    def _give(self, peer: NodeId) -> None:
        """Where the link is cut, the black list brings it by the overlay."""
        if peer not in self._links.black:
            batch = self._quotas.ledger(peer).message()
            self._links.sent(peer)
            self._outbox.put(peer, Give(self._inst, batch.lb, batch.seq, dict(batch.amounts)))

    @property
    def _inst(self) -> ViewId:
        assert self._standing.inst is not None
        return self._standing.inst

    def _is_good(self, peer: NodeId) -> bool:
        return peer not in self._links.black and self._standing.includes(peer)

    def _is_free(self, key: int) -> bool:
        limit = self._allocator.by_key.get(key)
        return limit is None or limit.is_free


def _whatever(became: Carried) -> None:
    """The next epoch asks again."""
    del became
