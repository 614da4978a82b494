"""election/F12: were 16 processes where the paper's devices were, and did their links lose what they should?  Paper 004, Figure 12.

Spec: election 8 (F12).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from holdfast.features.election.lab.paper import DEVICES, PITCH, RANGE, Setting
from holdfast.features.election.lab.recorded import OfDevices
from holdfast.lab.experiment import Finding, Measured
from holdfast.lab.measured import shortened
from holdfast.lab.topology import Topology, grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

APART = 0.02  # of what was lost, from what should have been


class DevicesLayout(OfDevices):
    """The field that carried the datagrams of F13 and F14."""

    id = "election/F12"
    name = "election/devices-layout"
    title = "Where 16 processes are, and what their links lose"
    source = "paper 004, section VII, Figure 12; election 8, F12"
    criterion = "16 members on a grid of 4 by 4, 1.5 m apart, each heard for 2.2 m; of datagrams was lost what should be, within 0.02"

    def judge_run(self, results: Sequence[Measured], misses: list[str]) -> Finding:
        places = {name: (place[0], place[1]) for row in results for name, place in row["places"].items()}
        reach = max((row["reach"] for row in results), default=0.0)
        wanted = grid([str(number) for number in range(DEVICES[0].members)], pitch=PITCH, reach=RANGE)
        if sorted(places.values()) != sorted(wanted.points.values()) or reach != RANGE:
            misses.append(f"the layout is another one: {len(places)} members, heard for {reach:g} m")
            return Finding({"places": places}, {}, False, shortened(misses))
        field = Topology(places, RANGE)
        hops = [len(field.path(one, other) or ()) for one in places for other in places if one != other]
        lost = {str(Setting(*row["setting"])): row["loss"] for row in results}
        misses += [
            f"{name}: {loss['found']:.1%} of datagrams lost, not {loss['asked']:.1%}"
            for name, loss in lost.items()
            if abs(loss["found"] - loss["asked"]) > APART
        ]
        measured = {
            "places": places,
            "links": sum(map(len, field.neighbours.values())) // 2,
            "hops, mean": round(fmean(hops), 3),
            "hops, most": max(hops),
            "lost": lost,
        }
        return Finding(measured, {}, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        field = Topology(finding.measured.get("places", {}), RANGE)
        for name, others in field.neighbours.items():
            for other in others:
                axes.plot(*zip(field.points[name], field.points[other], strict=True), color="#c5ccd3", linewidth=0.8, zorder=1)
        for rank, (x, y) in enumerate(field.points.values()):
            axes.scatter([x], [y], s=260, color="#1f77b4", zorder=2)
            axes.annotate(str(rank), (x, y), ha="center", va="center", color="white", zorder=3)
        axes.set_aspect("equal")
        axes.set_xlabel("metres; numbers are hash ranks, 0 loses most")
        axes.set_ylabel("metres")


EXPERIMENT = DevicesLayout()
