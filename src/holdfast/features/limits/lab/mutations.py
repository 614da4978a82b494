"""Limits with one rule taken out: a lab that cannot show a break proves nothing by not seeing one.

Spec: limits 7 (teeth), 8 (F9, N1), D1, D5, D6, D9, D14, D20, D22, D23. Each is a change of the code that lasts as long as ``without``; no
setting reaches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from holdfast.features.limits.protocol.blacklist import EXCHANGE, Blacklist
from holdfast.features.limits.protocol.config import QUOTA
from holdfast.features.limits.protocol.facts import Calmed, Lapsed, Panicked
from holdfast.features.limits.protocol.limit import Estimate, Limit
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.limits.protocol.links import Links
from holdfast.features.limits.protocol.pace import Pace
from holdfast.features.limits.protocol.pushsum import PushSum
from holdfast.features.limits.protocol.quota import Quotas
from holdfast.features.limits.protocol.standing import NO_VIEW, Standing
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.host import Message, NodeId
from holdfast.node import Node

Mutation = Callable[[ExitStack], None]
SHORT_SETTLE = 0.3  # seconds
EWMA = 0.3  # of what is new


def put(stack: ExitStack, where: Any, name: str, instead: Any) -> None:
    """Instead of an attribute of a class or a module, until the stack is closed."""
    stack.callback(setattr, where, name, vars(where)[name])
    setattr(where, name, instead)


@contextmanager
def without(mutation: Mutation) -> Iterator[None]:
    """The rule is out while this lasts."""
    with ExitStack() as stack:
        mutation(stack)
        yield


# Gossip.


def no_black_list(stack: ExitStack) -> None:
    """5.4: a link that is cut stays in use, and what is outstanding on it stays there."""
    put(stack, Links, "silent", lambda self: [])


def never_quiet(stack: ExitStack) -> None:
    """D26: all speak in every epoch, as in the paper."""
    put(stack, Pace, "is_quiet", property(lambda self: False))


def as_published(stack: ExitStack) -> None:
    """5.4 and D26: gossip of the paper without its black list."""
    no_black_list(stack)
    never_quiet(stack)


def plain_push_sum(stack: ExitStack) -> None:
    """D1, 5.3: what was sent counts as taken."""
    send = Limiter._send

    def send_and_forget(self: Limiter, push_sum: PushSum, peer: NodeId) -> None:
        send(self, push_sum, peer)
        ledger = push_sum.ledger(peer)
        ledger.ack(ledger.given)

    put(stack, Limiter, "_send", send_and_forget)


def any_life(stack: ExitStack) -> None:
    """D5, foundation F3: what was addressed to one life is taken by any other, and without a lease, which a life that begins has not."""
    receive = Node.receive

    def receive_anyhow(self: Node, source: Any, sender: NodeId, life: int, fingerprint: bytes, message: Message) -> None:
        addressed = self._life if type(message) in Limiter.handles and self._running else life
        receive(self, source, sender, addressed, fingerprint, message)

    put(stack, Node, "receive", receive_anyhow)
    put(stack, Standing, "acts", property(lambda self: self.inst is not None and not self.lapsed and not self.apart))


def one_way(stack: ExitStack) -> None:
    """D14: a member without a good link gives over the overlay, and is given nothing back."""
    answer = Blacklist._answer

    def acknowledge(self: Blacklist, source: NodeId, step: int) -> None:
        if step == EXCHANGE:
            self._reconcile(source, 2)
        else:
            answer(self, source, step)

    put(stack, Blacklist, "_answer", acknowledge)


def ewma_blending(stack: ExitStack) -> None:
    """D9: the paper's moving average of the former aggregate and the new one, for as many rounds."""

    def estimate(self: Limit, current: Estimate) -> None:
        blends = self._round < self._rounds
        self._round += 1
        for key in self.keys:
            known = current(key)
            before = self._former.get(key)
            self.aggregates[key] = known if before is None or not blends else before * (1 - EWMA) + known * EWMA
            if before is not None:
                self._former[key] = self.aggregates[key]

    put(stack, Limit, "estimate", estimate)


# Quota.


def short_settle(stack: ExitStack) -> None:
    """Views D12: what was left behind counts as unused at once, nearly."""
    put(stack, ViewsConfig, "settle", property(lambda self: SHORT_SETTLE))


def gives_at_once(stack: ExitStack) -> None:
    """D22: quota leaves before the workers are known to use less."""
    put(stack, Limit, "is_free", property(lambda self: True))


def lapse_from_panic(stack: ExitStack) -> None:
    """D23: what was left behind counts from the panic on as unused."""

    def look(self: Standing, *, may_trip: bool) -> None:
        if not self.lapsed and self._host.now >= max(self.settle_at, self.panic_at + self._views.settle):
            self.lapsed = True
            self._host.emit(Lapsed(self.inst))
            self.on_lapse()

    put(stack, Standing, "_look_for_lapse", look)


def lapse_and_raise(stack: ExitStack) -> None:
    """D20: a lapse is no raise, and panic may end after it without a new instance."""

    def look(self: Standing, *, may_trip: bool = True) -> None:
        if may_trip and self.provisional and self._host.now >= self._adopt_until and not self._is_late:
            self._trip("a view that other members have does not arrive")
        if self.leased and not self.apart:
            if self.panic:
                self.panic = False
                self._host.emit(Calmed(self.inst))
                self.on_calm()
            return
        if not self.panic:
            self.panic, self.panic_at = True, self._host.now
            self._host.emit(Panicked(NO_VIEW))
            self.on_panic()
        if self.agreed and not self.leased:
            self._look_for_lapse(may_trip=may_trip)

    def lapse(self: Quotas) -> None:
        for holding in self.holdings.values():
            holding.q = QUOTA

    put(stack, Standing, "look", look)
    put(stack, Standing, "acts", property(lambda self: self.inst is not None and self.leased and not self.apart))
    put(stack, Quotas, "lapse", lapse)


TEETH: Mapping[str, Mutation] = {
    "settle": short_settle,
    "D1": plain_push_sum,
    "D5": any_life,
    "D14": one_way,
    "D20": lapse_and_raise,
    "D22": gives_at_once,
    "D23": lapse_from_panic,
}
