"""Views: one node's part in them, as a server, as a client, or as both.  Spec: views 1, 2; foundation F3, F4, F10, F11.

The machine owns all messages of this folder and hands each to the part that it is for. Both parts tick together: one wake-up a heartbeat.
What a node says to itself goes round by a timer, so a handler never runs inside another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from math import inf

from holdfast.events import ViewChanged, ViewEvent, ViewLost, ViewRestored
from holdfast.features.views.protocol.carrier import Carrier
from holdfast.features.views.protocol.client import ViewClient
from holdfast.features.views.protocol.config import ViewsConfig, views_fingerprint
from holdfast.features.views.protocol.facts import ServerRetired
from holdfast.features.views.protocol.hops import Hops
from holdfast.features.views.protocol.messages import (
    TYPES,
    ClientPing,
    ClientPong,
    HopAck,
    LinkPing,
    LinkPong,
    Lsa,
    LsaWant,
    OvData,
    OvResult,
    Propose,
    StartChange,
    ViewMsg,
)
from holdfast.features.views.protocol.server import ViewServer
from holdfast.features.views.protocol.survey import ViewSurvey, graph_of, links_of
from holdfast.host import Address, Carried, Host, Message, NodeId, Timer, View, ViewState
from holdfast.kit.parcels import Parcels
from holdfast.kit.slots import Slot

RETIRE_HEARTBEATS = (
    240  # without any client that this server knows of, until it says that it serves no views any more: 60 s at the usual one
)


class ViewNode:
    """Implements ``host.Views`` while it takes part."""

    handles = TYPES

    def __init__(self, host: Host, config: ViewsConfig, slots: Sequence[Slot], own: int | None, parcels: Parcels) -> None:
        assert slots
        assert own is None or slots[own].number == own
        self.config, self.slots, self.own = config, tuple(slots), own
        self.fingerprint = views_fingerprint(config, slots)
        self.counts: Counter[str] = Counter()
        self._host, self._parcels = host, parcels
        self._hops = Hops(host, config, self._send, self.counts)
        self.server = None if own is None else self._make_server(own)
        self.client: ViewClient | None = None
        self.carrier: Carrier | None = None
        self._former: tuple[ViewClient, Carrier] | None = None  # that took part before
        self._subscribers: list[Callable[[ViewEvent], None]] = []
        self._running = False
        self._retired = False
        self._tick: Timer | None = None
        self._tick_at = 0.0
        self._lost_at: float | None = None
        self._seconds_lost = 0.0
        self._handlers: dict[type[Message], Callable[[NodeId, Message], None]] = {
            HopAck: self._on_hop_ack,
            OvData: self._on_data,
            OvResult: self._on_result,
        }
        if self.server is not None:
            self._handlers.update(_handlers_of(self.server))

    # Taking part.

    def take_part(self) -> None:
        """Attach to a server and install views, from now on."""
        if self.client is not None:
            return
        former, carrier = self._former or (None, None)
        self.client = ViewClient(self._host, self.config, self.slots, self.own, self._send, self._told, self.counts, former=former)
        self.carrier = Carrier(self._host, self.config, self._hops, self._parcels, self.client, self.counts, former=carrier)
        self._handlers.update(_handlers_of(self.client))
        self._lost_at = self._host.now
        if self._running:
            self.client.start()
            self._arm()

    def withdraw(self) -> None:
        """Leave the view, and take part no more."""
        client, carrier = self.client, self.carrier
        if client is None or carrier is None:
            return
        # What hears the end of its messages may call this machine again, and must find it without a client.
        self._former = client, carrier
        self.client = self.carrier = None
        for kind in (ClientPong, StartChange, ViewMsg):
            del self._handlers[kind]
        self._note_lost(lost=False)
        if self._running:
            client.leave()
        client.end()
        carrier.stop()
        self._arm()

    @property
    def idle_since(self) -> float | None:
        """No client is known to this server since then; None: one is, or this is no server."""
        return None if self.server is None else self.server.idle_since

    # ``host.Views``.

    @property
    def view(self) -> View | None:
        return None if self.client is None or self.state is ViewState.LOST else self.client.view

    @property
    def state(self) -> ViewState:
        return ViewState.LOST if self.client is None else self.client.state

    @property
    def leased_until(self) -> float:
        return -inf if self.client is None else self.client.lease_until

    @property
    def settled_at(self) -> float:
        return inf if self.client is None else self.client.settled_at

    @property
    def settle(self) -> float:
        return self.config.settle

    @property
    def lease(self) -> float:
        return self.config.held

    @property
    def left_at(self) -> float | None:
        client = self._former[0] if self.client is None and self._former is not None else self.client
        return -inf if client is None else client.left_at

    @property
    def settled(self) -> bool:
        return self.state is ViewState.STABLE and self._host.now >= self.settled_at

    def subscribe(self, listener: Callable[[ViewEvent], None]) -> None:
        self._subscribers.append(listener)

    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        if self.carrier is None:
            done(Carried.NOT_IN_VIEW)
        else:
            self.carrier.carry(to, message, done)

    def trip(self, why: str, *, above: int = 0) -> bool:
        return self.client is not None and self.client.trip(why, above=above)

    def hurry(self) -> None:
        if self.client is not None:
            self.client.hurry()

    @property
    def trips_again_in(self) -> float:
        """Seconds until ``trip`` is accepted again."""
        return 0.0 if self.client is None else self.client.trips_again_in

    @property
    def left(self) -> bool:
        """It takes no part, and nothing remains to be said: what it says goodbye with leaves at once."""
        return self.client is None

    # ``host.Machine``.

    def start(self) -> None:
        """Also once more: a node may take it out when no client needs the server, and put it in again."""
        self._running, self._retired = True, False
        # Members that were started together shall not ask together.
        self._tick_at = self._host.now + self.config.heartbeat * (self._host.random.random() - 1)
        if self.server is not None:
            self.server.start()
        if self.client is not None:
            self.client.start()
        self._arm()

    def on_message(self, source: NodeId, message: Message) -> None:
        handler = self._handlers.get(type(message))
        if handler is None:
            self.counts["not_for_this_part"] += 1
        else:
            handler(source, message)

    def on_away(self, seconds: float) -> None:
        """A lease that ended meanwhile is over before anything is read (F9); a server looks before its next answer (D17)."""
        if self.client is not None:
            self.client.check_lease()

    def stop(self) -> None:
        self.withdraw()
        self._running = False
        self._hops.stop()
        if self.server is not None:
            self.server.stop()
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None

    # What people see.

    def survey(self) -> ViewSurvey:
        now, server, client = self._host.now, self.server, self.client
        changing = [now - client.changed_at] if client is not None and self.state is ViewState.CHANGING else []
        if server is not None and not server.agreement.stable:
            changing.append(now - server.agreement.changing_since)
        trips = [each.trips.p99(now) for each in (client, None if server is None else server.links) if each is not None]
        return ViewSurvey(
            own=self.own,
            server=None if client is None else client.server,
            attach=0 if client is None else client.attach,
            installed_for=None if self.view is None or client is None else now - client.installed_at,
            changing_for=max(changing, default=None),
            lost_for=None if self._lost_at is None else now - self._lost_at,
            lost_why=client.lost_why if client is not None and self._lost_at is not None else "",
            links=() if server is None else links_of(server, now),
            graph=() if server is None else graph_of(server),
            clients=0 if server is None else len(server.clients),
            quarantined=0 if server is None else server.clients.quarantined,
            rtt_p99=max((each for each in trips if each is not None), default=None),
            number=0 if server is None else server.agreement.num,
        )

    def metrics(self) -> dict[str, float]:
        """Numbers by name. Counters never fall while this machine runs."""
        server, client, carrier, view = self.server, self.client, self.carrier, self.view
        found = {name: float(count) for name, count in sorted(self.counts.items())}
        found["number"] = 0.0 if view is None else float(view.number)
        found["size"] = 0.0 if view is None else float(view.size)
        lost = 0.0 if self._lost_at is None else self._host.now - self._lost_at
        found["seconds_lost"] = self._seconds_lost + lost
        if client is not None and client.margin_min < inf:
            found["lease_margin_min"] = client.margin_min
        if carrier is not None:
            found["overlay_under_way"] = float(carrier.under_way)
            found.update({f"overlay_hops_{hops}": float(count) for hops, count in sorted(carrier.hops_taken.items())})
        if server is not None:
            agreement = server.agreement
            found.update({f"changes_{path}": float(count) for path, count in agreement.counts.items()})
            changing = 0.0 if agreement.stable else self._host.now - agreement.changing_since
            found["seconds_changing"] = agreement.seconds_changing + changing
            found["links_down"] = float(sum(not link.up for link in server.links.all.values()))
            found["quarantines"] = float(server.clients.quarantines)
            found["link_quarantines"] = float(server.links.quarantines)
            found["lsa_bytes"] = float(server.lsa_bytes)
            found["proposals"] = float(server.proposals)
            found["proposal_bytes"] = float(server.proposal_bytes)
            found["clients"] = float(len(server.clients))
        return found

    # Inside.

    def _make_server(self, own: int) -> ViewServer:
        return ViewServer(self._host, self.config, self.slots, own, self._hops, self._send, self.counts)

    def _send(self, to: NodeId | Address, message: Message) -> None:
        if to == self._host.me or (self.own is not None and to == self.slots[self.own].address):
            self._host.after(0.0, partial(self._on_own, message))
        else:
            self._host.send(to, message)

    def _on_own(self, message: Message) -> None:
        if self._running:
            self.on_message(self._host.me, message)

    def _told(self, event: ViewEvent) -> None:
        if isinstance(event, ViewChanged | ViewRestored):
            self._note_lost(lost=False)
        elif isinstance(event, ViewLost):
            self._note_lost(lost=True)
        self._host.emit(event)
        if isinstance(event, ViewChanged) and self.carrier is not None:
            self.carrier.on_view(event.view)
        for listener in self._subscribers:
            listener(event)

    def _note_lost(self, *, lost: bool) -> None:
        now = self._host.now
        if self._lost_at is not None:
            self._seconds_lost += now - self._lost_at
        self._lost_at = now if lost else None

    def _on_hop_ack(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, HopAck)
        self._hops.on_ack(source, message)

    def _on_data(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, OvData)
        if (self.carrier if message.last else self.server) is None:
            self.counts["not_for_this_part"] += 1
        elif message.last:
            if self.carrier is not None and self.carrier.takes(source, message):
                self._send(source, HopAck(message.hop))
                self.carrier.receive(message)
        elif self.server is not None and self.server.on_data(source, message):
            self._send(source, HopAck(message.hop))

    def _on_result(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, OvResult)
        if self.carrier is not None and self.carrier.is_told_by(source, message):
            self.carrier.on_result(source, message)
        elif self.server is not None:
            self.server.on_result(source, message)
        else:
            self.counts["not_for_this_part"] += 1

    def _arm(self) -> None:
        """One timer for both parts, while there is one of them."""
        if not self._running or self._tick is not None or (self.server is None and self.client is None):
            return
        self._tick_at = max(self._tick_at + self.config.heartbeat, self._host.now)
        self._tick = self._host.at(self._tick_at, self._on_tick)

    def _on_tick(self) -> None:
        self._tick = None
        if self._host.late > 2 * self.config.heartbeat:
            self._tick_at = self._host.now  # What was missed is not made up.
        if self.client is not None:
            self.client.on_tick()
        if self.server is not None:
            self.server.on_tick()
            self._look_whether_used()
        self._arm()

    def _look_whether_used(self) -> None:
        since = self.idle_since
        if since is None:
            self._retired = False
        elif not self._retired and self.client is None and self._host.now - since >= RETIRE_HEARTBEATS * self.config.heartbeat:
            self._retired = True
            self._host.emit(ServerRetired())


def _handlers_of(part: ViewServer | ViewClient) -> dict[type[Message], Callable[[NodeId, Message], None]]:
    """By the type of the message; the type was checked when it was decoded."""
    found: dict[type[Message], object]
    if isinstance(part, ViewServer):
        found = {
            LinkPing: part.on_link_ping,
            LinkPong: part.on_link_pong,
            Lsa: part.on_lsa,
            LsaWant: part.on_lsa_want,
            Propose: part.on_propose,
            ClientPing: part.on_client_ping,
        }
    else:
        found = {ClientPong: part.on_pong, StartChange: part.on_start_change, ViewMsg: part.on_view}
    return found  # type: ignore[return-value]
