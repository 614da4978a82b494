"""Agreement: which view a server proposes, when it delivers one, and when it vouches for it.  Spec: views 5.4, D2-D5, D20, D24, D26.

One rule carries all safety: a server proposes at most one key per number, and delivers number k only when every server of its key has
proposed that same key under k. So of two views with one number either all servers are the same, and so is everything else, or they share
no server. Which clients and servers are gone is decided before: in ``liveness`` and ``links``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from holdfast.features.views.protocol.config import PEAK_SECONDS, ViewsConfig
from holdfast.features.views.protocol.facts import Delivered, Proposed, SlowChange
from holdfast.features.views.protocol.messages import Propose
from holdfast.features.views.protocol.nsview import NSView
from holdfast.host import Host, NodeId, View, ViewId

PEAKS_MAX = 1024  # views delivered in ten minutes whose sizes are remembered; only rising ones are
FLEET_MAX = 65_535


class Proposal(NamedTuple):
    """The newest word of another server."""

    life: NodeId
    num: int
    key: bytes
    peak: int


class Numbers(Protocol):
    """What is known of the numbers of other servers (``linkstate``)."""

    def has_number(self, life: NodeId, num: int) -> bool: ...
    def saw(self, slot: int, life: NodeId, num: int) -> None: ...


class AgreementOwner(Protocol):
    """What an agreement asks of its server."""

    def propose(self, proposal: Propose) -> None:
        """Send it towards ``dst``."""

    def on_begin(self) -> None:
        """A change begins, or moves to a higher number."""

    def on_delivered(self, view: View) -> None: ...


class Agreement:
    """The numbers and proposals of one server."""

    def __init__(self, host: Host, config: ViewsConfig, slot: int, numbers: Numbers, owner: AgreementOwner) -> None:
        self._host, self._config, self._slot, self._numbers, self._owner = host, config, slot, numbers, owner
        self.num = 0  # the highest that this server has proposed
        self.floor = 0  # the highest that a client has installed elsewhere (D20)
        self.sc = 0  # startChange counter
        self.ns: NSView | None = None
        self.stable = False
        self.view: View | None = None  # the last one that was delivered
        self.former: View | None = None  # the one before: what deltas are made from
        self.changing_since = host.now
        self.counts = {"fast": 0, "slow": 0}
        self.seconds_changing = 0.0
        self._proposals: dict[int, Proposal] = {}
        self._rounds = 0  # proposals of mine in this change
        self._peak = 0  # of my present proposal: every server counts with the same
        self._peaks: deque[tuple[float, int]] = deque(maxlen=PEAKS_MAX)  # sizes that later ones have not exceeded
        self._warned = False

    def recompute(self, ns: NSView) -> None:
        """What this server would deliver may have changed."""
        if self.ns is not None and self.ns.digest == ns.digest:
            self.ns = ns  # the same view by other paths
            return
        self.ns = ns
        known = [p.num for p in self._proposals.values() if p.life in ns.servers]
        self._begin(max(self.num + 1, self.floor + 1, *known))

    def on_propose(self, proposal: Propose) -> None:
        """It is for me."""
        former = self._proposals.get(proposal.slot)
        if former is not None and (proposal.origin.boot, proposal.num) < (former.life.boot, former.num):
            return
        if former is None or (proposal.origin, proposal.num) != (former.life, former.num):  # An honest server has one key per number.
            self._proposals[proposal.slot] = Proposal(proposal.origin, proposal.num, proposal.key, proposal.peak)
        self._numbers.saw(proposal.slot, proposal.origin, proposal.num)
        ns = self.ns
        if ns is None or proposal.origin not in ns.servers:
            return
        if proposal.num > self.num and proposal.key == ns.digest:
            # With another key it is only stored: either mine or its is about to change. Joining early would burn the number (D3).
            self._begin(proposal.num)
        elif proposal.num < self.num or (proposal.num == self.num and self.stable and not proposal.done):
            self._propose_to(proposal.origin)
        self.try_to_deliver()

    def try_to_deliver(self) -> None:
        ns = self.ns
        if self.stable or ns is None:
            return
        others = [server for server in ns.servers if server != self._host.me]
        agreed = {p.life: p for p in self._proposals.values() if p.num == self.num and p.key == ns.digest}
        if all(server in agreed for server in others) and self._all_at(others, self.num):
            self._deliver(ns, max([self._peak, *(agreed[server].peak for server in others)]))

    def vouches(self) -> bool:
        """For its view, now: it is stable, and every other server of it was lately known to be at this number (D24, D26)."""
        return self.stable and self.view is not None and self._all_at(self.view.servers, self.view.number)

    def on_tick(self) -> None:
        """Once per heartbeat, while it runs: what was lost is said again."""
        if self.stable:
            return
        if self.ns is not None:
            self._propose(server for server in self.ns.servers if server != self._host.me)
        seconds = self._host.now - self.changing_since
        if seconds > self._config.change_warn and not self._warned:
            self._warned = True
            self._host.emit(SlowChange(seconds))

    def _begin(self, number: int) -> None:
        assert self.ns is not None
        assert number > self.num
        now = self._host.now
        if self.stable or self._rounds == 0:
            self.changing_since, self._rounds, self._warned = now, 0, False
        self.stable = False
        self.sc += 1
        self.num = number
        self._rounds += 1
        self._peak = self._largest(len(self.ns.members))
        self._host.emit(Proposed(number, self.ns.digest, self.ns.servers))
        self._owner.on_begin()
        self._propose(server for server in self.ns.servers if server != self._host.me)
        self.try_to_deliver()

    def _deliver(self, ns: NSView, peak: int) -> None:
        smallest = ns.servers[0]
        self.former = self.view
        self.view = View(ViewId(self.num, smallest.name, smallest.boot), ns.servers, ns.members, max(peak, len(ns.members)))
        fast, took = self._rounds == 1, self._host.now - self.changing_since
        self.stable, self._rounds = True, 0
        self.counts["fast" if fast else "slow"] += 1
        self.seconds_changing += took
        self._remember_size(len(ns.members))
        self._host.emit(Delivered(self.view, fast, took))
        self._owner.on_delivered(self.view)

    def _all_at(self, servers: Iterable[NodeId], number: int) -> bool:
        return all(self._numbers.has_number(server, number) for server in servers if server != self._host.me)

    def _propose(self, servers: Iterable[NodeId]) -> None:
        for server in servers:
            self._propose_to(server)

    def _propose_to(self, server: NodeId) -> None:
        assert self.ns is not None
        ttl = len(self.ns.servers)
        self._owner.propose(Propose(self._slot, self._host.me, self.num, self.ns.digest, self._peak, self.stable, ttl, server))

    def _largest(self, size: int) -> int:
        oldest = self._host.now - PEAK_SECONDS
        while self._peaks and self._peaks[0][0] < oldest:
            self._peaks.popleft()
        return min(FLEET_MAX, max(size, self._peaks[0][1] if self._peaks else 0))

    def _remember_size(self, size: int) -> None:
        """Falling sizes only: a smaller one before a larger one never counts again."""
        while self._peaks and self._peaks[-1][1] <= size:
            self._peaks.pop()
        self._peaks.append((self._host.now, size))
