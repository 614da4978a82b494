"""ring/E3: how many arbitration requests does one node get when a tenth of a large ring dies, one after the other?

Spec: ring 8 (E3); paper 000, section VII-C, Figure 9. Every crash is arbitrated by its 2k monitors. A fixed arbitrator (CA) hears all of
them; in DA the pair at distance d has the group of the 2k + 1 + d members around it, so a crash costs 2 (sum of 2k + 1 + d for d = 1..k).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.errors import ConfigError
from holdfast.events import Event
from holdfast.features.ring.lab.measures import draw_members, formed, percentile
from holdfast.features.ring.lab.rings import PAPER_RULES, Rings, arbitrators, paper_config
from holdfast.features.ring.protocol.config import ARBITRATORS_MAX, K_MAX
from holdfast.features.ring.protocol.facts import Departed, Suspicion
from holdfast.features.ring.protocol.messages import Arb
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CA, DA = "CA", "DA"
PAPER_MEAN, PAPER_P80, PAPER_MAX = 5.4, 10, 24  # k = 3, 100 of 1000: "80% fewer than 10", "the worst case is 24"
P80_PER_MEAN, MAX_PER_MEAN = 10 / 5.4, 30 / 5.4  # what is accepted, in means, so that other sizes can be judged
ROUNDING = 1e-9


class ArbitratorLoadParameters(Parameters, frozen=True, kw_only=True):
    """The setting of Figure 9; the time between crashes is ours."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 1
    members: Annotated[int, Meta(ge=20, le=10_000)] = 1000
    k: Annotated[int, Meta(ge=1, le=K_MAX)] = 3
    crashes: Annotated[int, Meta(ge=1, le=5000)] = 100
    arbitrators: Annotated[int, Meta(ge=1, le=ARBITRATORS_MAX)] = 9  # CA
    apart: Annotated[float, Meta(ge=5.0, le=1000.0)] = 6.0  # in T_l

    def __post_init__(self) -> None:
        if self.members - self.crashes <= 4 * self.k:
            raise ConfigError(
                f"crashes {self.crashes}: accepted are so many that more than 4k = {4 * self.k} of {self.members} members live"
            )


