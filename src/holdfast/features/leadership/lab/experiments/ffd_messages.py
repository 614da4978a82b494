"""detection/E8: how many messages does fast detection cost when no process dies?

Spec: fast-detection 8 (E8), D3, D15; paper 002, section 1: "only n - 1 links are permanently active".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.leadership.detector.config import FfdConfig
from holdfast.features.leadership.lab.watching import Watching
from holdfast.lab.experiment import LIST_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import HIGH, LOW, MEAN, by_column, errors, mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERVAL, LATENCY = 1.0, 0.05  # section 8
ROOM = 1.05  # the acceptance's 5 %
TRAINING = 100  # heartbeats
BATCH = 50  # heartbeats whose messages make one value of the sample
HEARTBEATS, BOUND = "WATCHED-OK", "at most"
SOME = Meta(min_length=1, max_length=LIST_MAX)


class MessagesParameters(Parameters, frozen=True, kw_only=True):
    """Every interval is a repetition."""

    losses: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.3)], ...], SOME] = (0.01, 0.1)
    members: Annotated[tuple[Annotated[int, Meta(ge=3, le=16)], ...], SOME] = (3, 5, 7, 11, 16)  # n; 15 monitors are the most (F17)
    intervals: Annotated[int, Meta(ge=100, le=10_000_000)] = 5000


class Messages(Experiment[MessagesParameters]):
    """Messages per interval of a live watched, of all kinds."""

    id = "detection/E8"
    name = "detection/messages"
    title = "What watching costs: two messages per monitor, and a few ballots"
    source = "paper 002, section 1; fast-detection 8, E8"
    criterion = "messages per interval at most 2 (n - 1) + 2 p (n - 1)(1 + backups), and 5 %"
    parameters = MessagesParameters
    seconds_per_cell = 0.75
    repetitions = "intervals"
    quick: ClassVar[Mapping[str, str]] = {"losses": "[0.01]", "members": "[3,7]", "intervals": "400"}

    def cells(self, parameters: MessagesParameters, seed: int) -> Sequence[Cell]:
        return [
            {"p": p, "n": n, "intervals": parameters.intervals, "seed": seed * 1000 + n}
            for p in parameters.losses
            for n in parameters.members
        ]

    def measure(self, cell: Cell) -> Measured:
        group = Watching(cell["seed"], cell["n"], FfdConfig(t_itv=INTERVAL, t_lat=LATENCY), loss=cell["p"])
        group.demote = True
        group.run_heartbeats(TRAINING)
        kinds, samples = _sent(group), []
        for _ in range(cell["intervals"] // BATCH):
            before = _sent(group).total()
            group.run_heartbeats(BATCH)
            samples.append((_sent(group).total() - before) / BATCH)
        intervals = len(samples) * BATCH
        by_kind = {kind: count / intervals for kind, count in (_sent(group) - kinds).items()}
        return {"p": cell["p"], "n": cell["n"], "intervals": intervals, "samples": samples, "kinds": by_kind}

    def judge(self, parameters: MessagesParameters, results: Sequence[Measured]) -> Finding:
        rows = {_key(row): _row(row) for row in results}
        notes = [
            f"{key}: {row[MEAN]:.2f} messages, at most {row[BOUND]:.2f} expected" for key, row in rows.items() if row[MEAN] > row[BOUND]
        ]
        measured: dict[str, Any] = by_column(rows)
        bounds = measured.pop(BOUND)
        expected = {MEAN: bounds, HEARTBEATS: {_key(row): row["n"] - 1 for row in results}}
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        cells = {key: tuple(float(part.split("=")[1]) for part in key.split(", ")) for key in finding.measured[MEAN]}
        for p in dict.fromkeys(p for p, _ in cells.values()):
            line = {key: n for key, (each, n) in cells.items() if each == p}
            middle, low, high = ([finding.measured[what][key] for key in line] for what in (MEAN, LOW, HIGH))
            drawn = axes.errorbar(
                list(line.values()), middle, yerr=errors(middle, low, high), marker="o", capsize=3, label=f"measured, p = {p:g}"
            )
            bounds = [finding.expected[MEAN][key] for key in line]
            axes.plot(list(line.values()), bounds, color=drawn[0].get_color(), linestyle="--", alpha=0.6, label=f"at most, p = {p:g}")
        sizes = sorted({n for _, n in cells.values()})
        axes.plot(sizes, [n - 1 for n in sizes], color="#7b8794", linestyle=":", label="n - 1: the paper's active links")
        axes.set_xlabel("n: members, the watched included")
        axes.set_ylabel("messages per interval, mean and its 95 % interval")
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper left")


def bound(n: int, p: float, backups: int) -> float:
    """Heartbeat and MONITOR-OK per monitor; each of those who may ask misses a heartbeat with p, and asks and hears all others."""
    return ROOM * (2 * (n - 1) + 2 * p * (n - 1) * (1 + backups))


def _key(row: Measured) -> str:
    return f"p={row['p']:g}, n={row['n']}"


def _sent(group: Watching) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for endpoint in group.world.network.endpoints.values():
        kinds.update({kind.__name__: count for kind, count in endpoint.sent.items()})
    return kinds


def _row(row: Measured) -> dict[str, float]:
    mean, low, high = mean_interval(row["samples"])
    kinds = row["kinds"]
    ballots = sum(kinds.get(kind, 0.0) for kind in ("DidYouMissToo", "Vote"))
    backups = FfdConfig().backups
    return {
        MEAN: round(mean, 4),
        LOW: round(low, 4),
        HIGH: round(high, 4),
        BOUND: round(bound(row["n"], row["p"], backups), 4),
        HEARTBEATS: round(kinds["WatchedOk"], 4),
        "MONITOR-OK": round(kinds["MonitorOk"], 4),
        "questions and votes": round(ballots, 4),
    }


EXPERIMENT = Messages()
