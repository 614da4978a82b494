"""Links that are cut: left out of gossip, settled over the overlay, tried again.  Spec: limits 5.4, D14, D18; paper 003, 6.2.2.

What is outstanding on such a link is brought home by ``Reconcile``, which takes the overlay of the views: that works, or a new view comes
and gossip starts anew. A member whose links are all cut exchanges halves of what it holds that way (D14).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from math import inf

from holdfast.events import Event, LinkBlacklisted, LinkRestored
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.features.limits.protocol.facts import Reconciled
from holdfast.features.limits.protocol.links import Cut, Links
from holdfast.features.limits.protocol.messages import Probe, Reconcile
from holdfast.features.limits.protocol.pushsum import PushSum, batch_of, portions_of
from holdfast.features.limits.protocol.quota import Quotas
from holdfast.features.limits.protocol.standing import Standing
from holdfast.host import Carried, Host, NodeId, Views
from holdfast.kit.ledger import Batch, Refusal

# Reconciliations that one epoch begins: a server carries 200 messages a second for a client, and each of these is answered.
RECONCILES_MAX = 32
EXCHANGE, FIRST, SECOND, THIRD = range(4)


class Blacklist:
    """All links of one member in its present instance."""

    def __init__(
        self,
        host: Host,
        views: Views,
        config: LimitsConfig,
        standing: Standing,
        links: Links,
        quotas: Quotas,
        take_quota: Callable[[NodeId, Batch], object],
        told: Callable[[Event], None],
        counts: Counter[str],
    ) -> None:
        self._host, self._views, self._config, self._standing = host, views, config, standing
        self._links, self._quotas = links, quotas
        self._take_quota, self._told, self._counts = take_quota, told, counts
        self._sum: PushSum | None = None
        self._nonce = 0
        self._begun = 0  # reconciliations of this epoch
        self._exchange_at = -inf  # when the last exchange began that was not answered

    def begin(self, push_sum: PushSum) -> None:
        """A new instance: every link is good until it is silent again (5.6)."""
        self._sum = push_sum
        self._links.clear()
        self._exchange_at = -inf

    # The list.

    def add(self, peer: NodeId) -> None:
        """Use it no more, and settle what is outstanding, now or with the next epochs."""
        if self._list(peer) and self._begun < RECONCILES_MAX:
            self._reconcile(peer, FIRST)

    def exchange(self, peer: NodeId) -> None:
        """No link is good: half of everything to this member, over the overlay, and half of what it holds back. One at a time: what is
        given without an answer would leave this member with nothing (D14)."""
        assert self._sum is not None
        now = self._host.now
        if now >= self._exchange_at + self._config.probe and self._sum.halve(peer):
            self._exchange_at = now
            self._reconcile(peer, EXCHANGE)

    def on_epoch(self, budget: int) -> int:
        """Probe, and settle what became outstanding meanwhile. Returns how many of ``budget`` peers were sent to."""
        now, sent = self._host.now, 0
        for peer, cut in list(self._links.black.items()):
            if not cut.under_way and now >= cut.settle_at and self._is_open(peer) and self._begun < RECONCILES_MAX:
                self._reconcile(peer, FIRST)
            if now >= cut.probe_at and sent < budget:
                sent += 1
                self._probe(peer, cut)
        self._begun = 0
        return sent

    def on_probe(self, source: NodeId, message: Probe) -> None:
        """1 is answered with 2, and 2 with 3; who hears 2 or 3 knows that both directions work."""
        standing = self._standing
        if message.inst != standing.inst or not standing.acts or not standing.includes(source):
            self._counts["stranger"] += 1
            return
        if message.step == 1:
            cut = self._links.black.get(source)
            if cut is not None:
                cut.answered = message.nonce
            self._host.send(source, Probe(message.inst, 2, message.nonce))
            return
        cut = self._links.black.get(source)
        if cut is None or message.nonce != (cut.asked if message.step == 2 else cut.answered):
            self._counts["late"] += 1
            return
        self._restore(source)
        if message.step == 2:
            self._host.send(source, Probe(message.inst, 3, message.nonce))

    def on_reconcile(self, source: NodeId, message: Reconcile) -> None:
        """By the rules of gossip, so that any mixture of paths counts once. The instance is the present one, the source a member of it."""
        push_sum = self._sum
        assert push_sum is not None
        if not push_sum.ledger(source).ack(message.ack):
            self._counts["ack_beyond"] += 1
            return
        if not self._quotas.ledger(source).ack(message.qack):
            self._counts["ack_beyond"] += 1
            return
        refusal = push_sum.take(source, batch_of(message.lb, message.seq, message.w, message.p))
        if refusal is not None and refusal is not Refusal.PAST:
            self._counts[f"reconcile_{refusal}"] += 1
            return
        if self._standing.counts and message.q:
            self._take_quota(source, Batch(message.qlb, message.qseq, message.q))
        self._host.emit(Reconciled(source, message.step))
        self._answer(source, message.step)

    # Inside.

    def _answer(self, source: NodeId, step: int) -> None:
        if step == FIRST:
            self._list(source)  # D18: what one end holds to be cut, both do.
        if step == EXCHANGE:
            assert self._sum is not None
            self._sum.halve(source)
        if step in (EXCHANGE, FIRST):
            self._reconcile(source, SECOND)
        elif step == SECOND:
            self._exchange_at = -inf
            self._reconcile(source, THIRD)

    def _list(self, peer: NodeId) -> bool:
        if peer in self._links.black:
            return False
        self._links.black[peer] = Cut(self._host.now + self._config.probe)
        self._counts["black_listed"] += 1
        self._told(LinkBlacklisted(peer))
        return True

    def _restore(self, peer: NodeId) -> None:
        del self._links.black[peer]
        self._links.answered(peer)
        self._told(LinkRestored(peer))

    def _is_open(self, peer: NodeId) -> bool:
        assert self._sum is not None
        return self._sum.ledger(peer).is_open or self._quotas.ledger(peer).is_open

    def _probe(self, peer: NodeId, cut: Cut) -> None:
        assert self._standing.inst is not None
        self._nonce += 1
        cut.asked, cut.probe_at = self._nonce, self._host.now + self._config.probe
        self._host.send(peer, Probe(self._standing.inst, 1, self._nonce))

    def _reconcile(self, peer: NodeId, step: int) -> None:
        assert self._sum is not None
        ledger, quotas = self._sum.ledger(peer), self._quotas.ledger(peer)
        batch, quota = ledger.message(), quotas.message()
        w, p = portions_of(batch)
        message = Reconcile(
            self._sum.inst,
            step,
            batch.lb,
            batch.seq,
            w,
            p,
            ledger.taken,
            quota.lb,
            quota.seq,
            dict(quota.amounts),
            quotas.taken,
        )
        cut = self._links.black.get(peer)
        if cut is not None and step == FIRST:
            cut.under_way, cut.settle_at = True, self._host.now + self._config.probe
            self._begun += 1
        self._counts["reconciles"] += 1
        self._views.carry(peer, message, partial(self._on_carried, peer, cut if step == FIRST else None))

    def _on_carried(self, peer: NodeId, cut: Cut | None, became: Carried) -> None:
        """Delivered, or the breaker trips and a new view comes; where a server is busy, the next epoch tries again."""
        self._counts[f"reconcile_{became.name.lower()}"] += 1
        if cut is None or self._links.black.get(peer) is not cut:
            return
        cut.under_way = False
        if became is not Carried.DELIVERED:
            cut.settle_at = self._host.now + self._config.epoch
