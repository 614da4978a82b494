"""views/H1: heartbeats pass between two servers and something else does not. Are there two clean views, and soon?

Spec: views 5.7, 8 (H1), D13, D24 to D26; paper 003, 4.2 ("share connectivity fate"), which asserts it. In one direction all link states are
lost, or all overlay messages, or all that no datagram holds. Clients send by the overlay all the time, and a newcomer changes the link
state of the server that is not heard. A third server passes link states on; where the way round is cut, too, there are two views. Without
D24 both sides go on in views that overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.lab.measures import form
from holdfast.features.views.lab.mutations import ages_from_arrival, no_numbers
from holdfast.features.views.lab.users import Habits
from holdfast.features.views.protocol.client import in_order
from holdfast.host import DATAGRAM_BYTES_MAX
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import VIOLATION, shortened
from holdfast.lab.mutation import Mutation, without
from holdfast.lab.picture import COLOURS, INK
from holdfast.lab.samples import quantile
from holdfast.lab.violation import Violation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINK_STATES, NO_WAY_ROUND, OVERLAY, LARGE = HOLES = (
    "link states", "link states, no way round", "overlay messages", "large messages",
)  # fmt: skip
KINDS: Mapping[str, tuple[str, ...]] = {LINK_STATES: ("Lsa",), NO_WAY_ROUND: ("Lsa",), OVERLAY: ("OvData",), LARGE: ()}
ALL_RULES, ARRIVAL, NUMBERS = "all rules", "age from arrival", "no vouching by numbers"
ABLATIONS: Mapping[str, tuple[Mutation, str, int]] = {  # where each shows: the hole, the number of servers
    ARRIVAL: (ages_from_arrival, LINK_STATES, 2),
    NUMBERS: (no_numbers, NO_WAY_ROUND, 3),
}
ONE_GROUP = "CB6"
CLEAN_WITHIN = 15.0  # seconds
VIEWS_MAX = 2
FORMED_BY = 5.0
NEWCOMER_AFTER = 0.5  # seconds after the hole has begun
EVERY = 0.25  # seconds between two looks
SOME = Meta(min_length=1, max_length=LIST_MAX)


class ShareFateParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, H1."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 20
    servers: Annotated[tuple[Annotated[int, Meta(ge=2, le=7)], ...], SOME] = (2, 3, 5)
    clients: Annotated[int, Meta(ge=2, le=50)] = 6
    seconds: Annotated[float, Meta(ge=20.0, le=1000.0)] = 60.0  # that the hole lasts


class ShareFate(Experiment[ShareFateParameters]):
    """What s0 sends to s1 is lost, if it is of that kind."""

    id = "views/H1"
    name = "views/share-fate"
    title = "Heartbeats pass and link states do not: two clean views"
    source = "paper 003, 4.2; views 8, H1, D13, D24"
    criterion = (
        "CB1 to CB9 hold; never longer than 15 s without all clients leased, in one view or two that share no client; without D24 link "
        "states that are lost between two servers break CB6"
    )
    parameters = ShareFateParameters
    seconds_per_cell = 0.33
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1", "servers": "[2,3]", "seconds": "30.0"}

    def cells(self, parameters: ShareFateParameters, seed: int) -> Sequence[Cell]:
        kinds = [(ALL_RULES, hole, servers) for hole in HOLES for servers in parameters.servers if hole != NO_WAY_ROUND or servers > 2]
        kinds += [(rules, hole, servers) for rules, (_, hole, servers) in ABLATIONS.items()]
        setting = {"clients": parameters.clients, "seconds": parameters.seconds}
        return [
            {
                "rules": rules,
                "hole": hole,
                "servers": servers,
                **setting,
                "seed": seed * SEEDS_MAX + number,
                "drawn": number == 0 and (hole, servers) in [where[1:] for where in ABLATIONS.values()],
            }
            for rules, hole, servers in kinds
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        with nullcontext() if cell["rules"] == ALL_RULES else without(ABLATIONS[cell["rules"]][0]):
            return _play(cell)

    def judge(self, parameters: ShareFateParameters, results: Sequence[Measured]) -> Finding:
        normal = [row for row in results if row["rules"] == ALL_RULES]
        of = {key: [row for row in normal if _key(row) == key] for key in dict.fromkeys(map(_key, normal))}
        ablated = [row for row in results if row["rules"] != ALL_RULES]
        without_it = {key: [row for row in ablated if _key(row) == key] for key in dict.fromkeys(map(_key, ablated))}
        broken = {key: sum(map(_is_of_cb6, rows)) for key, rows in without_it.items()}
        measured: dict[str, Any] = {
            "runs": {key: len(rows) for key, rows in of.items()},
            "violations": {key: sum(bool(row[VIOLATION]) for row in rows) for key, rows in of.items()},
            "longest time without clean views": {key: max(row["unclean"] for row in rows) for key, rows in of.items()},
            "without clean views in all, p50": {key: quantile([row["unclean in all"] for row in rows], 0.5) for key, rows in of.items()},
            "views, most": {key: max(row["views"] for row in rows) for key, rows in of.items()},
            "CB6 broken without D24": {key: f"{broken[key]} of {len(rows)}" for key, rows in without_it.items()},
            "runs drawn": [{field: row[field] for field in ("rules", "servers", VIOLATION, "bars")} for row in results if row["drawn"]],
        }
        expected = {
            "violations": dict.fromkeys(of, 0),
            "longest time without clean views": dict.fromkeys(of, CLEAN_WITHIN),
            "views, most": dict.fromkeys(of, VIEWS_MAX),
            "CB6 broken without D24": {key: f"{len(rows)} of {len(rows)}" for key, rows in without_it.items()},
        }
        misses = [row[VIOLATION] for row in normal if row[VIOLATION]]
        misses += [note for key, rows in of.items() for note in _misses(key, rows)]
        misses += [
            f"{key}: CB6 broke in {broken[key]} of {len(rows)} runs, so the runs show nothing about D24"
            for key, rows in without_it.items()
            if broken[key] < len(rows)
        ]
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        runs = finding.measured["runs drawn"]
        rows = figure.subplots(len(runs), 1, sharex=True, squeeze=False)
        for (axes,), run in zip(rows, runs, strict=True):
            _draw_run(axes, run)
        rows[-1][0].set_xlabel("seconds; the hole begins at 0. One colour per view, white where there is no lease")


class _Looks:
    """What clients count on, looked at again and again."""

    def __init__(self, group: ViewGroup, begun_at: float) -> None:
        self._group, self._begun_at = group, begun_at
        self.bars: list[list[Any]] = []  # [client, from, to, number of its view] as far as it is leased
        self._open: dict[str, list[Any]] = {}
        self.unclean = self.longest = self.in_all = 0.0
        self.views = 0

    def look(self) -> None:
        group, now = self._group, round(self._group.world.now - self._begun_at, 3)
        seen = {name: group.leased(name) for name in group.participants}
        for name, view in seen.items():
            bar = self._open.get(name)
            if view is None:
                self._open.pop(name, None)
            elif bar is not None and bar[3] == view.number:
                bar[2] = now
            else:
                self._open[name] = [name, now, now + EVERY, view.number]
                self.bars.append(self._open[name])
        groups = {view.id: {member.id.name for member in view.members} for view in seen.values() if view is not None}
        self.views = max(self.views, len(groups) if self._is_clean(seen, groups) else 0)
        self.unclean = 0.0 if self._is_clean(seen, groups) else self.unclean + EVERY
        self.in_all += EVERY * (self.unclean > 0)
        self.longest = max(self.longest, self.unclean)

    def _is_clean(self, seen: Mapping[str, Any], groups: Mapping[Any, set[str]]) -> bool:
        """All are leased, each view lists those that count on it and no others, and there are two at most."""
        if any(view is None for view in seen.values()) or len(groups) > VIEWS_MAX:
            return False
        return all({name for name, view in seen.items() if view.id == which} == listed for which, listed in groups.items())


def _play(cell: Cell) -> Measured:
    # Where a rule is out, nothing but heartbeats shall tell that something is wrong: neither messages nor a newcomer.
    whole = cell["rules"] == ALL_RULES
    habits = Habits(says=0.5 if whole else 0.0, large=0.5 if cell["hole"] == LARGE else 0.1)
    group = ViewGroup(cell["seed"], cell["servers"], cell["clients"], habits=habits)
    form(group, FORMED_BY)
    group.run(group.config.settle)
    begun_at = group.world.now
    looks = _Looks(group, begun_at)
    larger = DATAGRAM_BYTES_MAX if cell["hole"] == LARGE else None
    if cell["hole"] == NO_WAY_ROUND:
        group.cut(["s0"], group.servers[2:])
    group.hole("s0", "s1", *KINDS[cell["hole"]], larger=larger, seconds=cell["seconds"])
    newcomer = next(name for name in map("x{}".format, range(1000)) if in_order(name, group.slots, None)[0].number == 0)
    found = {**cell, VIOLATION: "", "at": cell["seconds"]}
    try:
        while group.world.now < begun_at + cell["seconds"]:
            if whole and newcomer not in group.clients and group.world.now >= begun_at + NEWCOMER_AFTER:
                group.clients.append(newcomer)
                group.start(newcomer)
            group.run(EVERY)
            looks.look()
    except Violation as violation:
        at = round(violation.at - begun_at, 3)
        found = {**cell, VIOLATION: f"{violation}, {at:g} s after the hole began, seed {cell['seed']}", "at": at}
    bars = looks.bars if cell["drawn"] else []
    return {**found, "unclean": looks.longest, "unclean in all": round(looks.in_all, 3), "views": looks.views, "bars": bars}


def _key(row: Measured) -> str:
    return f"{row['servers']} servers, {row['hole']}" if row["rules"] == ALL_RULES else f"{row['servers']} servers, {row['rules']}"


def _is_of_cb6(row: Measured) -> bool:
    return str(row[VIOLATION]).startswith(ONE_GROUP)


def _misses(key: str, rows: Sequence[Measured]) -> list[str]:
    """What random runs show besides violations."""
    longest = max((row["unclean"] for row in rows), default=0.0)
    if longest > CLEAN_WITHIN:
        return [f"{key}: {longest:g} s without all clients leased in clean views, accepted are {CLEAN_WITHIN:g} s"]
    return [] if any(row["views"] for row in rows) else [f"{key}: there was no clean view at all"]


def _draw_run(axes: Axes, run: Mapping[str, Any]) -> None:
    clients = sorted({bar[0] for bar in run["bars"]})
    numbers = sorted({bar[3] for bar in run["bars"]})
    for client, since, until, number in run["bars"]:
        colour = COLOURS[numbers.index(number) % len(COLOURS)]
        axes.barh(clients.index(client), until - since, left=since, height=0.8, color=colour)
    axes.set_yticks(range(len(clients)), clients, fontsize=7)
    axes.axvline(0, color=INK, linewidth=1)
    ended = f": {run[VIOLATION]}" if run[VIOLATION] else ""
    axes.set_title(f"{run['rules']}, {run['servers']} servers{ended}"[:110], loc="left", fontsize=8)
    axes.grid(visible=False)


EXPERIMENT = ShareFate()
