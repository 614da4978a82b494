"""ring/E11: of a ring of one to seven, which crashes does the rest survive?

Spec: ring 8 (E11), D5 (the smallest id of an even group counts twice), D24 (static arbitrators for tiny fleets).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.events import Event
from holdfast.features.ring.lab.observer import Observed, names_of
from holdfast.features.ring.lab.rings import arbitrators
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Departed
from holdfast.kit.phase import weighted
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAIRWISE, CENTRAL = MODES = ("pairwise", "central")
ARBITRATORS = 3
LARGEST = 7  # with k = 3 all are neighbours of all
WARM_UP = 4.0  # in T_l, which is 1 s: static arbitrators are older than T_arb then (Algorithm 1)
AFTERWARDS = 12.0  # in T_l
# The specification's list for odd numbers: members, how many crash.
SURVIVED = {"3 survive 1": (3, 1), "5 survive 2": (5, 2), "7 survive 3": (7, 3)}


class SmallParameters(Parameters, frozen=True, kw_only=True):
    """Every subset of every size, so many times."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 3
    members: Annotated[int, Meta(ge=2, le=LARGEST)] = LARGEST  # the largest ring


class Small(Experiment[SmallParameters]):
    """A subset of a small ring crashes at once; do all the others stay members?"""

    id = "ring/E11"
    name = "ring/small"
    title = "Small rings: who survives which crashes"
    source = "ring 8, E11, D5, D24"
    criterion = (
        "I1 to I14 hold; pairwise: all others survive a crash if and only if they are a majority, the smallest id counting twice among "
        "an even number: 3 survive 1, 5 survive 2, 7 survive 3, 2 survive the larger id; central with 3 arbitrators: always"
    )
    parameters = SmallParameters
    seconds_per_cell = 0.27
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1", "members": "4"}

    def cells(self, parameters: SmallParameters, seed: int) -> Sequence[Cell]:
        return [
            {"mode": mode, "members": members, "crashed": crashed, "seeds": parameters.seeds, "seed": seed * SEEDS_MAX}
            for mode in MODES
            for members in range(1, parameters.members + 1)
            for crashed in range(min(1, members - 1), max(1, members))  # One alone does not crash; of more, not all.
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: SmallParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        table = {(row["mode"], row["members"], row["crashed"]): row["subsets"] for row in rows}
        wrong = [(setting, subset) for setting, subsets in table.items() for subset in subsets if _is_wrong(setting, subset)]
        misses = [*violations(results), *(_told(setting, subset) for setting, subset in wrong)]
        shares = {_key(*setting): _share(subsets) for setting, subsets in table.items()}
        measured: dict[str, Any] = {
            "share of the crashes survived by all others": shares,
            "outcomes other than the rule says": len(wrong),
            "subsets": sum(len(subsets) for subsets in table.values()),
            "violations": len(violations(results)),
        }
        wanted = {_key(*setting): _share_by_rule(setting, subsets) for setting, subsets in table.items()}
        expected = {"share of the crashes survived by all others": wanted, "outcomes other than the rule says": 0, "violations": 0}
        for told, (members, crashed) in SURVIVED.items():
            if shares.get(_key(PAIRWISE, members, crashed), 1.0) < 1.0:
                misses.append(f"{told}: not always")
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        shares = finding.measured["share of the crashes survived by all others"]
        for place, mode in zip(figure.subplots(1, 2), MODES, strict=True):
            sizes = sorted({int(key.split(", ")[1].split(" ")[0]) for key in shares if key.startswith(mode)})
            for members in sizes:
                for crashed in range(1, members):
                    share = shares[_key(mode, members, crashed)]
                    place.scatter(members, crashed, s=700, marker="s", c=[(1 - share * 0.8, 0.4 + share * 0.35, 0.35)])
                    place.text(members, crashed, f"{share:.0%}", ha="center", va="center", fontsize=8, color="white")
            place.plot(
                sizes, [(members - 1) / 2 for members in sizes], color="#7b8794", linestyle="--", zorder=0, label="half of the others"
            )
            place.set_title(mode if mode == PAIRWISE else f"{mode}, {ARBITRATORS} arbitrators")
            place.set_xlabel("members")
            place.set_ylabel("of which crash at once")
            place.set_xlim(1.4, max(sizes) + 0.6)
            place.set_ylim(0.4, max(sizes) - 0.4)
            place.legend(loc="upper left", fontsize=8)
            place.grid(visible=False)
        figure.axes[0].set_title("pairwise: share of the subsets that all others survive")


def survives(mode: str, members: int, crashed: Sequence[int]) -> bool:
    """By the rule. Members are numbered in the order of their ids."""
    alive = set(range(members)) - set(crashed)
    return mode == CENTRAL or weighted(range(members)).enough(alive)


def _play(cell: Cell) -> Measured:
    subsets = []
    for number, crashed in enumerate(combinations(range(cell["members"]), cell["crashed"])):
        for repetition in range(cell["seeds"]):
            left = _crash(cell, crashed, cell["seed"] + number * 1000 + repetition)
            subsets.append({"crashed": list(crashed), "left": left})
    return {"mode": cell["mode"], "members": cell["members"], "crashed": cell["crashed"], "subsets": subsets}


def _crash(cell: Cell, crashed: Sequence[int], seed: int) -> int:
    """How many of the survivors had to leave."""
    names = names_of(cell["members"])
    central = cell["mode"] == CENTRAL
    config = RingConfig(mode="central", arbitrators=arbitrators(ARBITRATORS)) if central else RingConfig()
    rings = Observed(seed, names, config)
    rings.start_arbitrators()
    rings.form(names)
    world = rings.world
    world.run(WARM_UP + world.random.random())
    departed: list[str] = []

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, Departed) and event.was_member:
            departed.append(host.me.name)

    world.listeners.append(on_event)
    by_id = sorted(names, key=lambda name: rings.members[name].id)
    for place in crashed:
        world.crash(by_id[place])
    world.run(world.now + AFTERWARDS)
    return len(set(departed))


def _is_wrong(setting: tuple[str, int, int], subset: Mapping[str, Any]) -> bool:
    mode, members, _ = setting
    survivors = members - len(subset["crashed"])
    stays = survives(mode, members, subset["crashed"])
    return bool(subset["left"] != (0 if stays else survivors))


def _share(subsets: Sequence[Mapping[str, Any]]) -> float:
    return round(sum(not subset["left"] for subset in subsets) / len(subsets), 4)


def _share_by_rule(setting: tuple[str, int, int], subsets: Sequence[Mapping[str, Any]]) -> float:
    mode, members, _ = setting
    return round(sum(survives(mode, members, subset["crashed"]) for subset in subsets) / len(subsets), 4)


def _key(mode: str, members: int, crashed: int) -> str:
    return f"{mode}, {members} members, {crashed} crash"


def _told(setting: tuple[str, int, int], subset: Mapping[str, Any]) -> str:
    mode, members, crashed = setting
    rule = "all stay" if survives(mode, members, subset["crashed"]) else "all leave"
    return f"{_key(*setting)} ({subset['crashed']}): {subset['left']} of {members - crashed} survivors left; by the rule, {rule}"


EXPERIMENT = Small()
