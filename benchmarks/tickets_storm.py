"""`tickets-storm`: tickets under fire, with real processes. Does one ever have two users at a time?

Spec: tickets G1, G3. Five agents, three of them seats, one pool of eight tickets, twenty clients that take and give
back at random. Meanwhile agents are killed with -9 and come back, stopped and continued, cut off from each other; clients are killed and
stopped. A recorder outside compares what the clients wrote. One storm again:

    python -m benchmarks.tickets_storm 120 7            seconds and seed; JSON
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from benchmarks.harness import ROOT, Report, at_least, at_most, show_progress
from benchmarks.leadership_side import LOOPBACK_UP, namespaces
from benchmarks.ring_fleet import NeverHappened, now
from benchmarks.tickets_storm_fleet import Crew, Storm, Weather
from benchmarks.tickets_storm_record import START, late, lines, overlaps, shrunk, uses

GOALS = {
    "used_by_two": at_most(0),
    "tokens_not_growing": at_most(0),
    "used_after_deadline": at_most(0),
    "clients_served_after": at_least(1),
}
ROUNDS = 1  # storms
SERVED_WITHIN = 60.0  # seconds after the storm in which every client has had a ticket again
LOOK_INTERVAL = 0.5
SHOWN = 5  # violations in the report


class Size(NamedTuple):
    """How much of it."""

    seconds: float = 120.0
    seed: int = 1
    storm: Storm = Storm()


SIZE = Size()
QUICK = Size(seconds=6.0, storm=Storm(agents=4, tickets=3, clients=6, interval=(0.3, 1.0)))


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    problems = [] if namespaces() else ["no agent was cut off: this kernel gives no network namespace of one's own"]
    found: list[dict[str, Any]] = []
    try:
        for number in range(rounds):
            show_progress(f"storm {number + 1} of {rounds}: {size.seconds:g} s, seed {size.seed + number}")
            found.append(storm_apart(size.seconds, size.seed + number, size.storm))
    except NeverHappened as error:
        problems.append(str(error))
    return Report("tickets-storm", GOALS, ratios(found), {**size._asdict(), "rounds": rounds, "storms": found, **_counts(found)}, problems)


def ratios(found: list[dict[str, Any]]) -> dict[str, float]:
    """A storm that was not seen to its end proves nothing."""
    sums = {name: float(sum(each[name] for each in found)) for name in ("used_by_two", "tokens_not_growing", "used_after_deadline", "uses")}
    return {**sums, "clients_served_after": min((each["clients_served_after"] for each in found), default=0.0)}


def _counts(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {f"{name} of storm {number}": value for number, each in enumerate(found, 1) for name, value in each["faults"].items()}


def storm_apart(seconds: float, seed: int, storm: Storm) -> dict[str, Any]:
    """In namespaces of its own, in which everything ends that was started there."""
    command = [
        *namespaces(),
        sys.executable,
        "-m",
        "benchmarks.tickets_storm",
        str(seconds),
        str(seed),
        msgspec.json.encode(storm).decode(),
    ]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    found: dict[str, Any] = (
        json.loads(done.stdout) if done.stdout else {"broken": f"it ended with {done.returncode}; what it said is above"}
    )
    if "broken" in found:
        raise NeverHappened(found["broken"])
    return found


def storm_here(seconds: float, seed: int, storm: Storm) -> dict[str, Any]:
    with TemporaryDirectory(prefix="hf-") as name:
        crew = Crew(storm, Path(name), seed)
        try:
            crew.begin()
            weather = Weather(crew, storm, seed)
            weather.blow(seconds)
            weather.clear()
            served = _served(crew, storm, now())
            crew.end_clients()
            return {
                **judged(crew.records),
                "clients_served_after": served,
                "faults": dict(sorted(weather.counts.items())),
                "can_cut": crew.can_cut,
            }
        finally:
            crew.end()


def _served(crew: Crew, storm: Storm, since: float) -> float:
    """Which share of the clients had a ticket after the storm: it is not safe because no client gets anything."""
    end_at, pids = now() + SERVED_WITHIN, {client.pid for client in crew.clients.values()}
    while True:
        had = {line.client for line in lines(crew.records) if line.what == START and line.at > since}
        if pids <= had or now() >= end_at:
            return len(pids & had) / storm.clients
        time.sleep(LOOK_INTERVAL)


def judged(records: Path) -> dict[str, Any]:
    """What the recorder saw."""
    found = uses(lines(records))
    two, small, beyond = overlaps(found), shrunk(found), late(found)
    return {
        "uses": len(found),
        "tickets_used": len({use.number for use in found}),
        "used_by_two": len(two),
        "tokens_not_growing": len(small),
        "used_after_deadline": len(beyond),
        "shown": [[each._asdict() for each in pair] for pair in [*two, *small][:SHOWN]],
    }


def main() -> None:
    _, seconds, seed, *more = sys.argv
    if os.getpid() == 1:  # the first process of namespaces of its own
        subprocess.run(LOOPBACK_UP, check=True)
    try:
        found: Mapping[str, Any] = storm_here(float(seconds), int(seed), msgspec.json.decode(more[0], type=Storm) if more else Storm())
    except NeverHappened as error:
        found = {"broken": str(error)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
