"""gossip/S3: do stalled members make the others look dead?  Spec: gossip 8 (S3); paper Lifeguard, section 5.

Of 128 members some are stalled for 1 to 30 s every 30 to 60 s, as in the paper: nothing that they send or that is sent to them gets
through, and their timers run on. A death that is announced of a member that is never stalled is false. Some of these are killed, and it is
measured when the first member holds them to be dead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta
from msgspec.structs import replace

from holdfast.events import Decided, Event
from holdfast.features.gossip.lab.groups import GossipGroup, names_of
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.host import NodeId
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 1.0
FEWER, DETECTION_MAX = 10.0, 1.5
STALLED, EVERY = (1.0, 30.0), (30.0, 60.0)  # seconds
WARM_UP, AFTER = 5.0, 60.0
SWIM: Final = "swim"
LIFEGUARD: Final = "lifeguard"
DEFAULT: Final = "default"


def _as_published(profile: Profile) -> Profile:
    """Neither SWIM nor Lifeguard knows that a process was stopped: the guard of 5.8 is ours."""
    return Profile(profile.config, replace(profile.rules, pause_guard=False))


MAKE: dict[str, Profile] = {
    SWIM: _as_published(profiles.swim(PERIOD)),
    LIFEGUARD: _as_published(profiles.lifeguard(PERIOD)),
    DEFAULT: profiles.default(PERIOD),
}


class SickParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, S3."""

    members: Annotated[int, Meta(ge=8, le=1000)] = 128
    sick: Annotated[tuple[Annotated[int, Meta(ge=1, le=100)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (1, 4, 16)
    seconds: Annotated[float, Meta(ge=30, le=36_000)] = 300.0
    crashes: Annotated[int, Meta(ge=1, le=100)] = 8
    profiles: Annotated[tuple[Literal["swim", "lifeguard", "default"], ...], Meta(min_length=1, max_length=3)] = (SWIM, LIFEGUARD, DEFAULT)


class SickMembers(Experiment[SickParameters]):
    """Some members are stalled again and again."""

    id = "gossip/S3"
    name = "gossip/sick-members"
    title = "Members that are stalled do not make healthy ones look dead"
    source = "paper Lifeguard, section 5 (over 50 times fewer false positives about healthy members); gossip 8, S3"
    criterion = "default: false deaths of healthy members at most a tenth of swim's, median time to the first DEAD at most 1.5 times swim's"
    parameters = SickParameters
    seconds_per_cell = 12
    quick: ClassVar[Mapping[str, str]] = {"members": "48", "sick": "[8]", "seconds": "120", "crashes": "4"}

    def cells(self, parameters: SickParameters, seed: int) -> Sequence[Cell]:
        setting = {"members": parameters.members, "seconds": parameters.seconds, "crashes": parameters.crashes}
        return [
            {"profile": profile, "sick": sick, "seed": seed * SEEDS_MAX + number, **setting}
            for profile in parameters.profiles
            for sick in parameters.sick
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return {**cell, **_play(cell)}

    def judge(self, parameters: SickParameters, results: Sequence[Measured]) -> Finding:
        kinds: tuple[str, ...] = parameters.profiles
        false = {kind: sum(row["false"] for row in results if row["profile"] == kind) for kind in kinds}
        lists = {kind: sum(row["lists"] for row in results if row["profile"] == kind) for kind in kinds}
        detection = {kind: _median([time for row in results if row["profile"] == kind for time in row["times"]]) for kind in kinds}
        measured: dict[str, Any] = {"false deaths": false, "lists that lost a healthy member": lists, "first DEAD, median s": detection}
        measured["rows"] = [dict(row) for row in results]
        expected = {"false deaths": {DEFAULT: f"<= swim's / {FEWER:g}"}, "first DEAD, median s": {DEFAULT: f"<= {DETECTION_MAX} x swim's"}}
        misses = []
        if not false.get(SWIM):
            misses.append("swim held no healthy member to be dead: there is nothing to compare with")
        if FEWER * false.get(DEFAULT, 0) > false.get(SWIM, 0):
            misses.append(f"{false.get(DEFAULT)} false deaths with the default, {false.get(SWIM)} with swim")
        if detection.get(DEFAULT, 0.0) > DETECTION_MAX * detection.get(SWIM, 0.0):
            misses.append(f"first DEAD after {detection.get(DEFAULT)} s with the default, {detection.get(SWIM)} s with swim")
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2)
        rows = finding.measured["rows"]
        for kind in dict.fromkeys(row["profile"] for row in rows):
            found = sorted((row["sick"], row["false"]) for row in rows if row["profile"] == kind)
            left.plot([sick for sick, _ in found], [false for _, false in found], marker="o", label=kind)
        left.set_xlabel("members that are stalled again and again")
        left.set_ylabel("healthy members held to be dead")
        left.set_ylim(bottom=0)
        left.legend()
        detection = finding.measured["first DEAD, median s"]
        right.bar(list(detection), list(detection.values()))
        right.set_ylabel("seconds to the first DEAD (median)")


def _play(cell: Cell) -> Measured:
    group = GossipGroup(cell["seed"], MAKE[cell["profile"]], link=Link(Uniform(0.0005, 0.005)))
    names = names_of(cell["members"])
    group.form(names)
    group.run(WARM_UP)
    world, random = group.world, group.world.random
    chosen = random.sample(names, cell["sick"] + cell["crashes"])
    sick, victims = chosen[: cell["sick"]], chosen[cell["sick"] :]
    died: dict[str, float] = {}
    first: dict[str, float] = {}
    false: dict[tuple[NodeId, int], int] = {}

    def on_event(host: LabHost, event: Event) -> None:
        if not isinstance(event, Decided) or event.member.id.name in sick:
            return
        name = event.member.id.name
        if name in died:
            first.setdefault(name, world.now)
        else:
            found = group.node(host.me.name).table.of(event.member.id)
            key = event.member.id, 0 if found is None else found.inc
            false[key] = false.get(key, 0) + 1

    world.listeners.append(on_event)
    begin = world.now
    for name in sick:
        world.at(begin + random.uniform(0.0, EVERY[1]), partial(_stall, group, name, begin + cell["seconds"]))
    for name in victims:
        world.at(begin + random.uniform(0.1, 0.9) * cell["seconds"], partial(_kill, group, name, died))
    group.run(cell["seconds"] + AFTER)
    times = [round(first[name] - died[name], 3) for name in victims if name in first]
    return {"false": len(false), "lists": sum(false.values()), "times": times, "unheard": cell["crashes"] - len(times)}


def _kill(group: GossipGroup, name: str, died: dict[str, float]) -> None:
    died[name] = group.world.now
    group.crash(name)


def _stall(group: GossipGroup, name: str, until: float) -> None:
    world, random = group.world, group.world.random
    if world.now >= until:
        return
    seconds = random.uniform(*STALLED)
    world.network.partition(name, ((name,), [other for other in world.nodes if other != name]))
    world.at(world.now + seconds, lambda: world.network.heal(name))
    world.at(world.now + max(seconds, random.uniform(*EVERY)), partial(_stall, group, name, until))


def _median(times: Sequence[float]) -> float:
    return round(median(times), 3) if times else 0.0


EXPERIMENT = SickMembers()
