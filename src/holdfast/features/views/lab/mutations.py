"""Views with one rule taken out: a lab that cannot show a break proves nothing by not seeing one.

Spec: views 7 (teeth), D3, D5-D13, D17, D20, D24-D30. Each is a change of the code that lasts as long as ``without``; no setting reaches it.
Two rules protect each other: while link states that do not arrive take the link down (D25), servers that vouch whatever the numbers are
(D26) are wrong for two seconds at most, so for two groups that live for ever both are out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import inf

from msgspec.structs import replace

from holdfast.features.views.protocol import notices, nsview
from holdfast.features.views.protocol.agreement import Agreement
from holdfast.features.views.protocol.client import ViewClient
from holdfast.features.views.protocol.config import CLIENTS_MAX, ViewsConfig
from holdfast.features.views.protocol.linkstate import LinkState
from holdfast.features.views.protocol.liveness import Client, Clients
from holdfast.features.views.protocol.messages import ClientPing, LinkPing, Lsa, OvData, Propose
from holdfast.features.views.protocol.nsview import NSView
from holdfast.features.views.protocol.server import ViewServer
from holdfast.features.views.protocol.trips import KEPT_SECONDS, RoundTrips
from holdfast.host import NodeId, ViewMember
from holdfast.lab.mutation import Mutation, put

SHORT_SETTLE = 0.3  # seconds


# Ages and numbers.


def keeps_links(stack: ExitStack) -> None:
    """D25: a link stays up although the link states of its peer do not arrive."""
    put(stack, ViewServer, "_distrust_expired", lambda self: None)


def vouches_blindly(stack: ExitStack) -> None:
    """D26: a server vouches for its view whatever number the others are at."""
    put(stack, Agreement, "_all_at", lambda self, servers, number: True)


def no_numbers(stack: ExitStack) -> None:
    """D25 and D26."""
    keeps_links(stack)
    vouches_blindly(stack)


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


def answers_blindly(stack: ExitStack) -> None:
    """D17: a server answers without a look at the clock, so it says after a pause what was true before."""
    on_client_ping, on_link_ping = ViewServer.on_client_ping, ViewServer.on_link_ping

    def answer_client(self: ViewServer, source: NodeId, ping: ClientPing) -> None:
        with _unseen(self):
            on_client_ping(self, source, ping)

    def answer_server(self: ViewServer, source: NodeId, ping: LinkPing) -> None:
        with _unseen(self):
            on_link_ping(self, source, ping)

    put(stack, ViewServer, "on_client_ping", answer_client)
    put(stack, ViewServer, "on_link_ping", answer_server)


@contextmanager
def _unseen(server: ViewServer) -> Iterator[None]:
    """No look of this server has an effect: it takes itself to be within one."""
    former, server._looking = server._looking, True
    try:
        yield
    finally:
        server._looking = former


def median_round_trip(stack: ExitStack) -> None:
    """D27: people are told of the round trip in the middle, and not of the slow ones that end leases."""

    def middle(self: RoundTrips, now: float) -> float | None:
        found = sorted(seconds for at, seconds in self._kept if now - at <= KEPT_SECONDS)
        return found[len(found) // 2] if found else None

    put(stack, RoundTrips, "p99", middle)


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


def keeps_its_key(stack: ExitStack) -> None:
    """D5: a server that learns something new while a change is under way brings that to its end first."""
    recompute, deliver, on_propose = Agreement.recompute, Agreement._deliver, Agreement.on_propose
    waiting: dict[Agreement, NSView] = {}

    def recompute_later(self: Agreement, ns: NSView) -> None:
        if self.ns is None or self.stable or len(ns.servers) == 1:
            waiting.pop(self, None)
            recompute(self, ns)
        else:
            waiting[self] = ns

    def deliver_first(self: Agreement, ns: NSView, peak: int) -> None:
        deliver(self, ns, peak)
        newer = waiting.pop(self, None)
        if newer is not None:
            recompute(self, newer)

    def follow(self: Agreement, proposal: Propose) -> None:
        if proposal.num > self.num and self in waiting:  # The other one has brought it to its end, and went on.
            recompute(self, waiting.pop(self))
        on_propose(self, proposal)

    put(stack, Agreement, "recompute", recompute_later)
    put(stack, Agreement, "_deliver", deliver_first)
    put(stack, Agreement, "on_propose", follow)


def no_floor(stack: ExitStack) -> None:
    """D20: a server counts on from its own numbers, whatever its clients have installed elsewhere."""
    recompute = Agreement.recompute

    def recompute_low(self: Agreement, ns: NSView) -> None:
        self.floor = 0
        recompute(self, ns)

    put(stack, Agreement, "recompute", recompute_low)


# Which servers are a group.


def one_word(stack: ExitStack) -> None:
    """D6: two servers are neighbours if one of them says so."""

    def edges(lsas: Mapping[NodeId, Lsa]) -> dict[NodeId, tuple[NodeId, ...]]:
        return {
            server: tuple(sorted(other for other in lsas if other != server and (other in lsa.up or server in lsas[other].up)))
            for server, lsa in sorted(lsas.items())
        }

    put(stack, nsview, "edges", edges)


def three_hops(stack: ExitStack) -> None:
    """D7: three hops at most, as section 4 of the paper has it; so no server stands between two others."""
    group_of = nsview.group_of
    put(stack, nsview, "group_of", lambda me, graph, hops_max: group_of(me, graph, 1))


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


def first_place(stack: ExitStack) -> None:
    """D9: a client in two places counts where it was first, and the server there keeps it."""

    def rank(member: ViewMember) -> tuple[int, int, int]:
        return -member.id.boot, -member.attach, 0

    remove = Clients.remove

    def remove_others(self: Clients, client: Client, why: str) -> None:
        if why != "moved":
            remove(self, client, why)

    put(stack, Clients, "remove", remove_others)
    put(stack, nsview, "_rank", rank)


def forgets_the_removed(stack: ExitStack) -> None:
    """D10: a client that was removed may come back by any ping of it."""
    put(stack, Clients, "bury", lambda self, name, identity: None)


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


def one_portion(stack: ExitStack) -> None:
    """D29: all clients are told in one callback."""
    put(stack, notices, "PORTION", CLIENTS_MAX)


def message_in_message(stack: ExitStack) -> None:
    """D30: what an overlay message carries may be another one."""
    stack.callback(delattr, OvData, "carried")
    OvData.carried = True


DECISIONS: Mapping[str, Mutation] = {
    "D3": same_number,
    "D5": keeps_its_key,
    "D6": one_word,
    "D7": three_hops,
    "D8": whole_neighbourhood,
    "D9": first_place,
    "D10": forgets_the_removed,
    "D11": no_handshake,
    "D12": short_settle,
    "D13": no_failure_detection,
    "D17": answers_blindly,
    "D20": no_floor,
    "D24": ages_from_arrival,
    "D25": keeps_links,
    "D26": vouches_blindly,
    "D27": median_round_trip,
    "D28": late_fail_over,
    "D29": one_portion,
    "D30": message_in_message,
}
