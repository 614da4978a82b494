"""detection/E19: negative controls: each assumption of the lease, broken on purpose, gives two leaders; kept, it gives one.

Spec: fast-detection 8 (E19), G5, D17. A lab that cannot show a break proves nothing by not seeing one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.leadership.detector.config import ElectionConfig
from holdfast.host import Address, Host, Machine
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.lab.network import PORT
from holdfast.lab.samples import HIGH, LOW, MEAN, by_column, errors, summary
from holdfast.papers.detection.lab.elections import Elections, settings
from holdfast.papers.detection.protocol.election import LeaderElection
from holdfast.papers.detection.protocol.views_feed import ViewsFeed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTH = 4.0  # L
CLOCKS, AHEAD, AT_ONCE = "clocks", "feed ahead", "views at once"
TITLES = {
    CLOCKS: "clock rates of +-5 %, rho = 1e-4",
    AHEAD: "views ahead of their majority",
    AT_ONCE: "no lease length between two views",
}
PROTOTYPE = {CLOCKS: 0.37, AHEAD: 26.0, AT_ONCE: 3.9}
DRIFT = 0.05
SKEW = 0.1  # wall clocks are synchronised so well: freshness points do not depend on the rates, and the slow leader stays
CALM, CUT = 10.0, 30.0  # seconds
RUNS_PER_CELL = 25
OTHER_SEED = 1 << 40  # beyond the seeds of all runs
SHOWN = 0.99  # of the runs: the specification asks that a break is shown, not how often


class ControlsParameters(Parameters, frozen=True, kw_only=True):
    """Runs per assumption, broken and kept."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 1000


class FedElections(Elections):
    """Views change; they go through the feed of D17, or straight to the election."""

    def __init__(self, seed: int, members: int, config: ElectionConfig, *, feed: bool) -> None:
        self._feed = feed
        super().__init__(seed, members, config)

    def tell(self, name: str, view: int, members: Sequence[str]) -> None:
        """The layer below says at this node that a view is agreed."""
        host = self.world.nodes[name]
        take: Callable[[int, Mapping[str, Address]], None] = (
            host.node.use(ViewsFeed).offer if self._feed else self.election(name).install_view
        )
        self.world.step(host, partial(take, view, {each: Address(each, PORT) for each in members}))

    def start(self, name: str) -> None:
        self.world.start(name)
        self.world.soon(partial(self.tell, name, 1, self.names))

    def _build(self, host: Host) -> Sequence[Machine]:
        (election,) = super()._build(host)
        assert isinstance(election, LeaderElection)
        if not self._feed:
            return [election]
        config = election.config
        feed = ViewsFeed(
            host,
            interval=config.t_itv,
            length=config.lease,
            rho=config.rho,
            installed=lambda: election.installed,
            install=election.install_view,
        )
        return [election, feed]