class ArbitratorLoad(Experiment[ArbitratorLoadParameters]):
    """Crash one, wait, crash the next; who was asked how often?"""

    id = "ring/E3"
    name = "ring/arbitrator-load"
    title = "Arbitration requests per node: all of them for a few, or a few for all"
    source = "paper 000, Figure 9; ring 8, E3"
    criterion = (
        "DA: requests addressed per node exactly 5.4 (the formula; self and dead included), received p80 <= 10, max <= 30, group sizes "
        "exactly 2+2k..1+3k; CA: exactly 2kf at each arbitrator; nobody leaves but the crashed"
    )
    parameters = ArbitratorLoadParameters
    seconds_per_cell = 300  # Figure 9 with 1000 members, from its benchmark
    quick: ClassVar[Mapping[str, str]] = {"members": "80", "crashes": "8"}

    def cells(self, parameters: ArbitratorLoadParameters, seed: int) -> Sequence[Cell]:
        setting = {field: getattr(parameters, field) for field in ("members", "k", "crashes", "arbitrators", "apart")}
        return [{"mode": mode, "seed": seed * SEEDS_MAX + number, **setting} for mode in (DA, CA) for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        config = paper_config(k=cell["k"])
        if cell["mode"] == CA:
            config = paper_config(k=cell["k"], mode="central", arbitrators=arbitrators(cell["arbitrators"]))
        rings = formed(cell["seed"], cell["members"], config, PAPER_RULES)
        asked = Asked(rings)
        for name in draw_members(rings, cell["crashes"]):
            rings.world.crash(name)
            rings.world.run(rings.world.now + cell["apart"] * config.lease)
        found = {"mode": cell["mode"], "seed": cell["seed"], "alive": rings.size, "left": asked.left}
        if cell["mode"] == CA:
            return {**found, "asked": [each.counts["asked"] for each in rings.arbitrators.values()]}
        # The accuser is an arbitrator too: it is asked by itself, without a message.
        received = Counter(ring.counts["arbs_received"] + ring.counts["arbitrations"] for ring in rings.members.values())
        return {
            **found,
            "addressed": sum(asked.addressed.values()),
            "sizes": [[size, count] for size, count in sorted(asked.sizes.items())],
            "received": [[requests, nodes] for requests, nodes in sorted(received.items())],
            "sent": sum(endpoint.sent[Arb] for endpoint in rings.world.network.endpoints.values()),
        }

    def judge(self, parameters: ArbitratorLoadParameters, results: Sequence[Measured]) -> Finding:
        pairwise = [result for result in results if result["mode"] == DA]
        central = [count for result in results if result["mode"] == CA for count in result["asked"]]
        nodes = parameters.members * len(pairwise)
        received = sorted(requests for result in pairwise for requests, count in result["received"] for _ in range(count))
        addressed = sum(result["addressed"] for result in pairwise) / nodes
        sizes = sorted({size for result in pairwise for size, _ in result["sizes"]})
        # Not counted: what a node asks itself, which never leaves it.
        again = sum(result["sent"] - result["addressed"] + sum(count for _, count in result["sizes"]) for result in pairwise)
        measured = {
            "DA": {
                "addressed per node": addressed,
                "received per node": round(sum(received) / nodes, 4),
                "received, 80 %": percentile(received, 0.8),
                "received, max": received[-1],
                "group sizes": sizes,
                "requests sent again": again,
            },
            "CA": {"requests per arbitrator, least": min(central), "requests per arbitrator, most": max(central)},
            "alive at the end": sorted({result["alive"] for result in results}),
            "left without a crash": sum(result["left"] for result in results),
            "received": [{"requests": requests, "nodes": count} for requests, count in sorted(Counter(received).items())],
        }
        expected = _expected(parameters)
        notes = _misses(parameters, measured)
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        rows = finding.measured["received"]
        total, below, shares = sum(row["nodes"] for row in rows), 0, []
        for row in rows:
            below += row["nodes"]
            shares.append(below / total)
        axes.step([row["requests"] for row in rows], shares, where="post", label="DA: each member")
        worst = finding.measured["CA"]["requests per arbitrator, most"]
        axes.axvline(worst, color="#d55e00", label=f"CA: each arbitrator, {worst}")
        paper = finding.expected["DA"]
        axes.plot(
            [paper["received, 80 %"], paper["received, max"]],
            [0.8, 1.0],
            "x",
            color="#7b8794",
            markersize=9,
            label="paper: 80 % and max, DA",
        )
        axes.axvline(
            paper["addressed per node"],
            color="#7b8794",
            linestyle="--",
            linewidth=1,
            label=f"paper: mean {paper['addressed per node']:g}, DA",
        )
        axes.set_xscale("symlog", linthresh=30, linscale=3)
        axes.set_xticks([0, 5, 10, 15, 20, 25, 30, 100, 600], ["0", "5", "10", "15", "20", "25", "30", "100", "600"])
        axes.set_xlabel("arbitration requests received (beyond 30: logarithmic)")
        axes.set_ylabel("share of nodes with at most so many")
        axes.set_ylim(0, 1.02)
        axes.legend(loc="lower center")


class Asked:
    """Whom every suspicion addresses, self and dead included, asking again left out; and who leaves although it did not crash."""

    def __init__(self, rings: Rings) -> None:
        self._rings = rings
        self.sizes: Counter[int] = Counter()
        self.addressed: Counter[tuple[int, int]] = Counter()
        self.left = 0
        rings.world.listeners.append(self._on_event)

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, Departed):
            self.left += event.was_member
        elif isinstance(event, Suspicion):
            pair = self._rings.members[host.me.name].pairs[event.peer]
            group = pair.cfg if pair.next is None else pair.cfg | pair.next[1]
            self.sizes[len(group)] += 1
            self.addressed.update(group)


def per_crash(k: int) -> int:
    """Requests that one crash addresses in DA: to the group of each of the 2k pairs."""
    return 2 * sum(2 * k + 1 + distance for distance in range(1, k + 1))


def _expected(parameters: ArbitratorLoadParameters) -> dict[str, Any]:
    k, crashes = parameters.k, parameters.crashes
    average = crashes * per_crash(k) / parameters.members
    return {
        "DA": {
            "addressed per node": average,
            "received, 80 %": round(PAPER_P80 * average / PAPER_MEAN, 2),
            "received, max": round(PAPER_MAX * average / PAPER_MEAN, 2),
            "group sizes": list(range(2 + 2 * k, 2 + 3 * k)),
            "requests sent again": 0,
        },
        "CA": {"requests per arbitrator, least": 2 * k * crashes, "requests per arbitrator, most": 2 * k * crashes},
        "alive at the end": [parameters.members - crashes],
        "left without a crash": 0,
    }


def _misses(parameters: ArbitratorLoadParameters, measured: Mapping[str, Any]) -> list[str]:
    expected = _expected(parameters)
    ours, average = measured["DA"], expected["DA"]["addressed per node"]
    notes = []
    if abs(ours["addressed per node"] - average) > ROUNDING:
        notes.append(f"DA: {ours['addressed per node']:.4f} requests addressed per node, expected exactly {average:g}")
    for which, limit in (("received, 80 %", P80_PER_MEAN * average), ("received, max", MAX_PER_MEAN * average)):
        if ours[which] > limit + ROUNDING:
            notes.append(f"DA: {which}: {ours[which]}, accepted up to {limit:g}")
    pairs = [(f"DA: {which}", ours[which], expected["DA"][which]) for which in ("group sizes", "requests sent again")]
    pairs += [(which, measured[which], expected[which]) for which in ("CA", "alive at the end", "left without a crash")]
    return [*notes, *(f"{which}: {found}, expected {wanted}" for which, found, wanted in pairs if found != wanted)]


EXPERIMENT = ArbitratorLoad()
