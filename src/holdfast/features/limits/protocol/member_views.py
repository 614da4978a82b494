"""Limits without agreed views: over the member list of this agent.  Spec: limits 5.11, H272; foundation F15.

Every member has its own list. Those that have the same one gossip with each other; where lists have differed for longer than news of a
member takes, no member knows how many share the limit, and each goes back to R/n. So only policy ``fair`` is offered here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from hashlib import blake2b
from math import inf

from holdfast.events import MembershipEvent, ViewChanged, ViewEvent
from holdfast.host import Carried, Host, Membership, Message, NodeId, View, ViewId, ViewMember, ViewState

DIGEST_BITS = 41  # a number that grows has to stay below the clock's (``bounds.Growing``); the rest of the digest is in the name
SETTLE, LEASE = 5.4, 1.5  # seconds, as views have them with the usual heartbeat
PEAK_SECONDS = 600.0  # how long the largest list is remembered
PEAKS_MAX = 1024  # lists remembered for that: more in ten minutes is no fleet


class MemberViews:
    """Implements ``host.Views``. A view is the member list as it is; its id is a digest of the lives, so ids do not grow."""

    settle, lease = SETTLE, LEASE
    settled_at = inf
    left_at: float | None = None
    settled = False

    def __init__(self, host: Host, membership: Membership) -> None:
        self._host, self._membership = host, membership
        self._version: int | None = None
        self._view: View | None = None
        self._peaks: deque[tuple[float, int]] = deque(maxlen=PEAKS_MAX)
        self._listeners: list[Callable[[ViewEvent], None]] = []
        membership.subscribe(self._on_member_event)

    @property
    def view(self) -> View | None:
        """None: this agent is in no group."""
        if self._version != self._membership.version:
            self._version = self._membership.version
            self._read()
        return self._view if self._host.now < self.leased_until else None

    @property
    def state(self) -> ViewState:
        return ViewState.LOST if self.view is None else ViewState.STABLE

    @property
    def leased_until(self) -> float:
        return self._membership.usable_until()

    def subscribe(self, listener: Callable[[ViewEvent], None]) -> None:
        self._listeners.append(listener)

    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        """There is no way round."""
        done(Carried.NOT_IN_VIEW)

    def trip(self, why: str, *, above: int = 0) -> bool:
        """The member list is not this machine's to change."""
        return False

    def hurry(self) -> None:
        """Its membership hears what there is to hear."""

    def _read(self) -> None:
        members = self._membership.members()
        lives = tuple(member.id for member in members)
        if self._host.me not in lives:
            self._view = None
            return
        inst = digest_of(lives)
        if self._view is not None and self._view.id == inst:
            return
        now = self._host.now
        while self._peaks and self._peaks[0][0] < now - PEAK_SECONDS:
            self._peaks.popleft()
        self._peaks.append((now, len(lives)))
        listed = tuple(ViewMember(member.id, member.address, 0, self._host.me) for member in members)
        self._view = View(inst, (), listed, max(size for _, size in self._peaks))

    def _on_member_event(self, event: MembershipEvent) -> None:
        former, view = self._view, self.view
        if view is None or view is former:
            return
        before = () if former is None else tuple(member.id for member in former.members)
        now = tuple(member.id for member in view.members)
        added, removed = (life for life in now if life not in before), (life for life in before if life not in now)
        told = ViewChanged(view, tuple(added), tuple(removed))
        for listener in tuple(self._listeners):
            listener(told)


def digest_of(lives: Sequence[NodeId]) -> ViewId:
    """The same for the same lives, everywhere."""
    digest = blake2b("\n".join(str(life) for life in sorted(lives)).encode(), digest_size=16)
    return ViewId(int.from_bytes(digest.digest()[:8], "big") >> (64 - DIGEST_BITS), digest.hexdigest()[16:], 0)
