"""ring/E14: one member is sick, or one link; who has to leave, with each of the practice options P1 to P3 on and off?

Spec: ring 12 (E14, P1 to P3). The verdict is about the options that are on by default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.events import Event
from holdfast.features.ring.lab.observer import Observed, names_of
from holdfast.features.ring.lab.rings import PAPER_LINK
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Departed, LinkBroken
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.faults import Pause
from holdfast.lab.host import LabHost
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOSS, STALL, LINK, BROKEN = KINDS = ("lossy member", "stalling member", "lossy link", "broken link")
OF_LINKS = (LINK, BROKEN)
LOSSES = {LOSS: 0.3, LINK: 0.6, BROKEN: 1.0}
STALL_SECONDS, STALL_EVERY = 0.8, 3.0  # in T_l, which is 1 s
SICK_SHARE = 0.95  # of the departures
SEEDS = 3  # members at which those who were put out knock
OPTIONS = ("P1", "P2", "P3")
NONE = "none"


class SickMemberParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 12, E14."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 3
    members: Annotated[int, Meta(ge=8, le=200)] = 32
    seconds: Annotated[float, Meta(ge=10.0, le=86_400.0)] = 600.0


class SickMember(Experiment[SickMemberParameters]):
    """A member loses 30 % on all its links, or stalls for 0.8 T_l in every 3; or one link between two neighbours is bad, or dead."""

    id = "ring/E14"
    name = "ring/sick-member"
    title = "A sick member leaves, a bad link costs nobody"
    source = "ring 12, E14, P1 to P3"
    criterion = (
        "with the options that are on by default: I1 to I14 hold, the sick member is the one to leave in at least 95 % of the departures, "
        "and a single bad link costs nobody"
    )
    parameters = SickMemberParameters
    seconds_per_cell = 2.2
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1", "members": "12", "seconds": "20"}

    def cells(self, parameters: SickMemberParameters, seed: int) -> Sequence[Cell]:
        grid = product(product((False, True), repeat=len(OPTIONS)), KINDS, range(parameters.seeds))
        return [
            {
                "options": list(options),
                "kind": kind,
                "members": parameters.members,
                "seconds": parameters.seconds,
                # The same seed for all options: the same ring, the same victim.
                "seed": seed * SEEDS_MAX + number,
            }
            for options, kind, number in grid
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: SickMemberParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        default = _named(default_options())
        settings = dict.fromkeys((_named(row["options"]), row["kind"]) for row in rows)
        table = [_summed(*setting, [row for row in rows if (_named(row["options"]), row["kind"]) == setting]) for setting in settings]
        good = [name for name in dict.fromkeys(row["options"] for row in table) if not _misses([r for r in table if r["options"] == name])]
        judged = [row for row in table if row["options"] == default]
        misses = [*violations(results), *_misses(judged)]
        if {row["kind"] for row in judged} != set(KINDS):
            misses.append(f"the defaults ({default}) were not measured to the end")
        measured: dict[str, Any] = {
            what: {kind: {row["options"]: row[what] for row in table if row["kind"] == kind} for kind in KINDS}
            for what in ("sick departures", "healthy departures")
        }
        measured["defaults"] = default
        measured["options that meet the criterion"] = good
        measured["violations"] = len(violations(results))
        measured["settings"] = table
        expected = {
            "sick departures": {kind: {default: 0} for kind in OF_LINKS},
            "healthy departures": {kind: {default: 0} for kind in OF_LINKS},
            "violations": 0,
        }
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        default = finding.measured["defaults"]
        for place, kind in zip(figure.subplots(2, 2).flatten(), KINDS, strict=True):
            rows = [row for row in finding.measured["settings"] if row["kind"] == kind]
            labels = [f"{row['options']}\n(default)" if row["options"] == default else row["options"] for row in rows]
            hours = [row["hours"] for row in rows]
            sick = [row["sick departures"] / each for row, each in zip(rows, hours, strict=True)]
            healthy = [row["healthy departures"] / each for row, each in zip(rows, hours, strict=True)]
            place.bar(labels, sick, color="#0072b2", label="an end of the link" if kind in OF_LINKS else "the sick one")
            place.bar(labels, healthy, bottom=sick, color="#d55e00", label="healthy ones")
            place.set_title(kind)
            place.set_ylabel("departures per hour")
            place.set_ylim(0, max(1.0, *(a + b for a, b in zip(sick, healthy, strict=True))) * 1.1)
            place.tick_params(axis="x", labelsize=6)
            place.legend(fontsize=7)


def default_options() -> tuple[bool, bool, bool]:
    config = RingConfig()
    return config.indirect, config.patient, config.here


def _play(cell: Cell) -> Measured:
    names = names_of(cell["members"])
    indirect, patient, here = cell["options"]
    config = RingConfig(indirect=indirect, patient=patient, here=here)
    # The invariants look on where the verdict is made; elsewhere only departures are counted.
    looking_on = None if (indirect, patient, here) == default_options() else ()
    rings = Observed(cell["seed"], names, config, seeds=names[:SEEDS], lossless=False, checkers=looking_on)
    rings.form(names)
    world = rings.world
    sick = _sicken(rings, cell["kind"], cell["seconds"])
    counts: Counter[str] = Counter()

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, Departed) and event.was_member:
            counts["sick" if host.me.name in sick else "healthy"] += 1
        elif isinstance(event, LinkBroken):
            counts["reported"] += 1

    world.listeners.append(on_event)
    world.run(cell["seconds"])
    out = sum(not rings.members[name].valid for name in sick)
    return {"options": cell["options"], "kind": cell["kind"], "seconds": cell["seconds"], "counts": dict(counts), "out": out}


def _sicken(rings: Observed, kind: str, seconds: float) -> set[str]:
    """Who is sick: one member, or the two ends of a link."""
    world = rings.world
    one = world.random.choice(rings.names)
    if kind == STALL:
        for number in range(int(seconds / STALL_EVERY)):
            at = number * STALL_EVERY + world.random.random()
            world.at(at, lambda at=at: Pause(at, one, STALL_SECONDS).begin(world))  # type: ignore[misc]
        return {one}
    ring = rings.members[one]
    others = [world.random.choice([pair.peer.node.name for pair in ring.pairs.values()])] if kind in OF_LINKS else rings.names
    link = replace(PAPER_LINK, loss=LOSSES[kind])
    for other in others:
        if other != one:
            world.network.set_link(link, one, other)
            world.network.set_link(link, other, one)
    return {one, *others} if kind in OF_LINKS else {one}


def _summed(options: str, kind: str, rows: Sequence[Measured]) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update(row["counts"])
    return {
        "options": options,
        "kind": kind,
        "sick departures": counts["sick"],
        "healthy departures": counts["healthy"],
        "links reported": counts["reported"],
        "sick ones out at the end": sum(row["out"] for row in rows),
        "hours": sum(row["seconds"] for row in rows) / 3600,
    }


def _misses(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    notes = []
    for row in rows:
        sick, healthy = row["sick departures"], row["healthy departures"]
        told = f"{row['options']}, {row['kind']}: {sick} departures of the sick, {healthy} of healthy members"
        if row["kind"] in OF_LINKS and sick + healthy:
            notes.append(f"{told}; a bad link must cost nobody")
        elif sick + healthy and sick < SICK_SHARE * (sick + healthy):
            notes.append(f"{told}; at least {SICK_SHARE:.0%} must be of the sick")
    return notes


def _named(options: Sequence[bool]) -> str:
    return "+".join(name for name, on in zip(OPTIONS, options, strict=True) if on) or NONE


EXPERIMENT = SickMember()
