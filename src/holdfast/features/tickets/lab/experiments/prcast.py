"""tickets/E13: does a rumour reach all as often as the formula says, and does anti-entropy close the rest?

Spec: tickets 8 (E13), 5.9; paper 001, section 2: "an event is delivered to all destinations with high probability".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.host import Address, Host, Machine, Member, NodeId
from holdfast.kit.broadcast import Broadcast, Rumour, RumourId, fanout
from holdfast.kit.exchange import AE_PERIOD, Exchange
from holdfast.kit.roster import Roster
from holdfast.kit.rows import Rows
from holdfast.kit.versioned import Versioned, newest, valid
from holdfast.lab.experiment import LIST_MAX, Cell, Count, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.world import World

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOPIC, KEY = "t", "k"
DELAY = Uniform(0.001, 0.010)  # tickets 8
SPREAD_SECONDS = 0.15  # 10 hops of 10 ms, and a little
PERIODS_MAX = 3  # in which anti-entropy must have closed every run
PERIODS_WATCHED = 10
TOLERANCE = 0.15
SURE_SPREAD, SURE_SHARE = 4.0, 0.97  # with c = 4, all in at least this share of the runs
CASTS_PER_CELL = 50
SOME = Meta(min_length=1, max_length=LIST_MAX)


class PrcastParameters(Parameters, frozen=True, kw_only=True):
    """Every cast is a repetition."""

    members: Annotated[tuple[Annotated[int, Meta(ge=2, le=10_000)], ...], SOME] = (50, 200, 1000)
    spreads: Annotated[tuple[Annotated[float, Meta(ge=-5.0, le=20.0)], ...], SOME] = (0.0, 2.0, 4.0)  # c
    losses: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.9)], ...], SOME] = (0.0, 0.1)
    casts: Count = 150  # per setting
    sure_casts: Count = 500  # per setting with c = 4, where 0.97 has to be told from 0.98


class Group:
    """A static group in which every member listens, and holds one table."""

    def __init__(self, seed: int, members: int, spread: float, loss: float) -> None:
        self.names = [f"n{i:04}" for i in range(members)]
        self.heard: set[str] = set()
        self.tables: dict[str, Rows] = {}
        self._list = tuple(Member(NodeId(name, 1), Address(name, PORT), {f"topic:{TOPIC}": b""}) for name in self.names)
        self._spread, self._loss = spread, loss
        self.world = World(seed, self._build, names=self.names, link=Link(DELAY, loss=loss))

    def lacking(self, value: bytes) -> int:
        return sum(table.get(KEY) != value for table in self.tables.values())

    def _build(self, host: Host) -> Iterable[Machine]:
        roster = Roster(host, self._list, hello_period=0)
        cast = Broadcast(host, roster, spread=self._spread, loss=self._loss)
        exchange = Exchange(host, cast)
        name = host.me.name
        self.tables[name] = exchange.rows(TOPIC, newest, valid=valid)

        def heard(rumour: RumourId, payload: bytes) -> None:
            self.heard.add(name)

        cast.on_rumour(TOPIC, heard)
        return roster, cast, exchange


class Prcast(Experiment[PrcastParameters]):
    """One value is set in a calm group, again and again; who hears of it by rumour, and when do all hold it?"""

    id = "tickets/E13"
    name = "tickets/prcast"
    title = "PrCast: how often a rumour reaches everybody"
    source = "tickets 8, E13; paper 001, section 2"
    criterion = (
        "P(everybody) within 0.15 of, or above, exp(-e^-c); with c = 4 at least 0.97; anti-entropy closes every run in at most 3 periods"
    )
    parameters = PrcastParameters
    seconds_per_cell = 1.8
    repetitions = "casts"
    quick: ClassVar[Mapping[str, str]] = {"members": "[50]", "casts": "50", "sure_casts": "50"}

    def cells(self, parameters: PrcastParameters, seed: int) -> Sequence[Cell]:
        cells: list[Cell] = []
        for members in parameters.members:
            for spread in parameters.spreads:
                for loss in parameters.losses:
                    casts = parameters.sure_casts if spread >= SURE_SPREAD else parameters.casts
                    for first in range(0, casts, CASTS_PER_CELL):
                        share = min(CASTS_PER_CELL, casts - first)
                        cells.append(
                            {"members": members, "spread": spread, "loss": loss, "casts": share, "seed": seed * 10_000 + len(cells)}
                        )
        return cells

    def measure(self, cell: Cell) -> Measured:
        group = Group(cell["seed"], cell["members"], cell["spread"], cell["loss"])
        world, random = group.world, group.world.random
        world.run(random.uniform(0, AE_PERIOD))
        everybody, reached, periods = 0, 0, []
        for number in range(cell["casts"]):
            origin = random.choice(group.names)
            value = Versioned(number + 1, origin, b"news").encode()
            group.heard.clear()
            _set(world, group.tables[origin], value)
            cast_at = world.now
            world.run(cast_at + SPREAD_SECONDS)
            reached += len(group.heard)
            everybody += len(group.heard) == len(group.names) - 1
            periods.append(_periods(group, value, cast_at))
        messages = sum(endpoint.sent[Rumour] for endpoint in world.network.endpoints.values())
        return {**cell, "everybody": everybody, "reached": reached, "periods": periods, "messages": messages}

    def judge(self, parameters: PrcastParameters, results: Sequence[Measured]) -> Finding:
        settings = dict.fromkeys((r["members"], r["spread"], r["loss"]) for r in results)
        rows = [_summed([r for r in results if (r["members"], r["spread"], r["loss"]) == setting]) for setting in settings]
        misses = [note for row in rows for note in _misses(row)]
        measured = {
            "lowest P(everybody)": {f"c={c:g}": min(row["everybody"] for row in rows if row["spread"] == c) for c in parameters.spreads},
            "most periods": max(row["periods_max"] for row in rows),
            "settings": rows,
        }
        expected = {
            "lowest P(everybody)": {f"c={c:g}": round(exp(-exp(-c)), 4) for c in parameters.spreads},
            "most periods": PERIODS_MAX,
        }
        return Finding(measured, expected, not misses, tuple(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        rows = finding.measured["settings"]
        spreads = [i / 20 for i in range(-10, 101)]
        axes.plot(spreads, [exp(-exp(-c)) for c in spreads], color="#7b8794", linestyle="--", label="exp(-e^-c)")
        for members, loss in dict.fromkeys((row["members"], row["loss"]) for row in rows):
            line = [row for row in rows if (row["members"], row["loss"]) == (members, loss)]
            axes.plot(
                [row["spread"] for row in line],
                [row["everybody"] for row in line],
                marker="o",
                linestyle="-" if loss == 0 else ":",
                label=f"N = {members}, loss {loss:.0%}",
            )
        axes.set_xlabel("c: fanout beyond ln N, after loss")
        axes.set_ylabel("share of rumours that reached everybody")
        axes.set_ylim(0, 1.02)
        axes.legend(loc="lower right")


def _set(world: World, table: Rows, value: bytes) -> None:
    world.soon(lambda: table.set(KEY, value))
    world.run(world.now)


def _periods(group: Group, value: bytes, cast_at: float) -> int:
    """Periods of anti-entropy until all hold it; 0: the rumour was enough."""
    if not group.lacking(value):
        return 0
    for period in range(1, PERIODS_WATCHED):
        group.world.run(cast_at + period * AE_PERIOD)
        if not group.lacking(value):
            return period
    return PERIODS_WATCHED


def _summed(parts: Sequence[Measured]) -> dict[str, Any]:
    first = parts[0]
    casts = sum(part["casts"] for part in parts)
    periods = [period for part in parts for period in part["periods"]]
    return {
        "members": first["members"],
        "spread": first["spread"],
        "loss": first["loss"],
        "fanout": fanout(first["members"], spread=first["spread"], loss=first["loss"]),
        "casts": casts,
        "everybody": round(sum(part["everybody"] for part in parts) / casts, 4),
        "reached": round(sum(part["reached"] for part in parts) / casts / (first["members"] - 1), 6),
        "messages_per_member": round(sum(part["messages"] for part in parts) / casts / first["members"], 2),
        "periods_max": max(periods),
        "closed_by_rows": sum(period > 0 for period in periods),
    }


def _misses(row: Mapping[str, Any]) -> list[str]:
    setting = f"N={row['members']}, c={row['spread']:g}, loss={row['loss']:.0%}"
    expected = exp(-exp(-row["spread"]))
    notes = []
    if row["everybody"] < expected - TOLERANCE:
        notes.append(f"{setting}: everybody in {row['everybody']:.3f} of the runs, expected {expected:.3f}")
    if row["spread"] >= SURE_SPREAD and row["everybody"] < SURE_SHARE:
        notes.append(f"{setting}: everybody in {row['everybody']:.3f} of the runs, at least {SURE_SHARE} is asked for")
    if row["periods_max"] > PERIODS_MAX:
        notes.append(f"{setting}: a run took {row['periods_max']} periods of anti-entropy, {PERIODS_MAX} are allowed")
    return notes


EXPERIMENT = Prcast()
