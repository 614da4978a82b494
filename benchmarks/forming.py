"""How long a group takes to form: all agents started at once, until every one of them lists all of them; and how long a restart takes.

Times are those of the agents' own log lines (wall clock, one machine), so nothing is asked while it is measured. A start counts from the
moment the last process was started, with the import of the program and all else that a start costs; `after the last start-up` counts from
the last agent's line "started". A restart counts from the new life's line "started": what is before it is the start of a Python process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from compileall import compile_dir
from datetime import datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import holdfast
from benchmarks.agent_fleet import SEEDS, AgentProcess
from benchmarks.harness import Goal, Report, at_most, show_progress
from benchmarks.ring_fleet import PATIENCE, NeverHappened, free_addresses

LOOK_INTERVAL = 0.25  # seconds between two looks at the logs; what they say does not depend on it
LIMITS = {3: 2.0, 5: 2.0, 16: 3.0, 64: 10.0}  # seconds, by agents
RESTART_LIMIT = 0.5  # seconds
PRESETS = ("lan", "local")
STARTS = 50
STARTS_OF_MANY, MANY = 3, 64  # so many starts of groups of this size and above
GOALS: dict[str, Goal] = {"worst_over_limit": at_most(1.0), "restart_over_limit": at_most(1.0)}


class Size(NamedTuple):
    """What one run measures."""

    agents: tuple[int, ...] = (3, 5, 16, 64)
    presets: tuple[str, ...] = PRESETS
    starts: int = STARTS


SIZE = Size()
QUICK = Size(agents=(3,), presets=("local",), starts=2)


class Formed(NamedTuple):
    """One start of one group, in seconds."""

    complete: float  # from the start of the last process to the last list that became complete
    after_start_up: float  # from the last agent's word that it runs
    restart_killed: float  # from the new life's word that it runs, until all the others list it; the former life was killed (kill -9)
    restart_left: float  # the former life left politely


def run(rounds: int | None = None, size: Size = SIZE, agents: int | None = None, preset: str | None = None) -> Report:
    """``rounds``: starts of each group; ``agents`` and ``preset``: only these."""
    compile_dir(Path(str(holdfast.__file__)).parent, quiet=1)  # As after an installation: no agent compiles the program.
    sizes = size.agents if agents is None else (agents,)
    presets = size.presets if preset is None else (preset,)
    starts, problems, raw, over, restarts = rounds or size.starts, list[str](), dict[str, Any](), list[float](), list[float]()
    for count in sizes:
        for each in presets:
            # Fewer of the large ones, which take a quarter of a minute each.
            wanted = min(starts, STARTS_OF_MANY) if count >= MANY and rounds is None else starts
            found, missing = _starts(count, each, wanted)
            problems += missing
            if found:
                limit = _limit(count)
                over.append(max(formed.complete for formed in found) / limit)
                restarts += [max(formed.restart_killed, formed.restart_left) / RESTART_LIMIT for formed in found]
                raw[f"{count} agents, {each}"] = _summed(found, limit)
    ratios = {"worst_over_limit": max(over, default=0.0), "restart_over_limit": max(restarts, default=0.0)}
    return Report("forming", GOALS, ratios, raw, problems)


def _starts(count: int, preset: str, starts: int) -> tuple[list[Formed], list[str]]:
    found, problems = list[Formed](), list[str]()
    for number in range(starts):
        show_progress(f"{count} agents, {preset}: start {number + 1} of {starts}")
        with TemporaryDirectory() as folder:
            try:
                found.append(_form(count, preset, Path(folder)))
            except NeverHappened as error:
                problems.append(f"{count} agents, {preset}, start {number + 1}: {error}")
    return found, problems


def _limit(count: int) -> float:
    """That of the next larger group that has one."""
    return next((limit for agents, limit in sorted(LIMITS.items()) if agents >= count), max(LIMITS.values()))


def _summed(found: Sequence[Formed], limit: float) -> dict[str, Any]:
    times = sorted(formed.complete for formed in found)
    return {
        "starts": len(found),
        f"within {limit:g} s": sum(took <= limit for took in times),
        "median s": round(median(times), 3),
        "worst s": round(times[-1], 3),
        "worst after the last start-up s": round(max(formed.after_start_up for formed in found), 3),
        "worst restart after kill -9 s": round(max(formed.restart_killed for formed in found), 3),
        "worst restart after leave s": round(max(formed.restart_left for formed in found), 3),
        "all": [round(took, 3) for took in times],
    }


class Group:
    """Agents on loopback, each with its log; an agent that is started again goes on with its directory."""

    def __init__(self, count: int, preset: str, folder: Path) -> None:
        self.names = [f"a{number}" for number in range(count)]
        self._addresses = dict(zip(self.names, free_addresses(count), strict=True))
        self._preset, self._folder = preset, folder
        self._lives: dict[str, AgentProcess] = {}
        self._homes: dict[str, Path] = {}  # of the present life: its log
        self._started = 0

    def start(self, name: str) -> float:
        """Returns when its process was started, by the clock of the logs."""
        self._started += 1
        home = self._homes[name] = self._folder / f"{self._started}"
        seeds = list(self._addresses.values())[:SEEDS]
        self._lives[name] = AgentProcess(
            home, name=name, bind=self._addresses[name], seeds=seeds, preset=self._preset,
            state_dir=str(self._folder / f"state-{name}"), log_level="info", log_format="json",
        )  # fmt: skip
        return time.time()

    def kill(self, name: str) -> None:
        self._lives.pop(name).end()

    def leave(self, name: str) -> None:
        self._lives.pop(name).leave()

    def end(self) -> None:
        for agent in self._lives.values():
            agent.end()

    def lines(self, name: str) -> list[dict[str, Any]]:
        text = (self._homes[name] / "log").read_text()
        return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]

    def until(self, when: Callable[[], float | None], what: str) -> float:
        """Wait until the logs say when it was."""
        end_at = time.monotonic() + PATIENCE
        while (at := when()) is None:
            if time.monotonic() >= end_at:
                raise NeverHappened(f"never happened: {what}")
            for agent in self._lives.values():
                agent.check()
            time.sleep(LOOK_INTERVAL)
        return at

    def complete_at(self) -> float | None:
        """When the last of all lists became complete."""
        times = [_complete_at(self.lines(name), name, set(self.names)) for name in self.names]
        return None if None in times else max(at for at in times if at is not None)

    def said_at(self, name: str, event: str) -> float | None:
        return next((_at(line) for line in self.lines(name) if line["event"] == event), None)

    def listed_at(self, name: str, boot: int) -> float | None:
        """When the last of the others listed this life."""
        life = f"{name}#{boot}"
        times: list[float | None] = []
        for other in self.names:
            if other != name:
                joined = (_at(line) for line in self.lines(other) if line["event"] == "Joined" and line["member"] == life)
                times.append(next(joined, None))
        return None if None in times else max(at for at in times if at is not None)

    def boot(self, name: str) -> int:
        return next(int(line["boot"]) for line in self.lines(name) if line["event"] == "started")


def _form(count: int, preset: str, folder: Path) -> Formed:
    group = Group(count, preset, folder)
    try:
        last_start = max([group.start(name) for name in group.names])
        complete = group.until(group.complete_at, f"{count} agents list each other")
        started = max(group.until(lambda: group.said_at(name, "started"), f"{name} runs") for name in group.names)  # noqa: B023 - called here
        killed = _restart(group, group.names[-1], group.kill)
        left = _restart(group, group.names[count // 2], group.leave)
        return Formed(complete - last_start, max(0.0, complete - started), killed, left)
    finally:
        group.end()


def _restart(group: Group, name: str, end: Callable[[str], None]) -> float:
    end(name)
    group.start(name)
    started_at = group.until(lambda: group.said_at(name, "started"), f"{name} runs again")
    listed_at = group.until(lambda: group.listed_at(name, group.boot(name)), f"{name} is in all lists again")
    return max(0.0, listed_at - started_at)


def _complete_at(lines: Sequence[Mapping[str, Any]], me: str, names: set[str]) -> float | None:
    seen = set[str]()
    for line in lines:
        if line["event"] == "BecameMember":
            seen.add(me)
        elif line["event"] == "Joined":
            seen.add(str(line["member"]).partition("#")[0])
        if seen >= names:
            return _at(line)
    return None


def _at(line: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(line["at"]).timestamp()
