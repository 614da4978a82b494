"""Carrier: a client's messages through the overlay, at most once at the receiver.  Spec: views 5.7, G5, G7, D13, D30.

A message is given to the own server until it says what became of it. If it says nothing in time although the view stands, the view is not
worth its name: the client trips. Not where its server had too much to carry (H236).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from holdfast.features.views.protocol.client import ViewClient
from holdfast.features.views.protocol.config import SENDS_MAX, ViewsConfig
from holdfast.features.views.protocol.facts import Carried as CarriedFact
from holdfast.features.views.protocol.facts import Received
from holdfast.features.views.protocol.hops import Hops
from holdfast.features.views.protocol.messages import BUSY, WHY, OvData, OvResult
from holdfast.features.views.protocol.received import ReceivedIds
from holdfast.host import Carried, Host, Message, NodeId, Timer, View, ViewState
from holdfast.kit.parcels import Parcel, Parcels

Done = Callable[[Carried], None]
NO_ANSWER, OVERLOAD = "no answer", WHY[BUSY]  # what became of the newest copy; the words of servers are in ``WHY``


class Sending:
    """A message of ours that nothing has become of yet."""

    __slots__ = ("copies", "deadline", "done", "mid", "parcel", "timer", "to", "view", "why")

    def __init__(self, mid: int, to: NodeId, parcel: Parcel, view: View, deadline: float, done: Done) -> None:
        self.mid, self.to, self.parcel, self.view, self.deadline, self.done = mid, to, parcel, view, deadline, done
        self.copies = 0  # that were given to a server
        self.why = NO_ANSWER
        self.timer: Timer | None = None


class Carrier:
    """Both ends of the overlay at one client."""

    def __init__(
        self,
        host: Host,
        config: ViewsConfig,
        hops: Hops,
        parcels: Parcels,
        client: ViewClient,
        counts: Counter[str],
        *,
        former: Carrier | None = None,
    ) -> None:
        """``former``: the carrier of this life before. This one goes on with its ids, and knows what it was handed (views G7)."""
        self._host, self._config, self._hops, self._parcels, self._client, self._counts = host, config, hops, parcels, client, counts
        self._last_mid: int = 0 if former is None else former._last_mid
        self._sending: dict[int, Sending] = {}
        self._got: ReceivedIds = ReceivedIds(config) if former is None else former._got
        self.hops_taken: Counter[int] = Counter() if former is None else former.hops_taken

    @property
    def under_way(self) -> int:
        return len(self._sending)

    def carry(self, to: NodeId, message: Message, done: Done) -> None:
        client = self._client
        client.check_lease()
        view = client.view
        member = None if view is None or client.state is ViewState.LOST else view.find(to.name)
        if view is None or member is None or member.id != to:
            done(Carried.NOT_IN_VIEW)
            return
        parcel = self._parcels.pack(message)
        if parcel is None:
            done(Carried.TOO_LARGE)
            return
        if len(self._sending) >= SENDS_MAX:
            self._counts["busy"] += 1
            done(Carried.BUSY)
            return
        self._last_mid += 1
        sending = Sending(self._last_mid, to, parcel, view, self._host.now + self._config.ov_deadline, done)
        self._sending[sending.mid] = sending
        self._counts["carried"] += 1
        self._transmit(sending)

    def takes(self, source: NodeId, data: OvData) -> bool:
        """The last hop, from a server to this client, may be acknowledged; not if it is for another life, or of another time."""
        client = self._client
        known = source == client.server or (client.view is not None and source in client.view.servers)
        if data.dst != self._host.me or not known:
            self._counts["stranger"] += 1
            return False
        if self._got.is_past(data.src, data.mid, self._host.now):
            self._counts["late"] += 1
            return False
        taken = (data.src, data.mid) in self._got or self._got.has_room(self._host.now)
        self._counts["full"] += not taken
        return taken

    def receive(self, data: OvData) -> None:
        """Hand on what it carries, once. The last thing in a turn: the machine that gets it may send by the overlay."""
        if (data.src, data.mid) in self._got:
            self._counts["duplicate"] += 1
            return
        self._got.add(data.src, data.mid, self._host.now)
        self._host.emit(Received(data.src, data.mid))
        self._parcels.unpack(data.src, data.parcel)

    def is_told_by(self, source: NodeId, result: OvResult) -> bool:
        """For this client, from its server. What comes from another server is for the server of this node, if it is one."""
        return result.src == self._host.me and source == self._client.server

    def on_result(self, source: NodeId, result: OvResult) -> None:
        sending = self._sending.get(result.mid)
        if sending is None or not self.is_told_by(source, result):
            self._counts["late"] += 1
        elif result.ok:
            self.hops_taken[result.hops] += 1
            self._host.emit(CarriedFact(sending.to, sending.mid, result.hops))
            self._end(sending, Carried.DELIVERED)
        elif result.why == BUSY and sending.copies == 1:  # Of two copies the other one may have arrived.
            self._end(sending, Carried.BUSY)
        else:
            sending.why = WHY.get(result.why, "given up")  # A change is under way, or too much is: asked again until time is over.

    def on_view(self, view: View) -> None:
        """A newer one: who is not in it is not asked for any more."""
        for sending in [each for each in self._sending.values() if (member := view.find(each.to.name)) is None or member.id != each.to]:
            self._end(sending, Carried.TRIPPED)

    def stop(self) -> None:
        for sending in list(self._sending.values()):
            self._end(sending, Carried.TRIPPED)

    def _transmit(self, sending: Sending) -> None:
        now = self._host.now
        sending.timer = self._host.at(min(now + self._config.e2e_rto, sending.deadline), partial(self._on_timer, sending))
        server = self._client.server
        sending.why = OVERLOAD if self._hops.is_full else NO_ANSWER
        if server is None or self._hops.is_full:
            return  # The next try finds one.
        sending.copies += 1
        view_id = sending.view.id
        data = OvData(self._host.me, sending.mid, sending.to, view_id, sending.parcel, self._config.max_server_hops, 0)
        self._hops.send(server, data, arrived=_at_the_server, failed=partial(self._client.fail_over, server))

    def _on_timer(self, sending: Sending) -> None:
        now = self._host.now
        if now < sending.deadline:
            self._transmit(sending)
            return
        if self._host.late > self._config.hop_rto:
            # F11: the result may wait to be read. It is not sent again: the receiver may have forgotten it by now (G7).
            sending.timer = self._host.after(self._config.hop_rto, partial(self._on_timer, sending))
            return
        client = self._client
        client.check_lease()
        # Read before ``done``: what it calls may change both. Too much to carry says nothing against the view (H236).
        overload = sending.why == OVERLOAD
        trips = client.view is sending.view and client.state is not ViewState.LOST and not overload
        why = f"{sending.to} was not reached in {self._config.ov_deadline:g} s: {sending.why}"
        self._end(sending, Carried.BUSY if overload and not sending.copies else Carried.TRIPPED)
        if trips and client.trip(why, sending.to):
            self._counts["tripped"] += 1

    def _end(self, sending: Sending, outcome: Carried) -> None:
        if self._sending.pop(sending.mid, None) is None:
            return
        if sending.timer is not None:
            sending.timer.cancel()
        self._counts[f"carried_{outcome.name.lower()}"] += 1
        sending.done(outcome)


def _at_the_server() -> None:
    """It says what becomes of it."""
