"""Views as one limiter meets them: every history that the promises of views allow.  Spec: limits 7; views 1 (G1, G2, G6), 5.6.

Views are formed and delivered, late or never; leases run out and come back; changes are announced; the member leaves its attachment and
comes under another one. What is promised: numbers that are installed grow, an installed view lists the member in its present attachment, a
lease is no longer than ``lease`` from now and is not extended once the member left, ``left_at`` is true.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from random import Random

from holdfast.events import Changing, ViewChanged, ViewEvent, ViewLost, ViewRestored, ViewTripped
from holdfast.host import Address, Carried, Host, Message, NodeId, View, ViewId, ViewMember, ViewState

SETTLE, LEASE = 5.4, 1.5  # seconds, those of ``lan``
SERVERS = (NodeId("s0", 3), NodeId("s1", 7))
FORMED_MAX = 40  # views that are remembered; gossip of an older one does not come any more


class Breaker:
    """Implements ``Views``. The environment calls what has a name of its own; the limiter sees the rest."""

    settle, lease = SETTLE, LEASE

    def __init__(self, random: Random, host: Host, others: tuple[NodeId, ...], carried: Callable[[NodeId, Message], None]) -> None:
        self._random, self._host, self._others, self._carried = random, host, others, carried
        self._listeners: list[Callable[[ViewEvent], None]] = []
        self.formed: dict[ViewId, View] = {}  # all that list this life
        self.attach = 1
        self.last_number = 0
        self._view: View | None = None  # installed last, also while it is lost
        self._changing = True
        self._lost = True
        self._voided = False
        self.leased_until = -inf
        self.settled_at = inf
        self.left_at: float | None = -inf  # no view lists it
        self._pause = random.choice((0.0, 5.0, 20.0, 60.0))  # after a trip, in which none is done (views 5.7)
        self._tripped_at = -inf
        self.waiting: list[Callable[[Carried], None]] = []  # carried messages of which nothing is known yet

    # What the limiter sees.

    @property
    def view(self) -> View | None:
        return None if self.state is ViewState.LOST else self._view

    @property
    def state(self) -> ViewState:
        if self._view is None or self._host.now >= self.leased_until:
            return ViewState.LOST
        return ViewState.CHANGING if self._changing else ViewState.STABLE

    @property
    def settled(self) -> bool:
        return self.state is ViewState.STABLE and self._host.now >= self.settled_at

    def subscribe(self, listener: Callable[[ViewEvent], None]) -> None:
        self._listeners.append(listener)

    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        view = self.view
        if view is None or all(member.id != to for member in view.members):
            done(Carried.NOT_IN_VIEW)
            return
        self._carried(to, message)
        self.waiting.append(done)

    def trip(self, why: str, *, above: int = 0) -> bool:
        if self._host.now < self._tripped_at + self._pause:
            return False
        self._tripped_at = self._host.now
        self.last_number = max(self.last_number, above)
        self.leased_until = -inf
        self._tell(ViewTripped(None, why))
        self.notice()
        self._leave()
        return True

    def hurry(self) -> None:
        """The environment delivers when it likes."""

    # What the environment does. Each of these is one turn of the agent.

    @property
    def installed(self) -> View | None:
        return self._view

    def form(self) -> View:
        """Servers agree on a view with this member in its present attachment. Whether it is delivered here is another question."""
        random = self._random
        of_now = [view.number for view in self.formed.values() if self._lists(view)]
        number = max([self.last_number, *of_now]) + random.choice((1, 1, 1, 2, 5))
        members = [NodeId(other.name, other.boot) for other in self._others if random.random() < 0.8]
        server = random.choice(SERVERS)
        listed = [ViewMember(self._host.me, self._host.address, self.attach, server)]
        listed += [ViewMember(member, Address(member.name, 1), 1, server) for member in members]
        view = View(ViewId(number, server.name, server.boot), (server,), tuple(sorted(listed)), len(self._others) + 1)
        if view.id in self.formed:
            return self.formed[view.id]
        self.formed[view.id] = view
        while len(self.formed) > FORMED_MAX:
            del self.formed[next(iter(self.formed))]
        return view

    def deliver(self, view: View) -> bool:
        """Install it, if that may be."""
        if view.number <= self.last_number or not self._lists(view):
            return False
        self.notice()
        former, self._view = self._view, view
        self.last_number, self.left_at = view.number, None
        self.settled_at = self._host.now + SETTLE
        self._changing = self._lost = False
        self.leased_until = self._host.now + LEASE * self._random.random()
        before = () if former is None else tuple(member.id for member in former.members)
        now = tuple(member.id for member in view.members)
        added = tuple(life for life in now if life not in before)
        self._tell(ViewChanged(view, added, tuple(life for life in before if life not in now)))
        return True

    def extend(self, seconds: float) -> bool:
        """The server vouches for the view: the lease is longer, or comes back."""
        if self._view is None or self.left_at is not None:
            return False
        self.notice()
        self.leased_until = max(self.leased_until, self._host.now + min(seconds, LEASE))
        self._changing = False
        if self._lost and self.leased_until > self._host.now:
            self._lost = False
            self._tell(ViewRestored(self._view))
        return True

    def change(self) -> None:
        if self.state is ViewState.STABLE:
            self._changing = True
            self._tell(Changing(self.last_number + 1))

    def move(self) -> None:
        """Another attachment: to another server, or because this one forgot the member."""
        self._leave()

    def notice(self) -> None:
        """The client of views looks at the clock."""
        if not self._lost and self._host.now >= self.leased_until:
            self._lost = True
            self._tell(ViewLost("the fuzzer says so"))

    def answer(self, outcome: Carried) -> None:
        """What became of a message that was carried; any of them."""
        if self.waiting:
            self.waiting.pop(self._random.randrange(len(self.waiting)))(outcome)

    def _leave(self) -> None:
        self.attach += 1
        self._changing = True
        if self.left_at is None:
            self.left_at = self._host.now

    def _lists(self, view: View) -> bool:
        return any(member.id == self._host.me and member.attach == self.attach for member in view.members)

    def _tell(self, event: ViewEvent) -> None:
        for listener in self._listeners:
            listener(event)
