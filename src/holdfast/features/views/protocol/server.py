"""A server of views: links, link state, agreement and clients, put together.  Spec: views 2, 5.1-5.5, D15, D17, D24-D29.

*Look* is the one entry to every judgement: clients that are too old go, the own link state is published, what the server would deliver is
computed anew. It runs on every tick, after every change and before every answer, so nothing is vouched for that the clock has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf

import msgspec
from msgspec.structs import replace

from holdfast.features.views.protocol.agreement import Agreement
from holdfast.features.views.protocol.config import CLIENTS_MAX, SERVERS_MAX, ViewsConfig
from holdfast.features.views.protocol.deltas import ViewMessages
from holdfast.features.views.protocol.hops import Hops
from holdfast.features.views.protocol.links import NO_LINK_STATE, NO_MESSAGES, Link, Links
from holdfast.features.views.protocol.linkstate import LinkState
from holdfast.features.views.protocol.liveness import Client, Clients
from holdfast.features.views.protocol.messages import (
    ATTACHING,
    CHANGING,
    REFUSED,
    STABLE,
    UNKNOWN,
    ClientPing,
    ClientPong,
    Known,
    LinkPing,
    LinkPong,
    Lsa,
    LsaWant,
    OvData,
    OvResult,
    Propose,
    StartChange,
)
from holdfast.features.views.protocol.notices import Notices
from holdfast.features.views.protocol.nsview import NSView, network_view
from holdfast.features.views.protocol.relay import Relay
from holdfast.host import Address, Host, Message, NodeId, Timer, View
from holdfast.kit.slots import Slot

Send = Callable[[NodeId | Address, Message], None]


class ViewServer:
    """The server of one slot."""

    def __init__(
        self, host: Host, config: ViewsConfig, slots: Sequence[Slot], own: int, hops: Hops, send: Send, counts: Counter[str]
    ) -> None:
        self._host, self._config, self._own, self._send, self._counts = host, config, own, send, counts
        self.links = Links(host, config, slots, own, self, counts)
        self.states = LinkState(host, config, len(slots), own)
        self.agreement = Agreement(host, config, own, self.states, self)
        self.clients = Clients(host, config)
        self.relay = Relay(host, config, hops, self, counts)
        self._notices = Notices(host, config.heartbeat / 2)
        self._messages = ViewMessages()
        self._joins_at = -inf  # clients that joined before are published together then (D15)
        self._joins: Timer | None = None
        self._computed: tuple[int, tuple[int, ...]] | None = None  # what the present NSView was computed from
        self._looking = False
        self.idle_since: float | None = host.now
        self.lsa_bytes = 0  # that were sent, without their envelopes
        self.proposals = self.proposal_bytes = 0  # sent or passed on

    @property
    def used(self) -> bool:
        return self.idle_since is None

    def start(self) -> None:
        """Alone at first: with no client, and with links to be found. After a stop it begins so again, and its numbers go on."""
        if self.idle_since is not None:
            self.idle_since = self._host.now
        self.look()
        self.links.ask()

    def stop(self) -> None:
        self.links.stop()
        self._notices.stop()
        if self._joins is not None:
            self._joins.cancel()
            self._joins = None

    def on_tick(self) -> None:
        """Once per heartbeat. One that is late heard nothing for so long: it asks, and judges no link before it had time to hear (F11)."""
        self.clients.forget_old()
        if self._host.late <= 2 * self._config.heartbeat:
            self.links.judge()
            self._distrust_expired()
        self.look()
        self.links.ask()
        self.agreement.on_tick()

    def look(self) -> None:
        """5.4. What it changes may ask for another look, which the one that runs takes along."""
        if self._looking:
            return
        self._looking = True
        try:
            self.clients.remove_silent()
            self._publish()
            self._recompute()
        finally:
            self._looking = False

    # Servers.

    def on_link_ping(self, source: NodeId, ping: LinkPing) -> None:
        if not self.links.is_of_slot(source, ping.slot):
            self._counts["stranger"] += 1
            return
        self.look()
        self._send(source, LinkPong(ping.seq, self._own, self.states.known(self.agreement.num)))

    def on_link_pong(self, source: NodeId, pong: LinkPong) -> None:
        asked_at = self.links.on_pong(source, pong)
        if asked_at is None:
            return
        wanted = self.states.take_known(asked_at, self._believable(pong.known))
        if wanted:
            self._send(source, LsaWant(wanted))
        self.look()
        self.agreement.try_to_deliver()
        if not self.links.all[pong.slot].expired or self.states.is_fresh(pong.slot, source):
            self.links.raise_if_proved(pong.slot)

    def _believable(self, known: Iterable[Known]) -> list[Known]:
        """A life that cannot sit in a slot would put the real one behind it."""
        others = [entry for entry in known if entry.slot != self._own]
        found = [entry for entry in others if self.links.may_sit(entry.life, entry.slot)]
        self._counts["stranger"] += len(others) - len(found)
        return found

    def on_lsa(self, source: NodeId, lsa: Lsa) -> None:
        if lsa.origin == self._host.me:
            return  # My own word, that went round.
        if not self.links.is_server(source):
            self._counts["stranger"] += 1
            return
        if self.links.is_former(lsa.origin, lsa.slot):
            self._counts["old_life"] += 1
            return
        if not self.links.is_of_slot(lsa.origin, lsa.slot):
            self._counts["foreign_lsa"] += 1
            return
        if not self.states.take(lsa):
            return
        for listed in lsa.clients:
            mine = self.clients.all.get(listed.life.name)
            if mine is not None and mine.identity < (listed.life.boot, listed.attach):
                self.clients.remove(mine, "moved")
        for life in self.links.up:
            if life not in (source, lsa.origin):
                self._push(life, lsa)
        self.look()

    def on_lsa_want(self, source: NodeId, want: LsaWant) -> None:
        if not self.links.is_server(source):
            self._counts["stranger"] += 1
            return
        for slot in sorted(set(want.slots)):
            if slot in self.states.held:
                self._push(source, self.states.held[slot].lsa)

    def on_propose(self, source: NodeId, proposal: Propose) -> None:
        if proposal.origin == self._host.me:
            return
        if not self.links.is_server(source) or not self.links.is_of_slot(proposal.origin, proposal.slot):
            self._counts["stranger"] += 1
        elif proposal.ttl > SERVERS_MAX:
            self._counts["malformed"] += 1  # Servers whose tables differ would hand it to each other for a long time.
        elif proposal.dst != self._host.me:
            if proposal.ttl > 1:
                self._route(replace(proposal, ttl=proposal.ttl - 1))
        else:
            self.look()  # It may be the last one that a delivery waited for, and that vouches (D5).
            self.agreement.on_propose(proposal)

    # Clients.

    def on_client_ping(self, source: NodeId, ping: ClientPing) -> None:
        if ping.server == self._host.me.boot and ping.stamp > self._host.now:
            self._counts["future"] += 1
            return
        client = self.clients.all.get(source.name)
        identity = source.boot, ping.attach
        if client is not None and identity < client.identity:
            self._counts["late"] += 1
        elif ping.leave:
            if client is not None:  # Also if it leaves from an attachment that it has only begun.
                self.clients.remove(client, "left")
            self.clients.bury(source.name, identity)
            self.look()
        elif client is not None and identity == client.identity:
            self._on_ping_of(client, ping)
        else:
            client = self._attach(source, ping)
            if client is not None:
                self._on_ping_of(client, ping)

    def _attach(self, source: NodeId, ping: ClientPing) -> Client | None:
        identity = source.boot, ping.attach
        newest = max(self.clients.last_of(source.name), self.states.newest_of(source.name))
        proved = ping.server == self._host.me.boot and self._host.now - ping.stamp <= self._config.client_timeout
        if identity <= newest:
            if source.boot == newest[0]:
                self._answer(source, ping, UNKNOWN, hint=newest[1])
            else:
                self._counts["old_life"] += 1
        elif self.clients.is_quarantined(source) or self._is_full(source.name):
            self._answer(source, ping, REFUSED)
        elif not proved or ping.address is None:
            self._answer(source, ping, ATTACHING)
        else:
            self.agreement.floor = max(self.agreement.floor, ping.last_num)
            return self.clients.attach(source, ping, ping.address)
        return None

    def _is_full(self, name: str) -> bool:
        """The group has as many clients as a view can list; the one that attaches anew is among them."""
        ns = self.agreement.ns
        known = len(self.clients) if ns is None else max(len(self.clients), len(ns.members))
        full = known >= CLIENTS_MAX and name not in self.clients.all
        self._counts["full"] += full
        return full

    def _on_ping_of(self, client: Client, ping: ClientPing) -> None:
        if ping.server == self._host.me.boot:
            client.alive_at = max(client.alive_at, ping.stamp)
        if ping.seq >= client.seq:
            client.seq, client.last_num, client.want_full = ping.seq, ping.last_num, ping.want_full
        self.look()
        if self.clients.get(client.life) is not client:
            return  # Its proof of life was too old: it hears so from the next answer.
        view = self._vouched_for(client)
        self._answer(client.life, ping, CHANGING if view is None else STABLE, view=view)
        if view is not None and (client.last_num < view.number or client.want_full):
            self._tell_view(client, view)

    def _vouched_for(self, client: Client) -> View | None:
        """The view that this server stands for now, with this attachment in it."""
        view = self.agreement.view
        if view is None or not self.agreement.vouches():
            return None
        member = view.find(client.life.name)
        mine = member is not None and (member.id, member.attach, member.server) == (client.life, client.attach, self._host.me)
        return view if mine else None

    def _answer(self, to: NodeId, ping: ClientPing, state: int, *, view: View | None = None, hint: int = 0) -> None:
        view_id = None if view is None else view.id
        self._send(to, ClientPong(ping.attach, ping.seq, state, view_id, self.agreement.sc, hint, self._host.now))

    def _tell_view(self, client: Client, view: View) -> None:
        """Again while its pings show an older one, but not while the last copy may be under way."""
        now = self._host.now
        if client.told == view.number and now - client.told_at < self._config.heartbeat:
            return
        client.told, client.told_at = view.number, now
        self._send(client.life, self._messages.make(client, view, self.agreement.former))

    # What the parts ask for (``LinkOwner``, ``AgreementOwner``, ``RelayOwner``).

    def on_link_up(self, link: Link) -> None:
        """My new link state goes to all, the peer included; it may know nothing yet."""
        self.look()
        assert link.life is not None
        for slot, held in sorted(self.states.held.items()):
            if slot not in (self._own, link.slot.number):
                self._push(link.life, held.lsa)

    def on_link_down(self, link: Link) -> None:
        self.look()

    def propose(self, proposal: Propose) -> None:
        self._route(proposal)

    def on_begin(self) -> None:
        agreement = self.agreement
        sc, num = agreement.sc, agreement.num
        for client in list(self.clients.all.values()):
            self._notices.put(client.life.name, partial(self._start_change, client, sc, num))

    def on_delivered(self, view: View) -> None:
        for client in list(self.clients.all.values()):
            self._notices.put(client.life.name, partial(self._deliver_to, client))

    def client_of(self, life: NodeId) -> Client | None:
        return self.clients.get(life)

    def is_server(self, life: NodeId) -> bool:
        return life == self._host.me or self.links.is_server(life)

    def present(self) -> NSView | None:
        self.look()
        return self.agreement.ns

    def on_client_lost(self, life: NodeId) -> None:
        client = self.clients.get(life)
        if client is not None:
            self.clients.fail(client, "a message did not reach it")
            self.look()

    def on_server_lost(self, life: NodeId) -> None:
        link = self.links.of(life)
        if link is not None:
            self.links.fail(link, NO_MESSAGES)

    def send(self, to: NodeId, message: Message) -> None:
        self._send(to, message)

    def on_data(self, source: NodeId, data: OvData) -> bool:
        return self.relay.on_data(source, data)

    def on_result(self, source: NodeId, result: OvResult) -> None:
        self.relay.on_result(source, result)

    # Parts of a look.

    def _publish(self) -> None:
        clients, now = self.clients, self._host.now
        if clients.joined and not clients.left and now < self._joins_at:
            if self._joins is None:  # D15: one join is published at once, those that follow it together.
                self._joins = self._host.at(self._joins_at, self._on_joins)
            if self.states.mine.up == self.links.up:
                return
        elif not clients.joined and not clients.left and self.states.mine.up == self.links.up:
            return
        if clients.joined:
            self._joins_at = now + self._config.join_batch
        lsa = self.states.publish(self.links.up, clients.listed())
        if lsa is not None:
            for life in self.links.up:
                self._push(life, lsa)

    def _recompute(self) -> None:
        basis = self.states.version, self.states.fresh_slots()
        if basis == self._computed:
            return
        self._computed = basis
        lsas = self.states.fresh()
        if any(lsa.clients for lsa in lsas.values()):
            self.idle_since = None
        elif self.idle_since is None:
            self.idle_since = self._host.now
        self.agreement.recompute(network_view(self._host.me, lsas, self._config.max_server_hops))

    def _distrust_expired(self) -> None:
        """D25: heartbeats pass and link states do not, so the two ends would never agree; both go on without the other. The link stays down
        until a link state arrives: up without one it would only disturb both sides until it expires again."""
        for link in self.links.all.values():
            if (
                link.up
                and link.life is not None
                and self._host.now - link.up_at >= self._config.lsa_max_age
                and not self.states.is_fresh(link.slot.number, link.life)
            ):
                self.links.fail(link, NO_LINK_STATE)

    # Sending.

    def _push(self, to: NodeId, lsa: Lsa) -> None:
        self.lsa_bytes += len(msgspec.msgpack.encode(lsa))
        self._send(to, lsa)

    def _route(self, proposal: Propose) -> None:
        """To the next server on the way, or directly while no way is known."""
        ns = self.agreement.ns
        step = None if ns is None else ns.steps.get(proposal.dst)
        if step is None and proposal.dst in self.links.up:
            step = proposal.dst
        if step is not None:
            self.proposals += 1
            self.proposal_bytes += len(msgspec.msgpack.encode(proposal))
            self._send(step, proposal)

    def _start_change(self, client: Client, sc: int, num: int) -> None:
        if self.clients.get(client.life) is client and self.agreement.sc == sc:
            self._send(client.life, StartChange(client.attach, sc, num))

    def _deliver_to(self, client: Client) -> None:
        """In its portion (D29), which may be late: vouched for now, after a look."""
        self.look()
        if self.clients.get(client.life) is client and (view := self._vouched_for(client)) is not None and client.last_num < view.number:
            self._tell_view(client, view)

    def _on_joins(self) -> None:
        self._joins = None
        self.look()
