"""views/F3: does every member reach every other one through the overlay, and over how many hops?

Spec: views 5.7, 8 (F3), D7, D8; paper 003, section 4 ("at most three hops"), Figures 3 and 5. No client reaches another one directly, and
each reaches one server alone. Servers are a full mesh, or any graph that is still connected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, combinations, permutations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.events import Event
from holdfast.features.views.lab.groups import NO_LINK, ViewGroup
from holdfast.features.views.lab.users import Answered, Habits
from holdfast.features.views.protocol.facts import Carried as CarriedFact
from holdfast.host import Carried
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MESH, CUT, SPLIT = "full mesh", "cut", "cut, paths too long"
MESH_HOPS_MAX, CUT_HOPS_MAX = 3, 5
DIAMETER_MAX = 3  # of servers in one view (views 5.3)
FORMING, CARRYING = 4.0, 2.0  # seconds until views rest, and for all messages
SERVERS_MAX = 5  # six servers have 26,704 connected graphs
Pair = tuple[int, int]


class HopsParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, F3."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 1  # runs of each graph
    servers: Annotated[tuple[Annotated[int, Meta(ge=2, le=SERVERS_MAX)], ...], Meta(min_length=1, max_length=4)] = (3, 5)
    clients: Annotated[int, Meta(ge=2, le=60)] = 12
    graphs: Annotated[int, Meta(ge=1, le=1000)] = 1000  # of one number of servers at most, spread evenly; five servers have 728


class Hops(Experiment[HopsParameters]):
    """Every ordered pair of clients, over every connected graph of servers."""

    id = "views/F3"
    name = "views/hops"
    title = "Any member reaches any other one: three hops in a full mesh"
    source = "paper 003, section 4, Figures 3 and 5; views 8, F3"
    criterion = (
        "CB1 to CB9 hold; every message between two members of a view is delivered, over at most 3 hops in a full mesh and 5 with cuts; "
        "one view of all unless two servers are more than three links apart (D8)"
    )
    parameters = HopsParameters
    seconds_per_cell = 0.1
    quick: ClassVar[Mapping[str, str]] = {"graphs": "4", "clients": "6"}

    def cells(self, parameters: HopsParameters, seed: int) -> Sequence[Cell]:
        return [
            {"servers": servers, "clients": parameters.clients, "cut": cut, "seed": seed * SEEDS_MAX + number}
            for servers in parameters.servers
            for cut in spread(connected(servers), parameters.graphs)
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: HopsParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        misses = [*violations(results), *(note for row in rows for note in _misses(row))]
        keys = dict.fromkeys(_key(row) for row in rows)
        of = {key: [row for row in rows if _key(row) == key] for key in keys}
        hops = {key: _sum(row["hops"] for row in of[key]) for key in keys}
        measured: dict[str, Any] = {
            "graphs": {key: len(of[key]) for key in keys},
            "messages": {key: sum(row["said"] for row in of[key]) for key in keys},
            "not delivered": {key: sum(row["said"] - row["delivered"] for row in of[key]) for key in keys},
            "hops, most": {key: max(map(int, hops[key]), default=0) for key in keys},
            "views, most": {key: max(row["views"] for row in of[key]) for key in keys},
            "hops": hops,
        }
        expected = {
            "not delivered": dict.fromkeys(keys, 0),
            "hops, most": {key: MESH_HOPS_MAX if key.endswith(MESH) else CUT_HOPS_MAX for key in keys},
        }
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        drawn = finding.measured["hops"]
        width = 0.8 / max(1, len(drawn))
        for number, (key, hops) in enumerate(drawn.items()):
            total = max(1, sum(hops.values()))
            places = [int(each) + width * (number - (len(drawn) - 1) / 2) for each in hops]
            axes.bar(places, [100 * count / total for count in hops.values()], width=width, label=key)
        axes.axvline(MESH_HOPS_MAX + 0.5, color="#7b8794", linestyle="--", linewidth=1, label="paper: at most three, in a full mesh")
        axes.set_xlabel("hops of one message")
        axes.set_ylabel("% of the messages")
        axes.set_xticks(range(2, CUT_HOPS_MAX + 1))
        axes.legend()


def links_of(servers: int) -> list[Pair]:
    return list(combinations(range(servers), 2))


def connected(servers: int) -> list[tuple[Pair, ...]]:
    """The sets of links that may be cut so that all servers are still connected; the full mesh is the first."""
    links = links_of(servers)
    cuts = chain.from_iterable(combinations(links, count) for count in range(len(links) + 1))
    return [cut for cut in cuts if diameter(servers, cut) is not None]


def diameter(servers: int, cut: Collection[Pair]) -> int | None:
    """The longest of the shortest paths over the links that are left; None if some servers have no path."""
    left = [link for link in links_of(servers) if link not in cut]
    longest = 0
    for start in range(servers):
        reached, edge, far = {start}, {start}, 0
        while edge:
            edge = {b for a, b in chain(left, ((b, a) for a, b in left)) if a in edge and b not in reached}
            reached |= edge
            far += bool(edge)
        if len(reached) < servers:
            return None
        longest = max(longest, far)
    return longest


def spread(graphs: Sequence[tuple[Pair, ...]], most: int) -> list[tuple[Pair, ...]]:
    """So many of them, the first and the last among them."""
    if len(graphs) <= most:
        return list(graphs)
    return [graphs[round(i * (len(graphs) - 1) / max(1, most - 1))] for i in range(most)]


def _play(cell: Cell) -> Measured:
    group = ViewGroup(cell["seed"], cell["servers"], cell["clients"], homes=True, habits=Habits(says=0.0))
    for one, other in cell["cut"]:
        group.world.network.set_link(NO_LINK, f"s{one}", f"s{other}")
        group.world.network.set_link(NO_LINK, f"s{other}", f"s{one}")
    group.cut(group.clients, group.clients)
    group.run(FORMING)
    told = _Told(group)
    views = {name: group.leased(name) for name in group.clients}
    said = 0
    for one, other in permutations(group.clients, 2):
        view = views[one]
        if view is not None and view.find(other) is not None:
            group.say(one, other)
            said += 1
    group.run(CARRYING)
    ids = {None if view is None else view.id for view in views.values()}
    return {
        **cell,
        "diameter": diameter(cell["servers"], [tuple(link) for link in cell["cut"]]),
        "views": len(ids),
        "without": sum(view is None for view in views.values()),
        "said": said,
        "delivered": told.outcomes[Carried.DELIVERED],
        "hops": {str(hops): count for hops, count in sorted(told.hops.items())},
    }


class _Told:
    """What senders are told from now on."""

    def __init__(self, group: ViewGroup) -> None:
        self.outcomes: Counter[Carried] = Counter()
        self.hops: Counter[int] = Counter()
        group.world.listeners.append(self._on_event)

    def _on_event(self, host: object, event: Event) -> None:
        if isinstance(event, Answered):
            self.outcomes[event.outcome] += 1
        elif isinstance(event, CarriedFact):
            self.hops[event.hops] += 1


def _kind(row: Measured) -> str:
    if not row["cut"]:
        return MESH
    return CUT if row["diameter"] <= DIAMETER_MAX else SPLIT


def _key(row: Measured) -> str:
    return f"{row['servers']} servers, {_kind(row)}"


def _sum(counts: Any) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))


def _misses(row: Measured) -> list[str]:
    where = f"{row['servers']} servers without links {list(row['cut'])}" if row["cut"] else f"{row['servers']} servers"
    notes = []
    if row["delivered"] < row["said"] or not row["said"]:
        notes.append(f"{where}: {row['delivered']} of {row['said']} messages delivered")
    most, limit = max(map(int, row["hops"]), default=0), CUT_HOPS_MAX if row["cut"] else MESH_HOPS_MAX
    if most > limit:
        notes.append(f"{where}: {most} hops, accepted are {limit}")
    if row["without"]:
        notes.append(f"{where}: {row['without']} clients are in no view")
    elif row["views"] > 1 and _kind(row) != SPLIT:
        notes.append(f"{where}: {row['views']} views, and no server is more than {DIAMETER_MAX} links from another one")
    return notes


EXPERIMENT = Hops()
