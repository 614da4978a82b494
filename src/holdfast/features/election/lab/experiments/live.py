"""election/L4: how long is a name without a leader, on the stack that ships?  Spec: election 8 (L4), 1 (A4, A7).

Gossip at T = 1 s under elections, with and without seats. The leader is killed, stopped for a while, resigns, and is on one side of a
partition that heals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta

from holdfast.features.election.lab.live import NAME, LiveGroup
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import shortened
from holdfast.lab.samples import quantile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARE = 0.95
HEALED = 10.0  # seconds after lists agree
KILLS, RESIGNS = 5, 5  # per run
PAUSE, SPLIT = 40.0, 60.0
LATEST = 120.0
STANDING = 16


class LiveParameters(Parameters, frozen=True, kw_only=True):
    """7, 64 and 512 members; loss 0, .02 and .1; without a majority and with seats."""

    seeds: Annotated[int, Meta(ge=1, le=1000)] = 3
    members: Annotated[tuple[Annotated[int, Meta(ge=5, le=2000)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (7, 64, 512)
    losses: Annotated[tuple[Annotated[float, Meta(ge=0, le=0.5)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (0.0, 0.02, 0.1)
    modes: Annotated[tuple[Literal["none", "seats"], ...], Meta(min_length=1, max_length=2)] = ("none", "seats")
    kills: Annotated[int, Meta(ge=1, le=1000)] = KILLS


class Live(Experiment[LiveParameters]):
    """One group per cell, through everything that can happen to its leader."""

    id = "election/L4"
    name = "election/live"
    title = "The next leader, on the stack that ships"
    source = "election 8, L4"
    criterion = (
        "failover <= longest suspicion + 4 TIMEOUT + init_spread, resign <= 2 TIMEOUT, each in 95 %; "
        "one leader within 10 s of lists that agree"
    )
    parameters = LiveParameters
    seconds_per_cell = 60
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1", "members": "[7]", "losses": "[0.0]", "kills": "2"}

    def cells(self, parameters: LiveParameters, seed: int) -> Sequence[Cell]:
        return [
            {"members": members, "loss": loss, "mode": mode, "kills": parameters.kills, "seed": seed * SEEDS_MAX + number}
            for members in parameters.members
            for loss in parameters.losses
            for mode in parameters.modes
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        members = cell["members"]
        group = LiveGroup(cell["seed"], members, voters=cell["mode"], loss=cell["loss"], candidates=min(STANDING, members - 3))
        first = group.settle(LATEST)
        found: dict[str, Any] = {"whole": first is not None, "kill": [], "detected": [], "resign": [], "pause": None, "heal": None}
        if first is None:
            return {**cell, **found}
        for _ in range(cell["kills"]):
            failover, detected = _kill(group)
            found["kill"].append(failover)
            found["detected"].append(detected)
        for _ in range(RESIGNS):
            found["resign"].append(_resign(group))
        found["pause"] = _pause(group)
        found["heal"] = _split(group)
        bound = group.profile.config.suspicion_max(members) + 4 * group.timeout + 2 * group.timeout
        return {**cell, **found, "timeout": round(group.timeout, 3), "bound": round(bound, 3)}

    def judge(self, parameters: LiveParameters, results: Sequence[Measured]) -> Finding:
        rows: list[dict[str, Any]] = []
        misses = []
        for members in parameters.members:
            for loss in parameters.losses:
                for mode in parameters.modes:
                    of = [row for row in results if (row["members"], row["loss"], row["mode"]) == (members, loss, mode)]
                    row, missed = _row(f"{members}, loss {loss:g}, {mode}", of)
                    rows.append(row)
                    misses += missed
        return Finding({"seconds": rows}, {}, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        rows = [row for row in finding.measured["seconds"] if "failover, median" in row]
        places = list(range(len(rows)))
        for key, marker in (("failover, median", "o"), ("failover, p95", "^"), ("detection, median", "."), ("resign, median", "s")):
            axes.plot(places, [row[key] for row in rows], marker=marker, linestyle="", label=key)
        axes.plot(places, [row["bound"] for row in rows], linestyle=":", color="#7b8794", label="bound of the failover")
        axes.set_xticks(places, [row["of"] for row in rows], rotation=70, fontsize=6)
        axes.set_ylabel("seconds")
        axes.legend(fontsize=7)


def _row(of: str, found: Sequence[Measured]) -> tuple[dict[str, Any], list[str]]:
    begun = [row for row in found if row["whole"]]
    misses = [f"{of}: no first leader in {len(found) - len(begun)} runs"] if len(begun) < len(found) else []
    if not begun:
        return {"of": of}, misses
    kills = [(LATEST if each is None else each, row["bound"]) for row in begun for each in row["kill"]]
    resigns = [(LATEST if each is None else each, 2 * row["timeout"]) for row in begun for each in row["resign"]]
    detected = [each for row in begun for each in row["detected"] if each is not None]
    for what, values in (("failover", kills), ("resign", resigns)):
        late = [value for value, bound in values if value > bound]
        if len(late) > (1 - SHARE) * len(values):
            misses.append(f"{of}: {what} beyond its bound in {len(late)} of {len(values)}, {max(late):.2f} s at most")
    ends: dict[str, list[float]] = {}
    for what in ("pause", "heal"):
        ends[what] = [LATEST if row[what] is None else row[what] for row in begun]
        late = [value for value in ends[what] if value > HEALED]
        misses += [f"{of}: {max(late):.2f} s from lists that agree to one leader after a {what}"] if late else []
    times = [value for value, _ in kills]
    return {
        "of": of,
        "failover, median": round(median(times), 2),
        "failover, p95": round(quantile(times, SHARE), 2),
        "detection, median": round(median(detected), 2) if detected else None,
        "resign, median": round(median(value for value, _ in resigns), 3),
        "resign, p95": round(quantile([value for value, _ in resigns], SHARE), 3),
        "one leader after a pause": round(max(ends["pause"]), 2),
        "one leader after a heal": round(max(ends["heal"]), 2),
        "bound": max(row["bound"] for row in begun),
        "TIMEOUT": max(row["timeout"] for row in begun),
    }, misses


def _kill(group: LiveGroup) -> tuple[float | None, float | None]:
    """A kill -9: until the next one leads, and until the first list has it as dead."""
    leader = group.settle(LATEST)
    if leader is None:
        return None, None
    group.run(3.0 + group.world.random.random())
    life, begin = group.host(leader).me, group.world.now
    group.decided.clear()
    group.crash(leader)
    failover = group.next_leader(LATEST)
    detected = next((at - begin for at, who in group.decided if who == life), None)
    group.settle(LATEST)
    group.restart(leader)
    group.run(10.0)
    return None if failover is None else round(failover, 3), None if detected is None else round(detected, 3)


def _resign(group: LiveGroup) -> float | None:
    leader = group.settle(LATEST)
    if leader is None:
        return None
    group.run(2.0 + group.world.random.random())
    group.world.step(group.host(leader), partial(group.elections(leader).resign, NAME))
    took = group.next_leader(LATEST)
    group.settle(LATEST)
    group.stand(leader)
    return None if took is None else round(took, 3)


def _pause(group: LiveGroup) -> float | None:
    """The leader is stopped for long, and goes on: from lists that agree to one leader."""
    leader = group.settle(LATEST)
    if leader is None:
        return None
    group.world.stop(leader)
    group.run(PAUSE)
    group.world.resume(leader)
    return _after_heal(group)


def _split(group: LiveGroup) -> float | None:
    """Two halves for a minute: each may have a leader."""
    names = group.alive
    group.world.network.partition("halves", (names[::2], names[1::2]))
    group.run(SPLIT)
    group.world.network.heal("halves")
    return _after_heal(group)


def _after_heal(group: LiveGroup) -> float | None:
    if not group.until(lambda: group.lists_agree, LATEST, 0.25):
        return None
    begin = group.world.now
    return round(group.world.now - begin, 3) if group.settle(LATEST) is not None else None


EXPERIMENT = Live()
