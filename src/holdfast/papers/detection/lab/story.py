"""Seven members, one leader, and what happens to it: the run that `holdfast lab demo` shows.

Spec: fast-detection 5 (reference reconstruction of Fig. 3), F11. Every act carries the time within which the group must be of one
mind again; the bounds are derived below, and what was measured stands beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from holdfast.events import Event, LeaderChanged
from holdfast.host import Host, Machine
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.scenario import Setup
from holdfast.lab.world import World
from holdfast.papers.detection.lab.scenarios.omega import SCENARIO

NAMES = ("a", "b", "c", "d", "e", "f", "g")
ALPHA = 0.5  # the leader says OK so often
DELAY = 0.02  # the slowest message of this network
SECONDS = 37.0
DEAD, STOPPED, NOBODY = ".", "~", "?"  # what a member's line shows when it names no leader

# Silence for 2 alpha since the last OK, which was at most DELAY on the road.
SILENCE = 2 * ALPHA + DELAY
# The next candidate says OK at once and again after alpha; its first OK may have to learn who listens (three ways instead of one).
NAMED = ALPHA + 3 * DELAY
TAKEOVER = SILENCE + NAMED
# A member that is new, or was cut off, hears the leader's next two OKs; the first may have to learn who listens.
FOLLOW = 2 * ALPHA + 4 * DELAY


class Act(Struct, frozen=True):
    """Something happens, and then ``who`` must agree on one of ``leaders`` within ``bound`` seconds."""

    at: float
    label: str  # on the timeline
    what: str  # in the summary
    begin: Callable[[World], object]
    who: str
    leaders: str
    bound: float


class Kept(Struct, frozen=True):
    """One promise and what became of it."""

    what: str
    who: str  # who has to agree
    leader: str
    took: float | None  # seconds until all concerned agreed for good; None: they did not
    bound: float

    @property
    def ok(self) -> bool:
        return self.took is not None and self.took <= self.bound


class Story(Struct, frozen=True):
    """The whole run: what every member thought at every time, and which promises were kept."""

    seed: int
    seconds: float
    lines: dict[str, list[tuple[float, str]]]  # member -> (since, whom it names, or DEAD, STOPPED, NOBODY)
    acts: tuple[tuple[float, str], ...]
    kept: tuple[Kept, ...]
    messages: int

    def at(self, name: str, when: float) -> str:
        """Whom a member names at that time."""
        return next((state for since, state in reversed(self.lines[name]) if since <= when), NOBODY)


def _nothing(world: World) -> None:
    """The world starts by itself."""


def _cut(world: World) -> None:
    world.network.partition("story", (("a", "b", "c"), ("d", "e", "f", "g")))


ACTS = (
    Act(0.0, "start", "seven members start", _nothing, "abcdefg", "a", FOLLOW),
    Act(4.0, "crash a", "the leader crashes", lambda world: world.crash("a"), "bcdefg", "b", TAKEOVER),
    # Stability is the point of this election: a member that comes back, however early in the list, does not take the lead away.
    Act(9.0, "a returns", "it comes back and takes nothing away", lambda world: world.start("a"), "abcdefg", "b", FOLLOW),
    # The next candidate, c, is on the other side: one more silence before d's turn.
    Act(13.0, "cut abc|defg", "the network splits: each side has a leader", _cut, "defg", "d", SILENCE + TAKEOVER),
    # The higher round wins.
    Act(20.0, "heal", "the network heals: one leader again", lambda world: world.network.heal("story"), "abcdefg", "d", FOLLOW),
    Act(25.0, "stop d", "the leader is stopped (SIGSTOP)", lambda world: world.stop("d"), "abcefg", "e", TAKEOVER),
    # What waited in its socket is read before its late timers run (F10), so it accuses no leader and follows.
    Act(31.0, "d goes on", "it goes on and accuses nobody", lambda world: world.resume("d"), "abcdefg", "e", FOLLOW),
)


def tell(seed: int) -> Story:
    """Run all acts in virtual time, with the scenario's checkers looking on; a violation is raised."""
    setup = Setup(NAMES, SECONDS, 0.0, link=Link(Uniform(0.001, DELAY)), parameters={"alpha": ALPHA})

    def build(host: Host) -> Iterable[Machine]:
        return SCENARIO.build(host, setup)

    world = World(seed, build, link=setup.link, checkers=SCENARIO.checkers(setup))
    recorder = _Recorder(world)
    for name in NAMES:
        world.start(name)
    acts = _timed(Random(f"{seed}/story"))
    for act in acts:
        world.at(act.at, partial(recorder.act, act))
    world.run(SECONDS)
    story = Story(seed, SECONDS, recorder.lines, tuple((act.at, act.label) for act in acts), (), recorder.messages())
    ends = [act.at for act in acts[1:]] + [SECONDS]
    return replace(story, kept=tuple(_kept(story, act, end) for act, end in zip(acts, ends, strict=True)))


def _timed(random: Random) -> list[Act]:
    """The acts at times that do not follow the leader's beat, or every seed would measure the same case."""
    return [replace(act, at=act.at + random.uniform(0.0, ALPHA)) if act.at else act for act in ACTS]


class _Recorder:
    """Notes what every member says of itself, and what was done to it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lines: dict[str, list[tuple[float, str]]] = {name: [(0.0, NOBODY)] for name in NAMES}
        self._named: dict[str, str] = dict.fromkeys(NAMES, NOBODY)
        world.listeners.append(self._on_event)

    def act(self, act: Act) -> None:
        act.begin(self.world)
        for name, host in self.world.nodes.items():
            self._note(host.me.name, DEAD if host.dead else self._named[name] if host.running else STOPPED)

    def messages(self) -> int:
        return sum(sum(endpoint.sent.values()) for endpoint in self.world.network.endpoints.values())

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, LeaderChanged):
            self._named[host.me.name] = event.leader.name if event.leader is not None else NOBODY
            self._note(host.me.name, self._named[host.me.name])

    def _note(self, name: str, state: str) -> None:
        if self.lines[name][-1][1] != state:
            self.lines[name].append((self.world.now, state))


def _kept(story: Story, act: Act, until: float) -> Kept:
    """When all concerned began to agree, for as long as the act lasts."""
    times = sorted({act.at, *(since for name in act.who for since, _ in story.lines[name] if act.at < since < until)})
    agreed: tuple[float, str] | None = None
    for when in times:
        named = {story.at(name, when) for name in act.who}
        leader = next(iter(named)) if len(named) == 1 else ""
        if not leader or leader not in act.leaders:
            agreed = None
        elif agreed is None or agreed[1] != leader:
            agreed = (when, leader)
    if agreed is None:
        return Kept(act.what, act.who, "", None, act.bound)
    return Kept(act.what, act.who, agreed[1], agreed[0] - act.at, act.bound)
