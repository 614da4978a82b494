"""views/T1: which views are there while a server, a path of two clients, or links between servers are cut?

Spec: views 5.8, 8 (T1), D7; paper 003, 4.3, Figure 5 and Table 1. Three servers with two clients each, which do not fail over. A cut lasts
from 10 s to 55 s, as in the paper. Each back end is a column of the table: our servers in the simulator, and a real ensemble of ZooKeeper,
in real time, where it is installed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta

from holdfast.events import Event, ViewChanged, ViewLost
from holdfast.features.views.lab.ensemble import Ensemble, missing
from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.lab.measures import Reached, form
from holdfast.features.views.lab.users import Answered, Habits
from holdfast.features.views.lab.wires import Wires
from holdfast.features.views.lab.zookeeper_members import ZooKeeperMembers
from holdfast.host import Carried
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BackEnd = Literal["moshe", "zookeeper"]
MOSHE: BackEnd = "moshe"
ZOOKEEPER: BackEnd = "zookeeper"
MISSING = "missing"  # why a column cannot be measured here
CASES: Mapping[int, str] = {
    1: "full partition of a server",
    2: "cut between two clients",
    3: "partition of the servers",
    4: "one server link",
}
# Sizes of the views, and how many clients are without one, by case and server that leads. In ZooKeeper's case 4 the paper has a panic
# whatever server leads; it is true only if one of the two that are cut apart does (D21).
Placed = tuple[int, int | None]
EXPECTED: Mapping[BackEnd, Mapping[Placed, tuple[list[int], int]]] = {
    MOSHE: {(1, None): ([2, 4], 0), (2, None): ([6], 0), (3, None): ([2, 4], 0), (4, None): ([6], 0)},
    ZOOKEEPER: {(1, 2): ([4], 2), (2, 2): ([6], 0), (3, 2): ([4], 2), (4, 2): ([4], 2), (4, 1): ([6], 0)},
}
FORMED_BY, CUT_AT, HEALED_AT = 9.0, 10.0, 55.0
LOOK_BEFORE = 1.0  # seconds before the heal: messages are said, and the views read
HEALED_WITHIN = 30.0  # seconds until the run is given up
REAL_FORMED_BY = 60.0  # seconds of a machine that may be busy
# Servers s0 (the paper's S_a) with c0 and c3 (N_1 and N_2), s1 with c1 and c4, s2 with c2 and c5.
SA, REST = ("s0", "c0", "c3"), ("s1", "s2", "c1", "c2", "c4", "c5")
CUTS: Mapping[int, tuple[tuple[str, ...], tuple[str, ...]]] = {
    1: (SA, REST),
    2: (("c3",), ("c1",)),
    3: (("s0",), ("s1", "s2")),
    4: (("s0",), ("s2",)),
}


class FailuresParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 7.1.1."""

    back_ends: Annotated[tuple[BackEnd, ...], Meta(min_length=1, max_length=LIST_MAX)] = (MOSHE, ZOOKEEPER)
    zookeeper_seconds: Annotated[float, Meta(ge=8.0, le=600.0)] = HEALED_AT - CUT_AT  # of a cut in real time


