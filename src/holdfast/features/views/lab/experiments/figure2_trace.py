"""views/F2: how many links of a host fail in six days, for one minute, two, five, twenty?

Spec: views 8 (F2); paper 003, 3.2, Figure 2: 182 PlanetLab hosts, a ping every 15 s to every other host. That trace is not available, so
this one is made (``cut_trace``), with the two properties that the paper tells of its own. How often a group that wants full connectivity
would have to change follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.views.lab.cut_trace import TraceRules, cut_links, make_trace, most_at_once
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MINUTES = (1, 2, 5, 20)  # the paper's lines
SHORT, MODERATE = 1, 2  # of which most hosts have a cut to a majority of the others
DAY = 86_400.0


class TraceParameters(Parameters, frozen=True, kw_only=True):
    """The setting of Figure 2. How often links are cut is ours, so that the figure has the paper's properties."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 1
    hosts: Annotated[int, Meta(ge=5, le=1000)] = 182
    days: Annotated[float, Meta(gt=0.0, le=60.0)] = 6.0
    cuts_least: Annotated[float, Meta(gt=0.0, le=1e5)] = 60.0  # of the most reliable host, in the whole trace


class Trace(Experiment[TraceParameters]):
    """A trace is made and looked at as the paper looks at its own."""

    id = "views/F2"
    name = "views/link-cuts"
    title = "Most hosts lose most of their links at some time, and none loses all at once"
    source = "paper 003, 3.2, Figure 2; views 8, F2 (a made-up trace)"
    criterion = (
        "more than half of the hosts have cuts of 1 and of 2 minutes to more than half of the others; no host is ever cut off from all"
    )
    parameters = TraceParameters
    seconds_per_cell = 2
    quick: ClassVar[Mapping[str, str]] = {"hosts": "40", "cuts_least": "12"}

    def cells(self, parameters: TraceParameters, seed: int) -> Sequence[Cell]:
        setting = {"hosts": parameters.hosts, "days": parameters.days, "cuts_least": parameters.cuts_least}
        return [{**setting, "seed": seed * SEEDS_MAX + number} for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        hosts, seconds = cell["hosts"], cell["days"] * DAY
        trace = make_trace(cell["seed"], TraceRules(hosts=hosts, seconds=seconds, cuts_least=cell["cuts_least"]))
        links = cut_links(trace, hosts, MINUTES, cell["seed"])
        return {
            **cell,
            "cuts": len(trace),
            "one way": sum(cut.one_way for cut in trace),
            "links": {str(minutes): sorted(found) for minutes, found in links.items()},
            "at once": max(most_at_once(trace, hosts)),
            "down": sum(cut.seconds for cut in trace) / seconds,
        }

    def judge(self, parameters: TraceParameters, results: Sequence[Measured]) -> Finding:
        others = parameters.hosts - 1
        shares = {f"{minutes} min": [_to_majority(row, minutes, others) for row in results] for minutes in MINUTES}
        measured: dict[str, Any] = {
            "cuts": [row["cuts"] for row in results],
            "hosts with cuts to a majority": {key: round(min(values), 4) for key, values in shares.items()},
            "links of a host cut at once, most": max(row["at once"] for row in results),
            "hosts cut off from all at once": sum(row["at once"] >= others for row in results),
            "cut links at a time, mean": round(sum(row["down"] for row in results) / len(results), 2),
            "seconds between two changes of connectivity, mean": round(
                parameters.days * DAY * len(results) / max(1, 2 * sum(row["cuts"] for row in results)), 3
            ),
            "links": results[0]["links"],
        }
        expected = {
            "hosts with cuts to a majority": {f"{minutes} min": "> 0.5" for minutes in (SHORT, MODERATE)},
            "hosts cut off from all at once": 0,
        }
        misses = [
            f"{minutes} min: {100 * min(shares[f'{minutes} min']):.0f} % of the hosts have cuts to a majority, expected more than 50 %"
            for minutes in (SHORT, MODERATE)
            if min(shares[f"{minutes} min"]) <= 0.5
        ]
        if measured["hosts cut off from all at once"]:
            misses.append(f"{measured['hosts cut off from all at once']} traces have a host that is cut off from all others")
        notes = (*misses, "rates and durations are chosen so that the figure has the paper's properties; the curves are not the paper's")
        return Finding(measured, expected, not misses, notes)

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for minutes, links in finding.measured["links"].items():
            axes.plot(range(len(links)), links, label=f"at least {minutes} min")
        hosts = len(next(iter(finding.measured["links"].values())))
        axes.axhline((hosts - 1) / 2, color="#7b8794", linestyle="--", linewidth=1, label="a majority of the others")
        axes.set_xlabel("hosts, sorted by what is counted; each line by itself")
        axes.set_ylabel("links to other hosts that were cut")
        axes.set_ylim(0, hosts)
        axes.legend(loc="upper left")


def _to_majority(row: Measured, minutes: int, others: int) -> float:
    """Share of the hosts whose links to more than half of the others were cut for so long."""
    links: Sequence[int] = row["links"][str(minutes)]
    return sum(2 * count > others for count in links) / len(links)


EXPERIMENT = Trace()
