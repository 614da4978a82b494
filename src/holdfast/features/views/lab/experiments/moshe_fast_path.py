"""views/M1: how many changes are agreed in a single round while clients come and go, and how long does a change take?

Spec: views 5.4, 8 (M1), D3, D24; paper 003, 5.1 ("whose fast path can converge in a single communication round"). Three servers, about nine
clients. A change is fast if every server of the view proposed once since its delivery before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.events import Changing, Event, ViewChanged
from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.lab.measures import HEARTBEATS, LAN, NETWORKS, WAN, Rounds, form
from holdfast.features.views.lab.users import Habits
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.host import NodeId
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.links import Uniform
from holdfast.lab.measured import checked, completed, shortened, violations
from holdfast.lab.rates import wilson_interval
from holdfast.lab.samples import curves, draw_curves, quantile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERVERS, CLIENTS = 3, 9
FEWEST, MOST = 6, 12  # clients that are present; beyond, the next event is a join or an end
SLOW, FAST = 0.2, 1.0  # events per second
SHARES: Mapping[tuple[str, float], float] = {(LAN, SLOW): 0.95, (LAN, FAST): 0.95, (WAN, SLOW): 0.93, (WAN, FAST): 0.85}
PROTOTYPE: Mapping[tuple[str, float], float] = {(LAN, SLOW): 0.966, (LAN, FAST): 0.998, (WAN, SLOW): 0.952, (WAN, FAST): 0.906}
DELAYS_MAX = 2.0  # of one way, from startChange to the view, in the middle: one for the word, one for the proposals
FORMED_BY = 30.0
SOME = Meta(min_length=1, max_length=LIST_MAX)


class FastPathParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 8, M1."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 1
    events: Annotated[int, Meta(ge=10, le=100_000)] = 1000  # joins, leaves and crashes per run
    rates: Annotated[tuple[Annotated[float, Meta(ge=0.01, le=10.0)], ...], SOME] = (SLOW, FAST)  # of them per second


class FastPath(Experiment[FastPathParameters]):
    """Clients join, leave and crash at random moments."""

    id = "views/M1"
    name = "views/fast-path"
    title = "Most changes are agreed in one round"
    source = "paper 003, 5.1 (Moshe: single round, 98 % in its own paper); views 8, M1"
    criterion = (
        "CB1 to CB9 hold; fast changes: LAN at least 95 %, WAN 93 % at 0.2 events per second and 85 % at 1; from startChange to the view "
        "at most two mean one-way delays in the middle"
    )
    parameters = FastPathParameters
    seconds_per_cell = 6
    quick: ClassVar[Mapping[str, str]] = {"events": "30", "rates": "[1.0]"}

    def cells(self, parameters: FastPathParameters, seed: int) -> Sequence[Cell]:
        return [
            {"network": network, "rate": rate, "events": parameters.events, "seed": seed * SEEDS_MAX + number}
            for network in NETWORKS
            for rate in parameters.rates
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: FastPathParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        keys = {_key(row): (row["network"], row["rate"]) for row in rows}
        of = {key: [row for row in rows if _key(row) == key] for key in keys}
        taken = {key: [seconds for row in of[key] for seconds in row["seconds"]] for key in keys}
        changes = {key: (sum(row["fast"] for row in of[key]), sum(row["slow"] for row in of[key])) for key in keys}
        delivered = {key: (sum(row["fast deliveries"] for row in of[key]), sum(row["slow deliveries"] for row in of[key])) for key in keys}
        measured: dict[str, Any] = {
            "changes": {key: sum(changes[key]) for key in keys},
            "fast share": {key: _share(*changes[key]) for key in keys},
            "95 % of it": {key: [round(end, 4) for end in wilson_interval(changes[key][0], sum(changes[key]))] for key in keys},
            "fast share of deliveries": {key: _share(*delivered[key]) for key in keys},
            "startChange to view, p50": {key: round(quantile(taken[key], 0.5), 6) for key in keys if taken[key]},
            "startChange to view, p99": {key: round(quantile(taken[key], 0.99), 6) for key in keys if taken[key]},
            "curves": curves(taken),
        }
        expected = {
            "fast share": {key: SHARES[which] for key, which in keys.items() if which in SHARES},
            "fast share of deliveries": {key: PROTOTYPE[which] for key, which in keys.items() if which in PROTOTYPE},
            "startChange to view, p50": {key: DELAYS_MAX * mean_delay(network) for key, (network, _) in keys.items()},
        }
        misses = [*violations(results), *_misses(measured, expected, keys)]
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        draw_curves(left, finding.measured["curves"])
        left.set_xscale("log")
        left.set_xlabel("seconds from startChange to the view, at a client")
        left.set_ylabel("share of the changes")
        left.legend(loc="lower right")
        shares, accepted = finding.measured["fast share"], finding.expected["fast share"]
        right.bar(range(len(shares)), [100 * share for share in shares.values()], label="ours")
        right.plot(
            [place for place, key in enumerate(shares) if key in accepted],
            [100 * share for share in accepted.values()],
            "_",
            color="#7b8794",
            markersize=30,
            markeredgewidth=2,
            label="at least",
        )
        right.set_xticks(range(len(shares)), [key.replace(", ", "\n") for key in shares])
        right.set_ylabel("% of the changes on the fast path")
        right.set_ylim(0, 100)
        right.legend(loc="upper center", bbox_to_anchor=(0.5, 1.1), ncols=2)


def mean_delay(network: str) -> float:
    delay = NETWORKS[network].delay
    assert isinstance(delay, Uniform)
    return (delay.low + delay.high) / 2


class Churn:
    """Clients that join, leave and crash."""

    def __init__(self, group: ViewGroup, rate: float) -> None:
        self.group, self._rate, self._random = group, rate, group.world.random
        self.away: list[str] = []  # left or crashed
        self.present = list(group.clients)
        for number in range(len(group.clients), MOST):
            group.clients.append(f"c{number}")
            self.away.append(f"c{number}")

    def next(self) -> None:
        """Wait for the next event, and let it happen."""
        self.group.run(self._random.expovariate(self._rate))
        joins = self._random.random() < 0.5
        if len(self.present) <= FEWEST or (joins and len(self.present) < MOST):
            self._join()
        else:
            self._end()

    def _join(self) -> None:
        name = self.away.pop(self._random.randrange(len(self.away)))
        self.present.append(name)
        nodes = self.group.world.nodes
        if name in nodes and not nodes[name].dead:
            self.group.crash(name)  # It left politely; the next life of it joins.
        self.group.start(name)

    def _end(self) -> None:
        name = self.present.pop(self._random.randrange(len(self.present)))
        self.away.append(name)
        if self._random.random() < 0.5:
            self.group.crash(name)
        else:
            host = self.group.world.nodes[name]
            self.group.world.step(host, self.group.node(name).withdraw)


class Latencies:
    """From the word that a change began to the view, at every client."""

    def __init__(self, group: ViewGroup) -> None:
        self.seconds: list[float] = []
        self._begun: dict[NodeId, float] = {}
        self._world = group.world
        self._world.listeners.append(self._on_event)

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, Changing):
            self._begun[host.me] = self._world.now
        elif isinstance(event, ViewChanged) and host.me in self._begun:
            self.seconds.append(round(self._world.now - self._begun.pop(host.me), 6))


def _play(cell: Cell) -> Measured:
    config = ViewsConfig(heartbeat=HEARTBEATS[cell["network"]])
    group = ViewGroup(cell["seed"], SERVERS, CLIENTS, config=config, link=NETWORKS[cell["network"]], habits=Habits(says=0.0))
    form(group, FORMED_BY)
    group.run(2 * config.settle)
    rounds, latencies, churn = Rounds(group), Latencies(group), Churn(group, cell["rate"])
    for _ in range(cell["events"]):
        churn.next()
    group.run(2 * config.client_timeout)
    changes: Counter[bool] = rounds.changes
    return {
        **cell,
        "fast": changes[True],
        "slow": changes[False],
        "fast deliveries": rounds.deliveries[True],
        "slow deliveries": rounds.deliveries[False],
        "seconds": latencies.seconds,
    }


def _key(row: Measured) -> str:
    return f"{row['network']}, {row['rate']:g}/s"


def _share(fast: int, slow: int) -> float:
    return round(fast / max(1, fast + slow), 4)


def _misses(measured: Mapping[str, Any], expected: Mapping[str, Any], keys: Mapping[str, Any]) -> list[str]:
    notes = []
    for key in keys:
        share, least = measured["fast share"][key], expected["fast share"].get(key, 0.0)
        if share < least:
            notes.append(
                f"{key}: {100 * share:.1f} % of {measured['changes'][key]} changes were fast, accepted are at least {100 * least:g} %"
            )
        middle, most = measured["startChange to view, p50"].get(key), expected["startChange to view, p50"][key]
        if middle is None or middle > most:
            told = "nothing" if middle is None else f"{1000 * middle:.1f} ms"
            notes.append(f"{key}: {told} from startChange to the view in the middle, accepted are at most {1000 * most:g} ms")
    return notes


EXPERIMENT = FastPath()
