"""ring/E10: how much loss does a ring stand, by the number of tries in a session?

Spec: ring 8 (E10), D1 (retransmission is free: it moves no bound), G7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.events import Event
from holdfast.features.ring.lab.observer import Observed, names_of
from holdfast.features.ring.lab.rings import PAPER_LINK
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Departed
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.measured import checked, completed, shortened, violations
from holdfast.lab.rates import rate_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS = 3  # members at which those who were put out knock
SAFE_RETRY, JUDGED_LOSS = 0.125, 0.05  # no departure at this loss with this spacing
PAPER_RETRY, MOST = 1.0, 0.5  # with a single try, more than this share of the ring leaves
EARLY = 20.0  # in T_l: as long as the specification's own run
SAMPLE = 1.0  # seconds between two looks at who is in
HOUR = 3600.0
RATE, LOW, HIGH = "departures per node-hour", "95 % from", "95 % to"
SOME = Meta(min_length=1, max_length=LIST_MAX)


class LossParameters(Parameters, frozen=True, kw_only=True):
    """The grid of section 8, E10; T_l is 1 s."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 1
    members: Annotated[int, Meta(ge=4, le=200)] = 64
    seconds: Annotated[float, Meta(ge=20.0, le=86_400.0)] = 600.0
    losses: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.9)], ...], SOME] = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
    retries: Annotated[tuple[Annotated[float, Meta(ge=0.0625, le=1.0)], ...], SOME] = (1.0, 0.5, 0.25, 0.125)  # r
    indirect: bool = False  # P1
    observed: Annotated[float, Meta(ge=0.0, le=86_400.0)] = 60.0  # seconds in which I1 to I14 are checked; in heavy loss that costs tenfold


class Loss(Experiment[LossParameters]):
    """All links lose messages; no process crashes. A member that leaves comes back."""

    id = "ring/E10"
    name = "ring/loss"
    title = "Loss: tries inside a session keep a ring together"
    source = "ring 8, E10, D1"
    criterion = (
        "I1 to I14 hold; r = 1/8: no departure at 5 % loss; r = 1 (the paper, a single try): more than half of the ring leaves within "
        "20 T_l at 5 % loss"
    )
    parameters = LossParameters
    seconds_per_cell = 3.2
    quick: ClassVar[Mapping[str, str]] = {"members": "16", "seconds": "20", "losses": "[0.0,0.05,0.3]", "retries": "[1.0,0.125]"}

    def cells(self, parameters: LossParameters, seed: int) -> Sequence[Cell]:
        grid = [(retry, loss, each) for retry in parameters.retries for loss in parameters.losses for each in range(parameters.seeds)]
        return [
            {
                "retry": retry,
                "loss": loss,
                "members": parameters.members,
                "seconds": parameters.seconds,
                "indirect": parameters.indirect,
                "observed": parameters.observed,
                "seed": seed * SEEDS_MAX + number,
            }
            for number, (retry, loss, _) in enumerate(grid)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: LossParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        settings = dict.fromkeys((row["retry"], row["loss"]) for row in rows)
        table = {_key(*setting): _summed(*setting, [r for r in rows if (r["retry"], r["loss"]) == setting]) for setting in settings}
        misses = [*violations(results), *_misses(table, parameters)]
        measured: dict[str, Any] = {
            what: {key: row[what] for key, row in table.items()} for what in (RATE, "departures", "left early", "mean size")
        }
        measured["violations"] = len(violations(results))
        measured["settings"] = list(table.values())
        expected = {
            "departures": {_key(SAFE_RETRY, JUDGED_LOSS): 0},
            "left early": {_key(PAPER_RETRY, JUDGED_LOSS): f"> {MOST}"},
            "violations": 0,
        }
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2)
        rows = finding.measured["settings"]
        for retry in dict.fromkeys(row["retry"] for row in rows):
            line = [row for row in rows if row["retry"] == retry]
            losses, label = [100 * row["loss"] for row in line], f"r = {_fraction(retry)}"
            seen = [row for row in line if row["departures"]]
            errors = [[row[RATE] - row[LOW] for row in seen], [row[HIGH] - row[RATE] for row in seen]]
            drawn = left.errorbar(
                [100 * row["loss"] for row in seen], [row[RATE] for row in seen], yerr=errors, marker="o", capsize=3, label=label
            )
            none = [row for row in line if not row["departures"]]
            left.plot([100 * row["loss"] for row in none], [row[HIGH] for row in none], "v", color=drawn[0].get_color(), fillstyle="none")
            right.plot(losses, [row["mean size"] for row in line], marker="o", label=label)
        left.plot([], [], "v", color="#7b8794", fillstyle="none", label="none seen: at most (95 %)")
        left.set_yscale("log")
        left.set_xlabel("% of the messages that get lost")
        left.set_ylabel(RATE)
        left.legend(fontsize=8)
        right.set_xlabel("% of the messages that get lost")
        right.set_ylabel("members in the ring, mean over time")
        right.set_ylim(bottom=0)
        right.legend(fontsize=8)