class Controls(Experiment[ControlsParameters]):
    """Three assumptions of exclusive leases, each broken and each kept in the same runs."""

    id = "detection/E19"
    name = "detection/lease-assumptions"
    title = "What breaks a lease, and what does not"
    source = "fast-detection 8, E19, D17 (the paper has no lease)"
    criterion = "each broken assumption gives two leaders at once, in 99 % of the runs; each kept one in none"
    parameters = ControlsParameters
    seconds_per_cell = 0.26
    quick: ClassVar[Mapping[str, str]] = {"seeds": "4"}

    def cells(self, parameters: ControlsParameters, seed: int) -> Sequence[Cell]:
        kinds = [{"control": control, "kept": kept} for control in TITLES for kept in (False, True)]
        return [cell for kind in kinds for cell in in_batches(kind, parameters.seeds, RUNS_PER_CELL, seed * SEEDS_MAX)]

    def measure(self, cell: Cell) -> Measured:
        run = {CLOCKS: _clocks, AHEAD: _ahead, AT_ONCE: _at_once}[cell["control"]]
        overlaps = [run(cell["seed"] + number, kept=cell["kept"]) for number in range(cell["runs"])]
        return {"control": cell["control"], "kept": cell["kept"], "overlaps": overlaps}

    def judge(self, parameters: ControlsParameters, results: Sequence[Measured]) -> Finding:
        found = {
            (control, kept): [s for row in results if (row["control"], row["kept"]) == (control, kept) for s in row["overlaps"]]
            for control in TITLES
            for kept in (False, True)
        }
        notes = [
            f"{control}, broken: {n} of {len(o)} runs without two leaders"
            for (control, kept), o in found.items()
            if not kept and (n := o.count(0.0)) > (1 - SHOWN) * len(o)
        ]
        notes += [f"{control}, kept: two leaders for up to {max(o):.6f} s" for (control, kept), o in found.items() if kept and max(o) > 0]
        measured: dict[str, Any] = by_column({_key(*key): summary(values) for key, values in found.items()})
        expected = {MEAN: {_key(control, kept): 0.0 if kept else PROTOTYPE[control] for control, kept in found}}
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        places = range(len(TITLES))
        for shift, kept in ((-0.2, False), (0.2, True)):
            keys = [_key(control, kept) for control in TITLES]
            middle, low, high = ([finding.measured[what][key] for key in keys] for what in (MEAN, LOW, HIGH))
            label = "assumption kept" if kept else "assumption broken"
            axes.bar([p + shift for p in places], middle, width=0.38, yerr=errors(middle, low, high), capsize=3, label=label)
            for place, key in zip(places, keys, strict=True):
                axes.annotate(
                    f"{finding.measured[MEAN][key]:.3g} s", (place + shift, finding.measured[MEAN][key]), ha="center", va="bottom"
                )
        axes.set_xticks(places, list(TITLES.values()))
        axes.set_yscale("symlog", linthresh=0.1)
        axes.set_ylabel("seconds with two leaders, mean and its 95 % interval")
        axes.legend(loc="upper right")


def _key(control: str, kept: bool) -> str:
    return f"{control}, {'kept' if kept else 'broken'}"


def _clocks(seed: int, *, kept: bool) -> float:
    """The leader's clock is slow, the voters' are fast: they forget their promise while it still counts. Kept: rho says so."""
    names = [f"n{i}" for i in range(3)]
    drift = {name: 1 - DRIFT if name == names[0] else 1 + DRIFT for name in names}
    group = Elections(seed, len(names), settings("quorum", length=LENGTH, rho=DRIFT if kept else 1e-4, skew=SKEW), drift=drift)
    leader = _calm(group, seed)
    group.world.network.partition("cut", [[leader], [name for name in names if name != leader]])
    group.world.run(CALM + CUT)
    return group.overlap()


def _ahead(seed: int, *, kept: bool) -> float:
    """Two of five are cut off and hear of views that no other has: in the last one they are the majority. Kept: the feed waits."""
    group = FedElections(seed, 5, settings("quorum", length=LENGTH), feed=kept)
    leader = _calm(group, seed)
    *stay, fourth, fifth = [leader, *(name for name in group.names if name != leader)]
    group.world.network.partition("cut", [stay, [fourth, fifth]])
    views = [[*stay[:gone], fourth, fifth] for gone in (2, 1, 0)]
    for number, members in enumerate(views, 2):
        for name in (fourth, fifth):
            group.tell(name, number, members)
    group.world.run(CALM + CUT)
    return group.overlap()


def _at_once(seed: int, *, kept: bool) -> float:
    """{a, b, c}, a leads with b's promise; {b, c} is installed by both, {c} right after. Kept: the feed waits for a's lease to end."""
    group = FedElections(seed, 3, settings("quorum", length=LENGTH), feed=kept)
    a = group.settle()
    b, c = (name for name in group.names if name != a)
    group.world.network.partition("c", [[a], [c]])  # What c promised is over when it counts.
    if _calm(group, seed) != a:
        return _at_once(seed + OTHER_SEED, kept=kept)  # b had a late heartbeat when c asked, and two of three miss a: another run.
    group.world.network.partition("a", [[a], [b, c]])
    for view, members, to in ((2, [b, c], b), (2, [b, c], c), (3, [c], c)):
        group.tell(to, view, members)
    group.world.run(CALM + CUT)
    return group.overlap()


def _calm(group: Elections, seed: int) -> str:
    """All is well, until some moment of an interval; who leads then, "" if none does."""
    group.world.run(CALM - 1 + Random(f"{seed}/moment").random())
    return next((reign.name for reign in group.reigns if reign.until is None), "")


EXPERIMENT = Controls()
