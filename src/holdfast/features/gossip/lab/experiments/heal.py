"""gossip/S6: when a partition heals, does each side bury members of its own?  Spec: gossip 8 (S6), D5, D4; G11.

20 members are split into two sides for 60 s, so each side holds the other to be dead, and says so in the first table that it shows to it. A
member that is missing in a list of its own side is what a table may not bring about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.gossip.lab.groups import GossipGroup, names_of
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.profiles import Profile
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 1.0
ACCUSE, KILL = "tables accuse (D5)", "tables kill"
WARM_UP, LATEST = 5.0, 80.0  # seconds; 80 T is the bound of G4


class HealParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, S6."""

    seeds: Annotated[int, Meta(ge=1, le=10_000)] = 10
    members: Annotated[int, Meta(ge=4, le=200)] = 20
    seconds: Annotated[float, Meta(ge=10, le=600)] = 60.0


class Heal(Experiment[HealParameters]):
    """Two halves that come together again."""

    id = "gossip/S6"
    name = "gossip/heal"
    title = "A partition heals, and no side buries its own members"
    source = "gossip 8, S6, D5; prototype: same-side c 5 to 9 of 9 without the rule, 0 with it; lists complete after 9 to 27 s either way"
    criterion = "with D5 no member is ever missing in a list of its own side, and all lists are complete within 80 T"
    parameters = HealParameters
    seconds_per_cell = 1
    quick: ClassVar[Mapping[str, str]] = {"seeds": "2"}

    def cells(self, parameters: HealParameters, seed: int) -> Sequence[Cell]:
        setting = {"members": parameters.members, "seconds": parameters.seconds}
        return [
            {"rule": rule, "seed": seed * SEEDS_MAX + number, **setting} for rule in (ACCUSE, KILL) for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        accuse = cell["rule"] == ACCUSE
        rules = Rules(tables_accuse=accuse, hearsay_asks=accuse)  # Without both: a table would only make a member ask (H353).
        profile = Profile(profiles.default(PERIOD).config, rules)
        names = names_of(cell["members"])
        group = GossipGroup(cell["seed"], profile, link=Link(Uniform(0.0005, 0.005)))
        group.form(names)
        group.run(WARM_UP)
        shuffled = group.world.random.sample(names, len(names))
        sides = shuffled[: len(names) // 2], shuffled[len(names) // 2 :]
        group.world.network.partition("split", sides)
        group.run(cell["seconds"])
        apart = all(group.is_whole(side) for side in sides)
        group.world.network.heal("split")
        healed_at = group.world.now
        most = 0
        while group.world.now < healed_at + LATEST:
            group.run(PERIOD / 10)
            most = max(most, *(missing(group, side) for side in sides))
            if group.is_whole(names):
                break
        whole = group.is_whole(names)
        return {**cell, "apart": apart, "missing": most, "whole": round(group.world.now - healed_at, 2) if whole else None}

    def judge(self, parameters: HealParameters, results: Sequence[Measured]) -> Finding:
        of = {rule: [row for row in results if row["rule"] == rule] for rule in (ACCUSE, KILL)}
        measured: dict[str, Any] = {
            "same-side c": {rule: max(row["missing"] for row in rows) for rule, rows in of.items()},
            "seconds until all lists are complete": {rule: max(row["whole"] or LATEST for row in rows) for rule, rows in of.items()},
            "rows": [dict(row) for row in results],
        }
        expected = {"same-side c": {ACCUSE: 0, KILL: "> 0"}, "seconds until all lists are complete": {ACCUSE: f"< {LATEST:g}"}}
        ours = of[ACCUSE]
        misses = [f"seed {row['seed']}: {row['missing']} lists of its own side lacked a member" for row in ours if row["missing"]]
        misses += [f"seed {row['seed']}: not complete after {LATEST:g} s" for row in ours if row["whole"] is None]
        misses += [f"seed {row['seed']}: the sides were not apart" for row in results if not row["apart"]]
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2)
        for number, rule in enumerate((ACCUSE, KILL)):
            rows = [row for row in finding.measured["rows"] if row["rule"] == rule]
            left.plot([number] * len(rows), [row["missing"] for row in rows], marker="o", linestyle="", label=rule)
            right.plot([number] * len(rows), [row["whole"] or LATEST for row in rows], marker="o", linestyle="")
        left.set_ylabel("lists of the own side that lacked a member")
        right.set_ylabel("seconds from the heal to complete lists")
        for axes in (left, right):
            axes.set_xticks([0, 1], [ACCUSE, KILL])
            axes.set_xlim(-0.5, 1.5)
            axes.set_ylim(bottom=-0.2)


def missing(group: GossipGroup, side: Sequence[str]) -> int:
    """In how many lists of its own side is the member missing that is missing in most?"""
    lives = {name: group.host(name).me for name in side}
    tables = [group.node(name).table for name in side]
    return max(sum(not table.lists(life) for table in tables) for life in lives.values())


EXPERIMENT = Heal()
