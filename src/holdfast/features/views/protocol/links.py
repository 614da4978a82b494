"""Links between servers: does a round trip work, seen from here?  Spec: views 5.1, D1, D11, D13, D25; foundation F3, F11.

Every heartbeat a server asks every other slot. A link is up while answers come to questions that were asked lately, so a cut in one
direction takes it down at both ends. A link that failed for another reason (a hop, link states that do not pass) stays down for a while:
the next heartbeat must not undo it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Protocol

from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.facts import LinkDown, LinkUp
from holdfast.features.views.protocol.messages import LinkPing, LinkPong
from holdfast.features.views.protocol.trips import RoundTrips
from holdfast.host import Host, NodeId, Timer
from holdfast.kit.slots import Slot

QUARANTINES_MAX = 2048  # of one kind that are remembered: each client of the largest group once
DOWNS_MAX = 256  # of one link that are remembered; a heartbeat cannot take it down more often in five minutes


SILENT, RESTARTED = "silent", "restarted"  # why a link went down
NO_MESSAGES, NO_LINK_STATE = "a message did not pass", "its link state does not arrive"  # although heartbeats passed


class Link:
    """This server and one other slot."""

    __slots__ = ("down_why", "downs", "last", "life", "ok", "quarantine_until", "sent", "slot", "timer", "up", "up_at")

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.life: NodeId | None = None  # the newest one that answered
        self.sent: dict[int, float] = {}  # questions that may still be answered: seq -> when
        self.last = -inf  # when the newest question was asked that was answered
        self.ok = 0  # answers in a row
        self.up = False
        self.up_at = -inf
        self.quarantine_until = -inf
        self.downs: deque[float] = deque(maxlen=DOWNS_MAX)  # when it went down lately
        self.down_why = ""  # the last time
        self.timer: Timer | None = None  # it has been silent, and may be for too long before the next heartbeat (H255)

    @property
    def expired(self) -> bool:
        """It went down because link states do not pass (D25), and none has passed since."""
        return not self.up and self.down_why == NO_LINK_STATE


class LinkOwner(Protocol):
    """What a link changes at its server."""

    @property
    def used(self) -> bool:
        """A client is known somewhere."""

    def on_link_up(self, link: Link) -> None: ...
    def on_link_down(self, link: Link) -> None: ...


class Quarantine:
    """How long what failed is left out: longer each time, while it goes on failing."""

    def __init__(self, config: ViewsConfig) -> None:
        self._config = config
        self._failed: dict[int | str, tuple[float, float]] = {}  # of what -> when it failed last, and for how long it was left out

    def length(self, what: int | str, now: float) -> float:
        """It failed again, now."""
        config = self._config
        at, former = self._failed.pop(what, (-inf, 0.0))
        seconds = min(2 * former, config.quarantine_max) if now - at <= config.quarantine_window else config.quarantine
        self._failed[what] = now, seconds
        if len(self._failed) > QUARANTINES_MAX:
            del self._failed[next(iter(self._failed))]
        for old in [each for each, (when, _) in self._failed.items() if now - when > config.quarantine_window]:
            del self._failed[old]
        return seconds


class Links:
    """All links of one server."""

    def __init__(self, host: Host, config: ViewsConfig, slots: Sequence[Slot], own: int, owner: LinkOwner, counts: Counter[str]) -> None:
        self._host, self._config, self._own, self._owner, self._counts = host, config, own, owner, counts
        self.all = {slot.number: Link(slot) for slot in slots if slot.number != own}
        self.trips = RoundTrips()
        self.quarantines = 0
        self._quarantine = Quarantine(config)
        self._seq = 0

    @property
    def up(self) -> tuple[NodeId, ...]:
        """The lives that there are links with, sorted."""
        return tuple(sorted(link.life for link in self.all.values() if link.up and link.life is not None))

    def of(self, life: NodeId) -> Link | None:
        return next((link for link in self.all.values() if link.life == life), None)

    def is_server(self, life: NodeId) -> bool:
        return any(link.life == life for link in self.all.values())

    def ask(self) -> None:
        """Every other slot."""
        if not self.all:
            return
        self._seq += 1
        now = self._host.now
        for link in self.all.values():
            for seq in [seq for seq, at in link.sent.items() if now - at > self._config.link_timeout]:
                del link.sent[seq]
            link.sent[self._seq] = now
            self._host.send(link.slot.address, LinkPing(self._seq, self._own, self._owner.used))

    def judge(self) -> None:
        """Take down what has been silent for too long. Answers with such a silence between them are not in a row."""
        config, now = self._config, self._host.now
        for link in self.all.values():
            if now - link.last > config.link_timeout:
                if link.up:
                    self._take_down(link, SILENT, 0.0)
                link.ok = 0
            elif link.up and now - link.last > config.link_timeout - 1.5 * config.heartbeat:
                self._watch(link)

    def stop(self) -> None:
        for link in self.all.values():
            if link.timer is not None:
                link.timer.cancel()
                link.timer = None

    def is_of_slot(self, source: NodeId, slot: int) -> bool:
        """This life may speak for that slot: it may sit there, and is not older than the one known."""
        link = self.all.get(slot)
        return (
            link is not None and self.may_sit(source, slot) and (link.life is None or link.life == source or link.life.boot < source.boot)
        )

    def is_former(self, life: NodeId, slot: int) -> bool:
        """The agent of that slot restarted since: what this life said comes late, and is no lie."""
        link = self.all.get(slot)
        return link is not None and link.life is not None and life.name == link.life.name and life.boot < link.life.boot

    def may_sit(self, life: NodeId, slot: int) -> bool:
        """It is another slot, and this life has its name, where the settings give one."""
        link = self.all.get(slot)
        return link is not None and (not link.slot.named or life.name == link.slot.name)

    def on_pong(self, source: NodeId, pong: LinkPong) -> float | None:
        """When the question was asked that this answers; None: it proves nothing."""
        if not self.is_of_slot(source, pong.slot):
            self._counts["stranger"] += 1
            return None
        link, now = self.all[pong.slot], self._host.now
        at = link.sent.pop(pong.seq, None)
        if at is None or now - at > self._config.link_timeout:
            self._counts["late"] += 1
            return None
        if link.life != source:
            if link.up:
                self._take_down(link, RESTARTED, 0.0)
            link.life, link.ok = source, 0
            link.quarantine_until = -inf  # What failed was a message to the life before.
        link.last = max(link.last, at)
        link.ok += 1
        self.trips.add(now, now - at)
        return at

    def raise_if_proved(self, slot: int) -> None:
        """After a pong: enough answers in a row, and nothing speaks against it."""
        link, now = self.all[slot], self._host.now
        if link.up or link.ok < self._config.up_count or now < link.quarantine_until or link.life is None:
            return
        link.up, link.up_at = True, now
        self._host.emit(LinkUp(link.life))
        self._owner.on_link_up(link)

    def fail(self, link: Link, why: str) -> None:
        """Something else than silence speaks against it (D13, D25): down, and in quarantine."""
        if self._host.now < link.quarantine_until:
            return  # Messages that were under way when it failed fail together; that is one failure.
        self.quarantines += 1
        seconds = self._quarantine.length(link.slot.number, self._host.now)
        link.quarantine_until = self._host.now + seconds
        if link.up:
            self._take_down(link, why, seconds)

    def _watch(self, link: Link) -> None:
        """H255: no view without that server is delivered before all others have taken their links down, and meanwhile the leases of its
        clients run out. The next heartbeat may come a whole one after the silence was long enough."""
        if link.timer is not None:
            link.timer.cancel()
        link.timer = self._host.at(link.last + self._config.link_timeout, partial(self._on_silence, link, link.last))

    def _on_silence(self, link: Link, last: float) -> None:
        link.timer = None
        if link.up and link.last == last and self._host.late <= 2 * self._config.heartbeat:  # F11, as on a heartbeat.
            self._take_down(link, SILENT, 0.0)

    def _take_down(self, link: Link, why: str, quarantine: float) -> None:
        assert link.life is not None
        link.up, link.ok = False, 0
        link.downs.append(self._host.now)
        link.down_why = why
        self._host.emit(LinkDown(link.life, why, quarantine))
        self._owner.on_link_down(link)
