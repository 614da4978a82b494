"""Groups of real members for `gossip`, of 16 to 1000, each many to a process: forming, idle costs, crashes, a partition and its heal.

All groups are there at the same time and idle at the same time, so a machine that is busy or slow is so for all of them. What happens
to one happens while the others are idle. The two halves of a group have loopback addresses of their own, and packets between the two are
dropped while it is cut.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import ROOT, show_progress
from benchmarks.ring_fleet import NeverHappened, free_addresses, now
from benchmarks.views_fleet import can_cut, cut, heal
from holdfast.wire.keys import generate

SEEDS = 3
PORTS_FROM = 20_000  # below those that the kernel gives to connections
NO_CUT = "no network namespace or no nft here, so no group was cut in halves: run it as root, with iproute2 and nftables"
COUNTED = ("datagrams", "bytes", "turns", "probes", "cpu", "suspicions")


class Real(NamedTuple):
    """How much of it."""

    sizes: tuple[int, ...] = (16, 128, 1000)
    processes: int = 4  # of each group, at most
    period: float = 1.0  # T
    idle_seconds: float = 60.0
    at_once: int = 128  # members that begin to join at the same time; those of a larger group come one after another
    joins_per_second: float = 5.0  # of these: each of a thousand has to hear of each other one, on one machine
    within: float = 600.0  # seconds until a group that does not come to its goal is given up
    cuts: tuple[int, ...] = (16, 128, 1000)  # sizes that are cut in halves


class Group:
    """One group, in a few processes. The first half of its members is at one address, the second half at another one."""

    def __init__(self, number: int, size: int, real: Real, key: str) -> None:
        self.size, self._real = size, real
        self.living = size
        self.halves = (f"127.0.{number + 1}.2", f"127.0.{number + 1}.3")
        self.names = names = [f"m{at:05}" for at in range(size)]
        places = self._places(names)
        seeds = [places[name] for name in names[:SEEDS]]
        count = min(real.processes, size)
        shares = [names[at * size // count : (at + 1) * size // count] for at in range(count)]
        self._processes = [
            _started({"members": {n: places[n] for n in share}, "seeds": seeds, "period": real.period, "key": key}) for share in shares
        ]
        self._victims = [share[::-1] for share in shares]  # of each process the last ones, which are no seeds
        self._empty = [0] * count

    def begin(self) -> None:
        self._empty = [answer["rss"] for answer in self._answers()]

    def all_do(self, **order: Any) -> list[dict[str, Any]]:
        """The same order to each process, at once."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
        return self._answers()

    def victims(self, count: int) -> list[str]:
        """So many members that live, from each process in turn."""
        found: list[str] = []
        while len(found) < count:
            share = max(self._victims, key=len)
            found.append(share.pop(0))
        return found

    def counts(self) -> dict[str, float]:
        answers = self.all_do(do="counts")
        sums: dict[str, float] = {name: sum(answer[name] for answer in answers) for name in COUNTED}
        sums["rss"] = sum(answer["rss"] - empty for answer, empty in zip(answers, self._empty, strict=True))
        return {**sums, "at": now()}

    def until(self, what: str, **order: Any) -> float:
        """When it was so in all processes."""
        answers = self.all_do(**order, within=self._real.within)
        missing = [answer for answer in answers if answer["at"] is None]
        if missing:
            raise NeverHappened(f"{self.size} members: not within {self._real.within:g} s: {what}; {missing[0]}")
        return max(float(answer["at"]) for answer in answers)

    def end(self) -> None:
        for process in self._processes:
            with suppress(BrokenPipeError):
                assert process.stdin is not None
                process.stdin.close()
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def _places(self, names: Sequence[str]) -> dict[str, str]:
        if os.getpid() != 1:
            return dict(zip(names, free_addresses(len(names)), strict=True))
        half = (len(names) + 1) // 2
        return {name: f"{self.halves[at >= half]}:{PORTS_FROM + at}" for at, name in enumerate(names)}

    def _answers(self) -> list[dict[str, Any]]:
        answers = []
        for process in self._processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise NeverHappened(f"{self.size} members: a process ended with {process.wait()}; what it said is above")
            answers.append(json.loads(line))
        return answers


