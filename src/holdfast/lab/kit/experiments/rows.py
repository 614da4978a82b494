"""kit/rows-alone: how many periods does anti-entropy need when every rumour is lost?

Spec: foundation 4 (Rows); tickets 5.9. Each member compares its table with one random member per period, and both leave with the newer
row: push and pull. Two curves to hold it against:

* The bound is that of pushing alone, log2 N + ln N rounds (Pittel, "On spreading a rumor", 1987). A comparison also pulls (Demers et al.,
  "Epidemic algorithms for replicated database maintenance", 1987), so it tells at least as many.
* The estimate is push and pull with a random clock at each member, which tells i informed members on to i + 1 at the rate
  2 i (N-i) / (N-1): the sum of the mean times is H(N-1) (N-1) / N periods. Our clocks are regular, so it is a little pessimistic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import log, log2
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.host import Address, Host, Machine, Member, NodeId
from holdfast.kit.broadcast import Broadcast, Rumour
from holdfast.kit.exchange import AE_PERIOD, Exchange
from holdfast.kit.roster import Roster
from holdfast.kit.versioned import Versioned, newest, valid
from holdfast.lab.experiment import LIST_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.world import World

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOPIC, KEY = "t", "k"
DELAY = Uniform(0.001, 0.010)  # tickets 8
PERIODS_MAX = 60  # a change that is not everywhere by then never will be: five times the bound for 128 members
ESTIMATE_MARGIN = 1.25  # without loss; pulling alone takes 1.4 times the estimate, pushing alone 1.9 times: within the bound, both
CHANGES_PER_CELL = 25
SOME = Meta(min_length=1, max_length=LIST_MAX)


class RowsParameters(Parameters, frozen=True, kw_only=True):
    """Every change is a repetition."""

    members: Annotated[tuple[Annotated[int, Meta(ge=4, le=2000)], ...], SOME] = (8, 32, 128)
    losses: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.5)], ...], SOME] = (0.0, 0.1)
    changes: Annotated[int, Meta(ge=1, le=1_000_000)] = 100  # per setting


class Group:
    """Members that share one table, and whose rumours are all lost."""

    def __init__(self, seed: int, members: int, loss: float) -> None:
        self.names = [f"n{i:04}" for i in range(members)]
        self.changed_at: dict[str, float] = {}  # when each member took the present value, in true time
        self._list = tuple(Member(NodeId(name, 1), Address(name, PORT), {f"topic:{TOPIC}": b""}) for name in self.names)
        self.world = World(seed, self._build, link=Link(DELAY, loss=loss))
        self.world.network.lose_if(lambda source, target, message: isinstance(message, Rumour))
        for name in self.names:
            self.world.start(name)

    def change(self, number: int) -> float | None:
        """Periods from a change at one member until it is everywhere; None if it never was."""
        world = self.world
        world.run(world.now + world.random.uniform(0, AE_PERIOD))  # Any moment between two comparisons is as likely.
        origin, since = world.random.choice(self.names), world.now
        self.changed_at.clear()
        table = world.nodes[origin].node.use(Exchange).table(TOPIC)
        world.soon(partial(table.set, KEY, Versioned(number, origin, b"news").encode()))
        for period in range(1, PERIODS_MAX + 1):
            world.run(since + period * AE_PERIOD)
            if len(self.changed_at) == len(self.names):
                return (max(self.changed_at.values()) - since) / AE_PERIOD
        return None

    def _build(self, host: Host) -> Iterable[Machine]:
        roster = Roster(host, self._list, hello_period=0)
        cast = Broadcast(host, roster)
        exchange = Exchange(host, cast)

        def changed(key: str, before: bytes | None, now: bytes) -> None:
            self.changed_at[host.me.name] = self.world.now

        exchange.rows(TOPIC, newest, valid=valid).on_change(changed)
        return roster, cast, exchange


class RowsAlone(Experiment[RowsParameters]):
    """One row changes at one member, again and again, and no rumour arrives."""

    id = "kit/rows-alone"
    name = "kit/anti-entropy"
    title = "Anti-entropy alone: periods until a change is everywhere"
    source = "foundation 4 (Rows); tickets 5.9; Pittel 1987; Demers et al. 1987"
    criterion = (
        "every change reaches every member; the mean is at most log2 N + ln N periods for every N and loss, and without loss at most "
        "a quarter above H(N-1) (N-1) / N"
    )
    parameters = RowsParameters
    seconds_per_cell = 0.19
    repetitions = "changes"
    quick: ClassVar[Mapping[str, str]] = {"members": "[8,32]", "changes": "50"}

    def cells(self, parameters: RowsParameters, seed: int) -> Sequence[Cell]:
        cells: list[Cell] = []
        for members in parameters.members:
            for loss in parameters.losses:
                for first in range(0, parameters.changes, CHANGES_PER_CELL):
                    share = min(CHANGES_PER_CELL, parameters.changes - first)
                    cells.append({"members": members, "loss": loss, "changes": share, "seed": seed * 10_000 + len(cells)})
        return cells

    def measure(self, cell: Cell) -> Measured:
        group = Group(cell["seed"], cell["members"], cell["loss"])
        return {**cell, "periods": [group.change(number + 1) for number in range(cell["changes"])]}

    def judge(self, parameters: RowsParameters, results: Sequence[Measured]) -> Finding:
        settings = dict.fromkeys((r["members"], r["loss"]) for r in results)
        rows = [_summed([r for r in results if (r["members"], r["loss"]) == setting]) for setting in settings]
        notes = [note for row in rows for note in _misses(row)]
        measured = {
            "mean periods": {_label(row): row["periods_mean"] for row in rows},
            "changes that never arrived": sum(row["never"] for row in rows),
            "settings": rows,
        }
        expected = {
            "mean periods": {_label(row): round(estimate(row["members"]), 3) for row in rows},
            "changes that never arrived": 0,
            "mean periods at most": {_label(row): round(allowed(row["members"], row["loss"]), 3) for row in rows},
        }
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        rows = finding.measured["settings"]
        sizes = sorted({row["members"] for row in rows})
        axes.plot(sizes, [bound(size) for size in sizes], color="#7b8794", linestyle="--", label="bound: log2 N + ln N")
        axes.plot(sizes, [estimate(size) for size in sizes], color="#7b8794", linestyle=":", label="estimate: H(N-1) (N-1) / N")
        for loss in dict.fromkeys(row["loss"] for row in rows):
            line = [row for row in rows if row["loss"] == loss and row["periods_mean"] is not None]
            axes.plot([row["members"] for row in line], [row["periods_mean"] for row in line], marker="o", label=f"mean, loss {loss:.0%}")
        axes.set_xscale("log", base=2)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("members")
        axes.set_ylabel("periods until a change is everywhere")
        axes.legend()


def bound(members: int) -> float:
    """Rounds of pushing alone until all have been told (Pittel 1987)."""
    return log2(members) + log(members)


def estimate(members: int) -> float:
    """Mean periods of push and pull with random clocks."""
    return (members - 1) / members * sum(1 / i for i in range(1, members))


def allowed(members: int, loss: float) -> float:
    """What the mean may be."""
    return bound(members) if loss else min(bound(members), ESTIMATE_MARGIN * estimate(members))


def _label(row: Mapping[str, Any]) -> str:
    return f"N={row['members']}, loss={row['loss']:.0%}"


def _summed(parts: Sequence[Measured]) -> dict[str, Any]:
    periods = [period for part in parts for period in part["periods"]]
    closed = [period for period in periods if period is not None]
    return {
        "members": parts[0]["members"],
        "loss": parts[0]["loss"],
        "changes": len(periods),
        "never": len(periods) - len(closed),
        "periods_mean": round(sum(closed) / len(closed), 3) if closed else None,
        "periods_max": round(max(closed), 3) if closed else None,
    }


def _misses(row: Mapping[str, Any]) -> list[str]:
    setting = _label(row)
    notes = []
    if row["never"]:
        notes.append(f"{setting}: {row['never']} of {row['changes']} changes were not everywhere after {PERIODS_MAX} periods")
    mean, limit = row["periods_mean"], allowed(row["members"], row["loss"])
    if mean is not None and mean > limit:
        notes.append(f"{setting}: {mean} periods in the mean, at most {limit:.3f} are allowed")
    return notes


EXPERIMENT = RowsAlone()
