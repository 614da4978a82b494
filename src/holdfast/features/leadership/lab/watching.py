"""Fast detection alone, as the paper's Figures 1 and 2 have it: one process is watched for ever, the others report. For experiments.

Spec: fast-detection 1, 8 (E2, E3, E6, E8, E11); paper 002, section 4 ("in the static settings").

A silent process looks to its monitors as a dead one does, so one group sees many deaths: the watched falls silent, is reported, and speaks
again in the next term. What the links measured stays, as it does in an election.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from holdfast.features.leadership.detector.config import FfdConfig, Term
from holdfast.features.leadership.detector.facts import Report
from holdfast.features.leadership.detector.ffd import FastDetector
from holdfast.features.leadership.detector.links import Links
from holdfast.features.leadership.detector.messages import DidYouMissToo, Lead, MonitorOk, Vote, WatchedOk
from holdfast.features.leadership.detector.watched import Watched
from holdfast.host import Address, Host, Message, NodeId
from holdfast.lab.links import Exponential, Link
from holdfast.lab.network import PORT
from holdfast.lab.world import World

DELAY = 0.01  # seconds, mean of an exponential distribution (section 8)
VIEW = 1
JUST_AFTER = 1e-6  # seconds after a heartbeat: the worst moment to die
WATCHED = "n00"  # the smallest id: round 0 elects it, and as printed no monitor would ever ask (D2)


class StaticWatched:
    """The watched: speaks every t_itv, unless it is muted."""

    handles = (MonitorOk,)
    fingerprint = b""

    def __init__(self, host: Host, config: FfdConfig, names: Sequence[str]) -> None:
        self._host = host
        self.side = Watched(host, config)
        self.round = 0
        self.muted = False
        self.heartbeats = 0  # on the grid
        self.after_beat: Callable[[], None] | None = None
        self.lost: Callable[[], bool] = _never  # whether one cause takes all copies of the next heartbeat (D10)
        self._monitors = {name: NodeId(name, 1) for name in names if name != host.me.name}

    def start(self) -> None:
        _meet(self._host, self._monitors)
        self.begin(0)
        self._arm()

    def begin(self, number: int) -> None:
        """A new term, with a heartbeat at once (D13)."""
        self.round, self.muted = number, False
        self.side.begin(tuple(self._monitors))
        self._speak()

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, MonitorOk)
        if not self.muted:
            self.side.on_monitor_ok(source, message)

    def on_away(self, seconds: float) -> None:
        """No process is paused here."""

    def stop(self) -> None:
        """Nothing to put away."""

    def _arm(self) -> None:
        self._host.at(self.side.next_at, self._on_tick)

    def _on_tick(self) -> None:
        if not self.muted:
            self._speak()
            self.heartbeats += 1
            if self.after_beat is not None:
                then, self.after_beat = self.after_beat, None
                then()
        self._arm()

    def _speak(self) -> None:
        reached = () if self.lost() else self._monitors.values()
        for message in self.side.heartbeat([Lead("", VIEW, self.round, True, 0.0)]):
            for monitor in reached:
                self._host.send(monitor, message)


class StaticMonitor:
    """A monitor: an owner that leaves every decision to its detector."""

    handles = (WatchedOk, DidYouMissToo, Vote)
    fingerprint = b""

    def __init__(self, host: Host, config: FfdConfig, names: Sequence[str], told: Callable[[str, Report], None]) -> None:
        self._host, self._told = host, told
        self._others = {name: NodeId(name, 1) for name in names if name not in (host.me.name, WATCHED)}
        self.links = Links(host, config)
        self.detector = FastDetector(host, config, self, self.links)

    def start(self) -> None:
        _meet(self._host, {**self._others, WATCHED: NodeId(WATCHED, 1)})
        self.begin(0)

    def begin(self, number: int) -> None:
        """OnSetNewLeader: the same process, in the next term."""
        self.detector.watch(WATCHED, Term(VIEW, number), tuple(self._others))

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, WatchedOk):
            self._on_watched_ok(source, message)
        elif isinstance(message, DidYouMissToo):
            if Term(message.view, message.round) == self.detector.term:
                self.detector.on_query(source, message)
        elif isinstance(message, Vote):
            self.detector.on_vote(source, message)

    def on_away(self, seconds: float) -> None:
        self.detector.on_away(seconds)

    def stop(self) -> None:
        self.detector.stop()

    # What the detector asks of its owner.

    def monitors(self) -> Mapping[str, NodeId | Address]:
        among = set(self.detector.K)
        return {name: life for name, life in self._others.items() if name in among}

    def enough(self, names: Collection[str]) -> bool:
        return True

    def say(self, to: NodeId | Address, message: Message) -> None:
        self._host.send(to, message)

    def on_missed(self, seq: int) -> None:
        self._host.send(NodeId(WATCHED, 1), MonitorOk(seq, -1, (), self.detector.missed_bits(seq)))

    def on_report(self, report: Report) -> None:
        if report.acted:
            self._told(self._host.me.name, report)

    def _on_watched_ok(self, source: NodeId, message: WatchedOk) -> None:
        if message.leads[0].round != self.detector.term.round:
            return  # Of a former term, under way when the next began.
        self.detector.on_heartbeat(source, message)
        self._host.send(source, MonitorOk(message.seq, message.stamp, (), self.detector.missed_bits()))


class Watching:
    """A group of one watched and ``members - 1`` monitors."""

    def __init__(self, seed: int, members: int, config: FfdConfig, *, loss: float = 0.0) -> None:
        self.config = config
        self.names = [f"n{i:02}" for i in range(members)]
        self.acted: list[tuple[float, str, Report]] = []  # true time, by whom, what
        self.demote = False  # whether an acted report begins the next term: with a live watched that is what an election does
        self._round = 0
        self.world = World(seed, self._build, names=self.names, link=Link(Exponential(DELAY), loss=loss))

    @property
    def watched(self) -> StaticWatched:
        return self.world.nodes[WATCHED].node.use(StaticWatched)

    @property
    def monitors(self) -> list[StaticMonitor]:
        return [host.node.use(StaticMonitor) for name, host in self.world.nodes.items() if name != WATCHED]

    def set_loss(self, loss: float) -> None:
        self.world.network.set_link(Link(Exponential(DELAY), loss=loss))

    def run_heartbeats(self, count: float) -> None:
        self.world.run(self.world.now + count * self.config.t_itv)

    def detection(self, after: float, heartbeats: int) -> float | None:
        """The watched dies ``after`` seconds after its next heartbeat; seconds until the first acted report, None if none came in so many
        heartbeats. Then it speaks again, in the next term."""
        died: list[float] = []

        def die() -> None:
            died.append(self.world.now)
            self.watched.muted = True

        def die_soon() -> None:
            self.world.at(self.world.now + after, die)

        self.acted.clear()
        self.watched.after_beat = die_soon
        for _ in range(heartbeats + 2):
            self.run_heartbeats(1)
            if self.acted:
                break
        found = self.acted[0][0] - died[0] if self.acted and died else None
        self.next_term()
        return found

    def detections(self, count: int, heartbeats: int, *, lead: int = 0, worst: bool = True) -> tuple[list[float], int]:
        """So many deaths, right after a heartbeat or at any moment, ``lead`` heartbeats between them; and how many went unnoticed."""
        found: list[float | None] = []
        for _ in range(count):
            self.run_heartbeats(lead)
            after = JUST_AFTER if worst else self.world.random.random() * self.config.t_itv
            found.append(self.detection(after, heartbeats))
        return [seconds for seconds in found if seconds is not None], found.count(None)

    def next_term(self) -> None:
        """All enter the next term at once, as if START took no time; the watched speaks at once."""
        self._round += 1
        for monitor in self.monitors:
            monitor.begin(self._round)
        self.watched.begin(self._round)

    def _build(self, host: Host) -> Sequence[StaticWatched | StaticMonitor]:
        if host.me.name == WATCHED:
            return [StaticWatched(host, self.config, self.names)]
        return [StaticMonitor(host, self.config, self.names, self._on_acted)]

    def _on_acted(self, name: str, report: Report) -> None:
        self.acted.append((self.world.now, name, report))
        if self.demote and report.term.round == self._round:
            self.world.soon(self.next_term)


def _meet(host: Host, peers: Mapping[str, NodeId]) -> None:
    """Lives are known here, so that messages take the lab's short road."""
    for name, life in peers.items():
        host.meet(life, Address(name, PORT))


def _never() -> bool:
    return False
