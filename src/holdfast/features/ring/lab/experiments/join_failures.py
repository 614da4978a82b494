"""ring/E8: a process crashes while another joins, in every phase; are all lists right in the end, and no key ever had two owners?

Spec: ring 8 (E8), D8, D9, I8 to I12; paper 000, section V, Theorems 6 to 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.events import Event
from holdfast.features.ring.lab.checkers.time import PACED_SLACK
from holdfast.features.ring.lab.observer import Observed, names_of
from holdfast.features.ring.protocol.config import K_MAX, RingConfig
from holdfast.features.ring.protocol.facts import BecameMember, JoinStarted, PhaseReached
from holdfast.features.ring.protocol.ids import CIRCLE, RingId, nearest, position_of
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PHASES = ("discover", "lock", "open", "ready", "member")  # the last: right after the candidate became one
NOBODY, CANDIDATE, NEIGHBOUR, TWO = VICTIMS = ("nobody", "candidate", "neighbour", "two neighbours")
FAST, PACED = PACES = ("fast", "paced")
CROWD = 3  # candidates at once, at most
SEEDS = 3  # members that candidates know
PHASE_SECONDS = {FAST: 0.004, PACED: 1.0}  # a phase takes about so long; T_l is 1 s
WARM_UP = 3.0  # in T_l
DOWN = 5.0  # in T_l: then a candidate that crashed comes back
FIRST_LOOK, NEXT_LOOK, LAST_LOOK = 8.0, 2.0, 170.0  # in T_l: I9
JOIN_BOUND = 3.0  # in T_l: Th. 8


class JoinFailuresParameters(Parameters, frozen=True, kw_only=True):
    """Runs per phase, victim and pace."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 30
    members: Annotated[int, Meta(ge=4, le=200)] = 16
    k: Annotated[int, Meta(ge=1, le=K_MAX)] = 3


