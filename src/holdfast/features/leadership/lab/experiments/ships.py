"""detection/E20: what ships: how soon the next one leads with seats, and how often a leader that lives steps down.

Spec: fast-detection D17b, D26, G2, G5, I7; docs/leadership.md; docs/decisions.md H84, H86, H132, H136. E9, E14 and E17 measure the election
over agreed views (``election.LeaderElection``); users get ``leadership.Leadership``, whose voters are the seats. Here it runs with the
settings of the preset ``lan``, and is judged by what its page promises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta

from holdfast.features.leadership.lab.groups import FOUNDED_AFTER, INTERVAL, LENGTH, NUMBERS, ROUND_TRIP, SEATS, Found, LeadGroup
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.rates import rate_interval, wilson_interval
from holdfast.lab.samples import HIGH, LOW, MEAN, by_column, curves, draw_curves, errors, mean_interval, summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CRASH, NEXT_DEAD, RESIGN = "crash", "crash, next candidate dead", "resign"
FEW, AGENTS = 3, 7
WAYS = ((CRASH, AGENTS), (CRASH, FEW), (NEXT_DEAD, AGENTS), (RESIGN, AGENTS))
PARTS = 4  # groups per way and loss
REST = FOUNDED_AFTER + 4.0  # seconds between a restart and the next end: the seat is back, arrival times are known again
TRAINED = 12.0  # seconds: arrival times are known (8 heartbeats), the loss of links is not (40)
LONG_TRAINED = 120.0  # seconds: it is
PATIENCE = 60.0

# What docs/leadership.md says of ``lan``. "After the death of a host, at most about": L and a round trip of those counted with (D26).
PROMISED = LENGTH + NUMBERS.t_rtt
PROMISED_MEAN = 1.3  # "on average, by calculation"
PROMISED_NEXT_DEAD = PROMISED + NUMBERS.delta_c + NUMBERS.t_rtt  # H84: a dead candidate costs Delta_c and a question
PROMISED_RESIGN = 2 * ROUND_TRIP  # "after about a round trip", of the links as they are: START is half of one, the seats' answer a whole
LIMITS = {CRASH: PROMISED, NEXT_DEAD: PROMISED_NEXT_DEAD}
FOUND_HEARTBEATS = {FEW: 3, AGENTS: 1}  # H84: three agents whose links are not measured; the page: about one heartbeat
NOISE, RATE_LIMIT, PER = 0.1, 1.0, 1000  # D26, as in E14: at 10 % loss fewer than 1 step-down per 1000 heartbeats

RATE = "step-downs per 1000 heartbeats"
LATE, LATE_LOW, LATE_HIGH = "share beyond the promise", "share, 95 % from", "share, 95 % to"
GAP, GAP_LOW, GAP_HIGH, GAP_LEAST = "gap mean", "gap, 95 % from", "gap, 95 % to", "least gap"
TRIPS = "p50 in round trips"
MISSED, MISSED_MOST = "heartbeats missed", "most heartbeats missed"
Losses = Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.3)], ...], Meta(min_length=1, max_length=LIST_MAX)]


class ShipsParameters(Parameters, frozen=True, kw_only=True):
    """Ends of a leadership per way and loss, and heartbeats of a leader that is not disturbed, per noisy cell."""

    seeds: Annotated[int, Meta(ge=8, le=SEEDS_MAX)] = 400
    losses: Losses = (0.0, 0.01, 0.1)
    noise: Losses = (0.1, 0.2)  # loss under which step-downs are counted
    renewals: Annotated[tuple[Literal[1, 2], ...], Meta(min_length=1, max_length=2)] = (1, 2)  # of a term, per heartbeat
    heartbeats: Annotated[int, Meta(ge=100, le=10_000_000)] = 10_000


class Ships(Experiment[ShipsParameters]):
    """Three seats of seven agents (and of three), heartbeat 1 s, 1 to 10 ms on the road. The member list never helps."""

    id = "detection/E20"
    name = "detection/what-ships"
    title = "What ships: takeover, hand-over and step-downs with seats"
    source = "docs/leadership.md; fast-detection D17b, D26, G2, G5; docs/decisions.md H84, H86, H132, H136 (the paper has no seats)"
    criterion = (
        "at every loss: no term before the old deadline; after a crash at most 1.6 s and 1.3 s on average, 2.1 s if the next candidate is "
        "dead; median after resign at most 2 round trips; p = 0.1: step-downs below 1 per 1000 heartbeats; p = 0: found dead after 1 "
        "missed heartbeat of 7 agents, 3 of 3"
    )
    parameters = ShipsParameters
    seconds_per_cell = 1.3
    quick: ClassVar[Mapping[str, str]] = {"seeds": "8", "losses": "[0.0]", "noise": "[0.1]", "renewals": "[2]", "heartbeats": "3900"}

    def cells(self, parameters: ShipsParameters, seed: int) -> Sequence[Cell]:
        ends = -(-parameters.seeds // PARTS)
        found: list[Cell] = [
            {"kind": "end", "way": way, "n": n, "p": p, "ends": ends, "seed": seed * 1000 + part}
            for (way, n), p, part in product(WAYS, parameters.losses, range(PARTS))
        ]
        found += [
            {"kind": "death", "n": n, "measured": measured, "p": p, "ends": parameters.seeds, "seed": seed * 1000}
            for n, measured, p in product(FOUND_HEARTBEATS, (False, True), parameters.losses)
        ]
        found += [
            {"kind": "noise", "p": p, "renewals": renewals, "heartbeats": parameters.heartbeats, "seed": seed * 1000 + number}
            for number, (p, renewals) in enumerate(product(parameters.noise, parameters.renewals))
        ]
        return found

    def measure(self, cell: Cell) -> Measured:
        measures = {"end": _measure_ends, "death": _measure_deaths, "noise": _measure_noise}
        return {**cell, **measures[cell["kind"]](cell)}

    def judge(self, parameters: ShipsParameters, results: Sequence[Measured]) -> Finding:
        ends, deaths, noise = (_gathered(results, kind) for kind in ("end", "death", "noise"))
        rows = {
            **{key: _end_row(found) for key, found in ends.items()},
            **{key: _death_row(found) for key, found in deaths.items()},
            **{key: _noise_row(found) for key, found in noise.items()},
        }
        notes = [note for key, found in ends.items() for note in _end_notes(key, found, rows[key])]
        notes += [note for key, found in deaths.items() for note in _death_notes(key, found, rows[key])]
        notes += _noise_notes(noise, rows)
        measured: dict[str, Any] = by_column(rows)
        measured["curves"] = curves({key: found["times"] for key, found in ends.items()})
        measured["noise"] = [{"p": found["p"], "renewals": found["renewals"], **rows[key]} for key, found in noise.items()]
        return Finding(measured, _expected(ends, deaths, noise), not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        figure.set_size_inches(11, 8)
        (takeover, handover), (noise, deaths) = figure.subplots(2, 2)
        drawn = finding.measured["curves"]
        draw_curves(takeover, [each for each in drawn if each["of"].startswith(f"{CRASH}, {AGENTS}")])
        takeover.axvline(PROMISED, color="#7b8794", linestyle=":", label="promised")
        takeover.set_xlabel("seconds from a crash to the next term")
        draw_curves(handover, [each for each in drawn if each["of"].startswith(RESIGN)])
        handover.axvline(PROMISED_RESIGN, color="#7b8794", linestyle=":", label="two round trips")
        handover.set_xlim(0, 20 * ROUND_TRIP)
        handover.set_xlabel("seconds from resign to the next term")
        _draw_noise(noise, finding.measured["noise"])
        _draw_deaths(deaths, finding.measured)
        for axes in (takeover, handover, noise):
            axes.legend(loc="lower right" if axes is not noise else "upper left", fontsize=8)


# What is measured.


def _measure_ends(cell: Cell) -> Measured:
    # Only agents that are no seats stand where two die together: with two of three seats no agent could follow.
    names = [f"a{i}" for i in range(cell["n"])]
    group = LeadGroup(cell["seed"], cell["n"], loss=cell["p"], standing=names[SEATS:] if cell["way"] == NEXT_DEAD else names)
    random, ends = group.world.random, cell["ends"]
    end = _resign if cell["way"] == RESIGN else _crash
    found = [end(group, cell["way"], (number + random.random()) / ends) for number in range(ends)]
    led = [each for each in found if each is not None]
    return {"times": [seconds for seconds, _ in led], "gaps": [gap for _, gap in led], "never": found.count(None)}


def _crash(group: LeadGroup, way: str, share: float) -> tuple[float, float] | None:
    leader = group.ready(REST, share)
    victims = [leader, group.next_candidate(leader)] if way == NEXT_DEAD else [leader]
    left = group.published(leader) - group.world.now
    group.crash(victims)
    seconds = group.next_term(PATIENCE)
    group.restart(victims)
    return None if seconds is None else (seconds, seconds - left)


def _resign(group: LeadGroup, way: str, share: float) -> tuple[float, float] | None:
    """The client has stopped, so there is no deadline to wait for."""
    del way
    leader = group.ready(TRAINED, share)
    group.resign(leader)
    seconds = group.next_term(PATIENCE)
    group.stand(leader)
    return None if seconds is None else (seconds, seconds)


def _measure_deaths(cell: Cell) -> Measured:
    """There is no other candidate, so that nothing but detection ends the wait. What was measured of a link is kept over the leader's
    lives: one group has links that are measured, and where they are not every death has a group of its own."""
    ends = cell["ends"]
    if cell["measured"]:
        group = _lone(cell, 0)
        group.ready(LONG_TRAINED, 0.0)
        found = [_death(group, REST, number / ends) for number in range(ends)]
    else:
        found = [_death(_lone(cell, number), TRAINED, number / ends) for number in range(ends)]
    dead = [each for each in found if each is not None]
    return {"times": [each.seconds for each in dead], "missed": [each.heartbeats for each in dead], "never": found.count(None)}


def _lone(cell: Cell, number: int) -> LeadGroup:
    return LeadGroup(cell["seed"] + number, cell["n"], loss=cell["p"], standing=[f"a{number % cell['n']}"])


def _death(group: LeadGroup, rest: float, share: float) -> Found | None:
    leader = group.ready(rest, share)
    group.crash([leader])
    found = group.found_dead(leader, PATIENCE)
    group.restart([leader])
    return found


def _measure_noise(cell: Cell) -> Measured:
    """Leaders that are no seats: they need two of three over the network, and a seat only one of two."""
    standing = [f"a{i}" for i in range(SEATS, AGENTS)]
    group = LeadGroup(cell["seed"], AGENTS, loss=cell["p"], standing=standing, once=cell["renewals"] == 1)
    group.ready(TRAINED, 0.0)
    group.lost.clear()
    group.world.run(group.world.now + cell["heartbeats"] * INTERVAL)
    return {"lapsed": group.lost.count("lapsed")}


# How it is told.


def _key(row: Measured) -> str:
    if row["kind"] == "noise":
        return f"{row['renewals']} renewal{'s' if row['renewals'] > 1 else ''} per heartbeat, p={row['p']:g}"
    if row["kind"] == "death":
        return f"found dead, {row['n']} agents, links {'' if row['measured'] else 'not '}measured, p={row['p']:g}"
    return f"{row['way']}, {row['n']} agents, p={row['p']:g}"


def _gathered(results: Sequence[Measured], kind: str) -> dict[str, dict[str, Any]]:
    """Cells of one kind, the parts of each put together."""
    found: dict[str, dict[str, Any]] = {}
    for row in results:
        if row["kind"] == kind:
            known = found.setdefault(_key(row), {**row, **{what: [] for what in ("times", "gaps", "missed")}, "never": 0})
            for what in ("times", "gaps", "missed"):
                known[what] += row.get(what, ())
            known["never"] += row.get("never", 0)
    return found


def _end_row(found: Measured) -> dict[str, Any]:
    times: Sequence[float] = found["times"]
    row: dict[str, Any] = summary(times)
    if found["way"] == RESIGN:
        return {**row, TRIPS: round(row["p50"] / ROUND_TRIP, 3)}
    late = sum(seconds > LIMITS[found["way"]] for seconds in times)
    low, high = wilson_interval(late, len(times))
    row |= {LATE: round(late / len(times), 4), LATE_LOW: round(low, 4), LATE_HIGH: round(high, 4)}
    gap, low, high = mean_interval(found["gaps"])
    return {**row, GAP: round(gap, 6), GAP_LOW: round(low, 6), GAP_HIGH: round(high, 6), GAP_LEAST: round(min(found["gaps"]), 6)}


def _death_row(found: Measured) -> dict[str, Any]:
    missed: Sequence[int] = found["missed"]
    return {**summary(found["times"]), MISSED: round(sum(missed) / len(missed), 3), MISSED_MOST: max(missed)}


def _noise_row(found: Measured) -> dict[str, Any]:
    low, high = rate_interval(found["lapsed"], found["heartbeats"])
    rate = PER * found["lapsed"] / found["heartbeats"]
    return {RATE: round(rate, 4), LOW: round(PER * low, 4), HIGH: round(PER * high, 4), "heartbeats": found["heartbeats"]}


# How it is judged.


def _end_notes(key: str, found: Measured, row: Mapping[str, Any]) -> list[str]:
    notes = [f"{key}: {found['never']} times nobody led within {PATIENCE:g} s"] if found["never"] else []
    if found["way"] == RESIGN:
        if row["p50"] > PROMISED_RESIGN:
            notes.append(f"{key}: median {row[TRIPS]:.2f} round trips, expected at most 2")
        return notes
    if row[GAP_LEAST] < 0:
        notes.append(f"{key}: a term began {-row[GAP_LEAST]:.6f} s before the old deadline")
    if row["max"] > LIMITS[found["way"]]:
        share = f"{100 * row[LATE]:.2f} % took longer (95 %: {100 * row[LATE_LOW]:.2f} to {100 * row[LATE_HIGH]:.2f})"
        notes.append(f"{key}: {row['max']:.3f} s at most, promised {LIMITS[found['way']]:g}; {share}")
    if found["way"] == CRASH and row[LOW] > PROMISED_MEAN:
        notes.append(f"{key}: {row[MEAN]:.3f} s on average (95 % from {row[LOW]:.3f}), the page says {PROMISED_MEAN:g}")
    return notes


def _death_notes(key: str, found: Measured, row: Mapping[str, Any]) -> list[str]:
    notes = [f"{key}: {found['never']} deaths were not found within {PATIENCE:g} s"] if found["never"] else []
    expected = FOUND_HEARTBEATS[found["n"]]
    if found["p"] == 0 and row[MISSED_MOST] > expected:  # Where questions and votes are lost, later heartbeats have to help.
        notes.append(f"{key}: {row[MISSED_MOST]} heartbeats were missed, expected {expected}")
    if found["p"] == 0 and row["max"] > _found_by(found["n"]):
        notes.append(f"{key}: {row['max']:.3f} s at most, expected {_found_by(found['n']):g}")
    return notes


def _found_by(agents: int) -> float:
    """G2, I7: the last heartbeat that counts is due, later than it may come, and a ballot was held."""
    return FOUND_HEARTBEATS[agents] * INTERVAL + NUMBERS.delta + NUMBERS.w


def _noise_notes(noise: Mapping[str, Measured], rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    judged = {key: rows[key] for key, found in noise.items() if _is_judged(found)}
    if not judged:
        return [f"nothing to judge: a loss of {NOISE:g} is not among the noisy ones"]
    return [
        f"{key}: {row[RATE]:.2f} step-downs per {PER} (95 %: {row[LOW]:.2f} to {row[HIGH]:.2f}), expected below {RATE_LIMIT:g}"
        for key, row in judged.items()
        if row[HIGH] >= RATE_LIMIT
    ]


def _is_judged(found: Measured) -> bool:
    """What ships: two renewals (H132)."""
    return bool(found["p"] == NOISE and found["renewals"] == 2)


def _expected(ends: Mapping[str, Measured], deaths: Mapping[str, Measured], noise: Mapping[str, Measured]) -> dict[str, Any]:
    limits = {key: LIMITS[found["way"]] for key, found in ends.items() if found["way"] in LIMITS}
    found_by = {key: _found_by(found["n"]) for key, found in deaths.items() if found["p"] == 0}
    return {
        MEAN: {key: PROMISED_MEAN for key, found in ends.items() if found["way"] == CRASH},
        "max": {key: round(limit, 6) for key, limit in (limits | found_by).items()},
        GAP_LEAST: dict.fromkeys(limits, 0.0),
        TRIPS: {key: 2.0 for key, found in ends.items() if found["way"] == RESIGN},
        MISSED_MOST: {key: FOUND_HEARTBEATS[found["n"]] for key, found in deaths.items() if found["p"] == 0},
        RATE: {key: RATE_LIMIT for key, found in noise.items() if _is_judged(found)},
    }


# How it is drawn.


def _draw_noise(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    losses = sorted({row["p"] for row in rows})
    for renewals in sorted({row["renewals"] for row in rows}):
        mine = [row for row in rows if row["renewals"] == renewals]
        rates = [row[RATE] for row in mine]
        places = [losses.index(row["p"]) + 0.3 * (renewals - 1.5) for row in mine]
        around = errors(rates, [row[LOW] for row in mine], [row[HIGH] for row in mine])
        axes.bar(places, rates, width=0.28, yerr=around, label=f"{renewals} per heartbeat")
    axes.axhline(RATE_LIMIT, color="#7b8794", linestyle=":", label="limit at p = 0.1")
    axes.set_xticks(range(len(losses)), [f"p = {p:g}" for p in losses])
    axes.set_ylabel(RATE)


def _draw_deaths(axes: Axes, measured: Mapping[str, Any]) -> None:
    means, most = measured[MISSED], measured[MISSED_MOST]
    places = range(len(means))
    axes.barh(places, list(means.values()), height=0.6)
    axes.plot([most[key] for key in means], places, linestyle="none", marker="|", markersize=10, color="#7b8794")
    axes.set_yticks(places, [key.removeprefix("found dead, ") for key in means], fontsize=7)
    axes.set_xlabel("heartbeats missed until found dead; line: most")


EXPERIMENT = Ships()
