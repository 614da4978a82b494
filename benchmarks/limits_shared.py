"""One rate for eight processes of unequal wants, for `limits`; and what is left of it while something dies.

One process wants 900 permits per second, seven want 50 each, of 1000 per second in all. Max-min would give 650 and 50.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import show_progress
from benchmarks.limits_fleet import installed, workers
from benchmarks.limits_ways import OURS
from benchmarks.ring_fleet import now

SOON = 0.5  # seconds from an order until the first request
STEP = 0.1  # seconds between two windows that are looked at
TAIL = 1.0  # seconds that a run goes on after what is counted: a last window is whole


class Shared(NamedTuple):
    """How much of it."""

    ways: tuple[str, ...] = (OURS,)
    rate: float = 1000.0
    burst: float = 100.0
    wants: tuple[float, ...] = (900.0, *(50.0,) * 7)
    warm: float = 8.0  # seconds that do not count: views settle, the first process fills
    seconds: float = 20.0
    after: float = 6.0  # seconds after a kill
    kills: tuple[str, ...] = ("agent", "seat", "peer", "redis")  # of those that the way has
    preset: str = "lan"


Permits = Sequence[float]


def measure(size: Shared, folder: Path) -> dict[str, Any]:
    """Each way by itself, one after the other."""
    found = {}
    for way in size.ways:
        home = folder / way
        home.mkdir()
        found[way] = of_way(way, size, home)
    return found


def of_way(way: str, size: Shared, folder: Path) -> dict[str, Any]:
    count = len(size.wants)
    with installed(way, folder, count, size.rate, size.burst, size.preset) as it, workers(way, it, count, folder) as all_workers:
        show_progress(f"{way}: {size.seconds:g} s of load")
        at, permits, said = load(all_workers, size.wants, size.warm + size.seconds, folder)
        found: dict[str, Any] = shares(permits, at + size.warm, at + size.warm + size.seconds)
        found["errors"] = [each["errors"] for each in said]
    found["kills"] = {}
    for victim in (each for each in it.victims if each in size.kills):
        show_progress(f"{way}: {victim} is killed")
        home = folder / victim
        home.mkdir()
        found["kills"][victim] = one_kill(way, victim, size, home)
    return found


def one_kill(way: str, victim: str, size: Shared, folder: Path) -> dict[str, Any]:
    """In an installation of its own: what was killed before has no part in it."""
    count = len(size.wants)
    with installed(way, folder, count, size.rate, size.burst, size.preset) as it, workers(way, it, count, folder) as all_workers:
        seconds = size.warm + size.after
        at = order(all_workers, size.wants, seconds + TAIL, folder)
        time.sleep(max(0.0, at + size.warm - now()))
        killed_at = now()
        gone = it.kill(victim)
        if gone is not None:
            all_workers[gone].kill()
        living = [worker for number, worker in enumerate(all_workers) if number != gone]
        wants = [want for number, want in enumerate(size.wants) if number != gone]
        heard = [worker.permits() for worker in living]
    floors = [min(want, size.rate / count) for want in wants]
    return {
        "kept": least_kept([permits for permits, _ in heard], floors, killed_at, killed_at + size.after),
        "errors": sum(said["errors"] for _, said in heard),
        "first_error": next((said["first_error"] for _, said in heard if said["first_error"]), ""),
    }


def load(all_workers: Sequence[Any], wants: Sequence[float], seconds: float, folder: Path) -> tuple[float, list[array[float]], list[Any]]:
    """When it began, what each was let go, and what each says."""
    at = order(all_workers, wants, seconds + TAIL, folder)
    heard = [worker.permits() for worker in all_workers]
    return at, [permits for permits, _ in heard], [said for _, said in heard]


def order(all_workers: Sequence[Any], wants: Sequence[float], seconds: float, folder: Path) -> float:
    at = now() + SOON
    for number, (worker, want) in enumerate(zip(all_workers, wants, strict=True)):
        worker.order(want, at, at + seconds, folder / f"permits{number}")
    return at


def shares(permits: Sequence[Permits], at: float, end: float) -> dict[str, Any]:
    """Permits per second of all together and of each, and the most in any second."""
    counted = [within(each, at, end) / (end - at) for each in permits]
    merged = sorted(instant for each in permits for instant in each if at <= instant < end)
    return {"total": sum(counted), "each": counted, "small_min": min(counted[1:]), "peak_1s": peak(merged, 1.0)}


def within(permits: Permits, at: float, end: float) -> int:
    """How many; a worker's instants are in order."""
    return bisect_left(permits, end) - bisect_left(permits, at)


def peak(merged: Permits, seconds: float) -> int:
    """The most in any window of so many seconds, its beginning counted and its end not."""
    most = first = 0
    for number, instant in enumerate(merged):
        while merged[first] <= instant - seconds:
            first += 1
        most = max(most, number - first + 1)
    return most


def least_kept(permits: Sequence[Permits], floors: Sequence[float], at: float, end: float) -> float:
    """Of what each should have at least, the least share in any second between the two instants."""
    steps = int((end - at - 1.0) / STEP) + 1
    windows = [at + number * STEP for number in range(steps)]
    return min(min(1.0, within(each, start, start + 1.0) / floor) for each, floor in zip(permits, floors, strict=True) for start in windows)
