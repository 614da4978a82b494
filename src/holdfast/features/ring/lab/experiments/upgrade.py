"""ring/E9: three ways to change an arbitrator group; which are safe, and which cost healthy members?

Spec: ring 8 (E9), 5.3, 5.8, D14; paper 000, IV-B. Every reachable state of one pair, and rings in which the member that begins to change
its groups crashes at that very moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.events import Event
from holdfast.features.ring.lab.observer import Observed, names_of
from holdfast.features.ring.lab.upgrade_model import CASTING, SHAPES, VARIANTS, explored
from holdfast.features.ring.protocol.config import K_MAX, RingConfig
from holdfast.features.ring.protocol.facts import Departed, GroupProposed, Won
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.messages import ArbUpgrd, ArbUpgrdAck, Propose, Proposed
from holdfast.features.ring.protocol.rules import Rules
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.lab.host import LabHost
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JOINT, PROPOSAL, NAIVE = ORDER = ("joint", "proposal", "naive")
assert set(ORDER) == set(VARIANTS)
MODEL, CHURN = "model", "churn"
RUNS_PER_CELL = 10
WARM_UP, AFTERWARDS = 2.0, 12.0  # in T_l, which is 1 s
RIGHT_AFTER = 0.008  # seconds in which the proposer crashes: two round trips, so that some have heard of it and some have not
UPGRADE_MESSAGES = (Propose, Proposed, ArbUpgrd, ArbUpgrdAck)


class UpgradeParameters(Parameters, frozen=True, kw_only=True):
    """Every ring in which a proposer crashes is a repetition."""

    runs: Annotated[int, Meta(ge=1, le=1_000_000)] = 100  # per variant
    members: Annotated[int, Meta(ge=8, le=200)] = 64
    k: Annotated[int, Meta(ge=2, le=K_MAX)] = 3
    crashes: Annotated[int, Meta(ge=0, le=2)] = 1  # in the model


class Upgrade(Experiment[UpgradeParameters]):
    """Joint quorum, the paper's proposal, and switching without asking."""

    id = "ring/E9"
    name = "ring/upgrade"
    title = "Changing an arbitrator group: joint, proposed, naive"
    source = "ring 8, E9, D14; paper 000, IV-B"
    criterion = (
        "joint: both ends win in no state and no run, no healthy side is stranded, nobody healthy departs, I1 to I14 hold; "
        "naive: both win in some states; proposal: both win nowhere, healthy members depart"
    )
    parameters = UpgradeParameters
    seconds_per_cell = 1.4
    repetitions = "runs"
    quick: ClassVar[Mapping[str, str]] = {"runs": "4", "members": "24", "crashes": "0"}

    def cells(self, parameters: UpgradeParameters, seed: int) -> Sequence[Cell]:
        model = [
            {"part": MODEL, "variant": variant, "groups": list(groups), "crashes": parameters.crashes, "seed": seed}
            for variant in ORDER
            for groups in (*SHAPES, *CASTING)
        ]
        churn = [
            {
                "part": CHURN,
                "variant": variant,
                "members": parameters.members,
                "k": parameters.k,
            }
            for variant in ORDER
        ]
        return [*model, *(cell for kind in churn for cell in in_batches(kind, parameters.runs, RUNS_PER_CELL, seed * SEEDS_MAX))]

    def measure(self, cell: Cell) -> Measured:
        return checked(_explore if cell["part"] == MODEL else _play, cell)

    def judge(self, parameters: UpgradeParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        model = {variant: [row for row in rows if (row["part"], row["variant"]) == (MODEL, variant)] for variant in ORDER}
        churn = {variant: _summed([row for row in rows if (row["part"], row["variant"]) == (CHURN, variant)]) for variant in ORDER}
        stranded = {variant: {_shape(row): _share(row) for row in model[variant]} for variant in ORDER}
        both_win = {variant: sum(row["both_win"] for row in model[variant]) for variant in ORDER}
        measured: dict[str, Any] = {
            "states in which both win": both_win,
            "shapes with such a state": {variant: sum(row["both_win"] > 0 for row in model[variant]) for variant in ORDER},
            "share of states in which a crash strands the healthy side": stranded,
            "states": {variant: sum(row["states"] for row in model[variant]) for variant in ORDER},
            "churn: both won": {variant: churn[variant]["both_win"] for variant in ORDER},
            "churn: healthy members that departed": {variant: churn[variant]["departed"] for variant in ORDER},
            "churn: runs": {variant: churn[variant]["runs"] for variant in ORDER},
            "churn: messages about groups per crash": {variant: churn[variant]["messages_per_crash"] for variant in ORDER},
            "violations": len(violations(results)),
        }
        expected = {
            "states in which both win": {JOINT: 0, PROPOSAL: 0, NAIVE: "> 0"},
            "churn: both won": {JOINT: 0, PROPOSAL: 0},
            "churn: healthy members that departed": {JOINT: 0, PROPOSAL: "> 0"},
            "violations": 0,
        }
        incomplete = [_shape(row) for row in rows if row["part"] == MODEL and not row["complete"]]
        misses = [*violations(results), *(f"{shape}: not all states were visited" for shape in incomplete), *_misses(measured)]
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        stranded = finding.measured["share of states in which a crash strands the healthy side"]
        for number, variant in enumerate(ORDER):
            shares = stranded[variant]
            left.bar([i + 0.27 * number for i in range(len(shares))], [100 * share for share in shares.values()], 0.27, label=variant)
        left.set_xticks([i + 0.27 for i in range(len(stranded[JOINT]))], list(stranded[JOINT]), rotation=60, fontsize=7)
        left.set_ylabel("% of the states in which a crash of P now strands Q")
        left.set_xlabel("group before and after")
        left.legend()
        what = {
            "both ends win\n(states of the model)": "states in which both win",
            "healthy departures\n(churn)": "churn: healthy members that departed",
            "both ends won\n(churn)": "churn: both won",
        }
        for number, variant in enumerate(ORDER):
            values = [finding.measured[key][variant] for key in what.values()]
            bars = right.bar([i + 0.27 * number for i in range(len(what))], [value + 0.1 for value in values], 0.27, label=variant)
            right.bar_label(bars, [str(value) for value in values], fontsize=7)
        right.set_yscale("log")
        right.set_xticks([i + 0.27 for i in range(len(what))], list(what), fontsize=7)
        right.set_ylabel("count")


def _explore(cell: Cell) -> Measured:
    found = explored(cell["variant"], tuple(cell["groups"]), crashes=cell["crashes"])
    return {
        "part": MODEL,
        "variant": cell["variant"],
        "groups": cell["groups"],
        "states": found.states,
        "both_win": found.both_win,
        "before": found.before,
        "stranded": found.stranded,
        "complete": found.complete,
    }


class Ambush:
    """The first member that proposes another group crashes right after. Counts who wins and who has to leave."""

    def __init__(self, rings: Observed) -> None:
        self.rings = rings
        self.killed: set[str] = set()
        self.departed = self.both_win = 0
        self._winners: dict[tuple[RingId, RingId, int], RingId] = {}
        self._sprung = False
        rings.world.listeners.append(self._on_event)

    def kill(self, name: str) -> None:
        self.killed.add(name)
        self.rings.world.crash(name)

    def _on_event(self, host: LabHost, event: Event) -> None:
        name, world = host.me.name, self.rings.world
        if isinstance(event, GroupProposed) and self.killed and not self._sprung:
            self._sprung = True
            world.at(world.now + world.random.uniform(0.0, RIGHT_AFTER), partial(self.kill, name))
        elif isinstance(event, Departed) and event.was_member:
            self.departed += 1
        elif isinstance(event, Won):
            me = self.rings.members[name].id
            low, high = sorted((me, event.peer))
            self.both_win += self._winners.setdefault((low, high, event.epoch), me) != me


def _play(cell: Cell) -> Measured:
    names = names_of(cell["members"])
    counts: Counter[str] = Counter()
    for seed in range(cell["seed"], cell["seed"] + cell["runs"]):
        # The other two break invariants (I4, and I1 with it) by what they are: the run shall go on and show what follows.
        looking_on = None if cell["variant"] == JOINT else ()
        rings = Observed(seed, names, RingConfig(k=cell["k"]), rules=Rules(upgrade=cell["variant"]), checkers=looking_on)
        rings.form(names)
        world = rings.world
        world.run(WARM_UP + world.random.random())
        ambush = Ambush(rings)
        ambush.kill(world.random.choice(names))
        world.run(world.now + AFTERWARDS)
        sent = sum(endpoint.sent[kind] for endpoint in world.network.endpoints.values() for kind in UPGRADE_MESSAGES)
        counts.update(runs=1, both_win=ambush.both_win, departed=ambush.departed, crashes=len(ambush.killed), messages=sent)
    return {"part": CHURN, "variant": cell["variant"], **counts}


def _summed(rows: Sequence[Measured]) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update({what: row[what] for what in ("runs", "both_win", "departed", "crashes", "messages")})
    return {
        "runs": counts["runs"],
        "both_win": counts["both_win"],
        "departed": counts["departed"],
        "messages_per_crash": round(counts["messages"] / max(1, counts["crashes"]), 1),
    }


def _misses(measured: Mapping[str, Any]) -> list[str]:
    both, won = measured["states in which both win"], measured["churn: both won"]
    departed = measured["churn: healthy members that departed"]
    stranded = measured["share of states in which a crash strands the healthy side"]
    notes = [
        f"{variant}: both ends win in {both[variant]} states of the model and won in {won[variant]} runs; none is allowed"
        for variant in (JOINT, PROPOSAL)
        if both[variant] or won[variant]
    ]
    if any(stranded[JOINT].values()) or departed[JOINT]:
        notes.append(f"joint: {departed[JOINT]} healthy members departed; none is allowed, in the model neither")
    if not both[NAIVE]:
        notes.append("naive: both ends win in no state, so the model cannot see what it is there for")
    if not departed[PROPOSAL]:
        notes.append("proposal: nobody healthy departed, which was expected")
    if not all(measured["churn: runs"].values()):
        notes.append("a variant was not run at all")
    return notes


def _shape(row: Measured) -> str:
    return " to ".join(row["groups"])


def _share(row: Measured) -> float:
    return round(float(row["stranded"]) / float(row["before"]), 4)


EXPERIMENT = Upgrade()
