"""One member of an election on a fake host, and whole groups in the lab: what the tests of the election share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.events import Event
from holdfast.features.leadership.detector.config import ElectionConfig, Term
from holdfast.features.leadership.detector.messages import Granted, Lead, MonitorOk, WatchedOk
from holdfast.host import Address, Host, Machine, NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.links import Delay, Fixed, Link
from holdfast.lab.network import PORT
from holdfast.lab.world import World
from holdfast.papers.detection.lab.checkers.election import election_of
from holdfast.papers.detection.protocol.election import LeaderElection
from holdfast.papers.detection.protocol.termstore import TermStore
from tests.support.fake_host import FakeHost, FakeStorage

NAMES = "abcde"
A, B, C, D, E = (NodeId(name, 1) for name in NAMES)
ADDRESSES = {name: Address(name, 1) for name in NAMES}
PAPER = ElectionConfig(mode="paper", t_itv=1.0, t_lat=0.05, p_fixed=0.1, common=0.0)
QUORUM = ElectionConfig(mode="quorum", t_itv=1.0, t_lat=0.05, p_fixed=0.1, common=0.0)


class Stand:
    """One started member in view 1, its first words forgotten unless ``fresh``."""

    def __init__(
        self,
        name: str,
        config: ElectionConfig,
        *,
        boot: int = 1,
        names: str = NAMES,
        storage: FakeStorage | None = None,
        fresh: bool = False,
        voters: Sequence[str] = (),
        machine: type[LeaderElection] = LeaderElection,
        view: int = 1,
    ) -> None:
        self.host = FakeHost(name, boot, storage=storage)
        self.election = machine(self.host, config, TermStore(self.host.storage.part("election")), voters=voters)
        self.election.start()
        self.install(names, view)
        if not fresh:
            self.host.sent.clear()

    def install(self, names: Iterable[str], view: int) -> None:
        self.election.install_view(view, {each: Address(each, 1) for each in names})

    @property
    def round(self) -> int:
        return self.election.term.round

    def hear(
        self,
        source: NodeId,
        number: int,
        *,
        view: int = 1,
        seq: int | None = None,
        stamp: int = 1,
        leading: bool = False,
        length: float = 1.5,
    ) -> None:
        """A heartbeat of that round, sent on the grid just now."""
        self.election.on_message(source, heartbeat(number, view, int(self.host.now) if seq is None else seq, stamp, leading, length))

    def granted_by(self, source: NodeId, stamp: int, *, number: int | None = None, view: int = 1) -> None:
        term = Term(view, self.round if number is None else number)
        self.election.on_message(source, MonitorOk(0, stamp, (Granted("", *term, True),), 0))

    def refused_by(self, source: NodeId, stamp: int, wait: float) -> None:
        self.election.on_message(source, MonitorOk(0, stamp, (Granted("", *self.election.term, False, wait),), 0))

    def said(self) -> list[tuple[object, object]]:
        """Everything sent since the last look."""
        found: list[tuple[object, object]] = [(to, message) for to, message in self.host.sent]
        self.host.sent.clear()
        return found


def heartbeat(number: int, view: int = 1, seq: int = 0, stamp: int = 1, leading: bool = False, length: float = 1.5) -> WatchedOk:
    return WatchedOk(seq, stamp, (Lead("", view, number, leading, length),), tuple(NAMES[1:]), 0.0)


def to_others(name: str) -> list[object]:
    return [address for other, address in ADDRESSES.items() if other != name]


def newest(stand: Stand) -> WatchedOk:
    return stand.host.take(WatchedOk)[-1][1]


def won() -> tuple[Stand, float]:
    """The candidate of round 0, which two others have granted its first heartbeat; and when that one left."""
    stand = Stand("a", QUORUM, fresh=True)
    stamp, left_at = newest(stand).stamp, stand.host.now
    stand.host.pass_time(0.05)
    for voter in (B, C):
        stand.granted_by(voter, stamp)
    assert stand.election.is_leader()
    return stand, left_at


def answers(stand: Stand) -> list[tuple[object, Granted]]:
    return [(to, answer) for to, message in stand.host.take(MonitorOk) for answer in message.answers]


def group(
    config: ElectionConfig,
    *,
    names: Sequence[str] = tuple(NAMES),
    machine: type[LeaderElection] = LeaderElection,
    delay: Delay | None = None,
    loss: float = 0.0,
    checkers: Sequence[Checker] = (),
    seed: int = 7,
    drift: dict[str, float] | None = None,
    voters: Sequence[str] = (),
) -> World:
    """A calm group in the lab whose members are all in view 1."""

    def build(host: Host) -> Iterable[Machine]:
        return [machine(host, config, TermStore(host.storage.part("election")), voters=voters)]

    world = World(seed, build, link=Link(Fixed(0.01) if delay is None else delay, loss=loss), checkers=checkers)
    world.drift.update(drift or {})
    for name in names:
        world.start(name)
    for name in names:
        install(world, name, names)
    return world


def install(world: World, name: str, names: Iterable[str], view: int = 1) -> None:
    host = world.nodes[name]
    members = {each: Address(each, PORT) for each in names}
    world.step(host, lambda: election_of(host).install_view(view, members))


def restart(world: World, name: str, names: Iterable[str], view: int = 1) -> None:
    world.start(name)
    install(world, name, names, view)


def leaders(world: World) -> list[str]:
    return [host.me.name for host in world.alive if election_of(host).is_leader()]


def record(world: World, kind: type[Event]) -> list[tuple[float, NodeId, Event]]:
    """Facts of one kind, as they happen."""
    found: list[tuple[float, NodeId, Event]] = []

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, kind):
            found.append((world.now, host.me, event))

    world.listeners.append(on_event)
    return found