class Failures(Experiment[FailuresParameters]):
    """Four cases, each column of the table by its own back end."""

    id = "views/T1"
    name = "views/failures"
    title = "Four failures: two views where servers are apart, one view of all elsewhere"
    source = "paper 003, Figure 5, Table 1; views 8, T1"
    criterion = (
        "CB1 to CB9 hold; views of {2, 4}, {6}, {2, 4}, {6}; ZooKeeper: {4} and two in panic in 1 and 3, {6} in 2, in 4 as D21 has it; "
        "every message inside a view is delivered; one view of 6 after the heal"
    )
    parameters = FailuresParameters
    seconds_per_cell = 32  # most of them waiting: a cut of a real ensemble lasts 45 s
    quick: ClassVar[Mapping[str, str]] = {"back_ends": '["moshe"]'}

    def cells(self, parameters: FailuresParameters, seed: int) -> Sequence[Cell]:
        return [
            {
                "back end": back_end,
                "case": case,
                "leader": leader,
                "seconds": parameters.zookeeper_seconds,
                "seed": seed * SEEDS_MAX + number,
            }
            for back_end in parameters.back_ends
            for case, leader in EXPECTED[back_end]
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(BACK_ENDS[cell["back end"]], cell)

    def judge(self, parameters: FailuresParameters, results: Sequence[Measured]) -> Finding:
        rows = [row for row in completed(results) if not row.get(MISSING)]
        misses = [*violations(results), *(note for row in rows for note in _misses(row))]
        expected_of = {key_of(row): sizes_of(row) for row in rows}
        keys = list(expected_of)
        of = {key: [row for row in rows if key_of(row) == key] for key in keys}
        measured: dict[str, Any] = {
            "views": {key: _same([row["sizes"] for row in of[key]]) for key in keys},
            "without a view": {key: max(row["panicking"] for row in of[key]) for key in keys},
            "views installed while cut": {key: max(row["installed"] for row in of[key]) for key in keys},
            "seconds to the last of them": {key: max(row["settled_in"] for row in of[key]) for key in keys},
            "lost their view for a while": {key: max(row["lost"] for row in of[key]) for key in keys},
            "messages not delivered": {key: sum(row["said"] - row["delivered"] for row in of[key]) for key in keys},
            "seconds to heal": {key: max(_healed_in(row) for row in of[key]) for key in keys},
        }
        expected = {
            "views": {key: sizes for key, (sizes, _) in expected_of.items()},
            "without a view": {key: panicking for key, (_, panicking) in expected_of.items()},
            "messages not delivered": dict.fromkeys(keys, 0),
        }
        return Finding(measured, expected, not misses, shortened([*misses, *unmeasured(results, parameters.back_ends)]))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        axes.axis("off")
        measured, expected = finding.measured, finding.expected
        header = ["case", "expected: views", "ours: views", "without", "installed", "last after", "healed after"]
        text = [
            [
                key,
                _told(expected["views"][key], expected["without a view"][key]),
                _told(measured["views"][key], measured["without a view"][key]),
                str(measured["without a view"][key]),
                str(measured["views installed while cut"][key]),
                f"{measured['seconds to the last of them'][key]:.2f} s",
                f"{measured['seconds to heal'][key]:.2f} s",
            ]
            for key in measured["views"]
        ]
        widths = [0.4, 0.13, 0.13, 0.08, 0.08, 0.09, 0.11]
        table = axes.table(cellText=text, colLabels=header, colWidths=widths, loc="center", cellLoc="left")
        table.auto_set_font_size(False)
        table.set_fontsize(8.5)
        table.scale(1, 2.5)


def play_moshe(cell: Cell) -> Measured:
    """One case on our own servers, in the simulator."""
    group = ViewGroup(cell["seed"], 3, 6, homes=True, habits=Habits(says=0.0))
    form(group, FORMED_BY)
    group.run(CUT_AT - group.world.now)
    told = _Told(group)
    cuts = group.cut(*CUTS[cell["case"]])
    group.run(HEALED_AT - LOOK_BEFORE - group.world.now)
    views = [each for each in group.views() if not each[0].endswith(" alone")]
    said = _say_all(group, views)
    group.run(HEALED_AT - group.world.now)
    found = {
        **cell,
        "sizes": sorted(map(len, views)),
        "panicking": sum(group.leased(name) is None for name in group.clients),
        "installed": told.views,
        "settled_in": round(told.last_at - CUT_AT, 3) if told.views else 0.0,
        "lost": told.lost,
        "said": said,
        "delivered": told.delivered,
    }
    reached = Reached(group, group.clients)
    group.heal(cuts)
    if group.is_one():
        return {**found, "healed_in": 0.0}
    group.until(lambda: reached.at is not None, HEALED_WITHIN)
    return {**found, "healed_in": None if reached.at is None else round(reached.at - HEALED_AT, 3)}


def _say_all(group: ViewGroup, views: Sequence[Sequence[str]]) -> int:
    """Every member of a view says something to every other one. How many messages that are."""
    pairs = [pair for members in views for pair in permutations(members, 2)]
    for one, other in pairs:
        group.say(one, other)
    return len(pairs)


class _Told:
    """What clients install and are told from now on."""

    def __init__(self, group: ViewGroup) -> None:
        self.views = self.lost = self.delivered = 0
        self.last_at = 0.0
        self._world = group.world
        self._world.listeners.append(self._on_event)

    def _on_event(self, host: object, event: Event) -> None:
        if isinstance(event, ViewChanged):
            self.views, self.last_at = self.views + 1, self._world.now
        elif isinstance(event, ViewLost):
            self.lost += 1
        elif isinstance(event, Answered):
            self.delivered += event.outcome is Carried.DELIVERED


def play_zookeeper(cell: Cell) -> Measured:
    """One case on a real ensemble, in real time; or why that cannot be."""
    why = missing()
    if why:
        return {**cell, MISSING: why}
    with TemporaryDirectory() as folder, Wires() as wires, Ensemble(Path(folder), wires, leader=cell["leader"]) as ensemble:
        return asyncio.run(_on_zookeeper(cell, ensemble))


async def _on_zookeeper(cell: Cell, ensemble: Ensemble) -> Measured:
    clock = asyncio.get_running_loop()
    told = _RealTold()
    members = ZooKeeperMembers(ensemble, told.on_event)
    try:
        await members.start([number % 3 for number in range(6)])
        assert await members.until(members.is_one, REAL_FORMED_BY), f"there is no view of all: {members.views()}"
        told.cut_at = clock.time()
        await asyncio.to_thread(cut_real, ensemble, cell["case"])
        await asyncio.sleep(cell["seconds"] - LOOK_BEFORE)
        views = members.views()
        panicking = sum(member.leased is None for member in members.all)
        said = sum(members.say(*pair) for listed in views for pair in permutations(listed, 2) if not members.is_lost(pair))
        await asyncio.sleep(LOOK_BEFORE)
        found = {**cell, "sizes": sorted(map(len, views)), "panicking": panicking, "said": said, **told.found()}
        healed_at = clock.time()
        await asyncio.to_thread(ensemble.heal_all)
        healed = await members.until(members.is_one, HEALED_WITHIN)
        return {**found, "healed_in": round(clock.time() - healed_at, 3) if healed else None}
    finally:
        await members.end()


def cut_real(ensemble: Ensemble, case: int) -> None:
    """Clients of an ensemble reach one server each and no other client, so case 2 leaves nothing to cut, and case 1 is case 3."""
    if case in (1, 3):
        ensemble.cut_off(0)
    elif case == 4:
        ensemble.cut(0, 2)


class _RealTold:
    """What members emit."""

    def __init__(self) -> None:
        self.cut_at = 0.0  # 0: not yet
        self.views = self.lost = self.delivered = 0
        self.last_at = 0.0

    def on_event(self, at: float, name: str, event: Event) -> None:
        if not self.cut_at:
            return
        if isinstance(event, ViewChanged):
            self.views, self.last_at = self.views + 1, at
        elif isinstance(event, ViewLost):
            self.lost += 1
        elif isinstance(event, Answered):
            self.delivered += event.outcome is Carried.DELIVERED

    def found(self) -> dict[str, Any]:
        settled_in = round(self.last_at - self.cut_at, 3) if self.views else 0.0
        return {"installed": self.views, "settled_in": settled_in, "lost": self.lost, "delivered": self.delivered}


BACK_ENDS: Mapping[str, Callable[[Cell], Measured]] = {MOSHE: play_moshe, ZOOKEEPER: play_zookeeper}


def unmeasured(results: Sequence[Measured], asked: Sequence[BackEnd]) -> list[str]:
    """Which columns there are not, and why."""
    without = {row["back end"]: row[MISSING] for row in results if row.get(MISSING)}
    left_out = {each: "it was not asked for" for each in EXPECTED if each not in asked}
    return [f"the column {each} is not measured: {why}" for each, why in {**without, **left_out}.items()]


def key_of(row: Measured) -> str:
    leader = "" if row["leader"] is None or row["case"] != 4 else f", S_{'abc'[row['leader']]} leads"
    return f"{row['back end']}, case {row['case']}: {CASES[row['case']]}{leader}"


def sizes_of(row: Measured) -> tuple[list[int], int]:
    return EXPECTED[row["back end"]][row["case"], row["leader"]]


def _healed_in(row: Measured) -> float:
    seconds = row["healed_in"]
    return HEALED_WITHIN if seconds is None else float(seconds)


def _same(values: Sequence[Any]) -> Any:
    """What all runs have found, or all that they have found."""
    return values[0] if all(value == values[0] for value in values) else values


def _told(sizes: Any, panicking: int) -> str:
    return f"{{{', '.join(map(str, sizes))}}}" + (f" + {panicking}" if panicking else "")


def _misses(row: Measured) -> list[str]:
    where, (sizes, panicking) = key_of(row), sizes_of(row)
    notes = []
    if (row["sizes"], row["panicking"]) != (sizes, panicking):
        notes.append(f"{where}: {_told(row['sizes'], row['panicking'])}, expected {_told(sizes, panicking)}")
    if row["delivered"] != row["said"] or not row["said"]:
        notes.append(f"{where}: {row['delivered']} of {row['said']} messages delivered")
    if sizes == [6] and row["installed"]:
        notes.append(f"{where}: {row['installed']} views were installed, and the paper has the original view")
    if row["healed_in"] is None:
        notes.append(f"{where}: no view of all within {HEALED_WITHIN:g} s of the heal")
    return notes


EXPERIMENT = Failures()
