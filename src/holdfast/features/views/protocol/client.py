"""The client of views: attach to a server, install what it delivers, know how long that may be counted on.  Spec: views 5.6, D11, D12, D28.

A lease counts from before the ping was sent whose answer says "stable", so no delay makes it longer. It is compared at every use (F9): a
process that was stopped knows that its view is lost before it does anything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import blake2b
from math import inf

from holdfast.bounds import is_beyond
from holdfast.events import Changing, ViewChanged, ViewEvent, ViewLost, ViewRestored, ViewTripped
from holdfast.features.views.protocol.config import CLIENTS_MAX, TRIP_PAUSE, TRIP_PAUSE_MAX, ViewsConfig
from holdfast.features.views.protocol.deltas import applied
from holdfast.features.views.protocol.facts import Attached, Detached
from holdfast.features.views.protocol.messages import (
    ATTACHING,
    CHANGING,
    REFUSED,
    STABLE,
    UNKNOWN,
    ClientPing,
    ClientPong,
    StartChange,
    ViewMsg,
)
from holdfast.features.views.protocol.trips import RoundTrips
from holdfast.host import Address, Host, Message, NodeId, View, ViewState
from holdfast.kit.slots import Slot

LEAVE_TRIES = 3  # leaving is said so often: what is lost costs the others ``client_timeout``
HINT_AHEAD_MAX = 1 << 20  # attachments of this life that only servers remember; one answer must not use up all numbers
SILENT, MISSING = "its server does not answer", "the view of its server does not arrive"

Send = Callable[[NodeId | Address, Message], None]


class ViewClient:
    """The client of one agent."""

    def __init__(
        self,
        host: Host,
        config: ViewsConfig,
        slots: Sequence[Slot],
        own: int | None,
        send: Send,
        told: Callable[[ViewEvent], None],
        counts: Counter[str],
        *,
        former: ViewClient | None = None,
    ) -> None:
        """``former``: the client of this life before, whose numbers this one goes on with (views G2)."""
        self._host, self._config, self._send, self._told, self._counts = host, config, send, told, counts
        self.servers = in_order(host.me.name, slots, own)
        self.at = 0  # which of them it is attached to, or tries
        self.server: NodeId | None = None  # the life that answered in this attachment
        self.attach: int = 0 if former is None else former.attach
        self.attached_at = -inf
        self.view: View | None = None  # the last one installed, also while it is lost
        self.last_num: int = 0 if former is None else former.last_num
        self.changing = True
        self.changed_at = host.now  # when ``changing`` became what it is
        self.lease_until = -inf
        self.installed_at = -inf
        self.left_at: float | None = -inf if former is None else former.left_at  # no view lists it
        self.lost = True
        self.lost_since = host.now
        self.lost_why = "it was not attached yet"
        self.trips = RoundTrips()
        self.margin_min = inf  # the least that was left of a lease when it was extended
        self._seq = 0
        self._sent: dict[int, float] = {}  # pings of this attachment: seq -> when
        self._last_pong = -inf  # send time of the newest ping that was answered
        self._answered = False  # in this attachment
        self._stamp, self._stamped_by = 0.0, 0
        self._sc = 0
        self._echo = 0  # newest ping that the server had seen when it sent the view: an answer to it is older than the view
        self._is_attached = False
        self._known_by = 0  # newest ping that was answered as one of an attached client; answers to older pings may come later
        self._want_full = False
        self._missing_since: float | None = None  # its server names a view that does not arrive
        self._moved_at: float = -inf if former is None else former._moved_at  # when it left a server for that reason last
        self._move_pause: float = config.move_pause if former is None else former._move_pause
        self._trip_at: float = -inf if former is None else former._trip_at  # when it tripped last
        self._trip_pause: float = TRIP_PAUSE if former is None else former._trip_pause
        self._hurried_at = -inf
        self._anew_at = -inf  # when it attached anew at once because of an answer
        self._is_over = False

    def start(self) -> None:
        self._begin_attachment(self.at, "it begins")
        self._ping()

    def on_tick(self) -> None:
        """Once per heartbeat. A tick that is late heard nothing for so long, and accuses no server (F11)."""
        self.check_lease()
        now = self._host.now
        is_silent = now - max(self._last_pong, self.attached_at) > self._config.server_timeout
        if self.lost and (is_silent or now - self.attached_at > self._config.lease):
            self.lost_why = self._why_lost()  # What ended the last view may be over, and something else keep it from the next one.
        if self._host.late <= 2 * self._config.heartbeat:
            if is_silent:
                self._begin_attachment(self.at + 1, SILENT)
            elif self._is_view_missing():
                self._leave_for_a_view()
        self._ping()

    def leave(self) -> None:
        """Say goodbye; the view of the others changes at once instead of after ``client_timeout``."""
        for _ in range(LEAVE_TRIES):
            self._ping(leave=True)
        self.end()

    def end(self) -> None:
        """It says and tells nothing any more, whatever timers and hops of its time still come."""
        self._note_left()
        self._is_over = True

    @property
    def leased(self) -> bool:
        return self._host.now < self.lease_until

    @property
    def state(self) -> ViewState:
        if not self.leased or self.view is None:
            return ViewState.LOST
        return ViewState.CHANGING if self.changing else ViewState.STABLE

    @property
    def settled_at(self) -> float:
        return inf if self.view is None else self.installed_at + self._config.settle

    def check_lease(self) -> None:
        """F9: on every tick, and before every use."""
        if not self.leased:
            self._lose(self._why_lost())

    def trip(self, why: str, peer: NodeId | None = None, *, above: int = 0) -> bool:
        """Believe the view no more: a new attachment changes the key at every server, and so forces another view.

        ``above``: its number shall be higher than this one, too. One that no honest server can have reached is left out: with it no ping of
        this life would be read (H228).
        """
        now = self._host.now
        if self._is_over or now < self._trip_at + self._trip_pause:
            return False
        self._trip_pause = min(2 * self._trip_pause, TRIP_PAUSE_MAX) if now < self._trip_at + 2 * self._trip_pause else TRIP_PAUSE
        self._trip_at = now
        if is_beyond(above, self._host.wall):
            self._counts["malformed"] += 1
        else:
            self.last_num = max(self.last_num, above)
        self.lease_until = -inf
        self._told(ViewTripped(peer, why))
        self._lose(f"tripped: {why}")
        self._begin_attachment(self.at, f"tripped: {why}")
        self._ping()
        return True

    def hurry(self) -> None:
        """Ask the server once between two ticks."""
        now = self._host.now
        if now - self._hurried_at >= self._config.heartbeat:
            self._hurried_at = now
            self._ping()

    @property
    def trips_again_in(self) -> float:
        """Seconds until ``trip`` is accepted again."""
        return max(0.0, self._trip_at + self._trip_pause - self._host.now)

    def fail_over(self, server: NodeId) -> None:
        """An overlay message did not reach the server (D13)."""
        if server == self.server:
            self._begin_attachment(self.at + 1, "a message did not reach it")
            self._ping()

    # What the server says.

    def on_pong(self, source: NodeId, pong: ClientPong) -> None:
        sent_at = self._sent_at(source, pong.attach, pong.seq)
        if sent_at is None:
            return
        if pong.state == UNKNOWN:
            self._on_unknown(pong.hint)
            return
        if pong.state == REFUSED:
            self._begin_attachment(self.at + 1, "the server refused it")
            return  # The next tick asks: a refusal by all servers must not go round at the pace of the network.
        self.trips.add(self._host.now, self._host.now - sent_at)
        if sent_at >= self._last_pong:
            self._stamp, self._stamped_by = pong.stamp, source.boot
        self._last_pong = max(self._last_pong, sent_at)
        first, self._answered = not self._answered, True
        if pong.state == ATTACHING:
            if self._is_attached and pong.seq > self._known_by:  # So long ago that it remembers nothing; a number is used once (D9).
                self._attach_anew("the server does not know it any more")
            elif first:
                self._ping()
            return
        self._known_by = max(self._known_by, pong.seq)
        if not self._is_attached:
            self._is_attached = True
            self._host.emit(Attached(source, self.attach))
        if pong.state == STABLE:
            self._on_stable(pong, sent_at)
        elif pong.state == CHANGING and pong.sc >= self._sc and pong.seq > self._echo:
            self._sc = pong.sc
            self._begin_changing(0)

    def on_start_change(self, source: NodeId, message: StartChange) -> None:
        if source == self.server and message.attach == self.attach and message.sc > self._sc:
            self._sc = message.sc
            if message.num > self.last_num:  # Otherwise the view that the change ended with has overtaken it.
                self._begin_changing(message.num)

    def on_view(self, source: NodeId, message: ViewMsg) -> None:
        sent_at = self._sent.get(message.echo)
        if source != self.server or message.attach != self.attach or message.id.number <= self.last_num or sent_at is None:
            self._counts["late"] += 1
            return
        if message.size > CLIENTS_MAX or source not in message.servers or message.id[1:] != min(message.servers):
            self._counts["malformed"] += 1
            return
        view = applied(message, self.view)
        if view is None:
            self._want_full = True
            self._counts["deltas_refused"] += 1
            return
        me = view.find(self._host.me.name)
        if me is None or (me.id, me.attach) != (self._host.me, self.attach):
            self._counts["not_listed"] += 1
            return
        self._echo = message.echo
        self._install(view, sent_at)

    # Attachments.

    def _on_unknown(self, hint: int) -> None:
        if hint > self.attach + HINT_AHEAD_MAX:
            self._counts["malformed"] += 1
            return
        self.attach = max(self.attach, hint)
        self._attach_anew("the server knows a newer attachment")

    def _attach_anew(self, why: str) -> None:
        """At the same server; at once, but not twice in a heartbeat: its next answer may be the same."""
        now = self._host.now
        self._begin_attachment(self.at, why)
        if now - self._anew_at >= self._config.heartbeat:
            self._anew_at = now
            self._ping()

    def _begin_attachment(self, at: int, why: str) -> None:
        """The next server, or the same one anew. The lease runs on (D28): the chain of G6 counts from here, and is longer."""
        if self._is_over:
            return
        self.at = at % len(self.servers)
        self._note_left()
        former, self.server = self.server, None
        self.attach += 1
        self.attached_at = self._host.now
        self._sent.clear()
        self._answered = self._is_attached = False
        self._stamp, self._stamped_by, self._sc = 0.0, 0, 0
        self._missing_since = None
        self._set_changing(True)
        self._host.emit(Detached(former, self.attach, why))

    def _note_left(self) -> None:
        if self.left_at is None:
            self.left_at = self._host.now

    def _ping(self, *, leave: bool = False) -> None:
        if self._is_over:
            return
        self._seq += 1
        now = self._host.now
        for seq in [seq for seq, at in self._sent.items() if now - at > self._config.lease]:
            del self._sent[seq]
        self._sent[self._seq] = now
        address = None if self._is_attached else self._host.address
        ping = ClientPing(self.attach, self._seq, self._stamped_by, self._stamp, self.last_num, leave, self._want_full, address)
        self._send(self.servers[self.at].address, ping)

    def _sent_at(self, source: NodeId, attach: int, seq: int) -> float | None:
        """When the ping was sent that this answers; None: it is of another attachment, server or time."""
        sent_at = self._sent.get(seq)
        slot = self.servers[self.at]
        if attach != self.attach or sent_at is None or (slot.named and source.name != slot.name):
            self._counts["late"] += 1
            return None
        if self.server is None:
            self.server = source
        elif source != self.server:
            if source.boot > self.server.boot:  # It restarted and knows no clients.
                self._attach_anew("its server restarted")
            return None
        return sent_at

    # Views and leases.

    def _on_stable(self, pong: ClientPong, sent_at: float) -> None:
        view = self.view
        if view is None or pong.view != view.id or pong.sc < self._sc:
            if self._missing_since is None and pong.view is not None and pong.view.number > self.last_num and pong.seq > self._echo:
                self._missing_since = self._host.now
            return
        me = view.find(self._host.me.name)
        if me is None or me.attach != self.attach:
            return
        self.check_lease()  # F9: it may have ended since the last look, and then that is told.
        self._missing_since = None
        self._set_changing(False)
        self._extend(sent_at)
        if self.lost and self.leased:
            self.lost = False
            self._told(ViewRestored(view))

    def _is_view_missing(self) -> bool:
        """A view is missing for so long that another server may bring one (H235). Each move changes the view of all: moves get rarer."""
        since, now = self._missing_since, self._host.now
        is_missing = since is not None and now - since > self._config.view_timeout
        return is_missing and len(self.servers) > 1 and now >= self._moved_at + self._move_pause

    def _leave_for_a_view(self) -> None:
        config, now = self._config, self._host.now
        goes_on = now < self._moved_at + 2 * self._move_pause
        self._move_pause = min(2 * self._move_pause, config.move_pause_max) if goes_on else config.move_pause
        self._moved_at = now
        self._begin_attachment(self.at + 1, MISSING)

    def _begin_changing(self, number: int) -> None:
        if not self.changing:
            self._set_changing(True)
            self._told(Changing(number))

    def _set_changing(self, changing: bool) -> None:
        if changing != self.changing:
            self.changing, self.changed_at = changing, self._host.now

    def _install(self, view: View, sent_at: float) -> None:
        self.check_lease()
        former, self.view = self.view, view
        self.last_num, self.installed_at, self.left_at = view.number, self._host.now, None
        self._set_changing(False)
        self._want_full = False
        self._missing_since = None
        self.lost = False
        self.lease_until = -inf  # of the former view
        self._extend(sent_at)
        for member in view.members:
            if member.id != self._host.me:
                self._host.meet(member.id, member.address)
        was = set() if former is None else {member.id for member in former.members}
        now = {member.id for member in view.members}
        self._told(ViewChanged(view, tuple(sorted(now - was)), tuple(sorted(was - now))))
        self.check_lease()

    def _lose(self, why: str) -> None:
        if not self.lost and not self._is_over:
            self.lost, self.lost_since, self.lost_why = True, self._host.now, why
            self._told(ViewLost(why))

    def _extend(self, sent_at: float) -> None:
        until = sent_at + self._config.held
        if self.leased:
            self.margin_min = min(self.margin_min, self.lease_until - self._host.now)
        self.lease_until = max(self.lease_until, until)

    def _why_lost(self) -> str:
        slot = self.servers[self.at]
        if not self._answered:
            return f"no view server answers; the last one asked is {slot}"
        if not self._is_attached:
            return f"the view server {slot} does not let this agent in"
        if self._missing_since is not None:
            return f"the view server {slot} answers, and its view does not arrive: are larger messages lost?"
        return f"the view server {slot} did not confirm the view for {self._config.lease:g} s"


def in_order(name: str, slots: Sequence[Slot], own: int | None) -> tuple[Slot, ...]:
    """The own slot first, then by hash, so that clients spread over the servers."""
    return tuple(sorted(slots, key=lambda slot: (slot.number != own, _spread(name, slot.number))))


def _spread(name: str, number: int) -> bytes:
    return blake2b(f"{name}/{number}".encode(), digest_size=8).digest()
