"""Views feed: holds back agreed views until an election may stand on them.  Spec: fast-detection D17.

Leases of one view and elections of a later one exclude each other only if

1. neighbouring views differ by at most one member, so that any two majorities of them share a member, and
2. view v + 1 reaches no member before a majority of v has installed v *and* the longest lease of view v - 1 has ended since.

Without the wait: {a, b, c}, a leads with b's promise; {b, c} is installed by both; {c} at once: c, who promised nothing, leads
alone while a's lease runs.

The layer below agrees on views: the same number means the same list everywhere, numbers are consecutive from 1. Every node asks
the others how far they are, and judges for itself. A member that has installed a view could do so only after one saw the
conditions hold for it, so the word of one is enough to follow; all others count the majority and wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from holdfast.bounds import Number
from holdfast.errors import ConfigError
from holdfast.host import FANOUT_MAX, Address, Host, Message, NodeId, Timer, fingerprint
from holdfast.kit.deadline import wait_length
from holdfast.kit.keeper import MARGIN

MEMBERS_MAX = FANOUT_MAX + 1  # all others are told at once (F17)
VIEW_FIRST = 1  # nothing came before it, so nothing has to be waited for
VIEW_MAX = (1 << 21) - 1  # tokens are view << 32 | round, below 2^53 (F16)
HELD_MAX = 64  # views that wait here; a node that lags further behind catches up by the word of others

View = Mapping[str, Address]  # members by name


class ViewInstalled(Message, frozen=True, tag=61):
    """The sender's election is in this view, and its disk knows it."""

    greeting: ClassVar[bool] = True  # members are names and addresses; which life is there is learned by talking
    view: Number  # 0: in none yet
    ask: bool  # and where are you?


class ViewsFeed:
    """Between a layer that agrees on views and one election.

    ``installed`` says which view the election has on its disk; ``install`` hands it the next one. ``length`` and ``rho`` are the
    lease's, the same at all members.
    """

    def __init__(
        self,
        host: Host,
        *,
        interval: float,
        length: float,
        rho: float,
        installed: Callable[[], int],
        install: Callable[[int, View], None],
    ) -> None:
        assert interval > 0
        self.host, self.interval, self.length, self.rho = host, interval, length, rho
        self.counts: Counter[str] = Counter()  # what was not believed or not kept: stranger, malformed, stale, overflow
        self.released = 0  # the newest view that was handed on
        self._installed, self._install = installed, install
        self._views: dict[int, dict[str, Address]] = {}  # the one that was released, and those that wait
        self._heard: dict[str, int] = {}  # name -> the newest view that it said to have installed
        self._wait: Timer | None = None  # until leases of the view before the released one have ended
        self._poll: Timer | None = None

    @property
    def handles(self) -> Sequence[type[Message]]:
        return (ViewInstalled,)

    @property
    def fingerprint(self) -> bytes:
        return fingerprint(length=self.length, rho=self.rho)

    @property
    def held(self) -> int:
        """Views that wait."""
        return sum(view > self.released for view in self._views)

    def start(self) -> None:
        """Views are offered when there are any."""

    def stop(self) -> None:
        for timer in (self._wait, self._poll):
            if timer is not None:
                timer.cancel()

    def on_away(self, seconds: float) -> None:
        """What others said does not become untrue, and time that passed has passed."""

    def offer(self, view: int, members: View) -> None:
        """The layer below has agreed on this view. Any order, any repetition; the same number is the same list."""
        check_view(view, members)
        if view <= self.released:
            self.counts["stale"] += 1
            return
        self._check_step(view, members)
        self._views[view] = dict(members)
        if self.held > HELD_MAX:
            del self._views[min(each for each in self._views if each > self.released)]
            self.counts["overflow"] += 1
        self._advance()
        if self.held and self._poll is None:
            self._on_poll()

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, ViewInstalled)
        if not any(source.name in members for members in self._views.values()):
            self.counts["stranger"] += 1
            return
        if not 0 <= message.view <= VIEW_MAX:
            self.counts["malformed"] += 1
            return
        self._heard[source.name] = max(message.view, self._heard.get(source.name, 0))
        if message.ask:
            self.host.send(source, ViewInstalled(self._installed(), ask=False))
        self._advance()

    def _check_step(self, view: int, members: View) -> None:
        """Condition 1, with both neighbours: they may be offered in any order."""
        for low, high, former, later in (
            (view - 1, view, self._views.get(view - 1), members),
            (view, view + 1, members, self._views.get(view + 1)),
        ):
            if former is not None and later is not None and len(former.keys() ^ later.keys()) > 1:
                raise ConfigError(
                    f"view {high}: {len(former.keys() ^ later.keys())} members differ from view {low}; accepted: one (D17),"
                    " see single_steps, or an election with fixed voters"
                )

    def _advance(self) -> None:
        """Hand on whatever may be handed on."""
        proven = max([VIEW_FIRST, self._installed(), *self._heard.values()])
        ready = [view for view in self._views if self.released < view <= proven]
        if ready:
            self._release(max(ready))
        elif self._wait is None and self.released + 1 in self._views and self._majority():
            self._wait = self.host.after(wait_length(self.length, self.rho, MARGIN), self._on_waited)

    def _release(self, view: int) -> None:
        self.released = view
        if self._wait is not None:
            self._wait.cancel()
            self._wait = None
        self._views = {each: members for each, members in self._views.items() if each >= view}
        self._install(view, self._views[view])

    def _majority(self) -> bool:
        """Condition 2, first half: a majority of the released view has installed it."""
        members, me = self._views[self.released], self.host.me.name
        there = [name for name in members if (self._installed() if name == me else self._heard.get(name, 0)) >= self.released]
        return len(there) > len(members) // 2

    def _on_waited(self) -> None:
        """Condition 2, second half."""
        self._wait = None
        if self.released + 1 in self._views:
            self._release(self.released + 1)
        self._advance()

    def _on_poll(self) -> None:
        """Until nothing waits here: how far are the others, and this is how far we are."""
        self._poll = None
        self._advance()
        if not self.held:
            return
        names = {**self._views.get(self.released, {}), **self._views[min(view for view in self._views if view > self.released)]}
        for name, address in sorted(names.items()):
            if name != self.host.me.name:
                self.host.send(address, ViewInstalled(self._installed(), ask=True))
        self._poll = self.host.after(self.interval, self._on_poll)


def check_view(view: int, members: View) -> None:
    """What every view must be; a ConfigError names what it is not."""
    if not VIEW_FIRST <= view <= VIEW_MAX:
        raise ConfigError(f"view {view}: accepted are numbers from {VIEW_FIRST} to {VIEW_MAX}")
    if not 1 <= len(members) <= MEMBERS_MAX:
        raise ConfigError(f"view {view}: {len(members)} members; accepted are 1 to {MEMBERS_MAX}, because all are told at once (F17)")


def single_steps(former: View, later: View) -> list[dict[str, Address]]:
    """The lists between two views that differ by more than one member, the later one last: who comes, then who goes, by name.

    Code that numbers views uses this, because all nodes must see the same numbers.
    """
    steps: list[dict[str, Address]] = []
    present = dict(former)
    for name in sorted(later.keys() - former.keys()):
        present = {**present, name: later[name]}
        steps.append(present)
    for name in sorted(former.keys() - later.keys()):
        present = {each: address for each, address in present.items() if each != name}
        steps.append(present)
    return steps
