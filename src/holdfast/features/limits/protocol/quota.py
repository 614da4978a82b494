"""Quota: exact limits divide a whole that is conserved.  Spec: limits 5.5, D11, D19, D20, D22, H267; views G6; foundation 4.

``QUOTA`` is one member's 1/n. In an instance quota only moves: a giver has less before the taker can have more, and by a ledger nothing is
lost or counted twice. Between instances no member knows what the others passed through, so each goes down to its own part at once, and
takes it back whole only when no other member can use a piece of it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from holdfast.features.limits.protocol.config import ASKS_MAX, LIMITS_MAX, QUOTA
from holdfast.host import NodeId
from holdfast.kit.ledger import Batch, Ledger, Refusal

ASK_BELOW = QUOTA // 50  # what is less than this below the target is not asked for
GIVE_ABOVE = QUOTA // 100  # and what is less than this above it is not given
HOLDINGS_MAX = 2 * LIMITS_MAX  # of limits that are known, and of those that only others know


class Wish(NamedTuple):
    """What another member asked for."""

    peer: NodeId
    need: int


class Promise(NamedTuple):
    """Given, and not sent before the workers here are known to use no more than what is left (D22)."""

    key: int
    peer: NodeId
    amount: int


class Holding:
    """What one member holds of one exact limit, in one instance."""

    __slots__ = ("entry", "fleet", "q", "raised")

    def __init__(self, q: int = 0, fleet: int = 0) -> None:
        self.q = self.entry = min(q, QUOTA)
        self.raised = False  # once per instance
        self.fleet = fleet  # n: the largest that was set during this instance (H267)

    def raise_(self) -> int:
        """The whole 1/n again; what was added."""
        assert not self.raised
        added = QUOTA - self.entry
        self.q += added
        self.raised = True
        return added


class Quotas:
    """All holdings of one member in its present instance, and what is under way between it and each peer."""

    def __init__(self) -> None:
        self.holdings: dict[int, Holding] = {}
        self.ledgers: dict[NodeId, Ledger] = {}
        self.promises: list[Promise] = []
        self._asks: dict[int, dict[NodeId, int]] = {}

    def begin(self, fleets: Mapping[int, int]) -> None:
        """A new instance: no member has more than its part, whatever others hold of it (D19). ``fleets``: n of every exact limit."""
        self.recall()
        former, self.holdings = self.holdings, {}
        for key, fleet in fleets.items():
            known = former.get(key)
            self.holdings[key] = Holding(0 if known is None else known.q, fleet)
        self.ledgers.clear()

    def know(self, key: int, fleet: int) -> Holding:
        """The holding of an exact limit that is known here."""
        found = self.holdings.get(key)
        if found is None:
            found = self.holdings[key] = Holding(0, fleet)
        found.fleet = max(found.fleet, fleet)
        return found

    def cap(self) -> None:
        """Panic: at most 1/n, and nothing is given."""
        self.recall()
        for holding in self.holdings.values():
            holding.q = min(holding.q, QUOTA)

    def lapse(self) -> None:
        """All that could use a piece of it have stopped: the whole 1/n, which is the raise of this instance (D20)."""
        for holding in self.holdings.values():
            holding.q, holding.raised = QUOTA, True

    def resign(self, key: int) -> None:
        """D3: there are more members than n, and this one is above it: nothing, and no raise in this instance."""
        holding = self.holdings[key]
        holding.q, holding.raised = 0, True
        self.promises = [promise for promise in self.promises if promise.key != key]

    # Asking and giving.

    def ask(self, key: int, peer: NodeId, need: int) -> bool:
        """A peer asks. False: too many do."""
        asks = self._asks.setdefault(key, {})
        if key not in self.holdings or (peer not in asks and len(asks) >= ASKS_MAX):
            return False
        asks[peer] = need
        return True

    def need(self, key: int, target: int) -> int:
        """What to ask each of a few peers for; 0: nothing."""
        short = target - self.holdings[key].q
        return short // 2 + 1 if short > ASK_BELOW else 0

    def promise(self, key: int, target: int, eligible: Callable[[NodeId], bool]) -> bool:
        """Give what is above the target to those that asked, the largest need first. It is no longer held from here on."""
        holding = self.holdings[key]
        wishes = [Wish(peer, need) for peer, need in self._asks.pop(key, {}).items() if eligible(peer)]
        gave = False
        for wish in sorted(wishes, key=lambda wish: (-wish.need, wish.peer)):
            surplus = holding.q - max(0, target)
            if surplus <= GIVE_ABOVE:
                break
            amount = min(surplus, wish.need)
            if amount > 0:
                holding.q -= amount
                self.promises.append(Promise(key, wish.peer, amount))
                gave = True
        return gave

    def hand_over(self, is_free: Callable[[int], bool]) -> list[Promise]:
        """Promises of limits whose workers use no more than what is left: from now on they belong to the peers."""
        handed = []
        waiting = []
        for promise in self.promises:
            if not is_free(promise.key):
                waiting.append(promise)
            elif self.ledger(promise.peer).give({promise.key: promise.amount}):
                handed.append(promise)
            else:
                self._take_back(promise)
        self.promises = waiting
        return handed

    def recall(self) -> None:
        """What was promised and has not left belongs to this member still; asks are forgotten."""
        for promise in self.promises:
            self._take_back(promise)
        self.promises = []
        self._asks.clear()

    def take(self, peer: NodeId, batch: Batch, most: int) -> Mapping[int, int] | Refusal:
        """Quota from a peer; ``most``: what all members of this instance hold together."""

        def fits(new: Mapping[int, int]) -> bool:
            if any((self.holdings[key].q if key in self.holdings else 0) + amount > most for key, amount in new.items()):
                return False
            return len(self.holdings) + sum(key not in self.holdings for key in new) <= HOLDINGS_MAX

        taken = self.ledger(peer).take(batch, fits)
        if not isinstance(taken, Refusal):
            for key, amount in taken.items():
                self.holdings.setdefault(key, Holding()).q += amount
        return taken

    def ledger(self, peer: NodeId) -> Ledger:
        found = self.ledgers.get(peer)
        if found is None:
            found = self.ledgers[peer] = Ledger()
        return found

    def silent(self) -> Iterable[NodeId]:
        """Peers that have not acknowledged all."""
        return [peer for peer, ledger in self.ledgers.items() if ledger.is_open]

    def _take_back(self, promise: Promise) -> None:
        self.holdings[promise.key].q += promise.amount
