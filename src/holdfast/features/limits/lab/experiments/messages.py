"""limits/N2: what does aggregation cost, by gossip and by a collector?

Spec: limits 5.3, 5.8, 8 (N2), D26; paper 003, 6.1 and 7.2.1: n log n messages per epoch against 2n. Demands change all the time, so that
no member is quiet; how much less a quiet group says is counted beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.sums import SumGroup
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.features.limits.protocol.messages import TYPES
from holdfast.lab.accounting import total
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPOCH = 0.5
FIRST, COUNTED, REST = 5.0, 15.0, 20.0  # seconds: until all know all, counted, and until a group at rest is quiet
GOSSIP, CENTRAL = "gossip", "central"
OURS = frozenset(kind.__name__ for kind in TYPES)
ACKS = frozenset({"GossipAck"})
NEAR = 0.25  # of b: what may be sent again


class MessagesParameters(Parameters, frozen=True, kw_only=True):
    """Sizes of groups."""

    members: Annotated[tuple[Annotated[int, Meta(ge=2, le=500)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (8, 16, 64, 182)


class Messages(Experiment[MessagesParameters]):
    """Counted in both ways of aggregation, at rest and not."""

    id = "limits/N2"
    name = "limits/messages"
    title = "Messages per epoch: n log n by gossip, 2n by a collector"
    source = "paper 003, 6.1, 7.2.1; limits 8, N2"
    criterion = (
        "gossip: b messages of each member per epoch, and at most a quarter more; a collector: at most 2n; quiet: at most a quarter of that"
    )
    parameters = MessagesParameters
    seconds_per_cell = 6.0
    quick: ClassVar[Mapping[str, str]] = {"members": "[8,16]"}

    def cells(self, parameters: MessagesParameters, seed: int) -> Sequence[Cell]:
        return [
            {"members": members, "way": way, "seed": seed * SEEDS_MAX + number}
            for members in parameters.members
            for way in (GOSSIP, CENTRAL)
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: MessagesParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        misses = [*violations(results), *(note for row in rows for note in _misses(row))]
        measured: dict[str, Any] = {
            "per member and epoch": {_key(row): row["sent"] for row in rows},
            "acknowledgements": {_key(row): row["acks"] for row in rows},
            "when all is quiet": {_key(row): row["quiet"] for row in rows},
        }
        fanout = LimitsConfig(epoch=EPOCH).fanout
        expected = {"per member and epoch": {_key(row): float(fanout(row["members"])) if row["way"] == GOSSIP else 2.0 for row in rows}}
        return Finding(measured, expected, bool(rows) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        axes.axis("off")
        measured, expected = finding.measured, finding.expected["per member and epoch"]
        header = ["members, way", "expected", "sent", "acknowledgements", "quiet"]
        text = [
            [
                key,
                f"{expected[key]:g}",
                f"{sent:.2f}",
                f"{measured['acknowledgements'][key]:.2f}",
                f"{measured['when all is quiet'][key]:.2f}",
            ]
            for key, sent in measured["per member and epoch"].items()
        ]
        table = axes.table(cellText=text, colLabels=header, loc="center", cellLoc="left")
        table.auto_set_font_size(False)
        table.set_fontsize(9)
        table.scale(1, 1.8)


def _play(cell: Cell) -> Measured:
    config = LimitsConfig(epoch=EPOCH)
    group = SumGroup(cell["seed"], cell["members"], config, link=Link(Uniform(0.001, 0.005)), aggregate=cell["way"])
    random = Random(f"{cell['seed']}/wants")
    group.install()
    _move(group, random)
    _run(group, random, FIRST)
    before = _counted(group)
    _run(group, random, COUNTED)
    moved = _counted(group)
    group.run(REST)
    still = _counted(group)
    group.run(COUNTED)
    last = _counted(group)
    per = cell["members"] * COUNTED / EPOCH
    return {
        **cell,
        "sent": round((moved[0] - before[0]) / per, 3),
        "acks": round((moved[1] - before[1]) / per, 3),
        "quiet": round((last[0] - still[0]) / per, 3),
    }


def _run(group: SumGroup, random: Random, seconds: float) -> None:
    end = group.world.now + seconds
    while group.world.now < end:
        _move(group, random)
        group.run(EPOCH)


def _move(group: SumGroup, random: Random) -> None:
    for name in group.names:
        group.set(name, random.uniform(1.0, 10.0))


def _counted(group: SumGroup) -> tuple[int, int]:
    """Messages of limits, and acknowledgements."""
    counts = {kind: each.messages for kind, each in total(group.world).items()}
    acks = sum(counts.get(kind, 0) for kind in ACKS)
    return sum(counts.get(kind, 0) for kind in OURS) - acks, acks


def _key(row: Measured) -> str:
    return f"{row['members']}, {row['way']}"


def _misses(row: Measured) -> list[str]:
    fanout = LimitsConfig(epoch=EPOCH).fanout(row["members"])
    most = fanout * (1 + NEAR) if row["way"] == GOSSIP else 2.0
    notes = []
    if not 0 < row["sent"] <= most or (row["way"] == GOSSIP and row["sent"] < fanout * (1 - NEAR)):
        notes.append(f"{_key(row)}: {row['sent']:.2f} messages of each member per epoch, expected at most {most:g}")
    if row["way"] == GOSSIP and row["quiet"] > most / 4:
        notes.append(f"{_key(row)}: {row['quiet']:.2f} messages of each member per epoch of a quiet group")
    return notes


EXPERIMENT = Messages()
