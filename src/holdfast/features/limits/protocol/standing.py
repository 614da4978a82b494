"""How this member stands: its instance, its lease, and when it may take its 1/n again.  Spec: limits 5.5-5.7, D11, D20, D23, H266; F9, F11.

An instance of gossip is a view: delivered by its server, or known from a peer (provisional). Without a lease a member is in panic. What it
gave away in an instance may be in use until ``settle`` after it left; then it lapses: it takes its 1/n, and is no part of that instance any
more. Every handler and timer of the limiter asks ``look`` first, which compares with the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from holdfast.events import ViewChanged, ViewEvent, ViewRestored
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.features.limits.protocol.facts import Calmed, InstanceBegan, InstanceConfirmed, Lapsed, Panicked
from holdfast.host import Host, NodeId, View, ViewId, Views, ViewState

ROUNDS_AHEAD_MAX = 1 << 20  # one round is one change of a member list at one member
NO_VIEW = "this agent is in no view"


class Standing:
    """One member, whatever limits there are. The limiter sets what is called when it changes."""

    def __init__(self, host: Host, views: Views, config: LimitsConfig, *, agreed: bool) -> None:
        self._host, self._views, self._config, self.agreed = host, views, config, agreed
        self.inst: ViewId | None = None
        self.members: tuple[NodeId, ...] = ()  # of the instance, this life included; empty while it is provisional
        self.size = 1
        self.provisional = False
        self.fleet = 0  # members of the largest view of late; 0: none is known
        self.started_at = self.settle_at = self.began_at = host.now
        self.panic, self.panic_at = True, host.now
        self._panic_before = self._provisional_before = 0.0  # seconds, until the present one began
        self.lapsed = False
        self.apart = False  # member lists differ for too long (5.11)
        self.on_began: Callable[[int], None] = _ignore  # a new instance; the size of the former one, 0 if there was none
        self.on_panic: Callable[[], None] = _nothing
        self.on_calm: Callable[[], None] = _nothing
        self.on_lapse: Callable[[], None] = _nothing
        self.on_confirmed: Callable[[], None] = _nothing  # the server delivered the view of a provisional instance
        self._adopt_until = inf  # a provisional instance has to be delivered by then
        self._is_subscribed = False
        self._is_left_unknown = False  # these views do not say when a member left: nothing may be counted from it
        self._heard: dict[NodeId, None] = {}  # in a provisional instance
        self._round = 0  # without agreed views: the highest of any list

    def start(self) -> None:
        """D11: what a former life gave away may be in use for ``settle``."""
        self._panic_before, self._provisional_before = self.panic_seconds, self.provisional_seconds
        self.started_at = self.began_at = self.panic_at = self._host.now
        self.settle_at = self._host.now + self._views.settle
        if not self._is_subscribed:  # A node may take its limiter out and put it in again.
            self._views.subscribe(self._on_view_event)
            self._is_subscribed = True
        if self._views.view is not None:
            self._install(self._views.view)
        else:
            self._is_left_unknown = self._views.left_at is None
        self.look()

    # What holds now.

    @property
    def panic_seconds(self) -> float:
        """For how long this member was in panic, all times together."""
        return self._panic_before + (self._host.now - self.panic_at if self.panic else 0.0)

    @property
    def provisional_seconds(self) -> float:
        """The same of instances that its server had not delivered."""
        return self._provisional_before + (self._host.now - self.began_at if self.provisional else 0.0)

    @property
    def leased(self) -> bool:
        return self._host.now < self._views.leased_until

    @property
    def acts(self) -> bool:
        """It takes part in its instance, if only for gossip."""
        return self.inst is not None and self.leased and not self.lapsed

    @property
    def counts(self) -> bool:
        """Its instance is the view that its lease is on, so that quota may move (5.5)."""
        view = self._views.view
        return self.acts and not self.provisional and view is not None and view.id == self.inst

    @property
    def may_grow(self) -> bool:
        """Nothing of an earlier instance is in use any more, and no change is under way (views G6)."""
        return self.counts and self._host.now >= self.settle_at and self._views.state is ViewState.STABLE

    @property
    def peers(self) -> tuple[NodeId, ...]:
        """The others of this instance that may be spoken to."""
        if self.provisional:
            return tuple(sorted(self._heard))
        return tuple(member for member in self.members if member != self._host.me)

    def includes(self, peer: NodeId) -> bool:
        """What it says in this instance counts: to a provisional member, that of a peer that knows this instance and this life."""
        return peer in self._heard if self.provisional else peer in self._listed

    def rank(self) -> int:
        """Place among the members, from 0 (D3)."""
        return self.members.index(self._host.me) if self._host.me in self._listed else 0

    # What happens.

    def look(self, *, may_trip: bool = True) -> None:
        """F9: compare with the clock before anything else. ``may_trip``: not inside of what the views tell."""
        now = self._host.now
        if not self.agreed and (view := self._views.view) is not None:
            self._install(view)  # A member list may change without an event that is for this machine.
        if may_trip and self.provisional and now >= self._adopt_until and not self._is_late:
            self._trip("a view that other members have does not arrive")
        if self.leased and not self.lapsed and not self.apart:
            if self.panic:
                self._panic_before, self.panic = self.panic_seconds, False
                self._host.emit(Calmed(self.inst))
                self.on_calm()
            return
        if not self.panic:
            self.panic, self.panic_at = True, now
            self._host.emit(Panicked("member lists differ" if self.apart else NO_VIEW))
            self.on_panic()
        if not self.agreed:
            return
        if not self.leased:
            self._look_for_lapse(may_trip=may_trip)
        elif may_trip and self.lapsed:
            self._trip("its part of the view is used by this agent alone")

    def hear_of(self, inst: ViewId, size: int, source: NodeId) -> None:
        """A peer gossips in a newer instance, and addressed this life: so this member is in that view (5.6, D5)."""
        assert self.agreed
        assert self.inst is None or inst > self.inst
        self._begin(inst, size, (), provisional=True)
        self._adopt_until = self._host.now + self._config.adopt_timeout
        self.hear(source)
        self._views.hurry()

    def hear(self, source: NodeId) -> None:
        """A peer is in this provisional instance."""
        if self.provisional and len(self._heard) < self.size:
            self._heard[source] = None

    def begin_round(self, inst: ViewId) -> bool:
        """A member with the same list began anew there, so all do (H272). False: no honest member is so far ahead."""
        assert self.inst is not None
        assert same_list(self.inst, inst)
        if inst.boot > self._round + ROUNDS_AHEAD_MAX:
            return False
        self._begin(inst, self.size, self.members, provisional=False)
        return True

    def part(self, *, apart: bool) -> None:
        """Member lists have differed for too long, or do so no more (5.11)."""
        if apart != self.apart:
            self.apart = apart
            self.look()

    @property
    def _is_late(self) -> bool:
        """F11: this callback heard nothing for so long, and accuses no server."""
        return self._host.late > self._config.epoch

    def _on_view_event(self, event: ViewEvent) -> None:
        if isinstance(event, ViewChanged | ViewRestored):
            self._install(event.view)
        self.look(may_trip=False)

    def _install(self, view: View) -> None:
        self.fleet = max(view.fleet, view.size)
        members = tuple(member.id for member in view.members)
        if not self.agreed:
            if self.inst is None or not same_list(self.inst, view.id):
                self._begin(of_round(view.id, self._round + 1), view.size, members, provisional=False)
        elif view.id == self.inst:
            if self.provisional:
                self._confirm(members)
        elif self.inst is None or view.id > self.inst:
            self._begin(view.id, view.size, members, provisional=False)

    def _begin(self, inst: ViewId, size: int, members: tuple[NodeId, ...], *, provisional: bool) -> None:
        former = 0 if self.inst is None else self.size
        self._provisional_before = self.provisional_seconds
        self.inst, self.provisional, self._round = inst, provisional, max(self._round, inst.boot)
        self._set_members(members, size)
        self.fleet = max(self.fleet, self.size)  # a view that was not delivered does not say more
        self._heard.clear()
        self._adopt_until = inf
        self.lapsed = False
        self.began_at = self._host.now
        self.settle_at = self._host.now + self._views.settle
        self._host.emit(InstanceBegan(inst, self.size, provisional))
        self.on_began(former)

    def _confirm(self, members: tuple[NodeId, ...]) -> None:
        """What was gossiped stays; after a lapse this is no calm (D20), which ``look`` sees to. views G6 counts from here (H266)."""
        assert self.inst is not None
        self._provisional_before = self.provisional_seconds
        self.provisional, self._adopt_until = False, inf
        self.settle_at = max(self.settle_at, self._host.now + self._views.settle)
        self._set_members(members, len(members))
        self._host.emit(InstanceConfirmed(self.inst))
        self.on_confirmed()

    def _set_members(self, members: tuple[NodeId, ...], size: int) -> None:
        self.members, self._listed, self.size = members, frozenset(members), max(1, size)

    def _look_for_lapse(self, *, may_trip: bool) -> None:
        """D23: it counts from when this member left, for until then its server may go on listing it, and others keep what it gave."""
        now, left_at, settle = self._host.now, self._views.left_at, self._views.settle
        if self.lapsed:
            return
        if left_at is not None:
            if now >= max(self.settle_at, left_at + settle):
                self.lapsed = True
                self._host.emit(Lapsed(self.inst))
                self.on_lapse()
        elif may_trip and now >= self.panic_at + settle and not self._is_left_unknown and not self._is_late:
            # Tripping is leaving. Views that do not say so after it never will: nothing is known to end there (views 5Z).
            self._is_left_unknown = self._trip("no lease for long: it leaves") and self._views.left_at is None

    def _trip(self, why: str) -> bool:
        """The next view has to be a new instance, so its number is to be above this one's."""
        tripped = self._views.trip(why, above=0 if self.inst is None else self.inst.number)
        if tripped:
            self._adopt_until = inf
        return tripped

    _listed: frozenset[NodeId] = frozenset()


def of_round(inst: ViewId, number: int) -> ViewId:
    """A list may come back, and with it its digest; what was counted before is over at some members, so rounds tell the times apart."""
    return inst._replace(boot=number)


def same_list(one: ViewId, other: ViewId) -> bool:
    """Whatever the round."""
    return one[:2] == other[:2]


def _nothing() -> None:
    """Until the limiter listens."""


def _ignore(former: int) -> None:
    """Until the limiter listens."""
    del former