class JoinFailures(Experiment[JoinFailuresParameters]):
    """One to three candidates join a ring; in a given phase of the first, it or its future neighbours die."""

    id = "ring/E8"
    name = "ring/join-failures"
    title = "Joins under crashes: one owner, known neighbours, equal lists"
    source = "paper 000, Theorems 6 to 8; ring 8, E8"
    criterion = (
        "I1 to I14 hold at every step, I9 within 170 T_l of the crash; undisturbed, a candidate is a member 3 T_l after its first phase "
        f"(paced: and {PACED_SLACK} T_l for the last messages)"
    )
    parameters = JoinFailuresParameters
    seconds_per_cell = 2.7
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1", "members": "8"}

    def cells(self, parameters: JoinFailuresParameters, seed: int) -> Sequence[Cell]:
        setting = {"members": parameters.members, "k": parameters.k, "seeds": parameters.seeds}
        kinds = [(pace, phase, victim) for pace in PACES for victim in VICTIMS for phase in (PHASES if victim != NOBODY else PHASES[:1])]
        return [
            {"pace": pace, "phase": phase, "victim": victim, "seed": seed * SEEDS_MAX + number * 10_000, **setting}
            for number, (pace, phase, victim) in enumerate(kinds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: JoinFailuresParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        runs = [run for row in rows for run in row["runs"]]
        calm = {
            pace: [r["took"] for row in rows if (row["pace"], row["victim"]) == (pace, NOBODY) for r in row["runs"] if r["alone"]]
            for pace in PACES
        }
        misses = violations(results)
        misses += [
            f"{row['pace']}, {row['phase']}, {row['victim']}: {run['unsettled']}" for row in rows for run in row["runs"] if run["unsettled"]
        ]
        for pace, took in calm.items():
            bound = JOIN_BOUND + (PACED_SLACK if pace == PACED else 0.0)
            if not took or max(took) > bound:
                misses.append(
                    f"{pace}: the slowest undisturbed join took {max(took, default=inf):.4f} T_l after its first phase, {bound} are allowed"
                )
        measured: dict[str, Any] = {
            "longest undisturbed join after phase 1": {pace: max(took, default=0.0) for pace, took in calm.items()},
            "runs": len(runs),
            "runs that did not settle": sum(bool(run["unsettled"]) for run in runs),
            "longest time to settle": max((run["settled_at"] for run in runs), default=0.0),
            "violations": len(violations(results)),
            "mean attempts": _means(rows, "attempts"),
            "undisturbed joins": [{"pace": pace, "took": took} for pace, took in calm.items()],
        }
        expected = {
            "longest undisturbed join after phase 1": dict.fromkeys(PACES, JOIN_BOUND),
            "runs that did not settle": 0,
            "longest time to settle": LAST_LOOK,
            "violations": 0,
        }
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2)
        for row in finding.measured["undisturbed joins"]:
            took = sorted(row["took"])
            left.step(took, [(i + 1) / len(took) for i in range(len(took))], where="post", label=row["pace"])
        left.axvline(JOIN_BOUND, color="#b42318", linestyle="--", label="Th. 8")
        left.set_title("undisturbed joins")
        left.set_xscale("log")
        left.set_xlabel("T_l from phase 1 to membership")
        left.set_ylabel("share of joins")
        left.legend(loc="center")
        attempts = finding.measured["mean attempts"]
        width = 0.8 / len(VICTIMS[1:])
        for number, victim in enumerate(VICTIMS[1:]):
            heights = [attempts.get(f"{FAST}, {phase}, {victim}", 0.0) for phase in PHASES]
            right.bar([i + number * width for i in range(len(PHASES))], heights, width, label=victim)
        right.set_xticks([i + 0.8 / 3 for i in range(len(PHASES))], PHASES)
        right.axhline(attempts.get(f"{FAST}, {PHASES[0]}, {NOBODY}", 0.0), color="#7b8794", linestyle="--", label="nobody crashes")
        right.set_title("somebody crashes, fast joins")
        right.set_xlabel("in this phase of the first candidate")
        right.set_ylabel("its attempts until it is a member, mean")
        right.legend(fontsize=8)


class Trap:
    """Strikes in a phase of the first candidate's first attempt, and follows its attempts."""

    def __init__(self, rings: Observed, cell: Cell) -> None:
        self.rings, self.cell = rings, cell
        self.attempts = 0
        self.sprung_at = inf
        self.located_at = inf  # end of its first phase
        self.member_at = inf
        rings.world.listeners.append(self._on_event)

    def _on_event(self, host: LabHost, event: Event) -> None:
        if host.me.name != "c0":
            return
        world = self.rings.world
        if isinstance(event, JoinStarted):
            self.attempts += 1
            self._reached("discover", event.id)
        elif isinstance(event, PhaseReached):
            if event.phase == "lock":
                self.located_at = world.now
            self._reached(event.phase, event.id)
        elif isinstance(event, BecameMember):
            self.member_at = min(self.member_at, world.now)
            self._reached("member", event.id)

    def _reached(self, phase: str, candidate: RingId) -> None:
        if phase != self.cell["phase"] or self.sprung_at != inf:
            return
        world = self.rings.world
        self.sprung_at = world.now + world.random.uniform(0.0, PHASE_SECONDS[self.cell["pace"]])
        world.at(self.sprung_at, partial(self._strike, candidate))

    def _strike(self, candidate: RingId) -> None:
        world, victim = self.rings.world, self.cell["victim"]
        if victim == CANDIDATE:
            world.crash("c0")
            world.revive_after(DOWN, "c0")
        elif victim != NOBODY:
            names = {ring.id: name for name, ring in self.rings.members.items() if ring.valid and name != "c0"}
            around = nearest(sorted(names), candidate, self.cell["k"])
            for each in world.random.sample(around, min(len(around), 2 if victim == TWO else 1)):
                world.crash(names[each])
                world.bury(names[each])


def _play(cell: Cell) -> Measured:
    runs = [_join(cell, number) for number in range(cell["seeds"])]
    return {"pace": cell["pace"], "phase": cell["phase"], "victim": cell["victim"], "runs": runs}


def _join(cell: Cell, number: int) -> dict[str, Any]:
    seed = cell["seed"] + number
    names = names_of(cell["members"])
    crowd = [f"c{i}" for i in range(1 + number % CROWD)]
    config = RingConfig(k=cell["k"], join_pace=cell["pace"] == PACED)
    places = {name: position_of(f"{seed}/{name}") for name in crowd}
    if number % 2:  # The others want to sit right beside the first: all need the same locks.
        places = {name: (places["c0"] + i) % CIRCLE for i, name in enumerate(crowd)}
    rings = Observed(seed, [*names, *crowd], config, seeds=names[:SEEDS], positions=places)
    trap = Trap(rings, cell)
    rings.form(names)
    world = rings.world
    world.run(WARM_UP)
    for name in crowd:
        rings.start(name)
    unsettled, waited = "not asked", FIRST_LOOK
    while unsettled and waited <= LAST_LOOK:
        world.run(WARM_UP + waited)
        unsettled = rings.unsettled() if trap.sprung_at < world.now - DOWN - 1.0 or cell["victim"] == NOBODY else "nothing has happened yet"
        waited += NEXT_LOOK
    return {
        "seed": seed,
        "alone": len(crowd) == 1,
        "attempts": trap.attempts,
        "took": round(trap.member_at - trap.located_at, 6) if trap.member_at < inf else -1.0,
        "settled_at": world.now - WARM_UP,
        "unsettled": unsettled,
    }


def _means(rows: Sequence[Measured], what: str) -> dict[str, float]:
    return {
        f"{row['pace']}, {row['phase']}, {row['victim']}": round(sum(run[what] for run in row["runs"]) / len(row["runs"]), 3)
        for row in rows
    }


EXPERIMENT = JoinFailures()
