"""Views with one rule taken out: a lab that cannot show a break proves nothing by not seeing one.

Spec: views 7 (teeth), D3, D8, D11, D24-D28. Each is a change of the code that lasts as long as ``without``; no setting reaches it. Two
rules protect each other: while link states that do not arrive take the link down (D25), servers that do not vouch by numbers (D26) are
seldom wrong for long, so both are out together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import inf
from typing import Any

from msgspec.structs import replace

from holdfast.features.views.protocol import nsview
from holdfast.features.views.protocol.agreement import Agreement
from holdfast.features.views.protocol.client import ViewClient
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.linkstate import LinkState
from holdfast.features.views.protocol.messages import ClientPing, Lsa, Propose
from holdfast.features.views.protocol.nsview import NSView
from holdfast.features.views.protocol.server import ViewServer
from holdfast.host import NodeId

Mutation = Callable[[ExitStack], None]
SHORT_SETTLE = 0.3  # seconds


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


# Ages and numbers.


def keeps_links(stack: ExitStack) -> None:
    """D25: a link stays up although the link states of its peer do not arrive."""
    put(stack, ViewServer, "_distrust_expired", lambda self: None)


def no_numbers(stack: ExitStack) -> None:
    """D26: a server vouches for its view whatever number the others are at. D25 is out, too."""
    keeps_links(stack)
    put(stack, Agreement, "_all_at", lambda self, servers, number: True)


def ages_from_arrival(stack: ExitStack) -> None:
    """D24 as it was first written: link states are sent again and again, and their age counts from when they arrive."""
    no_numbers(stack)
    take, on_tick = LinkState.take, ViewServer.on_tick

    def take_now(self: LinkState, lsa: Lsa) -> bool:
        taken = take(self, lsa)
        held = self.held[lsa.slot]
        if held.lsa == lsa:
            held.fresh_at = self._host.now
        return taken

    def tick_and_push(self: ViewServer) -> None:
        on_tick(self)
        for life in self.links.up:
            self._send(life, self.states.mine)

    put(stack, LinkState, "take", take_now)
    put(stack, LinkState, "take_known", lambda self, asked_at, known: ())
    put(stack, ViewServer, "on_tick", tick_and_push)


def short_settle(stack: ExitStack) -> None:
    """D12: a view counts as settled at once, nearly."""
    put(stack, ViewsConfig, "settle", property(lambda self: SHORT_SETTLE))


def lease_from_receipt(stack: ExitStack) -> None:
    """5.6: a lease counts from when the answer was read."""
    extend = ViewClient._extend
    put(stack, ViewClient, "_extend", lambda self, sent_at: extend(self, self._host.now))


# Agreement.


def same_number(stack: ExitStack) -> None:
    """D3: a server that changes its mind before it delivered proposes again under the same number."""
    recompute, on_propose = Agreement.recompute, Agreement.on_propose

    def recompute_again(self: Agreement, ns: NSView) -> None:
        if self.ns is None or self.stable or self.ns.digest == ns.digest:
            recompute(self, ns)
            return
        self.ns = ns
        self.num -= 1
        self._begin(self.num + 1)

    def take_again(self: Agreement, proposal: Propose) -> None:
        former = self._proposals.get(proposal.slot)
        if former is not None and (former.life, former.num) == (proposal.origin, proposal.num):
            del self._proposals[proposal.slot]
        on_propose(self, proposal)

    put(stack, Agreement, "recompute", recompute_again)
    put(stack, Agreement, "on_propose", take_again)


def whole_neighbourhood(stack: ExitStack) -> None:
    """D8: a group is what a server reaches over two others, as the paper has it."""

    def group_of(me: NodeId, graph: nsview.Graph, hops_max: int) -> tuple[NodeId, ...]:
        return tuple(sorted(server for server, hops in nsview.distances(me, graph).items() if hops <= hops_max))

    put(stack, nsview, "group_of", group_of)


# Clients and messages.


def no_handshake(stack: ExitStack) -> None:
    """D11: a client is attached by its first ping, and alive as long as pings of it arrive."""
    on_client_ping = ViewServer.on_client_ping

    def believed(self: ViewServer, source: NodeId, ping: ClientPing) -> None:
        proved = replace(ping, server=self._host.me.boot, stamp=self._host.now, address=ping.address or self._host.address)
        on_client_ping(self, source, proved)

    put(stack, ViewServer, "on_client_ping", believed)


def late_fail_over(stack: ExitStack) -> None:
    """D28: a client tries the next server when its lease ends."""
    put(stack, ViewsConfig, "server_timeout", ViewsConfig.lease)


def patient_clients(stack: ExitStack) -> None:
    """H235: a client waits for the view that its server names, however long."""
    put(stack, ViewsConfig, "view_timeout", property(lambda self: inf))


def no_failure_detection(stack: ExitStack) -> None:
    """D13: an overlay hop that used up its tries says nothing of what it led to."""
    put(stack, ViewServer, "on_client_lost", lambda self, life: None)
    put(stack, ViewServer, "on_server_lost", lambda self, life: None)
    put(stack, ViewClient, "fail_over", lambda self, server: None)


RANDOM: Mapping[str, Mutation] = {
    "settle is short": short_settle,
    "lease from receipt": lease_from_receipt,
    "same number": same_number,
}
DIRECTED: Mapping[str, Mutation] = {
    "age from arrival": ages_from_arrival,
    "no vouching by numbers": no_numbers,
    "links without link states": keeps_links,
    "no failure detection": no_failure_detection,
    "whole neighbourhood": whole_neighbourhood,
    "no handshake": no_handshake,
    "late fail-over": late_fail_over,
    "patient clients": patient_clients,
}
