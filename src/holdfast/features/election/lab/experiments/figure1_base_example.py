"""election/F1: Base among four nodes, message by message.  Paper 004, Figure 1 (the figure itself is lost).  Spec: election 8 (F1), E8, D3.

c = 2, f = 0, initiator 3. In the paper's way the initiator asks three others; in ours its own list is the first answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from holdfast.features.election.lab.groups import NAME, ElectionGroup
from holdfast.features.election.lab.lists import Holes
from holdfast.features.election.lab.ranking import by_rank
from holdfast.features.election.protocol import profiles
from holdfast.features.election.protocol.messages import Leader, NotifyLeader, Query, Response
from holdfast.features.election.protocol.profiles import Profile
from holdfast.host import Message
from holdfast.lab.experiment import Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

C, F = 2, 0
NODES = 4
OURS, PAPERS = "ours", "paper"
UNICASTS = {PAPERS: 2 * (C + F + 1) + 1, OURS: 2 * (C + F) + 1}
COLOURS = {Query: "#1f77b4", Response: "#2ca02c", NotifyLeader: "#ff7f0e", Leader: "#d62728"}


class BaseParameters(Parameters, frozen=True, kw_only=True):
    """One election each way."""


class BaseExample(Experiment[BaseParameters]):
    """Two elections."""

    id = "election/F1"
    name = "election/base-example"
    title = "Base among four nodes"
    source = "paper 004, Figure 1; election 8, F1, E8"
    criterion = "the best-ranked of four leads after 2(c+f+1)+1 = 7 unicasts in the paper's way, 2(c+f)+1 = 5 in ours, and one multicast"
    parameters = BaseParameters
    seconds_per_cell = 0.05
    repetitions = ""
    quick: ClassVar[Mapping[str, str]] = {}

    def cells(self, parameters: BaseParameters, seed: int) -> Sequence[Cell]:
        return [{"way": way, "seed": seed} for way in (PAPERS, OURS)]

    def measure(self, cell: Cell) -> Measured:
        found = profiles.paper("base", c=C, f=F)
        profile = Profile(found.config, replace(found.rules, self_response=cell["way"] == OURS))
        names = [f"n{number}" for number in range(NODES)]
        ranked = by_rank(NAME, names)
        group = ElectionGroup(
            cell["seed"], names, profile, lambda world, board: Holes(world, board, lambda now: frozenset()), link=Link(Uniform(0.01, 0.05))
        )
        spoken: list[tuple[float, str, str, str]] = []
        begin = group.world.now

        def note(source: str, target: str, message: Message) -> bool:
            when = round((group.world.now - begin) * 1000, 1)
            spoken.append((when, str(ranked.index(source)), str(ranked.index(target)), type(message).__name__))
            return False

        group.world.network.lose_if(note, "diagram")
        group.elect(ranked[3])
        group.until(lambda: group.settled(ranked[3]), 10.0)
        leader = group.agreed()
        return {**cell, "messages": [list(each) for each in spoken], "leader": None if leader is None else ranked.index(leader)}

    def judge(self, parameters: BaseParameters, results: Sequence[Measured]) -> Finding:
        counts, casts, misses = {}, {}, []
        for row in results:
            kinds = [message[3] for message in row["messages"]]
            counts[row["way"]] = len(kinds) - kinds.count("Leader")
            casts[row["way"]] = kinds.count("Leader") / (NODES - 1)
            if row["leader"] != 0:
                misses.append(f"{row['way']}: {row['leader']} leads")
            if counts[row["way"]] != UNICASTS[row["way"]] or casts[row["way"]] != 1:
                misses.append(f"{row['way']}: {counts[row['way']]} unicasts, {casts[row['way']]:g} multicasts")
        measured: dict[str, Any] = {"unicasts": counts, "multicasts": casts, "diagram": results[0]["messages"]}
        expected = {"unicasts": UNICASTS, "multicasts": {PAPERS: 1, OURS: 1}}
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for node in range(NODES):
            axes.axvline(node, color="#7b8794", linewidth=1)
        colours = {kind.__name__: colour for kind, colour in COLOURS.items()}
        for number, (_, source, target, kind) in enumerate(finding.measured["diagram"]):
            axes.annotate(
                "",
                xy=(int(target), number + 0.5),
                xytext=(int(source), number),
                arrowprops={"arrowstyle": "->", "color": colours.get(kind, "k")},
            )
        for kind, colour in colours.items():
            axes.plot([], [], color=colour, label=kind)
        axes.set_xticks(range(NODES), [f"node {number}" for number in range(NODES)])
        axes.set_ylabel("messages, in the order in which they were sent")
        axes.invert_yaxis()
        axes.legend(fontsize=7)


EXPERIMENT = BaseExample()