def _play(cell: Cell) -> Measured:
    names = names_of(cell["members"])
    config = RingConfig(retry=cell["retry"], indirect=cell["indirect"])
    link = replace(PAPER_LINK, loss=cell["loss"])
    rings = Observed(cell["seed"], names, config, link=link, seeds=names[:SEEDS], lossless=cell["loss"] == 0)
    world = rings.world
    reasons: Counter[str] = Counter()
    early: set[str] = set()

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, Departed) and event.was_member:
            reasons[event.reason] += 1
            if world.now <= EARLY * config.lease:
                early.add(host.me.name)

    world.listeners.append(on_event)
    rings.form(names)
    member_seconds = 0.0
    while world.now < cell["seconds"]:
        if world.now >= cell["observed"]:
            world.checkers.clear()
        world.run(world.now + SAMPLE)
        member_seconds += rings.size * SAMPLE
    setting = {what: cell[what] for what in ("retry", "loss", "members", "seconds")}
    return {**setting, "reasons": dict(reasons), "early": len(early), "member_seconds": member_seconds}


def _summed(retry: float, loss: float, rows: Sequence[Measured]) -> dict[str, Any]:
    departures = sum(sum(row["reasons"].values()) for row in rows)
    hours = sum(row["member_seconds"] for row in rows) / HOUR
    low, high = rate_interval(departures, 1)
    return {
        "retry": retry,
        "loss": loss,
        "departures": departures,
        "node-hours": round(hours, 4),
        RATE: round(departures / hours, 4),
        LOW: round(low / hours, 4),
        HIGH: round(high / hours, 4),
        "left early": round(sum(row["early"] for row in rows) / sum(row["members"] for row in rows), 4),
        "mean size": round(sum(row["member_seconds"] / row["seconds"] for row in rows) / len(rows), 2),
    }


def _misses(table: Mapping[str, Mapping[str, Any]], parameters: LossParameters) -> list[str]:
    safe, paper = table.get(_key(SAFE_RETRY, JUDGED_LOSS)), table.get(_key(PAPER_RETRY, JUDGED_LOSS))
    notes = []
    if safe is None or paper is None:
        notes.append(f"nothing to judge: losses must have {JUDGED_LOSS}, retries {PAPER_RETRY} and {SAFE_RETRY}")
    if safe is not None and safe["departures"]:
        notes.append(f"r = 1/8, 5 % loss: {safe['departures']} departures in {parameters.seconds:g} s; none is allowed")
    if paper is not None and paper["left early"] <= MOST:
        notes.append(f"r = 1, 5 % loss: {paper['left early']:.0%} of the ring left within {EARLY:g} T_l; more than {MOST:.0%} are expected")
    return notes


def _key(retry: float, loss: float) -> str:
    return f"r={_fraction(retry)}, loss={loss:g}"


def _fraction(retry: float) -> str:
    return "1" if retry == 1 else f"1/{1 / retry:g}"


EXPERIMENT = Loss()
