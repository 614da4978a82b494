"""A bench for fast detection: one watched, its monitors, every message and every clock in the test's hand.

True time starts at 1000. Each clock may be off (``clock_error``, ``wall_error``), each message may be lost or delayed as ``fate``
says, each process may be stopped: then it reads what waited first, and its timers come late (F10).  Spec: detection 5.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heappop, heappush
from random import Random

from holdfast.events import Event
from holdfast.features.leadership.detector.config import FfdConfig, Term
from holdfast.features.leadership.detector.facts import Dismissed, Report
from holdfast.features.leadership.detector.ffd import FastDetector
from holdfast.features.leadership.detector.links import Links
from holdfast.features.leadership.detector.messages import DidYouMissToo, Lead, MonitorOk, Vote, WatchedOk
from holdfast.features.leadership.detector.watched import Watched
from holdfast.host import Address, Host, Message, NodeId, Storage
from tests.support.fake_host import FakeStorage, FakeTimer

START = 1000.0
DELAY = 0.005  # seconds, of every message about which ``fate`` says nothing else
WATCHED = "a"  # the smallest name: as printed, nobody would ask about it (D2)

Fate = Callable[[str, str, Message], Sequence[float]]  # from, to, what -> the delay of each copy that arrives; none: lost


class StandHost:
    """Implements ``holdfast.host.Host`` on the stand's one agenda."""

    def __init__(self, stand: Stand, name: str) -> None:
        self.me, self.address = NodeId(name, 1), Address(name, 1)
        self.random = Random(f"{stand.seed}/{name}")
        self.storage: Storage = FakeStorage(auto=True)
        self.late = 0.0
        self.clock_error = self.wall_error = 0.0
        self.stopped_at: float | None = None
        self.dead = False
        self.waiting: list[tuple[NodeId, Message]] = []  # datagrams of a stopped process
        self.overdue: list[FakeTimer] = []
        self.emitted: list[Event] = []
        self._stand = stand

    @property
    def now(self) -> float:
        return self._stand.now + self.clock_error

    def wall(self) -> float:
        return self._stand.now + self.wall_error

    def at(self, due: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(due, callback)
        self._stand.push(due - self.clock_error, lambda: self.fire(timer))
        return timer

    def after(self, delay: float, callback: Callable[[], None]) -> FakeTimer:
        return self.at(self.now + delay, callback)

    def send(self, to: NodeId | Address, message: Message) -> None:
        self._stand.carry(self.me, to.name if isinstance(to, NodeId) else to.host, message)

    def meet(self, peer: NodeId, address: Address) -> None:
        """Everybody is known."""

    def emit(self, event: Event) -> None:
        self.emitted.append(event)

    def fire(self, timer: FakeTimer) -> None:
        if self.stopped_at is not None:
            self.overdue.append(timer)
            return
        callback, timer.callback = timer.callback, None
        if callback is not None and not self.dead:
            self.late = max(0.0, self.now - timer.due_at)
            callback()
            self.late = 0.0


class Leader:
    """The watched: Fig. 1, with one leadership and no promises."""

    def __init__(self, host: Host, config: FfdConfig, stand: Stand) -> None:
        self.host, self.stand = host, stand
        self.side = Watched(host, config)
        self.round = 0
        self.leaving: Callable[[WatchedOk], WatchedOk] = lambda ok: ok  # what a test makes of a heartbeat before it leaves

    def start(self) -> None:
        self.side.begin(list(self.stand.monitors))
        self.host.at(self.side.next_at, self.on_tick)

    def on_tick(self) -> None:
        self.beat(self.stand.monitors)
        self.host.at(self.side.next_at, self.on_tick)

    def beat(self, to: Collection[str]) -> None:
        for ok in self.side.heartbeat([Lead("", 0, self.round, True, 1.0)]):
            for name in to:
                self.host.send(NodeId(name, 1), self.leaving(ok))

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, MonitorOk):
            self.side.on_monitor_ok(source, message)

    def on_away(self, seconds: float) -> None:
        """A watched process that was stopped goes on."""


