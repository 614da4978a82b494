"""views/H2: a server is killed: do its clients keep their leases, and how soon is there one full view again?

Spec: views 5.6, 8 (H2), D28. A client tries the next server after three heartbeats of silence, half a lease before its lease ends. With D28
taken out it tries the next server when its lease ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.events import Event, ViewLost
from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.lab.measures import Reached, form
from holdfast.features.views.lab.mutations import late_fail_over
from holdfast.features.views.lab.users import Habits
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.lab.host import LabHost
from holdfast.lab.measured import checked, completed, shortened, violations
from holdfast.lab.samples import curves, draw_curves, quantile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITH, WITHOUT = "D28", "without D28"
LOST_SHARE = 0.02  # of the clients of the killed server
WHOLE_BY = 1.5  # seconds, 99th percentile
PROTOTYPE = {WITH: (0.0, 1.25), WITHOUT: (1.0, 1.76)}  # share that lost their lease, and the longest time until all were in one view
FORMED_BY, LATEST = 5.0, 10.0
BATCH = 20  # runs per cell


class ServerKilledParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, H2."""

    runs: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 200  # kills
    runs_without: Annotated[int, Meta(ge=0, le=SEEDS_MAX)] = 40  # of them with the rule taken out
    servers: Annotated[int, Meta(ge=2, le=7)] = 3
    clients: Annotated[int, Meta(ge=2, le=100)] = 12


class ServerKilled(Experiment[ServerKilledParameters]):
    """A random one that has clients."""

    id = "views/H2"
    name = "views/server-killed"
    title = "Clients of a killed server keep their leases"
    source = "views 8, H2, D28 (not in the paper)"
    criterion = (
        "CB1 to CB9 hold; at most 2 % of the clients of the killed server lose their lease; one view of all again within 1.5 s (p99)"
    )
    parameters = ServerKilledParameters
    repetitions = "runs"
    seconds_per_cell = 0.65
    quick: ClassVar[Mapping[str, str]] = {"runs": "4", "runs_without": "2"}

    def cells(self, parameters: ServerKilledParameters, seed: int) -> Sequence[Cell]:
        setting = {"servers": parameters.servers, "clients": parameters.clients}
        return [
            cell
            for rules, runs in ((WITH, parameters.runs), (WITHOUT, parameters.runs_without))
            for cell in in_batches({"rules": rules, **setting}, runs, BATCH, seed * SEEDS_MAX)
        ]

    def measure(self, cell: Cell) -> Measured:
        with ExitStack() as stack:
            if cell["rules"] == WITHOUT:
                late_fail_over(stack)
            return checked(_play, cell)

    def judge(self, parameters: ServerKilledParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        of = {rules: [row for row in rows if row["rules"] == rules] for rules in (WITH, WITHOUT)}
        of = {rules: found for rules, found in of.items() if found}
        taken = {rules: [seconds for row in of[rules] for seconds in row["seconds"]] for rules in of}
        clients = {rules: sum(row["clients of it"] for row in of[rules]) for rules in of}
        lost = {rules: sum(row["lost"] for row in of[rules]) for rules in of}
        measured: dict[str, Any] = {
            "kills": {rules: sum(row["runs"] for row in of[rules]) for rules in of},
            "clients of the killed servers": clients,
            "of them without a lease for a while": lost,
            "share": {rules: round(lost[rules] / max(1, clients[rules]), 4) for rules in of},
            "other clients without a lease": {rules: sum(row["others"] for row in of[rules]) for rules in of},
            "one view again, p50": {rules: round(quantile(taken[rules], 0.5), 3) for rules in of if taken[rules]},
            "one view again, p99": {rules: round(quantile(taken[rules], 0.99), 3) for rules in of if taken[rules]},
            "one view again, longest": {rules: max(taken[rules]) for rules in of if taken[rules]},
            f"not within {LATEST:g} s": {rules: sum(row["never"] for row in of[rules]) for rules in of},
            "curves": curves(taken),
        }
        expected = {
            "share": {WITH: LOST_SHARE, WITHOUT: PROTOTYPE[WITHOUT][0]},
            "one view again, p99": {WITH: WHOLE_BY},
            "one view again, longest": {rules: PROTOTYPE[rules][1] for rules in of},
            f"not within {LATEST:g} s": {WITH: 0},
        }
        misses = [*violations(results), *_misses(measured)]
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        shares = finding.measured["share"]
        for each in finding.measured["curves"]:
            told = f"{each['of']}: {100 * shares[each['of']]:.1f} % of its clients lose their lease"
            draw_curves(axes, [{**each, "of": told}])
        axes.axvline(WHOLE_BY, color="#7b8794", linestyle="--", linewidth=1, label="accepted, p99")
        axes.set_xlabel("seconds from the kill to one view of all clients")
        axes.set_xlim(left=0)
        axes.legend(loc="upper left")


def _play(cell: Cell) -> Measured:
    found: dict[str, Any] = {**cell, "seconds": [], "clients of it": 0, "lost": 0, "others": 0, "never": 0}
    for seed in range(cell["seed"], cell["seed"] + cell["runs"]):
        group = ViewGroup(seed, cell["servers"], cell["clients"], habits=Habits(says=0.0))
        form(group, FORMED_BY)
        group.run(group.config.settle + group.world.random.random() * group.config.heartbeat)
        homes = {name: group.node(name).survey().server for name in group.clients}
        victim = group.world.random.choice(sorted({home.name for home in homes.values() if home is not None}))
        lost = _lost_from_now(group)
        reached = Reached(group, group.clients, without=[victim])
        killed_at = group.world.now
        group.crash(victim)
        group.until(lambda reached=reached: reached.at is not None, LATEST)  # type: ignore[misc]
        own = {name for name, home in homes.items() if home is not None and home.name == victim}
        found["clients of it"] += len(own)
        found["lost"] += len(lost & own)
        found["others"] += len(lost - own)
        if reached.at is None:
            found["never"] += 1
        else:
            found["seconds"].append(round(reached.at - killed_at, 3))
    return found


def _lost_from_now(group: ViewGroup) -> set[str]:
    """Clients that lose their lease."""
    lost: set[str] = set()

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, ViewLost):
            lost.add(host.me.name)

    group.world.listeners.append(on_event)
    return lost


def _misses(measured: Mapping[str, Any]) -> list[str]:
    notes = []
    share, seconds = measured["share"].get(WITH), measured["one view again, p99"].get(WITH)
    if share is None or share > LOST_SHARE:
        notes.append(f"{share} of the clients of a killed server lost their lease, accepted is {LOST_SHARE:g}")
    if seconds is None or seconds > WHOLE_BY:
        notes.append(f"one view again after {seconds} s (p99), accepted is {WHOLE_BY:g} s")
    never = measured[f"not within {LATEST:g} s"].get(WITH, 0)
    if never:
        notes.append(f"{never} times no view of all within {LATEST:g} s")
    return notes


EXPERIMENT = ServerKilled()
