"""Elections over one agreed view, for experiments: who leads when, how long none does, and whether two ever do.

Spec: fast-detection 8 (E9, E12, E14, E15, E17-E19). The lab's checkers look for what must never happen; this looks at how long things take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise

from holdfast.events import Event
from holdfast.features.leadership.detector.config import ElectionConfig, Mode, Term
from holdfast.features.leadership.detector.ffd import FastDetector
from holdfast.host import Address, Host, Machine
from holdfast.lab.host import LabHost
from holdfast.lab.links import Exponential, Link
from holdfast.lab.network import PORT
from holdfast.lab.world import World
from holdfast.papers.detection.protocol.election import LeaderElection
from holdfast.papers.detection.protocol.election_facts import Leading, LostLead, TermEntered
from holdfast.papers.detection.protocol.termstore import TermStore

INTERVAL, LATENCY, DELAY, LOSS = 1.0, 0.05, 0.01, 0.1  # section 8: t_itv, t_lat, mean of the exponential delays, p where it is known
VIEW = 1
SETTLE_SECONDS = 60.0  # in which a group of which a majority lives must have agreed
STEP = 0.25  # seconds between two looks at whether it has
Make = Callable[[Host, ElectionConfig, TermStore], LeaderElection]


class FreeConfig(ElectionConfig, frozen=True, kw_only=True):
    """Numbers that no user may set: lease lengths that are too short to be renewed."""

    def __post_init__(self) -> None:
        """Nothing is refused."""


class SlowOnly(FastDetector):
    """A detector that never asks because of one heartbeat: what is left is Omega's own patience."""

    def _open_fast(self, seq: int) -> None:
        """Omega does not ask."""


class WithoutFfd(LeaderElection):
    """The election without fast detection."""

    def __init__(self, host: Host, config: ElectionConfig, store: TermStore) -> None:
        super().__init__(host, config, store)
        monitor = self._monitor
        monitor.ffd = SlowOnly(host, config, monitor, monitor.links)


def settings(
    mode: Mode, *, length: float = 0.0, backups: int = 2, tries: int = 2, known: bool = True, rho: float = 1e-3, skew: float | None = None
) -> ElectionConfig:
    """The defaults of section 8; ``known``: every link counts with p = .1, as Omega's patience does."""
    return FreeConfig(
        mode=mode,
        skew=skew,
        t_itv=INTERVAL,
        t_lat=LATENCY,
        length=length,
        backups=backups,
        renew_tries=tries,
        rho=rho,
        p_fixed=LOSS if known else None,
    )


class Reign:
    """One leadership: who, of which term, from when to when in true time."""

    def __init__(self, name: str, term: Term, since: float) -> None:
        self.name, self.term, self.since = name, term, since
        self.until: float | None = None  # None: it lasts
        self.why = ""  # why it ended


class Elections:
    """A group whose members all know one view from the beginning."""

    def __init__(
        self,
        seed: int,
        members: int,
        config: ElectionConfig,
        *,
        loss: float = 0.0,
        make: Make = LeaderElection,
        drift: Mapping[str, float] | None = None,
    ) -> None:
        self.config = config
        self.names = [f"n{i}" for i in range(members)]
        self.reigns: list[Reign] = []  # in order of their beginning
        self.entered: list[tuple[float, str, TermEntered]] = []
        self._make = make
        self.world = World(seed, self._build, link=Link(Exponential(DELAY), loss=loss))
        self.world.listeners.append(self._on_event)
        self.world.drift.update(drift or {})
        for name in self.names:
            self.start(name)

    def start(self, name: str) -> None:
        """A life begins and is told of the view."""
        host = self.world.start(name)
        view = {each: Address(each, PORT) for each in self.names}
        self.world.soon(partial(self.world.step, host, lambda: self.election(name).install_view(VIEW, view)))

    def election(self, name: str) -> LeaderElection:
        return self.world.nodes[name].node.use(LeaderElection)

    def alive(self) -> list[str]:
        return [host.me.name for host in self.world.alive]

    def crash(self, names: Iterable[str]) -> None:
        """At once."""
        for name in names:
            self.world.crash(name)
            self._end(name, "crashed")

    def agreed(self) -> str | None:
        """The live leader that all live members name, and that leads; None if there is none."""
        lives = [self.election(name).leader() for name in self.alive()]
        first = lives[0]
        if first is None or any(each != first for each in lives) or first != self.world.nodes[first.name].me:
            return None
        return first.name if first.name in self.alive() and self.election(first.name).is_leader() else None

    def settle(self, seconds: float = SETTLE_SECONDS) -> str:
        """Wait until all agree; the leader then."""
        deadline = self.world.now + seconds
        while self.agreed() is None:
            assert self.world.now < deadline, "the group does not agree on a leader"
            self.world.run(self.world.now + STEP)
        leader = self.agreed()
        assert leader is not None
        return leader

    def rotate(self) -> None:
        """Each leads once, so that all know the life of all: only who was answered once is believed (F3)."""
        for _ in self.names:
            leader = self.settle()
            self.world.step(self.world.nodes[leader], self.election(leader).resign)
        self.settle()

    def ready(self, rest: float, share: float) -> str:
        """Let the group rest, then wait until this share of an interval has passed since a heartbeat of the leader; who it is."""
        self.settle()
        self.world.run(self.world.now + rest)
        leader, interval = self.settle(), self.config.t_itv
        self.world.run(self.world.now + interval - self.world.nodes[leader].now % interval + share * interval)
        return self.settle()

    def until(self, done: Callable[[], bool], seconds: float) -> float | None:
        """True time from now until ``done`` holds after some event; None if it does not within so many seconds."""
        began_at = self.world.now
        found: list[float] = []

        def look(host: LabHost, event: Event) -> None:
            if not found and done():
                found.append(self.world.now)

        self.world.listeners.append(look)
        while not found and self.world.now < began_at + seconds:
            self.world.run(min(self.world.now + STEP, began_at + seconds))
        self.world.listeners.remove(look)
        return found[0] - began_at if found else None

    def next_candidates(self, leader: str, count: int) -> list[str]:
        """Whose rounds come after this one's."""
        place = self.names.index(leader)
        return [self.names[(place + 1 + i) % len(self.names)] for i in range(count)]

    def overlap(self) -> float:
        """True seconds in which at least two lead."""
        ends = sorted({time for reign in self.reigns for time in (reign.since, self._until(reign))})
        return sum(later - at for at, later in pairwise(ends) if self._leading(at) > 1)

    def _leading(self, at: float) -> int:
        return sum(reign.since <= at < self._until(reign) for reign in self.reigns)

    def _until(self, reign: Reign) -> float:
        return self.world.now if reign.until is None else reign.until

    def _end(self, name: str, why: str) -> None:
        for reign in self.reigns:
            if reign.name == name and reign.until is None:
                reign.until, reign.why = self.world.now, why

    def _build(self, host: Host) -> Sequence[Machine]:
        return [self._make(host, self.config, TermStore(host.storage.part("election")))]

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, Leading):
            self._end(host.me.name, "next term")  # A lease may be carried over into a term of one's own.
            self.reigns.append(Reign(host.me.name, event.term, self.world.now))
        elif isinstance(event, LostLead):
            self._end(host.me.name, event.why)
        elif isinstance(event, TermEntered):
            self.entered.append((self.world.now, host.me.name, event))