class Monitor:
    """An owner that leaves everything to its detector. With ``quorum`` so many misses are needed, without it (paper mode) any will do."""

    def __init__(self, host: Host, config: FfdConfig, stand: Stand, kind: type[FastDetector]) -> None:
        self.host, self.stand = host, stand
        self.links = Links(host, config)
        self.detector = kind(host, config, self, self.links)
        self.reports: list[tuple[float, Report]] = []  # true time, what
        self.missed: list[int] = []

    def start(self) -> None:
        self.detector.watch(WATCHED, Term(0, 0), list(self.stand.monitors))

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, WatchedOk):
            if message.leads and message.leads[0].round == self.detector.term.round:
                self.detector.on_heartbeat(source, message)
                self.host.send(source, MonitorOk(message.seq, message.stamp, (), self.detector.missed_bits()))
        elif isinstance(message, DidYouMissToo):
            self.detector.on_query(source, message)
        elif isinstance(message, Vote):
            self.detector.on_vote(source, message)

    def on_away(self, seconds: float) -> None:
        self.detector.on_away(seconds)

    def monitors(self) -> Mapping[str, NodeId | Address]:
        names = self.detector.K if self.stand.quorum is None else self.stand.monitors
        return {name: NodeId(name, 1) for name in names if name != self.host.me.name}

    def enough(self, names: Collection[str]) -> bool:
        return self.stand.quorum is None or len(names) >= self.stand.quorum

    def say(self, to: NodeId | Address, message: Message) -> None:
        self.host.send(to, message)

    def on_missed(self, seq: int) -> None:
        self.missed.append(seq)
        self.host.send(NodeId(WATCHED, 1), MonitorOk(seq, -1, (), self.detector.missed_bits(seq)))

    def on_report(self, report: Report) -> None:
        self.reports.append((self.stand.now, report))


class Stand:
    """``monitors`` is a word of one-letter names without "a", which is the watched; it beats from the next second on."""

    def __init__(
        self, monitors: str, config: FfdConfig, *, kind: type[FastDetector] = FastDetector, quorum: int | None = None, seed: int = 1
    ) -> None:
        assert WATCHED not in monitors
        self.seed, self.config, self.quorum = seed, config, quorum
        self.now = START
        self.monitors = list(monitors)
        self.fate: Fate = lambda source, target, message: (DELAY,)
        self.sent: list[tuple[float, str, str, Message]] = []  # true time, from, to, what
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.hosts = {name: StandHost(self, name) for name in [WATCHED, *monitors]}
        self.leader = Leader(self.hosts[WATCHED], config, self)
        self.nodes: dict[str, Leader | Monitor] = {WATCHED: self.leader}
        for name in monitors:
            self.nodes[name] = Monitor(self.hosts[name], config, self, kind)

    def __getitem__(self, name: str) -> Monitor:
        node = self.nodes[name]
        assert isinstance(node, Monitor)
        return node

    def start(self) -> Stand:
        for node in self.nodes.values():
            node.start()
        return self

    def run(self, seconds: float) -> None:
        self.run_to(self.now + seconds)

    def run_to(self, end: float) -> None:
        while self._agenda and self._agenda[0][0] <= end:
            at, _, callback = heappop(self._agenda)
            self.now = max(self.now, at)
            callback()
        self.now = max(self.now, end)

    def push(self, at: float, callback: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._agenda, (max(at, self.now), self._count, callback))

    def carry(self, source: NodeId, target: str, message: Message) -> None:
        self.sent.append((self.now, source.name, target, message))
        for delay in self.fate(source.name, target, message):
            self.push(self.now + delay, lambda: self._deliver(source, target, message))

    def kill(self, name: str = WATCHED) -> None:
        self.hosts[name].dead = True

    def pause(self, name: str) -> None:
        self.hosts[name].stopped_at = self.now

    def resume(self, name: str) -> None:
        """F10: the pause is told first, then come the datagrams that waited, then the timers that are overdue."""
        host, node = self.hosts[name], self.nodes[name]
        assert host.stopped_at is not None
        node.on_away(self.now - host.stopped_at)
        host.stopped_at = None
        waiting, host.waiting = host.waiting, []
        overdue, host.overdue = host.overdue, []
        for source, message in waiting:
            node.on_message(source, message)
        for timer in sorted(overdue, key=lambda each: each.due_at):
            host.fire(timer)

    def reports(self, *, acted: bool | None = None) -> list[tuple[float, str, Report]]:
        """When, by whom, what; in order of time."""
        found = [(at, name, report) for name in self.monitors for at, report in self[name].reports]
        return sorted((each for each in found if acted in (None, each[2].acted)), key=lambda each: each[0])

    def dismissals(self) -> list[Dismissed]:
        return [event for name in self.monitors for event in self.hosts[name].emitted if isinstance(event, Dismissed)]

    def queries(self) -> list[tuple[float, str, DidYouMissToo]]:
        """Every question once, however many were asked: when, by whom, what."""
        found: dict[tuple[str, int], tuple[float, str, DidYouMissToo]] = {}
        for at, source, _, message in self.sent:
            if isinstance(message, DidYouMissToo):
                found.setdefault((source, message.nonce), (at, source, message))
        return list(found.values())

    def votes(self, voter: str) -> list[Vote]:
        return [message for _, source, _, message in self.sent if source == voter and isinstance(message, Vote)]

    def _deliver(self, source: NodeId, target: str, message: Message) -> None:
        host = self.hosts[target]
        if host.stopped_at is not None:
            host.waiting.append((source, message))
        elif not host.dead:
            self.nodes[target].on_message(source, message)


def is_heartbeat(message: Message, seq: int | None = None) -> bool:
    return isinstance(message, WatchedOk) and seq in (None, message.seq)
