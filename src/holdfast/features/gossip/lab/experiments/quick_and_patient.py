"""gossip/S8: how soon is a dead member known to all, and is a paused one ever held to be dead?  Spec: gossip 8 (S8), D16.

T is 0.1 s. Each crash and each pause has a group of its own, formed beforehand. A pause lasts 0.7 of the median time to the first DEAD of
the same profile, size and delay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta

from holdfast.features.gossip.lab.groups import GossipGroup, names_of
from holdfast.features.gossip.lab.measures import Opinions, at_most, datagrams, middle, rounded, until_all_know
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 0.1
SHORT: Final = "0.1-2 ms"
LONG: Final = "0.1-15 ms"
DELAYS = {SHORT: Uniform(0.0001, 0.002), LONG: Uniform(0.0001, 0.015)}
FIRST_MAX, LAST_MAX, RATE_MAX, DEAD_MAX = 0.5, 0.6, 22.0, 0
PAUSE_SHARE = 0.7
WARM_UP, CALM, LATEST, AFTER = 1.0, 2.0, 6.0, 3.0  # seconds
DEFAULT: Final = "default"
Kind = Literal["default", "lifeguard", "without NACKs that confirm", "without direct words", "without last call"]
_WITHOUT = {
    "without NACKs that confirm": Rules(nacks_confirm=False),
    "without direct words": Rules(direct=False),
    "without last call": Rules(last_call=False, answer_stale=False),
}


class QuickParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, S8."""

    members: Annotated[tuple[Annotated[int, Meta(ge=3, le=512)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (5, 16, 64)
    profiles: Annotated[tuple[Kind, ...], Meta(min_length=1, max_length=LIST_MAX)] = (
        DEFAULT,
        "lifeguard",
        "without NACKs that confirm",
        "without direct words",
        "without last call",
    )
    delays: Annotated[tuple[Literal["0.1-2 ms", "0.1-15 ms"], ...], Meta(min_length=1, max_length=LIST_MAX)] = (SHORT, LONG)
    runs: Annotated[int, Meta(ge=1, le=10_000)] = 100  # crashes, and as many pauses


class QuickAndPatient(Experiment[QuickParameters]):
    """One member is killed, or stopped for a moment."""

    id = "gossip/S8"
    name = "gossip/quick-and-patient"
    title = "A dead member is known to all within half a second, and a paused one is not buried"
    source = (
        "gossip 8, S8; prototype: default 0.41/0.41, 0.41/0.44, 0.43/0.48 s at 5, 16, 64 members, 20.1 datagrams/s, 0 dead after a pause"
    )
    criterion = "default, at every size and delay: median first DEAD <= 0.5 s, last <= 0.6 s, <= 22 datagrams/s, none dead after a pause"
    parameters = QuickParameters
    seconds_per_cell = 12
    quick: ClassVar[Mapping[str, str]] = {"members": "[5,16]", "runs": "5", "profiles": '["default","lifeguard"]'}

    def cells(self, parameters: QuickParameters, seed: int) -> Sequence[Cell]:
        return [
            {"profile": kind, "delay": delay, "members": members, "runs": parameters.runs, "seed": seed * SEEDS_MAX + number}
            for kind in parameters.profiles
            for delay in parameters.delays
            for members in parameters.members
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        crashes = [_crash(cell, f"{cell['seed']}/crash/{number}") for number in range(cell["runs"])]
        first, last = middle([each["first"] for each in crashes]), middle([each["last"] for each in crashes])
        pause = PAUSE_SHARE * (first or FIRST_MAX)
        dead = sum(_pause(cell, f"{cell['seed']}/pause/{number}", pause) for number in range(cell["runs"]))
        rate = sum(each["rate"] for each in crashes) / len(crashes)
        return {
            **cell,
            "first": first,
            "last": last,
            "rate": round(rate, 2),
            "dead": dead,
            "suspected": middle([e["suspected"] for e in crashes]),
        }

    def judge(self, parameters: QuickParameters, results: Sequence[Measured]) -> Finding:
        names = ("first", "last", "rate", "dead", "suspected")
        measured: dict[str, Any] = {name: {_label(row): row[name] for row in results} for name in names}
        ours = [row for row in results if row["profile"] == DEFAULT]
        expected = {
            "first": {_label(row): f"<= {FIRST_MAX}" for row in ours},
            "last": {_label(row): f"<= {LAST_MAX}" for row in ours},
            "rate": {_label(row): f"<= {RATE_MAX:g}" for row in ours},
            "dead": {_label(row): f"{DEAD_MAX} of {row['runs']}" for row in ours},
        }
        measured["rows"] = [dict(row) for row in results]
        misses = [note for row in ours for note in _misses(row)]
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2)
        rows = finding.measured["rows"]
        kinds = list(dict.fromkeys((row["profile"], row["delay"]) for row in rows))
        for kind, delay in kinds:
            found = sorted(
                (row["members"], row["last"] or LATEST, row["dead"]) for row in rows if (row["profile"], row["delay"]) == (kind, delay)
            )
            style = "-" if delay == SHORT else "--"
            left.plot([n for n, _, _ in found], [last for _, last, _ in found], style, marker="o", label=f"{kind}, {delay}")
            right.plot([n for n, _, _ in found], [dead for _, _, dead in found], style, marker="o")
        left.axhline(LAST_MAX, color="#7b8794", linestyle=":", linewidth=1)
        left.set_ylabel("seconds from the crash to the last DEAD (median)")
        right.set_ylabel("paused members that were held to be dead")
        for axes in (left, right):
            axes.set_xscale("log")
            axes.set_xlabel("members")
            axes.set_ylim(bottom=0)
        left.legend(fontsize="x-small")


def _profile(kind: str) -> Profile:
    if kind == "lifeguard":
        return profiles.lifeguard(PERIOD)
    return Profile(profiles.default(PERIOD).config, _WITHOUT.get(kind, Rules()))


def _group(cell: Cell, seed: str) -> GossipGroup:
    group = GossipGroup(_number(seed), _profile(cell["profile"]), link=Link(DELAYS[cell["delay"]]))
    group.form(names_of(cell["members"]))
    group.run(WARM_UP + group.world.random.random() * PERIOD)
    return group


def _number(seed: str) -> int:
    first, kind, number = seed.split("/")
    return (int(first) * 2 + (kind == "pause")) * SEEDS_MAX + int(number)


def _crash(cell: Cell, seed: str) -> Measured:
    group = _group(cell, seed)
    before = datagrams(group)
    group.run(CALM)
    rate = (datagrams(group) - before) / CALM / cell["members"]
    opinions = Opinions(group)
    victim = group.world.random.choice(group.alive)
    life, at = group.host(victim).me, group.world.now
    group.crash(victim)
    until_all_know(group, opinions, life, LATEST, PERIOD)

    def since(when: float | None) -> float | None:
        return rounded(None if when is None else when - at)

    return {
        "suspected": since(opinions.first_suspicion(life)),
        "first": since(opinions.first_death(life)),
        "last": since(opinions.last_death(life)),
        "rate": rate,
    }


def _pause(cell: Cell, seed: str, seconds: float) -> int:
    """1 if any member was held to be dead by any other."""
    group = _group(cell, seed)
    opinions = Opinions(group)
    victim = group.world.random.choice(group.alive)
    group.world.stop(victim)
    group.run(seconds)
    group.world.resume(victim)
    group.run(AFTER)
    return int(bool(opinions.decided))


def _label(row: Mapping[str, Any]) -> str:
    return f"{row['profile']}, {row['delay']}, {row['members']}"


def _misses(row: Measured) -> list[str]:
    label = _label(row)
    found = [
        (at_most(row["first"], FIRST_MAX), f"median first DEAD after {row['first']} s, accepted are {FIRST_MAX}"),
        (at_most(row["last"], LAST_MAX), f"median last DEAD after {row['last']} s, accepted are {LAST_MAX}"),
        (row["rate"] <= RATE_MAX, f"{row['rate']} datagrams/s per member, accepted are {RATE_MAX:g}"),
        (row["dead"] <= DEAD_MAX, f"{row['dead']} of {row['runs']} dead after a pause"),
    ]
    return [f"{label}: {text}" for passed, text in found if not passed]


EXPERIMENT = QuickAndPatient()
