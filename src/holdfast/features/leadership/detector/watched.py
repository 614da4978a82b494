"""The watched's side that both elections share: what a heartbeat says, when it left, who answers.

Spec: fast-detection 2, 5 (tick, heartbeat, MONITOR-OK), D3, D10; paper 002, Figure 1. The owner has the timers and does the sending.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import floor

from holdfast.features.leadership.detector.common import BITS, CommonCause
from holdfast.features.leadership.detector.config import FfdConfig
from holdfast.features.leadership.detector.messages import Lead, MonitorOk, WatchedOk
from holdfast.host import Host, NodeId

STAMPS_MAX = 64  # heartbeats whose send time is kept: more than any promise lasts
GRID_SLOP = 1e-3  # in t_itv: a tick that comes this little early still is that tick (wall clocks are slewed, floats are rounded)
AFTER_DIGITS = 6  # microseconds: no timer is more punctual

# A sealed datagram has 1200 bytes. Header, seal and envelope with the longest name take 50 + 101; of a message that leaves 1049.
PAGE_BYTES_MAX = 1000  # for K and entries; the other fields of WATCHED-OK and of MONITOR-OK take less than 49
AMONG_BYTES_MAX = 900  # for K, so that the names of one leadership always fit beside it
# An entry is answered by one of MONITOR-OK, which is larger: array 1, name 3 and its bytes, view, round, wait, number, era 9 each, grant 1.
ENTRY_BYTES = 50


class Watched:
    """One per node; it goes through all terms. Stamps are never used twice in a life.

    ``stamp`` is that of the latest heartbeat (0: none), ``seq`` its index (-1: none).
    """

    def __init__(self, host: Host, config: FfdConfig, *, entry_bytes: int = ENTRY_BYTES) -> None:
        """``entry_bytes``: room for an entry without its name; less where a whole page is answered by one entry."""
        self.host, self.config = host, config
        self._entry_bytes = entry_bytes
        self.stamp, self.seq = 0, -1
        self.counts: Counter[str] = Counter()  # what was not believed: stranger, malformed; among_cut
        self.cause = CommonCause(config)
        self._sent_at: dict[int, float] = {}  # stamp -> when
        self._last_ok: dict[str, float] = {}  # monitor -> when

    @property
    def next_at(self) -> float:
        """When the next tick is due: the next sigma_i, on this host's clock (arm ``host.at(watched.next_at, tick)``)."""
        clock = self._clock()
        return self.host.now + ((self._index(clock) + 1) * self.config.t_itv - clock)

    @property
    def common(self) -> float:
        """c: measured from the MONITOR-OK bitmaps (D10), or as the operator set it. Remembered across terms."""
        return self.cause.c

    @property
    def among(self) -> tuple[str, ...]:
        """K: the monitors with a MONITOR-OK younger than m_Omega t_itv + t_lat; sorted. Fig. 1's V, without the watched (D2, D3)."""
        config = self.config
        oldest = self.host.now - (config.m_omega(config.p_fixed or config.p_new) * config.t_itv + config.lat)
        return tuple(name for name, at in sorted(self._last_ok.items()) if at >= oldest)

    def begin(self, monitors: Sequence[str]) -> None:
        """A term begins: all monitors count as just heard, and the send times of former terms are forgotten."""
        self._last_ok.clear()
        self._sent_at.clear()
        self.cause.begin()
        self.follow(monitors)

    def follow(self, monitors: Sequence[str]) -> None:
        """The monitors changed within a term: newcomers count as just heard, those who are not listed are forgotten."""
        now, me = self.host.now, self.host.me.name
        self._last_ok = {name: self._last_ok.get(name, now) for name in monitors if name != me}

    def heartbeat(self, leads: Sequence[Lead]) -> tuple[WatchedOk, ...]:
        """A new stamp, its send time recorded *before* anything is sent; one message per page, each below a datagram with its answer.
        Called at a tick the index is that of the tick; between ticks (first of a term, repeat) it is the running one."""
        clock, t_itv = self._clock(), self.config.t_itv
        self.seq = max(self.seq, self._index(clock))
        self.stamp += 1
        self._sent_at[self.stamp] = self.host.now
        if len(self._sent_at) > STAMPS_MAX:
            del self._sent_at[next(iter(self._sent_at))]
        after = min(max(0.0, round(clock - self.seq * t_itv, AFTER_DIGITS)), t_itv)
        monitors = self.among
        self.cause.sent(self.seq, monitors)
        among = self._fitting(monitors)
        pages = paged(leads, among, self._entry_bytes)
        return tuple(
            WatchedOk(self.seq, self.stamp, page, among if number == 0 else (), self.common, after, number, len(pages))
            for number, page in enumerate(pages)
        )

    def sent_at(self, stamp: int) -> float | None:
        """When that heartbeat left; None: not among the last 64 of this term."""
        return self._sent_at.get(stamp)

    def on_monitor_ok(self, source: NodeId, message: MonitorOk) -> float | None:
        """The monitor lives, and its ``missed`` bits are counted. Returns the send time of the stamp it echoes, None if there is none."""
        if source.name not in self._last_ok:
            self.counts["stranger"] += 1
            return None
        if message.seq < 0 or not 0 <= message.missed < 1 << BITS:
            self.counts["malformed"] += 1
            return None
        self._last_ok[source.name] = self.host.now
        self.cause.report(source.name, source.boot, message.seq, message.missed)
        return self._sent_at.get(message.stamp)

    def _clock(self) -> float:
        """The clock whose grid the heartbeats follow."""
        return self.host.now if self.config.skew is None else self.host.wall()

    def _index(self, clock: float) -> int:
        return floor(clock / self.config.t_itv + GRID_SLOP)

    def _fitting(self, names: Sequence[str]) -> tuple[str, ...]:
        """The first of them. Ranks are positions in the sorted list, so a monitor that is cut off is no backup of theirs, and misses
        nothing."""
        room, fitting = AMONG_BYTES_MAX, []
        for name in names:
            room -= _text_bytes(name)
            if room < 0:
                self.counts["among_cut"] += 1
                break
            fitting.append(name)
        return tuple(fitting)


def paged(leads: Sequence[Lead], among: Sequence[str] = (), entry_bytes: int = ENTRY_BYTES) -> list[tuple[Lead, ...]]:
    """Spread over datagrams, in order; the first has less room, because it carries K. There is always one page."""
    pages: list[list[Lead]] = [[]]
    room = PAGE_BYTES_MAX - sum(_text_bytes(name) for name in among)
    for lead in leads:
        needed = entry_bytes + len(lead.name.encode())
        if needed > room:
            pages.append([])
            room = PAGE_BYTES_MAX
        pages[-1].append(lead)
        room -= needed
    return [tuple(page) for page in pages]


def _text_bytes(text: str) -> int:
    """As MessagePack writes it, for names of up to 255 bytes."""
    return 2 + len(text.encode())
