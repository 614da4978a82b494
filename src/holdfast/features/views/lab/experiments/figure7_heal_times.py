"""views/Z1: after servers were cut from each other, how long until all members are in one view again?

Spec: views 8 (Z1), 5.8 (case 3); paper 003, 7.1.1 and Figure 7. Three servers with two members each; one server is cut from the two
others. Our servers run in the simulator, many times; a real ensemble of ZooKeeper in real time, where it is installed, with a follower
cut off and with the leader cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.events import Event, ViewChanged
from holdfast.features.views.lab.ensemble import Ensemble, missing
from holdfast.features.views.lab.experiments.table1_failures import CUTS, MISSING, MOSHE, ZOOKEEPER, BackEnd
from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.lab.measures import form
from holdfast.features.views.lab.users import Habits
from holdfast.features.views.lab.wires import Wires
from holdfast.features.views.lab.zookeeper_members import ZooKeeperMembers
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.lab.host import LabHost
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CASE = 3  # of Figure 5
MEMBERS, SERVERS = 6, 3
FORMED_BY = 9.0
REAL_FORMED_BY = 60.0  # seconds of a machine that may be busy
HEALED_WITHIN = 90.0  # seconds until a run is given up: ZooKeeper waits up to 60 between two attempts of an election
BATCH = 25  # runs of one cell
PAPER = "zookeeper"  # is slower to heal
PROTOTYPE = {MOSHE: 0.5, f"{ZOOKEEPER}, a follower": 1.1, f"{ZOOKEEPER}, the leader": 3.7}  # seconds, the longest of one run each


class HealParameters(Parameters, frozen=True, kw_only=True):
    """How long servers were cut off."""

    back_ends: Annotated[tuple[BackEnd, ...], Meta(min_length=1, max_length=LIST_MAX)] = (MOSHE, ZOOKEEPER)
    seconds: Annotated[tuple[Annotated[float, Meta(ge=8.0, le=600.0)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (12.0, 45.0)
    runs: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 50  # in the simulator, of each length
    real_runs: Annotated[int, Meta(ge=1, le=1000)] = 1  # of each length and placement of the leader


class HealTimes(Experiment[HealParameters]):
    """One case, both back ends."""

    id = "views/Z1"
    name = "views/heal-times"
    title = "After a cut between servers heals: one view of all, and how soon"
    source = "paper 003, 7.1.1, Figure 7; views 8, Z1"
    criterion = f"both times are reported: CB1 to CB9 hold, and every run is one view of 6 again within {HEALED_WITHIN:g} s"
    parameters = HealParameters
    repetitions = "runs"
    seconds_per_cell = 30  # most of them waiting, for the cuts of a real ensemble
    quick: ClassVar[dict[str, str]] = {"back_ends": '["moshe"]', "seconds": "[12.0]", "runs": "5"}

    def cells(self, parameters: HealParameters, seed: int) -> Sequence[Cell]:
        first = seed * SEEDS_MAX
        ours = [
            cell
            for seconds in parameters.seconds
            for cell in in_batches({"back end": MOSHE, "cut off": "", "seconds": seconds}, parameters.runs, BATCH, first)
        ]
        real = [
            {"back end": ZOOKEEPER, "cut off": cut_off, "seconds": seconds, "seed": first + number, "runs": 1}
            for seconds in parameters.seconds
            for cut_off in ("a follower", "the leader")
            for number in range(parameters.real_runs)
        ]
        return [*(ours if MOSHE in parameters.back_ends else ()), *(real if ZOOKEEPER in parameters.back_ends else ())]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play_moshe if cell["back end"] == MOSHE else _play_zookeeper, cell)

    def judge(self, parameters: HealParameters, results: Sequence[Measured]) -> Finding:
        rows = [row for row in completed(results) if not row.get(MISSING)]
        times: dict[str, list[list[float]]] = {}
        for row in rows:
            times.setdefault(_key(row), []).extend(row["times"])
        never = {key: sum(row["never"] for row in rows if _key(row) == key) for key in times}
        longest = {key: max((run[-1] for run in runs), default=HEALED_WITHIN) for key, runs in times.items()}
        slower = {length: _slower(longest, length) for length in dict.fromkeys(_length(row) for row in rows)}
        slower = {length: found for length, found in slower.items() if found}
        measured: dict[str, Any] = {
            "runs": {key: len(runs) + never[key] for key, runs in times.items()},
            "seconds to one view of all, shortest": {key: min((run[-1] for run in runs), default=None) for key, runs in times.items()},
            "seconds to one view of all, longest": longest,
            "never": never,
            "slower to heal": slower,
            "each member, in the longest run": {key: max(runs, key=lambda run: run[-1], default=[]) for key, runs in times.items()},
        }
        expected = {
            "seconds to one view of all, longest": {key: PROTOTYPE[key.rpartition(", cut for ")[0]] for key in times},
            "never": dict.fromkeys(times, 0),
            "slower to heal": dict.fromkeys(slower, PAPER),
        }
        misses = [*violations(results), *(f"{key}: {count} runs were never one view again" for key, count in never.items() if count)]
        unlike = [f"{length}: {found} is slower to heal, {PAPER} in the paper" for length, found in slower.items() if found != PAPER]
        without = {row["back end"]: row[MISSING] for row in results if row.get(MISSING)}
        left_out = {each: "it was not asked for" for each in (MOSHE, ZOOKEEPER) if each not in parameters.back_ends}
        unmeasured = [f"{each} is not measured: {why}" for each, why in {**without, **left_out}.items()]
        return Finding(measured, expected, bool(times) and not misses, shortened([*misses, *unlike, *unmeasured]))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for key, seconds in finding.measured["each member, in the longest run"].items():
            if seconds:
                axes.step([0.0, *seconds], range(len(seconds) + 1), where="post", label=key)
        axes.set_xlabel("seconds from the heal, the longest run of each")
        axes.set_ylabel("members that have the view of all")
        axes.set_xlim(left=0)
        axes.legend(loc="center")


class _Joined:
    """When did each member install the view of all? From the moment of the heal on."""

    def __init__(self) -> None:
        self.healed_at = float("inf")
        self._at: dict[str, float] = {}

    def on_event(self, at: float, name: str, event: Event) -> None:
        if isinstance(event, ViewChanged) and event.view.size == MEMBERS and at >= self.healed_at:
            self._at[name] = at

    def look_on(self, group: ViewGroup) -> None:
        def listen(host: LabHost, event: Event) -> None:
            self.on_event(group.world.now, host.me.name, event)

        group.world.listeners.append(listen)

    @property
    def all(self) -> bool:
        return len(self._at) == MEMBERS

    def times(self) -> list[float]:
        """Of the members, in order."""
        return sorted(round(at - self.healed_at, 3) for at in self._at.values())


def _play_moshe(cell: Cell) -> Measured:
    found: dict[str, Any] = {**cell, "times": [], "never": 0}
    for seed in range(cell["seed"], cell["seed"] + cell["runs"]):
        group = ViewGroup(seed, SERVERS, MEMBERS, homes=True, habits=Habits(says=0.0))
        joined = _Joined()
        joined.look_on(group)
        form(group, FORMED_BY)
        cuts = group.cut(*CUTS[CASE])
        group.run(cell["seconds"] + group.world.random.random() * group.config.heartbeat)
        joined.healed_at = group.world.now
        group.heal(cuts)
        if group.until(lambda group=group, joined=joined: joined.all and group.is_one(), HEALED_WITHIN):  # type: ignore[misc]
            found["times"].append(joined.times())
        else:
            found["never"] += 1
    return found


def _play_zookeeper(cell: Cell) -> Measured:
    """One run on a real ensemble; or why that cannot be."""
    why = missing()
    if why:
        return {**cell, MISSING: why}
    leader = 0 if cell["cut off"] == "the leader" else SERVERS - 1
    with TemporaryDirectory() as folder, Wires() as wires, Ensemble(Path(folder), wires, leader=leader) as ensemble:
        return asyncio.run(_on_zookeeper(cell, ensemble))


async def _on_zookeeper(cell: Cell, ensemble: Ensemble) -> Measured:
    clock, joined = asyncio.get_running_loop(), _Joined()
    members = ZooKeeperMembers(ensemble, joined.on_event)
    try:
        await members.start([number % SERVERS for number in range(MEMBERS)])
        assert await members.until(members.is_one, REAL_FORMED_BY), f"there is no view of all: {members.views()}"
        await asyncio.to_thread(ensemble.cut_off, 0)
        await asyncio.sleep(cell["seconds"])
        joined.healed_at = clock.time()
        await asyncio.to_thread(ensemble.heal_all)
        healed = await members.until(lambda: joined.all and members.is_one(), HEALED_WITHIN)
        return {**cell, "times": [joined.times()] if healed else [], "never": int(not healed)}
    finally:
        await members.end()


def _key(row: Measured) -> str:
    cut_off = f", {row['cut off']}" if row["cut off"] else ""
    return f"{row['back end']}{cut_off}, {_length(row)}"


def _length(row: Measured) -> str:
    return f"cut for {row['seconds']:g} s"


def _slower(longest: dict[str, float], length: str) -> str:
    """The back end whose quickest kind of cut takes longer than the longest of the other; "" if one of them is not measured."""
    ours = [seconds for key, seconds in longest.items() if key == f"{MOSHE}, {length}"]
    real = [seconds for key, seconds in longest.items() if key.startswith(ZOOKEEPER) and key.endswith(length)]
    if not ours or not real:
        return ""
    return ZOOKEEPER if min(real) > max(ours) else MOSHE if max(real) < min(ours) else "neither"


EXPERIMENT = HealTimes()
