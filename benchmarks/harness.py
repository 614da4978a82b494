"""What all benchmarks share: rounds in turn, best of several, goals, a verdict.

The speed of a core changes by a factor of two from second to second here. So contestants take turns (A B A B ...), each
keeps its best round, time is CPU time, and only the ratio of two contestants of one run means anything.
"""

from __future__ import annotations

import gc
import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, Literal

PASS, MISS = "pass", "miss"
EXIT = {PASS: 0, MISS: 1}
COMPARED = ("msgspec", "cryptography", "simpy")  # libraries whose version a number depends on

ROOT = Path(__file__).resolve().parent.parent  # where `python -m benchmarks...` finds itself

Contestant = Callable[[], float]  # one round: does the work, returns the CPU seconds of the part that counts


@dataclass(frozen=True)
class Goal:
    """Which way a ratio must lie of a bound."""

    bound: float
    way: Literal["at_least", "at_most"]

    def met_by(self, ratio: float | None) -> bool:
        """What could not be measured meets no goal (H241)."""
        if ratio is None:
            return False
        return ratio >= self.bound if self.way == "at_least" else ratio <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.way == 'at_least' else '<='} {self.bound:g}"


def at_least(bound: float) -> Goal:
    return Goal(bound, "at_least")


def at_most(bound: float) -> Goal:
    return Goal(bound, "at_most")


@dataclass(frozen=True)
class Report:
    """What one benchmark found. ``problems`` are reasons for which the ratios mean nothing; any of them is a miss."""

    benchmark: str
    goals: Mapping[str, Goal]
    ratios: Mapping[str, float | None]  # None: it could not be measured
    raw: Mapping[str, Any]
    problems: Sequence[str] = field(default=())

    @property
    def verdict(self) -> str:
        missed = [name for name, goal in self.goals.items() if not goal.met_by(self.ratios[name])]
        return MISS if missed or self.problems else PASS

    @property
    def exit_code(self) -> int:
        return EXIT[self.verdict]

    def as_json(self) -> str:
        goals = {name: {goal.way: goal.bound} for name, goal in self.goals.items()}
        ratios = {name: None if ratio is None else round(ratio, 4) for name, ratio in self.ratios.items()}
        found = {"benchmark": self.benchmark, "ratios": ratios, "goals": goals, "verdict": self.verdict}
        return json.dumps({**found, "problems": list(self.problems), "raw": self.raw, "versions": versions()})

    def as_text(self) -> str:
        lines = [f"{self.benchmark}: {self.verdict}"]
        for name, found in self.ratios.items():
            goal = self.goals.get(name)
            judged = "" if goal is None else f"   goal {goal!s:8}  {PASS if goal.met_by(found) else MISS}"
            shown = f"{'not measured':>10}" if found is None else f"{found:10.4f}"
            lines.append(f"  {name:28} {shown}{judged}".rstrip())
        lines += [f"  PROBLEM: {problem}" for problem in self.problems]
        for name, value in self.raw.items():
            lines += _shown(name, value)
        return "\n".join([*lines, f"  {', '.join(f'{name} {number}' for name, number in versions().items())}"])


def take_turns(contestants: Mapping[str, Contestant], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each contestant, one per round. The first round of each is thrown away: it fills caches."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    gc.collect()
    for number in range(rounds + 1):
        for name, contestant in contestants.items():
            show_progress(f"round {number} of {rounds}: {name}")
            took = contestant()
            if number:
                seconds[name].append(took)
    return seconds


def ratio(seconds: Mapping[str, Sequence[float]], of: str, to: str) -> float:
    """Best round to best round."""
    return min(seconds[of]) / min(seconds[to])


def median_ratio(seconds: Mapping[str, Sequence[float]], of: str, to: str) -> float:
    """Of the ratios within each round: for those who distrust the best."""
    return median(one / other for one, other in zip(seconds[of], seconds[to], strict=True))


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in COMPARED}}


def show_progress(line: str) -> None:
    """One line that overwrites itself, for people only."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def _shown(name: str, value: Any) -> list[str]:
    """Lines for people. The single rounds are left to --json."""
    if isinstance(value, dict):
        rows = {f"{name} {key}": each for key, each in value.items() if not isinstance(each, list)}
        return [line for row, each in rows.items() for line in _shown(row, each)]
    if isinstance(value, list):
        value = " ".join(f"{each:g}" for each in value)
    return [f"  {name:55} {value}"]
