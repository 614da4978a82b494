"""What ``python -m benchmarks election-zookeeper`` recorded of 16 nodes, and how F15 to F18 read it.  Spec: election 8.

The file is what the benchmark prints with ``--json``. A setting is ours, "holdfast", or ZooKeeper with so many servers, "zookeeper16".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from holdfast.errors import ConfigError
from holdfast.lab.experiment import Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS, STOCK = "holdfast", "zookeeper"
RECORD = "`python -m benchmarks election-zookeeper --json > FILE`"
MISSING = f"no run was given: record one with {RECORD}, then --set run=FILE"
PATH_MAX = 4096  # as Linux has it
ROUNDING = 4
STEP = 10  # seconds of one point of a picture

Series = dict[str, list[float]]  # one number for each second, of all nodes together; "at" is since the first process was started


class Calm(Struct, frozen=True):
    """Means of the time in which no process was killed, of all nodes together, once all had started."""

    seconds: float
    kbit: float  # per second, with the headers of IP
    kbit_std: float  # of single seconds
    payload_kbit: float
    cpu_percent: float  # of one core
    program_cpu_percent: float  # of that, of the programs that ask to lead
    rss_mib: float
    program_rss_mib: float
    pss_mib: float
    warm_rss_mib_max: float  # in the time before


class Usage(Struct, frozen=True):
    """What was used in each second."""

    series: Series


class Killed(Struct, frozen=True):
    """Kill -9 of the leader."""

    failover: float  # seconds until the next leader's first deed


class Silent(Struct, frozen=True):
    """Kill -9 of servers, or of agents with their programs."""

    silence: float  # the most seconds without a deed of any leader
    acts: bool  # one acted again before the time was over
    changed: bool  # it was another one


class Setting(Struct, frozen=True):
    """What was found of one. One that broke down has what came before."""

    calm: Calm | None = None
    usage: Usage | None = None
    killing: Usage | None = None
    kill: list[Killed] = []
    kill_server: list[Silent] = []
    kill_most: Silent | None = None


class Raw(Struct, frozen=True):
    """Of the benchmark's numbers, what F15 to F18 read."""

    nodes: int
    settings: dict[str, Setting]


class File(Struct, frozen=True):
    """As the benchmark prints it; other fields are for readers."""

    raw: Raw


class BesideParameters(Parameters, frozen=True, kw_only=True):
    """The file, and how large the run must have been."""

    run: Annotated[str, Meta(max_length=PATH_MAX)] = ""
    nodes: Annotated[int, Meta(ge=2, le=200)] = 16
    calm: Annotated[float, Meta(gt=0, le=86_400)] = 490.0  # seconds: ten minutes without the 100 s of the start, and looks that came late
    kills: Annotated[int, Meta(ge=1, le=1000)] = 10


class Beside(Experiment[BesideParameters]):
    """Judges a recorded run: nothing runs here."""

    parameters = BesideParameters
    seconds_per_cell = 0.1
    repetitions = ""
    recorded = True

    def cells(self, parameters: BesideParameters, seed: int) -> Sequence[Cell]:
        return rows(read(parameters.run)) if parameters.run else [{"setting": ""}]

    def measure(self, cell: Cell) -> Measured:
        return cell

    def judge(self, parameters: BesideParameters, results: Sequence[Measured]) -> Finding:
        if not parameters.run:
            return Finding({}, {}, False, (MISSING,))
        settings = {row["setting"]: msgspec.convert(row["found"], Setting) for row in results}
        misses = too_small(parameters, results[0]["nodes"], settings)
        if misses:
            return Finding({}, {}, False, shortened(misses))
        return self.judge_run(parameters, settings)

    def judge_run(self, parameters: BesideParameters, settings: Mapping[str, Setting]) -> Finding:
        """All settings are whole, in the order of their servers; ours is the first and ZooKeeper's with a server on every node the last."""
        raise NotImplementedError


def read(path: str) -> Raw:
    """Raises ``ConfigError``."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=File).raw
    except (OSError, msgspec.DecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"--set run={path}: {why}; accepted is the output of {RECORD}") from None


def rows(found: Raw) -> list[dict[str, Any]]:
    """One for each setting, ours first, then with more and more servers."""
    return [
        {"setting": name, "nodes": found.nodes, "found": msgspec.to_builtins(found.settings[name])}
        for name in sorted(found.settings, key=servers_of)
    ]


def servers_of(setting: str) -> int:
    return int(setting.removeprefix(STOCK) or 0) if setting.startswith(STOCK) else 0


def too_small(parameters: BesideParameters, nodes: int, settings: Mapping[str, Setting]) -> list[str]:
    """What is wanting of a run before it can be judged."""
    misses = [] if nodes == parameters.nodes else [f"{nodes} nodes, not {parameters.nodes}"]
    wanted = (OURS, f"{STOCK}{parameters.nodes}")
    misses += [f"{name} was not measured" for name in wanted if name not in settings]
    for name, found in settings.items():
        if found.calm is None or found.usage is None or found.killing is None:
            misses.append(f"{name} broke down")
        elif found.calm.seconds < parameters.calm:
            misses.append(f"{name}: {found.calm.seconds:g} s, not {parameters.calm:g}")
    return misses


def calm(settings: Mapping[str, Setting], value: Callable[[Calm], float]) -> dict[str, float]:
    """One number of each setting."""
    return {name: round(value(found.calm), ROUNDING) for name, found in settings.items() if found.calm is not None}


def over_ours(table: Mapping[str, float]) -> dict[str, float]:
    """How much less ours has than each other one, as the paper counts; negative where it has more."""
    return {name: round(1 - table[OURS] / value, ROUNDING) for name, value in table.items() if name != OURS}


def not_below(table: Mapping[str, float], what: str) -> list[str]:
    """A miss if ours is not below ZooKeeper's with a server on every node."""
    largest = max(table, key=servers_of)
    return [] if table[OURS] < table[largest] else [f"{what}: ours {table[OURS]:g}, {largest} {table[largest]:g}"]


def under_kills(settings: Mapping[str, Setting]) -> dict[str, Series]:
    """What was used in each second after the calm run: the later series has both."""
    found = {}
    for name, each in settings.items():
        if each.usage is not None and each.killing is not None:
            calm_until = each.usage.series["at"][-1]
            first = sum(at <= calm_until for at in each.killing.series["at"])
            found[name] = {key: values[first:] for key, values in each.killing.series.items()}
    return found


def over_time(series: Mapping[str, Series], key: str) -> list[dict[str, float]]:
    """Means of ten seconds each, one row for all settings, each of which counts from its own start."""
    tens: dict[int, dict[str, list[float]]] = {}
    for name, found in series.items():
        for at, value in zip(found["at"], found[key], strict=True):
            tens.setdefault(int(at // STEP), {}).setdefault(name, []).append(value)
    return [{"at": ten * STEP, **{name: round(fmean(values), ROUNDING) for name, values in of.items()}} for ten, of in sorted(tens.items())]


def lines(figure: Figure, rows: Sequence[Mapping[str, float]], what: str) -> None:
    """One line for each setting, over the seconds of a run."""
    axes = figure.subplots()
    for name in dict.fromkeys(name for row in rows for name in row if name != "at"):
        of = [row for row in rows if name in row]
        axes.plot([row["at"] for row in of], [row[name] for row in of], label=name, linewidth=1.0)
        axes.legend(fontsize=7)
    axes.set_xlabel("seconds since the first process was started")
    axes.set_ylabel(what)
