"""How each peer answers directly: which links are silent, and which are not used for gossip.  Spec: limits 5.3 step 5; paper 003, 6.2.2."""

from __future__ import annotations

from math import inf

from holdfast.host import Host, NodeId


class Link:
    """How one peer answers directly."""

    __slots__ = ("lost", "sent_at")

    def __init__(self) -> None:
        self.lost = 0  # messages in a row that it did not answer
        self.sent_at = -inf


class Cut:
    """A peer that is not used for gossip."""

    __slots__ = ("answered", "asked", "probe_at", "settle_at", "under_way")

    def __init__(self, probe_at: float) -> None:
        self.probe_at = probe_at  # when the direct link is tried next
        self.settle_at = 0.0  # not reconciled again before this
        self.asked = self.answered = 0  # nonces: of the probe that it shall answer, and of its own that was answered
        self.under_way = False  # the overlay has a message for it


class Links:
    """Of one member in its present instance. A peer that was always quick has no entry."""

    def __init__(self, host: Host, loss: int) -> None:
        self._host, self._loss = host, loss  # r
        self._links: dict[NodeId, Link] = {}
        self.black: dict[NodeId, Cut] = {}

    def clear(self) -> None:
        self._links.clear()
        self.black.clear()

    def sent(self, peer: NodeId) -> None:
        """A message that has to be answered went directly."""
        link = self._links.get(peer)
        if link is None:
            link = self._links[peer] = Link()
        link.lost += 1
        link.sent_at = self._host.now

    def answered(self, peer: NodeId) -> None:
        """It acknowledged something, directly."""
        link = self._links.get(peer)
        if link is not None:
            link.lost = 0

    def silent(self) -> list[NodeId]:
        """Peers that left r messages in a row without an answer: each is a loss event."""
        return [peer for peer, link in self._links.items() if link.lost >= self._loss and peer not in self.black]

    def lost(self, peer: NodeId) -> int:
        link = self._links.get(peer)
        return 0 if link is None else link.lost

    def sent_at(self, peer: NodeId) -> float:
        link = self._links.get(peer)
        return -inf if link is None else link.sent_at
