"""detection/E10: the larger the group, the sooner a member demotes a live leader by mistake.

Spec: fast-detection 8 (E10); paper 002, section 5: "any process could (mistakenly) timeout the current leader ... amplification".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.errors import ConfigError
from holdfast.events import Event, LeaderChanged
from holdfast.host import FANOUT_MAX, Address, Host, NodeId
from holdfast.lab.experiment import LIST_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.host import LabHost
from holdfast.lab.links import Exponential, Link
from holdfast.lab.network import PORT
from holdfast.lab.rates import rate_interval
from holdfast.lab.world import World
from holdfast.papers.detection.protocol.omega import Omega, RoundEntered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALPHA, LATENCY, DELAY = 1.0, 0.05, 0.01  # section 8: t_itv, t_lat, mean of the exponential delays
TOLERANCE = 0.25
RARE = 0.1  # above, two followers time out at once too often for the formula, which adds them up
RATE, LOW, HIGH = "demotions per heartbeat", "95 % from", "95 % to"
RATE_MIN = 1e-4  # demotions per heartbeat; below, a cell waits for days
RATE_MAX = 1.0  # above, one is silent before all agree, and nothing is ever counted
SOME = Meta(min_length=1, max_length=LIST_MAX)
PARTS = 4  # pieces of the work per cell, so that other processes can help
CHUNK = 50 * ALPHA  # seconds between two looks at whether enough was seen


class OmegaAmplificationParameters(Parameters, frozen=True, kw_only=True):
    """The grid of section 8, E10. Every demotion is a repetition."""

    loss: Annotated[float, Meta(ge=0.01, le=0.4)] = 0.2  # p
    members: Annotated[tuple[Annotated[int, Meta(ge=2, le=FANOUT_MAX)], ...], SOME] = (3, 7, 15)
    missed: Annotated[tuple[Annotated[int, Meta(ge=2, le=10)], ...], SOME] = (2, 3)  # m: OKs missed in a row before the next round
    demotions: Annotated[int, Meta(ge=20, le=1_000_000)] = 2000  # per cell

    def __post_init__(self) -> None:
        rates = [formula(n, m, self.loss) for n in self.members for m in self.missed]
        if not RATE_MIN <= min(rates) <= max(rates) <= RATE_MAX:
            told = f"between {RATE_MIN:g} and {RATE_MAX:g} is accepted, {min(rates):.3g} to {max(rates):.3g} was given"
            raise ConfigError(f"members, missed and loss: (n - 1) p^m (1 - p) {told}")


class OmegaAmplification(Experiment[OmegaAmplificationParameters]):
    """No process dies, messages get lost; how many OKs does a leader that all named say until a member demotes it?"""

    id = "detection/E10"
    name = "detection/omega-amplification"
    title = "Omega alone: every follower can demote a live leader"
    source = "paper 002, section 5; fast-detection 8, E10"
    criterion = "demotions per heartbeat within 25 % of (n - 1) p^m (1 - p) wherever that is below 0.1"
    parameters = OmegaAmplificationParameters
    seconds_per_cell = 0.18
    repetitions = "demotions"
    quick: ClassVar[Mapping[str, str]] = {"members": "[3,7]", "demotions": "200"}

    def cells(self, parameters: OmegaAmplificationParameters, seed: int) -> Sequence[Cell]:
        return [
            {
                "n": n,
                "m": m,
                # m missed OKs: the m-th is due m alpha after the last that came, and t_lat later it counts as lost.
                "patience": m + LATENCY / ALPHA,
                "loss": parameters.loss,
                "demotions": -(-parameters.demotions // PARTS),
                "seed": seed * 1_000_000 + n * 10_000 + m * 100 + part,
            }
            for m in parameters.missed
            for n in parameters.members
            for part in range(PARTS)
        ]

    def measure(self, cell: Cell) -> Measured:
        names = [f"n{i:02}" for i in range(cell["n"])]
        members = {name: Address(name, PORT) for name in names}

        def build(host: Host) -> list[Omega]:
            return [Omega(host, members, alpha=ALPHA, patience=cell["patience"])]

        world = World(cell["seed"], build, names=names, link=Link(Exponential(DELAY), loss=cell["loss"]))
        reigns = Reigns(world)
        while reigns.demotions < cell["demotions"]:
            world.run(world.now + CHUNK)
        return {"n": cell["n"], "m": cell["m"], "heartbeats": reigns.seconds / ALPHA, "demotions": reigns.demotions}

    def judge(self, parameters: OmegaAmplificationParameters, results: Sequence[Measured]) -> Finding:
        cells = dict.fromkeys((row["n"], row["m"]) for row in results)
        rows = {_key(n, m): _summed(n, m, results) for n, m in cells}
        expected = {_key(n, m): round(formula(n, m, parameters.loss), 6) for n, m in cells}
        misses = [
            f"{key}: {row[RATE]:.4f} (95 %: {row[LOW]:.4f} to {row[HIGH]:.4f}), expected {expected[key]:.4f} within 25 %"
            for key, row in rows.items()
            if expected[key] < RARE and abs(row[RATE] - expected[key]) > TOLERANCE * expected[key]
        ]
        measured = {what: {key: row[what] for key, row in rows.items()} for what in (RATE, LOW, HIGH, "demotions", "heartbeats")}
        return Finding(measured, {RATE: expected}, not misses, tuple(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        cells = {key: tuple(int(part.split("=")[1]) for part in key.split(", ")) for key in finding.measured[RATE]}
        for m in dict.fromkeys(m for _, m in cells.values()):
            line = {key: n for key, (n, each) in cells.items() if each == m}
            rate, low, high = ([finding.measured[what][key] for key in line] for what in (RATE, LOW, HIGH))
            errors = [[a - b for a, b in zip(rate, low, strict=True)], [b - a for a, b in zip(rate, high, strict=True)]]
            drawn = axes.errorbar(list(line.values()), rate, yerr=errors, marker="o", capsize=4, label=f"measured, m = {m}")
            formulas = [finding.expected[RATE][key] for key in line]
            axes.plot(list(line.values()), formulas, linestyle="--", color=drawn[0].get_color(), alpha=0.6)
        axes.plot([], [], linestyle="--", color="#7b8794", label="(n - 1) p^m (1 - p)")
        axes.axhline(RARE, color="#7b8794", linewidth=0.8, linestyle=":")
        axes.set_yscale("log")
        axes.set_xlabel("n: members")
        axes.set_ylabel("demotions of a live leader per heartbeat")
        axes.legend(loc="lower right")


class Reigns:
    """Counts the time in which all name one leader, and how often a silence ended it."""

    def __init__(self, world: World) -> None:
        self.demotions = 0
        self.seconds = 0.0
        self._world = world
        self._leaders: dict[str, NodeId | None] = dict.fromkeys(world.nodes)
        self._since: float | None = None
        world.listeners.append(self._on_event)

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, LeaderChanged):
            self._leaders[host.me.name] = event.leader
            if event.leader is not None and len(set(self._leaders.values())) == 1:
                self._since = self._world.now
        elif isinstance(event, RoundEntered) and self._since is not None:
            self.seconds += self._world.now - self._since
            self.demotions += 1
            self._since = None


def formula(n: int, m: int, loss: float) -> float:
    """Per heartbeat: it reached one of n - 1 followers, and the next m do not reach the same one."""
    return (n - 1) * loss**m * (1 - loss)


def _summed(n: int, m: int, results: Sequence[Measured]) -> dict[str, Any]:
    parts = [row for row in results if (row["n"], row["m"]) == (n, m)]
    heartbeats, demotions = sum(row["heartbeats"] for row in parts), sum(row["demotions"] for row in parts)
    low, high = rate_interval(demotions, round(heartbeats))
    return {RATE: demotions / heartbeats, LOW: low, HIGH: high, "demotions": demotions, "heartbeats": round(heartbeats)}


def _key(n: int, m: int) -> str:
    return f"n={n}, m={m}"


EXPERIMENT = OmegaAmplification()
