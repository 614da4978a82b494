"""Two checkers for the lease workload, written as checkers for large groups are.

They see every node after every event. Only the touched node can have changed, so each looks at that one and keeps what it
needs of the other 999; what must hold for the group as a whole is kept as sums over all of them.
"""

from __future__ import annotations

from benchmarks.lease import LeaseAck, LeaseMonitor, LeaseRequest, Leases
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World


class SessionsEndOnce(Checker):
    """Every session of every lease is open, was acked or has expired: never two of these, never none."""

    name = "sessions-end-once"

    def __init__(self) -> None:
        self._monitors: dict[LabHost, list[LeaseMonitor]] = {}

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None:
            return
        for monitor in self._monitors.get(host) or self._learn(host):
            if monitor.acked + monitor.expired + (not monitor.established) != monitor.session:
                self.fail(f"{host.me} counts {monitor.acked} acks and {monitor.expired} expiries in {monitor.session} sessions")

    def _learn(self, host: LabHost) -> list[LeaseMonitor]:
        monitors = self._monitors[host] = list(host.node.use(Leases).monitors.values())
        return monitors


class NothingFromNothing(Checker):
    """In the whole group at no time more acks than requests were sent; no node answers more than all others asked."""

    name = "nothing-from-nothing"

    def __init__(self) -> None:
        self.requests = 0
        self.acks = 0
        self._sent: dict[LabHost, tuple[int, int]] = {}

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None:
            return
        sent = host.endpoint.sent
        requests, acks = sent[LeaseRequest], sent[LeaseAck]
        before = self._sent.get(host, (0, 0))
        self.requests += requests - before[0]
        self.acks += acks - before[1]
        self._sent[host] = requests, acks
        if self.acks > self.requests:
            self.fail(f"{self.acks} acks for {self.requests} requests in the group")
        if acks > self.requests - requests:
            self.fail(f"{host.me} sent {acks} acks, all others together asked {self.requests - requests} times")


def lease_checkers() -> list[Checker]:
    return [SessionsEndOnce(), NothingFromNothing()]
