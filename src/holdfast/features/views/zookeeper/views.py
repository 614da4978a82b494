"""Views from an unmodified ZooKeeper: the list of ephemeral znodes, with a lease on it.  Spec: views 5Z, D21-D23; G1, G2, G5-G7; F9.

There is one sequence of views, numbered by the zxid of the last change. A lease on the newest one is counted from before a ``sync``, and
a connection that breaks ends it at once. A deposed leader may answer ``sync`` for ``stale`` seconds, so a view is settled when that and a
lease are over. Nothing bounds how long others count on a member that is gone (a new leader starts every session's clock again), so
``left_at`` is never told. ``Changing`` is never emitted either: ZooKeeper has no such notice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import inf

from holdfast.errors import NameConflict
from holdfast.events import ViewChanged, ViewEvent, ViewLost, ViewRestored, ViewTripped
from holdfast.features.views.protocol.config import PEAK_SECONDS, RHO_MIN, TRIP_PAUSE, TRIP_PAUSE_MAX, ViewsConfig
from holdfast.features.views.protocol.facts import Received
from holdfast.features.views.protocol.survey import ViewSurvey
from holdfast.features.views.zookeeper.cleaner import Cleaner
from holdfast.features.views.zookeeper.data import Letter, MemberData, Paths
from holdfast.features.views.zookeeper.entry import Entry
from holdfast.features.views.zookeeper.inbox import Inbox
from holdfast.features.views.zookeeper.leaving import Leaving
from holdfast.features.views.zookeeper.link import Link
from holdfast.features.views.zookeeper.looks import Looks, OnRows, Seen
from holdfast.features.views.zookeeper.outbox import Outbox
from holdfast.features.views.zookeeper.znodes import Sessions, Standing
from holdfast.host import Carried, Host, Message, NodeId, Timer, View, ViewId, ViewMember, ViewState
from holdfast.kit.deadline import Deadline, wait_length
from holdfast.kit.parcels import Parcels

PEAKS_MAX = 1024  # views remembered for ``View.fleet``; more in ten minutes is no fleet
GRACE_MAX = 2.0  # seconds beyond a lease; G5 has three
NOT_YET = "ZooKeeper has not answered yet"


class ZooKeeperViews:
    """A Machine without messages; offers ``host.Views``."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""

    def __init__(
        self,
        host: Host,
        config: ViewsConfig,
        group: str,
        sessions: Sessions,
        parcels: Parcels,
        *,
        stale: float,
    ) -> None:
        self._host, self._config, self._sessions, self._parcels = host, config, sessions, parcels
        self.settle = wait_length(config.lease + stale, max(config.rho, RHO_MIN), config.margin)
        self.link = Link()
        paths = Paths(group, host.me.name)
        self.entry = Entry(host, self.link, paths, MemberData(host.me.boot, host.address))
        self.looks = Looks(host, self.link, paths, timeout=sessions.asked)
        self.inbox = Inbox(host, self.link, paths, self._deliver)
        self.outbox = Outbox(host, self.link, paths, config)
        self.cleaner = Cleaner(host, self.link, paths)
        self._paths = paths
        self._listeners: list[Callable[[ViewEvent], None]] = []
        self._view: View | None = None  # the last one, also while it is lost
        self._peaks: deque[tuple[float, int]] = deque(maxlen=PEAKS_MAX)
        self._lease = Deadline(host)
        self._installed_at = inf
        self._lost_since: float | None = None  # None: leased, or not taking part
        self._lost_why = ""
        self._lost_seconds = 0.0  # of times that are over
        self._margin = inf  # the least that was left of a lease when it was renewed
        self._views = self._older = 0
        self._trip_at, self._trip_pause = -inf, TRIP_PAUSE  # of the last trip
        self._taking_part = False
        self._session = 0  # the last one that was connected
        self._leaving: Leaving | None = None
        self._tick: Timer | None = None
        self._lapse: Timer | None = None
        self.entry.on_entered, self.entry.on_refused = self._on_entered, self._lose
        self.looks.on_seen, self.looks.on_missing, self.looks.on_refused = self._on_seen, self._on_missing, self._lose
        self.outbox.on_unread = self._on_unread

    # The life of a machine.

    def start(self) -> None:
        """Nothing happens before this agent takes part."""

    def on_message(self, source: NodeId, message: Message) -> None:
        """It owns no type."""

    def on_away(self, seconds: float) -> None:
        """Time went on: the lease may be over, and the session with it."""
        self._on_lapse()

    def stop(self) -> None:
        """At once: the session ends in its own thread, and the znode with it."""
        self.outbox.drop()
        if self._leaving is not None:
            self._leaving.end()
        session = self.link.session
        self._quit()
        self.link.end()
        self.link.session = None
        if session is not None:
            session.close()

    def take_part(self) -> None:
        """Connect, and become a member of the group's views. Idempotent."""
        if self._taking_part:
            return
        if self._leaving is not None:
            self._leaving.end()
        self._taking_part = True
        self._lost_since, self._lost_why = self._host.now, NOT_YET
        self.link.session = self._sessions.open(self)
        self._on_tick()

    def withdraw(self) -> None:
        """Leave politely; ``left`` says when that is done. Idempotent."""
        if not self._taking_part:
            return
        session = self.link.session
        assert session is not None
        self._quit()
        self._leaving = Leaving(self._host, self.link, session, self._paths)
        self._leaving.begin()
        self._lose("this agent left")
        self._end_loss()
        self.outbox.on_lost()

    @property
    def left(self) -> bool:
        """It takes no part, and nothing remains to be said."""
        return not self._taking_part and (self._leaving is None or self._leaving.over)

    @property
    def idle_since(self) -> float | None:
        """Always None: this agent serves no views."""
        return None

    @property
    def conflict(self) -> NameConflict | None:
        """Another agent has this name in ZooKeeper; there is no view until one of the two is gone."""
        return self.entry.conflict

    @property
    def session_asked(self) -> float:
        return self._sessions.asked

    @property
    def session_granted(self) -> float | None:
        """The time-out that the ensemble granted instead: ``doctor`` compares the two."""
        return self._sessions.granted

    # host.Views

    @property
    def view(self) -> View | None:
        return self._view if self._lease.valid else None

    @property
    def state(self) -> ViewState:
        return ViewState.STABLE if self._lease.valid else ViewState.LOST

    @property
    def leased_until(self) -> float:
        return self._lease.until

    @property
    def settled_at(self) -> float:
        return self._installed_at + self.settle

    @property
    def lease(self) -> float:
        return self._config.held

    @property
    def left_at(self) -> float | None:
        """Always None: views G6 (c) has no bound here, so nothing may be counted from it (views 5Z)."""
        return None

    @property
    def settled(self) -> bool:
        return self._lease.valid and self._host.now >= self.settled_at

    def subscribe(self, listener: Callable[[ViewEvent], None]) -> None:
        self._listeners.append(listener)

    # Rows beside the view (``protocol.membership.RowsBeside``).

    def publish(self, version: int, rows: Mapping[str, bytes]) -> None:
        self.entry.publish(version, rows)

    def on_rows(self, listener: OnRows) -> None:
        self.looks.on_rows = listener

    # host.Views, how to send

    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        view = self.view
        member = None if view is None else view.find(to.name)
        if member is None or member.id != to:
            done(Carried.NOT_IN_VIEW)
        elif (parcel := self._parcels.pack(message)) is None:
            done(Carried.TOO_LARGE)
        else:
            self.outbox.send(member, parcel, done)

    def trip(self, why: str, *, above: int = 0) -> bool:
        del above  # The number of the next change is greater than those of all views that any member has seen.
        return self._trip(None, why)

    def hurry(self) -> None:
        """A watch of ZooKeeper tells it already."""

    # For people.

    def survey(self) -> ViewSurvey:
        own = None if self._view is None else self._view.find(self._host.me.name)
        return ViewSurvey(
            own=None,
            server=None,
            attach=0 if own is None else own.attach,
            installed_for=None if self.view is None else self._host.now - self._installed_at,
            changing_for=None,
            lost_for=None if self._lost_since is None else self._host.now - self._lost_since,
            lost_why=self._why_lost(),
            links=(),
            graph=(),
            clients=0,
            quarantined=0,
            rtt_p99=self.looks.rtt_p99(),
            number=0,
        )

    def metrics(self) -> dict[str, float]:
        """Counters never fall in a life; the rest is as of now. Those of the other back end that mean nothing here are not there."""
        view, counts, now = self.view, self.outbox.counts, self._host.now
        lost = self._lost_seconds + (0.0 if self._lost_since is None else now - self._lost_since)
        return {
            "number": 0.0 if view is None else float(view.number),
            "size": 0.0 if view is None else float(view.size),
            "views_total": float(self._views),
            "seconds_lost": lost,
            **({} if self._margin == inf else {"lease_margin_min": self._margin}),
            **{f"carried_{name}": float(count) for name, count in counts.items()},
            "carried_received": self.inbox.received,
            "overlay_under_way": self.outbox.under_way,
            "zookeeper_connected": float(self.link.up),
            "zookeeper_session_seconds": self._sessions.granted or 0.0,
            "zookeeper_rtt_p99": self.looks.rtt_p99() or 0.0,
            "zookeeper_late_answers_total": self.link.late,
            "zookeeper_older_lists_total": self._older,
            "zookeeper_members_malformed_total": self.looks.malformed,
            "zookeeper_letters_malformed_total": self.inbox.malformed,
            "zookeeper_letters_misdirected_total": self.inbox.misdirected,
            "zookeeper_mailboxes_removed_total": self.cleaner.removed,
        }

    # The session.

    def on_standing(self, standing: Standing, session: int) -> None:
        if not self._taking_part:
            return
        if standing is Standing.CONNECTED:
            self._on_connected(session)
        else:
            self._on_broken(standing)

    def on_watch(self, path: str, deleted: bool) -> None:
        if not self._taking_part or not self.link.up:
            return
        if path == self._paths.members and self.entry.entered:
            self.looks.begin(again=True)
        elif path == self._paths.mailbox and self.entry.entered:
            self.inbox.look()
        else:
            self.outbox.on_watch(path, deleted)

    def _on_connected(self, session: int) -> None:
        self._forget()
        self.link.begin(session)
        if session != self._session:
            self.outbox.on_lost()
        self._session = session
        self.outbox.on_connected()
        self.entry.begin()

    def _on_broken(self, standing: Standing) -> None:
        """The lease is void at once: what the others decide does not reach this agent any more."""
        self.link.end()
        self._forget()
        lost = standing is Standing.LOST
        self._lose("the session with ZooKeeper is over" if lost else "the connection to ZooKeeper broke")
        if lost:
            self.outbox.on_lost()
        else:
            self.outbox.on_suspended()

    def _forget(self) -> None:
        """Nothing that was asked of the former connection is waited for."""
        self.entry.reset()
        self.looks.reset()
        self.inbox.reset()

    # Views and their lease.

    def _on_entered(self) -> None:
        self.looks.begin(again=True)
        self.inbox.look()

    def _on_missing(self) -> None:
        """The lease runs on: it is older than any view without this member, as any other lease is."""
        self.entry.begin()

    def _on_tick(self) -> None:
        self._tick = self._host.after(self._config.lease / 4, self._on_tick)
        if self.entry.entered:
            self.looks.begin()
            if (view := self.view) is not None:
                self.cleaner.look(view)

    def _on_seen(self, seen: Seen) -> None:
        self._on_lapse()
        number = 0 if self._view is None else self._view.number
        until = seen.began_at + self._config.held
        if seen.number < number:  # A deposed leader answered after its successor, or the ensemble lost its data.
            self._older += 1
            if not self._lease.valid:
                self._lose(f"ZooKeeper shows list {seen.number}, which is older than view {number}")
        elif until > self._host.now:
            if self._lease.valid:
                self._margin = min(self._margin, self._lease.remaining)
            self._lease.extend(until)
            self._end_loss()
            if seen.number > number:
                self._install(seen)
            elif self._lost_why:
                self._restore()
            self._arm()

    def _install(self, seen: Seen) -> None:
        former = () if self._view is None else tuple(member.id for member in self._view.members)
        now, present = self._host.now, tuple(member.id for member in seen.members)
        self._view = View(ViewId(seen.number, "", 0), (), seen.members, self._fleet(len(present)))
        self._installed_at, self._lost_why = now, ""
        self._views += 1
        for member in seen.members:
            self._host.meet(member.id, member.address)
        were, are = frozenset(former), frozenset(present)
        added, removed = tuple(life for life in present if life not in were), tuple(life for life in former if life not in are)
        self._tell(ViewChanged(self._view, added, removed))
        self.outbox.on_view(self._view)

    def _restore(self) -> None:
        self._lost_why = ""
        assert self._view is not None
        self._tell(ViewRestored(self._view))

    def _fleet(self, size: int) -> int:
        """The largest view of the last ten minutes, as this agent saw it."""
        now = self._host.now
        while self._peaks and self._peaks[0][0] < now - PEAK_SECONDS:
            self._peaks.popleft()
        self._peaks.append((now, size))
        return max(size for _, size in self._peaks)

    def _arm(self) -> None:
        if self._lapse is None and self._lease.valid:  # A listener may have tripped.
            self._lapse = self._host.at(self._lease.until, self._on_lapse)

    def _on_lapse(self) -> None:
        if self._lapse is not None:
            self._lapse.cancel()
            self._lapse = None
        if self._lease.valid:
            self._arm()
        elif self._lost_since is None and self._taking_part:
            self._lose(f"ZooKeeper did not confirm the list of members for {self._config.lease:g} s")

    def _lose(self, why: str) -> None:
        """No lease from now on. Told once until there is one again; the newest reason stands in ``survey``."""
        had = self._lost_since is None
        self._lease.end()
        self._lost_why = why
        if had:
            self._lost_since = self._host.now
            self._tell(ViewLost(self._why_lost()))

    def _end_loss(self) -> None:
        if self._lost_since is not None:
            self._lost_seconds += self._host.now - self._lost_since
            self._lost_since = None

    def _why_lost(self) -> str:
        session = self.link.session
        complaint = "" if session is None or self.link.up else session.complaint
        return f"{self._lost_why} ({complaint})" if self._lost_why and complaint else self._lost_why

    def _trip(self, peer: NodeId | None, why: str) -> bool:
        now = self._host.now
        if not self._taking_part or now < self._trip_at + self._trip_pause:
            return False
        goes_on = now < self._trip_at + 2 * self._trip_pause
        self._trip_pause = min(2 * self._trip_pause, TRIP_PAUSE_MAX) if goes_on else TRIP_PAUSE
        self._trip_at = now
        self._tell(ViewTripped(peer, why))
        self._lose(f"given up: {why}")
        self.looks.reset()
        self.entry.renew()
        return True

    @property
    def trips_again_in(self) -> float:
        """Seconds until ``trip`` is accepted again."""
        return max(0.0, self._trip_at + self._trip_pause - self._host.now)

    def _on_unread(self, to: ViewMember) -> None:
        """A receiver that died leaves the view with its session, which may take longer than a letter. A trip before that is useless: the
        view that it forces still has the receiver in it. So wait for the session, within the time of G5."""
        lease, session = self._config.lease, self._sessions.granted or self._sessions.asked
        grace = min(max(0.0, session + lease - self._config.ov_deadline), lease + GRACE_MAX)
        self._host.after(grace, lambda: self._on_still_there(to))

    def _on_still_there(self, to: ViewMember) -> None:
        view = self.view
        if view is not None and view.find(to.id.name) == to:
            self._trip(to.id, f"{to.id} did not read a letter for {self._config.ov_deadline:g} s")

    # The rest.

    def _deliver(self, letter: Letter) -> None:
        self._host.emit(Received(letter.source, letter.mid))
        self._parcels.unpack(letter.source, letter.message)

    def _quit(self) -> None:
        """Take part no more."""
        self._taking_part = False
        for timer in (self._tick, self._lapse):
            if timer is not None:
                timer.cancel()
        self._tick = self._lapse = None
        self._lease.end()
        self._forget()

    def _tell(self, event: ViewEvent) -> None:
        self._host.emit(event)
        for listener in self._listeners:
            listener(event)