def measure(real: Real, folder: Path) -> dict[str, Any]:
    """By size. What did not come about is a problem, and the rest goes on."""
    del folder
    found: dict[str, dict[str, Any]] = {str(size): {} for size in real.sizes}
    problems: list[str] = []
    with _groups(real) as groups:
        for group in groups:
            _tried(problems, lambda group=group: found[str(group.size)].update(_formed(group)))  # type: ignore[misc]
        show_progress("all groups are idle")
        for group, idle in zip(groups, _idle(groups, real.idle_seconds), strict=True):
            found[str(group.size)]["idle"] = idle
        for group in groups:
            for what, count in (("crash", 1), ("crashes", max(1, group.size // 10))):
                show_progress(f"{group.size} members: {count} crash")
                _tried(problems, lambda group=group, what=what, count=count: found[str(group.size)].update({what: _crashed(group, count)}))  # type: ignore[misc]
        if real.cuts and not can_cut():
            problems.append(NO_CUT)
        for group in groups:
            if group.size in real.cuts and can_cut():
                _tried(problems, lambda group=group: found[str(group.size)].update(_cut(group)))  # type: ignore[misc]
    return {"sizes": found, "problems": problems}


def _formed(group: Group) -> dict[str, Any]:
    show_progress(f"{group.size} members form a group")
    before = group.counts()
    joined_at = _joined(group)
    at = group.until("each lists all", do="sized", count=group.size)
    after = group.counts()
    calm_at = group.until("each is settled", do="calm")
    return {
        "form": {
            "seconds": at - before["at"],
            "after_last": at - joined_at,
            "settled": calm_at - before["at"],
            **_per_member(before, after, group.size),
        }
    }


def _joined(group: Group) -> float:
    """When the last one began to join."""
    real = group._real
    begun_at = now()
    batch = group.size if group.size <= real.at_once else 1
    for first in range(0, group.size, batch):
        time.sleep(max(0.0, begun_at + first / real.joins_per_second - now()))
        group.all_do(do="join", names=group.names[first : first + batch])
    return now()


def _idle(groups: Sequence[Group], seconds: float) -> list[dict[str, float]]:
    before = [group.counts() for group in groups]
    time.sleep(seconds)
    found = []
    for group, early in zip(groups, before, strict=True):
        after = group.counts()
        took = after["at"] - early["at"]
        spent = _per_member(early, after, group.living)
        rates = {name: spent[name] / took for name in COUNTED}
        found.append({**rates, "turns_per_probe": spent["turns"] / spent["probes"], "rss_mib": after["rss"] / group.size / (1 << 20)})
    return found


def _crashed(group: Group, count: int) -> dict[str, Any]:
    names = group.victims(count)
    before = group.counts()
    at = min(answer["at"] for answer in group.all_do(do="crash", names=names))
    group.living -= count
    answers = group.all_do(do="dead", names=names, within=group_within(group))
    if any(answer["last"] is None for answer in answers):
        raise NeverHappened(
            f"{group.size} members: {count} crashed, and not all others hold them for dead within {group_within(group):g} s"
        )
    after = group.counts()
    return {
        "crashed": count,
        "first": min(answer["first"] for answer in answers) - at,
        "last": max(answer["last"] for answer in answers) - at,
        "false": sorted({name for answer in answers for name in answer["false"]}),
        **_per_member(before, after, group.living),
    }


def _cut(group: Group) -> dict[str, Any]:
    show_progress(f"{group.size} members are cut in halves")
    group.until("no news is left", do="calm")
    before = group.counts()
    cut_at = now()
    cut(*(f"{half}:0" for half in group.halves))
    try:
        alone_at = group.until("each half lists itself", do="halved", own=list(group.halves))
    finally:
        heal()
    alone = group.counts()
    healed_at = now()
    whole_at = group.until("each lists all again", do="sized", count=group.living)
    after = group.counts()
    return {
        "cut": {"seconds": alone_at - cut_at, **_per_member(before, alone, group.living)},
        "heal": {"seconds": whole_at - healed_at, **_per_member(alone, after, group.living)},
    }


def group_within(group: Group) -> float:
    return group._real.within


def _per_member(before: Mapping[str, float], after: Mapping[str, float], members: int) -> dict[str, float]:
    return {name: (after[name] - before[name]) / members for name in COUNTED}


def _tried(problems: list[str], part: Callable[[], None]) -> None:
    try:
        part()
    except NeverHappened as error:
        problems.append(str(error))


def _started(plan: Mapping[str, Any]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.gossip_members"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(plan) + "\n")  # longer than a command line may be
    process.stdin.flush()
    return process


@contextmanager
def _groups(real: Real) -> Iterator[list[Group]]:
    key = generate()
    groups: list[Group] = []
    try:
        for number, size in enumerate(real.sizes):
            groups.append(Group(number, size, real, key))
        for group in groups:
            group.begin()
        yield groups
    finally:
        for group in groups:
            group.end()
