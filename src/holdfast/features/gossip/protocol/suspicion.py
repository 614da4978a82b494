"""From the first accusation to the burial: how long a member is suspected, and what shortens that.  Spec: gossip 5.4,
D7, D16; Lifeguard 3.

The more members accuse independently, the shorter the wait. Before it is over the accused is asked once more, by a
PING that carries the accusation: who answers it carries its refutation in the same datagram, so a member that can be
heard is not buried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import log, log10

from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.facts import LastCall
from holdfast.features.gossip.protocol.messages import ACCUSERS_MAX, Status
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.features.gossip.protocol.rumours import Rumours, rumour_of
from holdfast.features.gossip.protocol.table import Entry
from holdfast.host import NodeId, Timer

LAST_CALLS = 2  # PINGs, a probe's timeout apart: each may be lost or late, and its answer too (H322, H452)


class Suspicion:
    """One suspicion of one life at one ``inc``."""

    __slots__ = (
        "called_at",
        "calls",
        "ceiling",
        "confirmers",
        "end_at",
        "floor",
        "hurried",
        "inc",
        "k",
        "life",
        "rearmed",
        "start",
        "timer",
    )

    def __init__(self, life: NodeId, inc: int, now: float, accusers: Iterable[str], span: Span) -> None:
        self.life, self.inc, self.start = life, inc, now
        self.floor, self.ceiling, self.k = span.floor, span.ceiling, span.k
        self.confirmers: dict[str, None] = dict.fromkeys(tuple(accusers)[: self.k + 1])
        self.calls = 0  # how often the last call went out
        self.called_at = now  # when it went out first
        self.rearmed = False  # this member was away, and waits anew
        self.hurried = False  # another member has buried it: it is asked here, and waits no longer
        self.end_at = now + self.timeout
        self.timer: Timer | None = None

    @property
    def called(self) -> bool:
        """True if the last call went out."""
        return self.calls > 0

    @property
    def timeout(self) -> float:
        """Seconds from the first accusation on, with so many confirmations (Lifeguard, section 3.B)."""
        if self.k == 0:
            return self.floor
        c = min(self.k, max(0, len(self.confirmers) - 1))
        return max(self.floor, self.ceiling - (self.ceiling - self.floor) * log(c + 1) / log(self.k + 1))


class Span:
    """How long a suspicion takes in a group of ``n``."""

    __slots__ = ("ceiling", "floor", "k")

    def __init__(self, config: GossipConfig, rules: Rules, n: int) -> None:
        growth = max(1.0, log10(max(n, 1)))
        self.floor = config.suspicion_min * (growth if rules.growing_min else 1.0)
        self.k = max(0, min(config.confirmations, n - 2)) if config.lhm_max else 0
        self.ceiling = max(self.floor, config.suspicion_max(max(n, 1)))


class Suspicions:
    """The open suspicions, at most one per listed member."""

    def __init__(
        self, core: Core, rumours: Rumours, *, call: Callable[[Entry], None], bury: Callable[[Entry], None], was_away: Callable[[], bool]
    ) -> None:
        """``call``: the last call to a member. ``bury``: it is held to be dead from now on. ``was_away``: ``pause.py``."""
        self._core, self._rumours, self._call, self._bury, self._was_away = core, rumours, call, bury, was_away
        self._open: dict[str, Suspicion] = {}
        self.guarded_until = core.host.now  # before that no member is buried here: this one was away (F11)

    def __len__(self) -> int:
        return len(self._open)

    @property
    def open(self) -> Mapping[str, Suspicion]:
        return self._open

    def begin(self, each: Entry, accusers: Iterable[str]) -> None:
        """Open the suspicion of a member that has just become SUSPECT."""
        core = self._core
        name = each.id.name
        self.cancel(name)
        found = Suspicion(each.id, each.inc, core.host.now, accusers, Span(core.config, core.rules, core.n))
        self._open[name] = found
        core.accusers[name] = tuple(found.confirmers)
        self._arm(found)

    def confirm(self, each: Entry, accusers: Iterable[str]) -> None:
        """Count others that accuse a member as well. Only the first K independent words count, and only they are told further."""
        found = self._open.get(each.id.name)
        if found is None or found.inc != each.inc:
            return
        room = min(found.k, ACCUSERS_MAX - 1) + 1 - len(found.confirmers)
        new = [name for name in dict.fromkeys(accusers) if name not in found.confirmers][: max(0, room)]
        if not new:
            return
        found.confirmers.update(dict.fromkeys(new))
        accused_by = self._core.accusers[each.id.name] = tuple(found.confirmers)
        self._rumours.put(rumour_of(each, accusers=accused_by))
        found.end_at = min(found.end_at, found.start + found.timeout) if not found.rearmed else found.end_at
        self._arm(found)

    def was_asked(self, name: str) -> bool:
        """True if all last calls to this member went out, and it has not answered so far."""
        found = self._open.get(name)
        return found is not None and found.calls >= LAST_CALLS

    def hurry(self, name: str) -> None:
        """Shorten a suspicion: another member has buried the suspect. The last call goes out now, and a probe's timeout later the
        suspicion is over here as well (H353)."""
        found = self._open[name]
        found.hurried = True
        if not found.called:
            found.end_at = min(found.end_at, self._core.host.now + self._core.config.timeout)
            self._arm(found)

    def cancel(self, name: str) -> None:
        """End a suspicion, for whatever reason."""
        found = self._open.pop(name, None)
        if found is not None and found.timer is not None:
            found.timer.cancel()

    def cleared(self, name: str) -> None:
        """End a suspicion that the suspect refuted."""
        found = self._open.get(name)
        self._core.counts["last_calls_answered"] += found is not None and found.called
        self.cancel(name)

    def stop(self) -> None:
        for name in tuple(self._open):
            self.cancel(name)

    def guard(self) -> None:
        """Put suspicions off: this member was away. What would end before the shortest suspicion is over waits so long from now on:
        the refutations are in the socket, or were lost there (gossip 5.8)."""
        core = self._core
        now = core.host.now
        least = now + Span(core.config, core.rules, core.n).floor
        self.guarded_until = least
        for found in tuple(self._open.values()):
            if found.end_at < least:
                found.end_at, found.calls, found.rearmed = least, 0, True
                self._arm(found)

    def _arm(self, found: Suspicion) -> None:
        """Set the timer for the next thing to happen: the last call, its repetition, or the end."""
        core = self._core
        now, wait = core.host.now, core.config.timeout
        if not core.rules.last_call or found.calls == LAST_CALLS:
            due = found.end_at
        else:
            # It is given the time for an answer, also if so many accuse it at once that its time would be over.
            found.end_at = max(found.end_at, now + wait * (LAST_CALLS - found.calls) / LAST_CALLS)
            due = found.end_at - LAST_CALLS * wait
            if found.called:
                found.end_at = max(found.end_at, found.called_at + wait)
                due = (found.called_at + found.end_at) / 2
        if found.timer is not None:
            found.timer.cancel()
        found.timer = core.host.at(max(due, now), lambda: self._on_due(found))

    def _on_due(self, found: Suspicion) -> None:
        core = self._core
        name = found.life.name
        if self._open.get(name) is not found:
            return  # Of a suspicion that is over.
        timer = found.timer
        self._was_away()
        if found.timer is not timer:
            return  # This process was away, and waits anew.
        each = core.table.get(name)
        assert each is not None
        assert (each.id, each.inc, each.status) == (found.life, found.inc, Status.SUSPECT)
        if core.host.now < self.guarded_until and found.end_at < self.guarded_until:
            found.end_at, found.rearmed = self.guarded_until, True
            self._arm(found)
        elif core.rules.last_call and found.calls < LAST_CALLS:
            found.calls += 1
            if found.calls == 1:
                found.called_at = core.host.now
                core.counts["last_calls"] += 1
                core.emit(LastCall(found.life))
            self._call(each)
            # Counted from when it left: where this process was kept from running, the call was late, and the answer is not (H453).
            found.end_at = max(found.end_at, core.host.now + core.config.timeout * (LAST_CALLS + 1 - found.calls) / LAST_CALLS)
            self._arm(found)
        else:
            self._bury(each)
