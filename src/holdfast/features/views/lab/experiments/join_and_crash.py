"""views/M2: how long until a join, and a crash, are in the view of every member?

Spec: views 5.4, 5.5, 8 (M2), D11, D15. Three servers, nine clients, the numbers of the presets. The paper gives no times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.lab.measures import HEARTBEATS, LAN, NETWORKS, WAN, Reached, form
from holdfast.features.views.lab.users import Habits
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import checked, completed, shortened, violations
from holdfast.lab.samples import curves, draw_curves, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERVERS, CLIENTS = 3, 9
JOIN, CRASH = "join", "crash"
LINKS: Mapping[str, Link] = {LAN: NETWORKS[LAN], WAN: Link(Uniform(0.04, 0.06))}
ROUND_TRIPS, BESIDES = 4, 0.01  # a greeting, a stamp and back, a link state, proposals, the view: beside them 10 ms
CRASH_MIN, CRASH_MAX = 1.5, 2.0  # at ``lan`` numbers, as the specification has it
PROTOTYPE = {f"{LAN}, {JOIN}": 0.011, f"{WAN}, {JOIN}": 0.317}
FORMED_BY, LATEST = 60.0, 60.0
BATCH = 20  # runs per cell


class JoinAndCrashParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, M2."""

    runs: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 200  # joins and crashes in each network


class JoinAndCrash(Experiment[JoinAndCrashParameters]):
    """One more client starts; when all have a view with it, one of them is killed."""

    id = "views/M2"
    name = "views/join-and-crash"
    title = "From a join, and from a crash, to the view of every member"
    source = "views 8, M2 (the paper gives no times)"
    criterion = "CB1 to CB9 hold; every join within 4 of the longest round trips and 10 ms; crash: 1.5 to 2.0 s on a LAN, always"
    parameters = JoinAndCrashParameters
    repetitions = "runs"
    seconds_per_cell = 0.7
    quick: ClassVar[Mapping[str, str]] = {"runs": "3"}

    def cells(self, parameters: JoinAndCrashParameters, seed: int) -> Sequence[Cell]:
        return [cell for network in LINKS for cell in in_batches({"network": network}, parameters.runs, BATCH, seed * SEEDS_MAX)]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: JoinAndCrashParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        taken = {
            f"{network}, {what}": [seconds for row in rows if row["network"] == network for seconds in row[what]]
            for network in LINKS
            for what in (JOIN, CRASH)
        }
        taken = {key: seconds for key, seconds in taken.items() if seconds}
        limits = {f"{network}, {JOIN}": join_limit(network) for network in LINKS}
        never = sum(row["never"] for row in rows)
        measured: dict[str, Any] = {
            "seconds, p50": {key: summary(seconds)["p50"] for key, seconds in taken.items()},
            "seconds, least": {key: min(seconds) for key, seconds in taken.items()},
            "seconds, p99": {key: summary(seconds)["p99"] for key, seconds in taken.items()},
            "seconds, most": {key: max(seconds) for key, seconds in taken.items()},
            "runs": {key: len(seconds) for key, seconds in taken.items()},
            f"not within {LATEST:g} s": never,
            "curves": curves(taken),
        }
        expected = {
            "seconds, p50": {key: PROTOTYPE[key] for key in taken if key in PROTOTYPE},
            "seconds, most": {**{key: round(most, 6) for key, most in limits.items()}, f"{LAN}, {CRASH}": CRASH_MAX},
            "seconds, least": {f"{LAN}, {CRASH}": CRASH_MIN},
            f"not within {LATEST:g} s": 0,
        }
        misses = violations(results)
        for key, most in limits.items():
            longest = measured["seconds, most"].get(key)
            if longest is None or longest >= most:
                misses.append(f"{key}: {longest} s, accepted is less than {most:.4g} s")
        crashes = taken.get(f"{LAN}, {CRASH}", [])
        if not crashes or not CRASH_MIN <= min(crashes) <= max(crashes) <= CRASH_MAX:
            told = f"{min(crashes):.3f} to {max(crashes):.3f}" if crashes else "no"
            misses.append(f"{LAN}, {CRASH}: {told} s, accepted are {CRASH_MIN:g} to {CRASH_MAX:g}")
        if never:
            misses.append(f"{never} joins or crashes were not in every view within {LATEST:g} s")
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        for axes, what in zip(figure.subplots(1, 2), (JOIN, CRASH), strict=True):
            draw_curves(axes, [each for each in finding.measured["curves"] if each["of"].endswith(what)])
            axes.set_xscale("log")
            axes.set_xlabel(f"seconds from a {what} to the view of every member")
            axes.legend(loc="lower right")


def join_limit(network: str) -> float:
    delay = LINKS[network].delay
    assert isinstance(delay, Uniform)
    return ROUND_TRIPS * 2 * delay.high + BESIDES


def _play(cell: Cell) -> Measured:
    found: dict[str, Any] = {**cell, JOIN: [], CRASH: [], "never": 0}
    for seed in range(cell["seed"], cell["seed"] + cell["runs"]):
        config = ViewsConfig(heartbeat=HEARTBEATS[cell["network"]])
        group = ViewGroup(seed, SERVERS, CLIENTS, config=config, link=LINKS[cell["network"]], habits=Habits(says=0.0))
        form(group, FORMED_BY)
        group.run((8 + group.world.random.random()) * config.heartbeat)
        newcomer, victim = f"c{CLIENTS}", group.world.random.choice(group.clients)
        joined = Reached(group, [*group.clients, newcomer])
        group.clients.append(newcomer)
        begun_at = group.world.now
        group.start(newcomer)
        _note(found, JOIN, group, joined, begun_at)
        group.run((8 + group.world.random.random()) * config.heartbeat)
        gone = Reached(group, sorted(set(group.clients) - {victim}))
        begun_at = group.world.now
        group.crash(victim)
        _note(found, CRASH, group, gone, begun_at)
    return found


def _note(found: dict[str, Any], what: str, group: ViewGroup, reached: Reached, begun_at: float) -> None:
    group.until(lambda: reached.at is not None, LATEST)
    if reached.at is None:
        found["never"] += 1
    else:
        found[what].append(round(reached.at - begun_at, 6))


EXPERIMENT = JoinAndCrash()
